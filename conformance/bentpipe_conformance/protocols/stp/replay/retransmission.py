"""Retransmissions that the IUT owed and did not make, and those it made without a cause.

A retransmission has no deadline of its own: the window and the pacing may hold it back. But once
nothing is in flight, no window does, so a sender that is then silent neglects the reports. What it
retransmits without a cause is compared with the reports that named the SD.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from bentpipe_conformance.protocols.stp.codec import BEGIN, END
from bentpipe_conformance.protocols.stp.numbers import NO_ANSWER, NO_RESPONSE_S
from bentpipe_conformance.protocols.stp.replay.events import ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips

PATIENCE_S, PATIENCE_RTTS = 2.0, 3.0
"""A silence longer than both together is not pacing, which at one SMSS takes 0.8 round trips."""

EARLY_S = 0.5
"""Seconds by which a peer may be given up too early."""

PASSED = 2
"""New SDs that leave first when neither window nor pacing holds a retransmission back."""


@dataclass(frozen=True, slots=True)
class Neglect:
    """An SD that awaited retransmission while nothing was in flight and nothing left.

    Attributes:
        number: its count.
        report: what made it await retransmission.
        since: when the last SD in flight was reported, seconds.
        until: when the next SD left, or the connection was over.
        transmissions: how often it had been sent.
    """

    number: int
    report: ReportHeard
    since: float
    until: float
    transmissions: int


@dataclass(frozen=True, slots=True)
class Unasked:
    """A retransmission of an SD that no report made await it.

    Attributes:
        sd: the retransmission.
        named: the reports, faulty ones too, that named it missing since it was last sent.
        arrived: when it was reported as arrived, seconds; None when it was not.
    """

    sd: SdSent
    named: tuple[ReportHeard, ...]
    arrived: float | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """A retransmission that left for a later report than the one which made the SD await it.

    New SDs have left in between, so neither window nor pacing held it back.

    Attributes:
        sd: the retransmission.
        report: what made it await retransmission.
        again: the later report, which named it missing as well.
    """

    sd: SdSent
    report: ReportHeard
    again: ReportHeard


@dataclass
class Retransmissions:
    """Of one connection.

    Attributes:
        neglected: what should have been sent again.
        unheeded: the same, for reports by which the peer did not count as alive either.
        deferred: what should have been sent again before.
        unasked: what should not.
        never: counts that awaited retransmission until the end.
    """

    neglected: list[Neglect] = field(default_factory=list)
    unheeded: list[Neglect] = field(default_factory=list)
    deferred: list[Deferred] = field(default_factory=list)
    unasked: list[Unasked] = field(default_factory=list)
    never: frozenset[int] = frozenset()


@dataclass
class _Walk:
    patience: float
    race: float
    found: Retransmissions
    last: dict[int, SdSent] = field(default_factory=dict)
    under_way: set[int] = field(default_factory=set)
    arrived: dict[int, float] = field(default_factory=dict)
    waiting: dict[int, ReportHeard] = field(default_factory=dict)
    again: dict[int, ReportHeard] = field(default_factory=dict)
    """By number, the last report that named an SD which awaited retransmission for another one."""
    passed: list[SdSent] = field(default_factory=list)
    """The new SDs."""
    reports: list[ReportHeard] = field(default_factory=list)
    empty_since: float | None = None

    def sends(self, sd: SdSent) -> None:
        self.stop_waiting(sd.time)
        number = sd.number
        if not sd.new and number not in self.waiting:
            self._unasked(sd, self.arrived.get(number))
        elif not sd.new:
            self._awaited(sd, self.waiting[number])
        else:
            self.passed.append(sd)
        self.again.pop(number, None)
        self.waiting.pop(number, None)
        if number not in self.arrived:
            self.under_way.add(number)
        self.last[number] = sd

    def _awaited(self, sd: SdSent, report: ReportHeard) -> None:
        again = self.again.get(sd.number)
        if again is None or sd.time - again.time > self.race:
            return
        first, last = (
            bisect_right(self.passed, time, key=lambda item: item.time)
            for time in (report.time + self.race, again.time)
        )
        # The window that holds a large SD back may have room for a small one (STP-DT-009).
        as_large = [item for item in self.passed[first:last] if item.octets >= sd.octets]
        if len(as_large) >= PASSED:
            self.found.deferred.append(Deferred(sd, report, again))

    def _unasked(self, sd: SdSent, arrived: float | None) -> None:
        if sd.stp.type == BEGIN or (arrived is not None and sd.time - arrived <= self.race):
            return
        before = self.last[sd.number].frame if sd.number in self.last else 0
        later = (item for item in self.reports if item.frame > before)
        named = tuple(item for item in later if item.misses(sd.number))
        self.found.unasked.append(Unasked(sd, named, arrived))

    def hears(self, report: ReportHeard) -> None:
        self.reports.append(report)
        if report.fault:
            return
        for number in report.arrived:
            self.arrived.setdefault(number, report.time)
            self.under_way.discard(number)
            self.waiting.pop(number, None)
        if report.elements:
            self.again |= {number: report for number in self.waiting if report.misses(number)}
        for number in report.wanted:
            self.under_way.discard(number)
            self.waiting[number] = report
        if self.waiting and not self.under_way:
            self.empty_since = self.empty_since or report.time

    def stop_waiting(self, now: float) -> None:
        since, self.empty_since = self.empty_since, None
        if since is None or now - since <= self.patience:
            return
        for number, report in self.waiting.items():
            times = self.last[number].transmission
            self.found.neglected.append(Neglect(number, report, since, now, times))


def retransmissions(flow: Flow, trips: RoundTrips) -> Retransmissions:
    """What was neglected, and what was sent unasked, on a connection."""
    found = Retransmissions()
    patience = PATIENCE_S + PATIENCE_RTTS * trips.longest + flow.timing_error
    walk = _Walk(patience, flow.due_s, found)
    for event in flow.events:
        if event.time > flow.over:
            break
        if isinstance(event, SdSent):
            walk.sends(event)
        elif isinstance(event, ReportHeard):
            walk.hears(event)
    walk.stop_waiting(flow.over)
    found.never = frozenset(walk.waiting)
    found.unheeded = _unheeded(flow, found.neglected)
    found.neglected = [item for item in found.neglected if item not in found.unheeded]
    return found


def _unheeded(flow: Flow, neglected: list[Neglect]) -> list[Neglect]:
    """Neglects of SDs that a report asked for by which the peer did not count as alive either.

    Who gives up its peer has taken no report since the POLL that began the minute (STP-PL-008).
    """
    ends = (at for at in flow.sent if at.stp.type == END and at.stp.reason == NO_ANSWER)
    gave_up = next(ends, None)
    if gave_up is None or flow.ended != gave_up.time:
        return []
    begun = gave_up.time - NO_RESPONSE_S + EARLY_S + flow.timing_error
    passed: list[ReportHeard] = []
    for report in flow.reports_heard:
        first = bisect_right(flow.polls_sent, report.frame, key=lambda poll: poll.frame)
        if not report.fault and all(poll.time > begun for poll in flow.polls_sent[first:]):
            passed.append(report)
    last = (item for item in neglected if item.until == flow.over)
    return [item for item in last if any(report.misses(item.number) for report in passed)]
