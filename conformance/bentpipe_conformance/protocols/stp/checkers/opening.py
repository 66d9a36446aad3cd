"""STP-CC: opening a connection (sections 5.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    sent_packets,
)
from bentpipe_conformance.protocols.stp.checkers.discarding import (
    discarded,
    is_alone,
    on_same_ports,
    replies_to,
)
from bentpipe_conformance.protocols.stp.checkers.robustness import LEAST_PENDING
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    C,
    R,
    Stp,
)
from bentpipe_conformance.protocols.stp.numbers import (
    CSN_MODULUS,
    EARLY_CREDIT,
    MODULUS,
    newer,
    tag_of,
)
from bentpipe_conformance.protocols.stp.ports import CHARGEN, DISCARD, ECHO, UNUSED_PORT
from bentpipe_conformance.protocols.stp.replay.events import SdHeard
from bentpipe_conformance.protocols.stp.replay.flow import (
    CALLED,
    CALLING,
    IDLE,
    OPEN,
    RELEASING,
    Flow,
)

NO_RESOURCES, NOBODY_LISTENS, OTHER_VERSION = 5, 3, 4
"""Reasons of BGREJ (section 3.5)."""

ANSWERS_PER_S = 10
"""BGREJs, and ENDs without a connection, that may not be refused in one second."""


def _calls(flow: Flow) -> list[Flow]:
    """Connections of the same address on which the IUT was called."""
    return [other for other in flow.neighbours if not other.iut_calls and other.begins]


def _confirmed_before(flow: Flow) -> list[Flow]:
    """Calls that were confirmed, by the tester's BGAK, before the first BEGIN of this one."""
    until = flow.begins[0].time - DUE_S - flow.timing_error
    return [
        other for other in _calls(flow)
        if other is not flow and other.established is not None and any(
            not p.outgoing and p.time < until and p.content is not None
            and (p.content.csn, p.content.peer_csn) == (other.tester_csn, other.iut_csn)
            for p in other.bgaks
        )
    ]  # fmt: skip


def _first_answer(flow: Flow) -> tuple[At, Stp] | None:
    """The IUT's first BGAK to a call."""
    first = next((p for p in flow.bgaks if p.outgoing), None)
    if flow.iut_calls or not flow.begins or first is None or first.content is None:
        return None
    return At(first), first.content


def _above_iss(flow: Flow, number: int) -> int:
    """A number of the tester's direction as a count, ahead of ISS."""
    iss = flow.receiver.iss if flow.receiver is not None else 0
    return (number - iss) % MODULUS


@checker("STP-CC-003")
def data_at_once_only_of_a_known_caller(flow: Flow, context: Context) -> Iterator[Finding]:
    """What the IUT does with data before its caller has returned its CSN."""
    first = _first_answer(flow)
    if first is None or flow.receiver is None:
        return
    at, bgak = first
    if not bgak.flags & C:
        yield from _accepted_at_once(flow, context, at)
        return
    acted = _acts_early(flow)
    carried = [sd for sd in flow.sds_heard if sd.early and sd.number < EARLY_CREDIT]
    if acted is not None:
        yield context.violated(
            f"{name(acted[1])} shows that data was acted on before the caller had returned the CSN",
            at, acted[0],
        )  # fmt: skip
    elif carried and _waited(flow, carried[0]):
        yield context.holds("data that came before the confirmation was held back", at, carried[0])
    yield from _ignored_while_pending(flow, context)


def _waited(flow: Flow, sd: SdHeard) -> bool:
    until = flow.established if flow.established is not None else flow.until
    return until - sd.time > DUE_S


def _accepted_at_once(flow: Flow, context: Context, at: At) -> Iterator[Finding]:
    """A call that was not asked: some confirmed CSN must be older than its own.

    What the IUT knows from before the trace cannot be seen, so only what it must know counts.
    """
    confirmed = _confirmed_before(flow)
    csn = flow.tester_csn
    if csn is None or not confirmed:
        return
    begin = At(flow.begins[0])
    stale = [other for other in confirmed if not newer(csn, other.tester_csn or 0)]
    if stale:
        yield context.violated(
            f"a BEGIN with CSN {csn} was accepted at once, though {stale[-1].tester_csn} of the "
            "same address, which is not older, had been confirmed",
            begin, at,
        )  # fmt: skip
    else:
        yield context.holds("a BEGIN newer than every one confirmed was accepted", begin, at)


def _acts_early(flow: Flow) -> tuple[At, Stp] | None:
    """The first packet of the IUT that tells, before the confirmation, of what it then had."""
    established = flow.established
    for at, stp in sent_packets(flow):
        if stp.fault or (established is not None and at.packet.time >= established):
            continue
        if stp.type == BGAK and stp.csn == flow.iut_csn and _above_iss(flow, stp.n_r or 0):
            return at, stp
        if stp.type in (STAT, USTAT):
            return at, stp
        # These two have nothing to send or to end but for what they are sent.
        if stp.type in (SD, SDP) and flow.service in (ECHO, DISCARD):
            return at, stp
    return None


def _ignored_while_pending(flow: Flow, context: Context) -> Iterator[Finding]:
    """What must not move a pending connection (section 9)."""
    for at, stp in heard_packets(flow):
        if flow.state_before.get(at.packet.number) != CALLED or not stp.wellformed:
            continue
        wrong = stp.type == BGAK and (
            (stp.csn, stp.peer_csn) != (flow.tester_csn, flow.iut_csn)
            or (flow.sender is not None and stp.n_r != flow.sender.iss)
        )
        what = f"{name(stp)} while confirmation was awaited"
        if wrong or stp.type in (BGREJ, ENDAK, STAT, USTAT):
            yield from discarded(flow, context, at, what)
        elif stp.type in (POLL, SDP) and stp.tag == tag_of(flow.tester_csn or 0):
            yield from _asks_again(flow, context, at, what)


def _asks_again(flow: Flow, context: Context, at: At, what: str) -> Iterator[Finding]:
    """The caller shows that it believes the connection open: the question may have been lost."""
    questions = [
        reply for reply in answers(flow, at, (BGAK,))
        if reply.packet.content is not None and reply.packet.content.flags & C
    ]  # fmt: skip
    if questions:
        yield context.holds(f"{what} was answered with the question", at, questions[0])
    elif (
        is_alone(flow, at)
        and observed_long_enough(flow, at)
        and flow.pending_beside < LEAST_PENDING
    ):
        yield context.violated(f"{what} was not answered with the question", at)


@checker("STP-CC-012")
def begins_are_answered(flow: Flow, context: Context) -> Iterator[Finding]:
    """BEGINs of version 1 to a service that listens, or to the port of a call."""
    for at, begin in heard_packets(flow):
        if begin.type != BEGIN or not begin.wellformed or begin.version != 1:
            continue
        if not _has_to_be_answered(flow, at, begin):
            continue
        every = replies_to(flow, at)
        replies = [reply for reply in every if _answers_begin(reply, begin)]
        if any(_type(reply) == BGAK for reply in replies):
            yield context.holds("a BEGIN was answered with a BGAK", at, replies[0])
        elif any(_type(reply) == BGAK for reply in every):
            # A challenge: it has a connection on these ports that the trace does not show.
            continue
        elif not replies and observed_long_enough(flow, at):
            yield context.violated(f"a BEGIN to port {begin.dport} was not answered in time", at)
        elif replies and _reason(replies[0]) != NO_RESOURCES:
            yield context.violated(
                f"a BEGIN to port {begin.dport}, where a service has to listen, was refused",
                at, *replies[:1],
            )  # fmt: skip


def _type(at: At) -> int | None:
    return at.packet.content.type if at.packet.content else None


def _reason(at: At) -> int | None:
    return at.packet.content.reason if at.packet.content else None


def _answers_begin(reply: At, begin: Stp) -> bool:
    """Whether a packet is a BGAK or BGREJ for a BEGIN."""
    return _type(reply) in (BGAK, BGREJ) and (
        reply.packet.content is not None and reply.packet.content.peer_csn == begin.csn
    )


def _has_to_be_answered(flow: Flow, at: At, begin: Stp) -> bool:
    state = flow.state_before.get(at.packet.number)
    if state == CALLING:
        return True
    if begin.dport not in (ECHO, DISCARD, CHARGEN):
        return False
    if state == CALLED:
        return True
    if state == RELEASING:
        return _newer(begin.csn, flow.tester_csn)
    if state != IDLE or flow.iut_calls:
        return False
    # Packets of two connections can share ports; the other one must not be there any more.
    return all(
        other is flow
        or other.ended is not None
        or other.iut_csn is None
        or other.state_at(at.packet.time) == CALLED
        for other in on_same_ports(flow)
        if other.packets[0].number < at.packet.number
    )


def _newer(csn: int | None, than: int | None) -> bool:
    return csn is not None and than is not None and newer(csn, than)


@checker("STP-CC-013")
def known_callers_are_not_asked(flow: Flow, context: Context) -> Iterator[Finding]:
    """Calls of an address whose newest CSN is sure to be known."""
    first = _first_answer(flow)
    if first is None or flow.tester_csn is None:
        return
    at, bgak = first
    begin = flow.begins[0].content
    known = _sure_newest(_confirmed_before(flow))
    if begin is None or known is None or not _newest_of_all(flow, known):
        return
    if any(
        other is not flow and other.state_at(flow.begins[0].time) in (CALLED, None)
        for other in on_same_ports(flow)
    ):
        return  # beside another call everybody is asked (STP-CC-033)
    carries = int(bool(begin.data) or bool(begin.flags & FIN))
    if bgak.flags & C:
        yield context.violated(
            "a caller was asked for confirmation, though an older CSN of its address had been "
            "confirmed",
            At(flow.begins[0]), at,
        )  # fmt: skip
    elif _above_iss(flow, bgak.n_r or 0) < carries:
        yield context.violated(
            "the data of a known caller's BEGIN was not acknowledged in the BGAK",
            At(flow.begins[0]), at,
        )  # fmt: skip
    else:
        yield context.holds("a known caller's BEGIN was accepted at once", At(flow.begins[0]), at)


REMEMBERED_S = 600.0
"""Seconds for which a confirmed CSN is remembered (STP-CC-013)."""


def _newest_of_all(flow: Flow, known: int) -> bool:
    """Whether the call is newer than whatever its address was known for lately."""
    csn = flow.tester_csn
    lately = [
        other for other in flow.neighbours
        if other is not flow and other.established is not None and other.tester_csn is not None
        and other.packets[0].time < flow.begins[0].time
    ]  # fmt: skip
    last = max(packet.time for other in lately for packet in other.packets)
    return (
        _newer(csn, known)
        and all(_newer(csn, other.tester_csn) for other in lately)
        and flow.begins[0].time - last < REMEMBERED_S - flow.timing_error
    )


NEARLY_HALF = CSN_MODULUS // 2 - 256
"""Distance of two confirmed CSNs after which nothing newer can be remembered from before."""


def _sure_newest(confirmed: Sequence[Flow]) -> int | None:
    """The newest CSN that the IUT remembers, whatever it knew before the trace.

    Had it known a CSN newer than the first of two that lie almost 2^31 apart, the second is newer
    than that as well.
    """
    csns = [other.tester_csn for other in confirmed if other.tester_csn is not None]
    for place, first in enumerate(csns):
        for newest in csns[place + 1 :]:
            if NEARLY_HALF <= (newest - first) % CSN_MODULUS < CSN_MODULUS // 2:
                return newest
    return None


@checker("STP-CC-015")
def repeated_begin_is_answered_again(flow: Flow, context: Context) -> Iterator[Finding]:
    """BEGINs with the CSN of the connection that is there, in states 3 and 10."""
    first = _first_answer(flow)
    if first is None:
        return
    for packet in flow.begins[1:]:
        state = flow.state_before.get(packet.number)
        at = At(packet)
        if packet.outgoing or state not in (CALLED, OPEN):
            continue
        replies = answers(flow, at, (BGAK, BGREJ, END))
        if not replies:
            if observed_long_enough(flow, at):
                yield context.violated("a repeated BEGIN was not answered", at)
            continue
        problem = _changed_by_repetition(flow, first[1], replies[0], state)
        if problem:
            yield context.violated(f"a repeated BEGIN was answered {problem}", at, replies[0])
        else:
            yield context.holds("a repeated BEGIN was answered with the same numbers", at,
                                replies[0])  # fmt: skip


def _changed_by_repetition(flow: Flow, first: Stp, reply: At, state: int | None) -> str:
    """What is wrong about the answer to a repeated BEGIN; empty when nothing is."""
    stp = reply.packet.content
    assert stp is not None
    if stp.type != BGAK:
        # The IUT may have ended the connection for another reason at that moment.
        return "" if stp.type == END and not stp.flags & R else f"with {name(stp)}"
    if (stp.csn, stp.peer_csn, stp.seq) != (first.csn, first.peer_csn, first.seq):
        return "with other numbers than before"
    if state == CALLED and not stp.flags & C and flow.established is None:
        return "without C flag, though confirmation was awaited"
    before = [
        _above_iss(flow, (p.content.n_r if p.content.type == BGAK else p.content.seq) or 0)
        for p in flow.packets
        if p.outgoing and p.number < reply.packet.number and p.content is not None
        and p.content.type in (BGAK, STAT, USTAT) and not p.content.fault
    ]  # fmt: skip
    if _above_iss(flow, stp.n_r or 0) < max(before, default=0):
        return "with a N(R) below one sent before"
    return ""


@checker("STP-CC-019")
def nobody_there(flow: Flow, context: Context) -> Iterator[Finding]:
    """BEGINs of another version, and BEGINs to a port where nobody listens."""
    for at, begin in heard_packets(flow):
        if begin.type != BEGIN or not begin.checksum_ok or begin.fault:
            continue
        other_version = begin.version != 1
        idle = flow.state_before.get(at.packet.number) == IDLE
        if not other_version and not (idle and begin.dport == UNUSED_PORT):
            continue
        reason = OTHER_VERSION if other_version else NOBODY_LISTENS
        about = f"a BEGIN of version {begin.version} to port {begin.dport}"
        replies = [reply for reply in replies_to(flow, at) if _answers_begin(reply, begin)]
        if replies and _type(replies[0]) == BGREJ and _reason(replies[0]) == reason:
            yield context.holds(f"{about} was refused with reason {reason}", at, replies[0])
        elif replies:
            yield context.violated(
                f"{about} was not refused as it has to be", at, replies[0],
                expected=f"a BGREJ with reason {reason}",
                actual=_described(replies[0]),
            )  # fmt: skip
        elif observed_long_enough(flow, at) and not many_before(flow, at, (BEGIN,)):
            yield context.violated(f"{about} was not answered in time", at)


def _described(at: At) -> str:
    stp = at.packet.content
    assert stp is not None
    return name(stp) + (f" with reason {stp.reason}" if stp.type == BGREJ else "")


def many_before(flow: Flow, at: At, kinds: Sequence[int]) -> bool:
    """Whether so many packets of these types came that answers may have been refused."""
    start = at.packet.time - 1.0 - flow.timing_error
    came = sum(
        stp.type in kinds and start <= other.packet.time <= at.packet.time
        for neighbour in flow.neighbours
        for other, stp in heard_packets(neighbour)
    )
    return came > ANSWERS_PER_S


@checker("STP-CC-029")
def early_credit_is_given(flow: Flow, context: Context) -> Iterator[Finding]:
    """The credit in every BEGIN and BGAK of the IUT."""
    for at, stp in sent_packets(flow):
        if stp.fault or stp.type not in (BEGIN, BGAK):
            continue
        if stp.type == BGAK and (flow.receiver is None or stp.peer_csn != flow.tester_csn):
            continue
        credit = (stp.n_mr or 0) if stp.type == BEGIN else _above_iss(flow, stp.n_mr or 0)
        if EARLY_CREDIT <= credit <= MODULUS // 2:
            yield context.holds(f"{name(stp)} permits {credit} SDs", at)
        else:
            yield context.violated(
                f"{name(stp)} gives too little credit", at,
                expected=f"at least ISS + {EARLY_CREDIT}", actual=f"ISS + {credit}",
            )  # fmt: skip
