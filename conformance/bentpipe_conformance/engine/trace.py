"""A recorded trace: timed packets at their capture points, dissected.

Everything a verdict depends on is here; checkers read nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from bentpipe_conformance.engine.lane import Captured, Point
from bentpipe_conformance.engine.suite import Suite

Content = TypeVar("Content", covariant=True)
"""What a protocol's codec makes of octets."""


@dataclass(frozen=True, slots=True)
class Packet(Generic[Content]):
    """One captured packet.

    Attributes:
        number: frame number in the capture of its point, from 1.
        time: seconds since the trace began.
        point: where it was captured.
        outgoing: True when it travels from the implementation under test to the tester.
        content: what the protocol's codec makes of the octets, None when nothing.
        data: the octets as captured.
    """

    number: int
    time: float
    point: Point
    outgoing: bool
    content: Content | None
    data: bytes


@dataclass(frozen=True, slots=True)
class Trace(Generic[Content]):
    """All packets of one case (or of a foreign capture), in time order.

    Attributes:
        packets: packets of both capture points.
        timing_error: seconds by which ``time`` may be wrong.
    """

    packets: tuple[Packet[Content], ...]
    timing_error: float = 0.0

    def at(self, point: Point) -> Sequence[Packet[Content]]:
        """The packets of one capture point."""
        return [packet for packet in self.packets if packet.point == point]


def read_trace(
    captured: Iterable[Captured],
    timing_error: float = 0.0,
    *,
    trust_checksums: bool = False,
    suite: Suite,
) -> Trace[Any]:
    """Dissect captured octets; what cannot be dissected stays in the trace without content.

    ``trust_checksums`` takes every checksum for right: in captures of hosts with checksum
    offload, and in captures that cut packets short, the octets on file say nothing about it.
    """
    judging = suite.judging
    counts: dict[Point, int] = {"iut": 0, "peer": 0}
    packets: list[Packet[Any]] = []
    for item in captured:
        counts[item.point] += 1
        content = _dissected(judging.dissect, item.data)
        if content is not None and trust_checksums:
            content = judging.trusting(content)
        packets.append(
            Packet(counts[item.point], item.time, item.point, item.outgoing, content, item.data)
        )
    return Trace(tuple(packets), timing_error)


@lru_cache(maxsize=4096)
def _dissected(dissect: Callable[[bytes], Any], octets: bytes) -> Any:
    """What is in a packet, remembered because the link passes the same octets on."""
    return dissect(octets)
