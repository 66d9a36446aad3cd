"""The box's own ends of TCP, each read as the TCP suite reads an implementation.

A box is an end of four connections, or of two. What it sends there depends on the other side, too;
but so does every program that nobody knows, and the replay of TCP makes no guess about a program.
Left out is what is not the box's alone, or what the replay would misread: connections that pass
whole, fragments, ports that are used again, and paths of which a message has told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from bentpipe_conformance.engine.checking import Readings
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.protocols.pep.codec import reports
from bentpipe_conformance.protocols.pep.replay.flow import Scene
from bentpipe_conformance.protocols.pep.replay.fragments import is_fragment
from bentpipe_conformance.protocols.pep.replay.leg import Leg, Packet
from bentpipe_conformance.protocols.tcp.codec import RST, SYN
from bentpipe_conformance.protocols.tcp.replay.flow import Flow, Freedom, read_flows

TCP_SUITE = "snr"

OVER_SATELLITE = "over the satellite"
"""Where an end of the box faces another box."""

_Ends = tuple[tuple[str, int], tuple[str, int]]

_LEAST = 5
"""Packets of a connection that was more than opened."""


@dataclass(eq=False)
class BoxEnd:
    """One end of TCP.

    Attributes:
        where: which of the box's ends, as a phrase.
        flow: its connection as TCP's replay has it.
    """

    where: str
    flow: Flow

    @cached_property
    def readings(self) -> Readings:
        """In all ways in which its packets can be read."""
        return Readings(self.flow, suite_named(TCP_SUITE).interpreter)

    @cached_property
    def by_flight(self) -> Readings:
        """In those in which what is outstanding counts, whatever waits behind it."""
        interpreter = suite_named(TCP_SUITE).interpreter
        return Readings(self.flow, replace(interpreter, otherwise=_by_flight))


def _by_flight(flow: Flow) -> Iterator[Flow]:
    """The readings of a flow but for those in which what was outstanding ran short of data."""
    for other in suite_named(TCP_SUITE).interpreter.otherwise(flow):
        if Freedom.RUNS_SHORT not in other.reading:
            yield other


@remembered
def ends_of(scene: Scene, timing_error: float, satellite: bool) -> Sequence[BoxEnd]:
    """The ends of the box, those over the satellite included if that speaks TCP and is visible."""
    told = {ends for packets in (scene.others, scene.satellite) for ends in _told(packets)}
    found = list(_at_the_sides(scene, told, timing_error))
    if satellite:
        found += _over_satellite(scene, told, timing_error)
    return found


def _at_the_sides(scene: Scene, told: Set[_Ends], timing_error: float) -> Iterator[BoxEnd]:
    used: set[tuple[str, _Ends]] = set()
    legs = [(leg, relay) for relay in scene.relays for leg in (relay.client, *relay.calls)]
    for leg, relay in sorted(legs, key=lambda it: it[0].packets[0].number):
        ends = (leg.ends[:2], leg.ends[2:])
        again = (leg.side, ends) in used
        used.add((leg.side, ends))
        if not again and not relay.is_whole and not told & {ends, ends[::-1]}:
            yield from _read(f"towards the {leg.side}", _own(leg, scene), timing_error)


def _over_satellite(scene: Scene, told: Set[_Ends], timing_error: float) -> Iterator[BoxEnd]:
    numbers = {
        it.content.seq for it in scene.packets
        if not it.outgoing and it.content is not None and it.content.flags & SYN
    }  # fmt: skip
    connections: dict[tuple[str, frozenset[tuple[str, int]]], list[Packet]] = {}
    for packet in scene.satellite:
        if (tcp := packet.content) is not None and tcp.checksum_ok and tcp.offset_ok:
            ends = frozenset({(tcp.src, tcp.sport), (tcp.dst, tcp.dport)})
            connections.setdefault((packet.side, ends), []).append(packet)
    about = {frozenset(ends) for ends in told}
    for (_, ends), packets in connections.items():
        syns = {
            (it.outgoing, it.content.seq) for it in packets if it.content and it.content.flags & SYN
        }
        # Two of one side: the ports were used again. One of an end: the connection passes whole.
        anew, whole = len(syns) > len(dict(syns)), numbers & {seq for _, seq in syns}
        if not anew and not whole and ends not in about:
            yield from _read(OVER_SATELLITE, packets, timing_error)


def _read(where: str, packets: Sequence[Packet], timing_error: float) -> Iterator[BoxEnd]:
    if len(packets) >= _LEAST and not any(map(is_fragment, packets)):
        for flow in read_flows(Trace(tuple(packets), timing_error)):
            yield BoxEnd(where, flow)


def _told(packets: Iterable[Packet]) -> Iterator[_Ends]:
    """Connections of which a message says that a packet has not arrived."""
    for report in reports(packets):
        yield report.ends[:2], report.ends[2:]


def _own(leg: Leg, scene: Scene) -> list[Packet]:
    """What passed before a reset, behind which a box lets pass what is not its own.

    What it has sent on as it was has not reached its own end, as where a NAT before that does not
    take a segment for one of the connection.
    """
    resets = (it.packet.number for it in leg.segments if it.counts and it.tcp.flags & RST)
    first = min(resets, default=math.inf)
    return [
        packet
        for packet in leg.packets
        if packet.number <= first and packet.number not in scene.passed_on
    ]
