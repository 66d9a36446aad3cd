"""The tester as a scripted peer of RWBP, and as the gateway of its link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.statement import declared
from bentpipe_conformance.engine.trace import dissected
from bentpipe_conformance.protocols.rwbp.codec import Rwbp, dissect
from bentpipe_conformance.protocols.rwbp.connection import Connection
from bentpipe_conformance.protocols.rwbp.gateway import AMPLE, Gateway
from bentpipe_conformance.protocols.tcp import connection as tcp_connection
from bentpipe_conformance.protocols.tcp import peer as tcp_peer

SETTLED_S = 0.3
"""Longer than the acknowledgment timer (RWBP-AK-002), and than what a full IP queue takes."""

SHARE_S = 0.05
"""Between looks at all connections."""

PROTOCOL, TCP, SOURCE = slice(9, 10), b"\6", slice(12, 16)
"""Where an IPv4 header names the protocol that it carries, TCP's number, and where the sender."""


class Peer(tcp_peer.Peer):
    """The tester on one lane during one case; see TCP's, too.

    An IUT whose packets all leave by a link with a gateway is granted ample credit from the start;
    another one is called at an address without, until a script goes :meth:`behind_the_link`.

    Attributes:
        gateway: the gateway of the link that the tester speaks to, None where there is none.
    """

    connection: ClassVar[type[Connection]] = Connection
    silence: ClassVar[str] = "RWBP-NG-001"

    def __init__(self, *lane: Any, ics: Mapping[str, Any] | None = None, **how: Any) -> None:
        super().__init__(*lane, **how)
        self._ics = ics or {}
        self._link_address = self._ics.get("link_address", "")
        self._other_address = self.iut_address
        self.gateway: Gateway | None = None
        if not self._link_address and declared(self._ics, "gateway"):
            self.gateway = Gateway(self)
            self.gateway.grant(AMPLE)

    def behind_the_link(self) -> Gateway:
        """Speak to the IUT where a link rate or a gateway delays what it sends.

        Returns:
            The gateway, which grants nothing yet unless it has been there from the start.
        """
        self.iut_address = self._link_address or self.iut_address
        if self.gateway is None:
            self.gateway = Gateway(self, obeyed=declared(self._ics, "gateway"))
        return self.gateway

    def leave_the_link(self) -> None:
        """End what is open behind the link, and speak to the IUT where nothing delays it again.

        Where all packets leave by the link, or no script has gone there, this changes nothing.
        """
        gateway = self.gateway
        if gateway is None or self.iut_address == self._other_address:
            return
        self._empty_the_queue(gateway)
        for connection in self.open_connections:
            if connection.syn.dst == gateway.proxy:
                connection.abort()
        self.wait(self.rtt)
        gateway.stop()
        self.iut_address = self._other_address

    def _empty_the_queue(self, gateway: Gateway) -> None:
        """Let leave what waits, so that a RST stands where the last acknowledgment says."""
        gateway.restart(AMPLE)
        self.wait(self.rtt + SETTLED_S)
        if gateway.strays:
            gateway.return_to_epoch()
            self.wait(self.rtt + SETTLED_S)

    def share(self, seconds: float, credit: int = 0) -> None:
        """Receive on all connections for a while, with :meth:`tend`."""
        until = self.now() + seconds
        while True:
            self.tend(self.open_connections, credit)
            if self.now() >= until:
                return
            self.wait(min(SHARE_S, until - self.now()))

    def tend(self, connections: Iterable[tcp_connection.Connection], credit: int) -> None:
        """Make room for what has arrived, and permit what leaves so many packets under way."""
        for connection in connections:
            if connection.inbox:  # a probe of a closed window is answered, too
                connection.collect(0.0)
                connection.ack()
        gateway = self.gateway
        if gateway is not None and (more := gateway.arrived + credit - gateway.limit) > 0:
            gateway.grant(more)

    def dissect(self, octets: bytes) -> Rwbp:
        """The segment in an IPv4 packet."""
        gateway = self.gateway
        if gateway is not None and octets[PROTOCOL] + octets[SOURCE] == TCP + gateway.source:
            gateway.took()
        segment = dissected(dissect, octets) or dissect(octets)
        if not segment.offset_ok:
            raise MalformedPacket("the TCP data offset points outside the segment")
        return segment

    def pump(self, deadline: float) -> bool:
        """Take one packet off the link, see TCP's; the gateway repeats its frame meanwhile."""
        gateway = self.gateway
        while gateway is not None and gateway.due is not None and gateway.due <= deadline:
            if super().pump(gateway.due):
                return True
            gateway.tell()
        return super().pump(deadline)

    def finish(self) -> None:
        """See TCP's; the IUT's IP queue is emptied before, and the next case's epoch is newer.

        Else a connection would outlive the case, whose last acknowledgment waits there.
        """
        gateway = self.gateway
        if gateway is not None:
            self._empty_the_queue(gateway)
        super().finish()
        if gateway is not None:
            self.wait(max(self.rtt, gateway.ahead))
            gateway.stop()

    def connect(self, service: str | int = "chargen", **offer: Any) -> Connection:
        """Open a connection to a service of the IUT and complete the handshake.

        Args:
            service: name of a service (section 13), or a port.
            offer: what the tester offers, see :class:`Connection`.

        Raises:
            NotReached: no SYN-ACK came, or the connection was refused.
        """
        return cast(Connection, super().connect(service, **offer))

    def begin(self, service: str | int = "chargen", **offer: Any) -> Connection:
        """Send a SYN and return at once; arguments as for :meth:`connect`."""
        return cast(Connection, super().begin(service, **offer))
