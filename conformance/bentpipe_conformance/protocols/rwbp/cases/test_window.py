"""Windows: in units, of none and one and many, shrinking, closed, updated, slow readers."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.rwbp.cases.exchange import (
    LARGEST_FILLED,
    UNIT,
    close,
    fill,
)
from bentpipe_conformance.protocols.rwbp.cases.steps import (
    PATIENCE_S,
    PAUSE_S,
    await_silence,
    receive_octets,
)
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH

TIGHT = ("RWBP-WN-005", "RWBP-WN-001", "RWBP-FC-003")


@case(*TIGHT)
def test_windows_of_several_units(peer: Peer) -> None:
    """One unit, two, and five, with units of one segment, of a small one, and of more than one."""
    for mss, unit in ((SEGMENT, SEGMENT), (500, 500), (536, 4000), (SEGMENT, 600)):
        for units in (1, 2, 5):
            connection = peer.connect(mss=mss, unit=unit, window=units * unit, syn_window=unit)
            receive_octets(connection, 12 * unit)
            connection.abort()


@connected("RWBP-WN-006", "RWBP-WN-005", mss=1000, unit=1500, window=4500)
def test_room_for_a_part_of_a_segment(connection: Connection) -> None:
    """Windows of three units of 1500 octets leave room for half a segment of 1000."""
    receive_octets(connection, 30_000)


@case("RWBP-WN-006", "RWBP-WN-005")
def test_first_window_not_of_whole_segments(peer: Peer) -> None:
    """The window of the SYN has room for two and a half segments, or for half of one."""
    for octets in (SEGMENT * 5 // 2, SEGMENT // 2):
        connection = peer.connect(syn_window=octets, window=0)
        connection.wait(connection.rtt + PAUSE_S)
        connection.collect(0)
        connection.ack(window=4 * SEGMENT)
        connection.receive(12)
        connection.abort()


@connected("RWBP-WN-002", to="echo")
def test_fields_that_name_lower_edges(connection: Connection) -> None:
    """After a wide window come fields that name less, or none; then there is something to send."""
    connection.ack(window=24 * SEGMENT)
    sent = 0
    for units in (2, 1, 0):
        connection.ack(window=units * SEGMENT)
        for _ in range(6):
            connection.send(pattern(sent, SEGMENT), flags=ACK | PSH)
            sent += SEGMENT
        connection.wait(connection.rtt + PAUSE_S)
        connection.collect(0)
    connection.ack(window=16 * SEGMENT)
    receive_octets(connection, sent)


@connected("RWBP-WN-001", "RWBP-WN-005", unit=48, mss=48, window=40 * 48, syn_window=40 * 48)
def test_smallest_unit(connection: Connection) -> None:
    """Units of 48 octets, the smallest; segments are no larger."""
    receive_octets(connection, 100 * 48)


def _closed(peer: Peer) -> Connection:
    """A connection whose window has been filled, everything being acknowledged."""
    connection = peer.connect(window=4 * SEGMENT)
    connection.await_round()
    connection.collect(0)
    connection.ack(window=0, pause=connection.rtt)
    connection.inbox.clear()
    return connection


@case("RWBP-WN-008", "RWBP-WN-009", "RWBP-WN-005", "RWBP-AK-004")
def test_window_closed_and_opened_twice(peer: Peer) -> None:
    """The window closes, three probes are answered, it opens; and all of this once more."""
    connection = _closed(peer)
    for _ in range(2):
        for _ in range(3):
            if connection.next(PATIENCE_S) is None:
                break
            connection.ack(window=0)
        connection.ack(window=4 * SEGMENT)
        connection.await_round()
        connection.collect(0)
        connection.ack(window=0)
    connection.ack(window=8 * SEGMENT)
    connection.receive_more(8)


@case("RWBP-AK-005", "RWBP-WN-009")
def test_window_closed_while_a_run_is_held(peer: Peer) -> None:
    """Data above a hole is held when the window is probed: the probes report it."""
    connection = _closed(peer)
    connection.send_data(100, at=1000)
    for _ in range(3):
        connection.next(PATIENCE_S)
        connection.collect(0)
        connection.ack(window=0)
    connection.send_data(1000, at=0)
    connection.ack(window=8 * SEGMENT)
    connection.receive_more(8)


@case("RWBP-WN-010", "RWBP-WN-008", "RWBP-WN-009")
def test_window_closed_for_minutes(peer: Peer) -> None:
    """The window stays closed for ten minutes, every probe being answered; then it opens."""
    connection = _closed(peer)
    began = peer.now()
    while peer.now() - began < 600.0:
        if connection.next(PATIENCE_S) is None:
            break
        connection.ack(window=0)
    connection.ack(window=8 * SEGMENT)
    connection.receive_more(8)


@case("RWBP-WN-008", "RWBP-TM-006")
def test_probes_that_nobody_answers(peer: Peer) -> None:
    """The window is closed and the peer silent for two minutes, and then there again."""
    connection = _closed(peer)
    connection.discard(125.0)
    connection.ack(window=8 * SEGMENT, pause=3.0)


@case("RWBP-WN-008", "RWBP-WN-009", "RWBP-WN-006")
def test_window_open_by_less_than_a_segment(peer: Peer) -> None:
    """Three units of 1460 octets have room for four segments of 1000, and no more: closed."""
    connection = peer.connect(mss=1000, unit=SEGMENT, window=3 * SEGMENT)
    connection.await_round()
    connection.collect(0)
    connection.ack(window=0)
    for _ in range(2):
        connection.next(PATIENCE_S)
        connection.ack(window=0)
    connection.ack(window=4 * SEGMENT)
    connection.receive_more(4)


@connected("RWBP-WN-013", "RWBP-AK-004", "RWBP-EC-002", window=4 * SEGMENT)
def test_acknowledgments_from_the_edge(connection: Connection) -> None:
    """A peer that has filled the window behind a hole acknowledges from the edge.

    One of the segments that come meanwhile is lost.
    """
    connection.receive(4)
    edge = connection.acked + connection.iut_window
    if edge > LARGEST_FILLED:
        raise NotReached(f"a window of {edge} octets is not filled")
    for offset in range(SEGMENT, edge, SEGMENT):
        connection.send_data(min(SEGMENT, edge - offset), at=offset, pause=0.02)
    connection.wait(connection.rtt + PAUSE_S)
    connection.next_offset = edge
    first = connection.highest // SEGMENT
    connection.receive(first + 16, losing=[first + 5])


@connected("RWBP-WN-003", "RWBP-WN-007", to="discard", interval=255)
def test_window_updates_between_acknowledgments(connection: Connection) -> None:
    """The buffer is filled and read in less than 0.1 s, with an interval of 255."""
    for index in range(200):
        connection.send_data(SEGMENT, at=index * SEGMENT)
        if index % 8 == 7:
            connection.wait(0.08)
    await_silence(connection)


@connected("RWBP-WN-003", "RWBP-WN-011", to="discard")
def test_small_segments_take_parts_of_units(connection: Connection) -> None:
    """Segments of a hundred octets arrive, behind a hole and in order."""
    for index in (*range(1, 12), 0, *range(12, 24)):
        connection.send_data(100, at=100 * index)
    connection.next_offset = 2400
    await_silence(connection)


@connected("RWBP-WN-002", unit=65535, mss=65535, syn_window=SEGMENT, window=65535 * 65535)
def test_product_above_the_largest_window(connection: Connection) -> None:
    """The field and the unit are 65,535 each: more than a 32-bit number with a sign can hold."""
    connection.receive(60)


@connected("RWBP-WN-004", "RWBP-AK-003", to="discard")
def test_data_beyond_the_edge(connection: Connection) -> None:
    """Data comes that lies beyond the edge, in part, and as a whole."""
    connection.send_data(100, pause=connection.rtt + PAUSE_S)
    connection.collect(0)
    edge = connection.iut_edge
    for start in (edge - 50, edge, edge - 100, edge + 1000):
        connection.send_data(100, at=start, pause=0.02)
    await_silence(connection)


@connected("RWBP-WN-004", "RWBP-WN-003", to="echo", window=0)
def test_slow_reader(connection: Connection) -> None:
    """The echo cannot send, and so it stops reading: the window fills up to what was promised."""
    sent = fill(connection)
    connection.ack(window=16 * SEGMENT)
    receive_octets(connection, min(sent, 100_000))


@connected("RWBP-WN-007", to="echo", window=0)
def test_closed_window_opened_by_a_few_units(connection: Connection) -> None:
    """The echo's window is closed; it may read a few units, and must not send any of them yet."""
    sent = fill(connection)
    connection.ack(window=4 * SEGMENT)
    connection.collect(connection.rtt + PAUSE_S)
    connection.reception.take(0, connection.highest)
    connection.ack(window=0, pause=connection.rtt + PATIENCE_S / 10)
    connection.ack(window=16 * SEGMENT)
    receive_octets(connection, min(sent, 100_000))


@connected("RWBP-WN-007", "RWBP-AK-004", to="echo", window=0)
def test_window_of_half_a_unit_opened_step_by_step(connection: Connection) -> None:
    """Half a unit of the echo's window is left when it may read, a segment at a time."""
    unit, size = connection.iut_unit, connection.segment
    sent = fill(connection, but=unit // 2)
    room = -(-5 * unit // size) * size
    connection.ack(window=room)
    for segment in connection.take_round():
        if segment.has_data:
            connection.hold(segment)
            connection.ack(window=room - segment.end, pause=2 * PAUSE_S)
    connection.ack(window=0, pause=connection.rtt + PATIENCE_S / 10)
    connection.ack(window=16 * SEGMENT, pause=connection.rtt)
    receive_octets(connection, min(sent, 100_000))


@connected("RWBP-AK-004", to="echo", window=0, interval=255)
def test_window_filled_and_opened_before_the_acknowledgment(connection: Connection) -> None:
    """Two units fill the echo's window, and it may read five before it acknowledges them."""
    unit, size = connection.iut_unit, connection.segment
    sent = fill(connection, but=2 * unit)
    connection.ack(window=-(-5 * unit // size) * size)
    connection.take_round()
    connection.window = 0
    while (octets := min(700, connection.iut_edge - sent)) > 0:
        connection.send(pattern(sent, octets), flags=ACK | PSH, ack=0)
        sent += octets
    connection.reception.take(0, connection.highest)
    connection.wait(0.02)
    connection.ack(pause=connection.rtt + PAUSE_S)
    connection.ack(window=16 * SEGMENT)
    receive_octets(connection, min(sent, 100_000))


@case("RWBP-FC-007", "RWBP-FC-003")
def test_one_connection_stalled(peer: Peer) -> None:
    """One connection has no window while two others send."""
    stalled = _closed(peer)
    others = [peer.connect(), peer.connect()]
    for _ in range(3):
        for connection in others:
            connection.receive_more(8)
    if stalled.next(PATIENCE_S) is not None:
        stalled.ack(window=8 * SEGMENT)
    stalled.receive_more(8)


@connected("RWBP-FC-003", "RWBP-WN-005", to="echo", window=0)
def test_acknowledgments_with_data_beyond_a_closed_window(connection: Connection) -> None:
    """The echo's window is closed; what acknowledges its data carries some that is not taken."""
    sent = fill(connection)
    connection.ack(window=4 * SEGMENT)
    for segments in (4, 8, 16, 16):
        connection.collect(connection.rtt + PAUSE_S)
        connection.reception.take(0, connection.highest)
        connection.window, connection.next_offset = segments * SEGMENT, connection.acked
        connection.send(pattern(connection.acked, 100), at=connection.acked)
    connection.collect(connection.rtt + PAUSE_S)
    connection.next_offset = connection.acked
    connection.reception.take(0, connection.highest)
    connection.ack()
    receive_octets(connection, min(sent, 100_000))


@case("RWBP-WN-004", "RWBP-AK-003")
def test_segments_around_the_window(peer: Peer) -> None:
    """A little of the echo's window is left; what comes begins below it, ends beyond it, or both.

    With FIN it is the same: the data between is taken, and the FIN is not.
    """
    for below, beyond, flags in ((200, 200, 0), (200, 200, FIN), (200, 0, 0), (0, 200, 0)):
        connection = peer.connect("echo", window=0)
        sent = fill(connection, but=UNIT)
        start, edge = sent - below, connection.iut_edge
        octets = pattern(start, edge + beyond - start)
        connection.send(octets, at=start, flags=ACK | PSH | flags)
        connection.wait(connection.rtt + PAUSE_S)
        connection.next_offset = edge
        connection.ack(window=16 * SEGMENT)
        receive_octets(connection, min(sent, 50_000))
        connection.abort()


@case("RWBP-AK-004", "RWBP-WN-004")
def test_segments_behind_one_that_was_cut_off(peer: Peer) -> None:
    """What ends beyond the window is cut off there; what continues when it is open is orderly."""
    for inside, beyond in ((UNIT, 200), (200, UNIT), (100, SEGMENT - 100)):
        connection = peer.connect("echo", window=0)
        sent = fill(connection, but=inside)
        connection.send_data(inside + beyond, at=sent, pause=connection.rtt + PAUSE_S)
        connection.next_offset = sent + inside
        connection.window = 16 * SEGMENT
        connection.ack()
        receive_octets(connection, min(connection.next_offset, 50_000))
        # The echo cannot send any more, so that what acknowledges is pure.
        connection.ack(window=0, pause=connection.rtt)
        for _ in range(12):
            connection.send_data(100)
        await_silence(connection)
        connection.abort()


@connected("RWBP-WN-004", "RWBP-CX-003", to="echo", window=0)
def test_fin_at_the_edge(connection: Connection) -> None:
    """The last data that the echo has room for comes with FIN, which there is none for."""
    sent = fill(connection, but=UNIT)
    connection.send(pattern(sent, UNIT), at=sent, flags=ACK | FIN, pause=connection.rtt + PAUSE_S)
    connection.next_offset = sent + UNIT
    connection.ack(window=16 * SEGMENT)
    receive_octets(connection, min(sent, 100_000))
    close(connection)
