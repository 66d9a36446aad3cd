"""The congestion window where one rule follows another: slow start, avoidance, idleness, D-SACK."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.scripts import Row, connected, each
from bentpipe_conformance.protocols.tcp.cases.steps import (
    PLAIN,
    SACK,
    await_again,
    await_retransmissions,
)
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

SEGMENTS = 24
"""Outstanding when the losses happen."""

ROUNDS = 16
"""Round trips after which slow start by one acknowledgment each has reached half a flight."""

INITIAL_S = 3.0
"""The longest timeout before a measurement (RFC 6298 rule 5.7)."""

IDLE_S = 30.0
"""Longer than any retransmission timeout after one back-off."""


def _acknowledge_everything(connection: Connection) -> None:
    connection.collect(0)
    connection.reception.delivered = connection.highest
    connection.ack()


def _rarely_until(connection: Connection, flight: int) -> None:
    """Acknowledge once per round trip until so many segments are outstanding."""
    for _ in range(ROUNDS):
        connection.await_round()
        if connection.highest - connection.delivered >= flight * connection.segment:
            return
        _acknowledge_everything(connection)


@connected("SNR-CA-002", needs=PLAIN, sack=False)
def test_window_lost_then_rare_acknowledgments(connection: Connection) -> None:
    """Slow start after a timeout by one acknowledgment per round trip, then one per segment.

    What slow start has acknowledged does not count for congestion avoidance, which follows.
    """
    connection.grow(20)
    flight = (connection.highest - connection.delivered) // connection.segment
    lost = connection.delivered
    connection.discard(0)
    await_retransmissions(connection, lost, 1)
    _acknowledge_everything(connection)
    _rarely_until(connection, flight // 2)
    connection.receive_more(3 * flight)


@connected("SNR-CA-001", needs=PLAIN, sack=False)
def test_recovered_rare_acknowledgments(connection: Connection) -> None:
    """After a recovery, acknowledgments of half a window each, then one per segment."""
    connection.receive(60, losing=[24])
    for _ in range(6):
        connection.await_round()
        _acknowledge_everything(connection)
    connection.receive_more(40)


def _burst(connection: Connection, segments: int) -> None:
    """Have segments echoed, all at once, and acknowledge each when none follows any more."""
    size = connection.segment
    for _ in range(min(segments, connection.iut_window // size)):
        connection.send_data(size)
    while connection.delivered < connection.next_offset:
        connection.await_round()
        waiting = [item for item in connection.inbox if item.has_data]
        connection.inbox.clear()
        for item in waiting:
            connection.take(item)


@case("SNR-SS-004", needs=PLAIN)
def test_idle_with_a_small_window(peer: Peer) -> None:
    """A timeout has made the window small; after an idle time a burst is to be sent.

    The restart window is no larger than the window was. With and without SACK.
    """
    for sack in (False, True):
        connection = peer.connect("echo", sack=sack)
        _burst(connection, 8)
        size = connection.segment
        lost = connection.delivered
        for _ in range(6):
            connection.send_data(size)
        await_again(connection, lost, "the echo")
        await_retransmissions(connection, lost, 1)
        connection.discard(0)
        connection.reception.delivered = connection.highest
        connection.ack()
        connection.wait(IDLE_S)
        _burst(connection, 10)
        connection.abort()


@case("SNR-SS-004", needs=PLAIN)
def test_idle_bursts_again_and_again(peer: Peer) -> None:
    """A sender falls silent several times, for shorter and shorter times, each followed by a burst.

    All of them are longer than its timeout can be.
    """
    connection = peer.connect("echo")
    began = peer.now()
    _burst(connection, 8)
    longest = max(INITIAL_S, 5 * (peer.now() - began))
    _burst(connection, 24)
    for share in (5.0, 2.5, 1.5, 1.2):
        connection.wait(share * longest)
        _burst(connection, 14)
    connection.abort()


@case("SNR-RTO-009", needs=PLAIN)
def test_lone_segment_lost_then_burst(peer: Peer) -> None:
    """A lone segment is lost when the window is large; after its timeout a burst is to be sent."""
    connection = peer.connect("echo", sack=False)
    _burst(connection, 10)
    lost = connection.delivered
    connection.send_data(connection.segment)
    await_again(connection, lost, "the echo")
    connection.take(await_retransmissions(connection, lost, 1))
    _burst(connection, 10)
    connection.abort()


@dataclass(frozen=True, slots=True)
class Repeated(Row):
    """A recovery of several losses, in or after which copies of retransmissions are reported.

    Attributes:
        reported: how many of the retransmissions are reported received twice.
        during: whether that comes within the recovery, or after it.
    """

    reported: int = 1
    during: bool = False


LOST = (2, 6, 9)

REDUCED = ("SNR-FR-009", "SNR-CA-001")

ROWS = (
    Repeated("one-copy-reported-after-recovery",
             "Of three retransmissions one is reported received twice, after the recovery.",
             REDUCED, (*SACK, *PLAIN), ("rfc",), 1, during=False),
    Repeated("two-copies-reported-after-recovery",
             "Of three retransmissions two are reported received twice, after the recovery.",
             REDUCED, (*SACK, *PLAIN), ("rfc",), 2, during=False),
    Repeated("one-copy-reported-in-recovery",
             "Of three retransmissions one is reported received twice, before the recovery ends.",
             REDUCED, (*SACK, *PLAIN), ("rfc",), 1, during=True),
)  # fmt: skip
"""RFC 3708 section 2 takes a recovery for needless when all that it sent was received twice."""


def _report_copies(peer: Peer, row: Repeated) -> None:
    connection = peer.connect()
    connection.grow(SEGMENTS)
    base = connection.delivered // connection.segment
    size = connection.segment
    copies = [(base + at) * size for at in LOST[: row.reported]]
    last = (base + LOST[0 if row.during else -1]) * size
    losing = [base + at for at in LOST]
    connection.serve(lambda: connection.delivered > last, losing=losing)
    for start in copies:
        above = connection.sack_blocks()
        connection.send_odd(sack=[(start, start + size), *above][:4])
    connection.receive_more(90)


each(globals(), ROWS, _report_copies)


@case("SNR-CA-002", "SNR-RTO-009", needs=PLAIN, profiles=("rfc",))
def test_windows_lost_again_while_repaired(peer: Peer) -> None:
    """While a timeout is repaired another segment times out: half of what is outstanding counts.

    An acknowledgment has covered two thirds of the flight in between. Without SACK and with it, and
    once with that segment lost twice.
    """
    for sack, timeouts in ((False, 1), (True, 1), (False, 2)):
        connection = peer.connect(sack=sack)
        connection.grow(SEGMENTS)
        lost, outstanding = connection.delivered, connection.highest
        connection.discard(0)
        connection.take(await_retransmissions(connection, lost, 1))
        reached = lost + (outstanding - lost) * 2 // 3 // connection.segment * connection.segment
        connection.await_round()
        connection.collect(0)
        connection.reception.take(lost, reached)
        connection.ack()
        await_again(connection, reached, "the next segment")
        connection.take(await_retransmissions(connection, reached, timeouts, seen=True))
        connection.receive_more(SEGMENTS + 30)
        connection.abort()
