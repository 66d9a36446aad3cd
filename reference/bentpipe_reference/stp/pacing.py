"""Spreading SDs over the round-trip time (STP/1 section 7.4)."""

from __future__ import annotations

import math

from bentpipe_reference.stp.config import MOST_CREDIT, MSL_S, SD_OVERHEAD, StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.rtt import RoundTrip

DEPTH = 4
"""SDs that may leave at once (STP-CG-008, STP-CG-009)."""

TICK_S = 0.001
"""What the rate gives in that time may leave at once as well; STP-CG-008 permits ten times that."""

_LIFETIME_GAP_S = MSL_S / MOST_CREDIT
"""STP-DT-013: no more than 2^23 SDs in the life of a packet (section 8)."""


class Bucket:
    """A token bucket for packets that differ in size, but have a largest one.

    Args:
        tick: seconds of its rate that it holds beside :data:`DEPTH` packets.

    Attributes:
        rate: octets per second that it lets through, infinity for all.
    """

    def __init__(self, tick: float = 0.0) -> None:
        self.rate = math.inf
        self._tick = tick
        self._filled = 0.0  # octets, at _at
        self._at = 0.0

    def set_rate(self, rate: float, now: float) -> None:
        """From ``now`` on let ``rate`` octets per second through."""
        if self._filled:
            self._filled = max(0.0, self._filled - self.rate * (now - self._at))
        self._at, self.rate = now, rate

    def depth(self, largest: int) -> float:
        """Octets that it holds if ``largest`` are those of the largest packet."""
        return DEPTH * largest + self.rate * self._tick

    def has_room(self, largest: int) -> bool:
        """Whether a packet of ``largest`` octets may leave now."""
        # Rounding must not keep a driver from what it was woken for.
        return self._filled <= (DEPTH - 1) * largest + self.rate * (self._tick + 1e-9)

    def half_free_at(self, largest: int) -> float:
        """When half of it is free."""
        excess = self._filled - self.depth(largest) / 2
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
        self._window = Bucket(TICK_S)
        self._limit = None if self.limit() == math.inf else Bucket()

    def set_rates(self, now: float) -> None:
        """It is ``now``, in seconds; window and round-trip time may have changed."""
        self._window.set_rate(self.window_rate(), now)
        if self._limit is not None:
            self._limit.set_rate(self.limit(), now)

    def ready(self) -> bool:
        """Whether an SD may leave at the time given to :meth:`set_rates`."""
        room = self._window.has_room(self._congestion.smss)
        return room and (self._limit is None or self._limit.has_room(self._largest_packet()))

    @property
    def free_at(self) -> float:
        """When the next SD is to leave, seconds; after :meth:`set_rates`.

        That is when half of a bucket is free, so that a driver may come late by as much.
        """
        free_at = self._window.half_free_at(self._congestion.smss)
        if self._limit is None:
            return free_at
        return max(free_at, self._limit.half_free_at(self._largest_packet()))

    def _largest_packet(self) -> int:
        """Octets of an IP packet with an SDP."""
        return self._congestion.smss + SD_OVERHEAD + self._config.overhead

    def sent(self, octets: int) -> None:
        """An SD with ``octets`` of user data has left, as :meth:`ready` has let it."""
        if self._window.rate < math.inf:
            self._window.take(max(octets, self._window.rate * _LIFETIME_GAP_S))
        if self._limit is not None:
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
