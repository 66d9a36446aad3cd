"""Two hosts with a pair of boxes, or one, and a satellite link between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.common.link.profile import Direction
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.subject import PAIR, SUBJECT, make_boxes
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.states import State

CLIENT, SERVER = "10.1.0.1", "10.2.0.1"
LINK = Direction(rate_bit_s=2e6, delay_s=0.25, queue_packets=100)

Lead = Callable[[bytes], None]


class User:
    """Writes octets, closes if told to, and keeps what it reads while it reads at all."""

    def __init__(self, octets: bytes = b"", *, closes: bool = True) -> None:
        self.octets, self.closes = octets, closes
        self.got = bytearray()
        self.reads = True

    def run(self, connection: Connection, now: float) -> None:
        if self.reads:
            self.got += connection.read()
        if connection.state is State.SYN_SENT:
            return
        if self.octets and (taken := connection.write(self.octets, now)):
            self.octets = self.octets[taken:]
        if self.closes and not self.octets:
            connection.close(now)


class Network:
    """client - box - satellite - box - server, or without the second box.

    Attributes:
        seen: packets that have reached each end.
    """

    def __init__(self, setup: Setup = PAIR) -> None:
        self.simulation = Simulation()
        self.boxes = make_boxes(setup, 1)
        config = EndpointConfig()
        self.client, self.server = TcpHost(CLIENT, config, 2), TcpHost(SERVER, config, 3)
        self.seen: dict[str, list[bytes]] = {CLIENT: [], SERVER: []}
        far, paired = self.boxes[-1], len(self.boxes) > 1
        self._alarms = {
            id(it): Alarm(self.simulation, partial(self.step, it, lambda it, now: it.advance(now)))
            for it in (*self.boxes, self.client, self.server)
        }
        up = partial(self._at_box, far, 1) if paired else partial(self._at_host, self.server)
        self.forward = VirtualLink(self.simulation, LINK, up, 1)
        down = partial(self._at_box, self.boxes[0], 1)
        self.back = VirtualLink(self.simulation, LINK, down, 2)
        sends, answers = partial(self._offer, self.forward), partial(self._offer, self.back)
        self._leads: dict[int, list[Lead]] = {
            id(self.client): [partial(self._at_box, self.boxes[0], 0)],
            id(self.boxes[0]): [partial(self._at_host, self.client), sends],
            id(self.server): [partial(self._at_box, far, 0) if paired else answers],
        }
        if paired:
            self._leads[id(far)] = [partial(self._at_host, self.server), answers]

    def step(self, it: Any, action: Callable[[Any, float], object]) -> Any:
        now = self.simulation.now
        result = action(it, now)
        for item in it.transmit(now):
            port, packet = item if isinstance(item, tuple) else (0, item)
            self._leads[id(it)][port](packet)
        self._alarms[id(it)].set(it.next_deadline())
        return result

    def send(self, host: TcpHost, packet: bytes) -> None:
        self._leads[id(host)][0](packet)

    def call(self, user: User, port: int) -> Connection:
        return self.step(self.client, lambda it, now: it.connect(SERVER, port, user, now))

    def fragments(self, host: TcpHost, octets: int) -> None:
        """Let what a host sends arrive in fragments, the last one first."""
        (lead,) = self._leads[id(host)]

        def cut(packet: bytes) -> None:
            for offset in reversed(range(0, len(packet) - 20, octets)):
                part = packet[20 + offset :][:octets]
                head = bytearray(packet[:20])
                head[2:4] = (20 + len(part)).to_bytes(2, "big")
                more = 20 + offset + octets < len(packet)
                head[6:8] = (offset // 8 | (0x2000 if more else 0)).to_bytes(2, "big")
                head[10:12] = bytes(2)
                head[10:12] = internet_checksum(bytes(head)).to_bytes(2, "big")
                lead(bytes(head) + part)

        self._leads[id(host)] = [cut]

    def run(self, seconds: float) -> None:
        self.simulation.run_until(self.simulation.now + seconds)

    @staticmethod
    def _offer(link: VirtualLink[bytes], packet: bytes) -> None:
        link.send(packet, len(packet))

    def _at_box(self, box: Any, port: int, packet: bytes) -> None:
        self.step(box, lambda it, now: it.receive(port, packet, now))

    def _at_host(self, host: TcpHost, packet: bytes) -> None:
        self.seen[CLIENT if host is self.client else SERVER].append(packet)
        self.step(host, lambda it, now: it.receive(packet, now))


@pytest.fixture(params=["pair", "single", "rwbp", "stp"])
def network(request: pytest.FixtureRequest) -> Network:
    return Network(SUBJECT.variants[request.param])


@pytest.fixture
def user() -> type[User]:
    return User


@pytest.fixture
def network_of() -> type[Network]:
    return Network
