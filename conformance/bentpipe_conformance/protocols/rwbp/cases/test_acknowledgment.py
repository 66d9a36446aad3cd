"""Acknowledgments: the interval, the tail, holes and their blocks."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.rwbp.cases.steps import PAUSE_S, await_silence, receive_octets
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH

SMALL = 100
"""Octets of a segment that takes little of the window and of the link's time."""

INTERVALS = (1, 2, 3, 8, 20, 64)


def send_segments(connection: Connection, indices: Iterable[int], size: int = SMALL) -> None:
    """Send segments by index, back to back."""
    for index in indices:
        connection.send_data(size, at=index * size)
        connection.next_offset = max(connection.next_offset, (index + 1) * size)


@case("RWBP-AK-001", "RWBP-AK-002", "RWBP-AK-004")
def test_intervals(peer: Peer) -> None:
    """Two and a half intervals of segments in order, for several intervals."""
    for interval in INTERVALS:
        connection = peer.connect("discard", interval=interval)
        send_segments(connection, range(5 * interval // 2))
        await_silence(connection)
        connection.abort()


@case("RWBP-AK-001", "RWBP-AK-004")
def test_long_and_short_segments(peer: Peer) -> None:
    """Of each interval one segment is long and the others short, or the other way round."""
    for one, others in ((SEGMENT, SMALL), (SMALL, SEGMENT)):
        connection = peer.connect("discard")
        for size in (one, *(others,) * 7) * 2:
            connection.send_data(size)
        await_silence(connection)
        connection.abort()


@connected("RWBP-AK-001", "RWBP-AK-002", "RWBP-AK-004", to="discard", interval=4)
def test_a_count_begins_with_every_acknowledgment(connection: Connection) -> None:
    """Three segments, and after the timer four more, and five; then one at a time, 40 ms apart."""
    begun = 0
    for count in (3, 4, 5):
        send_segments(connection, range(begun, begun + count))
        begun += count
        connection.wait(PAUSE_S)
    for index in range(begun, begun + 12):
        send_segments(connection, [index])
        connection.wait(0.04)
    await_silence(connection)


@connected("RWBP-AK-002", "RWBP-AK-004", to="discard", interval=64)
def test_timer_is_not_started_anew_by_later_segments(connection: Connection) -> None:
    """Segments 30 ms apart for a second: the timer counts from the first of them."""
    for index in range(34):
        send_segments(connection, [index])
        connection.wait(0.03)
    await_silence(connection)


@connected("RWBP-AK-003", "RWBP-AK-005", "RWBP-AK-007", "RWBP-EC-008", to="discard")
def test_one_hole(connection: Connection) -> None:
    """One segment is missing while five follow; then it comes."""
    send_segments(connection, (0, 2, 3, 4, 5, 6))
    connection.wait(PAUSE_S)
    send_segments(connection, (1,))
    await_silence(connection)


@connected("RWBP-AK-005", "RWBP-AK-006", "RWBP-AK-007", "RWBP-AK-003", "RWBP-EC-008", to="discard")
def test_ten_holes(connection: Connection) -> None:
    """Every other segment of twenty is missing, more than blocks can report; then they come.

    They come from the middle outwards, so that the run of the last arrival is not the highest.
    """
    send_segments(connection, range(1, 21, 2))
    connection.wait(PAUSE_S)
    send_segments(connection, (10, 8, 12, 6, 14, 4, 16, 2, 18, 0))
    await_silence(connection)


@connected("RWBP-AK-006", "RWBP-AK-005", "RWBP-AK-003", to="discard")
def test_rotation_by_duplicates(connection: Connection) -> None:
    """Eight runs; the segment of the third comes nine times more, and the rotation goes round."""
    send_segments(connection, range(1, 17, 2))
    connection.wait(PAUSE_S)
    for _ in range(9):
        send_segments(connection, (5,))
        connection.wait(0.02)
    send_segments(connection, (0, 1, 0))
    await_silence(connection)


@connected("RWBP-AK-006", "RWBP-AK-003", "RWBP-WN-004", to="discard")
def test_segments_behind_holes_that_are_not_taken(connection: Connection) -> None:
    """Of two runs the lower has grown last when data comes that the window refuses (section 7.1).

    It lies below the window, beyond it, and below it without ACK flag. What is in the window and
    has no ACK flag, or acknowledges what was never sent, is discarded before and is not the last.
    """
    send_segments(connection, (0, 2, 4, 6))
    below, held, beyond = 0, 2 * SMALL, 1 << 29
    for flags, ack, at in (
        (ACK, None, below), (ACK, None, beyond), (PSH, None, below),
        (PSH, None, held), (ACK, 1 << 20, held),
    ):  # fmt: skip
        for index in (2, 4):
            send_segments(connection, [index])
            connection.wait(0.1)
            connection.send(pattern(at, SMALL), at=at, flags=flags, ack=ack, pause=PAUSE_S)
            send_segments(connection, [0])
            connection.wait(1.0)
    send_segments(connection, (1, 3, 5))
    connection.next_offset = 7 * SMALL
    await_silence(connection)


@connected("RWBP-AK-006", "RWBP-AK-003", "RWBP-AK-004", to="discard", interval=8)
def test_runs_that_grow(connection: Connection) -> None:
    """Behind three holes the highest run grows by several intervals; then a lower one grows."""
    send_segments(connection, (1, 3, 5, *range(6, 30)))
    connection.wait(PAUSE_S)
    send_segments(connection, (2, 30, 31, 4))
    connection.wait(PAUSE_S)
    send_segments(connection, (0, *range(32, 38)))
    await_silence(connection)


@connected("RWBP-AK-003", "RWBP-AK-007", "RWBP-AK-004", to="discard")
def test_duplicates(connection: Connection) -> None:
    """What has been delivered comes again, whole, in part, and with something new behind it."""
    send_segments(connection, range(8))
    connection.wait(PAUSE_S)
    send_segments(connection, (3, 0, 7))
    connection.send_data(SMALL, at=7 * SMALL + SMALL // 2)
    connection.next_offset = 8 * SMALL + SMALL // 2
    connection.wait(PAUSE_S)
    connection.send_data(4 * SMALL, at=10 * SMALL)
    connection.send_data(2 * SMALL, at=11 * SMALL)
    connection.send_data(6 * SMALL, at=9 * SMALL, pause=PAUSE_S)
    connection.send_data(10 * SMALL, at=8 * SMALL)
    connection.next_offset = 18 * SMALL
    await_silence(connection)


@connected("RWBP-AK-003", "RWBP-AK-004", to="discard")
def test_unacceptable_segments(connection: Connection) -> None:
    """A bare segment below the window, data below it, data far above it; each is answered once."""
    send_segments(connection, range(3))
    connection.wait(PAUSE_S)
    connection.send(at=connection.next_offset - 1, pause=PAUSE_S)
    send_segments(connection, (0,))
    connection.wait(PAUSE_S)
    connection.send_data(SMALL, at=1 << 29)
    await_silence(connection)


@connected("RWBP-AK-008", "RWBP-AK-004", to="echo")
def test_echo_acknowledges(connection: Connection) -> None:
    """What is echoed at once acknowledges; no bare acknowledgment is needed beside it."""
    for _ in range(6):
        connection.send_data(SMALL)
        connection.collect(PAUSE_S)
    connection.ack(pause=connection.rtt + PAUSE_S)


@connected("RWBP-AK-008", "RWBP-AK-003", "RWBP-AK-005", "RWBP-EC-009", to="echo")
def test_echo_while_a_hole_is_open(connection: Connection) -> None:
    """Behind a hole more arrives while the echo of what came before is being sent again."""
    connection.send_data(SMALL, pause=PAUSE_S)
    for index in (2, 4, 3):
        send_segments(connection, [index])
    connection.wait(3.0 + connection.rtt)
    send_segments(connection, (6, 8))
    connection.collect(PAUSE_S)
    send_segments(connection, (1, 5, 7))
    receive_octets(connection, 9 * SMALL)
    await_silence(connection)


@connected("RWBP-EC-009", "RWBP-EC-008", to="echo")
def test_echo_of_what_arrives_backwards(connection: Connection) -> None:
    """Sixteen segments arrive from the last to the first, some of them twice, some in halves."""
    for index in range(15, -1, -1):
        send_segments(connection, [index, index + 2] if 2 < index < 9 else [index])
        connection.send_data(SMALL, at=index * SMALL + SMALL // 2)
    receive_octets(connection, 16 * SMALL)
    await_silence(connection)


@connected("RWBP-AK-003", "RWBP-AK-004", "RWBP-EC-008", to="discard")
def test_fin_behind_a_hole(connection: Connection) -> None:
    """FIN arrives with the last data, behind a hole, and is kept until the hole is filled."""
    send_segments(connection, (0, 2))
    connection.send(pattern(3 * SMALL, SMALL), at=3 * SMALL, flags=ACK | PSH | FIN)
    connection.next_offset = 4 * SMALL + 1
    connection.wait(PAUSE_S)
    send_segments(connection, (1,))
    await_silence(connection)


@connected("RWBP-AK-006", "RWBP-AK-003", "RWBP-AK-005", to="discard")
def test_bare_fin_behind_a_hole(connection: Connection) -> None:
    """A FIN without data comes above a run, and then something below both: the FIN's is first."""
    send_segments(connection, (0, 6, 2))
    connection.wait(PAUSE_S)
    connection.send(at=7 * SMALL, flags=ACK | FIN, sack=(), pause=PAUSE_S)
    send_segments(connection, (4, 3, 1, 5))
    connection.next_offset = 7 * SMALL + 1
    await_silence(connection)
