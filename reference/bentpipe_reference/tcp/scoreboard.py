"""What the peer's SACK blocks say about the outstanding data."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Scoreboard:
    """The selectively acknowledged ranges, sorted, disjoint and not adjacent.

    All numbers are unwrapped sequence numbers; ranges are half-open.
    """

    __slots__ = ("_lefts", "_rights", "octets")

    def __init__(self) -> None:
        self._lefts: list[int] = []
        self._rights: list[int] = []
        self.octets = 0

    def __bool__(self) -> bool:
        return bool(self._lefts)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The ranges, lowest first."""
        return list(zip(self._lefts, self._rights, strict=True))

    @property
    def highest(self) -> int | None:
        """One past the highest octet held by the receiver, None when it holds none."""
        return self._rights[-1] if self._rights else None

    def add(self, left: int, right: int) -> int:
        """Mark a range as held; return how many octets were not marked before."""
        first = bisect_left(self._rights, left)
        last = bisect_right(self._lefts, right)
        before = self.octets
        if first < last:
            left = min(left, self._lefts[first])
            right = max(right, self._rights[last - 1])
            for i in range(first, last):
                self.octets -= self._rights[i] - self._lefts[i]
        self._lefts[first:last] = [left]
        self._rights[first:last] = [right]
        self.octets += right - left
        return self.octets - before

    def discard_below(self, edge: int) -> None:
        """Forget everything below ``edge``."""
        lefts, rights = self._lefts, self._rights
        if not lefts or lefts[0] >= edge:
            return
        gone = bisect_right(rights, edge)
        for i in range(gone):
            self.octets -= rights[i] - lefts[i]
        del lefts[:gone], rights[:gone]
        if lefts and lefts[0] < edge:
            self.octets -= edge - lefts[0]
            lefts[0] = edge

    def clear(self) -> None:
        """Forget everything (RFC 2018 section 8, on a timeout)."""
        self._lefts.clear()
        self._rights.clear()
        self.octets = 0

    def octets_below(self, edge: int) -> int:
        """Held octets below ``edge``."""
        total = 0
        for left, right in zip(self._lefts, self._rights, strict=True):
            if left >= edge:
                break
            total += min(right, edge) - left
        return total

    def next_hole(self, seq: int, end: int) -> tuple[int, int] | None:
        """The first range at or after ``seq`` and before ``end`` that is not marked as held."""
        at = bisect_right(self._rights, seq)
        if at < len(self._lefts) and self._lefts[at] <= seq:
            seq = self._rights[at]
            at += 1
        if seq >= end:
            return None
        return seq, min(end, self._lefts[at]) if at < len(self._lefts) else end

    def loss_edge(self, runs: int, octets: int) -> int | None:
        """Everything not held below this number counts as lost (IsLost of RFC 6675).

        A hole is lost when at least ``runs`` discontiguous ranges, or more than ``octets``
        octets, are held above it. None when nothing is lost by that measure.
        """
        total = 0
        for count in range(1, len(self._lefts) + 1):
            total += self._rights[-count] - self._lefts[-count]
            if count >= runs or total > octets:
                return self._lefts[-count]
        return None
