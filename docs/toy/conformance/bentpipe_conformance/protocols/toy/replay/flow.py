"""A connection at the implementation's side: its packets, and what each one answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bentpipe_conformance.protocols.toy.codec import ABORT, ACCEPT, ACK, OPEN, REFUSE, Toy
from bentpipe_conformance.protocols.toy.replay import Packet, Trace


@dataclass(slots=True)
class Event:
    """One packet, and the first one that answers it.

    Attributes:
        packet: the packet.
        toy: its content.
        answer: what the implementation answered; for its own packets, what reached it.
    """

    packet: Packet
    toy: Toy
    answer: Packet | None = None

    @property
    def time(self) -> float:
        """When it passed, seconds."""
        return self.packet.time

    def answered_by(self, answer: Toy) -> bool:
        """Whether such a packet answers this one."""
        if self.toy.kind == OPEN:
            return answer.kind in (ACCEPT, REFUSE)
        same = answer.kind == ACK and answer.bit == self.toy.bit
        return self.toy.in_sequence and (same or answer.kind == ABORT)


@dataclass(slots=True)
class Flow:
    """One connection.

    Attributes:
        watched_until: time of the last packet of the whole trace.
        heard: what the implementation was asked to answer while the connection was open.
        sent: DATA and CLOSE of the implementation, retransmissions included.
        packets: all packets.
        opened: whether an OPEN was accepted.
        over_at: when the connection was aborted, None while it was not.
    """

    watched_until: float
    heard: list[Event] = field(default_factory=list)
    sent: list[Event] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    opened: bool = False
    over_at: float | None = None

    def take(self, packet: Packet, toy: Toy) -> None:
        """The next packet of the connection."""
        self.packets.append(packet)
        # An ACK acknowledges every transmission; an answer of the implementation one packet only.
        for event in self.sent if not packet.outgoing else self.heard:
            if event.answer is None and event.answered_by(toy):
                event.answer = packet
                if packet.outgoing:
                    break
        if packet.outgoing and toy.in_sequence:
            self.sent.append(Event(packet, toy))
        elif not packet.outgoing and (toy.kind == OPEN or (toy.in_sequence and self.opened)):
            self.heard.append(Event(packet, toy))
        self.opened = self.opened or toy.kind == ACCEPT
        if toy.kind == ABORT and self.over_at is None:
            self.over_at = packet.time

    def exchanges(self) -> Iterator[list[Event]]:
        """What was sent, the transmissions of one sequence number together."""
        transmissions: list[Event] = []
        for event in self.sent:
            if transmissions and event.toy.bit != transmissions[-1].toy.bit:
                yield transmissions
                transmissions = []
            transmissions.append(event)
        if transmissions:
            yield transmissions


def read_flows(trace: Trace) -> list[Flow]:
    """The connections of a trace."""
    packets = [packet for packet in trace.at("iut") if packet.content is not None]
    flows: list[Flow] = []
    current: dict[tuple[str, int, int], Flow] = {}
    for packet in packets:
        toy = packet.content
        assert toy is not None
        if not toy.checksum_ok:
            continue
        ends = (toy.dst, toy.dport, toy.sport), (toy.src, toy.sport, toy.dport)
        key = ends[0] if packet.outgoing else ends[1]
        known = current.get(key)
        if known is None or (toy.kind == OPEN and known.over_at is not None):
            current[key] = Flow(trace.packets[-1].time)
            flows.append(current[key])
        current[key].take(packet, toy)
    return flows
