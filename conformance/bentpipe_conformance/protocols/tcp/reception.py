"""What the tester has received on a connection, as offsets, and the SACK blocks for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import Range, RangeSet


@dataclass
class Reception:
    """A receiver's variables.

    Attributes:
        delivered: next offset expected in sequence.
        held: what has been received, in or out of sequence.
        recent: the ranges held above ``delivered``, the one that changed last first.
        seen: how often each offset has begun a segment that arrived, lost ones included.
    """

    delivered: int = 0
    held: RangeSet = field(default_factory=RangeSet)
    recent: list[Range] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)

    def note(self, start: int) -> int:
        """Count an arrival, lost or not; return how often the same offset had arrived before."""
        before = self.seen.get(start, 0)
        self.seen[start] = before + 1
        return before

    def take(self, start: int, end: int) -> bool:
        """Take in [start, end); return whether it was in sequence and new."""
        advanced = start <= self.delivered < end
        self.held.add(start, end)
        for left, right in self.held.snapshot():
            if left <= self.delivered < right:
                self.delivered = right
            if left <= start < right and left > self.delivered:
                apart = (block for block in self.recent if block[1] < left or block[0] > right)
                self.recent = [(left, right), *apart]
        self.recent = [block for block in self.recent if block[0] > self.delivered]
        return advanced

    def renege(self, to: int) -> None:
        """Discard everything held from offset ``to`` on (RFC 2018 section 8)."""
        self.delivered = to
        self.held = RangeSet(((0, to),))
        self.recent = []

    def blocks(self, limit: int) -> list[Range]:
        """RFC 2018 blocks for what is held above ``delivered``: newest first, ``limit`` at most."""
        return [block for block in self.recent if block[1] > self.delivered][:limit]
