"""A host with TCP services: IPv4 packets and time in, packets out."""

from __future__ import annotations

import random
import weakref
from collections import deque

from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.parts import TRUE_PARTS, Parts
from bentpipe_reference.tcp.services import NAMED, SERVICES, Service
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, WireError

_ACK, _SYN, _RST = int(Flags.ACK), int(Flags.SYN), int(Flags.RST)

_REMEMBERED = 1000
"""Ports of the latest calls, from which none leaves again."""

Key = tuple[int, int, int]
"""Remote address, remote port and local port."""


class TcpHost:
    """Serves echo, discard, daytime and chargen; resets what belongs to no connection.

    Every packet that arrives is processed or counted in ``ignored``; none raises an error.

    Args:
        address: dotted IPv4 address.
        config: settings of every connection.
        seed: seed of the initial sequence numbers and timestamp offsets.
        parts: what the host is composed of.
        most_connections: connections held at once; beyond them one in SYN-RECEIVED or TIME-WAIT
            is dropped for a new one, or else the SYN is ignored.

    Attributes:
        connections: the live connections.
        ignored: packets that were not an intact TCP segment for this address.
    """

    def __init__(
        self,
        address: str,
        config: EndpointConfig,
        seed: int,
        *,
        parts: Parts = TRUE_PARTS,
        most_connections: int = 64,
    ) -> None:
        self.address = address_number(address)
        self.config = config
        self.connections: dict[Key, Connection] = {}
        self.ignored = 0
        self._parts = parts
        self._running: dict[Key, Service] = {}
        self._most_connections = most_connections
        self._random = random.Random(seed)
        self._numbers = parts.numbers(self._random)
        self._outbox: list[bytes] = []
        self._opened: list[weakref.ref[Connection]] = []
        self._called: deque[int] = deque(maxlen=_REMEMBERED)

    def receive(self, packet: bytes, now: float) -> None:
        """Process one IPv4 packet at ``now`` seconds."""
        try:
            segment = self._parts.parse(packet)
        except WireError:
            segment = None
        if segment is None or segment.destination != self.address:
            self.ignored += 1
            return
        key = (segment.source, segment.sport, segment.dport)
        connection = self.connections.get(key)
        if connection is not None:
            connection.receive(segment, now)
        else:
            self._receive_without_connection(key, segment, now)
        self._settle(key, now)

    def advance(self, now: float) -> None:
        """Run every timer that is due at ``now``."""
        for key, connection in list(self.connections.items()):
            deadline = connection.next_deadline()
            if deadline is not None and deadline <= now:
                connection.advance(now)
                self._settle(key, now)

    def transmit(self, now: float) -> list[bytes]:  # noqa: ARG002
        """IPv4 packets to send at ``now``, in order."""
        outbox, self._outbox = self._outbox, []
        return outbox

    def next_deadline(self) -> float | None:
        """When :meth:`advance` must be called next, None when no timer runs."""
        return earliest(*(each.next_deadline() for each in self.connections.values()))

    def connect(self, remote: str, port: int, service: Service, now: float) -> Connection:
        """Open a connection to ``remote`` and run ``service`` on it."""
        key = (address_number(remote), port, self._random.randrange(49152, 65536))
        if key[2] in self._called:
            # Late segments of that call would find this connection.
            return self.connect(remote, port, service, now)
        self._called.append(key[2])
        connection = self._new_connection(key, service)
        connection.open(now)
        self._settle(key, now)
        return connection

    def run(self, connection: Connection, now: float) -> None:
        """Run the service of a connection although nothing has happened to it."""
        ends = connection.addresses
        key = (ends.remote, ends.remote_port, ends.local_port)
        if self.connections.get(key) is connection:
            self._settle(key, now)

    def open(
        self,
        remote: str,
        port: int,
        service: str,
        now: float,
        udp_port: int = 0,  # noqa: ARG002
        octets: int | None = None,
    ) -> Connection:
        """Open a connection to ``remote`` and run the service of this name on it, without end.

        ``udp_port`` has a meaning for protocols that travel in UDP.
        """
        connection = self.connect(remote, port, self._user(service, octets), now)
        self._opened = [each for each in self._opened if each() is not None]
        self._opened.append(weakref.ref(connection))
        return connection

    def _user(self, service: str, octets: int | None) -> Service:  # noqa: ARG002
        """Who uses a connection that :meth:`open` makes."""
        return NAMED[service]()

    def abort(self, now: float) -> None:
        """Have the user abort every connection that :meth:`open` has made."""
        opened, self._opened = self._opened, []
        for connection in filter(None, (each() for each in opened)):
            connection.abort("its user aborted", now)
            self.run(connection, now)

    def _receive_without_connection(self, key: Key, segment: Segment, now: float) -> None:
        flags = segment.flags
        service = SERVICES.get(segment.dport)
        if flags & (_SYN | _ACK | _RST) != _SYN or service is None:
            # LISTEN ignores what has neither SYN nor ACK (RFC 9293 section 3.10.7.2).
            refusal = self._parts.refuse(segment) if service is None or flags & _ACK else None
            if refusal is not None:
                self._send(refusal)
            return
        if not self._has_room():
            return
        self._new_connection(key, service(), segment).accept(segment, now)

    def _new_connection(self, key: Key, service: Service, syn: Segment | None = None) -> Connection:
        self._running[key] = service
        drawn = self._numbers.draw(syn)
        self.connections[key] = connection = self._parts.connection(
            self.config,
            Addresses(self.address, key[2], key[0], key[1]),
            drawn if self.config.iss is None else self.config.iss,
            self._parts,
            timestamp_offset=self._numbers.draw_clock(syn),
        )
        return connection

    def _has_room(self) -> bool:
        """Whether one more connection fits, if need be in place of one that is hardly alive."""
        if len(self.connections) < self._most_connections:
            return True
        spare = (State.TIME_WAIT, State.SYN_RECEIVED)
        key = next((key for key, each in self.connections.items() if each.state in spare), None)
        if key is not None:
            self._forget(key)
        return key is not None

    def _settle(self, key: Key, now: float) -> None:
        """Run the service, collect what the connection sends, delete it when it has ended."""
        connection = self.connections.get(key)
        if connection is None:
            return
        if connection.state is not State.CLOSED:
            self._running[key].run(connection, now)
        self._collect(key, connection, now)
        if connection.state is State.CLOSED:
            self._forget(key)

    def _collect(self, key: Key, connection: Connection, now: float) -> None:  # noqa: ARG002
        """Take what the connection sends."""
        for segment in connection.transmit(now):
            self._send(segment)

    def _send(self, segment: Segment) -> None:
        """Let a segment leave."""
        self._outbox.append(self._parts.emit(segment))

    def _forget(self, key: Key) -> None:
        del self.connections[key]
        del self._running[key]
