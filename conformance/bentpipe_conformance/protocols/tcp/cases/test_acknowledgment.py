"""Acknowledgments that are old, premature, split, stretched, repeated or out of place."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.codec import MODULUS, build
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

SEGMENT = 1460
WINDOW = 8 * SEGMENT


def _limited(peer: Peer) -> Connection:
    """A connection that the offered window, not the congestion window, limits."""
    connection = peer.connect(window=WINDOW, syn_window=WINDOW)
    connection.receive(24)
    return connection


@case("SNR-ACK-001")
def test_window_limited_old_acknowledgments(peer: Peer) -> None:
    """Old acknowledgments that offer a large window change nothing.

    Four of them come in a row: counted as duplicates they would start fast retransmit, and their
    window would let the sender exceed the one in force.
    """
    connection = _limited(peer)
    old = connection.delivered - 5 * connection.segment
    for _ in range(4):
        connection.ack(old, sack=(), window=1 << 20)
    connection.window = WINDOW
    connection.collect(1.1 * peer.rtt)
    connection.ack()
    connection.receive(40)


@case("SNR-ACK-002", "SNR-ACK-003")
def test_window_limited_acknowledgment_of_unsent_data(peer: Peer) -> None:
    """An acknowledgment of data never sent is answered and otherwise ignored.

    It comes when the sender waits for the window, so that nothing else leaves at that time.
    """
    connection = _limited(peer)
    connection.collect(0.35 * peer.rtt)
    connection.ack(connection.delivered + 40 * connection.segment, sack=())
    connection.collect(0.7 * peer.rtt)
    connection.ack()
    connection.receive(48)


@connected("SNR-ACK-004", profiles=("rfc",))
def test_slow_start_split_acknowledgments(connection: Connection) -> None:
    """Eight acknowledgments per segment open the window no faster than one."""
    for _ in range(10):
        item = connection.expect()
        connection.hold(item)
        for piece in range(1, 9):
            connection.ack(item.start + (item.end - item.start) * piece // 8)
    connection.receive(40)


@connected("SNR-ACK-005", "SNR-ACK-006")
def test_slow_start_stretch_acknowledgments(connection: Connection) -> None:
    """An acknowledgment of every fourth, then every eighth segment moves the window on.

    First one per segment, until enough segments are in flight.
    """
    connection.grow(16)
    base = connection.delivered // connection.segment
    connection.receive(base + 32, ack_every=4)
    connection.receive(base + 96, ack_every=8)


@connected("SNR-ACK-007", sack=False)
def test_no_loss_duplicate_storm(connection: Connection) -> None:
    """Twenty copies of one acknowledgment have a bounded effect."""
    connection.grow(12)
    for _ in range(20):
        connection.ack()
    connection.receive(connection.delivered // connection.segment + 24)


@connected("SNR-ACK-007", needs=("sack_sender",))
def test_no_loss_duplicate_storm_without_reports(connection: Connection) -> None:
    """Twenty copies of one acknowledgment that reports nothing, on a connection with SACK."""
    connection.grow(12)
    for _ in range(20):
        connection.ack(sack=())
    connection.receive(connection.delivered // connection.segment + 24)


@case("SNR-ACK-008")
def test_window_limited_segment_beyond_receive_window(peer: Peer) -> None:
    """A segment far outside the receive window acknowledges nothing."""
    connection = _limited(peer)
    connection.collect(0.35 * peer.rtt)
    tcp = connection.compose(sack=())
    peer.send(build(replace(tcp, seq=(tcp.seq + (1 << 30)) % MODULUS)))
    connection.collect(0.7 * peer.rtt)
    connection.ack()
    connection.receive(48)
