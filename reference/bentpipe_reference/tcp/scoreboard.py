"""What the peer's SACK blocks say about the outstanding data."""

from __future__ import annotations

from bentpipe_reference.common.ranges import RangeSet


class Scoreboard(RangeSet):
    """The selectively acknowledged ranges, in unwrapped sequence numbers."""

    __slots__ = ()

    @property
    def highest(self) -> int:
        """One past the highest octet held by the receiver, 0 when it holds none."""
        return self._ranges[-1][1] if self._ranges else 0

    def loss_edge(self, runs: int, octets: int) -> int | None:
        """Everything not held below this number counts as lost (IsLost of RFC 6675).

        A hole is lost when at least ``runs`` discontiguous ranges, or more than ``octets``
        octets, are held above it. None when nothing is lost by that measure.
        """
        total = 0
        for count, (left, right) in enumerate(reversed(self._ranges), 1):
            total += right - left
            if count >= runs or total > octets:
                return left
        return None
