"""The tester as a scripted STP peer; SDs of a direction are counted from 0, that numbered ISS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from bentpipe_conformance.engine.codec import UDP
from bentpipe_conformance.engine.encapsulation import DEFAULT_UDP_PORT, IN_UDP, Encapsulation
from bentpipe_conformance.engine.lane import OpenRequest, Port
from bentpipe_conformance.engine.peer import UNUSED_PORT, BasePeer, NotReached
from bentpipe_conformance.engine.trace import dissected
from bentpipe_conformance.protocols.stp.codec import BEGIN, ENDAK, Stp, dissect
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.cookies import Jar
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, DISCARD

Role = Literal["send", "receive"]

ROLES: Mapping[Role, int] = {"send": DISCARD, "receive": CHARGEN}
"""The tester's port that the IUT calls for a role: discard and chargen."""

CALL_ANEW = 6
"""Reason of a BGREJ that brings a cookie (section 3.4)."""

CALLS = 3
"""How often the tester calls with a cookie that the IUT does not find good."""


class Peer(BasePeer[Stp, Connection]):
    """The tester on one lane during one case.

    Attributes:
        udp_port: the tester's UDP port, where STP travels in UDP; cookies hold for one only.
        jar: the cookies of the case.
        alter: :attr:`Speaker.alter` of connections from now on.
    """

    def __init__(
        self,
        port: Port,
        address: str,
        iut_address: str,
        *,
        encapsulation: Encapsulation = IN_UDP,
        **settings: Any,
    ) -> None:
        """See :class:`BasePeer` for ``settings``."""
        super().__init__(port, address, iut_address, **settings)
        self.udp_port = DEFAULT_UDP_PORT
        self._encapsulation = encapsulation
        self.jar = Jar(self.random)
        self._csn = self.random.getrandbits(32)
        self.alter: Callable[[Stp], Stp] = lambda packet: packet

    def dissect(self, octets: bytes) -> Stp:
        """The STP packet in an IPv4 packet."""
        return dissected(dissect, octets) or dissect(octets)

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
        rtt: float = 0.0,
        **own: Any,
    ) -> Connection:
        """Open a connection to a service of the IUT: obtain a cookie if there is none, and call.

        Args:
            service: name of an upper-tester service, or a port.
            data: data of the BEGIN.
            fin: FIN flag of the BEGIN.
            rtt: round-trip time that the IUT is to see at least, see :meth:`retreat`.
            own: what the tester offers, see :class:`Connection`, and ``csn``.

        Raises:
            NotReached: no cookie or no BGAK came, or the connection was refused.
        """
        self.retreat(rtt)
        for _ in range(CALLS):
            connection = self.call(service, data=data, fin=fin, **own)
            self.pump_until(lambda c=connection: c.answered or bool(c.closed), self.patience)  # type: ignore[misc]
            if connection.refusal != CALL_ANEW:
                break
            # Older cookies may all be void; the newest is that of the refusal.
            cookie = self.jar.newest()
            own = {**own, "source_port": connection.source_port, "csn": None, "cookie": cookie}
        connection.await_answer("BGAK")
        assert connection.opening is not None
        # Others wait for the script; the BGAK has been looked at.
        connection.inbox.remove(connection.opening)
        return connection

    def call(
        self,
        service: str | int = "chargen",
        *,
        data: bytes = b"",
        fin: bool = False,
        cookie: bytes | None = None,
        **own: Any,
    ) -> Connection:
        """Send a BEGIN with a cookie and return at once; arguments as for :meth:`connect`.

        Args:
            service: see :meth:`connect`.
            data: see :meth:`connect`.
            fin: see :meth:`connect`.
            cookie: the oldest one that has not been used when omitted, or a new one.
            own: see :meth:`connect`.

        Raises:
            NotReached: the IUT gave no cookie.
        """
        good = self.cookie(service) if cookie is None else cookie
        return self.begin(service, data=data, fin=fin, cookie=good, **own)

    def cookie(self, service: str | int = "discard") -> bytes:
        """A cookie that has not been used: the oldest, or one given for an empty BEGIN.

        Raises:
            NotReached: the IUT gave none.
        """
        return self.jar.take(self.now()) or self.fresh_cookie(service)

    def fresh_cookie(self, service: str | int = "discard") -> bytes:
        """A cookie given for an empty BEGIN from a port of its own; older ones are forgotten.

        Raises:
            NotReached: the IUT gave none.
        """
        asking = self.begin(service)
        self.pump_until(lambda: asking.answered or bool(asking.closed), self.patience)
        found = self.jar.newest()
        if asking.refusal != CALL_ANEW or found is None:
            reason = asking.closed or "no BGREJ came"
            raise NotReached(f"no cookie from port {asking.port}: {reason}")
        return found

    def begin(
        self, service: str | int = "chargen", *, data: bytes = b"", fin: bool = False, **own: Any
    ) -> Connection:
        """Send a BEGIN, without a cookie unless ``own`` says so, and return at once."""
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
            own: see :meth:`connect`, and ``cookie``.
        """
        port = self.port_of(service)
        own_port = self.new_port() if source_port is None else source_port
        own_csn = self.next_csn() if csn is None else csn
        made = Connection(self, port, own_port, self.carriage(), own_csn, self.jar, **own)
        made.alter = self.alter
        return self.add(made)

    def summon(
        self,
        role: Role = "receive",
        *,
        octets: int = 100_000,
        within: float | None = None,
        anew: bool = True,
    ) -> Connection:
        """Have the IUT open a connection and wait for its BEGIN, which is not answered yet.

        Answer it with :meth:`Connection.bgak`, or with anything else.

        Args:
            role: what the IUT does: ``send`` (it calls port 9) or ``receive`` (it calls port 19).
            octets: how much it sends at least, if it sends.
            within: seconds to wait for the BEGIN.
            anew: answer BEGINs that carry none of the tester's cookies with one, so that the BEGIN
                which is returned has one; False returns the first BEGIN.

        Raises:
            NotReached: no BEGIN came.
            LaneError: the IUT cannot be made to open a connection.
        """
        own = ROLES[role]
        udp_port = self.udp_port if self._encapsulation.kind == "udp" else 0
        self.have_opened(OpenRequest(self.address, own, octets, udp_port))
        connection = self.await_call(own, within)
        while anew and connection.begun.cookie not in self.jar.made:
            connection.reject(CALL_ANEW)
            connection = self.await_anew(connection, within)
        return connection

    def await_call(self, port: int, within: float | None = None) -> Connection:
        """Wait for a BEGIN to a port of the tester from ports that have no connection.

        Raises:
            NotReached: none came.
        """
        patience = self.patience if within is None else within
        below = self.udp_port if self._encapsulation.kind == "udp" else 0

        def calls() -> list[int]:
            return [
                place
                for place, (_, packet) in enumerate(self.strays)
                if isinstance(packet, Stp)
                and packet.type == BEGIN
                and packet.wellformed
                and (packet.dport, packet.udp_dport) == (port, below)
            ]

        if not self.pump_until(lambda: bool(calls()), patience):
            raise NotReached(
                f"STP-CC-047: its user called, but no BEGIN came within {patience:.1f} s"
            )
        place = calls()[0]
        # SDs may have followed the BEGIN before the connection was here to take them.
        (time, begin), *later = self.strays[place:]
        del self.strays[place:]
        assert isinstance(begin, Stp)
        return self._called(begin.sport, port, [(time, begin), *later])

    def await_anew(self, earlier: Connection, within: float | None = None) -> Connection:
        """Wait until the IUT calls anew from the ports of a call that the tester has refused.

        Raises:
            NotReached: it does not.
        """
        begin = earlier.expect(
            BEGIN, lambda at: at.packet.wellformed and at.packet.csn != earlier.peer_csn,
            within=within,
            what="a BEGIN with a new CSN",
        )  # fmt: skip
        later = [(at.time, at.packet) for at in earlier.inbox]
        earlier.inbox.clear()
        earlier.closed = earlier.closed or "the tester refused it"
        arrived = [(begin.time, begin.packet), *later]
        return self._called(earlier.port, earlier.source_port, arrived)

    def _called(
        self, port: int, own_port: int, arrived: Sequence[tuple[float, Stp | bytes]]
    ) -> Connection:
        """The connection that the first packet of ``arrived``, a BEGIN, has opened."""
        connection = self.prepare(port, source_port=own_port)
        for time, packet in arrived:
            if isinstance(packet, Stp):
                self.deliver(time, packet)
            else:
                self.strays.append((time, packet))
        connection.inbox.popleft()
        return connection

    def finish(self) -> None:
        """Abort every connection still open, so that the IUT carries nothing into the next case.

        If none is open, an ENDAK that every endpoint discards is sent, so that the captures show
        how long the tester waited for what never came.
        """
        if not self.open_connections:
            self.prepare(UNUSED_PORT).send(ENDAK)
        super().finish()
