"""Where a packet stands among the events of its connection, which are in the order of packets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Protocol

from bentpipe_conformance.protocols.tcp.replay import Packet


class _OfPacket(Protocol):
    @property
    def packet(self) -> Packet: ...


def count_before(events: Sequence[_OfPacket], number: int) -> int:
    """How many of the events belong to packets before that of a number."""
    return bisect_left(events, number, key=_number)


def count_through(events: Sequence[_OfPacket], number: int) -> int:
    """How many of the events belong to packets up to that of a number, itself included."""
    return bisect_right(events, number, key=_number)


def _number(event: _OfPacket) -> int:
    return event.packet.number
