"""Hosts over a link of whole packets: services, the ring, link rate and credit (section 9)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import emit_datagram
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.credit import CreditFrame, frame_datagram
from bentpipe_reference.rwbp.host import RwbpHost
from bentpipe_reference.rwbp.subject import SETTINGS, SETUPS, SUBJECT
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, WireError, emit_packet, parse_packet

SERVER, CLIENT, GATEWAY = "10.77.0.2", "10.78.0.9", "10.77.0.254"


class Reader:
    """A client: writes what it is told, keeps what it reads until its limit, then closes."""

    def __init__(self, to_write: bytes = b"", limit: int | None = None, deaf: bool = False) -> None:
        self.to_write = to_write
        self.limit = limit
        self.deaf = deaf
        self.received = bytearray()

    def run(self, connection: Connection, now: float) -> None:
        if not self.deaf:
            self.received += connection.read()
        if connection.state is State.ESTABLISHED and self.to_write:
            self.to_write = self.to_write[connection.write(self.to_write, now) :]
        if self.limit is not None and len(self.received) >= self.limit:
            connection.close(now)


class Wire:
    """Two hosts joined by a lossless link with a fixed delay; what the server sends is kept."""

    def __init__(self, server: TcpHost, client: TcpHost | None = None, delay: float = 0.3) -> None:
        self.simulation = Simulation()
        self.delay = delay
        self.server = server
        self.client = client or RwbpHost(CLIENT, RwbpConfig(), seed=2)
        self.sent: list[tuple[float, Segment]] = []
        self._alarms = {
            host: Alarm(self.simulation, partial(self._wake, host))
            for host in (self.server, self.client)
        }

    def settle(self) -> None:
        now = self.simulation.now
        for host, other in ((self.server, self.client), (self.client, self.server)):
            for packet in host.transmit(now):
                if host is self.server:
                    self.sent.append((now, parse_packet(packet)))
                self.simulation.call_after(self.delay, lambda p=packet, o=other: self.take(o, p))
            self._alarms[host].set(host.next_deadline())

    def take(self, host: TcpHost, packet: bytes) -> None:
        host.receive(packet, self.simulation.now)
        self.settle()

    def _wake(self, host: TcpHost) -> None:
        host.advance(self.simulation.now)
        self.settle()

    def data(self) -> list[tuple[float, Segment]]:
        return [(time, each) for time, each in self.sent if each.payload]


def server(**config: Any) -> RwbpHost:
    return RwbpHost(SERVER, RwbpConfig(**config), seed=1)


def test_echo_service_when_data_arrives_sends_it_back() -> None:
    wire = Wire(server())
    data = pattern(0, 400_000)
    reader = Reader(data, limit=len(data))
    connection = wire.client.connect(SERVER, 7, reader, 0.0)
    wire.settle()
    wire.simulation.run_until(60.0)
    assert bytes(reader.received) == data
    assert connection.state in (State.TIME_WAIT, State.CLOSED)
    assert not wire.server.connections


def test_chargen_service_when_the_peer_closes_ends_with_fin() -> None:
    wire = Wire(server())
    reader = Reader(limit=500_000)
    wire.client.connect(SERVER, 19, reader, 0.0)
    wire.settle()
    wire.simulation.run_until(100.0)
    assert bytes(reader.received) == pattern(0, len(reader.received))
    assert len(reader.received) >= 500_000
    assert not wire.server.connections


@pytest.mark.parametrize("port", [7, 9, 13, 19])
@pytest.mark.parametrize("variant", ["sack-newreno-rfc", "reno"])
def test_services_when_the_client_is_plain_tcp_serve_it(port: int, variant: str) -> None:
    wire = Wire(server(), TcpHost(CLIENT, EndpointConfig(variant=variant), seed=3))  # type: ignore[arg-type]
    reader = Reader(b"x" * 5000, limit={7: 5000, 9: 0, 13: 38, 19: 90_000}[port])
    connection = wire.client.connect(SERVER, port, reader, 0.0)
    wire.settle()
    wire.simulation.run_until(100.0)
    assert len(reader.received) >= (reader.limit or 0)
    assert connection.state in (State.TIME_WAIT, State.CLOSED)
    assert not wire.server.connections


def test_data_that_answers_data_acknowledges_it() -> None:
    """Section 7.1: no pure acknowledgment beside the echo."""
    wire = Wire(server())
    wire.client.connect(SERVER, 7, Reader(bytes(8 * 1460)), 0.0)
    wire.settle()
    wire.simulation.run_until(0.95)
    answers = [each for _, each in wire.sent if not each.flags & Flags.SYN and each.ack]
    pure = [each for each in answers if not each.payload]
    assert len(answers) - len(pure) == 8
    assert len(pure) <= 1  # the update of the window at the opening


def test_packet_when_for_no_connection_is_reset() -> None:
    host = server()
    stranger = Segment(address_number(CLIENT), address_number(SERVER), 5, 7, 9, 11, Flags.ACK)
    host.receive(emit_packet(stranger), 0.0)
    (reset,) = [parse_packet(each) for each in host.transmit(0.0)]
    assert (reset.flags, reset.seq) == (Flags.RST, 11)


# -- the ring ---------------------------------------------------------------------------------


def turns(wire: Wire) -> list[int]:
    return [each.dport for _, each in wire.data()]


def start(wire: Wire, clients: Iterable[Reader]) -> list[int]:
    ports = []
    for reader in clients:
        ends = wire.client.connect(SERVER, 19, reader, 0.0).addresses
        ports.append(ends.local_port)
    wire.settle()
    return ports


def test_connections_when_all_can_send_take_turns_in_the_order_of_opening() -> None:
    """RWBP-FC-005, RWBP-SC-001, RWBP-SC-002."""
    wire = Wire(server(link_rate_bit_s=1e6))
    ports = start(wire, [Reader(limit=10**9) for _ in range(5)])
    wire.simulation.run_until(5.0)
    assert len(turns(wire)) > 250
    steady = turns(wire)[50:]
    following = dict(zip(ports, ports[1:] + ports[:1], strict=True))
    assert all(following[a] == b for a, b in pairwise(steady))


def test_connection_when_its_user_does_not_read_holds_up_no_other() -> None:
    """RWBP-FC-007."""
    wire = Wire(server(link_rate_bit_s=2e6))
    deaf, reading = Reader(deaf=True), Reader(limit=600_000)
    ports = start(wire, [deaf, reading])
    wire.simulation.run_until(60.0)
    assert len(reading.received) >= 600_000
    assert Counter(turns(wire))[ports[0]] * 1460 < 400_000


def test_connections_when_served_by_octets_get_equal_shares() -> None:
    """RWBP-SC-003: one sends full packets, the other as small ones as its peer wants."""
    shares = {}
    for scheduler in ("round-robin", "drr"):
        host = server(link_rate_bit_s=1e6, scheduler=scheduler)
        wire = Wire(host, RwbpHost(CLIENT, RwbpConfig(mss=400), seed=2))
        first = start(wire, [Reader(limit=10**9)])
        wire.client.config = RwbpConfig()
        second = start(wire, [Reader(limit=10**9)])
        wire.simulation.run_until(20.0)
        octets = Counter[int]()
        for _, each in wire.data()[-500:]:
            octets[each.dport] += each.packet_octets
        shares[scheduler] = octets[first[0]] / octets[second[0]]
    assert shares["round-robin"] == pytest.approx(440 / 1500, rel=0.02)
    assert shares["drr"] == pytest.approx(1.0, rel=0.02)


# -- link rate and credit ---------------------------------------------------------------------


def test_packets_leave_no_faster_than_the_link_rate() -> None:
    """RWBP-LC-011, and RWBP-FC-004: the queue before it stays short."""
    host = server(link_rate_bit_s=1e6, ip_queue=4)
    wire = Wire(host)
    start(wire, [Reader(limit=10**9) for _ in range(3)])
    wire.simulation.run_until(4.0)
    assert len(wire.sent) > 200
    for (before, packet), (after, _) in pairwise(wire.sent):
        assert after - before >= 8 * packet.packet_octets / 1e6 - 1e-9
    assert host.uplink.queue.longest <= 4 + 3  # acknowledgments do not wait for room


@pytest.mark.parametrize("timestamps", [False, True])
def test_plain_tcp_connection_when_data_waits_for_the_link_keeps_its_order(
    timestamps: bool,
) -> None:
    """RWBP-FF-001: no acknowledgment overtakes data that was to leave before it."""
    host = server(link_rate_bit_s=1e5, timestamps=timestamps, receive_buffer=20_000)
    client = TcpHost(CLIENT, EndpointConfig(timestamps=timestamps), seed=3)
    wire = Wire(host, client, delay=0.05)
    start(wire, [Reader(pattern(0, 40_000), limit=200_000)])
    wire.simulation.run_until(30.0)
    synchronized = [each for _, each in wire.sent if not each.flags & Flags.SYN]
    acks = [each.ack - synchronized[0].ack & 0xFFFFFFFF for each in synchronized]
    assert acks == sorted(acks)
    assert max(acks) > 35_000
    stamps = [each.timestamps[0] for each in synchronized if each.timestamps]
    assert len(stamps) == len(synchronized) * timestamps
    assert stamps == sorted(stamps)
    highest = synchronized[0].seq
    for each in synchronized:
        assert each.payload or each.flags & Flags.FIN or each.seq == highest
        highest = max(highest, each.seq + len(each.payload))


class Gate:
    """A server behind a gateway that the test plays."""

    def __init__(self) -> None:
        self.host = server(gateway=GATEWAY)
        self.wire = Wire(self.host)
        self._seen = 0

    def credit(self, arrived: int, limit: int, epoch: int = 1, source: str = GATEWAY) -> None:
        frame = CreditFrame(epoch & 0xFFFF, arrived & 0xFFFFFFFF, limit & 0xFFFFFFFF)
        datagram = frame_datagram(frame, address_number(source), address_number(SERVER))
        self.wire.take(self.host, emit_datagram(datagram))

    def run(self, seconds: float) -> int:
        """Let time pass; return how many packets have been sent since the last run."""
        self.wire.simulation.run_until(self.wire.simulation.now + seconds)
        before, self._seen = self._seen, len(self.wire.sent)
        return self._seen - before


def test_packets_before_the_first_credit_wait() -> None:
    """RWBP-LC-002."""
    gate = Gate()
    start(gate.wire, [Reader(limit=10**9)])
    assert gate.run(0.9) == 0
    gate.credit(0, 75)
    assert gate.run(0.05) == 1  # the SYN-ACK


def test_credit_when_it_ends_stops_all_packets_and_grows_stale_after_a_second() -> None:
    """RWBP-LC-003, RWBP-LC-005, RWBP-LC-007."""
    gate = Gate()
    start(gate.wire, [Reader(limit=10**9)])
    gate.credit(0, 5)
    assert gate.run(0.95) == 5
    gate.credit(5, 9)
    assert gate.run(0.1) == 4
    gate.credit(5, 7)
    assert gate.run(0.1) == 0
    gate.credit(9, 9)
    gate.run(1.1)
    gate.credit(9, 10_000, source="10.77.0.253")
    assert gate.run(0.01) == 0
    gate.credit(9, 12)
    assert gate.run(0.01) == 3


def test_credit_of_packets_that_never_arrived_comes_back_after_a_second() -> None:
    """RWBP-LC-006."""
    gate = Gate()
    start(gate.wire, [Reader(limit=10**9)])
    gate.credit(0, 6)
    gate.run(0.8)
    for _ in range(12):
        gate.run(0.1)
        gate.credit(2, 6)
    assert len(gate.wire.sent) == 10


def test_credit_of_an_older_epoch_is_discarded_and_of_a_newer_one_starts_anew() -> None:
    """RWBP-LC-004."""
    gate = Gate()
    start(gate.wire, [Reader(limit=10**9)])
    gate.credit(100, 103, epoch=65_535)
    assert gate.run(0.95) == 3
    gate.credit(100, 200, epoch=65_534)
    assert gate.run(0.01) == 0
    gate.credit(0, 4, epoch=0)
    assert gate.run(0.01) == 4


def test_packets_when_random_never_stop_a_host() -> None:
    """RWBP-SEC-003."""
    gate = Gate()
    numbers = random.Random(5)
    for _ in range(3000):
        packet = bytearray(numbers.randbytes(numbers.randrange(70)))
        if len(packet) > 10:
            packet[0] = 0x45
            packet[9] = numbers.choice((6, 17, 1))
        gate.host.receive(bytes(packet), 0.0)
    assert gate.host.ignored == 3000


# -- as the exam sees it ----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS)
def test_setting_makes_a_host_that_serves(setting: str) -> None:
    setup = SETTINGS[setting].configure(SETUPS["rwbp1"])
    if setup.config.link_address is None and setup.config.gateway is not None:
        setup = setup.configured(gateway=None)
    wire = Wire(SUBJECT.make(SERVER, setup, 1))  # type: ignore[arg-type]
    reader = Reader(limit=30_000)
    wire.client.connect(SERVER, 19, reader, 0.0)
    wire.settle()
    wire.simulation.run_until(60.0)
    assert bytes(reader.received) == pattern(0, len(reader.received))
    assert len(reader.received) >= 30_000


def test_drawn_hosts_are_as_their_statements_say() -> None:
    numbers = random.Random(1)
    link = load_profiles()["geo"]
    for _ in range(200):
        drawn = SUBJECT.draw(numbers, link)
        assert drawn.profile == "rwbp1"
        assert drawn.ics["receive_buffer"] == drawn.setup.config.receive_buffer
        SUBJECT.make(SERVER, drawn.setup, 1)


def test_malformed_packet_is_counted_only() -> None:
    host = server()
    host.receive(b"\x45", 0.0)
    with pytest.raises(WireError):
        parse_packet(b"\x45")
    assert host.ignored == 1


def test_gateway_that_stays_silent_leaves_a_bounded_queue() -> None:
    """RWBP-SC-005: peers, known and unknown, go on."""
    gate = Gate()
    start(gate.wire, [Reader(limit=10**9)])
    gate.credit(0, 1)
    gate.run(1.5)
    remote, far, near = next(iter(gate.host.connections))
    ends = {"source": remote, "destination": gate.host.address}
    for count in range(500):
        seq = {"seq": count, "ack": 0, "window": 1000, "payload": b"old", "urgent": 0}
        for packet in (
            Segment(**ends, **seq, sport=1000 + count, dport=47, flags=int(Flags.SYN)),
            Segment(**ends, **seq, sport=far, dport=near, flags=int(Flags.ACK)),
        ):
            gate.host.receive(emit_packet(packet), gate.wire.simulation.now)
    assert len(gate.host.uplink.queue) <= gate.host.config.ip_queue + 2


def test_endless_source_stays_within_the_send_buffer_whatever_the_window() -> None:
    """RWBP-SEC-002: a peer may permit 2^30 octets."""
    wire = Wire(server(), RwbpHost(CLIENT, RwbpConfig(receive_buffer=1 << 30), seed=2))
    wire.client.connect(SERVER, 19, Reader(), 0.0)
    wire.settle()
    for _ in range(20):
        wire.simulation.run_until(wire.simulation.now + 0.2)
        for connection in wire.server.connections.values():
            assert connection.sender.segments.octets <= connection.config.send_buffer  # type: ignore[attr-defined]
    assert len(wire.data()) > 300
