"""What the IUT has measured of the round-trip time, and how it has smoothed it (STP-PL-009).

Every measurement shows in the packets, so the smoothed value follows from them but for the time
that packets take inside the implementation: it is kept as an interval. What rests on it is judged
by any average of the measurements, so that a wrong way to smooth is a matter of STP-PL-009 alone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At
from bentpipe_conformance.protocols.stp.replay.flow import Flow

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.02, 2.0
"""Bounds of the poll interval (STP-PL-001)."""

LEAST_SILENCE_S, MOST_SILENCE_S = 0.2, 15.0
"""The shortest silence time, and the longest after doublings (STP-PL-007)."""

FIRST_WAIT_S = {"geo": 1.0, "leo": 1.0, "vbdc": 3.0}
"""First wait of Timer_CC, and the initial interval, by path class (section 8)."""

SRTT_GAIN, DEVIATION_GAIN, DEVIATIONS = 1 / 8, 1 / 4, 4
"""RFC 6298 section 2, and how many deviations a silence time holds (STP-PL-007)."""

INSIDE_S = 0.02
"""Seconds that packets may take inside the IUT, both ways together: it measures them as well."""

Bounds = tuple[float, float]
"""The least and the most that something may be."""


def first_wait(ics: Mapping[str, Any]) -> float:
    """The first wait of the path class that the IUT's timers are set for, seconds."""
    return FIRST_WAIT_S[ics.get("path_class", "geo")]


def poll_interval(srtt: float) -> float:
    """The poll interval for a smoothed round-trip time, seconds (STP-PL-001)."""
    return min(max(srtt / 3, LEAST_INTERVAL_S), MOST_INTERVAL_S)


def silence_time(srtt: float, deviation: float) -> float:
    """The silence time, before doubling, seconds (STP-PL-007)."""
    return max(srtt + max(DEVIATIONS * deviation, poll_interval(srtt)), LEAST_SILENCE_S)


Rule = Callable[[float, float], float]
"""A silence time by smoothed round-trip time and deviation, all seconds."""


@dataclass(frozen=True, slots=True)
class Smoothed:
    """The smoothed round-trip time and its deviation after a measurement, seconds."""

    srtt: Bounds
    deviation: Bounds

    def then(self, rtt: Bounds) -> Smoothed:
        """What they are after another measurement."""
        (low, high), (shortest, longest) = self.srtt, rtt
        apart = max(low - longest, shortest - high, 0.0), max(high - shortest, longest - low)
        return Smoothed(
            _smooth(self.srtt, rtt, SRTT_GAIN), _smooth(self.deviation, apart, DEVIATION_GAIN)
        )


def _smooth(before: Bounds, new: Bounds, gain: float) -> Bounds:
    low, high = (old + gain * (value - old) for old, value in zip(before, new, strict=True))
    return low, high


@dataclass(frozen=True, slots=True, eq=False)
class RoundTrips:
    """The measurements of one connection, in order of time.

    Attributes:
        times: when each was made, or may have been, seconds.
        first: when the first was made for sure, seconds; infinity without one.
        smoothed: what had been smoothed then.
        longest: the longest of all, seconds; 0 without one.
        initial: the initial interval, seconds (section 8).
        exactly: the same smoothed as STP-PL-009 says; None if this is it.
        unread: seconds for which an arrival may not have been read yet.
        rule: the silence time, before doubling, by smoothed round-trip time and deviation, seconds.
    """

    times: Sequence[float]
    first: float
    smoothed: Sequence[Smoothed]
    longest: float
    initial: float
    exactly: RoundTrips | None = None
    unread: float = 0.0
    rule: Rule = silence_time
    _silences: Sequence[Bounds] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_silences", [self._ruled(item) for item in self.smoothed])

    def _ruled(self, item: Smoothed) -> Bounds:
        low, high = map(self.rule, item.srtt, item.deviation)
        return low, high

    @property
    def exact(self) -> RoundTrips:
        """The measurements smoothed as STP-PL-009 says, not by just any average."""
        return self if self.exactly is None else self.exactly

    def _current(self, start: float, end: float) -> slice:
        """Which measurements may have been current in a span of time."""
        first, last = bisect_right(self.times, start - self.unread), bisect_right(self.times, end)
        return slice(max(first - 1, 0), last)

    def _unmeasured(self, start: float) -> bool:
        """Whether the first measurement may not have been read at ``start``."""
        return start - self.unread < self.first

    def bounds(self, start: float, end: float | None = None) -> Bounds | None:
        """Bounds of the smoothed round-trip time at a time or in a span; None without one."""
        current = self.smoothed[self._current(start, start if end is None else end)]
        if not current:
            return None
        return min(item.srtt[0] for item in current), max(item.srtt[1] for item in current)

    def interval(self, start: float, end: float | None = None) -> Bounds:
        """Bounds of the poll interval at a time or in a span, seconds (STP-PL-001)."""
        bounds = self.bounds(start, end)
        if bounds is None:
            return self.initial, self.initial
        low, high = (poll_interval(srtt) for srtt in bounds)
        if self._unmeasured(start):
            return min(low, self.initial), max(high, self.initial)
        return low, high

    def latest(self, time: float) -> float:
        """When a poll interval has passed since ``time`` at the latest; a change holds at once.

        That is, once the measurement has been read.
        """
        due = time + self.interval(time)[1]
        for measured in self.times[bisect_right(self.times, time) :]:
            if measured > due:
                break
            known = measured + self.unread
            if known <= due:
                due = max(known, time + self.interval(known)[1])
            else:
                due = max(due, time + self.interval(measured)[1])
        return due

    def silence(self, start: float, end: float | None = None) -> Bounds:
        """Bounds of the silence time at a time or in a span, undoubled, seconds (STP-PL-007)."""
        current = self._silences[self._current(start, start if end is None else end)]
        unmeasured = [self.initial] if not current or self._unmeasured(start) else []
        lowest = min([*unmeasured, *(low for low, _ in current)])
        return lowest, max([*unmeasured, *(high for _, high in current)])


def round_trips(flow: Flow, initial: float = FIRST_WAIT_S["geo"]) -> RoundTrips:
    """What the IUT has measured on a connection, its initial interval being ``initial``."""
    exact = _smoothed(flow, initial)
    times: list[float] = []
    averages: list[Smoothed] = []
    shortest, longest = math.inf, 0.0
    pairs = [*measured_polls(flow), *measured_calls(flow), *discarded(flow)]
    for asked, answered in sorted(pairs, key=_when):
        least, most = _measured(flow, asked, answered)
        shortest, longest = min(shortest, least), max(longest, most)
        apart = least / 2 if not times else 0.0, max(longest / 2, longest - shortest)
        averages.append(Smoothed((shortest, longest), apart))
        times.append(answered.time)
    return RoundTrips(times, exact.first, averages, longest, initial, exact)


def _smoothed(flow: Flow, initial: float) -> RoundTrips:
    return smoothed(flow, initial, [*measured_polls(flow), *measured_calls(flow)])


Pair = tuple[At, At]
"""A packet of the IUT and the packet whose arrival ends its measurement."""


def smoothed(flow: Flow, initial: float, pairs: Iterable[Pair]) -> RoundTrips:
    """What comes out if these are measured, and smoothed as STP-PL-009 says."""
    times: list[float] = []
    found: list[Smoothed] = []
    for asked, answered in sorted(pairs, key=_when):
        rtt = _measured(flow, asked, answered)
        first = Smoothed(rtt, (rtt[0] / 2, rtt[1] / 2))
        found.append(found[-1].then(rtt) if found else first)
        times.append(answered.time)
    earliest = min(times, default=math.inf)
    return RoundTrips(times, earliest, found, 0.0, initial, unread=DUE_S)


def _when(pair: Pair) -> int:
    return pair[1].frame


def _measured(flow: Flow, asked: At, answered: At) -> Bounds:
    rtt = answered.time - asked.time
    return max(rtt - flow.timing_error, 0.0), rtt + flow.timing_error + INSIDE_S


def discarded(flow: Flow) -> Iterator[Pair]:
    """POLLs and STATs to be discarded that name them: taking those is a matter of STP-PL-009."""
    polls = {poll.n_ps: poll for poll in flow.polls_sent}
    for report in flow.reports_heard:
        poll = polls.get(report.n_ps or 0)
        if report.fault and poll is not None and poll.frame < report.frame:
            yield poll, report


def measured_polls(flow: Flow) -> Iterator[Pair]:
    """POLLs and the STATs that are measured."""
    for poll in flow.polls_sent:
        # Only the first STAT with a number is measured.
        first = next((a for a in poll.answers if a.vt_pa < poll.n_ps), None)
        if first is not None:
            yield poll, first


def measured_calls(flow: Flow) -> Iterator[Pair]:
    """BEGINs that are measured, and their answers: a BEGIN that was sent twice is not."""
    for asked, answer in calls(flow):
        if len(asked) == 1:
            yield asked[0], answer


def calls(flow: Flow) -> Iterator[tuple[list[At], At]]:
    """The transmissions of each BEGIN of the IUT from these ports, and what answered them.

    BEGINs before a call anew belong to it. A BGAK that opens nothing is discarded, and no answer.
    """
    if not flow.iut_calls:
        return
    tries = [item for item in flow.same_ports if item.start <= flow.start]
    opened = [place for place, item in enumerate(tries[:-1]) if item.established is not None]
    tries = tries[opened[-1] + 1 :] if opened else tries
    passed = sorted((at for item in tries for at in item.passed), key=lambda at: at.frame)
    opening = {item.established for item in tries}
    begins: dict[int | None, list[At]] = {}
    for at in passed:
        stp = at.stp
        if not stp.wellformed:
            continue
        if at.outgoing and stp.type == BEGIN:
            begins.setdefault(stp.csn, []).append(at)
        elif not at.outgoing and stp.type in (BGAK, BGREJ):
            opens_nothing = stp.type == BGAK and at.time not in opening
            asked = [] if opens_nothing else begins.pop(stp.peer_csn, [])
            if asked:
                yield asked, at
