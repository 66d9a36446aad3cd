"""A pair of boxes with RWBP/1 between them, before a gateway that gives credit."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import emit_datagram
from bentpipe_reference.common.services import DISCARD, ECHO
from bentpipe_reference.common.sim import Alarm
from bentpipe_reference.pep.subject import OVER_RWBP
from bentpipe_reference.rwbp.credit import frame_datagram
from bentpipe_reference.rwbp.gateway import Gateway
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet, parse_packet

OCTETS = random.Random(2).randbytes(100_000)
CLIENT, SERVER = "10.1.0.1", "10.2.0.1"
BOX, GATEWAY = "10.3.0.1", "10.3.0.254"
PLACES = 20

SETUP = OVER_RWBP.configured(
    inner=replace(OVER_RWBP.config.inner, gateway=GATEWAY, link_address=BOX)
)


def write(connection: Connection, octets: bytes, host: TcpHost, now: float) -> None:
    connection.write(octets, now)
    host.run(connection, now)


class Uphill:
    """The gateway behind the first box of a network.

    Attributes:
        silent: whether its frames are lost.
        tcp: packets of TCP that have reached it.
    """

    def __init__(self, network: Any) -> None:
        self.network, self.silent, self.tcp = network, False, 0
        self.gateway: Gateway[bytes] = Gateway(2e6, PLACES)
        leads = network._leads[id(network.boxes[0])]
        self._on = leads[1]
        leads[1] = self._take
        # The far box sends to the near one without a gateway.
        network.boxes[1].uplink.credit = network.boxes[1].uplink.queue._credit = None
        self._alarm = Alarm(network.simulation, self._run)
        self._run()

    def _take(self, packet: bytes) -> None:
        self.tcp += 1
        assert self.gateway.take(packet, len(packet), self.network.simulation.now)
        self._alarm.set(self.gateway.next_deadline())

    def _run(self) -> None:
        now = self.network.simulation.now
        for packet in self.gateway.transmit(now):
            self._on(packet)
        frame = self.gateway.frame_due(now)
        if frame is not None and not self.silent:
            ends = address_number(GATEWAY), address_number(BOX)
            packet = emit_datagram(frame_datagram(frame, *ends))
            self.network._at_box(self.network.boxes[0], 1, packet)
        self._alarm.set(self.gateway.next_deadline())


@pytest.fixture
def uphill(network_of: Any) -> Uphill:
    return Uphill(network_of(SETUP))


def test_satellite_side_offers_rwbp_with_the_addresses_of_the_ends(
    network_of: Any, user: Any
) -> None:
    network = network_of(OVER_RWBP)
    passing: list[bytes] = []
    lead = network._leads[id(network.boxes[0])]
    on = lead[1]
    lead[1] = lambda packet: (passing.append(packet), on(packet))
    network.call(user(OCTETS[:100]), DISCARD)
    network.run(3)
    syn = parse_packet(passing[0])
    assert (syn.source, syn.destination) == (address_number(CLIENT), address_number(SERVER))
    assert (syn.flags, syn.dport) == (Flags.SYN, DISCARD)
    assert syn.unknown[-1][1].startswith(b"RWBP")
    assert all(relay.far.agreed for box in network.boxes[:1] for relay in box.relays)


def test_streams_share_the_gateway_and_overflow_nothing(uphill: Uphill, user: Any) -> None:
    """RWBP-FC-006, RWBP-FC-002: errors on the link, and the buffers of five connections."""
    network = uphill.network
    network.forward.direction = replace(network.forward.direction, ber=1e-6)
    users = [user(OCTETS) for _ in range(5)]
    calls = [network.call(each, ECHO) for each in users]
    network.run(4.0)
    shares = [each.sender.snd_una - each.sender.iss for each in calls]
    assert min(shares) > 0.9 * max(shares)
    network.run(30.0)
    assert [bytes(each.got) for each in users] == [OCTETS] * 5
    assert uphill.gateway.dropped == 0
    assert uphill.gateway.longest <= PLACES


def test_gateway_that_falls_silent_stops_the_box_and_loses_nothing(
    uphill: Uphill, user: Any
) -> None:
    """RWBP-LC-005: no frame for three seconds."""
    it = user(OCTETS)
    uphill.network.call(it, ECHO)
    uphill.network.run(1.5)
    uphill.silent = True
    uphill.network.run(1.1)
    before = uphill.tcp
    uphill.network.run(1.9)
    assert uphill.tcp == before > 0
    uphill.silent = False
    uphill.network.run(30.0)
    assert bytes(it.got) == OCTETS
    assert uphill.gateway.dropped == 0


def test_timer_that_a_turn_has_started_expires_although_nothing_else_happens(
    uphill: Uphill, user: Any
) -> None:
    """A turn may come by credit alone, long after the last event of its connection."""
    network = uphill.network
    calls = [network.call(user(closes=False), DISCARD) for _ in range(2)]
    network.run(2.0)
    uphill.silent = True
    network.run(1.1)
    # The first fills the IP queue, so that the second waits for its turn.
    for connection, octets in zip(calls, (OCTETS, OCTETS[:3000]), strict=True):
        network.step(network.client, partial(write, connection, octets))
        network.run(1.0)
    network.forward.direction = replace(network.forward.direction, loss_probability=1.0)
    uphill.silent = False
    network.run(5.0)
    senders = [relay.far.sender for relay in network.boxes[0].relays]
    assert [sender.counters.timeouts >= 1 for sender in senders] == [True, True]


def stranger() -> bytes:
    ends = address_number(CLIENT), address_number(SERVER), 5, 6
    return emit_packet(Segment(*ends, 7, 8, int(Flags.ACK), 9, 0, b"data"))


def test_packet_of_a_stranger_needs_credit_and_counts(uphill: Uphill) -> None:
    """RWBP-LC-007, for what the box does not split."""
    box = uphill.network.boxes[0]
    box.receive(0, stranger(), 0.0)
    assert len(box.transmit(0.0)) == 1
    assert box.uplink.credit.passed == 1
    box.receive(0, stranger(), 5.0)  # the last frame is older than a second
    assert box.transmit(5.0) == []
    assert box.dropped == 1


def test_datagram_to_the_box_that_is_no_frame_goes_no_further(uphill: Uphill) -> None:
    """RWBP-LC-001; one to somebody else passes."""
    box = uphill.network.boxes[0]
    frame = uphill.gateway.frame()
    for source, to, passes in ((CLIENT, BOX, 0), (GATEWAY, CLIENT, 1)):
        datagram = frame_datagram(frame, address_number(source), address_number(to))
        box.receive(1, emit_datagram(datagram), 0.0)
        assert len(box.transmit(0.0)) == passes
    assert box.dropped == 1
