"""The host: both encapsulations, the services, and what is not for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import Datagram, emit_datagram, parse_datagram
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.packets import Begin, Bgrej, Packet

NEAR, FAR = "10.77.0.2", "10.78.0.2"


class Reader:
    """Keeps what it reads; closes when told to."""

    def __init__(self) -> None:
        self.read = b""

    def run(self, connection: Connection) -> None:
        self.read += connection.read()


class Pair:
    """Two hosts with a tenth of a second between them."""

    def __init__(self, protocol: int = 17, **config: Any) -> None:
        settings = StpConfig(protocol=protocol, **config)
        self.near, self.far = StpHost(NEAR, settings, 1), StpHost(FAR, settings, 2)
        self.now = 0.0
        self.datagrams: list[Datagram] = []

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        under_way: list[tuple[float, StpHost, bytes]] = []
        while True:
            for host, other in ((self.near, self.far), (self.far, self.near)):
                for packet in host.transmit(self.now):
                    self.datagrams.append(parse_datagram(packet))
                    under_way.append((self.now + 0.1, other, packet))
            times = [item[0] for item in under_way]
            deadlines = (self.near.next_deadline(), self.far.next_deadline())
            times += [max(at, self.now) for at in deadlines if at is not None]
            following = min(times, default=None)
            if following is None or following > until:
                self.now = until
                return
            self.now = following
            due = [item for item in under_way if item[0] <= following]
            under_way = [item for item in under_way if item[0] > following]
            for _, host, packet in due:
                host.receive(packet, following)
            self.near.advance(following)
            self.far.advance(following)


@pytest.mark.parametrize("protocol", [17, 253, 254])
def test_echo_returns_the_stream_and_closes(protocol: int) -> None:
    pair = Pair(protocol)
    reader = Reader()
    connection = pair.near.connect(FAR, 7, reader)
    sent = pattern(0, 40_000)
    assert connection.write(sent) == len(sent)
    connection.close()
    pair.run(30.0)
    assert reader.read == sent and connection.succeeded
    assert not pair.near.connections and not pair.far.connections
    ports = {(item.protocol, item.udp_sport, item.udp_dport) for item in pair.datagrams}
    assert ports == {(protocol, 7253, 7253) if protocol == 17 else (protocol, 0, 0)}
    assert all(decode(item.payload, item.pseudo_header) for item in pair.datagrams)


def test_echo_reads_only_as_fast_as_it_can_write() -> None:
    pair = Pair(send_buffer=2000, credit=8)
    reader = Reader()
    connection = pair.near.connect(FAR, 7, reader)
    left = pattern(0, 60_000)
    for _ in range(200):
        left = left[connection.write(left) :]
        pair.run(0.5)
        (peer,) = pair.far.connections.values()
        assert peer.outgoing.sender.unsent <= 2000 and peer.readable <= 8 * 1452
        if not left:
            break
    connection.close()
    pair.run(60.0)
    assert reader.read == pattern(0, 60_000) and connection.succeeded


def test_discard_reads_everything_and_closes() -> None:
    pair = Pair()
    connection = pair.near.connect(FAR, 9, Reader())
    connection.write(bytes(30_000))
    connection.close()
    pair.run(20.0)
    assert connection.succeeded and connection.acknowledged_octets == 30_000


def test_chargen_sends_the_pattern_until_the_peer_closes() -> None:
    pair = Pair(credit=16)
    reader = Reader()
    connection = pair.near.connect(FAR, 19, reader)
    pair.run(5.0)
    assert len(reader.read) > 20_000 and reader.read == pattern(0, len(reader.read))
    connection.close()
    pair.run(20.0)
    assert connection.succeeded and connection.peer_has_closed
    assert reader.read == pattern(0, len(reader.read))


def test_chargen_stops_when_the_peer_aborts() -> None:
    pair = Pair(credit=16)
    connection = pair.near.connect(FAR, 19, Reader())
    pair.run(3.0)
    connection.abort(pair.now)
    pair.run(5.0)
    assert not pair.far.connections and connection.failure == "aborted by the user"
    count = len(pair.datagrams)
    pair.run(100.0)
    assert len(pair.datagrams) == count


@pytest.mark.parametrize("service", ["echo", "discard", "chargen"])
def test_host_opens_a_connection_with_a_service(service: str) -> None:
    pair = Pair(credit=16)
    connection = pair.near.open(FAR, 7, service, 0.0)
    pair.run(3.0)
    if service == "chargen":
        assert connection.acknowledged_octets > 5000
    else:
        assert not connection.is_over


def test_unknown_service_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="there are echo, discard, chargen"):
        Pair().near.open(FAR, 7, "gopher", 0.0)


def test_another_udp_port_of_the_tester_is_used_and_answered() -> None:
    host = StpHost(NEAR, StpConfig(), 1)
    host.open(FAR, 4000, "echo", 0.0, udp_port=9999)
    (packet,) = host.transmit(0.0)
    datagram = parse_datagram(packet)
    assert (datagram.udp_sport, datagram.udp_dport) == (7253, 9999)
    begin = decode(datagram.payload)
    assert isinstance(begin, Begin)


def begin_to(carrier: int = 17, **fields: Any) -> Datagram:
    begin: Packet = Begin(4000, 7, 1, 0, 5, 100, 1, max_sd=600)
    ports = (7253, 7253) if carrier == 17 else (0, 0)
    datagram = Datagram(address_number(FAR), address_number(NEAR), b"", carrier, *ports)
    datagram = replace(datagram, **fields)
    return replace(datagram, payload=encode(begin, datagram.pseudo_header))


@pytest.mark.parametrize(
    "fields", [{"destination": address_number("10.77.0.3")}, {"udp_dport": 7254}, {"carrier": 253}]
)
def test_what_is_for_others_is_ignored(fields: dict[str, Any]) -> None:
    host = StpHost(NEAR, StpConfig(), 1)
    packet = emit_datagram(begin_to(**fields))
    host.receive(packet, 0.0)
    assert host.ignored == 1 and host.transmit(0.0) == []


def test_pseudo_header_guards_against_another_address() -> None:
    host = StpHost(NEAR, StpConfig(protocol=253), 1)
    good = begin_to(253)
    host.receive(emit_datagram(replace(good, source=good.source + 1)), 0.0)
    assert host.endpoint.ignored == 1 and host.transmit(0.0) == []
    host.receive(emit_datagram(good), 0.0)
    (answer,) = host.transmit(0.0)
    parsed = parse_datagram(answer)
    assert isinstance(decode(parsed.payload, parsed.pseudo_header), Bgrej)


def test_garbage_is_counted_and_survived() -> None:
    host = StpHost(NEAR, StpConfig(), 1)
    good = emit_datagram(begin_to())
    for cut in range(len(good)):
        host.receive(good[:cut], 0.0)
    assert host.ignored == len(good) and host.transmit(0.0) == []
    assert host.next_deadline() is None


def test_echo_with_data_after_its_own_end_does_not_wait_for_room() -> None:
    pair = Pair()
    connection = pair.near.connect(FAR, 7, Reader())
    pair.run(1.0)
    connection.close()
    connection.ask_for_room()
    assert not connection.wants_room


def test_services_that_never_come_to_rest_end_the_host() -> None:
    class Restless:
        def run(self, connection: Connection) -> None:
            connection.ask_for_room()

    pair = Pair()
    pair.near.connect(FAR, 7, Restless())
    with pytest.raises(RuntimeError, match="did not come to rest"):
        pair.run(1.0)
