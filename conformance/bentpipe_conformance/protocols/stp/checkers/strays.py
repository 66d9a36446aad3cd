"""STP-CC: packets of no connection, and ENDs that do not know it (section 5.6)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, identity, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answered,
    answers_on_ports,
    discarded,
    observed,
)
from bentpipe_conformance.protocols.stp.checkers.opening import many_before
from bentpipe_conformance.protocols.stp.codec import A, R
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State

SOON_S = 1.0
"""For ENDs without a connection, for which no time is specified."""

_TOLD_SO = (codec.BGAK, codec.SD, codec.SDP, codec.POLL)
"""What is answered with an END where there is no connection."""

_SENT_WITHOUT = (codec.END, codec.ENDAK, codec.BGREJ)
"""What an endpoint sends without a connection."""


@checker("STP-CC-020")
def no_connection(flow: Flow, context: Context) -> Findings:
    """A packet of no connection is answered with an END or ENDAK, or discarded (section 5.6)."""
    used: set[int] = set()
    for at in flow.heard:
        stp = at.stp
        if not stp.wellformed:
            continue
        calling = flow.state_when(at) == State.CALLING
        stray = calling and stp.type == codec.BGAK and stp.peer_csn != flow.iut_csn
        if not stray and not _is_idle(flow, at):
            continue
        if stp.type in _TOLD_SO:
            yield from _told_so(flow, context, at, used)
        elif stp.type == codec.END and not stp.flags & R:
            what = "an END of no connection"
            yield from answered(flow, context, at, _endaks(flow, at), what, "acknowledged")
        elif stp.type != codec.BEGIN:
            yield from discarded(flow, context, at, f"{at.name} without a connection")


def _told_so(flow: Flow, context: Context, at: At, used: set[int]) -> Findings:
    """Whether a packet of no connection drew the END of section 5.6, each its own."""
    stp = at.stp
    csn, other = (stp.peer_csn, stp.csn) if stp.type == codec.BGAK else (0, stp.tag)
    replies = (
        reply for reply in _replies(flow, at, codec.END, SOON_S)
        if reply.frame not in used and (reply.stp.csn, reply.stp.peer_csn) == (csn or 0, other or 0)
    )  # fmt: skip
    reply = next(replies, None)
    what = f"{at.name} without a connection"
    if reply is None:
        if observed(flow, at, SOON_S) and not many_before(flow, at, _TOLD_SO):
            yield context.violated(f"{what} was not answered with an END", at)
        return
    used.add(reply.frame)
    right = A | R, identity.NO_CONNECTION, tag_of(csn or 0), 0
    actual = reply.stp.flags & (A | R), reply.stp.reason, reply.stp.tag, reply.stp.seq
    yield judged(
        context, actual == right,
        f"{what} was answered with an END", f"{what} was answered with a wrong END", at, reply,
        expected=f"flags, reason, tag and sequence {right}", actual=f"{actual}",
    )  # fmt: skip


def _replies(flow: Flow, at: At, kind: int, within: float = DUE_S) -> list[At]:
    """The ENDs or ENDAKs after a packet, on any connection of its ports, in order."""
    found = answers_on_ports(flow, at, (kind,), within)
    return sorted(found, key=lambda reply: reply.frame)


def _endaks(flow: Flow, end: At) -> list[At]:
    """The ENDAKs that acknowledge an END."""
    return [
        reply for reply in _replies(flow, end, codec.ENDAK) if reply.stp.peer_csn == end.stp.csn
    ]


def _is_idle(flow: Flow, at: At) -> bool:
    """Whether the IUT surely has no connection on these ports when a packet arrives."""
    if flow.state_when(at) != State.IDLE:
        return False
    if flow.ended is None:
        # It may have one from before the trace, or the BGAK for a BEGIN may be on its way.
        if any(item.stp.type not in _SENT_WITHOUT for item in flow.sent):
            return False
        if flow.iut_csn is not None and any(item.stp.type == codec.BEGIN for item in flow.heard):
            return False
    elif at.time < flow.ended:
        return False
    return all(
        other is flow or other.ended is not None or other.iut_csn is None
        for other in flow.same_ports
        if other.passed[0].frame < at.frame
    )


@checker("STP-CC-021")
def ends_must_know_the_connection(flow: Flow, context: Context) -> Findings:
    """An END counts only if valid; one that names the tag only is challenged (section 5.6)."""
    what = "an END that names the tag only"
    yield from identity.challenged(
        flow, context, identity.hints(flow), identity.other_begins(flow), what
    )
    for at in flow.heard_of(codec.END):
        stp, state = at.stp, flow.state_when(at)
        hint = state == State.OPEN and identity.is_hint(flow, at)
        if state in (State.IDLE, None) or _is_valid(flow, stp, state) or hint:
            continue
        flags = " with R flag" if stp.flags & R else ""
        yield from discarded(flow, context, at, f"an END{flags} that does not know the connection")


def _is_valid(flow: Flow, stp: codec.Stp, state: int | None) -> bool:
    """Section 5.6, in a given state."""
    own = flow.is_recipient(stp)
    if stp.flags & R:
        return own and stp.csn == flow.tester_csn and state != State.CALLING
    if state == State.CALLING or (state == State.RELEASING and flow.tester_csn is None):
        return own
    return stp.csn == flow.tester_csn and (own or (state == State.CALLED and stp.peer_csn == 0))


@checker("STP-CC-022")
def ends_are_acknowledged(flow: Flow, context: Context) -> Findings:
    """A valid END without R flag is answered with an ENDAK, in every state (section 5.5)."""
    for at in flow.heard_of(codec.END):
        stp, state = at.stp, flow.state_when(at)
        if stp.flags & R:
            continue
        if state == State.IDLE:
            due = _is_idle(flow, at)
        elif state is None:
            # Whatever the state is, such an END is valid, unless other calls have the ports.
            due = flow.names(at) and len(flow.same_ports) == 1
        else:
            due = _is_valid(flow, stp, state)
        if not due:
            continue
        replies = _endaks(flow, at)
        # Section 5.5: the tag is that of the END's CSN of the recipient, even if it is zero.
        tag = tag_of(stp.peer_csn or 0)
        if replies and replies[0].stp.tag != tag:
            yield context.violated(
                "an ENDAK has a wrong tag", at, replies[0],
                expected=f"{tag:#06x}", actual=f"{replies[0].stp.tag:#06x}",
            )  # fmt: skip
        else:
            yield from answered(flow, context, at, replies, "a valid END", "acknowledged")
