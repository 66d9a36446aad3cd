"""How often each segment of a stream has been transmitted."""

from __future__ import annotations

from bisect import bisect_left, insort


class Transmissions:
    """Counts transmissions by the offset a segment starts at.

    New data costs constant time, a retransmission time in the number of segments it covers, so
    that a flood of unacknowledged data is judged in linear time.
    """

    __slots__ = ("_counts", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._counts: dict[int, int] = {}

    def sent(self, start: int, end: int, *, new: bool) -> int:
        """Count the segment [start, end) and return which transmission of ``start`` this is."""
        starts, counts = self._starts, self._counts
        for known in starts[bisect_left(starts, start) : bisect_left(starts, end)]:
            counts[known] += 1
        if start not in counts:
            insort(starts, start)
            # A segment cut anew from data sent before repeats it, wherever that segment started.
            counts[start] = 1 if new else 2
        return counts[start]

    def acknowledged(self, ack: int) -> None:
        """Forget segments that start below ``ack``."""
        gone = bisect_left(self._starts, ack)
        for start in self._starts[:gone]:
            del self._counts[start]
        del self._starts[:gone]
