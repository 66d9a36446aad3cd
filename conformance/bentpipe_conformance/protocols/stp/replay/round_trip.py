"""What the IUT can have measured of the round-trip time (STP-PL-009).

Its smoothed value is hidden, but it is an average of measurements that the packets show, and so
lies between the shortest and the longest of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import Flow

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.02, 2.0
"""Bounds of the poll interval (STP-PL-001)."""

LEAST_SILENCE_S, MOST_SILENCE_S = 0.2, 15.0
"""The shortest silence time, and the longest after doublings (STP-PL-007)."""

FIRST_WAIT_S = {"geo": 1.0, "leo": 1.0, "vbdc": 3.0}
"""First wait of Timer_CC, and the initial interval, by path class (section 8)."""


def first_wait(ics: Mapping[str, Any]) -> float:
    """The first wait of the path class that the IUT's timers are set for, seconds."""
    return FIRST_WAIT_S[ics.get("path_class", "geo")]


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The measurements of one connection, in order of time.

    Attributes:
        times: when each was made.
        shortest: the shortest up to then, seconds.
        longest: the longest up to then, seconds.
        initial: the initial interval, seconds (section 8).
    """

    times: tuple[float, ...]
    shortest: tuple[float, ...]
    longest: tuple[float, ...]
    initial: float

    def bounds(self, time: float) -> tuple[float, float] | None:
        """Bounds of the smoothed round-trip time at ``time``; None without a measurement."""
        at = bisect_right(self.times, time)
        return (self.shortest[at - 1], self.longest[at - 1]) if at else None

    def interval(self, time: float) -> tuple[float, float]:
        """Bounds of the poll interval at ``time``, seconds (STP-PL-001)."""
        bounds = self.bounds(time)
        if bounds is None:
            return self.initial, self.initial
        low, high = (min(max(rtt / 3, LEAST_INTERVAL_S), MOST_INTERVAL_S) for rtt in bounds)
        return low, high

    def latest(self, time: float) -> float:
        """When a poll interval has passed since ``time`` at the latest; a change holds at once."""
        due = time + self.interval(time)[1]
        for measured in self.times[bisect_right(self.times, time) :]:
            if measured > due:
                break
            due = max(measured, time + self.interval(measured)[1])
        return due

    def silence(self, time: float) -> tuple[float, float]:
        """Bounds of the silence time at ``time``, before it is doubled, seconds (STP-PL-007).

        The deviation begins at half the first measurement, and is then an average of distances
        between measurements and averages of them (RFC 6298 section 2).
        """
        bounds = self.bounds(time)
        if bounds is None:
            return self.initial, self.initial
        low, high = bounds
        least, most = self.interval(time)
        deviation = max(high / 2, high - low)
        return (
            max(low + least, LEAST_SILENCE_S),
            max(high + max(4 * deviation, most), LEAST_SILENCE_S),
        )


def round_trips(flow: Flow, initial: float = FIRST_WAIT_S["geo"]) -> RoundTrips:
    """What the IUT can have measured on a connection, its initial interval being ``initial``."""
    measured = sorted(
        (answered.time, max(answered.time - asked.time + error, 0.0))
        for asked, answered in _pairs(flow)
        for error in (-flow.timing_error, flow.timing_error)
    )
    rtts = [rtt for _, rtt in measured]
    times = tuple(time for time, _ in measured)
    return RoundTrips(times, tuple(accumulate(rtts, min)), tuple(accumulate(rtts, max)), initial)


def _pairs(flow: Flow) -> Iterator[tuple[At, At]]:
    """Packets of the IUT and their answers that can be measured."""
    for poll in flow.polls_sent:
        # Only the first STAT with a number is measured.
        first = next((a for a in poll.answers if a.vt_pa < poll.n_ps), None)
        if first is not None:
            yield poll, first
    if flow.iut_calls:
        yield from _calls(flow)


def _calls(flow: Flow) -> Iterator[tuple[At, At]]:
    """BEGINs of the IUT from these ports, those before a call anew too, and what answered them."""
    passed = sorted((at for item in flow.same_ports for at in item.passed), key=lambda at: at.frame)
    begins: dict[int | None, list[At]] = {}
    for at in passed:
        stp = at.stp
        if not stp.wellformed:
            continue
        if at.outgoing and stp.type == BEGIN:
            begins.setdefault(stp.csn, []).append(at)
        elif not at.outgoing and stp.type in (BGAK, BGREJ):
            asked = begins.pop(stp.peer_csn, [])
            if len(asked) == 1:  # a BEGIN that was sent twice gives no measurement
                yield asked[0], at
