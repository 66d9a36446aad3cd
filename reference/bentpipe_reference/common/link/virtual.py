"""One direction of a satellite link in virtual time."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, TypeVar

from bentpipe_reference.common.link.profile import Direction
from bentpipe_reference.common.sim import Simulation

Item = TypeVar("Item")


@dataclass(slots=True)
class LinkCounters:
    """The fates of the packets offered to a link.

    ``offered`` counts packets given to the link; each is either in one of the ``dropped``
    counts or reaches the far end, once or (``duplicated``) twice. ``delivered`` counts arrivals.
    """

    offered: int = 0
    offered_octets: int = 0
    delivered: int = 0
    dropped_by_list: int = 0
    dropped_at_random: int = 0
    dropped_by_bit_error: int = 0
    dropped_by_queue: int = 0
    reordered: int = 0
    duplicated: int = 0
    longest_queue: int = 0


class VirtualLink(Generic[Item]):
    """Rate limiter with a FIFO queue and tail drop, then a delay line with faults.

    Losses happen on entry, before the queue, as in netem. The order of the random draws depends
    only on the offered packets and the seed, so a run repeats exactly.

    Args:
        simulation: the clock and event queue.
        direction: rate, delay, queue and random faults.
        deliver: called at the far end with each arriving item.
        seed: seed of this link's own random numbers.

    Attributes:
        drops: numbers of the offered packets to drop, counting from 1.
    """

    def __init__(
        self,
        simulation: Simulation,
        direction: Direction,
        deliver: Callable[[Item], None],
        seed: int = 0,
    ) -> None:
        self.direction = direction
        self.counters = LinkCounters()
        self.drops = set[int]()
        self._simulation = simulation
        self._deliver = deliver
        self._seed = seed
        self._starts: deque[float] = deque()
        self._free_at = 0.0

    @cached_property
    def _random(self) -> random.Random:
        """Made when it is first asked: most links have no faults, and cases have a new one each."""
        return random.Random(self._seed)

    @property
    def waiting(self) -> int:
        """Packets in the queue, without the one being serialised."""
        starts, now = self._starts, self._simulation.now
        while starts and starts[0] <= now:
            starts.popleft()
        return len(starts)

    def drop_next(self, *ordinals: int) -> None:
        """Drop packets counted from the next one to be offered, which is number 1."""
        self.drops.update(self.counters.offered + ordinal for ordinal in ordinals)

    def send(self, item: Item, size: int) -> None:
        """Offer one item of ``size`` octets to the link now."""
        counters = self.counters
        counters.offered += 1
        counters.offered_octets += size
        if self._is_lost(size):
            return
        arrival = self._serialised_at(size)
        if arrival is None:
            counters.dropped_by_queue += 1
            return
        direction = self.direction
        arrival += direction.delay_s
        if direction.reorder_probability and self._happens(direction.reorder_probability):
            counters.reordered += 1
            arrival += direction.reorder_delay_s
        self._simulation.call_at(arrival, partial(self._arrive, item))
        if direction.duplicate_probability and self._happens(direction.duplicate_probability):
            counters.duplicated += 1
            self._simulation.call_at(arrival, partial(self._arrive, item))

    def _happens(self, probability: float) -> bool:
        return self._random.random() < probability

    def _is_lost(self, size: int) -> bool:
        direction, counters = self.direction, self.counters
        if self.drops and counters.offered in self.drops:
            self.drops.discard(counters.offered)
            counters.dropped_by_list += 1
            return True
        if direction.loss_probability and self._happens(direction.loss_probability):
            counters.dropped_at_random += 1
            return True
        if direction.ber and self._random.random() >= (1.0 - direction.ber) ** (8 * size):
            counters.dropped_by_bit_error += 1
            return True
        return False

    def _serialised_at(self, size: int) -> float | None:
        """When the last bit leaves the rate limiter; None when the queue is full."""
        start = self._simulation.now
        direction = self.direction
        if direction.rate_bit_s is None:
            return start
        if self._free_at > start:
            start = self._free_at
            waiting = self.waiting
            if waiting >= direction.queue_packets:
                return None
            self._starts.append(start)
            self.counters.longest_queue = max(self.counters.longest_queue, waiting + 1)
        self._free_at = start = start + 8 * size / direction.rate_bit_s
        return start

    def _arrive(self, item: Item) -> None:
        self.counters.delivered += 1
        self._deliver(item)
