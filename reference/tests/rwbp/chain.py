"""The chain of ZB03 section II.A in virtual time, from servers through two proxies to users."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bentpipe_reference.common.link.profile import Direction
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.common.stream import PatternSource, pattern
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.gateway import Gateway
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.proxy import Proxy
from bentpipe_reference.tcp import parts as tcp
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.path import ConnectionDriver
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Segment

Deliver = Callable[[Segment], None]
UNIT = 472
SERVERS, USERS = 0x0A010000, 0x0A020000


class Chain:
    """Flows of the test pattern from servers to users through two proxies.

    Attributes:
        read: octets that each user has read.
        finished: when each stream was complete, None before.
    """

    def __init__(
        self,
        flows: int,
        octets: int | None,
        *,
        ber: float = 0.0,
        rate_bit_s: float = 9e6,
        peak_bit_s: float = 1.2e6,
        ground_bit_s: float = 2e6,
        gateway: bool = True,
        deaf: frozenset[int] = frozenset(),
        seed: int = 1,
        **satellite: Any,
    ) -> None:
        self.simulation = Simulation()
        self.octets = octets
        self.deaf = deaf
        self.read = [0] * flows
        self.intact = [True] * flows
        self.finished: list[float | None] = [None] * flows
        prdp = int(peak_bit_s * 0.5 / 8)
        plain = EndpointConfig(
            mss=UNIT, timestamps=False, receive_buffer=16_000, send_buffer=16_000
        )
        rwbp = RwbpConfig(
            mss=UNIT,
            receive_buffer=4 * prdp,
            send_buffer=prdp,
            gateway="10.0.0.254" if gateway else None,
            link_rate_bit_s=None if gateway else rate_bit_s,
            **satellite,
        )
        down = RwbpConfig(mss=UNIT, receive_buffer=4 * prdp, send_buffer=prdp)
        self.ground = tcp.Setup(plain)
        self.upstream = Proxy(self.ground, Setup(rwbp), seed)
        self.downstream = Proxy(self.ground, Setup(down), seed + 1)
        self.gateway: Gateway[Segment] | None = None
        if gateway:
            self.gateway = Gateway(rate_bit_s, int(rate_bit_s * 0.5 / 8 / 512), 50)
        air = Direction(delay_s=0.25, ber=ber)
        self.forward = VirtualLink[Segment](
            self.simulation, air, partial(self._give, self.downstream, True), seed
        )
        self.return_ = VirtualLink[Segment](
            self.simulation, Direction(delay_s=0.25), partial(self._give, self.upstream, True), 0
        )
        self._alarms = {
            proxy: Alarm(self.simulation, partial(self._wake, proxy))
            for proxy in (self.upstream, self.downstream)
        }
        self._gateway_alarm = Alarm(self.simulation, self._run_gateway)
        self._to_server: dict[int, VirtualLink[Segment]] = {}
        self._to_user: dict[int, tuple[VirtualLink[Segment], VirtualLink[Segment]]] = {}
        self.servers: list[ConnectionDriver] = []
        self.users: list[ConnectionDriver] = []
        for flow in range(flows):
            self._add(flow, ground_bit_s, (10 * flow + 2) / 2000)
        if gateway:
            self._run_gateway()
        for server in self.servers:
            server.connection.open(0.0)
            server.settle()

    def _add(self, flow: int, rate: float, delay: float) -> None:
        ends = Addresses(SERVERS + flow, 20, USERS + flow, 9)
        server, user = (
            Connection(self.ground.config, each, 1000 * flow, self.ground.parts)
            for each in (ends, ends.swapped())
        )
        out = VirtualLink[Segment](
            self.simulation, Direction(rate, delay), partial(self._give, self.upstream, False)
        )
        back = VirtualLink[Segment](
            self.simulation, Direction(rate, delay), lambda segment: driver.receive(segment)
        )
        driver = ConnectionDriver(self.simulation, server, out.send, self._feed)
        self._to_server[SERVERS + flow] = back
        self.servers.append(driver)
        to_user = VirtualLink[Segment](
            self.simulation, Direction(rate), lambda segment: self._to(user_driver, segment)
        )
        from_user = VirtualLink[Segment](
            self.simulation, Direction(rate), partial(self._give, self.downstream, False)
        )
        user_driver = ConnectionDriver(
            self.simulation, user, from_user.send, partial(self._drain, flow)
        )
        self._to_user[USERS + flow] = to_user, from_user
        self.users.append(user_driver)

    # -- users --------------------------------------------------------------------------------

    def _feed(self, connection: Connection, now: float) -> None:
        if connection.sender.source is None and connection.state is State.ESTABLISHED:
            connection.attach(PatternSource(self.octets), now)
            if self.octets is not None:
                connection.close(now)

    def _drain(self, flow: int, connection: Connection, now: float) -> None:
        if flow in self.deaf:
            return
        data = connection.read()
        if data:
            self.intact[flow] &= data == pattern(self.read[flow], len(data))
            self.read[flow] += len(data)
        if self.read[flow] == self.octets and self.finished[flow] is None:
            self.finished[flow] = now
        if connection.peer_has_closed:
            connection.close(now)

    @staticmethod
    def _to(driver: ConnectionDriver, segment: Segment) -> None:
        connection = driver.connection
        if connection.state is State.CLOSED and connection.receiver is None:
            connection.accept(segment, driver._simulation.now)
            driver.settle()
        else:
            driver.receive(segment)

    # -- nodes --------------------------------------------------------------------------------

    def _give(self, proxy: Proxy, satellite: bool, segment: Segment) -> None:
        now = self.simulation.now
        (proxy.receive_satellite if satellite else proxy.receive_ground)(segment, now)
        self._collect(proxy)

    def _wake(self, proxy: Proxy) -> None:
        proxy.advance(self.simulation.now)
        self._collect(proxy)

    def _collect(self, proxy: Proxy) -> None:
        now = self.simulation.now
        for segment in proxy.transmit_ground():
            address = segment.destination
            link = self._to_user[address][0] if address in self._to_user else None
            link = link or self._to_server[address]
            link.send(segment, segment.packet_octets)
        out = proxy.transmit_satellite()
        if proxy is self.downstream:
            for segment in out:
                self.return_.send(segment, segment.packet_octets)
        elif self.gateway is None:
            for segment in out:
                self.forward.send(segment, segment.packet_octets)
        elif out:
            for segment in out:
                self.gateway.take(segment, segment.packet_octets, now)
            self._gateway_alarm.set(self.gateway.next_deadline())
        self._alarms[proxy].set(proxy.next_deadline())

    def _run_gateway(self) -> None:
        gateway, now = self.gateway, self.simulation.now
        assert gateway is not None
        for segment in gateway.transmit(now):
            self.forward.send(segment, segment.packet_octets)
        frame = gateway.frame_due(now)
        if frame is not None:
            self.upstream.receive_credit(frame, now)
            self._collect(self.upstream)
        self._gateway_alarm.set(gateway.next_deadline())


def jain(shares: list[int]) -> float:
    """Jain's index of fairness."""
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
