"""Spreading SDs over the round-trip time (STP/1 section 7.4)."""

from __future__ import annotations

import math

from bentpipe_reference.stp.config import MOST_CREDIT, MSL_S, StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.rtt import RoundTrip

TICK_S = 0.005
"""Half of the longest tick of STP-CG-008, so that two of them make one."""

_LIFETIME_GAP_S = MSL_S / MOST_CREDIT
"""STP-DT-013: no more than 2^23 SDs in the life of a packet (section 8)."""

_BURST = 4
"""SDs that may always leave in one tick (STP-CG-008)."""

_AHEAD, _AT_ONCE = 3, 2
"""At a maximum rate SDs may be three packets ahead of schedule, so that four can leave at once
(STP-CG-009); a driver is woken when two can, so that a late one can catch up by two."""


class Pacer:
    """Says when the next SD may leave.

    SDs are scheduled singly; those due within one tick leave together. A driver that wakes up late
    may catch up by one tick, and after a pause four SDs may leave at once (STP-CG-008). A maximum
    rate has a schedule of its own, since no pause permits exceeding it.
    """

    def __init__(self, config: StpConfig, congestion: Congestion, rtt: RoundTrip) -> None:
        self._config = config
        self._congestion = congestion
        self._rtt = rtt
        self._spread_at = -math.inf  # when the window's schedule has its next SD
        self._clear_at = -math.inf  # when all SDs sent would have left at the maximum rate
        self._now = -math.inf
        self._tick_end = -math.inf

    @property
    def free_at(self) -> float:
        """When the next SD is to leave, seconds."""
        ahead = (_AHEAD + 1 - _AT_ONCE) * self.rate_gap(self._congestion.smss)
        return max(self._spread_at, self._clear_at - ahead)

    def ready(self, now: float) -> bool:
        """Whether an SD may leave now."""
        self._now = now
        if now < self._clear_at - _AHEAD * self.rate_gap(self._congestion.smss):
            return False
        if now < self._tick_end:
            return self._spread_at < self._tick_end
        if now < self._spread_at:
            return False
        if now - self._spread_at > TICK_S:
            self._spread_at = max(self._spread_at, now - self.burst())
        self._tick_end = now + TICK_S
        return True

    def burst(self) -> float:
        """How far the schedule may lag after a pause: enough for four SDs in a tick."""
        gap = self.gap(self._congestion.smss)
        return max(0.0, min((_BURST - 1) * gap, _BURST * gap - TICK_S))

    def sent(self, octets: int) -> None:
        """An SD with ``octets`` of user data has left, as :meth:`ready` has let it."""
        self._spread_at += self.gap(octets)
        self._clear_at = max(self._clear_at, self._now) + self.rate_gap(octets)

    def gap(self, octets: int) -> float:
        """Seconds until the SD after one of ``octets``, maximum rate aside."""
        return max(self.window_gap(max(octets, 1)), _LIFETIME_GAP_S)

    def window_gap(self, octets: int) -> float:
        """STP-CG-008, seconds."""
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
        """STP-CG-009: seconds for a packet and its headers at the maximum rate; 0 without one."""
        rate = self._config.max_rate
        return 0.0 if rate is None else 8 * (octets + 20 + self._config.overhead) / rate
