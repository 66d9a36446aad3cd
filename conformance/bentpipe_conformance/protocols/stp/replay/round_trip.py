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

from bentpipe_conformance.protocols.stp.codec import BEGIN
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import Flow

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.05, 2.0
"""Bounds of the poll interval (STP-PL-001)."""

LEAST_SILENCE_S, MOST_BACKED_OFF_S = 1.0, 60.0
MOST_PROBING_S = 15.0
"""The shortest silence time, and the longest time between POLLs in silence (STP-PL-007)."""

FIRST_WAIT_S = {"geo": 1.0, "leo": 1.0, "vbdc": 3.0}
"""First wait of Timer_CC for a BGAK or ENDAK, and between POLLs before the first measurement, by
path class (section 8)."""


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
        initial: the poll interval before the first, seconds.
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
        """Bounds of the poll interval at ``time``, seconds."""
        bounds = self.bounds(time)
        if bounds is None:
            return self.initial, self.initial
        low, high = (min(max(rtt / 3, LEAST_INTERVAL_S), MOST_INTERVAL_S) for rtt in bounds)
        return low, high

    def with_deviation(self, time: float) -> float | None:
        """The most that the smoothed time plus four times its deviation can be, seconds.

        The deviation begins at half the first measurement, and is then an average of distances
        between measurements and averages of them (RFC 6298 section 2).
        """
        bounds = self.bounds(time)
        if bounds is None:
            return None
        low, high = bounds
        return high + 4 * max(high / 2, high - low)

    def silence(self, time: float) -> float:
        """The most that the silence time of STP-PL-007 can be at ``time``, seconds."""
        return max(LEAST_SILENCE_S, (self.with_deviation(time) or 0.0) + self.interval(time)[1])


def round_trips(flow: Flow, initial: float = FIRST_WAIT_S["geo"]) -> RoundTrips:
    """What the IUT can have measured on a connection, its first wait being ``initial``."""
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
    answered = next((at for at in flow.bgaks if not at.outgoing), None)
    if answered is not None:
        asked = [at for at in flow.sent if at.stp.type == BEGIN and at.time < answered.time]
        # If it was sent twice, an implementation must not take a measurement.
        if len(asked) == 1:
            yield asked[0], answered
