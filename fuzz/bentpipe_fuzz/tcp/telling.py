"""What a tester says of what has arrived: some of it, as if the rest were missing or late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bentpipe_conformance.engine.peer import BasePeer, pattern
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_fuzz.campaign.player import BasePlayer, verb

MOST_BLOCKS = 4
"""Blocks in a report at most; with timestamps one less has room."""

MOST_TIMES = 20
"""How often one step sends a segment at most."""

DATA_BESIDE = 1000
"""Octets of data at most in a segment with blocks."""


class Told:
    """What has been said on a connection; see :meth:`TellingPlayer.tell`.

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
        most = MOST_BLOCKS - 1 - connection.timestamps
        before = self._beyond.snapshot()[-most:] if known else ()
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


class TellingPlayer(BasePlayer[BasePeer[Any, Any], Connection]):
    """A player that says of what has arrived what it likes."""

    def __init__(self, peer: BasePeer[Any, Any]) -> None:
        super().__init__(peer)
        self._ends: dict[int, int] = {}
        self._told: dict[int, Told] = {}

    @property
    def fin(self) -> int | None:
        """Offset of the FIN that the tester has sent on the connection; None if it has not."""
        return self._ends.get(id(self.connection))

    @fin.setter
    def fin(self, offset: int) -> None:
        self._ends[id(self.connection)] = offset

    @verb
    def tell(
        self, ack: int = 0, hole: int = 0, held: int = 0, *, old: int = 0, known: bool = False,
        window: int | None = None, octets: int = 0, times: int = 1,
    ) -> None:  # fmt: skip
        """Report some of what has arrived, and keep silent about the rest, as if it were missing.

        Args:
            ack: so many segments more in sequence, and what has been reported behind them.
            hole: then so many that are not reported,
            held: and so many that are, in a block; without SACK there is none.
            old: acknowledge a number so many octets below.
            known: whether blocks that were reported before are listed again.
            window: segments for which there is room behind what is acknowledged, from now on.
            octets: of new data that the segment carries.
            times: how often it is sent.
        """
        connection = self.connection
        if connection is None or not connection.answered:
            return
        told = self._told.get(id(connection))
        if told is None or told.is_old(connection):
            told = self._told[id(connection)] = Told(connection)
        told.report(connection, ack, max(hole, 0), held, known=known)
        if window is not None:
            connection.window = max(window, 0) * connection.segment
        data = min(max(octets, 0), DATA_BESIDE) if self.fin is None else 0
        start, blocks = connection.next_offset, told.blocks if connection.sack else []
        for _ in range(min(times, MOST_TIMES)):
            connection.send(pattern(start, data), at=start, ack=told.number - old, sack=blocks)
        connection.next_offset = start + data
