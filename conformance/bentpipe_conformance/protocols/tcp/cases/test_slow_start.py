"""The first windows of a connection, growth after a loss, and the restart after idleness."""

from __future__ import annotations

from collections import deque

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import TIMEOUT_S, await_retransmissions
from bentpipe_conformance.protocols.tcp.connection import Connection

IDLE_ROUND_TRIPS = 25
"""Round trips, queueing included, that exceed any retransmission timeout several times over."""

IDLE_S = (25.0, 100.0)
"""Least time, where there is next to no delay, and longest time to be idle."""

ECHOED_S = 0.6
"""A round trip over which any window outgrows a restart window before the link fills."""

REQUEST_SEGMENTS = 12
"""More than a restart window; with their acknowledgments they fit in any profile's queue."""

SPACING_S = 0.5
"""Longer than the slowest link of the profiles takes for one segment."""

WIDE_WINDOW = 1 << 17
"""Octets: more than a window that is not scaled can tell; the GEO link and its queue hold them."""

TINY_MSS, MANY_TINY = 64, 200
"""Octets; and segments by which slow start has reached two windows of SMSS * SMSS octets."""


@connected(
    "SNR-SS-001", "SNR-SS-002", "SNR-SS-003", "SNR-SS-005", "SNR-CON-034", "SNR-CON-039",
    "SNR-CON-040",
)  # fmt: skip
def test_opened_bulk_data(connection: Connection) -> None:
    """Bulk data without loss: the initial window and slow start."""
    connection.receive(60)


@connected("SNR-SS-005", "SNR-SS-002", needs=("window_scale",), window=WIDE_WINDOW)
def test_opened_into_a_window_of_twice_64_kilobytes(connection: Connection) -> None:
    """Slow start goes on beyond 64 KB, as far as the receiver's window."""
    connection.receive(600)


@connected("SNR-SS-001", "SNR-SS-002", mss=536)
def test_opened_small_mss(connection: Connection) -> None:
    """The initial window counts segments where they are small."""
    connection.receive(40)


@connected("SNR-SS-001", "SNR-SS-002")
def test_opened_delayed_acknowledgments(connection: Connection) -> None:
    """Every second segment is acknowledged: growth by acknowledgments and by octets differ."""
    # One segment alone would wait for a delayed acknowledgment that never comes.
    connection.receive(3)
    connection.receive(60, ack_every=2)


@connected("SNR-SS-004", to="echo", rtt=ECHOED_S)
def test_idle_burst(connection: Connection) -> None:
    """A sender whose window has grown falls silent, then gets a burst to send.

    Over the echo service, which sends when, and as much as, the tester likes.
    """
    slowest = _echo(connection, 100)
    connection.wait(min(max(IDLE_S[0], IDLE_ROUND_TRIPS * slowest), IDLE_S[1]))
    connection.discard(0)
    _request(connection, REQUEST_SEGMENTS)
    connection.hold(connection.expect(what="the echo of the burst"))
    while (segment := connection.next(SPACING_S)) is not None:
        if segment.has_data:
            connection.hold(segment)
    connection.ack()
    _echo(connection, 0)


@connected("SNR-CA-001", "SNR-CA-004")
def test_recovered_further_growth(connection: Connection) -> None:
    """After one loss and its recovery the window grows linearly (with CUBIC, slowly)."""
    connection.receive(160, losing=[14])


@connected("SNR-CA-001", sack=False)
def test_recovered_further_growth_without_sack(connection: Connection) -> None:
    """The same without SACK, when the window was inflated during recovery."""
    connection.receive(110, losing=[14])


@connected("SNR-CA-004", mss=TINY_MSS)
def test_recovered_further_growth_with_tiny_segments(connection: Connection) -> None:
    """A window of more segments than a segment has octets: SMSS * SMSS / cwnd is less than one."""
    connection.receive(7 * MANY_TINY, losing=[MANY_TINY])


def _lose_window(
    connection: Connection, timeouts: int, then: int, *, flight: int = 16, ack_every: int = 1
) -> None:
    """Lose a window, and what timeouts send again but for the last; then receive on."""
    connection.grow(flight)
    outstanding, lost = connection.highest, connection.delivered
    connection.discard(0)
    connection.take(await_retransmissions(connection, lost, timeouts))
    connection.receive(outstanding // connection.segment + then, ack_every=ack_every)


@connected(
    "SNR-CA-002",
    "SNR-RTO-009",
    "SNR-RTO-012",
    "SNR-RTO-017",
    "SNR-CON-037",
    "SNR-ACK-009",
    sack=False,
)
def test_window_lost_growth_after_timeout(connection: Connection) -> None:
    """A whole window is lost: slow start up to the reduced share, then congestion avoidance."""
    _lose_window(connection, timeouts=1, then=45)


@connected("SNR-CA-002", "SNR-RTO-009", "SNR-RTO-012", "SNR-RTO-017", needs=("sack",))
def test_window_lost_growth_after_timeout_with_sack(connection: Connection) -> None:
    """The same with SACK, which has nothing to report: everything sent is missing."""
    _lose_window(connection, timeouts=1, then=45)


@connected("SNR-CA-002", "SNR-RTO-009", sack=False)
def test_windows_lost_growth_after_each_timeout(connection: Connection) -> None:
    """When the first window is repaired the next one is lost: half of that ends slow start."""
    _lose_window(connection, timeouts=1, then=2, flight=32)
    _lose_window(connection, timeouts=1, then=45, flight=12)


@connected("SNR-RTO-009", "SNR-RTO-012", sack=False)
def test_window_lost_then_every_second_acknowledged(connection: Connection) -> None:
    """While a window is repaired, each acknowledgment covers two segments."""
    _lose_window(connection, timeouts=1, then=4, flight=16, ack_every=2)


@connected("SNR-CA-003", "SNR-RTO-009", "SNR-RTO-012", profiles=("rfc",), sack=False)
def test_window_lost_two_timeouts(connection: Connection) -> None:
    """The retransmission is lost too: slow start still reaches half of the first flight."""
    _lose_window(connection, timeouts=2, then=4)


def _request(connection: Connection, segments: int) -> None:
    """Send data to be echoed, as far as the IUT's window and the link's queues allow."""
    size = connection.segment
    window = min(connection.iut_window, REQUEST_SEGMENTS * size)
    for _ in range(segments):
        if connection.next_offset + size > connection.acked + window:
            return
        connection.send_data(size)


def _echo(connection: Connection, segments: int) -> float:
    """Send data and take in its echo, acknowledging every segment, until all of it is back.

    Returns the longest time in seconds from a request to its echo.
    """
    target = connection.next_offset + segments * connection.segment
    asked: deque[tuple[int, float]] = deque()
    slowest = 0.0
    while True:
        _request(connection, (target - connection.next_offset) // connection.segment)
        asked.append((connection.next_offset, connection.peer.now()))
        while asked and asked[0][0] <= connection.delivered:
            slowest = max(slowest, connection.peer.now() - asked.popleft()[1])
        if connection.delivered >= connection.next_offset:
            return slowest
        segment = connection.next(TIMEOUT_S)
        if segment is None:
            raise NotReached(f"only {connection.delivered} octets were echoed")
        if segment.has_data:
            connection.take(segment)
