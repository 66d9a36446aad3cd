"""Sets of integers, such as sequence numbers, as sorted, disjoint, half-open ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

Range = tuple[int, int]


class RangeSet:
    """A mutable set of integers, held as its maximal ranges."""

    __slots__ = ("_ranges", "_shown")

    def __init__(self, ranges: tuple[Range, ...] = ()) -> None:
        self._ranges: list[Range] = []
        self._shown: tuple[Range, ...] | None = None
        for left, right in ranges:
            self.add(left, right)

    def add(self, left: int, right: int) -> int:
        """Add [left, right); return how many of its numbers were new."""
        if left >= right:
            return 0
        ranges = self._ranges
        if ranges and left == ranges[-1][1]:  # what comes in order behind a hole
            ranges[-1] = ranges[-1][0], right
            self._shown = None
            return right - left
        first = bisect_left(ranges, left, key=lambda item: item[1])
        last = bisect_right(ranges, right, key=lambda item: item[0])
        merged = ranges[first:last]
        if len(merged) == 1 and merged[0][0] <= left and right <= merged[0][1]:
            return 0
        held = sum(min(b, right) - max(a, left) for a, b in merged)
        self._shown = None
        if merged:
            ranges[first:last] = [(min(left, merged[0][0]), max(right, merged[-1][1]))]
        else:
            ranges.insert(first, (left, right))
        return right - left - held

    def remove_below(self, bound: int) -> None:
        """Remove every number below ``bound``."""
        if not self._ranges or self._ranges[0][0] >= bound:
            return
        self._shown = None
        del self._ranges[: self._behind(bound)]
        if self._ranges:
            left, right = self._ranges[0]
            self._ranges[0] = max(left, bound), right

    def clear(self) -> None:
        """Remove everything."""
        self._ranges = []
        self._shown = None

    def covers(self, left: int, right: int) -> bool:
        """Whether the whole of [left, right) is in the set."""
        at = bisect_right(self._ranges, left, key=lambda item: item[0]) - 1
        return at >= 0 and self._ranges[at][1] >= right

    def overlap(self, left: int, right: int) -> int:
        """How many numbers of [left, right) are in the set."""
        count = 0
        if left >= right:
            return 0
        for at in range(self._behind(left), len(self._ranges)):
            a, b = self._ranges[at]
            if a >= right:
                break
            count += min(b, right) - max(a, left)
        return count

    def _behind(self, bound: int) -> int:
        """Where the ranges with a number above ``bound`` begin."""
        return bisect_right(self._ranges, bound, key=lambda item: item[1])

    def above(self, bound: int) -> int:
        """How many numbers at or above ``bound`` are in the set."""
        return sum(b - max(a, bound) for a, b in self._ranges[self._behind(bound) :])

    def gaps(self, left: int, right: int) -> list[Range]:
        """The ranges of [left, right) that are not in the set, lowest first."""
        ranges = self._ranges
        if not ranges or ranges[-1][1] <= left:  # what comes behind all
            return [(left, right)] if left < right else []
        missing, at = [], left
        for place in range(self._behind(left), len(ranges)):
            a, b = ranges[place]
            if a >= right:
                break
            if a > at:
                missing.append((at, a))
            at = b
        if at < right:
            missing.append((at, right))
        return missing

    def around(self, number: int) -> Range:
        """The range that ``number``, which is in the set, belongs to."""
        return self._ranges[bisect_left(self._ranges, (number + 1,)) - 1]

    def first_gap(self, left: int, right: int) -> Range | None:
        """The lowest range of [left, right) that is not in the set, None when there is none."""
        ranges = self._ranges
        at = bisect_left(ranges, (left + 1,))
        if at:
            left = max(left, ranges[at - 1][1])
        if left >= right:
            return None
        return left, min(right, ranges[at][0]) if at < len(ranges) else right

    def snapshot(self) -> tuple[Range, ...]:
        """The ranges, lowest first; the same object until the set changes."""
        if self._shown is None:
            self._shown = tuple(self._ranges)
        return self._shown

    def __bool__(self) -> bool:
        return bool(self._ranges)
