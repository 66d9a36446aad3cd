"""What the IUT reported as a receiver: STATs assembled from their parts.

A list longer than MaxSTAT comes in several STATs (STP-PF-012), which make one statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_conformance.protocols.stp.codec import BEGIN, FIN
from bentpipe_conformance.protocols.stp.replay.events import At, Knowledge, PollHeard, ReportSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow

PARTS_S = 0.1
"""Seconds within which the parts of one list leave."""


@dataclass(slots=True, eq=False)
class Statement(At):
    """A whole list of the IUT, with the packet of its first part as evidence.

    Attributes:
        parts: the STATs that carry it, in order.
        n_r, n_mr: as counts.
        poll: the POLL it answers.
        elements: the whole list as counts.
        complete: False if it can be the beginning of a list that was cut.
    """

    parts: tuple[ReportSent, ...]
    n_r: int
    n_mr: int
    poll: PollHeard | None
    elements: tuple[int, ...]
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
    def bound(self) -> int:
        """Where its information ends: the last element, or N(R) of an empty list."""
        return self.elements[-1] if self.elements else self.n_r

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
    for place, stat in enumerate(stats):
        parts.append(stat)
        if _goes_on(stat, *stats[place + 1 : place + 2]):
            continue
        elements = sum((part.elements[1:] for part in parts[1:]), parts[0].elements)
        complete = not _may_be_cut(stat, elements, longest)
        first = parts[0]
        found.append(
            Statement(
                first.packet, tuple(parts), first.n_r, first.n_mr, first.poll, elements, complete
            )
        )
        parts = []
    return found


def _goes_on(part: ReportSent, following: ReportSent | None = None) -> bool:
    return (
        following is not None
        and _fields(part) == _fields(following)
        and len(part.elements) > 2
        and following.elements[:1] == part.elements[-1:]
        and following.time - part.time <= PARTS_S
    )


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


def is_unsure(flow: Flow) -> bool:
    """Whether the replay cannot tell what the receiver has.

    It does not follow SDs that are impossible beside others (section 6.2): those above the peer's
    FIN, and those larger than the IUT's MaxSD; nor a BEGIN that meets the IUT's own.
    """
    receiver = flow.receiver
    if receiver is None or flow.established is None:
        return True
    fins = [sd.number for sd in flow.sds_heard if sd.stp.flags & FIN]
    if fins and any(sd.number > min(fins) for sd in flow.sds_heard):
        return True
    most = flow.iut_max_sd
    if most is not None and any(len(sd.stp.data) > most for sd in flow.sds_heard):
        return True
    return flow.iut_calls and any(sd.stp.type == BEGIN for sd in flow.sds_heard)
