"""Addresses, UDP sockets, the pump and its loop, with a machine that only echoes."""

import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest
from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.io.addresses import Place, SocketAddress, parse_place, resolve
from bentpipe_reference.stp.io.carrier import BATCH
from bentpipe_reference.stp.io.errors import StpIoError
from bentpipe_reference.stp.io.loop import Loop, Pump
from bentpipe_reference.stp.io.raw import RawCarrier
from bentpipe_reference.stp.io.udp import UdpCarrier
from bentpipe_reference.stp.packets import Poll

LOOPBACK = Place("127.0.0.1")


class Echo:
    """Sends back what it gets; may have one deadline."""

    def __init__(self, deadline: float | None = None) -> None:
        self.deadline = deadline
        self.outbox: list[tuple[SocketAddress, bytes]] = []
        self.seen: list[bytes] = []
        self.transmits: list[float] = []

    def receive(self, octets: bytes, peer: SocketAddress, now: float) -> None:
        self.seen.append(octets)
        self.outbox.append((peer, octets))

    def transmit(self, now: float) -> list[tuple[SocketAddress, bytes]]:
        self.transmits.append(now)
        if self.deadline is not None and now >= self.deadline:
            self.deadline = None
        outbox, self.outbox = self.outbox, []
        return outbox

    def next_deadline(self) -> float | None:
        return self.deadline


@pytest.fixture
def server() -> Iterator[UdpCarrier]:
    carrier = UdpCarrier.listening(LOOPBACK)
    yield carrier
    carrier.close()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("192.0.2.1:4000", Place("192.0.2.1", 4000)),
        ("host.example:4000/9", Place("host.example", 4000, 9)),
        ("[2001:db8::1]:65535/1", Place("2001:db8::1", 65535, 1)),
        ("*:7", Place("*", 7)),
    ],
)
def test_address_with_ports_is_read(text: str, place: Place) -> None:
    assert parse_place(text, ports=True) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("192.0.2.1", Place("192.0.2.1")),
        ("192.0.2.1/19", Place("192.0.2.1", 0, 19)),
        ("2001:db8::1/19", Place("2001:db8::1", 0, 19)),
        ("[2001:db8::1]", Place("2001:db8::1")),
    ],
)
def test_address_without_a_udp_port_is_read(text: str, place: Place) -> None:
    assert parse_place(text, ports=False) == place


@pytest.mark.parametrize(
    ("text", "ports", "words"),
    [
        ("", True, "no UDP port"),
        ("host", True, "no UDP port"),
        ("host:", True, "UDP port ''"),
        ("host:0", True, "UDP port '0'"),
        ("host:65536", True, "UDP port '65536'"),
        ("host:4000/x", True, "STP port 'x'"),
        ("host:4000/", True, "STP port ''"),
        ("2001:db8::1:4000", True, "without brackets"),
        (":4000", True, "no UDP port"),
        ("[]:4000", True, "no host"),
        ("host:4000", False, "without a UDP port"),
        ("", False, "not an address"),
        ("host:\u0664", True, "UDP port"),
    ],
)
def test_address_that_cannot_be_read_is_refused(text: str, ports: bool, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_place(text, ports=ports)


def test_place_reads_as_it_was_written() -> None:
    for text in ("192.0.2.1:4000", "[2001:db8::1]:5/9", "a:1/2"):
        assert str(parse_place(text, ports=True)) == text


def test_name_that_does_not_exist_the_error_says_so() -> None:
    with pytest.raises(StpIoError, match=r"not found .*; correct the name"):
        resolve(Place("no such host", 4000))


def test_address_in_use_the_error_says_so(server: UdpCarrier) -> None:
    place = Place("127.0.0.1", server.address[1])
    with pytest.raises(StpIoError, match=r"already in use.*choose another port"):
        UdpCarrier.listening(place)


def test_address_of_another_host_cannot_be_listened_on() -> None:
    with pytest.raises(StpIoError, match="give an address of this host"):
        UdpCarrier.listening(Place("192.0.2.1", 4000))


def test_nobody_at_the_port_is_noticed_by_a_connected_socket(server: UdpCarrier) -> None:
    port = server.address[1]
    server.close()
    client = UdpCarrier.towards(Place("127.0.0.1", port))
    try:
        assert client.send([(client.peer, b"x")]) == 1
        client.receive()
        assert client.refused
        assert client.fault == "nobody is at this UDP port"
    finally:
        client.close()


def test_packet_beyond_the_mtu_counts_as_sent_and_is_told(server: UdpCarrier) -> None:
    client = UdpCarrier.towards(Place("127.0.0.1", server.address[1]))
    try:
        assert client.send([(client.peer, bytes(70_000)), (client.peer, b"short")]) == 2
        assert client.too_long
        assert [octets for octets, _ in server.receive()] == [b"short"]
    finally:
        client.close()


def test_flood_is_taken_in_batches(server: UdpCarrier) -> None:
    client = UdpCarrier.towards(Place("127.0.0.1", server.address[1]))
    machine = Echo()
    pump = Pump(machine, server)
    try:
        client.send([(client.peer, b"x")] * (BATCH + 3))
        assert pump.take(0.0)
        assert len(machine.seen) == BATCH
        assert not pump.take(0.0)
        assert len(machine.seen) == BATCH + 3
    finally:
        client.close()


def test_ipv6_packets_come_back_to_their_sender() -> None:
    server = UdpCarrier.listening(Place("::1"))
    client = UdpCarrier.towards(Place("::1", server.address[1]))
    try:
        client.send([(client.peer, b"hello")])
        pump = Pump(Echo(), server)
        pump.take(0.0)
        pump.flush(0.0)
        assert client.receive() == [(b"hello", client.peer)]
    finally:
        server.close()
        client.close()


class Reluctant:
    """A carrier whose buffer takes one packet, then is full until it is emptied."""

    def __init__(self) -> None:
        self.room = 1
        self.taken: list[bytes] = []

    def send(self, packets: list[tuple[SocketAddress, bytes]]) -> int:
        count = min(self.room, len(packets))
        self.taken += [packet for _, packet in packets[:count]]
        self.room -= count
        return count


def test_full_socket_keeps_the_order_and_asks_for_nothing_more() -> None:
    machine, carrier = Echo(deadline=1.0), Reluctant()
    pump = Pump(machine, carrier)  # type: ignore[arg-type]
    machine.outbox = [((), b"a"), ((), b"b"), ((), b"c")]
    pump.flush(0.0)
    assert pump.blocked
    assert pump.deadline() is None
    machine.outbox = [((), b"d")]
    pump.flush(0.1)
    assert machine.transmits == [0.0]
    carrier.room = 10
    pump.flush(0.2)
    assert carrier.taken == [b"a", b"b", b"c", b"d"]
    assert not pump.blocked
    assert pump.deadline() == 1.0


def test_loop_sleeps_until_the_deadline_and_wakes_once(server: UdpCarrier) -> None:
    started = time.monotonic()
    machine = Echo(deadline=started + 0.05)
    loop = Loop(Pump(machine, server))
    loop.run(lambda: machine.deadline is None)
    loop.close()
    assert machine.transmits[-1] >= started + 0.05
    # The first call, and the one at the deadline; a busy loop would make thousands.
    assert len(machine.transmits) == 2


def test_loop_answers_packets_and_keeps_alarms(server: UdpCarrier) -> None:
    client = UdpCarrier.towards(Place("127.0.0.1", server.address[1]))
    machine = Echo()
    loop = Loop(Pump(machine, server))
    rang: list[str] = []
    now = loop.clock()
    loop.call_at(now + 0.02, lambda: rang.append("second"))
    loop.call_at(now + 0.01, lambda: rang.append("first"))
    client.send([(client.peer, b"one"), (client.peer, b"two")])
    loop.run(lambda: len(rang) == 2)
    assert [octets for octets, _ in client.receive()] == [b"one", b"two"]
    assert rang == ["first", "second"]
    client.close()
    loop.close()


def test_signal_wakes_the_loop_between_packets(server: UdpCarrier) -> None:
    loop = Loop(Pump(Echo(), server))
    got: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    with loop.interruptible(got.append):
        loop.call_at(loop.clock() + 0.01, lambda: os.kill(os.getpid(), signal.SIGINT))
        loop.run(lambda: bool(got))
    loop.close()
    assert got == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before


def test_signal_goes_before_what_arrived_after_it(server: UdpCarrier) -> None:
    loop = Loop(Pump(Echo(), server))
    one, other = socket.socketpair()
    happened: list[str] = []

    def read() -> None:
        happened.append(one.recv(10).decode())

    loop.watch(one.fileno(), read)
    with loop.interruptible(lambda number: happened.append("signal")):
        os.kill(os.getpid(), signal.SIGTERM)
        other.send(b"data")
        loop.run(lambda: len(happened) == 2)
    assert happened == ["signal", "data"]
    loop.close()
    one.close()
    other.close()


def test_watched_file_is_told_of(server: UdpCarrier) -> None:
    loop = Loop(Pump(Echo(), server))
    one, other = socket.socketpair()
    got: list[bytes] = []
    loop.watch(one.fileno(), lambda: got.append(one.recv(10)))
    other.send(b"hello")
    loop.run(lambda: bool(got))
    loop.unwatch(one.fileno())
    loop.close()
    one.close()
    other.close()
    assert got == [b"hello"]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets take root")


@needs_root
@pytest.mark.parametrize(
    ("host", "peer"), [("127.0.0.21", ("127.0.0.21", 0)), ("::1", ("::1", 0, 0, 0))]
)
def test_packet_directly_over_ip_has_its_peer_and_a_checksum_over_addresses(
    host: str, peer: SocketAddress
) -> None:
    carrier = RawCarrier.listening(Place(host), 254)
    try:
        packet = encode(Poll(1, 2, 3, 0, 4, 5, 6, 7), carrier.pseudo_header(peer))
        # To itself: a raw socket gets what it sends to its own address.
        assert carrier.send([(peer, packet)]) == 1
        assert carrier.receive() == [(packet, peer)]
        assert decode(packet, carrier.pseudo_header(peer)) == Poll(1, 2, 3, 0, 4, 5, 6, 7)
        with pytest.raises(MalformedPacket):
            decode(packet)
    finally:
        carrier.close()


@needs_root
def test_packet_to_an_address_that_would_not_answer_is_dropped() -> None:
    everywhere = RawCarrier.listening(Place("*"), 254)
    try:
        # The kernel answers 127.0.0.1 from 127.0.0.1, whatever was called.
        everywhere.send([(("127.0.0.22", 0), b"lost"), (("127.0.0.1", 0), b"taken")])
        assert everywhere.receive() == [(b"taken", ("127.0.0.1", 0))]
    finally:
        everywhere.close()


@needs_root
def test_caller_directly_over_ip_hears_only_its_peer() -> None:
    client = RawCarrier.towards(Place("127.0.0.23"), 254)
    other = RawCarrier.listening(Place("127.0.0.24"), 254)
    server = RawCarrier.listening(Place("127.0.0.23"), 254)
    try:
        assert client.address == ("127.0.0.1", 0)
        other.send([(client.address, b"forged")])
        server.send([(client.address, b"true")])
        assert client.receive() == [(b"true", client.peer)]
    finally:
        for carrier in (client, other, server):
            carrier.close()
