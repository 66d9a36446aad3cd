"""A host with STP services: IPv4 packets and time in, packets out."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import UDP, Datagram, emit_datagram, parse_datagram
from bentpipe_reference.stp.codec import MalformedPacket
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import NoMemoryLeft, StpEndpoint
from bentpipe_reference.stp.events import TraceSink
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.services import NAMED, SERVICES, Chargen, Service
from bentpipe_reference.stp.variables import Address

_MOST_ROUNDS = 10_000
"""Rounds of packets and services at one moment, after which a service is held to be caught in a
loop."""


class StpHost:
    """Serves echo (7), discard (9) and chargen (19) over STP, in UDP or directly over IPv4.

    Malformed packets and those for others are counted in ``ignored``; no packet can raise.

    Args:
        address: dotted IPv4 address.
        config: settings of every connection; its ``protocol`` and ``udp_port`` are the host's.
        seed: seed of CSNs, ISSs and ephemeral ports.
        parts: the classes of the endpoint.
        services: port to service, echo, discard and chargen when omitted.
        trace: takes the protocol events of every connection.

    Attributes:
        endpoint: the packet-level core.
        ignored: datagrams that were malformed or not for this host.
    """

    def __init__(
        self,
        address: str,
        config: StpConfig,
        seed: int,
        *,
        parts: Parts = TRUE_PARTS,
        services: Mapping[int, Callable[[], Service]] = SERVICES,
        trace: TraceSink | None = None,
    ) -> None:
        self.address = address_number(address)
        self.config = config
        self.ignored = 0
        directly = config.protocol != UDP
        self._udp_port = 0 if directly else config.udp_port
        self.endpoint = StpEndpoint(
            config, seed, parts=parts,
            pseudo_header=self._pseudo_header if directly else None, trace=trace,
        )  # fmt: skip
        self._services = services
        self._opened: list[weakref.ref[Connection]] = []
        for port in services:
            self.endpoint.listen(port)

    @property
    def connections(self) -> Mapping[tuple[Address, int, int], Connection]:
        """The live connections, by peer, peer port and local port."""
        return self.endpoint.connections

    def receive(self, packet: bytes, now: float) -> None:
        """Take one IPv4 packet at ``now`` seconds."""
        try:
            datagram = parse_datagram(packet)
        except MalformedPacket:
            self._ignore()
            return
        if (
            datagram.destination != self.address
            or datagram.protocol != self.config.protocol
            or datagram.udp_dport != self._udp_port
        ):
            self._ignore()
            return
        peer = (datagram.source, datagram.udp_sport)
        self.endpoint.receive(datagram.payload, peer, now)
        self._serve()

    def advance(self, now: float) -> None:
        """Run every timer that is due at ``now``; the services run with :meth:`transmit`."""
        self.endpoint.advance(now)

    def transmit(self, now: float) -> list[bytes]:
        """IPv4 packets to send at ``now``, in order.

        Raises:
            RuntimeError: the services go on without end.
        """
        packets = []
        for _ in range(_MOST_ROUNDS):
            for peer, octets in self.endpoint.transmit(now):
                packets.append(self._emit(peer, octets))
            if not self._serve():
                return packets
        raise RuntimeError(f"the services did not come to rest in {_MOST_ROUNDS} rounds")

    def next_deadline(self) -> float | None:
        """When :meth:`advance` must be called next, None when no timer runs."""
        return self.endpoint.next_deadline()

    def connect(
        self,
        remote: str,
        port: int,
        service: Service,
        *,
        udp_port: int | None = None,
        local_port: int | None = None,
    ) -> Connection:
        """Open a connection to ``remote`` and run ``service`` on it.

        Args:
            remote: dotted IPv4 address.
            port: STP port there.
            service: runs on the connection.
            udp_port: UDP port there, this host's own when omitted.
            local_port: our STP port, a free one when omitted.
        """
        below = (udp_port or self.config.udp_port) if self.config.protocol == UDP else 0
        connection = self.endpoint.connect((address_number(remote), below), port, local_port)
        connection.user = service
        service.run(connection)
        return connection

    def open(
        self,
        remote: str,
        port: int,
        service: str,
        now: float,  # noqa: ARG002 - the BEGIN leaves with transmit
        udp_port: int | None = None,
        octets: int | None = None,
    ) -> Connection | None:
        """Open a connection to ``remote`` and run ``echo``, ``discard`` or ``chargen`` on it.

        Chargen closes after so many octets, if they are given. None comes of it where there is no
        memory for another connection, which is no crash of the host.

        Raises:
            ValueError: there is no such service.
        """
        if service not in NAMED:
            raise ValueError(f"there is no service {service!r}; there are {', '.join(NAMED)}")
        user = Chargen(octets) if service == "chargen" else NAMED[service]()
        try:
            connection = self.connect(remote, port, user, udp_port=udp_port)
        except NoMemoryLeft:
            return None
        self._opened = [each for each in self._opened if each() is not None]
        self._opened.append(weakref.ref(connection))
        return connection

    def abort(self, now: float) -> None:
        """Have the user abort every connection that :meth:`open` has made."""
        opened, self._opened = self._opened, []
        for connection in filter(None, (each() for each in opened)):
            connection.abort(now)

    def _ignore(self) -> None:
        self.ignored += 1

    def _serve(self) -> bool:
        """Run the services with events; False when there were none."""
        eventful = self.endpoint.take_events()
        for connection, _ in eventful:
            if connection.user is None:
                connection.user = self._services[connection.identity.local_port]()
            connection.user.run(connection)
        return bool(eventful)

    def _pseudo_header(self, peer: tuple[Any, ...]) -> bytes:
        # The sum does not depend on which address comes first, so it serves both directions.
        return Datagram(self.address, peer[0], b"", self.config.protocol).pseudo_header

    def _emit(self, peer: tuple[Any, ...], octets: bytes) -> bytes:
        protocol = self.config.protocol
        ports = (self.config.udp_port, peer[1]) if protocol == UDP else (0, 0)
        return emit_datagram(Datagram(self.address, peer[0], octets, protocol, *ports))
