"""A segment of the implementation under test as it reached the tester."""

from __future__ import annotations

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
