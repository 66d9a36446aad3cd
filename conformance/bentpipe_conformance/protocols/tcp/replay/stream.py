"""The octets the tester sent, by offset.

Only what arrived is stored, so that a segment far up a large window costs no more than its octets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.protocols.tcp.replay.flow import Flow


class Stream:
    """Octets of one direction; those that did not arrive read as zero."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._chunks: list[bytes] = []
        self._disputed = RangeSet()
        self._end = 0

    def _pieces(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """The known octets of [start, end), in order, each piece with its offset."""
        first = max(0, bisect_right(self._starts, start) - 1)
        for at in range(first, bisect_left(self._starts, end)):
            left, chunk = self._starts[at], self._chunks[at]
            piece = chunk[max(0, start - left) : end - left]
            if piece:
                yield max(left, start), piece

    def add(self, start: int, payload: bytes) -> None:
        """Octets arrived; those known before are kept, and disputed where they differ."""
        end = at = start + len(payload)
        self._end = max(self._end, end)
        for left, piece in reversed(list(self._pieces(start, end))):
            right = left + len(piece)
            if payload[left - start : right - start] != piece:
                self._disputed.add(start, end)
            self._insert(right, payload[right - start : at - start])
            at = left
        self._insert(start, payload[: at - start])

    def _insert(self, start: int, octets: bytes) -> None:
        if octets:
            at = bisect_left(self._starts, start)
            self._starts.insert(at, start)
            self._chunks.insert(at, octets)

    def dispute(self, start: int, end: int) -> None:
        """Nothing is known of [start, end): the capture did not keep it."""
        if start < end:
            self._disputed.add(start, end)

    def disputed(self, start: int, end: int) -> bool:
        """Whether two segments disagree about any octet of [start, end)."""
        return bool(self._disputed.overlap(start, end))

    def equals(self, start: int, octets: bytes) -> bool:
        """Whether the stream has these octets at ``start``."""
        end = start + len(octets)
        if start < 0 or end > self._end:
            return False
        known = bytearray(len(octets))
        for left, piece in self._pieces(start, end):
            known[left - start : left - start + len(piece)] = piece
        return known == octets


def read_stream(flow: Flow) -> Stream:
    """The tester's octets on a connection; data outside the window is never part of them."""
    stream = Stream()
    for arrival in flow.arrivals:
        if arrival.start <= arrival.window_edge and arrival.end > 0:
            # What lies below the first octet is none of them.
            stream.add(max(0, arrival.start), arrival.tcp.payload[max(0, -arrival.start) :])
            stream.dispute(arrival.end - arrival.tcp.missing, arrival.end)
    return stream
