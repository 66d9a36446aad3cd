"""A host with TCP services and RWBP: IPv4 packets and time in, packets out."""

from __future__ import annotations

from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import UDP
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import MalformedFrame
from bentpipe_reference.rwbp.parts import TRUE_PARTS, Parts
from bentpipe_reference.rwbp.services import BoundedChargen
from bentpipe_reference.rwbp.uplink import Uplink
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.host import Key, TcpHost
from bentpipe_reference.tcp.services import Service
from bentpipe_reference.tcp.wire import Segment

_PROTOCOL_AT = 9
"""Of the protocol in an IPv4 header."""


class RwbpHost(TcpHost):
    """Serves what a TCP host does; all packets leave by one scheduler and one IP queue.

    Args:
        address: dotted IPv4 address.
        config: settings of every connection and of the uplink.
        seed: seed of the initial sequence numbers and timestamp offsets.
        parts: what the host is composed of.
        most_connections: see :class:`TcpHost`.

    Attributes:
        uplink: the scheduler and the IP queue.
    """

    def __init__(
        self,
        address: str,
        config: RwbpConfig,
        seed: int,
        *,
        parts: Parts = TRUE_PARTS,
        most_connections: int = 64,
    ) -> None:
        super().__init__(address, config, seed, parts=parts, most_connections=most_connections)
        self.uplink = Uplink(config, parts)
        self._read_credit = parts.read_credit
        self._gateway = None if config.gateway is None else address_number(config.gateway)

    def _user(self, service: str, octets: int | None) -> Service:
        """See :class:`TcpHost`; chargen closes after so many octets, if they are given."""
        if service == "chargen" and octets is not None:
            return BoundedChargen(octets)
        return super()._user(service, octets)

    def receive(self, packet: bytes, now: float) -> None:
        """Process one IPv4 packet at ``now`` seconds."""
        udp = len(packet) > _PROTOCOL_AT and packet[_PROTOCOL_AT] == UDP
        if udp and self._gateway is not None:
            self._receive_credit(packet, self._gateway, now)
        else:
            super().receive(packet, now)

    def advance(self, now: float) -> None:
        """Run every timer that is due at ``now``, and let packets leave whose time has come."""
        super().advance(now)
        self._leave(now)

    def next_deadline(self) -> float | None:
        """When :meth:`advance` must be called next, None when no timer runs."""
        return earliest(super().next_deadline(), self.uplink.queue.next_deadline())

    def _receive_credit(self, packet: bytes, gateway: int, now: float) -> None:
        try:
            frame = self._read_credit(packet, gateway, self.address)
        except MalformedFrame:
            self.ignored += 1
            return
        assert self.uplink.credit is not None
        self.uplink.credit.on_frame(frame, now)
        self._leave(now)

    def _settle(self, key: Key, now: float) -> None:
        """See :class:`TcpHost`; what answers a stranger leaves, too."""
        super()._settle(key, now)
        self._leave(now)

    def _collect(self, key: Key, connection: Connection, now: float) -> None:  # noqa: ARG002
        """See :class:`TcpHost`."""
        assert isinstance(connection, RwbpConnection)
        self._emit(self.uplink.collect(connection, now))

    def _send(self, segment: Segment) -> None:
        """Answer a stranger if there is room in the IP queue."""
        if self.uplink.queue.has_room():
            self.uplink.queue.put(segment)

    def _leave(self, now: float) -> None:
        """Fill the IP queue, and let what may leave it."""
        self._emit(self.uplink.send(now))

    def _emit(self, leaving: list[Segment]) -> None:
        self._outbox.extend(self._parts.emit(segment) for segment in leaving)

    def _forget(self, key: Key) -> None:
        """Delete a connection; it leaves the ring."""
        connection = self.connections[key]
        super()._forget(key)
        assert isinstance(connection, RwbpConnection)
        self.uplink.remove(connection)
