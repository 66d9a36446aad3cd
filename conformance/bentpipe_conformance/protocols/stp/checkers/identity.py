"""STP-CC: which connection a packet belongs to: tags, CSNs, challenges (sections 5.2 and 5.3)."""

from __future__ import annotations

import itertools
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
from bentpipe_conformance.protocols.stp.checkers.discarding import discarded, on_same_ports
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, END, ENDAK, A, C, R, Stp
from bentpipe_conformance.protocols.stp.numbers import MODULUS, newer, tag_of
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.events import Other
from bentpipe_conformance.protocols.stp.replay.flow import (
    CALLED,
    CALLING,
    OPEN,
    TAGGED,
    Flow,
    is_possible,
)

CHALLENGE_S = 1.0
"""Seconds within which there is at most one challenge (STP-CC-018, STP-CC-021)."""

NO_CONNECTION = 2
"""Reason of END (section 3.5)."""

SOON_S = 1.0
"""For what is due at once, but without a time of its own."""


@checker("STP-CC-001")
def other_incarnations_are_discarded(flow: Flow, context: Context) -> Iterator[Finding]:
    """Packets with a tag that is not that of the connection which is there."""
    for event in flow.others:
        if isinstance(event, Other) and event.ignored.startswith("its tag"):
            what = f"{name(event.stp)} with a wrong tag ({event.ignored})"
            yield from discarded(flow, context, At(event.packet), what)
    for at, stp in heard_packets(flow):
        state = flow.state_before.get(at.packet.number)
        if not stp.wellformed:
            continue
        if stp.type in TAGGED and state is None:
            present = _present(flow, at)
            if present is not None and tag_of(present.tester_csn or 0) != stp.tag:
                what = f"{name(stp)} of the connection before"
                yield from discarded(present, context, at, what)
        elif stp.type in (*TAGGED, ENDAK) and state == CALLING:
            yield from discarded(flow, context, at, f"{name(stp)} before the call was answered")


def _present(flow: Flow, at: At) -> Flow | None:
    """The connection in data transfer that has taken a flow's ports, if there is one."""
    time = at.packet.time
    return next(
        (
            other
            for other in on_same_ports(flow)
            if other.incarnation.start > flow.incarnation.start
            and other.established is not None
            and other.established < time - DUE_S - flow.timing_error
            and (other.ended is None or other.ended > time + DUE_S + flow.timing_error)
        ),
        None,
    )


@checker("STP-CC-007")
def newer_number_ends_the_connection(flow: Flow, context: Context) -> Iterator[Finding]:
    """BGAKs with the IUT's CSN as recipient and a newer one of the sender, in data transfer."""
    for packet in flow.bgaks:
        stp = packet.content
        if packet.outgoing or stp is None or flow.state_before.get(packet.number) != OPEN:
            continue
        if stp.peer_csn != flow.iut_csn or stp.csn is None or flow.tester_csn is None:
            continue
        if not newer(stp.csn, flow.tester_csn) or not is_possible(flow, stp):
            continue
        at = At(packet)
        replies = _to_csn(flow, at, stp.csn)
        confirming = [reply for reply in replies if _type(reply) == BGAK]
        ends = [reply for reply in replies if _type(reply) == END]
        if confirming:
            yield context.violated("the new number was confirmed", at, *confirming)
        elif not ends:
            if observed_long_enough(flow, at, SOON_S):
                yield context.violated("the new number was not answered with an END", at)
        elif not _disowns(flow, ends[0], stp.csn):
            yield context.violated("the new number was answered with a wrong END", at, ends[0],
                                   expected="END with A flag, reason 2 and both CSNs")  # fmt: skip
        else:
            after = [
                report for report in flow.reports_sent
                if report.time > ends[0].packet.time + DUE_S + flow.timing_error
            ]  # fmt: skip
            if after:
                yield context.violated("the old connection went on", at, ends[0], after[0])
            else:
                yield context.holds("a newer number ended the connection", at, ends[0])


def _to_csn(flow: Flow, at: At, csn: int) -> list[At]:
    """BGAKs and ENDs to a CSN of the tester, soon after a packet."""
    return [
        reply
        for other in on_same_ports(flow)
        for reply in answers(other, at, (BGAK, END), SOON_S)
        if reply.packet.content is not None and reply.packet.content.peer_csn == csn
    ]


def _disowns(flow: Flow, end: At, csn: int) -> bool:
    stp = end.packet.content
    return (
        stp is not None
        and bool(stp.flags & A)
        and not stp.flags & R
        and stp.reason == NO_CONNECTION
        and (stp.csn, stp.peer_csn) == (flow.iut_csn, csn)
    )


def _type(at: At) -> int | None:
    return at.packet.content.type if at.packet.content else None


@checker("STP-CC-010")
def csns_rise(flow: Flow, context: Context) -> Iterator[Finding]:
    """The IUT's CSN against those it had chosen for the same address before."""
    own = _chosen_from(flow)
    if own is None or flow.iut_csn is None:
        return
    earlier = [
        other for other in flow.neighbours
        if other is not flow and (first := _first_shown(other)) is not None
        and first.packet.time < own.packet.time - flow.timing_error
    ]  # fmt: skip
    stale = [other for other in earlier if not newer(flow.iut_csn, other.iut_csn or 0)]
    if stale:
        before = _first_shown(stale[-1])
        assert before is not None
        yield context.violated(
            f"CSN {flow.iut_csn} was chosen after {stale[-1].iut_csn}, which is not older",
            before, own,
        )  # fmt: skip
    elif earlier:
        yield context.holds(f"CSN {flow.iut_csn} is newer than {len(earlier)} before", own)


def _first_shown(flow: Flow) -> At | None:
    """The first packet by which the IUT told its CSN."""
    return next(
        (at for at, stp in sent_packets(flow)
         if stp.type in (BEGIN, BGAK) and not stp.fault and stp.csn == flow.iut_csn), None
    )  # fmt: skip


def _chosen_from(flow: Flow) -> At | None:
    """The moment from which on the IUT can have chosen its CSN: a BEGIN, its own or one heard."""
    return At(flow.begins[0]) if flow.begins else None


ENOUGH = 8
"""Connections of one trace from which on a lack of chance is no chance."""

NARROW = MODULUS // 16
"""Eight random numbers lie within so small an arc once in 30 million times."""


@checker("STP-CC-011")
def initial_numbers_are_hard_to_guess(flow: Flow, context: Context) -> Iterator[Finding]:
    """The ISSs of many connections; the first CSN after a start is a single sample."""
    if flow is not flow.neighbours[-1]:
        return
    shown = [
        (first, other.sender.iss) for other in flow.neighbours
        if other.sender is not None and (first := _first_shown(other)) is not None
    ]  # fmt: skip
    if len(shown) < ENOUGH:
        return
    numbers = [number for _, number in shown]
    where = [first for first, _ in shown]
    steps = {(b - a) % MODULUS for a, b in itertools.pairwise(numbers)}
    if len(steps) == 1:
        yield context.violated(
            f"{len(numbers)} ISSs follow each other at a distance of {steps.pop()}", *where
        )
    elif _arc(numbers) < NARROW:
        yield context.violated(
            f"{len(numbers)} ISSs lie within {_arc(numbers)} numbers of {MODULUS}", *where
        )
    else:
        yield context.holds(f"{len(numbers)} ISSs are spread over {_arc(numbers)}", *where)


def _arc(numbers: Sequence[int]) -> int:
    """How much of the circle of numbers the shortest arc with all of them takes."""
    ordered = sorted(numbers)
    gaps = [b - a for a, b in itertools.pairwise(ordered)]
    gaps.append(ordered[0] + MODULUS - ordered[-1])
    return MODULUS - max(gaps)


@checker("STP-CC-017")
def questions_are_answered(flow: Flow, context: Context) -> Iterator[Finding]:
    """BGAKs with C flag and both CSNs."""
    for packet in flow.bgaks:
        stp = packet.content
        if packet.outgoing or stp is None or not stp.flags & C or not is_possible(flow, stp):
            continue
        if (stp.csn, stp.peer_csn) != (flow.tester_csn, flow.iut_csn):
            continue
        state = flow.state_before.get(packet.number)
        opened = state == CALLING and packet.time == flow.established
        if not opened and state not in (CALLED, OPEN):
            continue
        at = At(packet)
        replies = [
            reply for reply in answers(flow, at, (BGAK,))
            if reply.packet.content is not None and not reply.packet.content.flags & C
        ]  # fmt: skip
        right = [r for r in replies if _csns(r) == (flow.iut_csn, flow.tester_csn)]
        if right:
            yield context.holds("a BGAK with C flag was answered", at, right[0])
        elif replies:
            yield context.violated("a BGAK with C flag was answered with wrong CSNs", at, *replies)
        elif observed_long_enough(flow, at) and not _ended_by(flow, at):
            yield context.violated("a BGAK with C flag was not answered in time", at)


def _csns(at: At) -> tuple[int | None, int | None]:
    stp = at.packet.content
    return (stp.csn, stp.peer_csn) if stp else (None, None)


def _ended_by(flow: Flow, at: At) -> bool:
    """Whether the connection ended before an answer was due."""
    due = at.packet.time + DUE_S + flow.timing_error
    return flow.ended is not None and flow.ended <= due


@checker("STP-CC-018")
def other_calls_are_challenged(flow: Flow, context: Context) -> Iterator[Finding]:
    """BEGINs with another CSN that reached the IUT in data transfer."""
    if flow.displaced_in == OPEN:
        intruder = _successor(flow)
        if intruder is not None:
            yield context.violated(
                "a BEGIN took the place of a connection in data transfer", At(intruder)
            )
    causes = [
        at for at, stp in heard_packets(flow)
        if stp.type == BEGIN and stp.wellformed and stp.version == 1
        and stp.csn != flow.tester_csn and flow.state_before.get(at.packet.number) == OPEN
    ]  # fmt: skip
    yield from challenged(flow, context, causes, hints(flow), "a BEGIN of another connection")


def _successor(flow: Flow) -> Packet | None:
    """The BEGIN of the call that has taken a flow's ports."""
    later = [
        other.begins[0] for other in on_same_ports(flow)
        if other.incarnation.start > flow.incarnation.start and other.begins
        and not other.iut_calls and other.iut_csn is not None
    ]  # fmt: skip
    return min(later, key=lambda packet: packet.number, default=None)


def hints(flow: Flow) -> list[At]:
    """ENDs with R flag that name only the tag, in data transfer."""
    return [
        at for at, stp in heard_packets(flow)
        if stp.type == END and stp.wellformed and is_hint(flow, stp)
        and flow.state_before.get(at.packet.number) == OPEN
    ]  # fmt: skip


def is_hint(flow: Flow, end: Stp) -> bool:
    """Whether an END says no more than the tag of the IUT's connection (section 5.6)."""
    if flow.iut_csn is None or not end.flags & R:
        return False
    return end.csn == 0 and end.peer_csn == tag_of(flow.iut_csn)


def challenged(
    flow: Flow, context: Context, causes: Sequence[At], others: Sequence[At], what: str
) -> Iterator[Finding]:
    """Whether each cause was answered with a challenge, but at most one per second.

    Args:
        flow: the connection.
        context: of the requirement.
        causes: packets that have to be challenged.
        others: packets that have to be challenged for another reason, within the same limit.
        what: a cause, with its article.
    """
    questions = _challenges(flow)
    # Until then a question may be one that the confirmation has crossed.
    start = (flow.established if flow.established is not None else 0.0) + DUE_S + flow.timing_error
    causes = [at for at in causes if at.packet.time > start]
    for at in causes:
        time = at.packet.time
        found = [q for q in questions if 0 <= q.packet.time - time <= DUE_S + flow.timing_error]
        since = time - CHALLENGE_S - DUE_S - flow.timing_error
        lately = any(since <= q.packet.time < time for q in questions)
        ends = answers(flow, at, (END,))
        if ends and not _ended_by_others(flow, at):
            yield context.violated(f"{what} ended the connection", at, *ends)
        elif found and _csns(found[0]) == (flow.iut_csn, flow.tester_csn):
            yield context.holds(f"{what} was challenged", at, found[0])
        elif found:
            yield context.violated(f"{what} was challenged with wrong CSNs", at, found[0])
        elif not lately and observed_long_enough(flow, at) and not _ended_by(flow, at):
            yield context.violated(f"{what} was not challenged", at)
    if flow.iut_calls:
        return  # a question of STP-CC-032 may be beside
    asked = [q for q in questions if _is_cause(flow, [*causes, *others], q)]
    for first, second in itertools.pairwise(asked):
        gap = second.packet.time - first.packet.time
        if _is_cause(flow, causes, second) and gap < 0.95 * CHALLENGE_S - flow.timing_error:
            yield context.violated(
                f"two challenges were sent within {gap:.2f} s", first, second,
                expected="at most one per second",
            )  # fmt: skip


def _ended_by_others(flow: Flow, at: At) -> bool:
    """Whether something else may have ended the connection at that moment."""
    near_it = DUE_S + flow.timing_error
    sender = flow.sender
    return (sender is not None and sender.fin is not None) or any(
        other.packet.number != at.packet.number
        and stp.type in (END, ENDAK, BGAK)
        and abs(other.packet.time - at.packet.time) <= near_it
        for other, stp in heard_packets(flow)
    )


def _is_cause(flow: Flow, causes: Sequence[At], question: At) -> bool:
    time = question.packet.time
    return any(0 <= time - at.packet.time <= DUE_S + flow.timing_error for at in causes)


def _challenges(flow: Flow) -> list[At]:
    """BGAKs with C flag that the IUT sent in data transfer."""
    return [
        at for at, stp in sent_packets(flow)
        if stp.type == BGAK and stp.flags & C and not stp.fault
        and flow.state_before.get(at.packet.number) == OPEN
    ]  # fmt: skip
