"""STP-DT: what sequence numbers, credit and the stream add up to (section 6)."""

from __future__ import annotations

from itertools import takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.reports import (
    credit_stays,
    old_stats_are_discarded,
)
from bentpipe_conformance.protocols.stp.codec import BEGIN, FIN
from bentpipe_conformance.protocols.stp.numbers import DISCARD, ECHO, MAX_CREDIT, MODULUS
from bentpipe_conformance.protocols.stp.replay.echo import returned as returned_by
from bentpipe_conformance.protocols.stp.replay.events import ReportSent, SdHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.statements import Statement

SURELY_REOPENED = 16
"""SDs of credit that must be announced, however small the buffer (STP-DT-024)."""

SURELY_READ_S = 5.0
"""Seconds after which discard has read all that has arrived."""

QUIET_S = 1.0
"""Seconds without a packet in which a standard service has read all it can."""


@checker("STP-DT-005")
def numbers_mean_one_packet(flow: Flow, context: Context) -> Findings:
    """No credit exceeds half the modulus, and numbers wrap (section 6.1)."""
    for at in flow.sent:
        stp = at.stp
        if stp.fault or stp.n_mr is None:
            continue
        n_r = 0 if stp.type == BEGIN else stp.seq if stp.n_r is None else stp.n_r
        credit = (stp.n_mr - n_r) % MODULUS
        if credit > MAX_CREDIT:
            yield context.violated(
                f"{at.name} gives a credit of {credit} SDs", at,
                expected=f"at most {MAX_CREDIT}", actual=str(credit),
            )  # fmt: skip
    if not context.prepared.unsure:
        yield from _beyond_the_wrap(flow, context)


def _beyond_the_wrap(flow: Flow, context: Context) -> Findings:
    """Whether SDs numbered from zero on, after 2^24 - 1, were accepted for what they are."""
    receiver = flow.receiver
    assert receiver is not None
    wrap = MODULUS - receiver.iss
    for sd in flow.sds_heard:
        if sd.number < wrap or sd.duplicate or sd.beyond or sd.misfit or not sd.certain:
            continue
        said = context.prepared.answer_after(sd)
        if said is None or not said.certain or not said.complete or said.list_fault():
            continue
        what = f"SD {sd.number}, {sd.number - wrap + 1} after the highest number,"
        if said.holds(sd.number):
            yield context.holds(f"{what} was accepted", sd, said)
            continue
        earlier = (
            other for other in flow.sds_heard
            if other.frame < sd.frame and not other.beyond and not other.misfit
        )  # fmt: skip
        before = [other.number for other in earlier if other.number < wrap]
        if before and all(map(said.holds, before)):
            yield context.violated(f"{what} was not accepted", sd, said)


@checker("STP-DT-007")
def nothing_moves_backwards(flow: Flow, context: Context) -> Findings:
    """Old STATs are discarded; VR(R) and VR(H) never fall (section 6.4)."""
    yield from old_stats_are_discarded(flow, context)
    yield from credit_stays(flow, context)
    before: Statement | None = None
    for said in context.prepared.known:
        poll = said.poll
        if before is not None and (said.n_r < before.n_r or said.bound < before.bound):
            which = "VR(R)" if said.n_r < before.n_r else "VR(H)"
            yield context.violated(
                f"{which} moved backwards", before, said,
                expected=f"N(R) {before.n_r} or more, and a bound of {before.bound} or more",
                actual=f"N(R) {said.n_r} and a bound of {said.bound}",
            )  # fmt: skip
            continue
        if before is not None and poll is not None and poll.n_s < before.bound:
            yield context.holds(
                f"an old POLL with N(S) {poll.n_s} left VR(H) at {said.bound}", poll, said
            )
        before = said


@checker("STP-DT-012")
def stream_is_delivered_in_order_once(flow: Flow, context: Context) -> Findings:
    """The echo service returns the octets of the stream in order, once (section 6.1)."""
    if flow.service != ECHO or flow.iut_calls or context.prepared.unsure or flow.sender is None:
        return
    receiver = flow.receiver
    assert receiver is not None
    if not receiver.certain or not flow.sds_sent:
        return
    given = bytes(receiver.reception.stream)
    data = flow.sender.data
    sent = takewhile(data.__contains__, range(flow.sender.vt_s))
    returned = b"".join(data[number] for number in sent)
    last = max(flow.sds_sent, key=lambda sd: sd.number)
    if len(returned) > len(given):
        yield context.violated(
            "the user was given more than was sent", last,
            expected=f"at most {len(given)} octets", actual=f"{len(returned)} octets",
        )  # fmt: skip
    elif returned != given[: len(returned)]:
        at = next(i for i, octet in enumerate(returned) if octet != given[i])
        yield context.violated(
            f"the user was given other octets than were sent, from offset {at} on",
            _carrier(flow, at),
        )
    elif receiver.reception.ended and last.stp.flags & FIN:
        fin = context.prepared.completion.peers_fin
        back = None if fin is None else returned_by(flow, fin)
        if back is not None and back.right and back.in_time:
            return  # what had come before the end was not returned, which STP-DT-030 judges
        yield judged(
            context, len(returned) == len(given),
            f"all {len(given)} octets were delivered in order, once",
            f"the user was given the end of the stream after {len(returned)} octets", last,
            expected=f"{len(given)} octets", actual=f"{len(returned)} octets",
        )  # fmt: skip
    elif returned and any(sd.duplicate or sd.number > sd.before.vr_r for sd in flow.sds_heard):
        # SDs arrived twice or out of order.
        yield context.holds(f"{len(returned)} octets were delivered in order, once", last)


def _carrier(flow: Flow, offset: int) -> SdSent:
    """The SD that returned the octet at an offset."""
    passed = 0
    for sd in sorted((sd for sd in flow.sds_sent if sd.new), key=lambda sd: sd.number):
        passed += len(sd.stp.data)
        if passed > offset:
            return sd
    return flow.sds_sent[-1]


@checker("STP-DT-024")
def reopened_window_is_announced(flow: Flow, context: Context) -> Findings:
    """A receiver that had closed its window announces new credit in a STAT (section 6.5)."""
    yield from _announcements(flow, context)
    # How fast another user reads is hidden.
    if flow.iut_calls or flow.service not in (DISCARD, ECHO):
        return
    closed: ReportSent | None = None
    for report in flow.reports_sent:
        poll = report.poll
        rise = 0 if closed is None else report.n_mr - closed.n_mr
        if (
            closed is not None and poll is not None and poll.frame > closed.frame
            and rise >= _surely_reopened(flow, report) and _quiet_before(flow, closed, poll.time)
        ):  # fmt: skip
            what = f"a credit of {rise} SDs was not announced until a POLL arrived"
            if not _has_fin(flow, poll.time):
                yield context.violated(what, closed, report)
            elif _fin_taken(flow, closed.frame) is not None:
                yield context.holds(f"{what}, behind a FIN", closed, report)
        closed = report if _shows_no_credit(report) else None
    yield from _no_news(flow, context)
    yield from _stays_closed(flow, context)


def _no_news(flow: Flow, context: Context) -> Findings:
    """Credit that is not announced, since an answer has shown some after the window was closed."""
    for closed, shown, report in zip(
        flow.reports_sent, flow.reports_sent[1:], flow.reports_sent[2:], strict=False
    ):
        rise, poll = report.n_mr - shown.n_mr, report.poll
        if (
            _shows_no_credit(closed) and _shows_credit(shown) and not _is_announcement(shown)
            and rise >= _surely_reopened(flow, report)
            and poll is not None and poll.frame > shown.frame
            and _quiet_before(flow, shown, poll.time)
        ):  # fmt: skip
            yield context.holds(
                f"{rise} SDs more than a report had shown were not announced", shown, report
            )


def _surely_reopened(flow: Flow, report: ReportSent) -> int:
    """A credit that has to be announced: a small one where it is that of the whole buffer.

    Discard reads at once, so that nothing is left in the buffer but above a gap.
    """
    if flow.service != DISCARD or report.elements:
        return SURELY_REOPENED
    return max(1, min(SURELY_REOPENED, _largest_credit(flow, report.frame)))


def _largest_credit(flow: Flow, until: int) -> int:
    """The most SDs that reports up to a frame have given at once."""
    return max(at.n_mr - at.n_r for at in flow.reports_sent if at.frame <= until)


def _stays_closed(flow: Flow, context: Context) -> Findings:
    """Whether a window stays closed though all that has arrived has long been read.

    Discard reads at once, and its receiver holds nothing that is missing something.
    """
    if flow.service != DISCARD:
        return
    reports = [report for report in flow.reports_sent if report.certain]
    for place, report in enumerate(reports):
        open_ = place and not _shows_no_credit(reports[place - 1])
        if open_ and report.n_mr > report.n_r >= report.vr_mr:
            yield context.holds(
                f"a credit that was used up to {report.vr_mr} rose to {report.n_mr}", report
            )
        if not _is_closed_and_empty(report):
            continue
        opened = next((other for other in reports[place:] if other.n_mr > report.n_mr), None)
        until = flow.over if opened is None else opened.time
        if until - report.time > SURELY_READ_S + flow.timing_error and not _has_fin(flow, until):
            yield context.violated(
                f"a window with nothing in it stayed closed for {until - report.time:.1f} s",
                report, *([] if opened is None else [opened]),
                expected=f"credit beyond {report.n_mr}", actual="none",
            )  # fmt: skip
            return


def _is_closed_and_empty(report: ReportSent) -> bool:
    return not report.elements and report.n_r >= report.n_mr and _shows_no_credit(report)


def _has_fin(flow: Flow, time: float) -> bool:
    """Whether the tester's FIN had come: no more credit is needed then."""
    return any(sd.stp.flags & FIN and sd.time < time for sd in flow.sds_heard)


def _fin_taken(flow: Flow, until: int) -> SdHeard | None:
    """The SD with the tester's FIN that the IUT has taken for sure, in sequence or not."""
    ends = (sd for sd in flow.sds_heard if sd.ends and sd.frame < until)
    return next((sd for sd in ends if sd.certain and not sd.beyond), None)


def _shows_no_credit(report: ReportSent) -> bool:
    return report.n_mr <= min(known.vr_h for known in report.possible)


def _shows_credit(report: ReportSent) -> bool:
    """Whether it does for sure; it may have left before what had come was read, or after."""
    return report.certain and report.n_mr > max(known.vr_h for known in report.possible)


def _is_announcement(report: ReportSent) -> bool:
    return report.is_stat and not report.stp.n_ps


def _announcements(flow: Flow, context: Context) -> Findings:
    """STATs with N(PS) 0: what they hold, and whether they leave for one reason only."""
    before: ReportSent | None = None
    for report in flow.reports_sent:
        if _is_announcement(report):
            yield _announcement(flow, context, before, report)
        elif before is not None and _is_unasked(flow, before, report):
            yield context.violated(
                f"a STAT with N(PS) {report.stp.n_ps}, which had been answered, reopened a window",
                before, report, expected="N(PS) 0", actual=f"N(PS) {report.stp.n_ps}",
            )  # fmt: skip
        before = report


def _is_unasked(flow: Flow, before: ReportSent, report: ReportSent) -> bool:
    """Whether a STAT answers nothing that has just come, and gives credit that there was not."""
    if not report.is_stat or not _shows_no_credit(before) or report.n_mr <= before.n_mr:
        return False
    same = [poll for poll in flow.polls_heard if poll.n_ps == report.stp.n_ps]
    return not any(
        abs(report.time - poll.time) <= flow.due_s and poll.frame < report.frame for poll in same
    ) and all(poll.answers and poll.answers[0] is not report for poll in same)


def _announcement(
    flow: Flow, context: Context, before: ReportSent | None, report: ReportSent
) -> Finding:
    what = "a STAT with N(PS) 0"
    where = [report] if before is None else [before, report]
    fin = _fin_taken(flow, report.frame)
    if fin is not None and report.time - fin.time > flow.due_s:
        return context.violated(
            f"{what} left though the FIN had been received", fin, report,
            expected="none: nothing can follow the FIN", actual=f"N(MR) {report.n_mr}",
        )  # fmt: skip
    if report.elements or report.stp.timestamp:
        return context.violated(f"{what} has a list or a timestamp", *where)
    if before is None or _shows_credit(before):
        return context.violated(
            f"{what} left though the last report showed credit", *where,
            expected="none before a report shows no credit", actual=f"VR(MR) {report.vr_mr}",
        )  # fmt: skip
    if report.n_mr <= report.vr_mr:
        return context.violated(
            f"{what} announces no credit", *where,
            expected=f"N(MR) above {report.vr_mr}", actual=f"N(MR) {report.n_mr}",
        )  # fmt: skip
    opened = report.n_mr - min(known.vr_h for known in report.possible)
    least = min(SURELY_REOPENED, _largest_credit(flow, report.frame - 1) // 2)
    if opened < least:
        return context.violated(
            f"{what} announces {opened} SDs", *where,
            expected=f"at least {least}", actual=str(opened),
        )  # fmt: skip
    waited = report.time - max(at.time for at in flow.passed if at.frame < report.frame)
    what = f"a reopened window was announced with {report.n_mr - report.vr_mr} SDs"
    if waited > flow.due_s:
        return context.unclear(f"{what}, {waited:.2f} s after the last packet", *where)
    return context.holds(what, *where)


def _quiet_before(flow: Flow, closed: ReportSent, time: float) -> bool:
    start = time - QUIET_S - flow.timing_error
    return closed.time < start and not any(start <= at.time < time for at in flow.passed)
