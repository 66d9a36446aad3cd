"""Paths from the initial states of a graph that together take every edge."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from bentpipe_conformance.models.graph import Edge

_Member = TypeVar("_Member", bound=Hashable)

Route = list[int]
"""Numbers of edges, from an initial state on."""


class Cover:
    """What is left to cover of a graph.

    Each path goes to the uncovered edge that is farthest from the initial states, and from there on
    along uncovered edges as long as there are any: the deepest edges come first, because their
    paths have made most choices. Paths cost time in proportion to their length.

    Attributes:
        uncovered: edges not yet taken that can be reached.
    """

    def __init__(self, initial: Iterable[int], edges: Sequence[Edge], states: int) -> None:
        """Prepare the cover of ``edges`` between states ``0 .. states - 1``."""
        self._edges = edges
        self._leaving: list[list[int]] = [[] for _ in range(states)]
        for number, edge in enumerate(edges):
            self._leaving[edge.source].append(number)
        self._entered_by: list[int | None] = [None] * states
        order = self._search(initial)
        self._order = [number for state in order for number in self._leaving[state]]
        self.uncovered = set(self._order)
        self._open = [list(numbers) for numbers in self._leaving]

    def _search(self, initial: Iterable[int]) -> list[int]:
        """States breadth first, so that what each is entered by gives a shortest path."""
        order: list[int] = []
        known: set[int] = set()
        queue = deque(initial)
        known.update(queue)
        while queue:
            state = queue.popleft()
            order.append(state)
            for number in self._leaving[state]:
                target = self._edges[number].target
                if target not in known:
                    known.add(target)
                    self._entered_by[target] = number
                    queue.append(target)
        return order

    def next_path(self) -> Route | None:
        """A path through an uncovered edge, marked as covered; None when all edges are."""
        while self._order and self._order[-1] not in self.uncovered:
            self._order.pop()
        if not self._order:
            return None
        first = self._order[-1]
        path = [*self._path_to(self._edges[first].source), first]
        self.mark(path)
        state = self._edges[first].target
        while (number := self._uncovered_from(state)) is not None:
            path.append(number)
            self.uncovered.discard(number)
            state = self._edges[number].target
        return path

    def mark(self, edges: Iterable[int]) -> None:
        """Count edges as covered."""
        self.uncovered.difference_update(edges)

    def _path_to(self, state: int) -> Route:
        path: Route = []
        while (number := self._entered_by[state]) is not None:
            path.append(number)
            state = self._edges[number].source
        return path[::-1]

    def _uncovered_from(self, state: int) -> int | None:
        todo = self._open[state]
        while todo:
            if (number := todo.pop()) in self.uncovered:
                return number
        return None


def covering_paths(initial: Iterable[int], edges: Sequence[Edge], states: int) -> list[Route]:
    """Paths from initial states that together take every edge that can be reached."""
    cover = Cover(initial, edges, states)
    paths = []
    while (path := cover.next_path()) is not None:
        paths.append(path)
    return paths


def set_cover(reached: Sequence[frozenset[_Member]]) -> list[tuple[int, int]]:
    """A selection of sets whose union is that of all, greedily: largest contribution first.

    Returns:
        Positions in ``reached`` with the number of members each adds to those before it.
    """
    missing: set[_Member] = set().union(*reached)
    rest = dict(enumerate(reached))
    gain = {at: len(members) for at, members in rest.items()}
    chosen = []
    while missing:
        # Gains only shrink, so a recomputed one that still leads the stale others is the largest.
        while True:
            at = max(gain, key=lambda key: (gain[key], -key))
            now = len(rest[at] & missing)
            if now == gain[at]:
                break
            gain[at] = now
        chosen.append((at, now))
        missing -= rest.pop(at)
        del gain[at]
    return chosen
