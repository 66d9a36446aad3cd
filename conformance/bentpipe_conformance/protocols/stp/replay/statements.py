"""What the IUT as a receiver has said: STATs put together from their parts, and their worth.

A list longer than MaxSTAT comes in several STATs (STP-PF-012), which make one statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bentpipe_conformance.protocols.stp.codec import BEGIN, FIN
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.events import Knowledge, PollHeard, ReportSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow

PARTS_S = 0.1
"""Seconds within which the parts of one list leave."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One answer of the IUT.

    Attributes:
        parts: the STATs that carry it, in order.
        elements: the whole list as counts.
        complete: False if it can be the beginning of a list that was cut.
    """

    parts: tuple[ReportSent, ...]
    elements: tuple[int, ...]
    complete: bool

    @property
    def first(self) -> ReportSent:
        """The first part."""
        return self.parts[0]

    @property
    def packet(self) -> Packet:
        """The first part's packet, as evidence."""
        return self.first.packet

    @property
    def n_r(self) -> int:
        """N(R) as a count."""
        return self.first.n_r

    @property
    def poll(self) -> PollHeard | None:
        """The POLL it answers."""
        return self.first.poll

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
        """What it speaks of ends here: the last element, or N(R) of an empty list."""
        return self.elements[-1] if self.elements else self.n_r

    @property
    def true(self) -> bool:
        """Whether it is what the receiver had at one of the moments it may have been made."""
        return any((k.vr_r, k.elements) == (self.n_r, self.elements) for k in self.possible)

    def holds(self, number: int) -> bool:
        """Whether it says that an SD has arrived."""
        runs = zip(self.elements[1::2], self.elements[2::2], strict=False)
        return number < self.n_r or any(a <= number < b for a, b in runs)

    def misses(self, number: int) -> bool:
        """Whether it says that an SD is missing."""
        runs = zip(self.elements[::2], self.elements[1::2], strict=False)
        return any(a <= number < b for a, b in runs)


def statements(flow: Flow) -> list[Statement]:
    """Everything said in STATs, in order."""
    found: list[Statement] = []
    stats = [report for report in flow.reports_sent if report.is_stat]
    longest = max((len(report.elements) for report in stats), default=0)
    while stats:
        parts = [stats.pop(0)]
        while stats and _goes_on(parts[-1], stats[0]):
            parts.append(stats.pop(0))
        elements = parts[0].elements
        for part in parts[1:]:
            elements += part.elements[1:]
        complete = not _may_be_cut(parts[-1], elements, longest)
        found.append(Statement(tuple(parts), elements, complete))
    return found


def _goes_on(part: ReportSent, following: ReportSent) -> bool:
    return (
        _fields(part) == _fields(following)
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


def unsure(flow: Flow) -> bool:
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


def early_sds(flow: Flow) -> Iterator[int]:
    """Counts of SDs behind the BEGIN that came before the connection was open."""
    return (sd.number for sd in flow.sds_heard if sd.early and sd.stp.type != BEGIN)
