"""STP-DT: which STATs and USTATs count, and which are discarded (section 6.4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import islice

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, transfer
from bentpipe_conformance.protocols.stp.checkers.answers import answers
from bentpipe_conformance.protocols.stp.checkers.sending import named_only_by
from bentpipe_conformance.protocols.stp.codec import BGAK, END, A
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, NO_ANSWER
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    PollSent,
    ReportHeard,
    SdSent,
    runs,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow

OPENED_S, PACED_RTTS = 2.0, 3.0
"""Seconds and round trips after which a sender with nothing in flight has used new credit."""


@checker("STP-DT-023", of=transfer)
def invalid_reports_are_discarded(flow: Flow, context: Context) -> Findings:
    """A report with numbers out of range or a malformed list is discarded (section 6.4)."""
    yield from _discarded(flow, context, lambda report: not is_old(report))


def is_old(report: ReportHeard) -> bool:
    """Whether a report is discarded only because a newer STAT has been seen (STP-DT-007)."""
    return report.fault.startswith("N(PS)") and "VT(PA)" in report.fault


def old_stats_are_discarded(flow: Flow, context: Context) -> Findings:
    """STATs that a newer one has overtaken (the sender's half of STP-DT-007)."""
    yield from _discarded(flow, context, is_old)


@checker("STP-DT-029", of=transfer)
def valid_reports_count(flow: Flow, context: Context) -> Findings:
    """The credit of every valid report counts, whatever else it says (section 6.4)."""
    yield from _use_of_credit(flow, context, lambda report: report.n_mr >= report.vt_ms)
    unheeded = context.prepared.retransmissions(context.ics).unheeded
    for report, item in {item.report: item for item in reversed(unheeded)}.items():
        yield context.violated(
            f"{report.name} had no effect: the SD {item.number} that it reports missing was not "
            "sent again, and the peer was given up",
            report,
        )


def credit_stays(flow: Flow, context: Context) -> Findings:
    """Reports with less credit than one before (the sender's half of STP-DT-007)."""
    yield from _use_of_credit(flow, context, lambda report: report.n_mr < report.vt_ms)


def _use_of_credit(flow: Flow, context: Context, mine: Callable[[ReportHeard], bool]) -> Findings:
    if flow.service != CHARGEN or flow.iut_calls or flow.own_fin is not None:
        return  # only chargen is sure to have data
    trips = context.prepared.round_trips(context.ics)
    heard, narrow = flow.established or 0.0, False
    for report in flow.reports_heard:
        if report.fault or report.stp.type == BGAK:
            continue
        # Two silences, and losses, leave a window of one SD, which may be in flight.
        quiet, heard = report.time - heard, report.time
        narrow = narrow or quiet >= trips.silence(report.time)[0] or len(report.wanted) > 1
        closed = report.credit <= report.vt_s
        if report.vt_s - report.n_r > (0 if narrow else 1) or closed or not mine(report):
            continue
        # Pacing may hold it back, at one SMSS by 1.1 round trips.
        due = report.time + OPENED_S + PACED_RTTS * trips.longest + flow.timing_error
        first = bisect_right(flow.sds_sent, report.frame, key=lambda item: item.frame)
        sd = next((sd for sd in islice(flow.sds_sent, first, None) if sd.new), None)
        if sd is not None and sd.time <= due:
            if report.vt_ms <= report.vt_s or report.n_mr < report.vt_ms:
                yield context.holds(f"the credit that {report.name} left was used", report, sd)
        elif flow.over > due and not any(
            not later.fault and report.frame < later.frame and later.time <= due
            for later in flow.reports_heard
        ):
            yield context.violated(
                f"the credit that {report.name} left was not used", report,
                expected=f"an SD below {report.credit}", actual="none",
            )  # fmt: skip


def _discarded(flow: Flow, context: Context, mine: Callable[[ReportHeard], bool]) -> Findings:
    """Faulty reports: whether they gave credit, made SDs be sent again, or ended anything."""
    faulty = [report for report in flow.reports_heard if report.fault and report.stp.type != BGAK]
    if not any(map(mine, faulty)):
        return
    # If reports to be discarded for different reasons can be the cause, nothing is claimed.
    again = {
        item.named[-1].frame: item.sd
        for item in reversed(context.prepared.retransmissions(context.ics).unasked)
        if named_only_by(item, lambda report: bool(report.fault) and mine(report))
    }
    for report in filter(mine, faulty):
        what = f"{report.name} to be discarded ({report.fault})"
        repeated = again.get(report.frame)
        credited = _credited_by(flow, report, faulty)
        # One with reason 7 leaves when the peer is given up, and is STP-PL-008's.
        ends = [
            at for at in answers(flow, report, (END,))
            if at.stp.flags & A and at.stp.reason != NO_ANSWER
        ]  # fmt: skip
        aborted = bool(ends) and flow.ended == ends[0].time
        if repeated is not None:
            yield context.violated(
                f"SD {repeated.number} was sent again for {what}", report, repeated
            )
        elif credited is not None:
            yield context.violated(
                f"SD {credited.number} was sent on the credit of {what}", report, credited
            )
        elif aborted and flow.served:
            yield context.violated(f"the connection was aborted at {what}", report, *ends)
        elif aborted:
            continue
        elif (seen := _goes_on(flow, report)) is not None:
            yield context.holds(f"{what} changed nothing", report, seen)


def _credited_by(flow: Flow, report: ReportHeard, faulty: list[ReportHeard]) -> SdSent | None:
    """A new SD that no valid report permitted, and this one, the last before it, would have."""
    for sd in flow.sds_sent:
        if not sd.new or sd.number < sd.vt_ms:
            continue
        giving = [item for item in faulty if item.frame < sd.frame and sd.number < item.n_mr]
        # A STAT may have to be discarded for two reasons; which one was ignored is unknown.
        if giving and giving[-1] is report and len({is_old(item) for item in giving}) == 1:
            return sd
    return None


@remembered
def _numbers_sent(flow: Flow) -> list[int]:
    return sorted({sd.number for sd in flow.sds_sent})


def _goes_on(flow: Flow, report: ReportHeard) -> SdSent | PollSent | None:
    """What the IUT sent once it must have read the report, which could have shown a change."""
    sent = _numbers_sent(flow)
    missing = runs(report.elements, 0)
    named = any(bisect_left(sent, left) < bisect_left(sent, right) for left, right in missing)
    moved = report.n_r > report.vt_a or named
    if not moved and report.n_mr <= report.vt_ms and not report.fault.startswith("N(R)"):
        return None
    first = bisect_right(flow.events, report.time + DUE_S, key=lambda event: event.time)
    later = islice(flow.events, first, None)
    return next((event for event in later if isinstance(event, SdSent | PollSent)), None)
