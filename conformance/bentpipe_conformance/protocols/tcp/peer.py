"""The tester as a scripted TCP peer."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.peer import BasePeer
from bentpipe_conformance.protocols.tcp.codec import Tcp, dissect
from bentpipe_conformance.protocols.tcp.connection import Connection


class Peer(BasePeer[Tcp, Connection]):
    """The tester on one lane during one case."""

    def dissect(self, octets: bytes) -> Tcp:
        """The segment in an IPv4 packet."""
        segment = dissect(octets)
        if not segment.offset_ok:
            raise MalformedPacket("the TCP data offset points outside the segment")
        return segment

    def connect(self, service: str | int = "chargen", **offer: Any) -> Connection:
        """Open a connection to a service of the IUT and complete the handshake.

        Args:
            service: name of an upper-tester service, or a port.
            offer: what the tester offers, see :class:`Connection`.

        Raises:
            NotReached: no SYN-ACK came, or the connection was refused.
        """
        connection = self.begin(service, **offer)
        connection.establish()
        return connection

    def begin(self, service: str | int = "chargen", **offer: Any) -> Connection:
        """Send a SYN and return at once; arguments as for :meth:`connect`."""
        connection = self.draft(service, **offer)
        connection.send_syn()
        return connection

    def draft(self, service: str | int = "chargen", **offer: Any) -> Connection:
        """A connection on which nothing has been sent; arguments as for :meth:`connect`."""
        own_port = self.new_port()
        return self.add(Connection(self, self.port_of(service), own_port, **offer))
