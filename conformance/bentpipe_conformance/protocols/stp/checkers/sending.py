"""STP-DT: data transfer (section 6), the IUT as a sender."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged, transfer
from bentpipe_conformance.protocols.stp.checkers.congestion import DEPTH, SLOWEST_GAIN, rate_gap
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, FIN
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    ReportHeard,
    SdSent,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.retransmission import Unasked
from bentpipe_conformance.protocols.stp.replay.window import initial_flight, smss

SENT_S, PACED = 0.1, 1.25
"""Seconds, and the factor, by which retransmissions may leave later than window and pacing say."""

_AT_ONCE = 2
"""SDs that leave at once from which on a window shows."""


@checker("STP-DT-003", of=transfer)
def stat_retransmits_what_is_older_than_its_poll(flow: Flow, context: Context) -> Findings:
    """A STAT retransmits a missing SD last sent before its POLL, and no other (section 6.4)."""
    yield from _by_report(
        flow, context, lambda report: report.is_stat and not report.fault,
        "last sent after the POLL that the STAT answers",
    )  # fmt: skip


@checker("STP-DT-014", of=transfer)
def ustat_retransmits_what_was_sent_once(flow: Flow, context: Context) -> Findings:
    """A USTAT retransmits a missing SD sent exactly once, and no other (section 6.5)."""
    yield from _by_report(
        flow, context,
        lambda report: not report.is_stat and report.stp.type != BGAK and not report.fault,
        "sent more than once before the USTAT",
    )  # fmt: skip


def _by_report(
    flow: Flow, context: Context, mine: Callable[[ReportHeard], bool], spared_for: str
) -> Findings:
    """Whether reports of one kind made the IUT send what they had to, and nothing else."""
    found = context.prepared.retransmissions(context.ics)
    begins = sum(sd.stp.type == BEGIN for sd in flow.sds_sent)
    for item in found.unasked:
        sd = item.sd
        # A BEGIN's repetitions may or may not count as transmissions of its data.
        if named_only_by(item, mine) and not (sd.number == 0 and begins > 1):
            report = item.named[-1]
            yield context.violated(
                f"SD {sd.number} was sent again for {report.name}, though it was {spared_for}",
                report, sd,
            )  # fmt: skip
    for neglect in found.neglected:
        if mine(neglect.report):
            yield context.violated(
                f"SD {neglect.number}, reported missing by {neglect.report.name}, was not "
                f"sent again in {neglect.until - neglect.since:.1f} s with nothing in flight",
                neglect.report,
            )
    for late in found.deferred:
        if mine(late.report):
            yield context.violated(
                f"SD {late.sd.number}, reported missing by {late.report.name}, was sent again only "
                f"when {late.again.name} had reported it as well",
                late.report, late.again, late.sd,
            )  # fmt: skip
    for report, sd in _without_effect(context):
        if mine(report):
            yield context.violated(
                f"SD {report.wanted[0]}, reported missing by {report.name}, was not sent again, "
                f"nor was the window reduced when SD {sd.number} left",
                report, sd,
            )  # fmt: skip
    named = {report for item in found.unasked for report in item.named}
    for report in filter(mine, flow.reports_heard):
        if report.responses:
            first = report.responses[0]
            yield context.holds(
                f"SD {first.number} was sent again for {report.name}", report, first
            )
        elif report.spared and flow.until > report.time + DUE_S and report not in named:
            number = report.spared[0]
            yield context.holds(f"SD {number} was not sent again for {report.name}", report)


def _without_effect(context: Context) -> Iterator[tuple[ReportHeard, SdSent]]:
    """Reports of a loss that made nothing be sent again, and the first SD for a larger window."""
    seen: set[ReportHeard] = set()
    for item in context.prepared.bounded(context.ics):
        report, sd = item.reduction, item.sd
        if report is None or item.fits or not (item.certain and sd.new) or report in seen:
            continue
        seen.add(report)
        if item.phase == "reduced" and not any(it.frame < sd.frame for it in report.responses):
            yield report, sd


def named_only_by(item: Unasked, mine: Callable[[ReportHeard], bool]) -> bool:
    """Whether all reports that can be the cause are of one kind; else two explanations exist."""
    return item.arrived is None and bool(item.named) and all(map(mine, item.named))


@checker("STP-DT-027", of=transfer)
def only_reports_retransmit(flow: Flow, context: Context) -> Findings:
    """An SD is sent again only for a report that named it since it was last sent (section 6.4)."""
    again = context.prepared.retransmissions(context.ics)
    unasked = {item.sd.frame: item for item in again.unasked}
    for sd in flow.sds_sent:
        item = unasked.get(sd.frame)
        if item is not None and (item.arrived is not None or not item.named):
            why = "no report had named it" if item.arrived is None else "it was reported as arrived"
            yield context.violated(f"SD {sd.number} was sent again, though {why}", sd)
        elif sd.awaited is not None:
            yield context.holds(f"SD {sd.number} was sent again for a report", sd.awaited, sd)


@checker("STP-DT-009", of=transfer)
def retransmissions_go_first(flow: Flow, context: Context) -> Findings:
    """SDs that await retransmission are sent before any new SD (section 6.1)."""
    since: dict[int, ReportHeard] = {}
    again: SdSent | None = None
    for event in flow.events:
        if isinstance(event, ReportHeard):
            since |= dict.fromkeys(event.wanted, event)
        elif isinstance(event, SdSent) and not event.new:
            again = event if event.awaited is not None else again
        elif isinstance(event, SdSent):
            # A report that has just arrived may not have been read yet.
            late = [n for n in event.queue if event.time - since[n].time > flow.due_s]
            if late:
                yield context.violated(
                    f"SD {event.number} was sent for the first time while {late[0]} awaited "
                    "retransmission",
                    since[late[0]], event,
                )  # fmt: skip
            elif again is not None and not event.queue:
                yield context.holds(
                    f"SD {again.number} was sent again before SD {event.number} was sent first",
                    again, event,
                )  # fmt: skip
                again = None
    yield from _held_back(flow, context)


def _held_back(flow: Flow, context: Context) -> Findings:
    """Whether what a report made await retransmission left as soon as the window permitted."""
    trips = context.prepared.round_trips(context.ics)
    windows = context.prepared.least_windows(context.ics)
    waiting = 0
    for event in flow.events:
        if isinstance(event, SdSent):
            waiting = max(0, waiting - (not event.new))
        elif isinstance(event, ReportHeard) and event in windows:
            fresh, waiting = not waiting, waiting + len(event.wanted)
            bounds = trips.bounds(event.time)
            if not fresh or not event.wanted or bounds is None:
                continue
            yield from _leave_in_time(flow, context, event, windows[event], bounds[1])


def _paced_before(flow: Flow, report: ReportHeard, srtt: float) -> float:
    """Octets that had left so shortly before a report that pacing may still count them."""
    rate = SLOWEST_GAIN * report.flight / (PACED * srtt)
    first = bisect_left(flow.sds_sent, report.time - srtt, key=lambda sd: sd.time)
    last = bisect_left(flow.sds_sent, report.frame, key=lambda sd: sd.frame)
    filled, at = 0.0, 0.0
    for sd in flow.sds_sent[first:last]:
        filled, at = max(0.0, filled - rate * (sd.time - at)) + len(sd.stp.data), sd.time
    return min(max(0.0, filled - rate * (report.time - at)), DEPTH * smss(flow))


def _leave_in_time(
    flow: Flow, context: Context, report: ReportHeard, least: float, srtt: float
) -> Findings:
    size = smss(flow)
    flight = report.flight_after
    count = sum(flight + (place + 1) * size <= least for place in range(len(report.wanted)))
    if count < _AT_ONCE or not report.responses:
        return
    # Pacing at the rate that the window demands, with nothing saved up.
    apart = PACED * srtt * size / (SLOWEST_GAIN * least) + rate_gap(flow, context)
    due = (count - 1 + _paced_before(flow, report, srtt) / size) * apart + SENT_S
    until = report.responses[0].time + due + flow.timing_error
    later = [item for item in flow.reports_heard if item.frame > report.frame]
    if flow.over < until or any(item.time < until for item in later):
        return
    sent = [sd for sd in report.responses if sd.time <= until]
    yield judged(
        context, len(sent) >= count,
        f"{count} SDs were sent again within {due:.2f} s for {report.name}",
        f"{len(sent)} of {count} SDs were sent again within {due:.2f} s for {report.name}",
        report, *sent[-1:],
        expected=f"{count}, for which window and pacing have room", actual=str(len(sent)),
    )  # fmt: skip


@checker("STP-DT-010", of=transfer)
def what_has_not_arrived_is_kept(flow: Flow, context: Context) -> Findings:
    """An SD is kept, and can be sent again, until it is reported as arrived (section 6.1)."""
    found = context.prepared.retransmissions(context.ics)
    for neglect in found.neglected:
        # A USTAT may have been overlooked, a STAT that asks for the SD may not.
        asking = [
            report for report in flow.reports_heard
            if report.is_stat and not report.fault and report.misses(neglect.number)
            and report.time <= neglect.since and report.frame >= neglect.report.frame
        ]  # fmt: skip
        # Where STATs have never had an effect, these may have had none either.
        heeded = (
            neglect.transmissions > 1
            or any(item.responses for item in flow.reports_heard)
            or _taken_for_acknowledged(flow, context, neglect.number)
        )
        if asking and heeded and neglect.number in found.never:
            yield context.violated(
                f"SD {neglect.number}, sent {neglect.transmissions} times and reported missing, "
                "was never sent again",
                neglect.report,
            )
    for sd in flow.sds_sent:
        if sd.transmission > 2 and sd.awaited is not None:
            yield context.holds(f"SD {sd.number} was sent {sd.transmission} times", sd)


def _taken_for_acknowledged(flow: Flow, context: Context, number: int) -> bool:
    """Whether an early SD must have been taken for acknowledged by the BGAK.

    More was in flight then than the initial window permits, but for the early SDs.
    """
    opened = math.inf if flow.established is None else flow.established
    early = [sd for sd in flow.sds_sent if sd.time < opened and sd.stp.type != BEGIN]
    declared = int(context.ics.get("initial_window_sds", 4)) * smss(flow)
    excess = initial_flight(flow) - declared
    return number in {sd.number for sd in early} and 0 < excess <= sum(sd.octets for sd in early)


@checker("STP-DT-011", of=transfer)
def credit_holds(flow: Flow, context: Context) -> Findings:
    """No new SD is numbered at or above VT(MS) (section 6.1)."""
    # What a report to be discarded gave is a matter of that report.
    least = 0
    for event in flow.events:
        if isinstance(event, ReportHeard) and event.fault:
            least = max(least, event.n_mr)
        if not isinstance(event, SdSent) or not event.new:
            continue
        if event.number >= max(event.vt_ms, least):
            yield context.violated(
                f"SD {event.number} was sent with a credit up to {event.vt_ms}", event,
                expected=f"SDs below {event.vt_ms}", actual=f"SD {event.number}",
            )  # fmt: skip
        elif event.number == event.vt_ms - 1:
            yield context.holds(f"SD {event.number} was the last that the credit permits", event)


@checker("STP-DT-015", of=transfer)
def retransmission_is_the_same(flow: Flow, context: Context) -> Findings:
    """A retransmission carries the data and FIN flag of the first transmission (section 6.1)."""
    first: dict[int, SdSent] = {}
    for sd in flow.sds_sent:
        original = first.setdefault(sd.number, sd)
        if original is sd:
            continue
        if sd.stp.data != original.stp.data:
            yield context.violated(
                f"SD {sd.number} was sent again with other data", original, sd,
                expected=f"the {len(original.stp.data)} octets of the first transmission",
                actual=f"{len(sd.stp.data)} octets",
            )  # fmt: skip
        else:
            yield judged(
                context, sd.stp.flags & FIN == original.stp.flags & FIN,
                f"SD {sd.number} was sent again as it was",
                f"SD {sd.number} was sent again with another FIN flag", original, sd,
            )  # fmt: skip


@checker("STP-DT-016", of=transfer)
def new_sds_are_numbered_one_by_one(flow: Flow, context: Context) -> Findings:
    """New SDs are numbered from ISS, each one higher than the one before (section 6.1)."""
    for sd in flow.sds_sent:
        if sd.new:
            yield judged(
                context, sd.number == sd.vt_s,
                f"the new SD {sd.number} follows", f"a new SD is numbered {sd.number}", sd,
                expected=f"{sd.vt_s}, counted from ISS", actual=str(sd.number),
            )  # fmt: skip


class _Unnamed:
    """SDs at or above the bound of a STAT, each with the first STAT that did not cover it."""

    def __init__(self, reports: list[ReportHeard]) -> None:
        covered = RangeSet()
        self._runs: list[tuple[int, int, ReportHeard]] = []
        for report in reports:
            if report.is_stat and not report.fault:
                bound = max((report.n_r, *report.elements))
                self._runs += [(*gap, report) for gap in covered.gaps(bound, report.vt_s)]
                covered.add(bound, report.vt_s)
        self._runs.sort(key=lambda run: run[0])

    def get(self, number: int) -> ReportHeard | None:
        """The first STAT that did not cover an SD sent before it."""
        place = bisect_right(self._runs, number, key=lambda run: run[0])
        if not place or number >= self._runs[place - 1][1]:
            return None
        return self._runs[place - 1][2]


def only_what_is_named_has_arrived(flow: Flow, context: Context) -> Findings:
    """SDs at or above the bound of a STAT, later reported missing (the sender's half of DT-006)."""
    found = context.prepared.retransmissions(context.ics)
    unnamed = _Unnamed(flow.reports_heard)
    others = any(report.responses for report in flow.reports_heard)
    for neglect in found.neglected:
        report = unnamed.get(neglect.number)
        # Sent once only, so that it cannot have been given up for another reason.
        once = neglect.number in found.never and neglect.transmissions == 1 and others
        if once and report is not None and report.time < neglect.report.time:
            yield context.violated(
                f"SD {neglect.number}, which a STAT did not cover, was taken for received",
                report, neglect.report,
            )  # fmt: skip
    for report in flow.reports_heard:
        for sd in report.responses[:1]:
            before = unnamed.get(sd.number)
            if before is not None and before.time < report.time:
                yield context.holds(
                    f"SD {sd.number}, which a STAT did not cover, was kept", before, sd
                )
