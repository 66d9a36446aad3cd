"""STP-CC: ENDs, and packets of no connection (section 5.6)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    answers,
    heard_packets,
    name,
    observed_long_enough,
)
from bentpipe_conformance.protocols.stp.checkers.discarding import discarded, on_same_ports
from bentpipe_conformance.protocols.stp.checkers.identity import (
    NO_CONNECTION,
    challenged,
    hints,
    is_hint,
)
from bentpipe_conformance.protocols.stp.checkers.opening import many_before
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    A,
    R,
    Stp,
)
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.flow import (
    CALLED,
    CALLING,
    IDLE,
    OPEN,
    RELEASING,
    Flow,
)

SOON_S = 1.0
"""For ENDs without a connection, which have no time of their own."""

_SENT_WITHOUT = (END, ENDAK, BGREJ)
"""What an endpoint sends without a connection."""


@checker("STP-CC-020")
def no_connection(flow: Flow, context: Context) -> Iterator[Finding]:
    """Packets for which the IUT has no connection, and BGAKs that answer no call of its own."""
    used: set[int] = set()
    for at, stp in heard_packets(flow):
        if not stp.wellformed:
            continue
        state = flow.state_before.get(at.packet.number)
        stray = state == CALLING and stp.type == BGAK and stp.peer_csn != flow.iut_csn
        if not stray and not _is_idle(flow, at):
            continue
        if stp.type in (BGAK, SD, SDP, POLL):
            yield from _told_so(flow, context, at, stp, used)
        elif stp.type == END and not stp.flags & R:
            replies = [r for r in _near_answers(flow, at, DUE_S) if _acknowledges(r, stp)]
            if replies:
                yield context.holds("an END out of the blue was acknowledged", at, replies[0])
            elif observed_long_enough(flow, at):
                yield context.violated("an END out of the blue was not acknowledged in time", at)
        elif stp.type in (END, BGREJ, ENDAK, STAT, USTAT):
            yield from discarded(flow, context, at, f"{name(stp)} without a connection")


def _told_so(flow: Flow, context: Context, at: At, stp: Stp, used: set[int]) -> Iterator[Finding]:
    """Whether a packet out of the blue drew the END of section 5.6, each its own."""
    csn, other = (stp.peer_csn, stp.csn) if stp.type == BGAK else (0, stp.tag)
    replies = [
        reply for reply in _near_answers(flow, at, SOON_S)
        if reply.packet.number not in used and _names(reply, csn or 0, other or 0)
    ]  # fmt: skip
    what = f"{name(stp)} without a connection"
    if not replies:
        if observed_long_enough(flow, at, SOON_S) and not many_before(
            flow, at, (BGAK, SD, SDP, POLL)
        ):
            yield context.violated(f"{what} was not answered with an END", at)
        return
    used.add(replies[0].packet.number)
    end = replies[0].packet.content
    assert end is not None
    right = A | R, NO_CONNECTION, tag_of(csn or 0), 0
    actual = end.flags & (A | R), end.reason, end.tag, end.seq
    if actual == right:
        yield context.holds(f"{what} was answered with an END", at, replies[0])
    else:
        yield context.violated(
            f"{what} was answered with a wrong END", at, replies[0],
            expected=f"flags, reason, tag and sequence {right}", actual=f"{actual}",
        )  # fmt: skip


def _near_answers(flow: Flow, at: At, within: float) -> list[At]:
    found = [
        reply for other in on_same_ports(flow)
        for reply in answers(other, at, (END, ENDAK), within)
    ]  # fmt: skip
    return sorted(found, key=lambda reply: reply.packet.number)


def _names(reply: At, csn: int, peer_csn: int) -> bool:
    stp = reply.packet.content
    return stp is not None and stp.type == END and (stp.csn, stp.peer_csn) == (csn, peer_csn)


def _acknowledges(reply: At, end: Stp) -> bool:
    stp = reply.packet.content
    return stp is not None and stp.type == ENDAK and stp.peer_csn == end.csn


def _is_idle(flow: Flow, at: At) -> bool:
    """Whether the IUT surely has no connection on these ports when a packet comes."""
    number = at.packet.number
    if flow.state_before.get(number) != IDLE:
        return False
    if flow.ended is None:
        if any(_shows_connection(flow, packet) for packet in flow.packets):
            # It has one from before the trace, or the BGAK for a BEGIN is on its way.
            return False
    elif at.packet.time < flow.ended:
        return False
    return all(
        other is flow or other.ended is not None or other.iut_csn is None
        for other in on_same_ports(flow)
        if other.packets[0].number < number
    )


def _shows_connection(flow: Flow, packet: Packet) -> bool:
    """Whether a packet is one that the IUT sends on connections only, or a BEGIN to it."""
    stp = packet.content
    if stp is None:
        return False
    if packet.outgoing:
        return stp.type not in _SENT_WITHOUT
    return stp.type == BEGIN and flow.iut_csn is not None


@checker("STP-CC-021")
def ends_must_know_the_connection(flow: Flow, context: Context) -> Iterator[Finding]:
    """ENDs that are not valid, and ENDs that name the tag only."""
    others = [
        at for at, stp in heard_packets(flow)
        if stp.type == BEGIN and stp.csn != flow.tester_csn
        and flow.state_before.get(at.packet.number) == OPEN
    ]  # fmt: skip
    yield from challenged(flow, context, hints(flow), others, "an END that names the tag only")
    for at, stp in heard_packets(flow):
        state = flow.state_before.get(at.packet.number)
        if stp.type != END or not stp.wellformed or state not in (CALLING, CALLED, OPEN, RELEASING):
            continue
        if _is_valid(flow, stp, state) or (state == OPEN and is_hint(flow, stp)):
            continue
        flags = " with R flag" if stp.flags & R else ""
        yield from discarded(flow, context, at, f"an END{flags} that does not know the connection")


def _is_valid(flow: Flow, stp: Stp, state: int | None) -> bool:
    """Section 5.6, in a given state."""
    own = flow.iut_csn is not None and stp.peer_csn == flow.iut_csn
    if stp.flags & R:
        return own and stp.csn == flow.tester_csn and state != CALLING
    if state == CALLING or (state == RELEASING and flow.tester_csn is None):
        return own
    return stp.csn == flow.tester_csn and (own or (state == CALLED and stp.peer_csn == 0))


@checker("STP-CC-022")
def ends_are_acknowledged(flow: Flow, context: Context) -> Iterator[Finding]:
    """Valid ENDs without R flag, in every state."""
    for at, stp in heard_packets(flow):
        if stp.type != END or not stp.wellformed or stp.flags & R:
            continue
        state = flow.state_before.get(at.packet.number)
        if state == IDLE:
            due = _is_idle(flow, at)
        elif state is None:
            # Whatever the state is, such an END is valid, unless other calls have the ports.
            both = (stp.csn, stp.peer_csn) == (flow.tester_csn, flow.iut_csn)
            due = both and len(on_same_ports(flow)) == 1
        else:
            due = _is_valid(flow, stp, state)
        if not due:
            continue
        replies = [reply for reply in _near_answers(flow, at, DUE_S) if _acknowledges(reply, stp)]
        if not replies:
            if observed_long_enough(flow, at):
                yield context.violated("a valid END was not acknowledged in time", at)
            continue
        endak = replies[0].packet.content
        assert endak is not None
        # Section 5.5: the tag is that of the END's CSN of the recipient, even if it is zero.
        if endak.tag != tag_of(stp.peer_csn or 0):
            yield context.violated("an ENDAK has a wrong tag", at, replies[0],
                                   expected=f"{tag_of(stp.peer_csn or 0):#06x}",
                                   actual=f"{endak.tag:#06x}")  # fmt: skip
        else:
            yield context.holds("a valid END was acknowledged", at, replies[0])
