"""The scripted peer and connection, tried with a protocol that is nothing but UDP."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Any

import pytest
from bentpipe_conformance.engine.codec import (
    UDP,
    MalformedPacket,
    build_ipv4,
    build_udp,
    read_ipv4,
    read_udp,
)
from bentpipe_conformance.engine.peer import BaseConnection, BasePeer, NotReached, rule_to_lose

TESTER, IUT = "10.78.0.1", "10.77.0.2"


@dataclass(frozen=True)
class Datagram:
    src: str
    sport: int
    dport: int
    data: bytes

    @property
    def has_data(self) -> bool:
        return bool(self.data)


def dissect(octets: bytes) -> Datagram:
    src, dst, protocol, start, end, _ = read_ipv4(octets)
    if protocol != UDP:
        raise MalformedPacket("not UDP")
    sport, dport, data, _ = read_udp(src, dst, octets[start:end])
    return Datagram(socket.inet_ntoa(src), sport, dport, data)


def datagram(src: str, dst: str, sport: int, dport: int, data: bytes) -> bytes:
    ends = socket.inet_aton(src), socket.inet_aton(dst)
    return build_ipv4(*ends, UDP, build_udp(*ends, sport, dport, data))


class Connection(BaseConnection[Datagram, Datagram]):
    """Opened by the first datagram of the IUT, ended by ``bye``."""

    def __init__(self, peer: Peer, port: int, source_port: int) -> None:
        super().__init__(peer, port, source_port)
        self.held = b""
        self.heard = False

    @property
    def answered(self) -> bool:
        return self.heard

    @property
    def progress(self) -> str:
        return f"{len(self.held)} octets delivered"

    def accept(self, time: float, packet: Datagram) -> None:
        self.heard = True
        if packet.data == b"bye":
            self.closed = "the IUT ended it"
        self.inbox.append(packet)

    def hold(self, arrival: Datagram) -> None:
        self.held += arrival.data

    def say(self, data: bytes, after: float = 0.0) -> None:
        packet = datagram(TESTER, IUT, self.source_port, self.port, data)
        self.peer.send(packet, after=after)

    def abort(self) -> None:
        self.say(b"abort")
        self.closed = "the tester aborted it"


class LastingConnection(Connection):
    hears_after_the_end = True


class Peer(BasePeer[Datagram, Connection]):
    kind: type[Connection] = Connection

    def dissect(self, octets: bytes) -> Datagram:
        return dissect(octets)

    def connect(self, service: str | int = "chargen", **offer: Any) -> Connection:
        return self.add(self.kind(self, self.port_of(service), self.new_port()))


@dataclass
class Wire:
    """A port on which packets arrive at given times."""

    time: float = 0.0
    coming: list[tuple[float, bytes]] = field(default_factory=list)
    sent: list[tuple[float, bytes]] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def send(self, packet: bytes) -> None:
        self.sent.append((self.time, packet))

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        if not self.coming or self.coming[0][0] > deadline:
            self.time = max(self.time, deadline)
            return None
        self.time = max(self.time, self.coming[0][0])
        return self.coming.pop(0)

    def reply(self, connection: Connection, *timed: tuple[float, bytes]) -> None:
        self.coming += [
            (time, datagram(IUT, TESTER, connection.port, connection.source_port, data))
            for time, data in timed
        ]

    def said(self) -> list[tuple[float, bytes]]:
        return [(time, dissect(packet).data) for time, packet in self.sent]


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def peer(wire: Wire) -> Peer:
    return Peer(wire, TESTER, IUT, rtt=0.5)


def test_packets_of_no_connection_are_strays(peer: Peer, wire: Wire) -> None:
    connection = peer.connect("echo")
    wire.reply(connection, (1.0, b"mine"))
    foreign = datagram("10.9.9.9", TESTER, 7, connection.source_port, b"spoofed")
    wire.coming += [(2.0, foreign), (3.0, b"\x45 cut short")]
    peer.wait(10.0)
    assert [item.data for item in connection.inbox] == [b"mine"]
    assert peer.strays == [(2.0, dissect(foreign)), (3.0, b"\x45 cut short")]
    assert wire.now() == 10.0


def test_later_connection_on_the_same_ports_takes_the_packets(peer: Peer, wire: Wire) -> None:
    first = peer.connect("echo")
    second = peer.add(Connection(peer, first.port, first.source_port))
    wire.reply(first, (1.0, b"x"))
    peer.wait(2.0)
    assert not first.inbox and len(second.inbox) == 1


def test_packets_scheduled_for_later_leave_in_order_of_their_times(peer: Peer, wire: Wire) -> None:
    connection = peer.connect("echo")
    wire.reply(connection, (0.3, b"meanwhile"))
    connection.say(b"last", after=0.7)
    connection.say(b"first")
    connection.say(b"middle", after=0.2)
    peer.wait(1.0)
    assert wire.said() == [(0.0, b"first"), (0.2, b"middle"), (0.7, b"last")]
    connection.say(b"never", after=0.7)
    peer.wait(0.5)
    peer.finish()
    peer.wait(1.0)
    assert b"never" not in dict(map(reversed, wire.said()))  # type: ignore[arg-type]


def test_answer_that_does_not_come_is_not_reached(peer: Peer) -> None:
    with pytest.raises(NotReached, match=r"^no greeting from port 9 within 6\.0 s$"):
        peer.connect("discard").await_answer("greeting")
    assert peer.now() == 6.0


def test_connection_that_ends_while_it_opens_is_not_reached(peer: Peer, wire: Wire) -> None:
    connection = peer.connect("discard")
    wire.reply(connection, (1.0, b"bye"))
    with pytest.raises(NotReached, match=r"^port 9: the IUT ended it$"):
        connection.await_answer("greeting")


def test_expected_arrival_is_found_behind_others(peer: Peer, wire: Wire) -> None:
    connection = peer.connect()
    wire.reply(connection, (1.0, b"a"), (2.0, b"b"), (3.0, b"c"))
    assert connection.await_arrival(lambda item: item.data == b"b", "b").data == b"b"
    assert [item.data for item in connection.discard(5.0)] == [b"c"]
    with pytest.raises(NotReached, match=r"^0\.5 s passed without d$"):
        connection.await_arrival(lambda item: item.data == b"d", "d", 0.5)


@pytest.mark.parametrize(("kind", "waited"), [(Connection, 1.0), (LastingConnection, 6.0)])
def test_end_is_waited_past_where_the_protocol_still_speaks(
    peer: Peer, wire: Wire, kind: type[Connection], waited: float
) -> None:
    peer.kind = kind
    connection = peer.connect()
    wire.reply(connection, (1.0, b"bye"))
    with pytest.raises(NotReached, match=r"^the connection ended without more: the IUT ended it$"):
        connection.await_arrival(lambda item: item.data == b"more", "more")
    assert wire.now() == waited


def test_collected_data_is_held_and_discarded_data_is_not(peer: Peer, wire: Wire) -> None:
    connection = peer.connect()
    wire.reply(connection, (1.0, b"lost"), (2.0, b"kept"), (2.5, b""))
    connection.discard(1.5)
    assert [item.data for item in connection.collect(1.5)] == [b"kept"]
    assert connection.held == b"kept"


@pytest.mark.parametrize("kind", [Connection, LastingConnection])
def test_serving_ends_with_the_condition_the_time_or_the_connection(
    peer: Peer, wire: Wire, kind: type[Connection]
) -> None:
    peer.kind = kind
    connection = peer.connect()
    wire.reply(connection, (1.0, b"one"), (2.0, b"two"), (3.0, b"bye"))
    connection.serve_until(lambda: len(connection.held) >= 3, connection.hold)
    assert connection.held == b"one" and wire.now() == 1.0
    with pytest.raises(NotReached, match=r"^0 s passed, with 3 octets delivered$"):
        connection.serve_until(lambda: False, connection.hold, 0.1)
    with pytest.raises(NotReached, match=r"^the IUT ended it, with . octets delivered$"):
        connection.serve_until(lambda: False, connection.hold)
    assert wire.now() == 3.0


def test_finish_aborts_what_was_answered_and_is_not_over(peer: Peer, wire: Wire) -> None:
    unanswered, ended, lasting = (peer.connect() for _ in range(3))
    wire.reply(ended, (1.0, b"bye"))
    wire.reply(lasting, (1.0, b"hello"))
    peer.wait(2.0)
    peer.finish()
    assert wire.said() == [(2.0, b"abort")]
    assert lasting.closed and not unanswered.closed


@pytest.mark.parametrize(
    ("losses", "lost"),
    [
        ([3], [True, False, False]),
        ({3: 2}, [True, True, False]),
        ((), [False, False, False]),
        (lambda _, before: before == 1, [False, True, False]),
    ],
)
def test_rule_loses_by_index_as_often_as_told(losses: Any, lost: list[bool]) -> None:
    rule = rule_to_lose(losses, lambda item: len(item.data))
    arrival = Datagram(IUT, 1, 2, b"abc")
    assert [rule(arrival, before) for before in range(3)] == lost


def test_packet_of_scapy_is_sent_and_its_expression_kept() -> None:
    class Odd:
        def __bytes__(self) -> bytes:
            return b"odd"

        def command(self) -> str:
            return "IP()/TCP()"

    wire = Wire()
    peer = Peer(wire, TESTER, IUT, rtt=0.5)
    peer.wait(1.5)
    peer.send(b"even")
    peer.send(Odd())
    assert [(at.time, at.expression) for at in peer.crafted] == [(1.5, "IP()/TCP()")]
    assert wire.sent == [(1.5, b"even"), (1.5, b"odd")]
