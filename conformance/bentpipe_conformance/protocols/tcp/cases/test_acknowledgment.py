"""Acknowledgments that are old, premature, split, stretched, repeated or out of place."""

from __future__ import annotations

from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import DISTANT_S, PAUSE_S, take_round
from bentpipe_conformance.protocols.tcp.codec import ACK, PSH
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection

WINDOW = 8 * SEGMENT
"""So much that it, and not the congestion window, limits the sender."""


@connected("SNR-ACK-001", window=WINDOW, syn_window=WINDOW)
def test_window_limited_old_acknowledgments(connection: Connection) -> None:
    """Old acknowledgments that offer a large window change nothing.

    Four of them come in a row: counted as duplicates they would start fast retransmit, and their
    window would let the sender exceed the one in force.
    """
    connection.receive(24)
    old = connection.delivered - 5 * connection.segment
    for _ in range(4):
        connection.window = 1 << 20
        connection.send_odd(ack=old, sack=())
    connection.window = WINDOW
    take_round(connection, 1.1)
    connection.receive(40)


@connected("SNR-ACK-002", "SNR-ACK-003", rtt=DISTANT_S, window=WINDOW, syn_window=WINDOW)
def test_window_limited_acknowledgment_of_unsent_data(connection: Connection) -> None:
    """An acknowledgment of data never sent is answered and otherwise ignored.

    It comes when the sender waits for the window, so that nothing else leaves at that time.
    """
    connection.receive(24)
    connection.collect(0.35 * connection.rtt)
    connection.send_odd(ack=connection.delivered + 40 * connection.segment, sack=())
    take_round(connection, 0.7)
    connection.receive(48)


@connected("SNR-ACK-004", profiles=("rfc",))
def test_slow_start_split_acknowledgments(connection: Connection) -> None:
    """Eight acknowledgments per segment open the window no faster than one."""
    for _ in range(10):
        item = connection.expect()
        connection.hold(item)
        for piece in range(1, 9):
            connection.send_odd(ack=item.start + (item.end - item.start) * piece // 8)
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
    connection.receive_more(24)


@connected("SNR-ACK-007", needs=("sack_sender",))
def test_no_loss_duplicate_storm_without_reports(connection: Connection) -> None:
    """Twenty copies of one acknowledgment that reports nothing, on a connection with SACK."""
    connection.grow(12)
    for _ in range(20):
        connection.ack(sack=())
    connection.receive_more(24)


@connected("SNR-ACK-008", window=WINDOW, syn_window=WINDOW)
def test_window_limited_segment_beyond_receive_window(connection: Connection) -> None:
    """A segment far outside the receive window acknowledges nothing."""
    connection.receive(24)
    connection.collect(0.35 * connection.rtt)
    connection.send_odd(at=1 << 30, sack=())
    take_round(connection, 0.7)
    connection.receive(48)


@connected("SNR-SEG-004", "SNR-ACK-003", to="discard")
def test_data_with_an_acknowledgment_of_unsent_data(connection: Connection) -> None:
    """Data comes in segments that acknowledge an octet too many, and far too many."""
    connection.send_data(100)
    connection.wait(PAUSE_S)
    for beyond in (1, 1 << 20):
        connection.send(pattern(100, 100), flags=ACK | PSH, at=100, ack=beyond)
        connection.wait(PAUSE_S)
        connection.send_data(100, at=0)
        connection.wait(PAUSE_S)
    connection.send_data(100)
    connection.wait(PAUSE_S)
