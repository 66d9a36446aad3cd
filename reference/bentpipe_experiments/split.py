"""A connection split at a satellite gateway: TCP up to it, TCP or STP over the satellite.

The gateway forwards what has arrived as long as its buffer for the satellite has room; when it has
none, it stops reading, and TCP's window tells the host in the wide-area Internet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.transfer import PORT, Station
from bentpipe_reference.tcp.connection import Connection as TcpConnection
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.path import Delivery, Flow, Path
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Segment


def _nothing() -> None:
    """There is nothing to hand over yet."""


class TcpLeg(Flow):
    """TCP over the satellite, with the interface of :class:`StpLeg`.

    The send buffer is the gateway's.
    """

    def __init__(self, path: Path, flow: Flow, octets: int) -> None:
        super().__init__(path, flow.sending, flow.receiving, octets)
        self.forward_octets = self.reverse_octets = 0
        self.on_room: Callable[[], None] = _nothing

    def room(self) -> int:
        """Octets the gateway may hand over now: what it buffers for the user is bounded."""
        return self.sending.write_room if self.sending.state is State.ESTABLISHED else 0

    def write(self, data: bytes) -> None:
        """Hand over octets; they leave with :meth:`settle`."""
        self.sending.write(data, self._simulation.now)

    def close(self) -> None:
        """The stream ends after what has been handed over."""
        if self.sending.state is State.ESTABLISHED:
            self.sending.close(self._simulation.now)

    def settle(self) -> None:
        """Send what is due."""
        self._sender.settle()

    def _feed(self, endpoint: TcpConnection, now: float) -> None:  # noqa: ARG002
        self.on_room()

    def _send(self, segment: Segment, octets: int) -> None:
        self.forward_octets += octets
        super()._send(segment, octets)

    def _answer(self, segment: Segment, octets: int) -> None:
        self.reverse_octets += octets
        super()._answer(segment, octets)


class _Onto:
    """Puts STP packets on a link that carries TCP as well, and counts their octets."""

    def __init__(self, link: VirtualLink[Delivery]) -> None:
        self.octets = 0
        self._link = link

    def send(self, item: tuple[Station, bytes], size: int) -> None:
        self.octets += size
        station, octets = item
        self._link.send(partial(station.receive, octets), size)


class _Gateway(Station):
    """Asks for more octets after each packet from the user."""

    on_room: Callable[[], None] = staticmethod(_nothing)

    def receive(self, octets: bytes) -> None:
        super().receive(octets)
        self.on_room()


class StpLeg:
    """STP over the satellite; the gateway buffers what is not acknowledged.

    Attributes:
        read: octets the user has read.
        intact: whether they were those sent.
        finished: when the last one was read, seconds; None before.
        failure: why the connection ended early; None if it did not.
    """

    def __init__(
        self, path: Path, config: StpConfig, octets: int, capacity: int, seed: int
    ) -> None:
        self.read = 0
        self.intact = True
        self.finished: float | None = None
        self.failure: str | None = None
        self._octets = octets
        self._capacity = capacity
        self._written = 0
        self._out, self._back = _Onto(path.forward), _Onto(path.return_)
        endpoints = [StpEndpoint(config, seed + i) for i in range(2)]
        self._near = _Gateway(path.simulation, endpoints[0], ("gateway",), self._feed)
        far = Station(path.simulation, endpoints[1], ("user",), self._drain)
        self._near.link, self._near.far = self._out, far
        far.link, far.far = self._back, self._near
        far.endpoint.listen(PORT)
        self._connection: Connection | None = None

    @property
    def forward_octets(self) -> int:
        """IP octets sent to the user."""
        return self._out.octets

    @property
    def reverse_octets(self) -> int:
        """IP octets sent by the user."""
        return self._back.octets

    @property
    def on_room(self) -> Callable[[], None]:
        """Called when the gateway may hand over more."""
        return self._near.on_room

    @on_room.setter
    def on_room(self, action: Callable[[], None]) -> None:
        self._near.on_room = action

    @property
    def connection(self) -> Connection:
        """The gateway's end."""
        assert self._connection is not None, "the leg is started first"
        return self._connection

    def start(self) -> None:
        """Open the connection to the user; until then there is no room."""
        self._connection = self._near.endpoint.connect(("user",), PORT)
        self.settle()

    def room(self) -> int:
        """Octets the gateway may hand over now: what it buffers for the user is bounded."""
        connection = self.connection
        buffered = self._written - connection.acknowledged_octets
        return max(0, min(self._capacity - buffered, connection.write_room))

    def write(self, data: bytes) -> None:
        """Hand over octets; they leave with :meth:`settle`."""
        self._written += self.connection.write(data)

    def close(self) -> None:
        """The stream ends after what has been handed over."""
        self.connection.close()

    def settle(self) -> None:
        """Send what is due."""
        self._near.settle()

    def _feed(self, connection: Connection, _: Events, __: float) -> None:
        connection.read()
        self.failure = self.failure or connection.failure

    def _drain(self, connection: Connection, _: Events, now: float) -> None:
        data = connection.read()
        if data:
            self.intact = self.intact and data == pattern(self.read, len(data))
            self.read += len(data)
        if self.read >= self._octets and self.finished is None:
            self.finished = now
        if connection.peer_has_closed:
            connection.close()
        self.failure = self.failure or connection.failure


Leg = TcpLeg | StpLeg
"""The satellite's part of a split connection."""

MakeLeg = Callable[[Path, int, int], Leg]
"""Makes a leg over a path for a number of octets, with a seed."""


def tcp_leg(setup: Setup) -> MakeLeg:
    """Legs of TCP; both ends have the same settings."""
    return lambda path, octets, _: TcpLeg(path, path.flow(octets, setup), octets)


def stp_leg(config: StpConfig, capacity: int) -> MakeLeg:
    """Legs of STP, for which the gateway buffers ``capacity`` octets at most."""
    return lambda path, octets, seed: StpLeg(path, config, octets, capacity, seed)


class SplitFlow(Flow):
    """TCP from a host in the wide-area Internet to the gateway, and the gateway's relay.

    The SYN of the host opens the connection to the user. A whole buffer at either side holds up
    the side before it, and no octet is ever dropped by the gateway.

    Args:
        path: the wide-area Internet; the host sends in its forward direction.
        setup: both ends of its connection.
        octets: length of the stream.
        leg: the satellite's part.
    """

    def __init__(self, path: Path, setup: Setup, octets: int, leg: Leg) -> None:
        flow = path.flow(octets, setup)
        super().__init__(path, flow.sending, flow.receiving, octets)
        self.leg = leg
        self.buffered_most = 0
        self._opened = False
        leg.on_room = self._on_room

    def _drain(self, endpoint: TcpConnection, now: float) -> None:
        if not self._opened:
            self._opened = True
            self.leg.start()
        if self._relay(endpoint, now):
            self.leg.settle()

    def _on_room(self) -> None:
        if self._opened and self._relay(self.receiving, self._simulation.now):
            self._receiver.settle()
            self.leg.settle()

    def _relay(self, endpoint: TcpConnection, now: float) -> bool:
        """Hand over what there is and there is room for; whether anything happened."""
        self.buffered_most = max(self.buffered_most, endpoint.readable)
        data = endpoint.read(min(endpoint.readable, self.leg.room()))
        if data:
            self.leg.write(data)
            self.read += len(data)
        ended = endpoint.peer_has_closed and not endpoint.readable and self.finished is None
        if ended:
            self.finished = now
            self.leg.close()
            endpoint.close(now)
        return bool(data) or ended
