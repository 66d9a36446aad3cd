"""When each of many things has to be looked at next."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class Agenda(Generic[Item]):
    """Items by their deadlines; a later deadline of the same item needs no new plan."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._planned: dict[Item, float] = {}
        self._plans = 0

    def plan(self, item: Item, due: float | None) -> None:
        """Look at ``item`` at ``due``, or earlier if that was planned before."""
        if due is None or due >= self._planned.get(item, due + 1):
            return
        self._planned[item] = due
        self._plans += 1
        heappush(self._heap, (due, self._plans, item))

    def cancel(self, item: Item) -> None:
        """Do not look at ``item`` any more."""
        self._planned.pop(item, None)

    def next_deadline(self) -> float | None:
        """The first deadline, None when nothing is planned."""
        heap, planned = self._heap, self._planned
        while heap and planned.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now: float) -> Iterator[Item]:
        """The items whose time has come, each of which has to be planned anew."""
        while (first := self.next_deadline()) is not None and first <= now:
            item = heappop(self._heap)[2]
            del self._planned[item]
            yield item
