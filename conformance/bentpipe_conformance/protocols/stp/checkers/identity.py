"""STP-CC: which connection a packet belongs to: tags, CSNs, challenges (sections 5.2 and 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answered,
    answers,
    answers_on_ports,
    discarded,
    observed,
)
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, END, ENDAK, A, C, R
from bentpipe_conformance.protocols.stp.numbers import MODULUS, newer, tag_of
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow, State

CHALLENGE_S = 1.0
"""Seconds within which there is at most one challenge (STP-CC-018, STP-CC-021)."""

NO_CONNECTION = 2
"""Reason of END (section 3.5)."""

SOON_S = 1.0
"""For what is due at once, but without a specified time."""


@checker("STP-CC-001")
def other_incarnations_are_discarded(flow: Flow, context: Context) -> Findings:
    """A packet whose tag is not that of the present connection is discarded (section 4)."""
    for event in flow.others:
        if event.ignored.startswith("its tag"):
            what = f"{event.name} with a wrong tag ({event.ignored})"
            yield from discarded(flow, context, event, what)
    for at in flow.heard:
        state = flow.state_when(at)
        if not at.stp.wellformed:
            continue
        if at.stp.type in TAGGED and state is None:
            present = _present(flow, at)
            if present is not None and tag_of(present.tester_csn or 0) != at.stp.tag:
                yield from discarded(present, context, at, f"{at.name} of the connection before")
        elif at.stp.type in (*TAGGED, ENDAK) and state == State.CALLING:
            yield from discarded(flow, context, at, f"{at.name} before the call was answered")


def _present(flow: Flow, at: At) -> Flow | None:
    """The connection in data transfer that has taken a flow's ports, if there is one."""
    found = (
        other for other in flow.same_ports
        if other.start > flow.start and other.established is not None
        and other.established < at.time - DUE_S - flow.timing_error
        and (other.ended is None or other.ended > at.time + flow.due_s)
    )  # fmt: skip
    return next(found, None)


@checker("STP-CC-007")
def newer_number_ends_the_connection(flow: Flow, context: Context) -> Findings:
    """A BGAK with a newer CSN of the peer ends the connection with an END (section 5.3)."""
    lost = A, NO_CONNECTION, flow.iut_csn
    for at in flow.bgaks:
        stp = at.stp
        if at.outgoing or flow.state_when(at) != State.OPEN or stp.peer_csn != flow.iut_csn:
            continue
        if stp.csn is None or flow.tester_csn is None or not newer(stp.csn, flow.tester_csn):
            continue
        if not flow.is_possible(stp):
            continue
        replies = [
            reply for reply in answers_on_ports(flow, at, (BGAK, END), SOON_S)
            if reply.stp.peer_csn == stp.csn
        ]  # fmt: skip
        confirming = [reply for reply in replies if reply.stp.type == BGAK]
        if confirming:
            yield context.violated("the new number was confirmed", at, *confirming)
        elif not replies:
            if observed(flow, at, SOON_S):
                yield context.violated("the new number was not answered with an END", at)
        elif (replies[0].stp.flags & (A | R), replies[0].stp.reason, replies[0].stp.csn) != lost:
            yield context.violated(
                "the new number was answered with a wrong END", at, replies[0],
                expected="END with A flag, reason 2 and both CSNs",
            )  # fmt: skip
        else:
            due = replies[0].time + flow.due_s
            after = [report for report in flow.reports_sent if report.time > due]
            yield judged(
                context, not after,
                "a newer number ended the connection", "the old connection continued",
                at, replies[0], *after[:1],
            )  # fmt: skip


@checker("STP-CC-010")
def csns_rise(flow: Flow, context: Context) -> Findings:
    """A CSN is newer than all chosen for the same peer address before (section 5.1)."""
    if not flow.begins or flow.iut_csn is None:
        return
    # It can have been chosen from the BEGIN on, its own or the one heard.
    own = flow.begins[0]
    earlier = [
        other for other in flow.neighbours
        if other is not flow and (first := _first_shown(other)) is not None
        and first.time < own.time - flow.timing_error
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
        yield context.holds(
            f"CSN {flow.iut_csn} is newer than the {len(earlier)} chosen before", own
        )


def _first_shown(flow: Flow) -> At | None:
    """The first packet that shows the IUT's CSN."""
    shown = (
        at for at in flow.sent
        if at.stp.type in (BEGIN, BGAK) and not at.stp.fault and at.stp.csn == flow.iut_csn
    )  # fmt: skip
    return next(shown, None)


ENOUGH = 8
"""Connections of one trace that suffice to tell ISSs that are not random from chance."""

NARROW = MODULUS // 16
"""Eight random numbers lie within so small an arc once in 30 million times."""


@checker("STP-CC-011")
def initial_numbers_are_hard_to_guess(flow: Flow, context: Context) -> Findings:
    """ISSs are random; the first CSN after a start is a single sample (section 5.1)."""
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
    steps = {(b - a) % MODULUS for a, b in pairwise(numbers)}
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
    gaps = [b - a for a, b in pairwise(ordered)]
    gaps.append(ordered[0] + MODULUS - ordered[-1])
    return MODULUS - max(gaps)


@checker("STP-CC-017")
def questions_are_answered(flow: Flow, context: Context) -> Findings:
    """A BGAK with C flag and both CSNs is answered with one without C flag (section 5.1)."""
    for at in flow.bgaks:
        if at.outgoing or not at.stp.flags & C or not flow.is_possible(at.stp):
            continue
        state = flow.state_when(at)
        opened = state == State.CALLING and at.time == flow.established
        if not flow.names(at) or (not opened and state not in (State.CALLED, State.OPEN)):
            continue
        replies = [reply for reply in answers(flow, at, (BGAK,)) if not reply.stp.flags & C]
        right = [reply for reply in replies if flow.names(reply)]
        if replies and not right:
            yield context.violated("a BGAK with C flag was answered with wrong CSNs", at, *replies)
            continue
        over = _ended_by(flow, at)
        yield from answered(flow, context, at, right, "a BGAK with C flag", excused=over)


def _ended_by(flow: Flow, at: At) -> bool:
    """Whether the connection ended before an answer was due."""
    return flow.ended is not None and flow.ended <= at.time + flow.due_s


@checker("STP-CC-018")
def other_calls_are_challenged(flow: Flow, context: Context) -> Findings:
    """A BEGIN with another CSN is challenged, and the connection is kept (section 5.3)."""
    if flow.displaced_in == State.OPEN:
        later = [
            other.begins[0] for other in flow.same_ports
            if other.start > flow.start and other.begins
            and not other.iut_calls and other.iut_csn is not None
        ]  # fmt: skip
        if later:
            yield context.violated(
                "a BEGIN took the place of a connection in data transfer",
                min(later, key=lambda at: at.frame),
            )
    causes = [
        at for at in other_begins(flow) if at.stp.wellformed and at.stp.version == 1
    ]  # fmt: skip
    yield from challenged(flow, context, causes, hints(flow), "a BEGIN of another connection")


def other_begins(flow: Flow) -> list[At]:
    """BEGINs with another CSN than the peer's, in data transfer."""
    begins = [at for at in flow.heard if at.stp.type == BEGIN and at.stp.csn != flow.tester_csn]
    return [at for at in begins if flow.state_when(at) == State.OPEN]


def hints(flow: Flow) -> list[At]:
    """ENDs with R flag that name only the tag, in data transfer."""
    return [
        at for at in flow.heard_of(END) if is_hint(flow, at) and flow.state_when(at) == State.OPEN
    ]


def is_hint(flow: Flow, at: At) -> bool:
    """Whether a packet is an END that names no more than the tag of the IUT's connection."""
    stp = at.stp
    if flow.iut_csn is None or stp.type != END or not stp.flags & R:
        return False
    return stp.csn == 0 and stp.peer_csn == tag_of(flow.iut_csn)


def challenged(
    flow: Flow, context: Context, causes: Sequence[At], others: Sequence[At], what: str
) -> Findings:
    """Whether each cause was answered with a challenge, but at most one per second.

    ``others`` have to be challenged for another reason, within the same limit; ``what`` is a cause
    with its article.
    """
    questions = [
        at for at in flow.sent
        if at.stp.type == BGAK and at.stp.flags & C and not at.stp.fault
        and flow.state_when(at) == State.OPEN
    ]  # fmt: skip
    # Until then a question may be one that the confirmation has crossed.
    start = (flow.established or 0.0) + flow.due_s
    causes = [at for at in causes if at.time > start]
    for at in causes:
        time = at.time
        found = [q for q in questions if 0 <= q.time - time <= flow.due_s]
        lately = any(time - CHALLENGE_S - flow.due_s <= q.time < time for q in questions)
        ends = answers(flow, at, (END,))
        if ends and not _ended_by_others(flow, at):
            yield context.violated(f"{what} ended the connection", at, *ends)
        elif found and not flow.names(found[0]):
            yield context.violated(f"{what} was challenged with wrong CSNs", at, found[0])
        else:
            excused = lately or _ended_by(flow, at)
            yield from answered(flow, context, at, found, what, "challenged", excused=excused)
    if flow.iut_calls:
        return  # a question of STP-CC-032 may be beside
    asked = [q for q in questions if _is_cause(flow, [*causes, *others], q)]
    for first, second in pairwise(asked):
        gap = second.time - first.time
        if _is_cause(flow, causes, second) and gap < 0.95 * CHALLENGE_S - flow.timing_error:
            yield context.violated(
                f"two challenges were sent within {gap:.2f} s", first, second,
                expected="at most one per second",
            )  # fmt: skip


def _ended_by_others(flow: Flow, at: At) -> bool:
    """Whether something else may have ended the connection at that moment."""
    return flow.own_fin is not None or flow.heard_beside(at, END, ENDAK, BGAK)


def _is_cause(flow: Flow, causes: Sequence[At], question: At) -> bool:
    return any(0 <= question.time - at.time <= flow.due_s for at in causes)
