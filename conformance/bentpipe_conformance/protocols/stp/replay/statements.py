"""The lists of the IUT's STATs; one longer than MaxSTAT comes in several (STP-PF-012)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from bentpipe_conformance.protocols.stp.replay.events import (
    Knowledge,
    PollHeard,
    Report,
    ReportSent,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow

PARTS_S = 0.1
"""Seconds within which the parts of one list leave."""


@dataclass(slots=True, eq=False)
class Statement(Report):
    """A whole list of the IUT, with the packet of its first part as evidence.

    Attributes:
        parts: the STATs that carry it, in order.
        poll: the POLL it answers.
        complete: False if it can be the beginning of a list that was cut.
    """

    parts: tuple[ReportSent, ...]
    poll: PollHeard | None
    complete: bool

    @property
    def certain(self) -> bool:
        """Whether what the receiver had then is known for sure."""
        return all(part.certain for part in self.parts) and self.poll is not None

    @property
    def possible(self) -> tuple[Knowledge, ...]:
        """What the receiver had when it was made: one of these."""
        return self.parts[-1].possible

    @property
    def true(self) -> bool:
        """Whether it is what the receiver had at one of the moments it may have been made."""
        return any((k.vr_r, k.elements) == (self.n_r, self.elements) for k in self.possible)


def statements(flow: Flow) -> list[Statement]:
    """Every list in the STATs of a connection, in order."""
    found: list[Statement] = []
    stats = [report for report in flow.reports_sent if report.is_stat]
    longest = max((len(report.elements) for report in stats), default=0)
    parts: list[ReportSent] = []
    for stat, following in zip_longest(stats, stats[1:]):
        parts.append(stat)
        if following is not None and _goes_on(stat, following):
            continue
        elements = sum((part.elements[1:] for part in parts[1:]), parts[0].elements)
        complete = not _may_be_cut(stat, elements, longest)
        one = parts[0]
        whole = one.packet, one.n_r, one.n_mr, elements, tuple(parts), one.poll, complete
        found.append(Statement(*whole))
        parts = []
    return found


def _goes_on(part: ReportSent, following: ReportSent) -> bool:
    same = _fields(part) == _fields(following) and following.time - part.time <= PARTS_S
    return same and len(part.elements) > 2 and following.elements[:1] == part.elements[-1:]


def _fields(part: ReportSent) -> tuple[object, ...]:
    return part.stp.n_ps, part.stp.timestamp, part.n_r, part.n_mr


def _may_be_cut(part: ReportSent, elements: tuple[int, ...], longest: int) -> bool:
    """Whether the list is the beginning of the one that was right, as long as none is longer."""
    size = len(part.elements)
    if size < 3 or size % 2 == 0 or size < longest:
        return False
    return any(
        len(known.elements) > len(elements) and known.elements[: len(elements)] == elements
        for known in part.possible
    )
