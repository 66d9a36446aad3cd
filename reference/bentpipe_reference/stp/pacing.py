"""Spreading SDs over the round-trip time (STP/1 section 7.4)."""

from __future__ import annotations

import math

from bentpipe_reference.stp.config import MOST_CREDIT, MSL_S, StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.rtt import RoundTrip

TICK_S = 0.005
"""Half of the longest tick of STP-CG-008, so that two of them make one."""

_BURST = 4
"""SDs that may always leave in one tick (STP-CG-008)."""

_PACKETS_AT_LIMIT = 2
"""SDs per tick at a maximum rate; with as many of catching up they are STP-CG-009's four."""


class Pacer:
    """Says when the next SD may leave.

    The schedule is that of single SDs; where they are closer than a tick, those of one tick leave
    together. A driver that wakes up late may catch up by one tick, and after a pause four SDs may
    leave at once (STP-CG-008).

    Attributes:
        free_at: when the schedule has its next SD, seconds.
    """

    def __init__(self, config: StpConfig, congestion: Congestion, rtt: RoundTrip) -> None:
        self._config = config
        self._congestion = congestion
        self._rtt = rtt
        self.free_at = -math.inf
        self._tick_end = -math.inf
        self._tick = TICK_S

    def ready(self, now: float) -> bool:
        """Whether an SD may leave now."""
        if now < self._tick_end:
            return self.free_at < self._tick_end
        if now < self.free_at:
            return False
        if now - self.free_at > self._tick:
            self.free_at = max(self.free_at, now - self.burst())
        self._tick_end = now + self._tick
        return True

    def burst(self) -> float:
        """What the schedule may be behind after a pause: as much as makes four SDs of a tick."""
        gap = self.gap(self._congestion.smss)
        return max(0.0, min((_BURST - 1) * gap, _BURST * gap - self._tick))

    def sent(self, octets: int) -> None:
        """An SD with ``octets`` of user data has left."""
        self.free_at += self.gap(octets)

    def gap(self, octets: int) -> float:
        """Seconds until the SD after one of ``octets``."""
        return max(self.window_gap(max(octets, 1)), self.rate_gap(octets), self.lifetime_gap())

    def lifetime_gap(self) -> float:
        """STP-DT-013: no more than 2^23 SDs in the life of a packet (section 8)."""
        return MSL_S / MOST_CREDIT

    def window_gap(self, octets: int) -> float:
        """STP-CG-008. Where POLLs are rarer than round trips, their interval counts."""
        period = self.period()
        return 0.0 if period is None else period * octets / (self.gain() * self._congestion.cwnd)

    def period(self) -> float | None:
        """The time over which a window is spread, seconds; None while it is not known."""
        srtt = self._rtt.srtt
        return None if srtt is None else max(srtt, 0.05)

    def gain(self) -> float:
        """STP-CG-008: g."""
        return 2.0 if self._congestion.in_slow_start else 1.25

    def rate_gap(self, octets: int) -> float:
        """STP-CG-009: the maximum rate, of whole IP packets."""
        rate = self._config.max_rate
        if rate is None:
            return 0.0
        gap = 8 * (octets + 20 + self._config.overhead) / rate
        self._tick = min(TICK_S, _PACKETS_AT_LIMIT * gap)
        return gap
