"""A pair of boxes with STP/1 between them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import Datagram, emit_datagram, parse_datagram
from bentpipe_reference.common.services import DISCARD, ECHO
from bentpipe_reference.pep.subject import OVER_STP, PAIR
from bentpipe_reference.stp import codec, packets
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet, parse_packet

CLIENT, SERVER = "10.1.0.1", "10.2.0.1"
ENDS = address_number(CLIENT), address_number(SERVER)
OCTETS = random.Random(3).randbytes(300_000)
STP, ICMP = 254, 1
NOBODY = 4444


@pytest.fixture
def network(network_of: Any) -> Any:
    return network_of(OVER_STP)


@pytest.fixture
def passing(network: Any) -> list[bytes]:
    """What the near box sends over the satellite."""
    return watched(network, 0)


def watched(network: Any, box: int) -> list[bytes]:
    found: list[bytes] = []
    leads = network._leads[id(network.boxes[box])]
    on = leads[1]
    leads[1] = lambda packet: (found.append(packet), on(packet))
    return found


def spoken(packet: bytes) -> packets.Packet:
    datagram = parse_datagram(packet)
    return codec.decode(datagram.payload, datagram.pseudo_header)


def test_satellite_carries_stp_between_the_addresses_and_ports_of_the_ends(
    network: Any, user: Any, passing: list[bytes]
) -> None:
    connection = network.call(user(OCTETS[:100]), DISCARD)
    network.run(3)
    begin = spoken(passing[0])
    assert isinstance(begin, packets.Begin)
    assert (begin.sport, begin.dport) == (connection.addresses.local_port, DISCARD)
    assert {(packet[9], packet[12:20]) for packet in passing} == {
        (STP, b"".join(end.to_bytes(4, "big") for end in ENDS))
    }


def test_call_is_answered_when_the_server_has_accepted_it(network: Any, user: Any) -> None:
    answers = watched(network, 1)
    (lead,), network._leads[id(network.server)] = network._leads[id(network.server)], [len]
    connection = network.call(user(closes=False), ECHO)
    network.run(6)
    assert connection.state is State.SYN_SENT
    assert not any(isinstance(spoken(packet), packets.Bgak) for packet in answers)
    network._leads[id(network.server)] = [lead]
    network.run(10)
    assert connection.state is State.ESTABLISHED
    assert any(isinstance(spoken(packet), packets.Bgak) for packet in answers)


def test_call_that_is_refused_is_refused_over_the_satellite(network: Any, user: Any) -> None:
    answers = watched(network, 1)
    connection = network.call(user(), NOBODY)
    network.run(3)
    assert connection.state is State.CLOSED
    refusals = [it for packet in answers if isinstance(it := spoken(packet), packets.Bgrej)]
    assert [it.reason for it in refusals] == [packets.Reason.COOKIE, packets.Reason.NOT_LISTENING]
    assert [len(box.relays) for box in network.boxes] == [0, 0]
    assert not any(box._held for box in network.boxes)


def test_end_and_its_release_leave_nothing_but_time_wait(network: Any, user: Any) -> None:
    it = user(OCTETS[:5000])
    network.call(it, ECHO)
    network.run(10)
    assert bytes(it.got) == OCTETS[:5000]
    assert all(relay.only_waits for box in network.boxes for relay in box.relays)
    assert [box.counts.failed for box in network.boxes] == [0, 0]
    network.run(300)
    assert not any(box.relays or box._held or box._stp.connections for box in network.boxes)


def test_receiver_that_stops_bounds_what_is_held(network: Any, user: Any) -> None:
    it = user(closes=False)
    it.reads = False
    connection = network.call(it, ECHO)
    network.run(3)
    sent = 0
    for _ in range(60):
        sent += network.step(network.client, lambda _, now: connection.write(OCTETS, now)) or 0
        network.run(1)
    near, far = (next(iter(box.relays)) for box in network.boxes)
    # Of the echo's way up: the near box keeps what is not acknowledged, the far one what is.
    kept = near.far._written - near.far.connection.acknowledged_octets + near.far.readable
    assert kept <= PAIR.config.inner.send_buffer + PAIR.config.inner.receive_buffer
    assert far.near.readable <= PAIR.config.inner.receive_buffer


def test_reset_of_the_client_reaches_the_server(network: Any, user: Any) -> None:
    it = user(OCTETS[:1000], closes=False)
    connection = network.call(it, ECHO)
    network.run(3)
    network.step(network.client, lambda _, now: connection.abort("enough", now))
    network.step(network.client, lambda host, now: host.run(connection, now))
    network.run(2)
    assert any(parse_packet(packet).flags & Flags.RST for packet in network.seen[SERVER])


def test_ports_that_are_used_again_before_the_end_is_acknowledged(network: Any, user: Any) -> None:
    it = user(OCTETS[:1000], closes=False)
    connection = network.call(it, ECHO)
    network.run(3)
    ends = connection.addresses
    network.back.direction = type(network.back.direction)(loss_probability=1.0)
    network.step(network.client, lambda _, now: connection.abort("enough", now))
    network.step(network.client, lambda host, now: host.run(connection, now))
    network.run(2)
    assert [stp.is_over for stp in network.boxes[0]._stp.connections.values()] == [True]
    network.back.direction = network.forward.direction
    syn = Segment(ends.local, ends.remote, ends.local_port, ends.remote_port, 9, 0, int(Flags.SYN))
    network.send(network.client, emit_packet(syn))
    network.run(3)
    last = parse_packet(network.seen[CLIENT][-1])
    assert last.flags == Flags.SYN | Flags.ACK


def test_tcp_from_the_satellite_stays_whole(network: Any) -> None:
    """What the other box has left whole, for example while it drains."""
    box = network.boxes[1]
    syn = emit_packet(Segment(*ENDS, 5, 6, 7, 0, int(Flags.SYN), 9, 0, b""))
    box.receive(1, syn, 0.0)
    assert box.transmit(0.0) == [(0, syn)]
    assert not box.relays


@pytest.mark.parametrize("octets", [b"", b"something else", bytes(60)])
def test_packet_of_the_same_protocol_that_is_no_stp_passes(network: Any, octets: bytes) -> None:
    packet = emit_datagram(Datagram(*ENDS, octets, STP))
    network.boxes[1].receive(1, packet, 0.0)
    assert network.boxes[1].transmit(0.0) == [(0, packet)]


@pytest.mark.parametrize(("kind", "dropped"), [(3, 1), (13, 0)])
def test_only_errors_about_a_packet_of_stp_go_no_further(
    network: Any, user: Any, passing: list[bytes], kind: int, dropped: int
) -> None:
    """A request (13, for a timestamp) may have STP's number where an error has that of a packet."""
    network.call(user(OCTETS[:100]), DISCARD)
    network.run(3)
    box = network.boxes[0]
    message = bytes((kind, 1, 0, 0, 0, 0, 0, 0)) + passing[0][:28]
    header = bytearray(passing[0][:20])
    header[2:4], header[9] = (20 + len(message)).to_bytes(2, "big"), ICMP
    before = box.dropped
    box.receive(1, bytes(header) + message, network.simulation.now)
    assert box.dropped == before + dropped
    assert len(box.transmit(network.simulation.now)) == 1 - dropped


def test_draining_box_leaves_new_connections_whole_through_both(network: Any, user: Any) -> None:
    network.boxes[0].draining = True
    it = user(OCTETS[:1000])
    network.call(it, ECHO)
    network.run(5)
    assert bytes(it.got) == OCTETS[:1000]
    assert [box.counts.opened for box in network.boxes] == [0, 0]
