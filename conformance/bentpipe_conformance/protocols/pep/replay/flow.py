"""The connections of a trace, paired across the box."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bentpipe_conformance.engine.lane import (
    CLIENT,
    OTHER_SIDE,
    SATELLITE_FAR,
    SATELLITE_NEAR,
    SERVER,
)
from bentpipe_conformance.engine.trace import Trace as EngineTrace
from bentpipe_conformance.protocols.pep.codec import Report, disturbances, is_cut, is_last, reports
from bentpipe_conformance.protocols.pep.replay.fragments import Fragments, is_fragment
from bentpipe_conformance.protocols.pep.replay.leg import (
    Leg,
    Packet,
    Segment,
    goes_up,
    segment_ends,
)
from bentpipe_conformance.protocols.pep.replay.stream import Stream
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, Tcp

Trace = EngineTrace[Tcp]

_Ends = tuple[str, int, str, int]

_TIMEOUT_S = 10.0
"""Seconds: a first timeout of 3 s, doubled once, with round trips and queues."""


@dataclass(eq=False)
class Relay:
    """A connection of a client, and what the box has made of it at the server's side.

    Attributes:
        client: the leg at the client's side.
        calls: legs at the server's side that stand for it, in order.
        scene: the trace that it is part of.
    """

    client: Leg
    scene: Scene
    calls: list[Leg] = field(default_factory=list)

    @property
    def server(self) -> Leg | None:
        """The call that was answered, or else the first."""
        answered = (leg for leg in self.calls if leg.answered is not None)
        return next(answered, self.calls[0] if self.calls else None)

    @cached_property
    def up(self) -> Stream:
        """From client to server."""
        return Stream("from the client", self.client, self.server)

    @cached_property
    def down(self) -> Stream | None:
        """From server to client; None while no server was called."""
        return None if self.server is None else Stream("from the server", self.server, self.client)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Those that there are, unless the connection was left whole."""
        if self.is_whole:
            return ()
        return (self.up,) if self.down is None else (self.up, self.down)

    @cached_property
    def octet_times(self) -> list[float]:
        """When the box has sent octets to either end, in order; of split connections only."""
        legs = () if self.is_whole else self.legs
        return sorted(it.time for leg in legs for it in leg.segments if it.outgoing and it.payload)

    def opposite(self, stream: Stream) -> Stream | None:
        """The stream the other way; None while no server was called."""
        return next((each for each in self.streams if each is not stream), None)

    @property
    def legs(self) -> tuple[Leg, ...]:
        """That of the client, and that of the server if there is one."""
        return (self.client,) if self.server is None else (self.client, self.server)

    @property
    def packets(self) -> Sequence[Packet]:
        """Of both sides, in order."""
        legs = (self.client, *self.calls)
        return sorted((packet for leg in legs for packet in leg.packets), key=lambda it: it.number)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the box has let it pass unsplit: the SYN has the same number at both sides."""
        return self.server is not None and self.server.syn.seq == self.client.syn.seq

    @cached_property
    def crossing_s(self) -> float:
        """Seconds to the server and back, as the opening shows; 0.0 where nothing does."""
        server = self.server
        if server is None or server.answered is None or self.client.answered is None:
            return 0.0
        there = server.began - self.client.began
        back = self.client.answered.time - server.answered.time
        return there + (back if back > 0 else there)

    @cached_property
    def was_reset(self) -> bool:
        """Whether an end has reset it, or may have."""
        return self.reset_time < math.inf

    @cached_property
    def reset_time(self) -> float:
        """When an end has reset it, or may have, for the first time; or infinity."""
        resets = (
            it.time for leg in (self.client, *self.calls) for it in leg.segments
            if it.tcp.flags & RST and not it.outgoing and (it.counts or it.doubtful)
        )  # fmt: skip
        return min(resets, default=math.inf)

    @cached_property
    def reset_at(self) -> float:
        """Number of the packet with the first RST that counts, at either side; or infinity."""
        resets = (
            it.packet.number for leg in (self.client, *self.calls) for it in leg.segments
            if it.tcp.flags & RST and it.counts
        )  # fmt: skip
        return min(resets, default=math.inf)

    def has_cause(self, reset: Segment) -> bool:
        """Whether a reset of the box follows one of an end, or may do so."""
        return any(
            it.tcp.flags & RST and not it.outgoing and (it.counts or it.doubtful)
            and it.packet.number < reset.packet.number
            for leg in (self.client, *self.calls) for it in leg.segments
        )  # fmt: skip

    def resets(self, leg: Leg, *, by_box: bool) -> list[Segment]:
        """Resets at one side that count."""
        return [
            item for item in leg.segments
            if item.tcp.flags & RST and item.outgoing == by_box and item.counts
        ]  # fmt: skip


@dataclass(eq=False)
class Scene:
    """A whole trace.

    Attributes:
        relays: the connections that clients have opened.
        orphans: legs at the server's side for which no client has called.
        others: packets of no connection whose opening was seen, at the two sides, in order.
        fragmented: those by which a segment in fragments was complete.
        packets: all at the two sides.
        satellite: those at the ends of the satellite link, where it is visible, in order.
        until: when the last packet was seen, seconds.
    """

    relays: list[Relay] = field(default_factory=list)
    orphans: list[Leg] = field(default_factory=list)
    others: list[Packet] = field(default_factory=list)
    fragmented: list[Packet] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    satellite: list[Packet] = field(default_factory=list)
    until: float = 0.0

    @cached_property
    def quiet_since(self) -> float:
        """Since when the path works as usual; -1.0 when that was always so."""
        return self._disturbed[0]

    @cached_property
    def is_cut(self) -> bool:
        """Whether the path has carried nothing for a while."""
        return is_cut(self.others)

    @cached_property
    def repaired_at(self) -> float:
        """When what was lost while the path did not work is repaired; -1.0 when it always did.

        A timer that has doubled since the path failed has waited as long in all as it waits next
        (RFC 6298 section 5.5). It stays so long until a round trip was measured (its section 3),
        so that what is lost once more waits as long again, even behind the next disturbance.
        """
        ended, waits = self._disturbed
        return ended if ended < 0 else ended + waits

    @cached_property
    def _disturbed(self) -> tuple[float, float]:
        """End of the last disturbance, and seconds that its repair may take."""
        ended, waits = -1.0, 0.0
        for start, stop in disturbances(self.others):
            before = waits if start < ended + waits else _TIMEOUT_S
            ended, waits = stop, 2 * (stop - start) + before
        return ended, waits

    @cached_property
    def most_at_once(self) -> int:
        """How many connections there were at the same time, from first packet to last."""
        moments = [
            moment for relay in self.relays
            for moment in ((relay.client.began, 1), (max(it.packets[-1].time for it in (
                relay.client, *relay.calls)), -1))
        ]  # fmt: skip
        most = now = 0
        for _, change in sorted(moments):
            now += change
            most = max(most, now)
        return most

    @cached_property
    def passed_on(self) -> frozenset[int]:
        """Numbers of segments of the ends that the box has sent on as they were."""
        came: dict[tuple[str, bytes], list[int]] = {}
        for packet in self.packets:
            if not packet.outgoing and packet.content is not None:
                came.setdefault((packet.side, packet.data[20:40]), []).append(packet.number)
        found = set()
        for packet in self.others:
            if packet.outgoing and packet.content is not None:
                before = came.get((OTHER_SIDE[packet.side], packet.data[20:40]), [])
                found.add(max((it for it in before if it < packet.number), default=-1))
        return frozenset(found)

    @cached_property
    def reports(self) -> Sequence[Report]:
        """ICMP messages about TCP segments, in order."""
        return tuple(reports(self.others))


Flow = Relay | Scene


def read_flows(trace: Trace) -> list[Flow]:
    """The connections in the order of their SYNs, and at last the scene as a whole."""
    scene = Scene()
    open_legs: dict[tuple[str, _Ends], Leg] = {}
    arrived: dict[tuple[str, _Ends], set[bytes]] = {}
    fragments = Fragments()
    for captured in trace.at("iut"):
        packet = captured
        if packet.side in (SATELLITE_NEAR, SATELLITE_FAR):
            scene.satellite.append(packet)
        if packet.side not in (CLIENT, SERVER):
            continue
        if is_last(packet):
            scene.until = packet.time
            break
        scene.packets.append(packet)
        scene.until = max(scene.until, packet.time)
        if is_fragment(packet) and (whole := fragments.take(packet)) is not None:
            packet = whole
            scene.fragmented += [] if packet.outgoing else [packet]
        tcp = packet.content
        if tcp is None or not tcp.checksum_ok or not tcp.offset_ok:
            scene.others.append(packet)
            continue
        up, ends = goes_up(packet), segment_ends(packet, tcp)
        key, opposite = (packet.side, ends), (OTHER_SIDE[packet.side], ends)
        if not packet.outgoing:
            arrived.setdefault(key, set()).add(packet.data[20:40])
        leg = open_legs.get(key)
        calls = up and tcp.flags & (SYN | ACK | RST) == SYN and (leg is None or _is_new(leg, tcp))
        first = tcp if calls or leg is None else leg.syn
        if _is_forwarded(packet, first, open_legs.get(opposite), arrived.get(opposite, ())):
            scene.others.append(packet)
            continue
        if calls:
            leg = open_legs[key] = Leg(packet.side, ends)
            _place(scene, leg)
        if leg is None:
            scene.others.append(packet)
        else:
            leg.add(packet)
    return [*scene.relays, scene]


def _is_forwarded(
    packet: Packet, first: Tcp, there: Leg | None, arrived: Container[bytes]
) -> bool:  # fmt: skip
    """Whether a packet of the box is one of the other side's, passed on as it was.

    A box may take it for a stranger's: what comes late where a side has ended, what its end of
    the connection would not take, and the answers to these. Of a connection that is left whole
    the first SYN is the same at both sides.

    Args:
        packet: any.
        first: the SYN of its connection at this side.
        there: the connection with the same ends at the other side, None without one.
        arrived: what came from the end there, from the header of the segment on.
    """
    whole = there is not None and there.syn.seq == first.seq
    return packet.outgoing and not whole and packet.data[20:40] in arrived


def _is_new(leg: Leg, syn: Tcp) -> bool:
    """Whether a SYN with the ports of a connection opens another one."""
    if syn.seq == leg.syn.seq:
        return False
    resets = any(item.tcp.flags & RST and item.counts for item in leg.segments)
    both = leg.own.fin is not None and leg.box.fin is not None
    return leg.answered is None or resets or both


def _place(scene: Scene, leg: Leg) -> None:
    """Find out for which connection of a client a leg stands."""
    if leg.side == CLIENT:
        scene.relays.append(Relay(leg, scene))
        return
    called = [item for item in scene.relays if item.client.ends[2:] == leg.ends[2:]]
    same = [item for item in called if item.client.ends == leg.ends]
    # With the same ports the latest; with others the first that nobody was called for, of a client
    # at the same address if there is one.
    waiting = [item for item in called if not item.calls]
    near = [item for item in waiting if item.client.ends[0] == leg.ends[0]]
    chosen = same[-1:] or near or waiting or called
    if chosen:
        chosen[0].calls.append(leg)
    else:
        scene.orphans.append(leg)
