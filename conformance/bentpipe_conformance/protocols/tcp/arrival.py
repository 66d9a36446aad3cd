"""A segment of the implementation under test as it reached the tester."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_conformance.protocols.tcp.codec import Tcp


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment: arrival time, payload as offsets, and the dissection."""

    time: float
    start: int
    end: int
    ack: int
    tcp: Tcp

    @property
    def has_data(self) -> bool:
        """Whether it carries data or FIN."""
        return self.end > self.start


Drop = Callable[[Segment, int], bool]
"""Given a segment and how often its first octet arrived before (0, 1, ...), whether to lose it."""


def lose_nothing(_segment: Segment, _seen: int) -> bool:
    """The drop rule of a link without loss."""
    return False
