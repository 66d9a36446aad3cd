"""A host with TOY services: IPv4 packets and time in, packets out."""

from __future__ import annotations

import random

from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import (
    UDP,
    Datagram,
    MalformedPacket,
    emit_datagram,
    parse_datagram,
)
from bentpipe_reference.toy.codec import UDP_PORT, Kind, Packet, decode, encode
from bentpipe_reference.toy.connection import Connection
from bentpipe_reference.toy.parts import Parts
from bentpipe_reference.toy.services import SERVICES, Service

Key = tuple[int, int, int, int]
"""Remote address, remote UDP port, own port and remote port."""


class ToyHost:
    """Serves echo (7), discard (9) and chargen (19); no packet can raise.

    Args:
        address: dotted IPv4 address.
        timeout_s: seconds until a packet is sent again.
        parts: the classes of every connection.
        seed: seed of the ports from which it calls.
    """

    def __init__(self, address: str, timeout_s: float, parts: Parts, seed: int) -> None:
        self._address = address_number(address)
        self._timeout_s = timeout_s
        self._parts = parts
        self._random = random.Random(seed)
        self._running: dict[Key, tuple[Connection, Service]] = {}
        self._outbox: list[bytes] = []

    def receive(self, packet: bytes, now: float) -> None:  # noqa: ARG002
        """Process one IPv4 packet."""
        try:
            datagram = parse_datagram(packet)
            toy = decode(datagram.payload)
        except MalformedPacket:
            return
        if datagram.destination != self._address or datagram.udp_dport != UDP_PORT:
            return
        key = (datagram.source, datagram.udp_sport, toy.dport, toy.sport)
        if key not in self._running and toy.kind is Kind.OPEN and toy.dport in SERVICES:
            self._start(key, SERVICES[toy.dport](), calls=False)
        if key in self._running:
            self._running[key][0].receive(toy)
        else:
            self._answer_stray(key, toy)

    def advance(self, now: float) -> None:
        """Timers expire when :meth:`transmit` is called next."""

    def transmit(self, now: float) -> list[bytes]:
        """The IPv4 packets to send now."""
        for key, (connection, service) in list(self._running.items()):
            service.run(connection)
            for packet in connection.transmit(now):
                self._emit(key, packet)
            if connection.is_over:
                del self._running[key]
        outbox, self._outbox = self._outbox, []
        return outbox

    def next_deadline(self) -> float | None:
        """When the next timer expires, None when none runs."""
        found = (connection.next_deadline() for connection, _ in self._running.values())
        return min((deadline for deadline in found if deadline is not None), default=None)

    def connect(self, remote: str, port: int, service: Service) -> Connection:
        """Open a connection and run ``service`` on it."""
        own_port = self._random.randrange(49152, 65536)
        key = (address_number(remote), UDP_PORT, own_port, port)
        return self._start(key, service, calls=True)

    def _start(self, key: Key, service: Service, *, calls: bool) -> Connection:
        connection = self._parts.make(key[2:], self._timeout_s, calls=calls)
        self._running[key] = (connection, service)
        return connection

    def _answer_stray(self, key: Key, toy: Packet) -> None:
        """Answer a packet that belongs to no connection."""
        kinds = {Kind.OPEN: Kind.REFUSE, Kind.DATA: Kind.ABORT, Kind.CLOSE: Kind.ACK}
        if toy.kind in kinds:
            self._emit(key, Packet(toy.dport, toy.sport, kinds[toy.kind], toy.bit))

    def _emit(self, key: Key, packet: Packet) -> None:
        remote, udp_port, _, _ = key
        self._outbox.append(
            emit_datagram(Datagram(self._address, remote, encode(packet), UDP, UDP_PORT, udp_port))
        )
