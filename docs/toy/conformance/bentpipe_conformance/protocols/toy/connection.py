"""One connection of the tester."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.peer import BaseConnection
from bentpipe_conformance.protocols.toy.codec import (
    ABORT,
    ACCEPT,
    ACK,
    DATA,
    OPEN,
    REFUSE,
    Toy,
    build,
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A packet as it reached the tester."""

    time: float
    packet: Toy

    @property
    def has_data(self) -> bool:
        """Whether it is a DATA."""
        return self.packet.kind == DATA


class Connection(BaseConnection[Toy, Arrival]):
    """Nothing is answered unless the script asks for it.

    Attributes:
        stream: octets received in order.
    """

    def __init__(self, peer: Any, port: int, source_port: int, udp_port: int) -> None:
        super().__init__(peer, port, source_port)
        self.stream = bytearray()
        self._udp_port = udp_port
        self._accepted = False
        self._bit = 0
        self._expected = 0

    @property
    def answered(self) -> bool:
        """See :class:`BaseConnection`."""
        return self._accepted

    @property
    def progress(self) -> str:
        """See :class:`BaseConnection`."""
        return f"{len(self.stream)} octets received"

    def accept(self, time: float, packet: Toy) -> None:
        """See :class:`BaseConnection`."""
        if packet.kind == ACCEPT:
            self._accepted = True
            return
        if packet.kind in (REFUSE, ABORT):
            self.closed = f"the implementation sent {packet.name}"
        self.inbox.append(Arrival(time, packet))

    def hold(self, arrival: Arrival) -> None:
        """See :class:`BaseConnection`."""
        if arrival.packet.bit == self._expected:
            self.stream += arrival.packet.data
            self._expected ^= 1

    def send(self, kind: int, bit: int = 0, data: bytes = b"") -> None:
        """Send a packet."""
        src, dst = self.peer.address, self.peer.iut_address
        toy = Toy(src, dst, self.source_port, self.port, kind, bit, data, udp_dport=self._udp_port)
        self.peer.send(build(toy))

    def open(self) -> None:
        """Send OPEN."""
        self.send(OPEN)

    def abort(self) -> None:
        """See :class:`BaseConnection`."""
        self.send(ABORT)
        self.closed = "the tester aborted"

    def acknowledge(self, arrival: Arrival) -> None:
        """Take in what an arrival carries, and acknowledge it."""
        if arrival.packet.in_sequence:
            self.hold(arrival)
            self.send(ACK, arrival.packet.bit)

    def deliver(self, data: bytes) -> None:
        """Send DATA and wait until it is acknowledged, acknowledging what arrives meanwhile."""
        bit, heard = self._bit, list[Arrival]()
        self.send(DATA, bit, data)

        def serve(arrival: Arrival) -> None:
            self.acknowledge(arrival)
            if arrival.packet.kind == ACK and arrival.packet.bit == bit:
                heard.append(arrival)

        self.serve_until(lambda: bool(heard), serve)
        self._bit ^= 1

    def repeat(self, data: bytes) -> None:
        """Send the DATA that was delivered last once more."""
        self.send(DATA, self._bit ^ 1, data)

    def receive(self, octets: int) -> None:
        """Acknowledge what arrives until there are so many octets."""
        self.serve_until(lambda: len(self.stream) >= octets, self.acknowledge)
