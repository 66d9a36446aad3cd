"""A recorded trace: timed packets at their capture points, dissected.

Everything a verdict depends on is here; checkers read nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.lane import Captured, Point

Content = TypeVar("Content", covariant=True)
"""What a protocol's codec makes of octets."""


@record
class Packet(Generic[Content]):
    """One captured packet.

    Attributes:
        number: frame number in the capture of its point, from 1.
        time: seconds since the trace began.
        point: where it was captured.
        outgoing: True when it travels from the implementation under test to the tester.
        content: what the protocol's codec makes of the octets, None when nothing.
        data: the octets as captured.
        side: see :class:`~bentpipe_conformance.engine.lane.Captured`.
    """

    number: int
    time: float
    point: Point
    outgoing: bool
    content: Content | None
    data: bytes
    side: str = ""


@dataclass(frozen=True, slots=True)
class Trace(Generic[Content]):
    """All packets of one case (or of a foreign capture), in time order.

    Attributes:
        packets: packets of both capture points.
        timing_error: seconds by which ``time`` may be wrong.
        whole: whether it is known to hold everything that has passed between the implementation and
            the tester's addresses that the case made up.
    """

    packets: tuple[Packet[Content], ...]
    timing_error: float = 0.0
    whole: bool = False

    def at(self, point: Point) -> Sequence[Packet[Content]]:
        """The packets of one capture point."""
        return [packet for packet in self.packets if packet.point == point]


class HasPackets(Protocol):
    """A connection replayed from the implementation's side, of whatever protocol."""

    @property
    def packets(self) -> Sequence[Packet[Any]]:
        """Its packets at the implementation's side."""


class Dissector(Protocol):
    """What makes packets of octets: the interpreter of a suite."""

    @property
    def dissect(self) -> Callable[[bytes], Any]:
        """The packet of this protocol in an IPv4 packet; raises :class:`MalformedPacket`."""

    @property
    def trusting(self) -> Callable[[Any], Any]:
        """Such a packet with its checksums assumed correct."""


class Dissecting(Protocol):
    """A suite, as far as reading a trace needs it."""

    @property
    def interpreter(self) -> Dissector:
        """Its interpreter."""


def read_trace(
    captured: Iterable[Captured], timing_error: float = 0.0, *, trust_checksums: bool = False,
    suite: Dissecting,
) -> Trace[Any]:  # fmt: skip
    """Dissect captured octets; what cannot be dissected stays in the trace without content.

    ``trust_checksums`` assumes that every checksum is correct: captures of hosts with checksum
    offload, and captures that truncate packets, do not show it.
    """
    interpreter = suite.interpreter
    counts: dict[Point, int] = {"iut": 0, "peer": 0}
    packets: list[Packet[Any]] = []
    for item in captured:
        counts[item.point] += 1
        content = dissected(interpreter.dissect, item.data)
        if content is not None and trust_checksums:
            content = interpreter.trusting(content)
        number = counts[item.point]
        found = Packet(number, item.time, item.point, item.outgoing, content, item.data, item.side)
        packets.append(found)
    return Trace(tuple(packets), timing_error)


@lru_cache(maxsize=4096)
def dissected(dissect: Callable[[bytes], Content], octets: bytes) -> Content | None:
    """What ``dissect`` makes of an IPv4 packet, None when that is malformed.

    Results are cached because the link passes the same octets on.
    """
    try:
        return dissect(octets)
    except MalformedPacket:
        return None
