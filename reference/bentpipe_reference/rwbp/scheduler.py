"""Whose turn it is: round robin by packets, or deficit round robin (section 9.2).

The cost of a turn does not depend on how many flows there are. A flow that could not send and now
can costs the logarithm of how many others have become so and wait.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Protocol

from bentpipe_reference.tcp.wire.segment import Segment


class Flow(Protocol):
    """What takes turns."""

    def can_send(self) -> bool:
        """Whether it can use a turn now."""

    def next_octets(self) -> int:
        """Octets of the IP packet that it would send; only while it can send."""

    def serve(self, now: float, /) -> Segment:
        """The segment of one turn; only while it can send."""


class Entry:
    """A flow's place in the ring.

    Attributes:
        flow: whose place it is.
        place: rises with the order in which the flows were opened.
        deficit: DEFICIT, octets, of deficit round robin.
    """

    __slots__ = ("deficit", "flow", "place", "queued", "removed")

    def __init__(self, flow: Flow, place: int) -> None:
        self.flow = flow
        self.place = place
        self.deficit = 0
        self.queued = False
        self.removed = False


class Round:
    """Flows that may be able to send, by their places: those served before need no sorting.

    Attributes:
        served: flows that have had a turn in the round before, one behind the other.
        woken: a heap of the others, by place.
    """

    __slots__ = ("served", "woken")

    def __init__(self) -> None:
        self.served: deque[Entry] = deque()
        self.woken: list[tuple[int, Entry]] = []

    def pop(self) -> Entry:
        """Take out the flow with the lowest place."""
        served, woken = self.served, self.woken
        if woken and (not served or woken[0][0] < served[0].place):
            return heappop(woken)[1]
        return served.popleft()


class RoundRobin:
    """A turn is one packet (RWBP-SC-001, RWBP-SC-002).

    Flows that may be able to send wait in two rounds: those whose turn comes in this one, behind
    the one served last, and those of the next. One that cannot is passed over when its turn comes.
    """

    def __init__(self) -> None:
        self._places = 0
        self._last = -1
        self._round = Round()
        self._next_round = Round()

    def add(self, flow: Flow) -> Entry:
        """Open a flow: its place is behind that of all others."""
        self._places += 1
        return Entry(flow, self._places)

    def remove(self, entry: Entry) -> None:
        """A flow leaves the ring."""
        entry.removed = True

    def wake(self, entry: Entry) -> bool:
        """A flow may be able to send; to be called whenever something has happened to it.

        Returns:
            Whether it did not wait for a turn before.
        """
        if entry.queued or entry.removed:
            return False
        entry.queued = True
        later = entry.place <= self._last
        heappush((self._next_round if later else self._round).woken, (entry.place, entry))
        return True

    def _queue(self, entry: Entry) -> None:
        """The flow whose turn is over has another one in the next round."""
        entry.queued = True
        self._next_round.served.append(entry)

    def take(self, now: float) -> Segment | None:
        """The packet of the next turn, None when no flow can send."""
        entry = self._next()
        if entry is None:
            return None
        self.served(entry)
        segment = entry.flow.serve(now)
        self._queue(entry)
        return segment

    def served(self, entry: Entry) -> None:
        """A turn begins: the ring goes on behind this flow."""
        self._last = entry.place

    def _next(self) -> Entry | None:
        """The first flow behind the one served last that can send; it leaves its heap."""
        last = self._last
        while True:
            current = self._round
            while current.served or current.woken:
                entry = current.pop()
                entry.queued = False
                if not entry.removed and entry.flow.can_send():
                    return entry
            following = self._next_round
            if not (following.served or following.woken):
                self._last = last
                return None
            self._round, self._next_round = following, current
            self._last = -1


class DeficitRoundRobin(RoundRobin):
    """A turn is a quantum of octets (RWBP-SC-003).

    Args:
        quantum: QUANTUM; at least the largest IP packet of any flow.
    """

    def __init__(self, quantum: int) -> None:
        super().__init__()
        self._quantum = quantum
        self._turn: Entry | None = None

    def take(self, now: float) -> Segment | None:
        """The next packet of the turn, or of the next turn; None when no flow can send."""
        while (entry := self._current()) is not None:
            flow = entry.flow
            octets = flow.next_octets()
            if octets > entry.deficit:
                self._turn = None
                self._queue(entry)
                continue
            entry.deficit -= octets
            segment = flow.serve(now)
            if not flow.can_send():
                self._end_idle(entry)
            return segment
        return None

    def _current(self) -> Entry | None:
        entry = self._turn
        if entry is not None and (entry.removed or not entry.flow.can_send()):
            self._end_idle(entry)
        if self._turn is None and (following := self._next()) is not None:
            self.served(following)
            following.deficit += self._quantum
            self._turn = following
        return self._turn

    def _end_idle(self, entry: Entry) -> None:
        """The turn of a flow that cannot send any more ends, and its deficit is gone."""
        entry.deficit = 0
        self._turn = None

    def wake(self, entry: Entry) -> bool:
        """See :class:`RoundRobin`; whose turn it is needs no place in the heaps."""
        return entry is not self._turn and super().wake(entry)
