"""Whatever the link does, both streams arrive whole, and no segment breaks the wire's rules."""

from __future__ import annotations

import random
from typing import Any

import pytest
from bentpipe_reference.common.link.profile import Direction
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.stream import PatternSource, pattern
from bentpipe_reference.tcp.config import VARIANTS, EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.path import ConnectionDriver
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet, parse_packet
from bentpipe_reference.tcp.wire.sequence import unwrap
from hypothesis import given, settings
from hypothesis import strategies as st


class Referee:
    """Watches one connection's segments, knowing nothing of its variables."""

    def __init__(self, iss: int, peer_iss: int) -> None:
        self.iss, self.peer_iss = iss, peer_iss
        self.edge = 0
        self.acked = 0
        self.arrived: set[int] = set()
        self.end_of_peer: int | None = None
        self.shift = 0

    def incoming(self, segment: Segment) -> None:
        """Called with each segment the connection receives."""
        if segment.flags & Flags.SYN:
            self.shift = segment.window_scale or 0
        offset = unwrap(segment.seq, self.peer_iss + 1) - self.peer_iss - 1
        self.arrived.update(range(offset, offset + len(segment.payload)))
        if segment.flags & Flags.FIN:
            self.end_of_peer = offset + len(segment.payload)
        if segment.flags & Flags.ACK:
            shift = 0 if segment.flags & Flags.SYN else self.shift
            number = unwrap(segment.ack, self.iss + 1) - self.iss - 1
            self.edge = max(self.edge, number + (segment.window << shift))

    def outgoing(self, segment: Segment, *, sack: bool) -> None:
        """Called with each segment the connection sends."""
        if segment.flags & (Flags.SYN | Flags.RST):
            return
        offset = unwrap(segment.seq, self.iss + 1) - self.iss - 1
        size = len(segment.payload)
        assert segment.payload == pattern(offset, size)
        probe = size + bool(segment.flags & Flags.FIN) == 1
        assert offset + size <= self.edge + probe
        number = unwrap(segment.ack, self.peer_iss + 1) - self.peer_iss - 1
        assert number >= self.acked
        self.acked = number
        data_acked = number - (self.end_of_peer is not None and number > self.end_of_peer)
        assert all(octet in self.arrived for octet in range(max(0, data_acked - 3000), data_acked))
        assert sack or not segment.sack_blocks
        previous: list[tuple[int, int]] = []
        for index, (left, right) in enumerate(segment.sack_blocks):
            left, right = (unwrap(e, self.peer_iss + 1) - self.peer_iss - 1 for e in (left, right))
            assert left < right
            assert {left, right - 1} <= self.arrived
            if left > number and index:
                assert all(right < a or b < left for a, b in previous[1:])
            previous.append((left, right))


class World:
    """Two connections that both send and receive a stream over a faulty link."""

    def __init__(
        self, configs: tuple[EndpointConfig, EndpointConfig], link: tuple[Direction, Direction],
        octets: tuple[int, int], seed: int,
    ) -> None:  # fmt: skip
        numbers = random.Random(seed)
        self.simulation = Simulation()
        self.octets = octets
        self.read = [0, 0]
        isns = numbers.getrandbits(32), (1 << 32) - 3000
        self.ends = [
            Connection(configs[0], Addresses(1, 10, 2, 20), isns[0]),
            Connection(configs[1], Addresses(2, 20, 1, 10), isns[1]),
        ]
        self.referees = [Referee(isns[0], isns[1]), Referee(isns[1], isns[0])]
        self.links = [
            VirtualLink(self.simulation, link[i], self.deliver(1 - i), numbers.getrandbits(32))
            for i in (0, 1)
        ]
        self.drivers = [
            ConnectionDriver(self.simulation, self.ends[i], self.send(i), self.serve(i))
            for i in (0, 1)
        ]

    def deliver(self, to: int) -> Any:
        def arrive(packet: bytes) -> None:
            segment = parse_packet(packet)
            end = self.ends[to]
            self.referees[to].incoming(segment)
            if end.state is State.CLOSED and end.receiver is None and segment.flags & Flags.SYN:
                end.accept(segment, self.simulation.now)
                self.drivers[to].settle()
            else:
                self.drivers[to].receive(segment)

        return arrive

    def send(self, i: int) -> Any:
        def put(segment: Segment, size: int) -> None:
            packet = emit_packet(segment)
            assert len(packet) == size
            self.referees[i].outgoing(segment, sack=self.ends[i].sender.sack_ok)
            self.links[i].send(packet, size)

        return put

    def serve(self, i: int) -> Any:
        def application(end: Connection, now: float) -> None:
            if end.sender.source is None and end.state in (State.ESTABLISHED, State.CLOSE_WAIT):
                end.attach(PatternSource(self.octets[i]), now)
                end.close(now)
            data = end.read(700)
            while data:
                assert data == pattern(self.read[i], len(data))
                self.read[i] += len(data)
                data = end.read(700)

        return application

    def run(self) -> None:
        self.ends[0].open(0.0)
        self.drivers[0].settle()
        while any(end.state not in (State.CLOSED, State.TIME_WAIT) for end in self.ends):
            assert self.simulation.now < 40_000, [end.state for end in self.ends]
            assert self.simulation.step(), [end.state for end in self.ends]
        # The last ACK of a FIN may be lost for good once the other end has closed and gone.
        assert self.read == [self.octets[1], self.octets[0]]


directions = st.builds(
    Direction,
    rate_bit_s=st.sampled_from([None, 1.3e6, 5e4]),
    delay_s=st.sampled_from([0.0, 0.02, 0.3]),
    queue_packets=st.sampled_from([3, 10, 50]),
    loss_probability=st.sampled_from([0.0, 0.02, 0.2]),
    ber=st.sampled_from([0.0, 1e-6, 1e-5]),
    reorder_probability=st.sampled_from([0.0, 0.05, 0.3]),
    reorder_delay_s=st.sampled_from([0.005, 0.1, 0.9]),
    duplicate_probability=st.sampled_from([0.0, 0.1]),
)
settings_of_an_end = st.fixed_dictionaries(
    {
        "mss": st.sampled_from([1460, 536, 88]),
        "receive_buffer": st.sampled_from([240 * 1024, 65_535, 9000, 1500]),
        "dsack": st.booleans(),
        "sack": st.sampled_from([None, True, False]),
        "timestamps": st.sampled_from([None, True, False]),
        "window_scale": st.booleans(),
        "limited_transmit": st.sampled_from([None, True]),
        "nagle": st.booleans(),
        "max_retransmissions": st.just(40),
        "max_syn_retransmissions": st.just(30),
    }
)


@pytest.mark.parametrize("variant", VARIANTS)
@given(
    st.tuples(settings_of_an_end, settings_of_an_end),
    st.tuples(directions, directions),
    st.tuples(st.sampled_from([0, 1, 1460, 30_000]), st.sampled_from([0, 700, 20_000])),
    st.integers(0, 10_000),
)
@settings(max_examples=25)
def test_streams_over_a_faulty_link_arrive_whole(
    variant: Any, ends: tuple[Any, Any], link: tuple[Direction, Direction],
    octets: tuple[int, int], seed: int,
) -> None:  # fmt: skip
    first, second = (EndpointConfig(variant=variant, **end) for end in ends)
    World((first, second), link, octets, seed).run()
