"""STP-CC: calling (section 5.1): early data, repetition by Timer_CC, and a known caller's proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.identity import hints
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ, END, C
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT, tag_of
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow, State
from bentpipe_conformance.protocols.stp.replay.round_trip import first_wait

MAX_CC = 5
"""Transmissions of a BEGIN or END (section 8)."""

EARLIEST, LATEST, TICK_S = 0.95, 1.1, 0.1
"""A timer may be coarse: the part of its time after which it may, and must, have expired."""

PATIENCE_S = 8.0
"""A silence time, with ample margin, on the links of the suite."""


def latest(wait: float) -> float:
    """Seconds after which a timer set for ``wait`` must have expired."""
    return LATEST * wait + TICK_S


@checker("STP-CC-002")
def early_data_within_early_credit(flow: Flow, context: Context) -> Findings:
    """Before its BEGIN is acknowledged, a caller sends at most four SDs (section 5.1)."""
    if not flow.iut_calls or not flow.begins:
        return
    answered = next((at.time for at in flow.bgaks if not at.outgoing), None)
    until = flow.until if answered is None else answered - flow.timing_error
    early = [sd for sd in flow.sds_sent if sd.time < until]
    numbers = {sd.number for sd in early}
    above = [sd for sd in early if sd.number >= EARLY_CREDIT]
    if above or len(numbers) > EARLY_CREDIT:
        yield context.violated(
            f"{len(numbers)} SDs, up to number {max(numbers)}, were sent before the BEGIN was "
            "acknowledged",
            *(above or early)[:1],
            expected=f"at most {EARLY_CREDIT}, numbered 0 to {EARLY_CREDIT - 1}",
            actual=f"{len(numbers)}",
        )  # fmt: skip
    elif until - flow.begins[0].time >= TICK_S:
        yield context.holds(
            f"{len(numbers)} SDs were sent before the BEGIN was acknowledged", flow.begins[0]
        )


@checker("STP-CC-014")
def repeated_begin_is_equal(flow: Flow, context: Context) -> Findings:
    """A repeated BEGIN equals the first in all fields, options and data (section 5.1)."""
    sent = [at for at in flow.begins if at.outgoing]
    for again in sent[1:]:
        first = sent[0]
        yield judged(
            context, first.stp.octets == again.stp.octets,
            "a BEGIN was repeated as it was", "a BEGIN was repeated with other contents",
            first, again,
            expected=first.stp.octets.hex(), actual=again.stp.octets.hex(),
        )  # fmt: skip


@checker("STP-CC-016")
def begin_is_repeated_by_timer(flow: Flow, context: Context) -> Findings:
    """An unanswered BEGIN is repeated by Timer_CC, an answered one is not (section 5.1)."""
    if not flow.iut_calls:
        return
    sent = [at for at in flow.begins if at.outgoing]
    ended = [] if flow.ended is None else [flow.ended]
    over = [at.time for at in flow.heard if at.stp.type in (BEGIN, BGAK, BGREJ, END)]
    yield from repetitions(flow, context, sent, min([*over, *ended], default=None))
    done = min([*ended, *([] if flow.established is None else [flow.established])], default=None)
    answer = next((at for at in flow.passed if at.time == done), None)
    if answer is not None:
        yield from left_alone(flow, context, sent, answer)


def repetitions(
    flow: Flow, context: Context, sent: Sequence[At], answered: float | None
) -> Findings:
    """Whether a BEGIN or END is repeated when Timer_CC expires, and not too often.

    The wait may have ended at ``answered``, None if nothing arrived that could end it.
    """
    until = flow.until if answered is None else answered
    # One that leaves at the time of the answer is an answer to it.
    waiting = [at for at in sent if answered is None or at.time < answered]
    wait = first_wait(context.ics)
    for place, at in enumerate(waiting):
        what = waiting[0].name
        if place >= MAX_CC:
            yield context.violated(f"{what} was sent {place + 1} times", at)
            return
        most = latest(wait) + flow.timing_error
        later = waiting[place + 1] if place + 1 < len(waiting) else None
        gap = (later.time if later else until) - at.time
        if later is not None:
            yield judged(
                context, EARLIEST * wait - flow.timing_error <= gap <= most,
                f"{what} was repeated after {gap:.2f} s", f"{what} was repeated after {gap:.2f} s",
                at, later,
                expected=f"{wait:g} s", actual=f"{gap:.2f} s",
            )  # fmt: skip
        elif gap > most and place + 1 < MAX_CC:
            yield context.violated(
                f"{what} was not repeated within {gap:.2f} s", at, expected=f"{wait:g} s"
            )
        wait *= 2


def left_alone(flow: Flow, context: Context, sent: Sequence[At], answer: At) -> Findings:
    """Whether a BEGIN or END was not sent again once ``answer`` had ended the wait."""
    if not sent:
        return
    late = [at for at in sent if at.time > answer.time + flow.due_s]
    due = sent[-1].time + latest(first_wait(context.ics) * 2.0 ** (len(sent) - 1))
    if late:
        yield context.violated(f"{late[0].name} was sent again after its answer", answer, late[0])
    elif len(sent) < MAX_CC and flow.until > due + flow.timing_error:
        yield context.holds(f"{sent[0].name} was not sent again after its answer", sent[-1], answer)


def _opening_bgak(flow: Flow) -> At | None:
    """The BGAK that opened the IUT's own call."""
    heard = (at for at in flow.bgaks if not at.outgoing and at.time == flow.established)
    opened = next(heard, None)
    calls = flow.iut_calls and opened is not None and flow.state_when(opened) == State.CALLING
    return opened if calls else None


@checker("STP-CC-030")
def caller_makes_sure_that_it_is_heard(flow: Flow, context: Context) -> Findings:
    """After the BGAK a caller polls until something of the peer has arrived (section 5.1)."""
    opened = _opening_bgak(flow)
    if opened is None:
        return
    shown = (at.time for at in flow.heard if at.stp.type in TAGGED and at.frame > opened.frame)
    until = min(flow.over, next(shown, flow.over))
    # Whether it has measured the round-trip time is hidden, so the initial interval is granted.
    interval = first_wait(context.ics)
    due = opened.time + latest(interval) + flow.timing_error
    polls = [poll for poll in flow.polls_sent if poll.time >= opened.time - flow.timing_error]
    if polls and polls[0].time <= due:
        yield context.holds("a POLL followed the BGAK", opened, polls[0])
    elif until > due:
        yield context.violated(
            "no POLL followed the BGAK in time", opened, *polls[:1],
            expected=f"within {interval:g} s",
        )  # fmt: skip
        return
    # Each silence at most doubles the time between POLLs (STP-PL-007).
    for place, poll in enumerate(polls):
        if poll.time > until:
            return
        patience = PATIENCE_S * 2.0**place + flow.timing_error
        later = polls[place + 1].time if place + 1 < len(polls) else until
        if min(later, until) - poll.time > patience:
            yield context.violated(
                f"no POLL followed within {patience:.0f} s, though nothing of the peer had arrived",
                poll,
            )
            return


@dataclass(frozen=True, slots=True)
class Proof:
    """How a caller that was not asked for confirmation proved its address.

    Attributes:
        opened: the BGAK that opened the connection.
        steps: packets of the peer, and the caller's questions (which are outgoing), in order.
        accepted: the BGAK after which nothing more has to be proven, None if none came.
        perhaps: the same if those count that came just before the first question.
    """

    opened: At
    steps: tuple[At, ...]
    accepted: At | None
    perhaps: At | None


def proof(flow: Flow) -> Proof | None:
    """The proof of a connection; None where none is required, or the packets do not show it."""
    opened = _opening_bgak(flow)
    if opened is None or opened.stp.flags & C:
        return None
    steps: list[At] = []
    for at in flow.passed:
        if at.frame <= opened.frame:
            continue
        if flow.state_when(at) != State.OPEN:
            break
        asks = at.outgoing and bool(at.stp.flags & C) and _is_bgak(flow, at)
        if asks or (not at.outgoing and _is_of_the_peer(flow, at)):
            steps.append(at)
    asked = next((at for at in steps if at.outgoing), None)
    if asked is None:
        return Proof(opened, tuple(steps), None, None)
    heard = [at for at in steps if not at.outgoing]
    answers = [at for at in heard if at.stp.type == BGAK and not at.stp.flags & C]
    # Each BEGIN sent may draw a BGAK that does not answer a question.
    last = sum(at.outgoing for at in flow.begins) - 1
    surely = [at for at in answers if at.frame > asked.frame]
    perhaps = [at for at in answers if at.time >= asked.time - flow.due_s]
    return Proof(
        opened, tuple(steps),
        surely[last] if len(surely) > last else None,
        perhaps[last] if len(perhaps) > last else None,
    )  # fmt: skip


def _is_bgak(flow: Flow, at: At) -> bool:
    return at.stp.type == BGAK and at.stp.wellformed and flow.names(at)


def _is_of_the_peer(flow: Flow, at: At) -> bool:
    """Whether it is a packet of the peer in the sense of STP-CC-032."""
    if at.stp.type in TAGGED:
        return at.stp.wellformed and at.stp.tag == tag_of(flow.tester_csn or 0)
    return _is_bgak(flow, at)


@checker("STP-CC-032")
def known_caller_proves_its_address(flow: Flow, context: Context) -> Findings:
    """A caller accepted at once asks by Timer_CC until it has been answered (section 5.1)."""
    found = proof(flow)
    # A challenge looks like a question.
    if found is None or hints(flow) or any(at.stp.type == BEGIN for at in flow.heard):
        return
    initial = first_wait(context.ics)
    error = flow.timing_error
    last, wait = found.opened, initial
    before = 0.0  # a question may leave before what has just arrived is processed
    for at in found.steps:
        waited = at.time - last.time
        if found.accepted is not None and at.frame > found.accepted.frame:
            if at.outgoing and at.time - found.accepted.time > flow.due_s:
                yield context.violated(
                    "a question was asked though one had been answered", found.accepted, at
                )
            continue
        if found.perhaps is not None and at.frame > found.perhaps.frame:
            last = at if not at.outgoing else last
            continue
        if waited > latest(wait) + error:
            yield _missed(context, wait, last, at)
            return
        if not at.outgoing:
            unread = not last.outgoing and waited <= flow.due_s
            schedule = last.time + EARLIEST * wait
            before = min(before, schedule) if unread else schedule
            last, wait = at, initial
            continue
        crossed = waited <= flow.due_s and at.time >= before - error
        if not crossed:
            yield judged(
                context, waited >= EARLIEST * wait - error,
                f"a question was asked after {waited:.2f} s",
                f"a question was asked {waited:.2f} s after the last packet", last, at,
                expected=f"after {wait:g} s", actual=f"{waited:.2f} s",
            )  # fmt: skip
        last, wait = at, wait if crossed else 2 * wait
    if found.accepted is not None:
        if flow.over - found.accepted.time > latest(initial):
            yield context.holds("no question followed the answer", found.accepted)
    elif found.perhaps is None and flow.over - last.time > latest(wait) + error:
        yield _missed(context, wait, last)


def _missed(context: Context, wait: float, *where: At) -> Finding:
    return context.violated(
        f"no question was asked for {latest(wait):.1f} s without a packet of the peer", *where,
        expected=f"a BGAK with C flag after {wait:g} s", actual="none",
    )  # fmt: skip


def unanswered_questions(flow: Flow) -> list[tuple[float, float]]:
    """From the first question without a packet of the peer to the next one, or the end."""
    found = proof(flow)
    if found is None:
        return []
    waits = []
    asked: float | None = None
    for at in found.steps:
        if at.outgoing:
            asked = at.time if asked is None else asked
        elif asked is not None:
            waits.append((asked, at.time))
            asked = None
        if at is found.perhaps:
            return waits
    return waits if asked is None else [*waits, (asked, flow.over)]
