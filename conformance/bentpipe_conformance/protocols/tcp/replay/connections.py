"""Which packets of a trace belong to which connection."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN, Tcp
from bentpipe_conformance.protocols.tcp.replay import Packet, Trace

Ends = tuple[tuple[str, int], tuple[str, int]]
"""(address, port) of the tester and of the implementation."""

GIVEN_UP_S = 10.0
"""A SYN-ACK with another number this long after the first belongs to another connection: the one
before was given up in SYN-RECEIVED, perhaps soon after a copy of the SYN had been answered."""


@dataclass(slots=True)
class _Connection:
    """A connection while its packets are gathered, and what those before the latest have shown.

    Attributes:
        packets: its packets.
        established: whether anything but SYNs was among them.
        first: the implementation's first.
        own_syns, syns: numbers of the SYNs of the implementation and of the tester.
        calls: whether the implementation sent a SYN of its own.
        own_ends: what acknowledges a FIN of the implementation.
        own_closed, closed: whether one was acknowledged; whether the tester sent one.
        own_reset: whether the implementation sent a RST.
        expected: the number that its latest segment expects next.
        reached: the end of what has arrived in sequence, whose acknowledgment may be delayed.
        over: whether the tester sent a RST with one of these numbers.
    """

    packets: list[Packet] = field(default_factory=list)
    established: bool = False
    first: Packet | None = None
    own_syns: set[int] = field(default_factory=set)
    syns: set[int] = field(default_factory=set)
    calls: bool = False
    own_ends: set[int] = field(default_factory=set)
    own_closed: bool = False
    closed: bool = False
    own_reset: bool = False
    expected: int | None = None
    reached: int | None = None
    over: bool = False

    def append(self, packet: Packet) -> None:
        """A further packet."""
        if self.packets:
            latest = self.packets[-1]
            if latest.content is not None:
                self._passed(latest, latest.content)
        self.packets.append(packet)

    def _passed(self, packet: Packet, tcp: Tcp) -> None:
        """What a packet shows once it is not the latest any more."""
        flags = tcp.flags
        if not flags & SYN:
            self.established = True
        if packet.outgoing:
            self.first = self.first or packet
            if flags & SYN:
                self.own_syns.add(tcp.seq)
                self.calls = self.calls or not flags & ACK
            if flags & FIN:
                self.own_ends.add((tcp.seq + tcp.length) % MODULUS)
            if flags & RST:
                self.own_reset = True
            elif flags & ACK and tcp.checksum_ok:
                self.expected = tcp.ack
            return
        if flags & SYN:
            self.syns.add(tcp.seq)
        if flags & FIN:
            self.closed = True
        if flags & ACK and tcp.ack in self.own_ends:
            self.own_closed = True
        if not tcp.checksum_ok or tcp.seq not in (self.expected, self.reached):
            return
        if flags & RST:
            self.over = True
        else:
            self.reached = (tcp.seq + tcp.length) % MODULUS

    def ends_before(self, packet: Packet, tcp: Tcp) -> bool:
        """Whether a packet belongs to another connection, as does the SYN that it answers."""
        syn = self.packets[-1].content
        if syn is None or self.packets[-1].outgoing or not packet.outgoing:
            return False
        if tcp.flags & (SYN | ACK) != SYN | ACK or syn.flags & (SYN | ACK) != SYN:
            return False
        return self._was_given_up(packet, tcp) or self._had_ended(tcp, syn)

    def _was_given_up(self, packet: Packet, tcp: Tcp) -> bool:
        """Whether a SYN-ACK answers a SYN after the IUT gave up a connection never established."""
        if self.established or self.first is None or self.first.content is None:
            return False
        late = packet.time - self.first.time >= GIVEN_UP_S
        return late and self.first.content.seq != tcp.seq

    def _had_ended(self, tcp: Tcp, syn: Tcp) -> bool:
        """Whether a SYN-ACK answers a new SYN after both had closed, or the IUT has said RST."""
        if tcp.seq in self.own_syns and (self.calls or syn.seq in self.syns):
            return False  # it is repeated, or has crossed the one that it answers
        if (self.closed and self.own_closed) or self.over:
            return True
        return syn.seq not in self.syns and self.own_reset


def connections_of(trace: Trace) -> list[tuple[Ends, list[Packet]]]:
    """Tester, IUT and packets of every connection of a trace at the ``iut`` capture point."""
    connections: list[tuple[Ends, list[Packet]]] = []
    latest: dict[Ends, _Connection] = {}
    for packet in trace.at("iut"):
        tcp = packet.content
        if tcp is None:
            continue
        source, destination = (tcp.src, tcp.sport), (tcp.dst, tcp.dport)
        ends = (destination, source) if packet.outgoing else (source, destination)
        known = latest.get(ends)
        if known is None or (packet.outgoing and known.ends_before(packet, tcp)):
            # The tester's SYN, which came before, begins the new connection too.
            packets = [] if known is None else [known.packets.pop()]
            known = latest[ends] = _Connection(packets)
            connections.append((ends, packets))
        known.append(packet)
    return connections
