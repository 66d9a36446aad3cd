"""A host in the Internet, a user behind a satellite, and one box of PEP/1 on the way or none.

The box and both hosts are the references, and packets are octets on virtual links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.services import DISCARD
from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import INNER, OUTER, BoxConfig
from bentpipe_reference.pep.parts import TRUE_PARTS, Parts
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.host import Key, TcpHost
from bentpipe_reference.tcp.services import Service
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Segment

USER, SERVER = "10.1.0.1", "10.2.0.1"

Place = Literal["gateway", "user"]
"""Where a box is: between Internet and satellite, or between satellite and user."""


Lead = Callable[[bytes], None]
"""Takes a packet to where it goes next."""


class Asking:
    """A user: asks for something by octets, and reads what it gets.

    Attributes:
        read: octets read.
        intact: whether each of them is that of the pattern.
        finished: when the last of those wanted was read, None before.
        failure: why the connection has failed, None if it has not.
    """

    def __init__(self, request: int, wanted: int) -> None:
        self.read = 0
        self.intact = True
        self.finished: float | None = None
        self.failure: str | None = None
        self._request = pattern(0, request)
        self._wanted = wanted

    def run(self, connection: Connection, now: float) -> None:
        """See :class:`Service`."""
        self.failure = self.failure or connection.failure
        if connection.state is State.SYN_SENT:
            return
        if self._request:
            self._request = self._request[connection.write(self._request, now) :]
            if not self._request:
                connection.close(now)
        data = connection.read()
        self.intact = self.intact and data == pattern(self.read, len(data))
        self.read += len(data)
        if self.read >= self._wanted and self.finished is None:
            self.finished = now


class Answering:
    """A server: reads a request of so many octets, answers it and ends its stream."""

    def __init__(self, request: int, octets: int) -> None:
        self._awaited = request
        self._octets = octets
        self._written = 0

    def run(self, connection: Connection, now: float) -> None:
        """See :class:`Service`."""
        self._awaited -= len(connection.read())
        if self._awaited > 0 or self._written == self._octets:
            return
        room = min(connection.write_room, self._octets - self._written)
        self._written += connection.write(pattern(self._written, room), now)
        if self._written == self._octets:
            connection.close(now)


class _Server(TcpHost):
    """A host that answers whoever calls."""

    serve: Callable[[], Service]

    def _new_connection(self, key: Key, service: Service, syn: Segment | None = None) -> Connection:
        return super()._new_connection(key, service if syn is None else self.serve(), syn)


class Network:
    """Server, Internet, satellite and user, with a box or without.

    Args:
        internet: the path between server and gateway; its forward direction leads to the user.
        satellite: the path between gateway and user, likewise.
        hosts: settings of both ends.
        box: settings of the box, None for a router that splits nothing.
        seed: seed of everything random.
        place: where the box is.
        parts: what the box is composed of.

    Attributes:
        simulation: the clock.
        box: the box, if there is one.
    """

    def __init__(
        self, internet: LinkProfile, satellite: LinkProfile, hosts: EndpointConfig,
        box: BoxConfig | None, seed: int, place: Place = "gateway", parts: Parts = TRUE_PARTS,
    ) -> None:  # fmt: skip
        self.simulation = Simulation()
        self.box = None if box is None else parts.box(box, parts, seed)
        self._links: list[VirtualLink[bytes]] = []
        self._seed = seed
        self._user, self._server = TcpHost(USER, hosts, seed + 1), _Server(SERVER, hosts, seed + 2)
        self._alarms: dict[int, Alarm] = {}
        split = place if self.box is not None else None
        to_user, to_server = (
            partial(self._at_host, self._user),
            partial(self._at_host, self._server),
        )
        outside, inside = partial(self._at_box, OUTER), partial(self._at_box, INNER)
        home = self._link(internet.return_, to_server)
        down = self._link(satellite.forward, inside if split == "user" else to_user)
        up = self._link(satellite.return_, inside if split == "gateway" else home)
        first = self._link(internet.forward, outside if split == "gateway" else down)
        self._from_user: Lead = outside if split == "user" else up
        self._from_server: Lead = first
        at_user = split == "user"
        self._from_box: dict[int, Lead] = {
            INNER: up if at_user else down,
            OUTER: to_user if at_user else home,
        }

    def ask(self, request: int, octets: int) -> Asking:
        """Let the user call the server with a request, which is answered by so many octets."""
        asking = Asking(request, octets)
        self.call(asking, partial(Answering, request, octets))
        return asking

    def call(self, user: Service, serve: Callable[[], Service]) -> None:
        """Let the user call the server, where somebody answers."""
        self._server.serve = serve
        self._user.connect(SERVER, DISCARD, user, self.simulation.now)
        self._settle(self._user)

    def poke(self) -> None:
        """Let both ends do what they would not do before something arrives."""
        for host in (self._user, self._server):
            for connection in list(host.connections.values()):
                host.run(connection, self.simulation.now)
            self._settle(host)

    def cut(self) -> None:
        """Lose whatever is sent from now on, everywhere."""
        for link in self._links:
            link.direction = replace(link.direction, loss_probability=1.0)

    def finish(self, asking: Asking, limit_s: float) -> float:
        """When all has been read that was asked for.

        Raises:
            RuntimeError: it failed, took longer, or octets are not those sent.
        """
        self.simulation.run_while(
            lambda: asking.finished is None and asking.failure is None, limit_s
        )
        if asking.finished is None or not asking.intact:
            problem = asking.failure or f"not all octets as sent within {limit_s:g} s"
            raise RuntimeError(f"A transfer of the network with a box failed: {problem}.")
        return asking.finished

    def _link(self, direction: Direction, deliver: Lead) -> Lead:
        link = VirtualLink[bytes](
            self.simulation, direction, deliver, self._seed + len(self._links)
        )
        self._links.append(link)
        return lambda packet: link.send(packet, len(packet))

    def _at_host(self, host: TcpHost, packet: bytes) -> None:
        host.receive(packet, self.simulation.now)
        self._settle(host)

    def _at_box(self, port: int, packet: bytes) -> None:
        assert self.box is not None
        self.box.receive(port, packet, self.simulation.now)
        self._settle(self.box)

    def _settle(self, node: TcpHost | Box) -> None:
        """Let packets leave, and plan the next timer."""
        now = self.simulation.now
        if isinstance(node, Box):
            for port, packet in node.transmit(now):
                self._from_box[port](packet)
        else:
            lead = self._from_user if node is self._user else self._from_server
            for packet in node.transmit(now):
                lead(packet)
        alarm = self._alarms.get(id(node))
        if alarm is None:
            alarm = self._alarms[id(node)] = Alarm(self.simulation, partial(self._wake, node))
        alarm.set(node.next_deadline())

    def _wake(self, node: TcpHost | Box) -> None:
        node.advance(self.simulation.now)
        self._settle(node)
