from __future__ import annotations

import gc
import random
import weakref

import pytest
from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.tcp import subject
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet, parse_packet

SERVER, CLIENT = "10.77.0.2", "10.78.0.9"


class Reader:
    """A client application: writes what it is told, keeps what it reads."""

    def __init__(self, to_write: bytes = b"", limit: int | None = None) -> None:
        self.to_write = to_write
        self.limit = limit
        self.received = bytearray()

    def run(self, connection: Connection, now: float) -> None:
        self.received += connection.read()
        if connection.state is State.ESTABLISHED and self.to_write:
            self.to_write = self.to_write[connection.write(self.to_write, now) :]
        if self.limit is not None and len(self.received) >= self.limit:
            connection.close(now)


class Wire:
    """Two hosts joined by a lossless link with a fixed delay."""

    def __init__(self, config: EndpointConfig, delay: float = 0.3) -> None:
        self.simulation = Simulation()
        self.delay = delay
        self.server = TcpHost(SERVER, config, seed=1)
        self.client = TcpHost(CLIENT, config, seed=2)

    def settle(self) -> None:
        for host, other in ((self.server, self.client), (self.client, self.server)):
            for packet in host.transmit(self.simulation.now):
                self.simulation.call_after(self.delay, lambda p=packet, o=other: self._take(o, p))
            deadline = host.next_deadline()
            if deadline is not None:
                self.simulation.call_at(deadline, lambda h=host: self._wake(h))

    def _take(self, host: TcpHost, packet: bytes) -> None:
        host.receive(packet, self.simulation.now)
        self.settle()

    def _wake(self, host: TcpHost) -> None:
        host.advance(self.simulation.now)
        self.settle()


def test_echo_service_when_data_arrives_sends_it_back() -> None:
    wire = Wire(EndpointConfig())
    data = pattern(0, 400_000)
    reader = Reader(data, limit=len(data))
    connection = wire.client.connect(SERVER, 7, reader, 0.0)
    wire.settle()
    wire.simulation.run_until(60.0)
    assert bytes(reader.received) == data
    assert connection.state in (State.TIME_WAIT, State.CLOSED)
    assert not wire.server.connections


def test_chargen_service_when_peer_closes_ends_with_fin() -> None:
    wire = Wire(EndpointConfig())
    reader = Reader(limit=500_000)
    wire.client.connect(SERVER, 19, reader, 0.0)
    wire.settle()
    wire.simulation.run_until(100.0)
    assert len(reader.received) >= 500_000
    assert bytes(reader.received) == pattern(0, len(reader.received))
    assert not wire.server.connections
    assert not wire.client.connections


def probe(**fields: object) -> bytes:
    base: dict[str, object] = {"sport": 1234, "dport": 19, "seq": 100, "window": 1000}
    base.update(fields)
    return emit_packet(Segment(address_number(CLIENT), address_number(SERVER), **base))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (Flags.SYN, (0, 101, Flags.RST | Flags.ACK)),
        (Flags.ACK, (77, 0, Flags.RST)),
        (Flags.FIN, (0, 101, Flags.RST | Flags.ACK)),
    ],
)
def test_unknown_port_when_segment_arrives_answers_rst(
    flags: Flags, expected: tuple[int, int, int]
) -> None:
    host = TcpHost(SERVER, EndpointConfig(), seed=1)
    host.receive(probe(dport=4242, flags=flags, ack=77 if flags & Flags.ACK else 0), 0.0)
    (answer,) = (parse_packet(packet) for packet in host.transmit(0.0))
    assert (answer.seq, answer.ack, answer.flags) == expected


def test_unknown_port_when_rst_arrives_is_silent() -> None:
    host = TcpHost(SERVER, EndpointConfig(), seed=1)
    host.receive(probe(dport=4242, flags=Flags.RST), 0.0)
    assert host.transmit(0.0) == []


def test_host_when_garbage_arrives_counts_it_and_lives() -> None:
    host = TcpHost(SERVER, EndpointConfig(), seed=1)
    numbers = random.Random(7)
    good = probe(flags=Flags.SYN)
    for _ in range(500):
        broken = bytearray(good)
        broken[numbers.randrange(len(broken))] ^= 1 << numbers.randrange(8)
        host.receive(bytes(broken[: numbers.randrange(len(broken) + 1)]), 0.0)
    assert host.ignored > 400
    host.receive(good, 1.0)
    flags = [parse_packet(packet).flags for packet in host.transmit(1.0)]
    assert Flags.SYN | Flags.ACK in flags


def test_host_when_full_of_half_open_connections_makes_room() -> None:
    host = TcpHost(SERVER, EndpointConfig(), seed=1, most_connections=4)
    for port in range(1000, 1010):
        host.receive(probe(flags=Flags.SYN, sport=port), 0.0)
    assert len(host.connections) == 4
    assert len(host.transmit(0.0)) == 10


def test_reference_as_examined_when_called_often_wraps_soon() -> None:
    numbers = subject.SoonWrapping(random.Random(1))
    drawn = [numbers.draw(Segment(0, 0, 0, 0, seq=seq)) for seq in range(200)]

    assert 50 < sum(number >= 2**32 - 2**16 for number in drawn) < 150
    assert sum(2**31 - 2**16 <= number < 2**31 for number in drawn) > 10
    assert len(set(drawn)) == 200


def test_reference_as_examined_when_its_peer_begins_elsewhere_begins_elsewhere() -> None:
    def first(seq: int) -> int:
        return subject.SoonWrapping(random.Random(0)).draw(Segment(0, 0, 0, 0, seq=seq))

    assert len({first(seq) for seq in range(20)}) > 10


def test_host_when_it_calls_often_uses_no_port_twice() -> None:
    host = TcpHost("10.77.0.2", EndpointConfig(), 1, most_connections=4)
    ports = [host.open("10.78.0.1", 9, "discard", 0.0).addresses.local_port for _ in range(600)]
    assert len(set(ports)) == 600


def test_host_when_a_call_of_its_user_has_ended_forgets_it() -> None:
    host = TcpHost(CLIENT, EndpointConfig(), seed=2)
    opened = weakref.ref(host.open(SERVER, 9, "chargen", 0.0))
    (syn,) = map(parse_packet, host.transmit(0.0))
    ends = {"source": syn.destination, "destination": syn.source}
    ports = {"sport": syn.dport, "dport": syn.sport}
    refusal = Segment(**ends, **ports, ack=syn.seq + 1, flags=Flags.RST | Flags.ACK)
    host.receive(emit_packet(refusal), 0.6)
    gc.collect()
    assert opened() is None
