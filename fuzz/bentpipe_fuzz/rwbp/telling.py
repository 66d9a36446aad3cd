"""What a tester says of what has arrived: some of it, as if the rest were missing or late."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe_conformance.protocols.rwbp.connection import Connection
from bentpipe_reference.common.ranges import Range, RangeSet

MOST_BEFORE = 3
"""Blocks of before that are listed again at most."""


class Told:
    """What has been said on a connection; see :meth:`.player.Player.tell`.

    Attributes:
        number: the offset that has been acknowledged.
        blocks: those that the last report lists.
    """

    def __init__(self, connection: Connection) -> None:
        self.number = self._delivered = connection.delivered
        self.blocks: list[Range] = []
        self._beyond = RangeSet()

    def is_old(self, connection: Connection) -> bool:
        """Whether something else has been said since, which was the truth."""
        return self._delivered != connection.delivered

    def report(
        self, connection: Connection, ack: int, hole: int, held: int, *, known: bool
    ) -> None:
        """Look at what has arrived, and choose what to say of it."""
        connection.collect(0.0)
        self._delivered = connection.delivered
        ends = [*self._ends(connection)]
        if ack > 0 and ends:
            self.number = ends[min(ack, len(ends)) - 1]
        reached = (b for a, b in self._beyond.snapshot() if a <= self.number < b)
        self.number = next(reached, self.number)
        self._beyond.remove_below(self.number)
        before = self._beyond.snapshot()[-MOST_BEFORE:] if known else ()
        places = [self.number, *(end for end in ends if end > self.number)]
        self.blocks = []
        if held > 0 and hole + 1 < len(places):
            last = min(hole + held, len(places) - 1)
            self.blocks = [(places[hole], places[last])]
            self._beyond.add(*self.blocks[0])
        self.blocks += before

    def _ends(self, connection: Connection) -> Iterable[int]:
        """Where the segments above the number end."""
        starts = sorted(connection.reception.seen)
        yield from (start for start in starts if start > self.number)
        if connection.highest > self.number:
            yield connection.highest
