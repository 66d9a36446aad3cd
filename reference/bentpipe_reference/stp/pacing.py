"""Spreading SDs over the round-trip time (STP/1 section 7.4)."""

from __future__ import annotations

import math
from collections.abc import Iterator

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
        if self.rate == math.inf:
            self._filled = 0.0
        elif self._filled:
            self._filled = max(0.0, self._filled - self.rate * (now - self._at))
        self._at, self.rate = now, rate

    def depth(self, largest: int) -> float:
        """Octets that it holds if ``largest`` are those of the largest packet."""
        return DEPTH * largest + self.rate * self._tick

    def falls_to(self, octets: float) -> float:
        """When so many octets are in it, or fewer."""
        excess = self._filled - octets
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

    def ready(self, now: float) -> bool:
        """Whether an SD may leave now."""
        self._window.set_rate(self.window_rate(), now)
        if self._limit is not None:
            self._limit.set_rate(self.limit(), now)
        # Rounding must not keep a driver from what it was woken for.
        return all(
            bucket.falls_to(bucket.depth(largest) - largest) <= now + 1e-9
            for bucket, largest in self._buckets()
        )

    @property
    def free_at(self) -> float:
        """When the next SD is to leave, seconds; after :meth:`ready`.

        That is when half of a bucket is free, so that a driver may come late by as much.
        """
        times = (bucket.falls_to(bucket.depth(size) / 2) for bucket, size in self._buckets())
        return max(times, default=-math.inf)

    def _buckets(self) -> Iterator[tuple[Bucket, int]]:
        """The buckets in use, and the octets of the largest packet in each."""
        smss = self._congestion.smss
        if self._window.rate < math.inf:
            yield self._window, smss
        if self._limit is not None:
            yield self._limit, smss + SD_OVERHEAD + self._config.overhead

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
