"""Scenes: what a report plots of one connection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.engine.trace import HasPackets


@dataclass(frozen=True, slots=True)
class Mark:
    """One drawn packet: data, or a report on data such as an acknowledgment.

    ``start``, ``end``, ``blocks`` (ranges that a report lists) and ``edge`` (of the offered window)
    count the data of its direction from 0, in the unit of the suite's reporting.
    """

    number: int
    time: float
    start: int
    end: int
    again: bool = False
    duplicate: bool = False
    blocks: tuple[Range, ...] = ()
    edge: int = 0


@dataclass(frozen=True, slots=True)
class Scene:
    """The data of one direction of a connection and the reports on it, at the IUT's side.

    Attributes:
        iut_sends: whether the implementation under test is the sender of the data.
        data: packets with data; ``again`` marks retransmissions.
        acks: reports on data; ``start`` equals ``end``.
        others: (number, time, name) of packets that open or end the connection.
        ticks: requests, such as POLLs, drawn as ticks.
    """

    iut_sends: bool
    data: tuple[Mark, ...]
    acks: tuple[Mark, ...]
    others: tuple[tuple[int, float, str], ...]
    ticks: tuple[Mark, ...] = ()


_Flow = TypeVar("_Flow", bound=HasPackets)


def choose_scene(
    flows: Sequence[_Flow], wanted: Collection[int], make: Callable[[_Flow], Scene]
) -> Scene | None:
    """The scene of the busiest connection, preferring one that has ``wanted`` frame numbers."""
    numbers = set(wanted)

    def weight(flow: _Flow) -> tuple[int, int]:
        return sum(packet.number in numbers for packet in flow.packets), len(flow.packets)

    busy = [flow for flow in flows if flow.packets]
    return make(max(busy, key=weight)) if busy else None
