"""An endpoint on a socket in a loop, and the users of its connections."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from bentpipe_reference.common.encapsulation import UDP
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.io.addresses import Place, SocketAddress
from bentpipe_reference.stp.io.carrier import Carrier
from bentpipe_reference.stp.io.errors import StpIoError
from bentpipe_reference.stp.io.loop import Loop, Pump
from bentpipe_reference.stp.io.raw import RawCarrier
from bentpipe_reference.stp.io.udp import UdpCarrier
from bentpipe_reference.stp.services import Service

Accept = Callable[[Connection], Service]
"""Makes the user of a connection that was accepted."""


class Node:
    """Runs connections on a carrier; closing it closes the carrier.

    Args:
        config: settings of all connections.
        carrier: the socket.
        seed: of CSNs, ISSs and ports; from the system's randomness if None (STP-CC-011).

    Attributes:
        endpoint: the protocol.
        loop: the clock, files to watch and alarms.
        accept: makes the user of an accepted connection, by local port.
    """

    def __init__(self, config: StpConfig, carrier: Carrier, seed: int | None = None) -> None:
        self.carrier = carrier
        self.endpoint = make_endpoint(config, carrier, seed)
        self.pump = Pump(self.endpoint, carrier, self._serve)
        self.loop = Loop(self.pump)
        self.accept: dict[int, Accept] = {}

    @property
    def place(self) -> Place:
        """Where this node is."""
        host, udp_port = self.carrier.address[:2]
        return Place(str(host), udp_port)

    def listen(self, port: int, accept: Accept) -> None:
        """Accept calls to ``port``; ``accept`` makes each one's user."""
        self.accept[port] = accept
        self.endpoint.listen(port)

    def connect(self, peer: SocketAddress, port: int) -> Connection:
        """Call ``port`` of ``peer``; set the connection's ``user`` before anything else runs.

        Raises:
            StpIoError: no local port is free.
        """
        try:
            return self.endpoint.connect(peer, port)
        except ValueError as error:
            raise StpIoError(
                f"The call cannot be made: {error}; close other connections."
            ) from None

    def _serve(self, _: float) -> bool:
        eventful = self.endpoint.take_events()
        for connection, _ in eventful:
            if connection.user is None:
                connection.user = self.accept[connection.identity.local_port](connection)
            connection.user.run(connection)
        return bool(eventful)

    def close(self) -> None:
        """Close the socket; peers of open connections are not told."""
        self.loop.close()
        self.carrier.close()


def listening(place: Place, config: StpConfig) -> Carrier:
    """A carrier that listens at ``place``.

    Raises:
        StpIoError: the address is unknown, not ours, in use or forbidden.
    """
    kind = UdpCarrier if config.protocol == UDP else RawCarrier
    return kind.listening(place, config.protocol, config.mtu)


def towards(place: Place, config: StpConfig) -> Carrier:
    """A carrier connected to the endpoint at ``place``.

    Raises:
        StpIoError: the name is unknown, there is no route, or root is required.
    """
    kind = UdpCarrier if config.protocol == UDP else RawCarrier
    return kind.towards(place, config.protocol, config.mtu)


def make_endpoint(config: StpConfig, carrier: Carrier, seed: int | None = None) -> StpEndpoint:
    """An endpoint for a carrier, with the pseudo-header of its checksums."""
    octets = secrets.token_bytes(24)
    return StpEndpoint(
        config,
        int.from_bytes(octets[16:], "big") if seed is None else seed,
        pseudo_header=carrier.pseudo_header,
        secret=octets[:16],
    )
