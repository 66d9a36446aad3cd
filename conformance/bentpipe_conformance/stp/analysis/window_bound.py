"""The largest congestion window that the rules permit the IUT, replayed (STP/1 section 7.3).

What is hidden is resolved in the IUT's favour: the window begins at the most that STP-CG-001
permits, everything that arrives makes it grow, and a loss that may belong to an earlier reduction
makes no new one. An SD that does not fit into this window fits into no permitted one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bentpipe_conformance.stp.analysis.events import PollSent, ReportHeard, SdSent
from bentpipe_conformance.stp.analysis.flow import Flow
from bentpipe_conformance.stp.analysis.idleness import idle_flights
from bentpipe_conformance.stp.analysis.round_trip import LEAST_SILENCE_S, RoundTrips
from bentpipe_conformance.stp.analysis.window import (
    LOW_WINDOW,
    MOST_INITIAL_WINDOW,
    largest_smss,
    smss,
)
from bentpipe_conformance.stp.wire import BEGIN, BGAK

PROCESSING_S = 0.02
"""Seconds after a report in which what leaves may have been decided before it was read."""

SLACK_S = 0.05
"""Seconds by which a silence may be noticed late."""

Phase = Literal["slow start", "reduced", "avoidance", "silence"]
"""What bounded the window last: growth by arrivals, a reduction with less than three windows of
arrivals since, one longer ago, or two silences."""

REDUCED_WINDOWS = 3
"""Windows of arrivals after a reduction in which it, and not growth, decides on the window."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """An SD and what the rules permit at most when it leaves.

    Attributes:
        sd: the SD.
        window: the largest congestion window, octets.
        used: the same where an unused window does not grow (STP-CG-010).
        wide_from: the window from which on more than it may be in flight, octets; infinity before
            the first STAT that shows an arrival.
        phase: what bounded it.
        exempt: it is the retransmission that need not wait for the window (STP-CG-006).
        reduction: the report of the last reduction, None when there was none.
        threshold: ssthresh, octets; what the last reduction left of the window.
    """

    sd: SdSent
    window: float
    used: float
    wide_from: float
    phase: Phase
    exempt: bool
    reduction: ReportHeard | None
    threshold: float

    def limit(self, margin: int = 0) -> float:
        """STP-CG-002: the flight limit in octets, with ``margin`` octets more of window."""
        return self._limit(self.window + margin)

    def used_limit(self, margin: int = 0) -> float:
        """The same where an unused window does not grow."""
        return self._limit(self.used + margin)

    def _limit(self, window: float) -> float:
        return window * 4 / 3 if window >= self.wide_from else window


@dataclass(slots=True)
class _Bound:
    smss: int
    window: float
    threshold: float = math.inf
    phase: Phase = "slow start"
    arrived: float = 0.0
    since: float = 0.0
    reduced_at: float = -math.inf
    reduction: ReportHeard | None = None
    exempt: bool = False

    def grow(self, octets: int) -> None:
        """STP-CG-003, STP-CG-004."""
        if self.window < self.threshold:
            grown = min(octets, self.threshold - self.window)
            self.window += grown
            octets -= int(grown)
        self.since += octets
        if self.phase == "reduced" and self.since >= REDUCED_WINDOWS * self.threshold:
            self.phase = "avoidance"
        self.arrived += octets
        while octets > 0 and self.arrived >= self.window:
            self.arrived -= self.window
            self.window += self.smss

    def grow_little(self, octets: int, flight: int) -> None:
        """STP-CG-010: only a window of which ``flight`` is half or more may have grown."""
        self.window = max(self.window, min(self.window + octets, 2 * flight + self.smss))

    def counted(self, flight: int) -> float:
        """What a reduction halves: no more than the window counts of what is in flight."""
        return min(flight, self.window)

    def reduce(self, report: ReportHeard, counted: float) -> None:
        """STP-CG-005."""
        self.threshold = self.window = max(counted / 2, 2 * self.smss)
        self.phase, self.arrived, self.since = "reduced", 0.0, 0.0
        self.reduced_at, self.reduction, self.exempt = report.time, report, True

    def collapse(self, time: float, flight: int) -> None:
        """STP-CG-007."""
        self.threshold = max(self.counted(flight) / 2, 2 * self.smss)
        self.window = self.smss
        self.phase, self.arrived, self.reduced_at = "silence", 0.0, time


def bounded(flow: Flow, trips: RoundTrips) -> Iterator[Bounded]:
    """Every SD the open IUT sent, with the largest window the rules permit it then."""
    sender = flow.sender
    if sender is None:
        return
    size = largest_smss(flow)
    bound, used = (_Bound(size, float(MOST_INITIAL_WINDOW * size)) for _ in range(2))
    idle = idle_flights(flow)
    flying, waiting = _Flying(), _Waiting(trips)
    wide_from = math.inf
    for event in flow.events:
        if isinstance(event, SdSent):
            if event.stp.type != BEGIN:
                exempt = bound.exempt and not event.new
                yield Bounded(
                    event, bound.window, used.window, wide_from, bound.phase, exempt,
                    bound.reduction, bound.threshold,
                )  # fmt: skip
                bound.exempt = bound.exempt and event.new
            flying.leaves(event)
        elif isinstance(event, PollSent):
            waiting.polled(event)
        elif isinstance(event, ReportHeard) and not event.fault and event.stp.type != BGAK:
            if waiting.twice_silent(event.time):
                bound.collapse(event.time, flying.octets)
                used.collapse(event.time, flying.octets)
            waiting.heard(event)
            if event.is_stat and (event.n_r > 0 or len(event.elements) > 2):
                wide_from = LOW_WINDOW * smss(flow)
            before = flying.octets
            halved = [(item, item.counted(before)) for item in (bound, used)]
            bound.grow(flying.size(event.arrived))
            used.grow(flying.size([n for n in event.arrived if n not in idle]))
            for number in event.arrived:
                if number in idle:
                    used.grow_little(flying.size([number]), idle[number])
            flying.arrive(event.arrived)
            settled = bound.reduced_at + PROCESSING_S + flow.timing_error
            if flying.lose(event.wanted) > settled:
                for item, counted in halved:
                    item.reduce(event, counted)


@dataclass(slots=True)
class _Flying:
    """What is in flight: sent, not reported as arrived, not awaiting retransmission."""

    octets: int = 0
    sizes: dict[int, int] = field(default_factory=dict)
    sent: dict[int, float] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)

    def leaves(self, sd: SdSent) -> None:
        if sd.new or sd.number in self.missing:
            self.octets += max(len(sd.stp.data), 1)
        self.missing.discard(sd.number)
        self.sizes[sd.number] = max(len(sd.stp.data), 1)
        self.sent[sd.number] = sd.time

    def size(self, numbers: Sequence[int]) -> int:
        """Octets of these SDs."""
        return sum(self.sizes.get(number, 0) for number in numbers)

    def arrive(self, numbers: Sequence[int]) -> None:
        flown = [number for number in numbers if number not in self.missing]
        self.missing.difference_update(numbers)
        self.octets -= self.size(flown)

    def lose(self, numbers: Sequence[int]) -> float:
        """When the latest of the lost transmissions was made."""
        self.missing.update(numbers)
        self.octets -= self.size(numbers)
        return max((self.sent.get(number, -math.inf) for number in numbers), default=-math.inf)


@dataclass(slots=True)
class _Waiting:
    """Since when a POLL behind unacknowledged SDs waits for any report."""

    trips: RoundTrips
    since: float | None = None
    newest: int = 0

    def polled(self, poll: PollSent) -> None:
        self.newest = max(self.newest, poll.n_ps)
        # Silences count while SDs are unacknowledged (STP-PL-007).
        if self.since is None and poll.vt_a < poll.vt_s:
            self.since = poll.time

    def heard(self, report: ReportHeard) -> None:
        outstanding = report.n_ps is None or self.newest > report.n_ps
        self.since = report.time if outstanding and self.newest else None

    def twice_silent(self, time: float) -> bool:
        """Whether two silences are over for sure: one silence time, then twice as long."""
        if self.since is None:
            return False
        deviation = self.trips.with_deviation(self.since) or 0.0
        silence = max(LEAST_SILENCE_S, deviation + self.trips.interval(self.since)[1])
        return time - self.since > 3 * silence + 2 * SLACK_S
