"""The scripted peer, as far as it is the same for every protocol.

Scripts are synchronous: waiting blocks in select on a real link and steps the event queue on the
simulated one. Nothing here judges; a script only drives the implementation under test (IUT) into
a situation. A protocol derives :class:`BasePeer`, which opens connections, and
:class:`BaseConnection`, which says what it does with packets that arrive.
"""

from __future__ import annotations

import heapq
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.lane import OpenRequest, Port

STANDARD_SERVICES = {"echo": 7, "discard": 9, "chargen": 19}
"""Ports of the upper tester: RFC 862, RFC 863, RFC 864."""

UNUSED_PORT = 47
"""A port that no upper tester serves (reserved, IANA service name registry)."""

PATIENCE_S = 5.0
"""Seconds a script waits beyond two round trips for something that a live IUT must do."""

SERVING_S, SERVING_RTTS = 60.0, 20.0
"""Seconds, plus round trips, that a script is an ordinary receiver at most."""


class NotReached(Exception):
    """The script could not bring the implementation into the situation it is about.

    The text begins with a requirement and a colon if the implementation breaks it by that.
    """


class ScapyPacket(Protocol):
    """A packet of Scapy, which is imported by those cases only that make one."""

    def __bytes__(self) -> bytes:
        """Its octets."""

    def command(self) -> str:
        """The Python expression that makes it."""


@dataclass(frozen=True, slots=True)
class Crafted:
    """A packet that the tester made in Scapy.

    Attributes:
        time: when it left, seconds since the case began.
        packet: what was sent.
    """

    time: float
    packet: ScapyPacket

    @property
    def expression(self) -> str:
        """What makes the packet at Scapy's prompt."""
        return self.packet.command()


class ScriptedPeer(Protocol):
    """The tester on one lane during one case, as the engine sees it.

    Attributes:
        crafted: the packets that it made in Scapy.
    """

    crafted: list[Crafted]

    def wait(self, seconds: float) -> None:
        """Let time pass; what arrives waits to be looked at."""

    def finish(self) -> None:
        """End every connection still open, so that nothing is carried into the next case."""


class _Dissected(Protocol):
    """A packet as a protocol's codec dissects it."""

    @property
    def src(self) -> str: ...
    @property
    def sport(self) -> int: ...
    @property
    def dport(self) -> int: ...


class _Arrived(Protocol):
    """A packet as it reached a connection; ``has_data`` says whether it carries user data."""

    @property
    def has_data(self) -> bool: ...


Packet = TypeVar("Packet", bound=_Dissected)
Arriving = TypeVar("Arriving", bound=_Arrived)


_CYCLE = bytes(range(33, 127))


def pattern(offset: int, octets: int) -> bytes:
    """Test data: printable octets that depend only on the stream offset."""
    start = offset % len(_CYCLE)
    return (_CYCLE[start:] + _CYCLE * (octets // len(_CYCLE) + 1))[:octets]


Rule = Callable[[Arriving, int], bool]
"""Given an arrival and how often its data arrived before (0, 1, ...), whether to lose it."""

Losses = Rule[Arriving] | Mapping[int, int] | Iterable[int]
"""A rule, or what to lose by index: each once, or as often as a mapping says."""


def rule_to_lose(losses: Losses[Arriving], index: Callable[[Arriving], int]) -> Rule[Arriving]:
    """The rule, where ``index`` is the index of an arrival."""
    if callable(losses):
        return losses
    wanted = dict(losses) if isinstance(losses, Mapping) else dict.fromkeys(losses, 1)
    return lambda arrival, before: before < wanted.get(index(arrival), 0)


class BaseConnection(ABC, Generic[Packet, Arriving]):
    """One connection of the tester with the IUT.

    Attributes:
        peer: the tester.
        port: the IUT's port.
        source_port: the tester's port.
        closed: why the connection is over, empty while it is not.
        inbox: arrivals that the script has not looked at.
    """

    hears_after_the_end: ClassVar[bool] = False
    """Whether the protocol still exchanges packets on a connection that is over."""

    def __init__(self, peer: BasePeer[Packet, Any], port: int, source_port: int) -> None:
        self.peer = peer
        self.port = port
        self.source_port = source_port
        self.closed = ""
        self.inbox: deque[Arriving] = deque()

    @property
    @abstractmethod
    def answered(self) -> bool:
        """Whether the IUT has answered the attempt to open the connection, or made one itself."""

    @property
    @abstractmethod
    def progress(self) -> str:
        """What the IUT has delivered, for sentences."""

    @abstractmethod
    def accept(self, time: float, packet: Packet) -> None:
        """Take a packet off the link into the inbox (the peer calls this)."""

    @abstractmethod
    def hold(self, arrival: Arriving) -> object:
        """Count the data of an arrival as received."""

    @abstractmethod
    def abort(self) -> None:
        """End the connection at once."""

    def await_answer(self, what: str) -> None:
        """Wait until the IUT has answered the attempt to open the connection.

        Raises:
            NotReached: there was no ``what``, or the connection is over.
        """
        patience = self.peer.patience
        if not self.peer.pump_until(lambda: self.answered or bool(self.closed), patience):
            raise NotReached(f"no {what} from port {self.port} within {patience:.1f} s")
        if self.closed:
            raise NotReached(f"port {self.port}: {self.closed}")

    @property
    def rtt(self) -> float:
        """See :class:`BasePeer`."""
        return self.peer.rtt

    def wait(self, seconds: float) -> None:
        """Let time pass; what arrives waits in the inbox."""
        self.peer.wait(seconds)

    def next(self, within: float) -> Arriving | None:
        """The next arrival, or None after ``within`` seconds; nothing is done about it."""
        return self._next(self.peer.now() + within)

    def _next(self, deadline: float) -> Arriving | None:
        while not self.inbox:
            if self.closed and not self.hears_after_the_end:
                return None
            if not self.peer.pump(deadline):
                return None
        return self.inbox.popleft()

    def arrivals(self, within: float) -> Iterator[Arriving]:
        """What arrives during ``within`` seconds, one by one; nothing is done about it."""
        deadline = self.peer.now() + within
        while (arrival := self._next(deadline)) is not None:
            yield arrival

    def discard(self, within: float) -> list[Arriving]:
        """What arrives during ``within`` seconds; its data counts as lost on the way."""
        return list(self.arrivals(within))

    def collect(self, within: float) -> list[Arriving]:
        """Take in the data that arrives during ``within`` seconds, without acknowledging it."""
        found = []
        for arrival in self.arrivals(within):
            if arrival.has_data:
                self.hold(arrival)
                found.append(arrival)
        return found

    def await_arrival(
        self, match: Callable[[Arriving], bool], what: str, within: float | None = None
    ) -> Arriving:
        """The next arrival that matches; others are passed over.

        Raises:
            NotReached: there was none in time (two round trips and :data:`PATIENCE_S` by default).
        """
        patience = self.peer.patience if within is None else within
        for arrival in self.arrivals(patience):
            if match(arrival):
                return arrival
        if self.closed:
            raise NotReached(f"the connection ended without {what}: {self.closed}")
        raise NotReached(f"{patience:.1f} s passed without {what}")

    def serve_until(
        self, until: Callable[[], bool], serve: Callable[[Arriving], None],
        within: float | None = None,
    ) -> None:  # fmt: skip
        """Handle arrivals by ``serve`` until ``until()``.

        Raises:
            NotReached: ``until()`` was still false after ``within`` seconds (:data:`SERVING_S` and
                :data:`SERVING_RTTS` by default), or no more can arrive.
        """
        patience = SERVING_S + SERVING_RTTS * self.peer.rtt if within is None else within
        arrivals = self.arrivals(patience)
        while not until():
            arrival = next(arrivals, None)
            last = self.hears_after_the_end and bool(self.closed) and not self.inbox
            if arrival is None or (last and not until()):
                reason = self.closed or f"{patience:.0f} s passed"
                raise NotReached(f"{reason}, with {self.progress}")
            serve(arrival)


Conn = TypeVar("Conn", bound=BaseConnection[Any, Any])


class BasePeer(ABC, Generic[Packet, Conn]):
    """The tester on one lane during one case.

    Attributes:
        address: the tester's IPv4 address in this case.
        iut_address: the IUT's.
        rtt: round-trip time without queueing, in seconds: that of the link, or longer, see
            :meth:`retreat`.
        random: the case's own random source, seeded from the run's printed seed.
        strays: packets that belong to no connection of this case, each with its arrival time;
            what cannot be dissected is kept as octets.
        crafted: the packets that were made in Scapy, in the order in which they were sent.

    Args:
        port: how packets get to the link.
        address, iut_address, rtt: see above.
        seed: of :attr:`random`.
        services: the ports of the IUT's services, by name.
        opener: has the IUT's user open a connection; None where it cannot be made to.
        aborter: has the IUT's user abort every connection that it has opened; likewise.
    """

    def __init__(
        self, port: Port, address: str, iut_address: str, *, rtt: float, seed: int = 0,
        services: Mapping[str, int] = STANDARD_SERVICES,
        opener: Callable[[OpenRequest], None] | None = None,
        aborter: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self.address = address
        self.iut_address = iut_address
        self.rtt = rtt
        self.random = random.Random(seed)
        self.strays: list[tuple[float, Packet | bytes]] = []
        self.crafted: list[Crafted] = []
        self._port = port
        self._began = port.now()
        self._lag = 0.0
        self._services = services
        self._opener = opener
        self._aborter = aborter
        self._connections: list[Conn] = []
        self._by_ports: dict[tuple[int, int], Conn] = {}
        self._next_port = 40000
        self._later: list[tuple[float, int, bytes]] = []
        self._scheduled = 0

    @abstractmethod
    def dissect(self, octets: bytes) -> Packet:
        """The packet of the protocol in an IPv4 packet.

        Raises:
            MalformedPacket: there is none.
        """

    @abstractmethod
    def connect(self, service: str | int = "chargen", **offer: Any) -> Conn:
        """Open a connection to a service of the IUT, by name or port.

        Raises:
            NotReached: it did not open.
        """

    def have_opened(self, request: OpenRequest) -> None:
        """Have the IUT's user open a connection.

        Raises:
            NotReached: the lane cannot bring that about.
            LaneError: the IUT did not do so.
        """
        if self._opener is None:
            raise NotReached("this lane cannot make the implementation open a connection")
        self._opener(request)

    def have_aborted(self) -> None:
        """Have the IUT's user abort every connection that it has opened.

        Raises:
            NotReached: the lane cannot bring that about.
        """
        if self._aborter is None:
            raise NotReached("this lane cannot make the implementation's user abort")
        self._aborter()

    @property
    def patience(self) -> float:
        """Seconds to wait for something that a live IUT must do."""
        return 2 * self.rtt + PATIENCE_S

    def now(self) -> float:
        """Seconds on the lane's clock."""
        return self._port.now()

    def send(self, packet: bytes | ScapyPacket, *, after: float = 0.0) -> None:
        """Put any IPv4 packet on the link, now or ``after`` seconds.

        Well-formed packets in bulk are octets, of the protocol's codec; a packet that a case is
        about, odd in some way, is one of Scapy, and :attr:`crafted` has its expression.
        """
        after += self._lag
        if isinstance(packet, bytes):
            octets = packet
        else:
            octets = bytes(packet)
            leaves = self.now() + max(0.0, after) - self._began
            self.crafted.append(Crafted(leaves, packet))
        if after <= 0.0:
            self._port.send(octets)
        else:
            self._scheduled += 1
            heapq.heappush(self._later, (self.now() + after, self._scheduled, octets))

    def retreat(self, rtt: float) -> None:
        """Let the IUT see a round-trip time of at least ``rtt`` seconds from now on.

        On a shorter link everything that the tester sends leaves later, in order.
        """
        self._lag += max(0.0, rtt - self.rtt)
        self.rtt = max(rtt, self.rtt)

    def port_of(self, service: str | int) -> int:
        """The IUT's port of a service by name, or that port."""
        return self._services[service] if isinstance(service, str) else service

    def new_port(self) -> int:
        """A port of the tester that no connection of this case has used."""
        self._next_port += 1
        return self._next_port

    def add(self, connection: Conn) -> Conn:
        """Let a connection have the packets between its ports that arrive from now on."""
        self._connections.append(connection)
        self._by_ports[connection.source_port, connection.port] = connection
        return connection

    def pump(self, deadline: float) -> bool:
        """Take one packet off the link into its connection's inbox; False at the deadline."""
        while True:
            due = self._later[0][0] if self._later else deadline
            item = self._port.receive(min(due, deadline))
            if item is not None:
                time, octets = item
                try:
                    self.deliver(time, self.dissect(octets))
                except MalformedPacket:
                    self.strays.append((time, octets))
                return True
            if due > deadline or not self._later:
                return False
            self._port.send(heapq.heappop(self._later)[2])

    def deliver(self, time: float, packet: Packet) -> None:
        """Give a packet to its connection, or to the strays."""
        connection = self._by_ports.get((packet.dport, packet.sport))
        if connection is None or packet.src != self.iut_address:
            self.strays.append((time, packet))
        else:
            connection.accept(time, packet)

    def pump_until(self, reached: Callable[[], bool], within: float) -> bool:
        """Take packets off the link until ``reached()``; False after ``within`` seconds."""
        deadline = self.now() + within
        while not reached():
            if not self.pump(deadline):
                return False
        return True

    def wait(self, seconds: float) -> None:
        """Let time pass; what arrives waits in the inboxes."""
        self.pump_until(lambda: False, seconds)

    @property
    def open_connections(self) -> list[Conn]:
        """Connections that the IUT has answered and that are not over."""
        return [item for item in self._connections if item.answered and not item.closed]

    def finish(self) -> None:
        """Abort every connection still open, so that the IUT carries nothing into the next case."""
        if self._lag:
            self.wait(self._lag)  # what has been sent is still here
            self._lag = 0.0
        self._later.clear()
        for connection in self.open_connections:
            connection.abort()
