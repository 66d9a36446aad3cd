"""The tester as a scripted STP peer.

Scripts are synchronous: waiting blocks in select on a real link and steps the event queue on the
simulated one. Nothing here judges; a script only drives the implementation under test (IUT) into a
situation. SDs of a direction are counted from 0, the one numbered ISS.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from typing import Any, Literal

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.encapsulation import DEFAULT_UDP_PORT, IN_UDP, Encapsulation
from bentpipe_conformance.engine.lane import OpenRequest, Port
from bentpipe_conformance.engine.peer import PATIENCE_S, STANDARD_SERVICES, NotReached
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    ENDAK,
    UDP,
    C,
    Stp,
    build,
    dissect,
)
from bentpipe_conformance.protocols.stp.connection import (
    Arrival,
    Connection,
    at_once,
    lose_nothing,
    losing,
    pattern,
    withholding,
)
from bentpipe_conformance.protocols.stp.ports import CHARGEN, DISCARD, UNUSED_PORT

Opener = Callable[[OpenRequest], None]
"""Has the implementation open a connection."""


Role = Literal["send", "receive"]

ROLES: Mapping[Role, int] = {"send": DISCARD, "receive": CHARGEN}
"""The tester's port that the IUT calls for a role: discard and chargen."""


class Peer:
    """The tester on one lane during one case.

    Attributes:
        address: the tester's IPv4 address in this case.
        iut_address: the IUT's.
        rtt: round-trip time of the link without queueing, in seconds.
        random: the case's own random source, seeded from the run's printed seed.
        udp_port: the tester's UDP port, where STP travels in UDP.
        strays: packets that belong to no connection of this case, each with its arrival time;
            what is no STP at all is kept as octets.
    """

    def __init__(
        self,
        port: Port,
        address: str,
        iut_address: str,
        *,
        rtt: float,
        seed: int = 0,
        services: Mapping[str, int] = STANDARD_SERVICES,
        encapsulation: Encapsulation = IN_UDP,
        opener: Opener | None = None,
    ) -> None:
        self.address = address
        self.iut_address = iut_address
        self.rtt = rtt
        self.random = random.Random(seed)
        self.udp_port = DEFAULT_UDP_PORT
        self.strays: list[tuple[float, Stp | bytes]] = []
        self._port = port
        self._services = services
        self._encapsulation = encapsulation
        self._opener = opener
        self._connections: dict[tuple[int, int], Connection] = {}
        self._every: list[Connection] = []
        self._next_port = 40000
        self._csn = self.random.getrandbits(32)
        self._later: list[tuple[float, int, bytes]] = []
        self._scheduled = 0

    def now(self) -> float:
        """Seconds on the lane's clock."""
        return self._port.now()

    def next_csn(self) -> int:
        """A CSN newer than every one before (STP-CC-010)."""
        self._csn = (self._csn + 1) % (1 << 32)
        return self._csn

    def carriage(self) -> dict[str, Any]:
        """Fields of :class:`wire.Stp` that say how packets travel."""
        if self._encapsulation.kind == "ip":
            return {"protocol": self._encapsulation.protocol}
        return {
            "protocol": UDP, "udp_sport": self.udp_port, "udp_dport": self._encapsulation.port
        }  # fmt: skip

    def send(self, packet: bytes, *, after: float = 0.0) -> None:
        """Put any IPv4 packet on the link, now or ``after`` seconds."""
        if after <= 0.0:
            self._port.send(packet)
        else:
            self._scheduled += 1
            heapq.heappush(self._later, (self.now() + after, self._scheduled, packet))

    def send_packet(self, packet: Stp, *, after: float = 0.0) -> None:
        """Put an STP packet on the link, lengths and checksums made right."""
        self.send(build(packet), after=after)

    # -- connections

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
            own: ``csn``, ``iss``, ``credit`` (SDs the BEGIN permits, 256), ``max_sd`` (1400; None
                leaves the option out), ``options`` (raw option field in place of MaxSD's).

        Raises:
            NotReached: no BGAK came, or the connection was refused.
        """
        connection = self.begin(service, data=data, fin=fin, **own)
        patience = 2 * self.rtt + PATIENCE_S
        deadline = self.now() + patience
        while connection.opening is None:
            if connection.closed:
                raise NotReached(f"port {connection.port}: {connection.closed}")
            if not self.pump(deadline):
                raise NotReached(f"no BGAK from port {connection.port} within {patience:.1f} s")
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
        self, service: str | int = "chargen", *, source_port: int | None = None, **own: Any
    ) -> Connection:
        """A connection of which nothing has been sent yet; arguments as for :meth:`connect`.

        Args:
            service: see :meth:`connect`.
            source_port: the tester's port; a new one when omitted. A later connection on the ports
                of an earlier one takes the packets that arrive from then on.
            own: see :meth:`connect`.
        """
        port = self._services[service] if isinstance(service, str) else service
        if source_port is None:
            self._next_port += 1
            source_port = self._next_port
        connection = Connection(self, port, source_port, **own)
        self._connections[source_port, port] = connection
        self._every.append(connection)
        return connection

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
        patience = 2 * self.rtt + PATIENCE_S if within is None else within
        deadline = self.now() + patience
        while True:
            for place in range(before, len(self.strays)):
                time, packet = self.strays[place]
                if isinstance(packet, Stp) and packet.type == BEGIN and packet.dport == own:
                    connection = self.prepare(packet.sport, source_port=own)
                    connection.accept(time, packet)
                    connection.inbox.clear()
                    # SDs may have followed the BEGIN before the connection was here to take them.
                    later, self.strays[place:] = self.strays[place + 1 :], []
                    for item in later:
                        self._take(*item)
                    return connection
            if not self.pump(deadline):
                raise NotReached(f"no BEGIN from the implementation within {patience:.1f} s")

    # -- time

    def pump(self, deadline: float) -> bool:
        """Take one packet off the link into its connection's inbox; False at the deadline."""
        while True:
            due = self._later[0][0] if self._later else deadline
            item = self._port.receive(min(due, deadline))
            if item is not None:
                self._sort(*item)
                return True
            if due > deadline or not self._later:
                return False
            self._port.send(heapq.heappop(self._later)[2])

    def _sort(self, time: float, octets: bytes) -> None:
        try:
            self._take(time, dissect(octets))
        except MalformedPacket:
            self.strays.append((time, octets))

    def _take(self, time: float, packet: Stp | bytes) -> None:
        if isinstance(packet, bytes):
            self.strays.append((time, packet))
            return
        connection = self._connections.get((packet.dport, packet.sport))
        if connection is None or packet.src != self.iut_address:
            self.strays.append((time, packet))
        else:
            connection.accept(time, packet)

    def wait(self, seconds: float) -> None:
        """Let time pass; what arrives waits in the inboxes."""
        deadline = self.now() + seconds
        while self.pump(deadline):
            pass

    def finish(self) -> None:
        """Abort every connection still open, so that the IUT carries nothing into the next case.

        In any case a last packet leaves, an ENDAK that everybody discards if there is nothing to
        abort: the record shows by it how long the tester waited for what never came.
        """
        self._later.clear()
        open_ = [item for item in self._every if item.opening is not None and not item.closed]
        for connection in open_:
            connection.abort()
        if not open_:
            self.prepare(UNUSED_PORT).send(ENDAK)


__all__ = [
    "Arrival", "Connection", "NotReached", "Peer", "at_once", "lose_nothing",
    "losing", "pattern", "withholding",
]  # fmt: skip
