"""The largest congestion window that the rules permit the IUT, replayed (STP/1 section 7.3).

Whatever is hidden is resolved in the IUT's favour: the window begins at the most that STP-CG-001
permits, everything that arrives makes it grow, and a loss that may belong to an earlier reduction
makes no new one. It may have made one all the same, and then spares a later one; both are followed,
and the larger window counts. An SD that does not fit into this window fits into no permitted one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, PollSent, ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips
from bentpipe_conformance.protocols.stp.replay.window import (
    LOW_WINDOW,
    MOST_INITIAL_WINDOW,
    idle_flights,
    largest_smss,
    smss,
)

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
        exempt: it is the retransmission that does not wait for the window (STP-CG-006).
        reduction: the report of the last reduction, None when there was none.
        certain: whether that report must have caused one.
        threshold: ssthresh, octets; what the last reduction left of the window.
        idle: lack of data or credit let no SD follow it, so that the window does not show.
    """

    sd: SdSent
    window: float
    used: float
    wide_from: float
    phase: Phase
    exempt: bool
    reduction: ReportHeard | None
    certain: bool
    threshold: float
    idle: bool

    def limit(self, margin: int = 0, *, used: bool = False) -> float:
        """STP-CG-002: the flight limit in octets, with ``margin`` octets more of window.

        With ``used`` that of a window which does not grow unused.
        """
        window = (self.used if used else self.window) + margin
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
    before: float = 0.0

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

    def grow_little(self, octets: int, flight: int, since: int) -> None:
        """STP-CG-010: a window may have grown if ``flight`` was at least half of it.

        When the SD left, such a window held twice ``flight`` at most; ``since`` octets were
        reported as arrived between then and now.
        """
        most = 2 * flight + since + self.smss
        self.window = max(self.window, min(self.window + octets, most))

    def reduce(self, report: ReportHeard, flight: int) -> None:
        """STP-CG-005: ``flight`` was in flight before the report."""
        self.threshold = self.window = max(min(flight, self.before) / 2, 2 * self.smss)
        self.phase, self.arrived, self.since = "reduced", 0.0, 0.0
        self.reduced_at, self.reduction, self.exempt = report.time, report, True

    def overtaken(self, sd: SdSent, within: float) -> None:
        """What leaves before a report can have been read is in flight when the IUT halves."""
        report = self.reduction
        if report is None or sd.time - report.time > within:
            return
        half = max(min(sd.flight_with, self.before) / 2, 2 * self.smss)
        self.threshold = max(self.threshold, half)
        self.window = max(self.window, half)

    def collapse(self, time: float, flight: int) -> None:
        """STP-CG-007."""
        self.threshold = max(min(flight, self.window) / 2, 2 * self.smss)
        self.window = self.smss
        self.phase, self.arrived, self.reduced_at = "silence", 0.0, time


class _Course(NamedTuple):
    """One possible course of the window.

    Attributes:
        bound: the largest window.
        used: the same where an unused window does not grow (STP-CG-010).
    """

    bound: _Bound
    used: _Bound

    def reduce(self, report: ReportHeard, flight: int) -> None:
        for window in self:
            window.reduce(report, flight)

    def hears(self, octets: int, idle: Sequence[tuple[int, int, int]]) -> None:
        """A report of ``octets`` arrived is processed: the window grows.

        ``idle`` has for each SD sent for lack of data or credit (STP-CG-010) its octets, those in
        flight with it, and those reported as arrived since it left.
        """
        for window in self:
            window.before = window.window  # a reduction counts with the window before
        self.bound.grow(octets)
        self.used.grow(octets - sum(size for size, _, _ in idle))
        for size, flight, since in idle:
            self.used.grow_little(size, flight, since)

    def copy(self) -> _Course:
        return _Course(replace(self.bound), replace(self.used))


class _Courses:
    """The course in which a doubtful loss makes no reduction, and others in which it did."""

    def __init__(self, smss: int) -> None:
        window = float(MOST_INITIAL_WINDOW * smss)
        self.all = [_Course(_Bound(smss, window), _Bound(smss, window))]

    @property
    def windows(self) -> list[_Bound]:
        return [window for course in self.all for window in course]

    def lose(self, report: ReportHeard, lost_at: float, error: float, flight: int) -> None:
        """A report shows SDs as lost whose latest transmission was made at ``lost_at``."""
        if lost_at <= self.all[0].bound.reduced_at + DUE_S + error:
            doubtful = [self.all[0].copy()]
            doubtful[0].reduce(report, flight)
        else:
            doubtful = []
        for course in self.all:
            # A loss may belong to an earlier reduction if the SD left before that was made.
            if lost_at > course.bound.reduced_at + DUE_S + error:
                course.reduce(report, flight)
        main, *others = [*self.all, *doubtful]
        self.all = [main]
        for course in reversed(others):
            if not any(_serves_better(other, course) for other in self.all):
                self.all.append(course)

    def told(self, sd: SdSent, wide_from: float, idle: bool) -> Bounded:
        """What is permitted when an SD leaves."""
        bound = self.all[0].bound
        exempt = any(course.bound.exempt for course in self.all) and not sd.new
        for course in self.all:
            course.bound.exempt = course.bound.exempt and sd.new
        return Bounded(
            sd,
            max(course.bound.window for course in self.all),
            max(course.used.window for course in self.all),
            wide_from, bound.phase, exempt, bound.reduction,
            all(course.bound.reduction is bound.reduction for course in self.all),
            bound.threshold, idle,
        )  # fmt: skip


def _serves_better(one: _Course, other: _Course) -> bool:
    """Whether ``one`` permits no less than ``other``, now and after any further loss."""
    return (
        one.bound.window >= other.bound.window
        and one.used.window >= other.used.window
        and one.bound.reduced_at >= other.bound.reduced_at
    )


def bounded(flow: Flow, trips: RoundTrips) -> Iterator[Bounded]:
    """Every SD the open IUT sent, with the largest window the rules permit it then."""
    sender = flow.sender
    if sender is None:
        return
    courses = _Courses(largest_smss(flow))
    idle = idle_flights(flow)
    delivered = 0
    before_it: dict[int, int] = {}
    flying, waiting = _Flying(), _Waiting(trips)
    # Before the connection is open no timer repeats POLLs (section 5.1).
    established = math.inf if flow.established is None else flow.established
    wide_from, wide = math.inf, LOW_WINDOW * smss(flow)
    for event in flow.events:
        if isinstance(event, SdSent):
            if event.stp.type != BEGIN:
                yield courses.told(event, wide_from, event.number in idle)
            for window in courses.windows:
                window.overtaken(event, flow.due_s)
            flying.leaves(event)
            before_it[event.number] = delivered
        elif isinstance(event, PollSent):
            waiting.polled(event, established)
        elif isinstance(event, ReportHeard) and not event.fault and event.stp.type != BGAK:
            if waiting.twice_silent(event.time):
                for window in courses.windows:
                    window.collapse(event.time, flying.octets)
            waiting.heard(event)
            if event.is_stat and (event.n_r > 0 or len(event.elements) > 2):
                wide_from = wide
            before = flying.octets
            octets = flying.size(event.arrived)
            delivered += octets
            few = [
                (flying.size([n]), idle[n], delivered - before_it.get(n, 0))
                for n in event.arrived if n in idle
            ]  # fmt: skip
            for course in courses.all:
                course.hears(octets, few)
            flying.arrive(event.arrived)
            if event.wanted:
                courses.lose(event, flying.lose(event.wanted), flow.timing_error, before)


@dataclass(slots=True)
class _Flying:
    """What is in flight: sent, not reported as arrived, not awaiting retransmission."""

    octets: int = 0
    sizes: dict[int, int] = field(default_factory=dict)
    sent: dict[int, float] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)

    def leaves(self, sd: SdSent) -> None:
        if sd.new or sd.number in self.missing:
            self.octets += sd.octets
        self.missing.discard(sd.number)
        self.sizes[sd.number] = sd.octets
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

    def polled(self, poll: PollSent, established: float) -> None:
        self.newest = max(self.newest, poll.n_ps)
        # Silences count while SDs are unacknowledged (STP-PL-007).
        counts = poll.time >= established and poll.vt_a < poll.vt_s
        if self.since is None and counts:
            self.since = poll.time

    def heard(self, report: ReportHeard) -> None:
        outstanding = report.n_ps is not None and self.newest > report.n_ps
        unacknowledged = report.n_r < report.vt_s
        # After a USTAT silence may count from the next POLL only.
        self.since = report.time if outstanding and unacknowledged else None

    def twice_silent(self, time: float) -> bool:
        """Whether two silences are over for sure: one silence time, then twice as long."""
        if self.since is None:
            return False
        return time - self.since > 3 * self.trips.silence(self.since) + 2 * SLACK_S
