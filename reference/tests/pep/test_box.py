"""Boxes: octets, ends, failures and bounds from one end to the other."""

from __future__ import annotations

import random
from typing import Any

import pytest
from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.services import DISCARD, ECHO
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.subject import PAIR, SETTINGS
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet, parse_packet

OCTETS = random.Random(1).randbytes(120_000)
CLIENT, SERVER = "10.1.0.1", "10.2.0.1"


def test_long_stream_echoed_and_closed(network: Any, user: Any) -> None:
    it = user(OCTETS)
    connection = network.call(it, ECHO)
    network.run(30)
    assert bytes(it.got) == OCTETS
    assert connection.failure is None
    network.run(120)
    assert [len(box.relays) for box in network.boxes] == [0] * len(network.boxes)
    assert [box.next_deadline() for box in network.boxes] == [None] * len(network.boxes)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_delivers(network_of: Any, user: Any, name: str) -> None:
    network = network_of(SETTINGS[name].configure(PAIR))
    it = user(OCTETS[:60_000])
    network.call(it, ECHO)
    network.run(30)
    assert bytes(it.got) == OCTETS[:60_000]


def test_port_that_nobody_serves_is_refused_to_the_client(network: Any, user: Any) -> None:
    connection = network.call(user(), 47)
    network.run(2)
    assert connection.failure == "the peer refused the connection"


@pytest.mark.parametrize("network", ["pair", "single"], indirect=True)
def test_end_is_acknowledged_when_the_server_has_everything(network: Any, user: Any) -> None:
    """Section 6.1: the acknowledgment of the FIN comes from end to end, also through two boxes."""
    connection = network.call(user(OCTETS[:20_000]), DISCARD)
    while connection.sender.snd_una <= connection.sender.iss + 20_000:
        assert network.simulation.step()
    network.run(0.3)
    assert not connection.sender.fin_acknowledged or network.server.connections == {}
    network.run(5)
    assert connection.failure is None
    assert connection.sender.fin_acknowledged


def test_server_that_reads_nothing_stops_the_client_within_the_buffer(
    network: Any, user: Any
) -> None:
    connection = network.call(user(OCTETS * 8, closes=False), DISCARD)
    network.run(1.5)
    for service in network.server._running.values():
        service.run = lambda connection, now: None
    network.run(60)
    (there,) = network.server.connections.values()
    taken = connection.sender.snd_una - connection.sender.iss - 1
    delivered = there.receiver.rcv_nxt - there.receiver.irs - 1
    assert delivered < taken <= delivered + network.boxes[0].config.buffer
    assert connection.sender.snd_wnd < 1460


@pytest.mark.parametrize("who", ["client", "server"])
def test_reset_of_one_end_reaches_the_other(network: Any, user: Any, who: str) -> None:
    connection = network.call(user(closes=False), DISCARD)
    network.run(3)
    (there,) = network.server.connections.values()
    one, other = (connection, there) if who == "client" else (there, connection)
    host = network.client if who == "client" else network.server

    def abort(it: Any, now: float) -> None:
        one.abort("its user aborts", now)
        it.run(one, now)

    network.step(host, abort)
    network.run(1)
    assert other.failure == "the peer reset the connection"
    assert other.state is State.CLOSED


def test_server_that_vanishes_resets_the_client(network: Any, user: Any) -> None:
    connection = network.call(user(OCTETS[:5000], closes=False), ECHO)
    network.run(0.6)
    for way in (network.forward, network.back):
        way.direction = type(way.direction)(loss_probability=1.0)
    network.run(2000)
    # With STP the call goes on still: it is opened by two round trips.
    opened = "StpBox" not in type(network.boxes[0]).__name__
    assert connection.failure == f"the peer {'reset' if opened else 'refused'} the connection"
    assert not connection.peer_has_closed


def test_what_is_not_tcp_passes_untouched(network: Any) -> None:
    packet = bytes.fromhex("4500001c000100004011") + bytes(2) + bytes((10, 1, 0, 1, 10, 2, 0, 1))
    network.send(network.client, packet + bytes(8))
    network.run(1)
    assert network.seen[SERVER] == [packet + bytes(8)]


def test_segment_of_a_stranger_passes_untouched(network: Any) -> None:
    stranger = Segment(
        address_number(CLIENT), address_number(SERVER), 5, 6, 7, 8, int(Flags.ACK), 9, 0, b"data"
    )
    network.send(network.client, emit_packet(stranger))
    network.run(1)
    assert network.seen[SERVER] == [emit_packet(stranger)]


@pytest.mark.parametrize("kind", [19, 29])
def test_signed_connection_passes_untouched(network: Any, kind: int) -> None:
    ends = address_number(CLIENT), address_number(SERVER), 5, DISCARD
    syn = emit_packet(Segment(*ends, 7, 0, int(Flags.SYN), 9, unknown=((kind, bytes(16)),)))
    network.send(network.client, syn)
    network.run(1)
    assert network.seen[SERVER][0] == syn
    answer = parse_packet(network.seen[CLIENT][0])
    assert (answer.flags, answer.ack) == (Flags.SYN | Flags.ACK, 8)


def test_segments_in_fragments_are_delivered(network: Any, user: Any) -> None:
    network.fragments(network.client, 160)
    it = user(OCTETS[:10_000])
    network.call(it, ECHO)
    network.run(10)
    assert bytes(it.got) == OCTETS[:10_000]


def test_full_box_makes_room_for_a_caller_by_forgetting_one_that_is_half_open() -> None:
    config = PAIR.configured(paired=False, most_relays=3).config
    box = Box(config, PAIR.parts, 1)

    def syn(port: int) -> bytes:
        return emit_packet(Segment(1, 2, port, 80, 0, 0, int(Flags.SYN), 100, mss=1000))

    for port in range(1, 100):
        box.receive(0, syn(port), 0.0)
    assert len(box.relays) == 3
    assert {relay.syn.sport for relay in box.relays} == {97, 98, 99}


def test_full_box_makes_room_for_a_caller_by_forgetting_one_that_has_ended(
    network_of: Any, user: Any
) -> None:
    network = network_of(PAIR.configured(paired=False, most_relays=1))
    (box,) = network.boxes
    for number in (1, 2):  # within TIME-WAIT of the first
        it = user(b"once more")
        network.call(it, ECHO)
        network.run(10 * number)
        assert bytes(it.got) == b"once more"
        assert (box.counts.opened, box.counts.failed) == (number, 0)
        (relay,) = box.relays
        assert relay.only_waits
    box.stop(20.0)
    assert not box.relays
    assert (box.transmit(20.0), box.counts.failed) == ([], 0)


def test_any_octets_end_nothing(network: Any, user: Any) -> None:
    it = user(OCTETS[:50_000])
    network.call(it, ECHO)
    chance = random.Random(7)
    for _ in range(2000):
        octets = bytearray(emit_packet(Segment(1, 2, 3, 4, 5, 6, 16, 7, 8, b"x" * 20)))
        for _ in range(chance.randrange(6)):
            octets[chance.randrange(len(octets))] = chance.randrange(256)
        for box in network.boxes:
            box.receive(chance.randrange(2), bytes(octets[: chance.randrange(70)]), 0.0)
            box.transmit(0.0)
    network.run(30)
    assert bytes(it.got) == OCTETS[:50_000]


def test_message_about_the_next_number_of_a_quiet_connection_changes_nothing(
    network: Any, user: Any
) -> None:
    network.call(user(OCTETS[:3000], closes=False), DISCARD)
    network.run(5)
    (relay,) = network.boxes[0].relays
    end = relay.near
    assert not end.is_outstanding(end.sender.snd_nxt & 0xFFFFFFFF)
    assert not end.is_outstanding(end.sender.snd_nxt - 1 & 0xFFFFFFFF)
