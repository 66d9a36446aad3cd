"""One connection prepared for drawing: which side sends data, and what its packets mean."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bentpipe_conformance.analysis.flow import Flow, read_flows
from bentpipe_conformance.analysis.ranges import Range
from bentpipe_conformance.trace import Trace


@dataclass(frozen=True, slots=True)
class Mark:
    """One drawn packet: a data segment, or an acknowledgment with its SACK blocks.

    Offsets are those of the direction that carries the data, 0 being its first octet.
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
    """The data of one direction of a connection and its acknowledgments, at the IUT's side.

    Attributes:
        iut_sends: whether the implementation under test is the sender of the data.
        data: data segments; ``again`` marks retransmissions.
        acks: acknowledgments; ``start`` equals ``end``; ``edge`` is the offered window's edge.
        others: (number, time, letters) of SYN, FIN and RST segments.
    """

    iut_sends: bool
    data: tuple[Mark, ...]
    acks: tuple[Mark, ...]
    others: tuple[tuple[int, float, str], ...]


def choose_scene(trace: Trace, wanted: Collection[int] = ()) -> Scene | None:
    """The busiest connection of a trace, preferring one that has ``wanted`` frame numbers."""
    flows = [flow for flow in read_flows(trace) if flow.packets]
    if not flows:
        return None
    numbers = set(wanted)

    def weight(flow: Flow) -> tuple[int, int]:
        return sum(packet.number in numbers for packet in flow.packets), len(flow.packets)

    return make_scene(max(flows, key=weight))


def make_scene(flow: Flow) -> Scene:
    """Draw the direction of ``flow`` that carries more data."""
    others = tuple(
        (packet.number, packet.time, letters)
        for packet in flow.packets
        if packet.tcp and (letters := "".join(c for c in packet.tcp.flag_names if c in "SFR"))
    )
    sent = sum(item.payload for item in flow.sent)
    arrived = sum(item.end - item.start for item in flow.arrivals)
    if sent >= arrived:
        data = [
            Mark(item.packet.number, item.time, item.start, item.end, item.retransmission)
            for item in flow.sent
        ]
        acks = [
            Mark(
                item.packet.number, item.time, item.ack, item.ack, duplicate=item.duplicate,
                blocks=item.blocks + item.invalid_blocks + ((item.dsack,) if item.dsack else ()),
                edge=item.window_edge,
            )
            for item in flow.acks
        ]  # fmt: skip
        return Scene(True, tuple(data), tuple(acks), others)
    highest = 0
    data = []
    for arrival in flow.arrivals:
        number = arrival.packet.number
        again = arrival.start < highest
        data.append(Mark(number, arrival.time, arrival.start, arrival.end, again))
        highest = max(highest, arrival.end)
    acks = []
    for reply in flow.replies:
        repeated = bool(acks) and not reply.payload and acks[-1].end == reply.ack
        acks.append(
            Mark(
                reply.packet.number, reply.time, reply.ack, reply.ack, duplicate=repeated,
                blocks=reply.blocks, edge=reply.window_edge,
            )
        )  # fmt: skip
    return Scene(False, tuple(data), tuple(acks), others)
