"""Spreading SDs over the round-trip time (STP/1 section 7.4)."""

from __future__ import annotations

import math

from bentpipe_reference.stp.config import MOST_CREDIT, MSL_S, SD_OVERHEAD, StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.rtt import RoundTrip

DEPTH = 4
"""SDs that may leave at once (STP-CG-008, STP-CG-009)."""

_AT_ONCE = 2
"""A driver is woken when two SDs may leave, so that it may come late by as many."""

_LIFETIME_GAP_S = MSL_S / MOST_CREDIT
"""STP-DT-013: no more than 2^23 SDs in the life of a packet (section 8)."""


class Bucket:
    """A token bucket for :data:`DEPTH` packets, which may differ in size, but have a largest one.

    Attributes:
        rate: octets per second that it lets through, infinity for all.
    """

    def __init__(self) -> None:
        self.rate = math.inf
        self._filled = 0.0  # octets, at _at
        self._at = 0.0

    def set_rate(self, rate: float, now: float) -> None:
        """From ``now`` on let ``rate`` octets per second through."""
        drained = math.inf if self.rate == math.inf else self.rate * (now - self._at)
        self._filled = max(0.0, self._filled - drained)
        self._at, self.rate = now, rate

    def free_at(self, largest: int, packets: int) -> float:
        """When ``packets`` packets of ``largest`` octets may leave at once."""
        excess = self._filled - (DEPTH - packets) * largest
        return -math.inf if excess <= 0 else self._at + excess / self.rate

    def take(self, octets: float) -> None:
        """A packet leaves."""
        self._filled += octets


class Pacer:
    """Says when the next SD may leave: by the window, and by a maximum rate, if there is one."""

    def __init__(self, config: StpConfig, congestion: Congestion, rtt: RoundTrip) -> None:
        self._config = config
        self._congestion = congestion
        self._rtt = rtt
        self._window, self._limit = Bucket(), Bucket()

    def ready(self, now: float) -> bool:
        """Whether an SD may leave now."""
        self._window.set_rate(self.window_rate(), now)
        self._limit.set_rate(self.limit(), now)
        # Rounding must not keep a driver from what it was woken for.
        return self._free_at(1) <= now + 1e-9

    @property
    def free_at(self) -> float:
        """When the next SD is to leave, seconds; after :meth:`ready`."""
        return self._free_at(_AT_ONCE)

    def _free_at(self, packets: int) -> float:
        smss = self._congestion.smss
        whole = smss + SD_OVERHEAD + self._config.overhead
        return max(self._window.free_at(smss, packets), self._limit.free_at(whole, packets))

    def sent(self, octets: int) -> None:
        """An SD with ``octets`` of user data has left, as :meth:`ready` has let it."""
        if self._window.rate < math.inf:
            self._window.take(max(octets, self._window.rate * _LIFETIME_GAP_S))
        if self._limit.rate < math.inf:
            self._limit.take(octets + SD_OVERHEAD + self._config.overhead)

    def window_rate(self) -> float:
        """STP-CG-008: octets of user data per second."""
        srtt = self._rtt.srtt
        return self.gain() * self._congestion.cwnd / srtt if srtt else math.inf

    def gain(self) -> float:
        """STP-CG-008: g."""
        return 2.0 if self._congestion.in_slow_start else 0.9

    def limit(self) -> float:
        """STP-CG-009: octets of IP packets per second."""
        rate = self._config.max_rate
        return math.inf if rate is None else rate / 8
