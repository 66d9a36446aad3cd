"""Where a packet stands among the events of its connection, which are in the order of packets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Protocol, TypeVar

from bentpipe_conformance.protocols.tcp.replay import Packet


class _OfPacket(Protocol):
    @property
    def packet(self) -> Packet: ...


_E = TypeVar("_E", bound=_OfPacket)
_number: Callable[[_OfPacket], int] = attrgetter("packet.number")  # a function takes twice the time


def count_before(events: Sequence[_OfPacket], number: int) -> int:
    """How many of the events belong to packets before that of a number."""
    return bisect_left(events, number, key=_number)


def count_through(events: Sequence[_OfPacket], number: int) -> int:
    """How many of the events belong to packets up to that of a number, itself included."""
    return bisect_right(events, number, key=_number)


def latest_first(events: Sequence[_E], count: int) -> Iterator[_E]:
    """The first so many of the events, the last of them first; a copy of them is not made."""
    return (events[at] for at in range(count - 1, -1, -1))


def earlier(events: Sequence[_E], packet: Packet) -> Iterator[_E]:
    """The events before a packet's, in order; what the bed gives the same time is told apart."""
    return (events[at] for at in range(count_before(events, packet.number)))


def later(events: Sequence[_E], packet: Packet) -> Iterator[_E]:
    """The events after a packet's, in order; what the bed gives the same time is told apart."""
    return (events[at] for at in range(count_through(events, packet.number), len(events)))


def by_packet(events: Iterable[_E]) -> Callable[[Packet], _E | None]:
    """What finds the event of a packet, None where there is none; asked of packets in order."""
    following = iter(events)
    current = next(following, None)

    def of(packet: Packet) -> _E | None:
        nonlocal current
        while current is not None and current.packet.number < packet.number:
            current = next(following, None)
        return current if current is not None and current.packet is packet else None

    return of
