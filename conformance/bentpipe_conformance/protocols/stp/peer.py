"""The tester as a scripted STP peer; SDs of a direction are counted from 0, that numbered ISS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from bentpipe_conformance.engine.codec import UDP
from bentpipe_conformance.engine.encapsulation import DEFAULT_UDP_PORT, IN_UDP, Encapsulation
from bentpipe_conformance.engine.lane import OpenRequest, Port
from bentpipe_conformance.engine.peer import UNUSED_PORT, BasePeer, NotReached
from bentpipe_conformance.protocols.stp.codec import BEGIN, ENDAK, C, Stp, dissect
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, DISCARD

Opener = Callable[[OpenRequest], None]
"""Has the implementation open a connection."""


Role = Literal["send", "receive"]

ROLES: Mapping[Role, int] = {"send": DISCARD, "receive": CHARGEN}
"""The tester's port that the IUT calls for a role: discard and chargen."""


class Peer(BasePeer[Stp, Connection]):
    """The tester on one lane during one case.

    Attributes:
        udp_port: the tester's UDP port, where STP travels in UDP.
    """

    def __init__(
        self,
        port: Port,
        address: str,
        iut_address: str,
        *,
        encapsulation: Encapsulation = IN_UDP,
        opener: Opener | None = None,
        **settings: Any,
    ) -> None:
        """See :class:`BasePeer` for ``settings``."""
        super().__init__(port, address, iut_address, **settings)
        self.udp_port = DEFAULT_UDP_PORT
        self._encapsulation = encapsulation
        self._opener = opener
        self._csn = self.random.getrandbits(32)

    def dissect(self, octets: bytes) -> Stp:
        """The STP packet in an IPv4 packet."""
        return dissect(octets)

    def next_csn(self) -> int:
        """A CSN newer than every one before (STP-CC-010)."""
        self._csn = (self._csn + 1) % (1 << 32)
        return self._csn

    def carriage(self) -> dict[str, Any]:
        """Fields of :class:`Stp` that say how packets travel."""
        if self._encapsulation.kind == "ip":
            return {"protocol": self._encapsulation.protocol}
        return {
            "protocol": UDP, "udp_sport": self.udp_port, "udp_dport": self._encapsulation.port
        }  # fmt: skip

    def connect(
        self,
        service: str | int = "chargen",
        *,
        data: bytes = b"",
        fin: bool = False,
        confirm: bool = True,
        **own: Any,
    ) -> Connection:
        """Open a connection to a service of the IUT and complete the handshake.

        Args:
            service: name of an upper-tester service, or a port.
            data: data of the BEGIN.
            fin: FIN flag of the BEGIN.
            confirm: answer a BGAK with C flag; False stays at that point.
            own: what the tester offers, see :class:`Connection`, and ``csn``.

        Raises:
            NotReached: no BGAK came, or the connection was refused.
        """
        connection = self.begin(service, data=data, fin=fin, **own)
        connection.await_answer("BGAK")
        assert connection.opening is not None
        # Others wait for the script; the BGAK has been looked at.
        connection.inbox.remove(connection.opening)
        if confirm and connection.opening.packet.flags & C:
            connection.confirm()
        return connection

    def begin(
        self, service: str | int = "chargen", *, data: bytes = b"", fin: bool = False, **own: Any
    ) -> Connection:
        """Send a BEGIN and return at once; arguments as for :meth:`connect`."""
        connection = self.prepare(service, **own)
        connection.begin(data, fin=fin)
        return connection

    def prepare(
        self,
        service: str | int = "chargen",
        *,
        source_port: int | None = None,
        csn: int | None = None,
        **own: Any,
    ) -> Connection:
        """A connection on which nothing has been sent yet; arguments as for :meth:`connect`.

        Args:
            service: see :meth:`connect`.
            source_port: the tester's port; a new one when omitted. A later connection on the ports
                of an earlier one takes the packets that arrive from then on.
            csn: the tester's CSN; a newer one than all before when omitted.
            own: see :meth:`connect`.
        """
        port = self.port_of(service)
        own_port = self.new_port() if source_port is None else source_port
        own_csn = self.next_csn() if csn is None else csn
        return self.add(Connection(self, port, own_port, self.carriage(), own_csn, **own))

    def summon(
        self, role: Role = "receive", *, octets: int = 100_000, within: float | None = None
    ) -> Connection:
        """Have the IUT open a connection and wait for its BEGIN, which is not answered yet.

        Answer it with :meth:`Connection.confirm`, a BGAK, or with anything else.

        Args:
            role: what the IUT does: ``send`` (it calls port 9) or ``receive`` (it calls port 19).
            octets: how much it sends at least, if it sends.
            within: seconds to wait for the BEGIN.

        Raises:
            NotReached: no BEGIN came.
            LaneError: the IUT cannot be made to open a connection.
        """
        if self._opener is None:
            raise NotReached("this lane cannot make the implementation open a connection")
        own = ROLES[role]
        before = len(self.strays)
        udp_port = self.udp_port if self._encapsulation.kind == "udp" else 0
        self._opener(OpenRequest(self.address, own, octets, udp_port))
        patience = self.patience if within is None else within

        def calls() -> list[int]:
            return [
                place
                for place in range(before, len(self.strays))
                for packet in self.strays[place][1:]
                if isinstance(packet, Stp) and packet.type == BEGIN and packet.dport == own
            ]

        if not self.pump_until(lambda: bool(calls()), patience):
            raise NotReached(f"no BEGIN from the implementation within {patience:.1f} s")
        place = calls()[0]
        # SDs may have followed the BEGIN before the connection was here to take them.
        (time, begin), *later = self.strays[place:]
        del self.strays[place:]
        assert isinstance(begin, Stp)
        connection = self.prepare(begin.sport, source_port=own)
        connection.accept(time, begin)
        connection.inbox.clear()
        for time, packet in later:
            if isinstance(packet, Stp):
                self.deliver(time, packet)
            else:
                self.strays.append((time, packet))
        return connection

    def finish(self) -> None:
        """Abort every connection still open, so that the IUT carries nothing into the next case.

        If none is open, an ENDAK that every endpoint discards is sent, so that the captures show
        how long the tester waited for what never came.
        """
        if not self.open_connections:
            self.prepare(UNUSED_PORT).send(ENDAK)
        super().finish()
