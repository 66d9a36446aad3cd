"""STP-CC: calling (section 5.1): early data, repetition by Timer_CC."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.codec import BEGIN, END, FIN, USTAT
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT, NO_ANSWER
from bentpipe_conformance.protocols.stp.replay.events import At, ReportHeard
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State
from bentpipe_conformance.protocols.stp.replay.round_trip import first_wait

MAX_CC = 5
"""Transmissions of a BEGIN or END (section 8)."""

POLL_S = 0.02
"""Seconds within which a caller whose SDs are unacknowledged polls (STP-CC-042)."""

EARLIEST, LATEST, TICK_S = 0.95, 1.1, 0.1
"""A timer may be coarse: the part of its time after which it may, and must, have expired."""


def latest(wait: float) -> float:
    """Seconds after which a timer set for ``wait`` must have expired."""
    return LATEST * wait + TICK_S


def own_call(flow: Flow) -> At | None:
    """The first BEGIN of the IUT's own call."""
    begins = (at for at in flow.begins if at.outgoing)
    return next(begins, None) if flow.iut_calls else None


@checker("STP-CC-047")
def calls_begin_with_a_begin(flow: Flow, context: Context) -> Findings:
    """An endpoint whose user calls sends a BEGIN (section 5.1); a script says where none came."""
    if flow.iut_calls and flow.begins:
        yield context.holds("the user's call began with a BEGIN", flow.begins[0])


@checker("STP-CC-002")
def early_data_within_early_credit(flow: Flow, context: Context) -> Findings:
    """Before its BEGIN is acknowledged, a caller sends at most four SDs (section 5.1)."""
    begin = own_call(flow)
    if begin is None:
        return
    until = flow.until if flow.established is None else flow.established - flow.timing_error
    early = [sd for sd in flow.sds_sent if sd.time < until]
    numbers = {sd.number for sd in early}
    above = [sd for sd in early if sd.number >= EARLY_CREDIT]
    behind = [sd for sd in early if sd.stp.type != BEGIN]
    if behind and begin.stp.cookie is None:
        yield context.violated(
            f"SD {behind[0].number} was sent behind a BEGIN without a cookie", begin, behind[0]
        )
    elif above or len(numbers) > EARLY_CREDIT:
        yield context.violated(
            f"{len(numbers)} SDs, up to number {max(numbers)}, were sent before the BEGIN was "
            "acknowledged",
            *(above or early)[:1],
            expected=f"at most {EARLY_CREDIT}, numbered 0 to {EARLY_CREDIT - 1}",
            actual=f"{len(numbers)}",
        )  # fmt: skip
    elif min(until, flow.over) - begin.time >= TICK_S:
        yield context.holds(
            f"{len(numbers)} SDs were sent before the BEGIN was acknowledged", begin
        )


@checker("STP-CC-034")
def begin_without_a_cookie_is_empty(flow: Flow, context: Context) -> Findings:
    """A BEGIN without Cookie option carries neither data nor FIN (section 5.1)."""
    begin = own_call(flow)
    if begin is None or begin.stp.cookie is not None or begin.stp.fault:
        return
    carries = len(begin.stp.data) or bool(begin.stp.flags & FIN)
    yield judged(
        context, not carries,
        "a BEGIN without a cookie carries nothing",
        "a BEGIN without a cookie carries data or the FIN flag", begin,
        expected="no data, no FIN flag", actual=f"{len(begin.stp.data)} octets",
    )  # fmt: skip


@checker("STP-CC-014")
def repeated_begin_is_equal(flow: Flow, context: Context) -> Findings:
    """A repeated BEGIN equals the first, and its data counts as sent once (section 5.1)."""
    sent = [at for at in flow.begins if at.outgoing]
    for again in sent[1:]:
        first = sent[0]
        yield judged(
            context, first.stp.octets == again.stp.octets,
            "a BEGIN was repeated as it was", "a BEGIN was repeated with other contents",
            first, again,
            expected=first.stp.octets.hex(), actual=again.stp.octets.hex(),
        )  # fmt: skip
    if len(sent) > 1:
        yield from _counts_once(flow, context, sent[-1])


def _counts_once(flow: Flow, context: Context, begin: At) -> Findings:
    """Whether the data of a repeated BEGIN counts as sent once where a USTAT names it."""
    walked = context.prepared.retransmissions(context.ics)
    neglected = {item.report.frame: item for item in walked.neglected if not item.number}
    for ustat in _ustats(flow):
        if 0 not in ustat.wanted:
            continue
        again = next((sd for sd in ustat.responses if not sd.number), None)
        if again is not None:
            yield context.holds(
                "the data of a repeated BEGIN was sent again for a USTAT", begin, ustat, again
            )
        # Who heeds no USTAT at all does not count wrongly.
        elif ustat.frame in neglected and any(
            item.responses for other in flow.neighbours for item in _ustats(other)
        ):
            since = neglected[ustat.frame]
            yield context.violated(
                "the data of a repeated BEGIN, which a USTAT reported missing, was not sent again "
                f"in {since.until - since.since:.1f} s with nothing in flight",
                ustat, expected="an SD with that data, as after a BEGIN sent once", actual="none",
            )  # fmt: skip


def _ustats(flow: Flow) -> list[ReportHeard]:
    return [item for item in flow.reports_heard if item.stp.type == USTAT and not item.fault]


@checker("STP-CC-016")
def begin_is_repeated_by_timer(flow: Flow, context: Context) -> Findings:
    """An unanswered BEGIN is repeated by Timer_CC, an answered one is not (section 5.1)."""
    if not flow.iut_calls:
        return
    sent = [at for at in flow.begins if at.outgoing]
    ends = [time for time in (flow.established, flow.ended) if time is not None]
    # Whether another BEGIN could take the place of this one is judged by STP-CC-037.
    ends += [other.begins[0].time for other in later_calls(flow)]
    done = min(ends, default=None)
    yield from repetitions(flow, context, sent, done)
    answer = next((at for at in flow.heard if at.time == done), None)
    if answer is not None:
        yield from left_alone(flow, context, sent, answer)
    over = next((at for at in flow.sent if at.stp.type == END and at.stp.csn == flow.iut_csn), None)
    again = [at for at in sent if over is not None and at.frame > over.frame]
    if over is not None and again:
        yield context.violated("a BEGIN was sent after the END of its call", over, again[0])
    given_up = next(
        (at for at in flow.sent if at.stp.type == END and at.stp.reason == NO_ANSWER), None
    )
    if given_up is not None and flow.established is None and len(sent) < MAX_CC:
        yield context.violated(
            "a call was given up before its BEGIN had been sent often enough", *sent[-1:], given_up,
            expected=f"{MAX_CC} BEGINs", actual=f"{len(sent)}",
        )  # fmt: skip


def later_calls(flow: Flow) -> list[Flow]:
    """The IUT's later calls from and to the same ports."""
    return [
        other for other in flow.same_ports
        if other.iut_calls and other.begins and other.start > flow.start
    ]  # fmt: skip


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


@checker("STP-CC-042")
def callers_do_not_poll(flow: Flow, context: Context) -> Findings:
    """No POLL leaves in state 2; one follows the BGAK if SDs are unacknowledged (section 5.1)."""
    begin = own_call(flow)
    if begin is None:
        return
    early = [poll for poll in flow.polls_sent if flow.state_when(poll) == State.CALLING]
    if early:
        yield context.violated("a POLL was sent before the BEGIN was answered", begin, early[0])
        return
    if flow.established is None or flow.sender is None:
        if flow.over - begin.time >= TICK_S:
            yield context.holds("no POLL was sent before the BEGIN was answered", begin)
        return
    bgak = next(at for at in flow.bgaks if at.time == flow.established and not at.outgoing)
    acknowledged = next(
        (report for report in flow.reports_heard if report.frame == bgak.frame), None
    )
    sent = {sd.number for sd in flow.sds_sent if sd.frame < bgak.frame}
    left = acknowledged is not None and any(number >= acknowledged.n_r for number in sent)
    due = flow.established + POLL_S + flow.timing_error
    if not left or flow.over <= due:
        if flow.established - begin.time >= TICK_S:
            yield context.holds("no POLL was sent before the BEGIN was answered", begin)
        return
    polls = [poll for poll in flow.polls_sent if poll.frame > bgak.frame]
    yield judged(
        context, bool(polls) and polls[0].time <= due,
        "a POLL followed the BGAK at once", "no POLL followed the BGAK at once",
        bgak, *polls[:1],
        expected=f"within {POLL_S:g} s",
    )  # fmt: skip
