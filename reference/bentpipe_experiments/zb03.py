"""The network of ZB03 (Zhou and Baras 2003, section IV): servers, two proxies, a gateway, clients.

Server and client speak TCP Reno with the proxies; between the proxies, across the satellite, runs
RWBP or TCP SACK.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import count
from operator import call
from typing import Any

from bentpipe_reference.common.link.profile import Direction
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.gateway import Gateway
from bentpipe_reference.rwbp.parts import Setup as RwbpSetup
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.path import Delivery
from bentpipe_reference.tcp.sender import Sender

from bentpipe_experiments.chain import (
    Chain,
    ConnectionHop,
    End,
    Hop,
    Interface,
    ScheduledEnd,
)
from bentpipe_experiments.gateway import Space
from bentpipe_experiments.links import AMPLE
from bentpipe_experiments.wire import SinkHop, SourceHop, Wire

RWBP, SACK = "rwbp", "sack"
PACKET = 512
"""Octets of an IP packet (section IV.A)."""

MSS = PACKET - 40
SATELLITE_RTT_S = 0.5
CLIENT_RTT_S = 1e-7
WIRE_RATE = 2_000_000
"""Bits per second, of the links of servers and clients."""

FEWEST = 4
"""Segments that a buffer of a terrestrial connection holds at least."""

INTERVAL = 8
_GATEWAY = "10.77.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What one run is made of; buffers are in peak-rate-delay products (section III.C).

    Attributes:
        protocol: ``rwbp`` or ``sack`` between the proxies.
        rate: of the satellite link, bits per second.
        peak: peak rate of a connection, bits per second.
        ber: bit error rate of the satellite's forward channel.
        return_ber: of its return channel.
        queue: places of the gateway's queue of low priority, packets.
        high_queue: of its queue of high priority.
        interval: N of RWBP.
        receive: receive buffer of the downstream proxy.
        window: send buffer of the upstream proxy.
        wired_tcp: whether servers and clients speak TCP Reno packet by packet, or by its window.
        middle: what else is changed of the endpoints between the proxies.
        parts: parts of RWBP's endpoints that are replaced.
    """

    protocol: str
    rate: float
    peak: float
    ber: float = 0.0
    return_ber: float = 0.0
    queue: int
    high_queue: int = 50
    interval: int = INTERVAL
    receive: float = 2.0
    window: float = 1.0
    wired_tcp: bool = True
    middle: tuple[tuple[str, Any], ...] = ()
    parts: tuple[type[Any], ...] = ()


def buffer(peak: float, rtt_s: float, products: float = 1.0) -> int:
    """Octets of user data in a buffer of so many peak-rate-delay products, in whole packets."""
    return MSS * math.ceil(products * peak * rtt_s / 8 / MSS)


def wire_buffer(peak: float, rtt_s: float) -> int:
    """The same for a terrestrial connection: two packets more, which an acknowledgment awaits."""
    return max(FEWEST, 2 + buffer(peak, rtt_s) // MSS) * MSS


class World:
    """The network in virtual time; :meth:`chain` adds a server and a client.

    Args:
        network: its parameters.
        seed: seed of errors and initial sequence numbers.
        upstream: changes the setup of the upstream proxy, where RWBP is spoken.
        gateway: the class of the gateway.

    Attributes:
        simulation: the clock.
        space: the satellite's forward channel.
        return_: its return channel.
        interface: what RWBP's connections share, None with TCP.
    """

    def __init__(
        self,
        network: Network,
        seed: int,
        *,
        upstream: Callable[[RwbpSetup], RwbpSetup] | None = None,
        gateway: type[Gateway[Delivery]] = Gateway,
    ) -> None:
        self.network = network
        self.simulation = Simulation()
        numbers = random.Random(seed)
        self._number = numbers.getrandbits
        self.space = Space(
            self.simulation,
            gateway(network.rate, network.queue, network.high_queue),
            SATELLITE_RTT_S / 2,
            network.ber,
            numbers.getrandbits(32),
        )
        self.return_ = self._link(Direction(delay_s=SATELLITE_RTT_S / 2, ber=network.return_ber))
        self._ports = count(40000)
        self.interface: Interface | None = None
        if network.protocol == RWBP:
            self._downstream = self._rwbp_setup()
            self._upstream = upstream(self._downstream) if upstream else self._downstream
            self.interface = Interface(self.simulation, self._upstream, self.space)
            self.space.grant(self.interface.on_credit)

    def chain(self, server_rtt_s: float, octets: int | None = None) -> Chain:
        """A server and its client, to be started.

        Args:
            server_rtt_s: round-trip propagation time between server and upstream proxy.
            octets: length of the stream, None for one without end.
        """
        return Chain(
            self.simulation,
            self._wire(server_rtt_s, SourceHop),
            self._middle(),
            self._wire(CLIENT_RTT_S, SinkHop),
            octets=octets,
        )

    def response(self, server_rtt_s: float, octets: int) -> Chain:
        """What a client requests from its server, to be started; TCP Reno packet by packet there.

        Args:
            server_rtt_s: round-trip propagation time between server and upstream proxy.
            octets: length of the file.
        """
        client = SinkHop(
            self.simulation,
            Wire(wire_buffer(self.network.peak, CLIENT_RTT_S), MSS, WIRE_RATE, CLIENT_RTT_S / 2),
        )
        server = self._terrestrial(server_rtt_s)
        return Chain(self.simulation, server, self._middle(), client, octets=octets, called=True)

    def _link(self, direction: Direction) -> VirtualLink[Delivery]:
        return VirtualLink[Delivery](self.simulation, direction, call, self._number(32))

    def _wire(self, rtt_s: float, window_hop: type[SourceHop | SinkHop]) -> Hop:
        """A link of a server or a client, with its connection."""
        if self.network.wired_tcp:
            return self._terrestrial(rtt_s)
        room = wire_buffer(self.network.peak, rtt_s)
        return window_hop(self.simulation, Wire(room, MSS, WIRE_RATE, rtt_s / 2))

    def _terrestrial(self, rtt_s: float) -> ConnectionHop:
        """TCP Reno packet by packet."""
        room = wire_buffer(self.network.peak, rtt_s)
        setup = Setup(
            EndpointConfig(variant="reno", mss=MSS, receive_buffer=room, send_buffer=room)
        )
        direction = Direction(rate_bit_s=WIRE_RATE, delay_s=rtt_s / 2, queue_packets=AMPLE)
        return self._tcp(setup, setup, self._link(direction), self._link(direction))

    def _middle(self) -> Hop:
        """The connection across the satellite."""
        if self.interface is not None:
            return self._rwbp_hop(self.interface)
        network = self.network
        setup = Setup(
            EndpointConfig(
                mss=MSS,
                limited_transmit=False,
                timestamps=False,
                initial_window_segments=1,
                clock_granularity=0.5,
                send_buffer=buffer(network.peak, SATELLITE_RTT_S, network.window),
                receive_buffer=buffer(network.peak, SATELLITE_RTT_S, network.receive),
            )
        ).configured(**dict(network.middle))
        return self._tcp(setup, setup, self.space, self.return_)

    def _tcp(
        self, near: Setup, far: Setup, forward: Space | VirtualLink[Delivery],
        return_: VirtualLink[Delivery],
    ) -> ConnectionHop:  # fmt: skip
        ends = self._addresses()
        return ConnectionHop(
            End(
                self.simulation,
                near.parts.connection(near.config, ends, self._number(32), near.parts),
                forward,
            ),
            End(
                self.simulation,
                far.parts.connection(far.config, ends.swapped(), self._number(32), far.parts),
                return_,
            ),
        )

    def _rwbp_setup(self) -> RwbpSetup:
        network = self.network
        setup = RwbpSetup(
            RwbpConfig(
                mss=MSS,
                interval=network.interval,
                send_buffer=buffer(network.peak, SATELLITE_RTT_S, network.window),
                receive_buffer=buffer(network.peak, SATELLITE_RTT_S, network.receive),
                gateway=_GATEWAY,
            )
        ).configured(**dict(network.middle))
        for part in network.parts:
            setup = setup.with_part(part)
        return setup

    def _rwbp_hop(self, interface: Interface) -> ConnectionHop:
        ends = self._addresses()
        near, far = (
            setup.parts.connection(setup.config, side, self._number(32), setup.parts)
            for setup, side in ((self._upstream, ends), (self._downstream, ends.swapped()))
        )
        assert isinstance(near, RwbpConnection)
        return ConnectionHop(
            ScheduledEnd(self.simulation, near, interface),
            End(self.simulation, far, self.return_),
        )

    def _addresses(self) -> Addresses:
        return Addresses(1, next(self._ports), 2, 9)


def bulk(protocol: str, ber: float, **changes: Any) -> Network:
    """The network of section IV.B.1: fifteen transfers at 9 Mb/s, peak rate 1.2 Mb/s."""
    network = Network(protocol=protocol, rate=9e6, peak=1.2e6, ber=ber, queue=1098, wired_tcp=False)
    return replace(network, **changes)


TRANSFERS = 15


def server_rtt_s(transfer: int) -> float:
    """Round-trip propagation time between server and proxy of a transfer, counted from 1."""
    return (10 * transfer - 8) / 1000


def check(chains: Iterable[Chain]) -> None:
    """See that streams arrive as they were sent.

    Raises:
        RuntimeError: a connection has failed, or octets are not those sent.
    """
    for chain in chains:
        if chain.failure or not chain.intact:
            raise RuntimeError(chain.failure or "the octets read are not those sent.")


def senders(chains: Iterable[Chain]) -> list[Sender]:
    """What sends across the satellite."""
    found = [chain.hops[1] for chain in chains]
    return [hop.sending.sender for hop in found if isinstance(hop, ConnectionHop)]


SETTINGS = {
    "chain": (
        "server, TCP Reno, upstream proxy, RWBP or TCP SACK, gateway and satellite, downstream "
        "proxy, TCP Reno, client; 500 ms between the proxies, 10^-4 ms to the client (IV.A)"
    ),
    "packets": (
        "512 octets with their headers, 472 of data. Whether ZB03 counts headers is not printed"
    ),
    "buffers": (
        "one peak-rate-delay product (PRDP), the downstream proxy's receive buffer two (IV.B.1), "
        "for RWBP and TCP alike, in octets of user data, rounded up to whole packets. "
        "Those of terrestrial connections hold two packets more, which an acknowledgment waits "
        "for; else they, and not the satellite, would bound a transfer at its peak rate"
    ),
    "errors": "on the forward channel, after the queue: a lost packet has taken its time",
    "return channel": "no rate and no errors: none is printed",
    "TCP SACK": (
        "RFC 6675, first window of one segment, no limited transmit, timers in half seconds. "
        "Which of the SACK algorithms ZB03 has is not printed"
    ),
    "RWBP": "RWBP/1 with N = 8; the IP queue holds 10 packets, which is not printed",
}
"""Common to all figures."""
