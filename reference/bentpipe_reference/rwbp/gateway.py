"""The gateway of a satellite link: two queues, and credit for the lower one (section 9.4)."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Generic, TypeVar

from bentpipe_reference.rwbp.credit import COUNTS, EPOCHS, REFRESH, CreditFrame

Item = TypeVar("Item")

LEAST_OCTETS = 20
"""Of an IPv4 packet."""


class Gateway(Generic[Item]):
    """Serialises packets onto the link: those of high priority first, TCP's after them.

    Args:
        rate_bit_s: the rate of the link, bits per second.
        low_places: packets that the low-priority queue holds.
        high_places: packets that the high-priority queue holds.
        epoch: in which its counts begin.

    Attributes:
        dropped: packets that found the low-priority queue full, which credit prevents.
        dropped_high: packets that found the high-priority queue full.
        longest: most packets that the low-priority queue ever held.
    """

    def __init__(
        self, rate_bit_s: float, low_places: int, high_places: int = 0, *, epoch: int = 0
    ) -> None:
        self.dropped = 0
        self.dropped_high = 0
        self.longest = 0
        self._rate = rate_bit_s
        self._low: deque[tuple[Item, int]] = deque()
        self._high: deque[tuple[Item, int]] = deque()
        self._low_octets = 0
        self._low_places = low_places
        self._high_places = high_places
        self._epoch = epoch & EPOCHS.mask
        self._arrived = 0
        self._left = 0
        self._serving: tuple[Item, int] | None = None
        self._done_at = 0.0
        self._out: list[tuple[float, Item, int]] = []
        self._told_at = 0.0
        self._told_left = -low_places

    def take(self, item: Item, octets: int, now: float) -> bool:
        """A TCP packet arrives; whether the low-priority queue takes it."""
        if self._done_at <= now:
            self._serve(now)
        if len(self._low) >= self._low_places:
            self.dropped += 1
            return False
        self._arrived += 1
        self._low.append((item, octets))
        self._low_octets += octets
        if len(self._low) > self.longest:
            self.longest = len(self._low)
        if self._serving is None:
            self._serve(now)
        return True

    def take_high(self, item: Item, octets: int, now: float) -> bool:
        """Another packet arrives; whether the high-priority queue takes it."""
        self._serve(now)
        if len(self._high) >= self._high_places:
            self.dropped_high += 1
            return False
        self._high.append((item, octets))
        self._serve(now)
        return True

    @property
    def waiting(self) -> int:
        """Packets in the low-priority queue."""
        return len(self._low)

    def transmit(self, now: float) -> list[Item]:
        """The packets whose last bit has left."""
        return [item for _, item, _ in self.departures(now)]

    def departures(self, now: float) -> list[tuple[float, Item, int]]:
        """When the last bit of each packet has left, and its octets; what was not told before."""
        self._serve(now)
        out, self._out = self._out, []
        return out

    def frame_due(self, now: float) -> CreditFrame | None:
        """The frame to send now, None when none is due (RWBP-LC-009)."""
        self._serve(now)
        if self._missing() > 0 and now < self._told_at + REFRESH:
            return None
        self._told_at, self._told_left = now, self._left
        return self.frame()

    def frame(self) -> CreditFrame:
        """What the gateway grants: the places that are and have become free (RWBP-LC-010)."""
        limit = self._left + self._low_places
        return CreditFrame(self._epoch, self._arrived & COUNTS.mask, limit & COUNTS.mask)

    def _missing(self) -> int:
        """Places that must yet become free until a frame is due for them: a quarter of all."""
        return -(-self._low_places // 4) - (self._left - self._told_left)

    def next_deadline(self) -> float:
        """When something leaves, or a frame is due."""
        refresh = self._told_at + REFRESH
        return refresh if self._serving is None else min(self._done_at, refresh)

    def frame_deadline(self) -> float:
        """A moment before which no frame is due, unless a packet finds the link idle.

        Whoever looks again then, and at the deadline that follows, meets each frame's moment.
        """
        refresh = self._told_at + REFRESH
        if self._serving is None:
            return refresh
        behind = self._missing() - 1
        if behind <= len(self._low):
            octets = sum(octets for _, octets in islice(self._low, behind))
        else:
            octets = self._low_octets + LEAST_OCTETS * (behind - len(self._low))
        return min(refresh, self._done_at + 8 * octets / self._rate)

    def restart(self) -> None:
        """Forget all packets; the counts begin anew in the next epoch."""
        self._low.clear()
        self._low_octets = 0
        self._high.clear()
        self._serving = None
        self._epoch = self._epoch + 1 & EPOCHS.mask
        self._arrived = self._left = 0
        self._told_left = -self._low_places

    def _serve(self, now: float) -> None:
        while True:
            if self._serving is not None:
                if self._done_at > now:
                    return
                self._out.append((self._done_at, *self._serving))
                self._serving = None
            elif self._done_at < now:
                self._done_at = now
            if self._high:
                served = self._high.popleft()
            elif self._low:
                served = self._low.popleft()
                self._low_octets -= served[1]
                self._left += 1
            else:
                return
            self._serving = served
            self._done_at += 8 * served[1] / self._rate
