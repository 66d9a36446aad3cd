"""The tester as a scripted peer of RWBP."""

from __future__ import annotations

from typing import Any, ClassVar

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.protocols.rwbp.codec import Rwbp, dissect
from bentpipe_conformance.protocols.rwbp.connection import Connection
from bentpipe_conformance.protocols.tcp import peer as tcp_peer


class Peer(tcp_peer.Peer):
    """The tester on one lane during one case; see TCP's, too."""

    connection: ClassVar[type[Connection]] = Connection
    silence: ClassVar[str] = "RWBP-NG-001"

    def dissect(self, octets: bytes) -> Rwbp:
        """The segment in an IPv4 packet."""
        segment = dissect(octets)
        if not segment.offset_ok:
            raise MalformedPacket("the TCP data offset points outside the segment")
        return segment

    def connect(self, service: str | int = "chargen", **offer: Any) -> Connection:
        """Open a connection to a service of the IUT and complete the handshake.

        Args:
            service: name of a service (section 13), or a port.
            offer: what the tester offers, see :class:`Connection`.

        Raises:
            NotReached: no SYN-ACK came, or the connection was refused.
        """
        connection = super().connect(service, **offer)
        assert isinstance(connection, Connection)
        return connection
