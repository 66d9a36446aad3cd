"""A recorded trace: timed packets at their capture points, dissected.

Everything a verdict depends on is here; checkers read nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bentpipe_conformance.lane import Captured, Point
from bentpipe_conformance.wire import MalformedPacket, Tcp, dissect


@dataclass(frozen=True, slots=True)
class Packet:
    """One captured packet.

    Attributes:
        number: frame number in the capture of its point, from 1.
        time: seconds since the trace began.
        point: where it was captured.
        outgoing: True when it travels from the implementation under test to the tester.
        tcp: the segment, or None when the octets could not be dissected as TCP over IPv4.
        data: the octets as captured.
    """

    number: int
    time: float
    point: Point
    outgoing: bool
    tcp: Tcp | None
    data: bytes


@dataclass(frozen=True, slots=True)
class Trace:
    """All packets of one case (or of a foreign capture), in time order.

    Attributes:
        packets: packets of both capture points.
        timing_error: seconds by which ``time`` may be wrong.
    """

    packets: tuple[Packet, ...]
    timing_error: float = 0.0

    def at(self, point: Point) -> Sequence[Packet]:
        """The packets of one capture point."""
        return [packet for packet in self.packets if packet.point == point]


def read_trace(
    captured: Iterable[Captured], timing_error: float = 0.0, *, trust_checksums: bool = False
) -> Trace:
    """Dissect captured octets; what cannot be dissected stays in the trace with ``tcp`` None.

    ``trust_checksums`` takes every checksum for right: in captures of hosts with checksum
    offload, and in captures that cut packets short, the octets on file say nothing about it.
    """
    counts: dict[Point, int] = {"iut": 0, "peer": 0}
    packets = []
    for item in captured:
        counts[item.point] += 1
        tcp = _dissected(item.data)
        if tcp is not None and trust_checksums:
            tcp = replace(tcp, checksum_ok=True)
        packets.append(
            Packet(counts[item.point], item.time, item.point, item.outgoing, tcp, item.data)
        )
    return Trace(tuple(packets), timing_error)


@lru_cache(maxsize=4096)
def _dissected(octets: bytes) -> Tcp | None:
    """The segment in a packet, remembered because the link passes the same octets on."""
    try:
        return dissect(octets)
    except MalformedPacket:
        return None
