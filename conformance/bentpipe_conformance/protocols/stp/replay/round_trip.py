"""What the IUT can have measured of the round-trip time (STP-PL-009).

Its smoothed value is hidden, but it is an average of measurements that the packets show, and so
lies between the shortest and the longest of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, C, Stp
from bentpipe_conformance.protocols.stp.replay.flow import Flow

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.05, 2.0
"""Bounds of the poll interval (STP-PL-001)."""

LEAST_SILENCE_S, MOST_BACKED_OFF_S = 1.0, 60.0
MOST_PROBING_S = 15.0
"""The shortest silence time, and the longest time between POLLs in silence (STP-PL-007)."""

INITIAL_INTERVAL_S = {"geo": 1.0, "leo": 1.0, "vbdc": 3.0}
"""Between POLLs before the first measurement, by path class (section 8)."""


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
        """Between what the smoothed round-trip time lies at ``time``; None without measurement."""
        at = bisect_right(self.times, time)
        return (self.shortest[at - 1], self.longest[at - 1]) if at else None

    def interval(self, time: float) -> tuple[float, float]:
        """Between what the poll interval lies at ``time``, seconds."""
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


def round_trips(flow: Flow, path_class: str = "geo") -> RoundTrips:
    """What the IUT can have measured on a connection."""
    times: list[float] = []
    shortest: list[float] = []
    longest: list[float] = []
    for time, rtt in sorted(_measurements(flow)):
        times.append(time)
        shortest.append(min(rtt, shortest[-1]) if shortest else rtt)
        longest.append(max(rtt, longest[-1]) if longest else rtt)
    initial = INITIAL_INTERVAL_S.get(path_class, INITIAL_INTERVAL_S["vbdc"])
    return RoundTrips(tuple(times), tuple(shortest), tuple(longest), initial)


def _measurements(flow: Flow) -> Iterator[tuple[float, float]]:
    """When each was made, and how long it was, give or take the timing error."""
    for poll in flow.polls_sent:
        # Only the first STAT with a number is measured.
        first = next((a for a in poll.answers if a.vt_pa < poll.n_ps), None)
        if first is not None:
            yield from _within_error(first.time, first.time - poll.time, flow.timing_error)
    asked = [
        packet
        for packet in flow.packets
        if packet.outgoing
        and packet.content is not None
        and (packet.content.type == BEGIN or _asks(packet.content))
    ]
    answered = next((packet for packet in flow.bgaks if not packet.outgoing), None)
    if answered is not None:
        earlier = [packet.time for packet in asked if packet.time < answered.time]
        # If it was sent twice, an implementation has to take no measurement.
        if len(earlier) == 1:
            yield from _within_error(answered.time, answered.time - earlier[0], flow.timing_error)


def _asks(stp: Stp) -> bool:
    return stp.type == BGAK and not stp.fault and bool(stp.flags & C)


def _within_error(time: float, rtt: float, error: float) -> Iterator[tuple[float, float]]:
    yield time, max(rtt - error, 0.0)
    yield time, rtt + error
