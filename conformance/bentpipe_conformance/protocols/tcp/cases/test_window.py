"""The receiver's window: small, closed, probed, shrunken, and opened a little at a time."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import (
    PAUSE_S,
    TIMEOUT_S,
    await_again,
    show_silence,
    take_round,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

SMALL_WINDOW = 64 * 128
"""Octets; a multiple of what a shift of 7 can express, not of a segment."""

CLOSING_WINDOW = 4 * SEGMENT
"""Octets; full segments fill it, so that it can be closed without moving its edge left."""

SMALL_OPENING = 200
"""Octets: more than none, and less than a segment and half of any window offered."""

TIGHT: dict[str, Any] = {"window_scale": None, "window": 3000, "syn_window": 3000}
"""An offer of two segments' worth of room."""

CLOSED_S = 1200.0
"""Longer than fifteen probes take, after as many of which stacks give up a silent peer."""

PATIENCE_S = 65.0
"""Longer than the probe interval may grow at first."""

CLOSED_PATIENCE_S = 75.0
"""Longer than a sender may be silent towards a closed window."""


@connected("SNR-WIN-001", window=SMALL_WINDOW, syn_window=SMALL_WINDOW)
def test_established_small_window(connection: Connection) -> None:
    """The window, scaled, is smaller than the congestion window would be."""
    connection.receive(24)


@connected("SNR-WIN-001", window_scale=None, window=SMALL_WINDOW, syn_window=SMALL_WINDOW)
def test_established_small_window_unscaled(connection: Connection) -> None:
    """The same without the Window Scale option."""
    connection.receive(24)


@connected(
    "SNR-WIN-002", "SNR-WIN-001", needs=("window_scale",),
    window_scale=10, window=20 << 10, syn_window=20 << 10,
)  # fmt: skip
def test_established_window_field_of_a_few(connection: Connection) -> None:
    """With a shift of 10 the window field reads 20: too few octets for a segment, unless scaled."""
    connection.receive(24)


@connected("SNR-WIN-001", window_scale=None, window=SMALL_WINDOW, syn_window=SMALL_WINDOW)
def test_old_segments_with_other_windows(connection: Connection) -> None:
    """Segments older than the latest offer a large window, and repeat the edge of a small one.

    They are acceptable since they end with new data; the second acknowledges new data as well.
    """
    connection.receive(12)
    connection.send_data(100)
    connection.collect(0.4 * connection.rtt)
    connection.ack()
    connection.wait(0.3 * connection.rtt)
    connection.window = 0xFFFF
    connection.send_data(100, at=50)
    connection.next_offset = 150
    connection.window = SMALL_WINDOW
    connection.ack()
    edge = connection.delivered + SMALL_WINDOW
    connection.collect(0.6 * connection.rtt)
    connection.window = edge - connection.delivered
    connection.send_data(100, at=100)
    connection.next_offset = 200
    take_round(connection)
    connection.window = SMALL_WINDOW
    connection.receive_more(12)


def _close_window(
    peer: Peer, *, first: int | None = None, last: int = 0, sack: bool = True
) -> Connection:
    """A connection whose window was filled and then closed, everything being acknowledged.

    ``first`` is what its SYN and the acknowledgment after it offer, ``last`` what is left.
    """
    size = CLOSING_WINDOW
    first = size if first is None else first
    connection = peer.connect(
        mss=SEGMENT, window_scale=0, window=first, syn_window=first, sack=sack
    )
    if first < size:
        connection.ack(window=size)
    connection.grow(4)
    connection.collect(0)
    connection.ack(window=last)
    return connection


def _reopen(connection: Connection) -> None:
    connection.ack(window=CLOSING_WINDOW)
    connection.receive(connection.delivered // SEGMENT + 6)


@case("SNR-WIN-003", "SNR-WIN-004", "SNR-WIN-005", "SNR-WIN-007")
def test_window_closed_then_opened(peer: Peer) -> None:
    """The window closes, four probes are answered, then it opens; and all of this once more."""
    connection = _close_window(peer)
    for again in (False, True):
        if again:
            take_round(connection)
            connection.collect(1.5 * connection.rtt)
            connection.ack(window=0)
        for _ in range(4):
            if connection.next(PATIENCE_S) is None:
                break
            connection.ack(window=0)
        _reopen(connection)


@case("SNR-WIN-013")
def test_window_stays_small(peer: Peer) -> None:
    """The window, full, opens by less than a segment and stays so for more than a minute."""
    connection = _close_window(peer, last=SMALL_OPENING)
    for segment in connection.arrivals(PATIENCE_S):
        if segment.end > connection.delivered:
            break  # not what a probe of the tail repeats
    _reopen(connection)


@case("SNR-WIN-003", "SNR-WIN-004")
def test_window_closed_from_the_start(peer: Peer) -> None:
    """The window is closed before the first data leaves; two probes are answered, then it opens."""
    connection = peer.connect(mss=SEGMENT, window_scale=0, window=0, syn_window=0)
    for _ in range(2):
        if connection.next(PATIENCE_S) is None:
            break
        connection.ack(window=0)
    _reopen(connection)


@case("SNR-WIN-007")
def test_window_closed_then_repetitions(peer: Peer) -> None:
    """With nothing outstanding the acknowledgment that closed the window comes again and again.

    Such repetitions are no duplicates, so that the window opens to an undiminished sender.
    """
    connection = _close_window(peer, sack=False)
    for _ in range(5):
        connection.ack(window=0)
    connection.ack(window=16 * SEGMENT)
    connection.receive_more(30)


@case("SNR-WIN-007", "SNR-CON-034")
def test_window_opened_by_segments_with_data(peer: Peer) -> None:
    """All that tells of windows is on segments that carry data: it closes, it opens, it closes.

    On one connection nothing else is told, on the other a bare acknowledgment came between.
    """
    for bare in (False, True):
        connection = _close_window(peer)
        for window in (16 * SEGMENT, 4 * SEGMENT):
            for offer in (0, window):
                connection.next(PATIENCE_S)
                connection.window = offer
                connection.send_data(20)
                if bare and not offer:
                    connection.ack()
            connection.wait(connection.rtt + PAUSE_S)
            connection.collect(0)
            connection.window = 0
            connection.send_data(20)
            connection.wait(connection.rtt)
        connection.abort()


@case("SNR-WIN-007")
def test_window_reopened_and_a_loss(peer: Peer) -> None:
    """What first follows a closure is lost; without SACK, duplicates tell."""
    connection = _close_window(peer, sack=False)
    for _ in range(2):
        if connection.next(PATIENCE_S) is None:
            break
        connection.ack(window=0)
    first = connection.delivered // SEGMENT
    connection.ack(window=16 * SEGMENT)
    connection.receive(first + 30, losing=[first])


@case("SNR-WIN-001")
def test_window_closed_with_an_octet_left(peer: Peer) -> None:
    """The window closes with one octet left to send, which a probe delivers; then nothing waits."""
    connection = peer.connect("echo", window_scale=None, window=1000, syn_window=1000)
    connection.send(pattern(0, 1001), flags=ACK | PSH)
    while connection.delivered < 1000:
        connection.hold(connection.expect(what="the echo"))
        connection.ack(window=1000 - connection.delivered)
    while connection.delivered < 1001:
        segment = connection.next(PATIENCE_S)
        if segment is None:
            raise NotReached("the last octet was not sent")
        connection.hold(segment)
        connection.ack(window=0)
    connection.wait(PATIENCE_S)
    connection.ack(window=1000)
    connection.wait(PAUSE_S)


@case("SNR-WIN-006", "SNR-WIN-007")
def test_window_closed_for_minutes(peer: Peer) -> None:
    """The window stays closed for many minutes, every probe being answered."""
    connection = _close_window(peer)
    began = peer.now()
    while peer.now() - began < CLOSED_S:
        if connection.next(250.0) is None:
            raise show_silence(connection, "the probes ended")
        connection.ack(window=0)
    _reopen(connection)


@connected("SNR-WIN-008", "SNR-WIN-012", window_scale=2, window=1 << 17)
def test_scaled_window_shrinks_below_what_was_sent(connection: Connection) -> None:
    """The right edge moves left, below what is in flight; data beyond it is lost.

    The receiver then makes do with two segments at a time, and opens the window at the end.
    """
    _shrink(connection, 1 << 17)


@connected("SNR-WIN-008", "SNR-WIN-009", window_scale=None, window=60000)
def test_window_shrinks_below_what_was_sent(connection: Connection) -> None:
    """The same without window scaling."""
    _shrink(connection, 60000)


@connected("SNR-WIN-008", "SNR-WIN-009", window_scale=None, window=60000)
def test_window_shrinks_in_segments_with_data(connection: Connection) -> None:
    """The same, the narrow window being told by segments that carry data."""
    _shrink(connection, 60000, octets=20)


@connected("SNR-WIN-008", "SNR-WIN-009", window_scale=None, window=60000)
def test_window_shrinks_amid_a_recovery(connection: Connection) -> None:
    """Every duplicate tells a narrow window, so that none lets new data out."""
    connection.grow(16)
    sent = connection.highest
    _, *rest = connection.discard(0)
    connection.window = 2 * connection.segment
    for item in rest:
        connection.hold(item)
        connection.ack()
        connection.collect(0.02)
    connection.serve(lambda: connection.delivered >= sent)
    connection.ack(window=60000)
    connection.receive(sent // connection.segment + 10)


def _shrink(connection: Connection, wide: int, octets: int = 0) -> None:
    connection.grow(8)
    sent = connection.highest
    narrow = 2 * connection.segment
    for _ in range(2):
        for _ in range(2):
            connection.hold(connection.expect())
        connection.window = narrow
        connection.send(pattern(connection.next_offset, octets), flags=ACK)
    connection.discard(0)
    connection.serve(lambda: connection.delivered >= sent)
    connection.ack(window=wide)
    connection.receive(sent // connection.segment + 10)


@case("SNR-WIN-010")
def test_window_opens_a_little_at_a_time(peer: Peer) -> None:
    """A closed window opens by less than a segment, several times before any timer expires.

    Once after a connection has begun with an offer as small.
    """
    for first in (CLOSING_WINDOW, 150):
        connection = _close_window(peer, first=first)
        edge = connection.delivered
        for octets in (100, 250, 400):
            connection.ack(window=max(0, edge + octets - connection.delivered))
            connection.collect(0.2)
        connection.ack(window=CLOSING_WINDOW)
        connection.receive(edge // SEGMENT + 8)
        connection.abort()


@connected("SNR-CON-034", to="echo", iss=MODULUS - 2500, **TIGHT)
def test_windows_across_a_wrap(connection: Connection) -> None:
    """Windows are heeded before and after the tester's sequence numbers wrap.

    The window has room for half of what waits, and opens by what is acknowledged.
    """
    _echo_on(connection)


@connected("SNR-CON-034", to="echo", iss=MODULUS - 1, **TIGHT)
def test_windows_above_the_wrap(connection: Connection) -> None:
    """Only the SYN lies below the wrap of the tester's sequence numbers."""
    _echo_on(connection)


def _echo_on(connection: Connection) -> None:
    for _ in range(3):
        for _ in range(4):
            connection.send_data(1000)
        for _ in range(4):
            connection.collect(connection.rtt + 1.0)
            connection.ack()
    connection.wait(6.0)
    connection.ack()


def _take_all(connection: Connection, octets: int) -> None:
    connection.serve(lambda: connection.delivered >= octets, within=TIMEOUT_S)


@case("SNR-WIN-001", "SNR-CON-035")
def test_window_full_when_the_stream_ends(peer: Peer) -> None:
    """The echo fills the window exactly, or all but an octet of it, when its stream ends.

    The FIN has no room until the window opens. Once the window is filled in two halves, the second
    of which leaves when the stream has ended.
    """
    for room, window in ((0, 1000), (1, 1001), (0, 500)):
        connection = peer.connect("echo", window_scale=None, window=window, syn_window=window)
        connection.send(pattern(0, 1000), flags=ACK | PSH | FIN)
        connection.collect(peer.rtt + 0.8)
        while connection.delivered < min(connection.highest, 1000):
            full = connection.highest >= 1000
            connection.reception.renege(min(connection.highest, 1000))
            connection.ack(window=60000 if full else 1000 + room - connection.delivered)
            connection.collect(peer.rtt + 0.8)
        connection.reception.renege(connection.highest)
        connection.ack()
        _take_all(connection, 1001)
        connection.wait(0.8)


@case("SNR-RTO-011")
def test_window_closed_over_what_is_lost(peer: Peer) -> None:
    """The window closes while all that the sender has left is outstanding, and lost.

    It is repeated all the same. On one connection what closes the window acknowledges a part, on
    another it comes with data of the tester, on a third after a timeout; on the last some octets of
    room are left.
    """
    for part, data, late, room in (
        (0, 0, False, 0), (60, 0, False, 0), (0, 20, False, 0), (0, 0, True, 0), (0, 0, False, 50),
    ):  # fmt: skip
        connection = peer.connect("echo", window_scale=None, window=CLOSING_WINDOW)
        connection.send_data(100)
        lost = connection.expect(what="the echo")
        if late:
            await_again(connection, lost.start, "a timeout", TIMEOUT_S)
        connection.reception.take(lost.start, lost.start + part)
        connection.window = room
        connection.send(pattern(connection.next_offset, data), flags=ACK)
        if connection.next(CLOSED_PATIENCE_S) is None:
            raise show_silence(connection, "nothing was retransmitted into the closed window")
        connection.ack(window=CLOSING_WINDOW)
        _take_all(connection, connection.next_offset)
        connection.abort()


@case("SNR-RTO-011")
def test_window_reopened_and_the_last_segment_lost(peer: Peer) -> None:
    """A closed window opens with less than a segment left to send, which is then lost.

    Its timer runs although the persist timer did. On one connection probes come first, on another
    the window opens before any, on the last it had an octet of room.
    """
    for probes, room in ((2, 0), (0, 0), (1, 1)):
        connection = peer.connect("echo", window_scale=None, window=1000, syn_window=1000)
        connection.send(pattern(0, 1300), flags=ACK | PSH)
        while connection.delivered < 1000:
            connection.hold(connection.expect(what="the echo"))
            connection.ack(window=1000 - connection.delivered + room)
        for _ in range(probes):
            if (probe := connection.next(PATIENCE_S)) is not None:
                connection.hold(probe)
            connection.ack(window=0)
        connection.inbox.clear()
        connection.ack(window=CLOSING_WINDOW)
        lost = connection.expect(what="the rest")
        if connection.next(TIMEOUT_S) is None:
            raise show_silence(connection, "nothing was retransmitted after the window had opened")
        connection.reception.take(lost.start, lost.end)
        connection.ack()
        _take_all(connection, 1300)
        connection.abort()


@case("SNR-WIN-003", "SNR-WIN-004")
def test_window_closed_amid_arrivals(peer: Peer) -> None:
    """The window stays closed for more than a minute while things keep arriving, then in silence.

    On one connection the acknowledgment that closed it comes again and again, on another data of
    the tester: neither ends the probes, nor should it put them off.
    """
    for data in (0, 20):
        connection = _close_window(peer)
        began = peer.now()
        while peer.now() - began < PATIENCE_S:
            connection.wait(0.45)
            connection.send(pattern(connection.next_offset, data), flags=ACK)
        connection.wait(connection.rtt)
        connection.inbox.clear()
        connection.next(CLOSED_PATIENCE_S)
        _reopen(connection)
        connection.abort()


@case("SNR-ACK-001")
def test_window_closed_then_old_acknowledgments_offer_room(peer: Peer) -> None:
    """The window stays closed; between its probes acknowledgments of long ago offer room.

    Each probe is answered first, so that the old acknowledgment is the last thing that arrives.
    """
    connection = _close_window(peer)
    for _ in range(4):
        if connection.next(PATIENCE_S) is None:
            break
        connection.ack(window=0)
        connection.wait(0.1)
        connection.ack(connection.delivered - 2 * SEGMENT, window=0xFFFF)
    _reopen(connection)


@connected("SNR-WIN-001", window_scale=None, window=SMALL_WINDOW, syn_window=SMALL_WINDOW)
def test_new_segments_with_old_acknowledgments(connection: Connection) -> None:
    """Segments with new data repeat an acknowledgment of long ago, and offer a large window."""
    connection.receive(12)
    connection.collect(0.5 * connection.rtt)
    connection.window = 0xFFFF
    for _ in range(3):
        old = max(0, connection.delivered - 4 * connection.segment)
        connection.send(pattern(connection.next_offset, 100), ack=old, flags=ACK)
        connection.wait(0.1)
    connection.window = SMALL_WINDOW
    connection.wait(0.6 * connection.rtt)
    connection.collect(0)
    connection.receive_more(12)
