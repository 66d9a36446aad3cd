"""STP-DT: data transfer (section 6), the IUT as a sender."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    answers,
    name,
    retransmissions_of,
    user_may_abort,
)
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, END, FIN, A
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT
from bentpipe_conformance.protocols.stp.replay.events import PollSent, ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.retransmission import (
    Unasked,
    names_missing,
)


@checker("STP-DT-003")
def stat_retransmits_what_is_older_than_its_poll(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs that valid STATs reported missing."""
    yield from _by_report(
        flow, context, lambda report: report.is_stat and not report.fault,
        "last sent after the POLL that the STAT answers",
    )  # fmt: skip


@checker("STP-DT-014")
def ustat_retransmits_what_was_sent_once(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs that valid USTATs reported missing."""
    yield from _by_report(
        flow, context,
        lambda report: not report.is_stat and report.stp.type != BGAK and not report.fault,
        "sent more than once before the USTAT",
    )  # fmt: skip


def _by_report(
    flow: Flow, context: Context, mine: Callable[[ReportHeard], bool], spared_for: str
) -> Iterator[Finding]:
    """Whether reports of one kind made the IUT send what they had to, and nothing else."""
    found = retransmissions_of(context)
    again = [item for item in found.unasked if _named_only_by(item, mine)]
    for item in again:
        sd, report = item.sd, item.named[-1]
        # A BEGIN's repetitions may or may not count as transmissions of its data.
        if sd.number == 0 and _begins_with_data(flow) > 1:
            continue
        yield context.violated(
            f"SD {sd.number} was sent again for {name(report.stp)}, though it was {spared_for}",
            report, sd,
        )  # fmt: skip
    for neglect in found.neglected:
        if mine(neglect.report):
            yield context.violated(
                f"SD {neglect.number}, reported missing by {name(neglect.report.stp)}, was not "
                f"sent again in {neglect.until - neglect.since:.1f} s with nothing in flight",
                neglect.report,
            )
    for report in flow.reports_heard:
        if not mine(report):
            continue
        if report.responses:
            first = report.responses[0]
            yield context.holds(
                f"SD {first.number} was sent again for {name(report.stp)}", report, first
            )
        elif (
            report.spared
            and flow.until > report.time + DUE_S
            and not any(report in item.named for item in found.unasked)
        ):
            yield context.holds(
                f"SD {report.spared[0]} was not sent again for {name(report.stp)}", report
            )


def _named_only_by(item: Unasked, mine: Callable[[ReportHeard], bool]) -> bool:
    """Whether all reports that can be the cause are of one kind; else two explanations exist."""
    if item.arrived is not None or not item.named:
        return False
    return all(mine(report) for report in item.named)


def _begins_with_data(flow: Flow) -> int:
    return sum(sd.stp.type == BEGIN for sd in flow.sds_sent)


@checker("STP-DT-027")
def only_reports_retransmit(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs that were sent again, by whether any report since their last transmission named them."""
    unasked = {item.sd.packet.number: item for item in retransmissions_of(context).unasked}
    for sd in flow.sds_sent:
        item = unasked.get(sd.packet.number)
        if item is not None and (item.arrived is not None or not item.named):
            arrived = item.arrived is not None
            yield context.violated(
                f"SD {sd.number} was sent again, though "
                f"{'it had been reported as arrived' if arrived else 'no report had named it'}",
                sd,
            )
        elif sd.awaited is not None:
            yield context.holds(f"SD {sd.number} was sent again for a report", sd.awaited, sd)


@checker("STP-DT-009")
def retransmissions_go_first(flow: Flow, context: Context) -> Iterator[Finding]:
    """New SDs, by whether another awaited retransmission when they left."""
    since: dict[int, ReportHeard] = {}
    again: SdSent | None = None
    for event in flow.events:
        if isinstance(event, ReportHeard):
            since |= dict.fromkeys(event.wanted, event)
        elif isinstance(event, SdSent) and not event.new:
            again = event if event.awaited is not None else again
        elif isinstance(event, SdSent):
            # A report that has just arrived may not have been looked at.
            late = [
                number
                for number in event.queue
                if event.time - since[number].time > DUE_S + flow.timing_error
            ]
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


@checker("STP-DT-010")
def what_has_not_arrived_is_kept(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs that had to be sent more than twice, and such as were never sent again."""
    found = retransmissions_of(context)
    for neglect in found.neglected:
        # A USTAT may have been overlooked, a STAT that asks for the SD may not.
        stats = [
            report
            for report in flow.reports_heard
            if report.is_stat and not report.fault and report.time <= neglect.since
        ]
        asked = any(
            report.packet.number >= neglect.report.packet.number
            and names_missing(report, neglect.number)
            for report in stats
        )
        if asked and neglect.number in found.never:
            yield context.violated(
                f"SD {neglect.number}, sent {neglect.transmissions} times and reported missing, "
                "was never sent again",
                neglect.report,
            )
    for sd in flow.sds_sent:
        if sd.transmission > 2 and sd.awaited is not None:
            yield context.holds(f"SD {sd.number} was sent {sd.transmission} times", sd)


@checker("STP-DT-011")
def credit_holds(flow: Flow, context: Context) -> Iterator[Finding]:
    """New SDs against the credit."""
    # A BEGIN that gives less counts as this (section 3.3). What a report to be discarded gave is a
    # matter of that report.
    least = EARLY_CREDIT
    for event in flow.events:
        if isinstance(event, ReportHeard) and event.fault:
            least = max(least, event.n_mr)
        if not isinstance(event, SdSent) or not event.new:
            continue
        if event.number >= max(event.vt_ms, least):
            yield context.violated(
                f"SD {event.number} was sent with a credit up to {event.vt_ms}", event,
                expected=f"SDs below {event.vt_ms}",
                actual=f"SD {event.number}",
            )  # fmt: skip
        elif event.number == event.vt_ms - 1:
            yield context.holds(f"SD {event.number} was the last that the credit permits", event)


@checker("STP-DT-015")
def retransmission_is_the_same(flow: Flow, context: Context) -> Iterator[Finding]:
    """Every SD that was sent again against its first transmission."""
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
        elif sd.stp.flags & FIN != original.stp.flags & FIN:
            yield context.violated(
                f"SD {sd.number} was sent again with another FIN flag", original, sd
            )
        else:
            yield context.holds(f"SD {sd.number} was sent again as it was", original, sd)


@checker("STP-DT-016")
def new_sds_are_numbered_one_by_one(flow: Flow, context: Context) -> Iterator[Finding]:
    """The numbers of SDs that were sent for the first time."""
    for sd in flow.sds_sent:
        if not sd.new:
            continue
        if sd.number != sd.vt_s:
            yield context.violated(
                f"a new SD is numbered {sd.number}", sd,
                expected=f"{sd.vt_s}, counted from ISS",
                actual=str(sd.number),
            )  # fmt: skip
        else:
            yield context.holds(f"the new SD {sd.number} follows", sd)


def only_what_is_named_has_arrived(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs at or above the bound of a STAT, later reported missing (the sender's half of DT-006)."""
    found = retransmissions_of(context)
    silent = {
        number: report
        for report in reversed(flow.reports_heard)
        if report.is_stat and not report.fault
        for number in range(max((report.n_r, *report.elements)), report.vt_s)
    }
    others = any(report.responses for report in flow.reports_heard)
    for neglect in found.neglected:
        report = silent.get(neglect.number)
        # Sent once only, so that it cannot have been given up for another reason.
        once = neglect.number in found.never and neglect.transmissions == 1 and others
        if once and report is not None and report.time < neglect.report.time:
            yield context.violated(
                f"SD {neglect.number}, of which a STAT had said nothing, was taken for received",
                report, neglect.report,
            )  # fmt: skip
    for report in flow.reports_heard:
        for sd in report.responses[:1]:
            before = silent.get(sd.number)
            if before is not None and before.time < report.time:
                yield context.holds(
                    f"SD {sd.number}, of which a STAT had said nothing, was kept", before, sd
                )


@checker("STP-DT-023")
def invalid_reports_are_discarded(flow: Flow, context: Context) -> Iterator[Finding]:
    """Reports with wrong numbers or lists that reached the open IUT."""
    yield from _discarded(flow, context, lambda report: not is_old(report))


def is_old(report: ReportHeard) -> bool:
    """Whether a report is discarded only since a newer STAT has been seen (STP-DT-007)."""
    return report.n_ps is not None and report.n_ps < report.vt_pa and "N(PS)" in report.fault


def old_stats_are_discarded(flow: Flow, context: Context) -> Iterator[Finding]:
    """STATs that a newer one has overtaken (the sender's half of STP-DT-007)."""
    yield from _discarded(flow, context, is_old)


def _discarded(
    flow: Flow, context: Context, mine: Callable[[ReportHeard], bool]
) -> Iterator[Finding]:
    """Faulty reports: whether they gave credit, made SDs be sent again, or ended anything."""
    faulty = [r for r in flow.reports_heard if r.fault and r.stp.type != BGAK]
    if not any(mine(report) for report in faulty):
        return
    # Where reports to be discarded for different reasons can be the cause, nobody is accused.
    again = {
        item.named[-1].packet.number: item.sd
        for item in reversed(retransmissions_of(context).unasked)
        if _named_only_by(item, lambda report: bool(report.fault) and mine(report))
    }
    for report in (report for report in faulty if mine(report)):
        what = f"{name(report.stp)} to be discarded ({report.fault})"
        repeated = again.get(report.packet.number)
        credited = _credited_by(flow, report, faulty)
        ends = [at for at in answers(flow, At(report.packet), (END,)) if _aborts(at)]
        if repeated is not None:
            yield context.violated(
                f"SD {repeated.number} was sent again for {what}", report, repeated
            )
        elif credited is not None:
            yield context.violated(
                f"SD {credited.number} was sent on the credit of {what}", report, credited
            )
        elif ends and flow.ended == ends[0].packet.time and user_may_abort(flow):
            continue
        elif ends and flow.ended == ends[0].packet.time:
            yield context.violated(f"the connection was aborted at {what}", report, *ends)
        elif (seen := _goes_on(flow, report)) is not None:
            yield context.holds(f"{what} changed nothing", report, seen)


def _aborts(at: At) -> bool:
    return at.packet.content is not None and bool(at.packet.content.flags & A)


def _credited_by(flow: Flow, report: ReportHeard, faulty: list[ReportHeard]) -> SdSent | None:
    """A new SD that no valid report permitted, and this one, the last before it, would have."""
    for sd in flow.sds_sent:
        if not sd.new or sd.number < sd.vt_ms:
            continue
        giving = [
            item
            for item in faulty
            if item.packet.number < sd.packet.number and sd.number < item.n_mr
        ]
        # A STAT can be discarded for two reasons; which one was not minded cannot be told.
        if giving and giving[-1] is report and len({is_old(item) for item in giving}) == 1:
            return sd
    return None


def _goes_on(flow: Flow, report: ReportHeard) -> SdSent | PollSent | None:
    """What the IUT sent once it must have looked at the report, which could have shown a change."""
    moved = (
        any(names_missing(report, sd.number) for sd in flow.sds_sent) or report.n_r > report.vt_a
    )
    if not moved and report.n_mr <= report.vt_ms and not report.fault.startswith("N(R)"):
        return None
    later = (
        event for event in flow.events
        if isinstance(event, SdSent | PollSent) and event.time > report.time + DUE_S
    )  # fmt: skip
    return next(later, None)
