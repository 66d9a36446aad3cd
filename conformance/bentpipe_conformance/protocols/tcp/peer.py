"""The tester as a scripted TCP peer."""

from __future__ import annotations

from typing import Any, ClassVar

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.lane import OpenRequest
from bentpipe_conformance.engine.peer import BasePeer, NotReached
from bentpipe_conformance.engine.trace import dissected
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN, Tcp, dissect
from bentpipe_conformance.protocols.tcp.connection import Connection


class Peer(BasePeer[Tcp, Connection]):
    """The tester on one lane during one case."""

    connection: ClassVar[type[Connection]] = Connection
    silence: ClassVar[str] = "SNR-CON-043"
    """The requirement that an IUT breaks which does not send a SYN when its user calls."""

    def dissect(self, octets: bytes) -> Tcp:
        """The segment in an IPv4 packet."""
        segment = dissected(dissect, octets) or dissect(octets)
        if not segment.offset_ok:
            raise MalformedPacket("the TCP data offset points outside the segment")
        return segment

    def connect(
        self, service: str | int = "chargen", *, rtt: float = 0.0, **offer: Any
    ) -> Connection:
        """Open a connection to a service of the IUT and complete the handshake.

        Args:
            service: name of an upper-tester service, or a port.
            rtt: round-trip time that the IUT is to see at least, see :meth:`retreat`.
            offer: what the tester offers, see :class:`Connection`.

        Raises:
            NotReached: no SYN-ACK came, or the connection was refused.
        """
        self.retreat(rtt)
        connection = self.begin(service, **offer)
        connection.establish()
        return connection

    def begin(self, service: str | int = "chargen", **offer: Any) -> Connection:
        """Send a SYN and return at once; arguments as for :meth:`connect`."""
        connection = self.draft(service, **offer)
        connection.send_syn()
        return connection

    def draft(
        self, service: str | int = "chargen", *, source_port: int | None = None, **offer: Any
    ) -> Connection:
        """A connection on which nothing has been sent; arguments as for :meth:`connect`.

        ``source_port`` is that of a connection which is over; a new one when omitted.
        """
        own_port = source_port or self.new_port()
        return self.add(self.connection(self, self.port_of(service), own_port, **offer))

    def summon(
        self, port: int = 9, *, octets: int = 100_000, within: float | None = None, **offer: Any
    ) -> Connection:
        """Have the IUT open a connection and wait for its SYN, which is not answered yet.

        Args:
            port: the tester's port: 9, to which the IUT sends, or 19, from which it receives.
            octets: how much it sends at least, if it sends.
            within: seconds to wait for the SYN.
            offer: what the tester offers, see :class:`Connection`.

        Raises:
            NotReached: no SYN came.
            LaneError: the IUT cannot be made to open a connection.
        """
        self.have_opened(OpenRequest(self.address, port, octets))

        def calls() -> list[Tcp]:
            return [
                packet for _, packet in self.strays
                if isinstance(packet, Tcp) and packet.flags & (SYN | ACK) == SYN
                and packet.dport == port
            ]  # fmt: skip

        patience = self.patience if within is None else within
        if not self.pump_until(lambda: bool(calls()), patience):
            raise NotReached(
                f"{self.silence}: its user called, but no SYN came within {patience:.1f} s"
            )
        syn = calls()[0]
        self.strays.clear()
        connection = self.add(self.connection(self, syn.sport, port, **offer))
        connection.called(syn)
        return connection
