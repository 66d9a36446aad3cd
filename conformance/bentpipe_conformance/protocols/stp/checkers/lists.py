"""STP-PF: lists of what is missing, in STATs and USTATs (section 3.2)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged, transfer
from bentpipe_conformance.protocols.stp.checkers.format import LARGEST_PACKET
from bentpipe_conformance.protocols.stp.replay.events import (
    ReportSent,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow

LARGEST_MAX_STAT = 67
"""Elements of a STAT (section 8, MaxSTAT: 67, or less)."""

PARTS_S = 0.02
"""Seconds within which the parts of one list leave."""


@checker("STP-PF-011", of=transfer)
def well_formed_list(flow: Flow, context: Context) -> Findings:
    """A STAT's list is empty, or rises strictly from N(R) to at most N(MR) (section 3.5)."""
    for report in flow.reports_sent:
        if report.is_stat and report.elements:
            problem = report.list_fault()
            what = f"the list {_shown(report.elements)} of a STAT"
            yield judged(
                context, not problem, f"{what} is well-formed", f"{what} {problem}", report
            )


@checker("STP-PF-012", of=transfer)
def long_list_is_cut(flow: Flow, context: Context) -> Findings:
    """A list longer than MaxSTAT is cut at an odd element, repeated next (section 3.5)."""
    before = None
    for report in flow.reports_sent:
        if not report.is_stat:
            continue
        size = len(report.elements)
        octets = len(report.stp.octets) + (8 if report.stp.udp_dport else 0)
        if size > LARGEST_MAX_STAT:
            yield context.violated(f"a STAT has {size} elements, more than MaxSTAT can be", report)
        elif octets > LARGEST_PACKET:
            yield context.violated(f"a STAT of {octets} octets does not fit the path", report)
        elif before is not None and _repeats_poll(before, report):
            yield from _continued(context, before, report)
        before = report
    for said in context.prepared.statements:
        # A part of a list that is all there is: what follows was due at once. It may have been all
        # before the packet arrived that made the list longer.
        last = said.parts[-1]
        part = said.certain and not (said.complete or said.true)
        if part and flow.over > last.time + flow.due_s:
            yield context.violated(
                f"a list of {len(said.elements)} elements ends before everything is said", last,
                expected=f"another STAT that begins with {last.elements[-1]}", actual="none",
            )  # fmt: skip


def _continued(context: Context, before: ReportSent, report: ReportSent) -> Findings:
    """Whether the second part of a list continues the first."""
    largest, size = len(before.elements), len(report.elements)
    last, first = before.elements[-1], report.elements[0]
    if first > last:
        yield context.violated(
            "a list continues in a second STAT, but not with the last element of the first",
            before, report,
            expected=f"a list that begins with {last}", actual=f"a list that begins with {first}",
        )  # fmt: skip
    elif first < last:
        return
    elif largest % 2 == 0:
        yield context.violated(
            f"a list was cut after {largest} elements, an even number", before, report
        )
    else:
        yield judged(
            context, size <= largest,
            f"a list continues in a second STAT with its last element {first}",
            f"a part of {largest} elements is followed by one of {size}", before, report,
        )  # fmt: skip


def _repeats_poll(before: ReportSent, report: ReportSent) -> bool:
    """Whether two STATs are parts of one list; STP-DT-024 repeats N(PS) too, but later."""
    same = before.stp.n_ps == report.stp.n_ps and before.stp.timestamp == report.stp.timestamp
    together = before.n_r == report.n_r and report.time - before.time <= PARTS_S
    listed = bool(before.elements and report.elements)
    return same and together and before.poll is report.poll and listed


@checker("STP-PF-013", of=transfer)
def one_run(flow: Flow, context: Context) -> Findings:
    """A USTAT reports one run between N(R) and N(MR) (section 3.5)."""
    for report in flow.reports_sent:
        if not report.is_stat:
            first, second = report.elements
            run = f"{first}..{second}"
            yield judged(
                context, report.n_r <= first < second <= report.n_mr,
                f"a USTAT reports the run {run}",
                f"a USTAT reports {run} with N(R) {report.n_r} and N(MR) {report.n_mr}", report,
            )  # fmt: skip


def _shown(listed: tuple[int, ...]) -> str:
    texts = [*map(str, listed)]
    if len(texts) > 10:
        texts[4:-2] = ["..."]
    return ", ".join(texts)
