"""Recovery on each side, and changes of the path (PEP-LR section 8, PEP-PC section 9)."""

from __future__ import annotations

from itertools import product

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import SERVER
from bentpipe_conformance.protocols.pep.cases.steps import (
    LONG,
    SHORT,
    asking,
    both_ways,
    established,
    narrow,
    quiet,
    run_until_got,
    transfer,
)
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK, Tcp

HELD = 6000
"""Octets that are on their way behind which a stream ends."""

QUIET_S = 2 * 3600 + 180.0
ALIVE_S, ASKS_S = 2 * 3600 + 1380.0, 595.0
"""Seconds: longer than a connection may be quiet, and between two keep-alives."""


def _outage(peer: Peer, seconds: float) -> None:
    """Nothing passes the satellite link while both ends send."""
    through = _sending(peer, 3.0)
    peer.lane.alter_link(loss_probability=1.0)
    asking(peer, seconds)
    peer.lane.alter_link(loss_probability=0.0)
    asking(peer, 2.0)
    _all_got(peer, through, 140.0)


def _sending(peer: Peer, asked_for: float) -> Through:
    """A path that has been asked for some seconds, and a connection whose ends both send."""
    through = established(peer)
    asking(peer, asked_for)
    for end in (through.client, through.server):
        end.write(peer.octets(LONG))
    asking(peer, 1.0)
    return through


def _all_got(peer: Peer, through: Through, seconds: float) -> None:
    """What both ends have sent arrives, or so many seconds pass."""
    run_until_got(peer, through, 2000 + LONG, seconds)
    quiet(peer)


@case("PEP-PC-001", "PEP-PC-002", "PEP-PC-004")
def test_outage_of_5_seconds(peer: Peer) -> None:
    """The path fails for 5 s."""
    _outage(peer, 5.0)


@case("PEP-PC-001", "PEP-PC-002", "PEP-LR-001", "PEP-LR-003")
def test_outage_of_30_seconds(peer: Peer) -> None:
    """The path fails for 30 s."""
    _outage(peer, 30.0)


@case("PEP-PC-001", "PEP-PC-002")
def test_outage_of_95_seconds(peer: Peer) -> None:
    """The path fails for 95 s."""
    _outage(peer, 95.0)


@case("PEP-PC-001", "PEP-PC-002")
def test_outage_of_30_seconds_with_streams_that_end(peer: Peer) -> None:
    """The path fails for 30 s when one end or both have ended their streams."""
    _outage_at_the_end(peer, 30.0)


@case("PEP-PC-001", "PEP-PC-002")
def test_outage_of_95_seconds_with_streams_that_end(peer: Peer) -> None:
    """The path fails for 95 s when one end or both have ended their streams."""
    _outage_at_the_end(peer, 95.0)


def _outage_at_the_end(peer: Peer, seconds: float) -> None:
    """Connections of which client, server, or both have ended, with octets held or not."""
    asking(peer, 3.0)
    rows = list(product(((0,), (1,), (0, 1)), (0, HELD)))
    found = [established(peer) for _ in rows]
    for (ends, octets), through in zip(rows, found, strict=True):
        for end in (through.client, through.server) if octets else ():
            end.write(peer.octets(octets))
        for number in ends:
            (through.client, through.server)[number].close()
    # So that the FINs have reached the box, and not the other end.
    peer.wait(0.2 * peer.rtt)
    peer.lane.alter_link(loss_probability=1.0)
    asking(peer, seconds)
    peer.lane.alter_link(loss_probability=0.0)
    asking(peer, 2.0)
    both = [end for through in found for end in (through.client, through.server)]
    for end in both:
        if not end.closing:
            end.close()
    peer.run(lambda: all(end.is_over for end in both), 140.0)
    quiet(peer)


@case("PEP-PC-003")
def test_delay_grows_by_a_second(peer: Peer) -> None:
    """The path takes half a second longer each way."""
    through = _sending(peer, 2.0)
    peer.lane.alter_link(delay_s=peer.rtt / 2 + 0.5)
    asking(peer, 10.0)
    peer.lane.alter_link(delay_s=peer.rtt / 2)
    asking(peer, 4.0)
    _all_got(peer, through, 60.0)


@case("PEP-PC-004")
def test_rate_falls(peer: Peer) -> None:
    """The path carries 50 kb/s for 20 s."""
    through = established(peer)
    asking(peer, 2.0)
    for end in (through.client, through.server):
        end.write(peer.octets(2 * LONG))
    asking(peer, 1.0)
    peer.lane.alter_link(rate_bit_s=50_000)
    asking(peer, 20.0, 2.0)
    peer.lane.alter_link(rate_bit_s=1_300_000)
    asking(peer, 20.0)
    quiet(peer)


@case("PEP-PC-005", "PEP-PC-007")
def test_packets_become_too_big(peer: Peer) -> None:
    """A router before the server tells the box that packets of 1500 octets do not fit."""
    through = established(peer, SHORT)
    narrow(peer, through.server, SERVER, 1000)
    through.client.write(peer.octets(LONG))
    through.server.write(peer.octets(LONG))
    run_until_got(peer, through, SHORT + LONG, 140.0)
    quiet(peer)


@case("PEP-PC-008", lasts=QUIET_S)
def test_quiet_for_two_hours(peer: Peer) -> None:
    """Nothing is sent for 2 hours and 3 minutes, after octets of both ends, of one, or of none."""
    found = [established(peer), *(peer.connect() for _ in range(3))]
    transfer(peer, found[1].client, found[1].server, 1000)
    transfer(peer, found[2].server, found[2].client, 1000)
    peer.wait(QUIET_S)
    for through in found:
        both_ways(peer, through, 2000)
    quiet(peer)


@case("PEP-PC-008", lasts=ALIVE_S)
def test_quiet_but_for_keep_alives(peer: Peer) -> None:
    """For 2 hours and 23 minutes each end asks every ten minutes whether the other is there."""
    through = established(peer)
    until = peer.now() + ALIVE_S
    while peer.now() < until:
        peer.wait(ASKS_S)
        for end in (through.client, through.server):
            end.segment(ACK, len(end.written) - 1)
    both_ways(peer, through, 2000)
    quiet(peer)


@case("PEP-LR-002", "PEP-LR-005")
def test_established_segment_lost_before_the_server(peer: Peer) -> None:
    """Segments to the server are lost, while it sends to the client."""
    through = established(peer)
    lost: set[int] = set()

    def deliver(tcp: Tcp) -> bool:
        first = bool(tcp.payload) and tcp.seq not in lost and len(lost) < 30
        wanted = first and len(lost) % 3 == 0
        if first:
            lost.add(tcp.seq)
        return not wanted

    through.server.reached_by = deliver
    for end in (through.client, through.server):
        end.write(peer.octets(60_000))
    run_until_got(peer, through, 62_000, 100.0)
    quiet(peer)


@case("PEP-FI-004")
def test_handshake_beside_bulk(peer: Peer) -> None:
    """Another connection opens while one fills the link both ways."""
    through = peer.connect()
    for end in (through.client, through.server):
        end.write(peer.octets(6 * LONG))
    peer.wait(4.0)
    beside = peer.connect()
    transfer(peer, beside.client, beside.server, 1000)
    quiet(peer, 3.0)
