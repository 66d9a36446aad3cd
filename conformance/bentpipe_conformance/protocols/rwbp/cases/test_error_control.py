"""Losses: one, several, of the tail, of repairs, of all acknowledgments of a round."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.rwbp.cases.steps import (
    PAUSE_S,
    await_silence,
    lose_first,
    lose_until,
    make_room,
    receive_octets,
)
from bentpipe_conformance.protocols.rwbp.codec import LARGEST_WINDOW
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection, Segment
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH

LOSSES = ("RWBP-EC-002", "RWBP-EC-004", "RWBP-EC-006", "RWBP-EC-011", "RWBP-EC-014")
"""What any loss, repaired in the ordinary way, shows."""


@connected(*LOSSES)
def test_single_loss(connection: Connection) -> None:
    """One segment is lost; its repair arrives."""
    connection.receive(40, losing=[9])


@connected(*LOSSES, "RWBP-EC-010")
def test_losses_apart_in_one_round(connection: Connection) -> None:
    """Four segments of one round are lost, not beside each other."""
    connection.receive(60, losing=[9, 11, 14, 20])


@connected(*LOSSES)
def test_losses_in_a_row(connection: Connection) -> None:
    """Five segments in a row are lost."""
    connection.receive(60, losing=range(10, 15))


@connected(*LOSSES, "RWBP-EC-012")
def test_repair_lost_three_times(connection: Connection) -> None:
    """A segment and three repairs of it are lost, each of which later segments reveal.

    There are later ones because the window opens meanwhile, by two segments at a time.
    """
    connection.receive(16)
    connection.await_round()
    lost, copies = connection.delivered, 1
    connection.inbox.popleft()
    for opened in range(2 * SEGMENT, 300 * SEGMENT, 2 * SEGMENT):
        if copies == 5:
            break
        segment = connection.expect()
        copies += segment.start == lost
        if segment.start != lost or copies == 5:
            connection.hold(segment)
        connection.ack(window=16 * SEGMENT + opened)
    connection.receive_more(20)


@connected(*LOSSES, "RWBP-EC-012")
def test_exchange_of_figure_3(connection: Connection) -> None:
    """Of fourteen segments the second and the twelfth are lost once, the fourth three times."""
    receive_octets(connection, 40 * connection.segment, losing={1: 1, 3: 3, 11: 1})


@connected(*LOSSES, "RWBP-EC-011")
def test_losses_while_data_arrives(connection: Connection) -> None:
    """Segments and a repair are lost while the tester sends as well."""

    def lose(segment: Segment, before: int) -> bool:
        connection.send_data(100)
        return segment.start // SEGMENT in (9, 12) and before < 2

    connection.receive(60, losing=lose)


@case("RWBP-EC-011", "RWBP-EC-007", "RWBP-CX-003")
def test_last_data_with_fin_lost(peer: Peer) -> None:
    """What carries the last data and FIN is lost once, twice; order cannot tell."""
    for times in (1, 2, 3):
        connection = peer.connect("echo")
        connection.send(pattern(0, 1000), flags=ACK | PSH | FIN)
        receive_octets(connection, 1001, losing={0: times})
        connection.wait(connection.rtt)


@connected("RWBP-EC-002", "RWBP-EC-012", "RWBP-EC-003", window=24 * SEGMENT)
def test_lower_holes_repaired_in_turn(connection: Connection) -> None:
    """Every other segment of a round is lost; the repairs arrive one by one behind the highest."""
    connection.receive(80, losing=range(9, 21, 2))


@connected("RWBP-EC-005", "RWBP-EC-006", "RWBP-EC-007", "RWBP-TM-001")
def test_whole_window_lost(connection: Connection) -> None:
    """Nothing of a round arrives: only the timer can tell."""
    connection.receive(20)
    lose_until(connection, 2)
    connection.receive_more(40)


@connected("RWBP-EC-007", "RWBP-EC-010", "RWBP-EC-006")
def test_timeout_with_reports(connection: Connection) -> None:
    """All but the first segment of a window arrive, and the repair does not; then the timer."""
    connection.receive(16)
    first = connection.delivered
    connection.serve(
        lambda: connection.reception.seen.get(first, 0) >= 4,
        losing=lambda segment, before: segment.start == first and before < 3,
    )
    connection.receive_more(30)


@connected("RWBP-EC-012")
def test_repeated_acknowledgments(connection: Connection) -> None:
    """Ten copies of one acknowledgment come while a window is outstanding."""
    connection.receive(16)
    connection.await_round()
    for _ in range(10):
        connection.ack(sack=())
    connection.receive_more(30)


@connected("RWBP-EC-013", "RWBP-SEC-004")
def test_untrue_blocks(connection: Connection) -> None:
    """Blocks of what was never sent, of what was acknowledged, empty ones and reversed ones.

    With each comes a true one.
    """
    connection.receive(16)
    for place in range(4):
        lose_first(connection, 2)
        base, size = connection.delivered, connection.segment
        true = (base + 2 * size, base + 3 * size)
        far = connection.highest + 20 * size
        false = ((base - size, base + size), (far, far + size), (base, base + size), (base, far))
        connection.ack(sack=(true, false[place]), pause=PAUSE_S)
        connection.ack(sack=((base + 5 * size,) * 2, true))
        connection.ack(sack=(true, (base + 9 * size, base + 8 * size)))
        connection.receive_more(16)


@connected("RWBP-EC-002", "RWBP-EC-010", "RWBP-EC-013")
def test_blocks_in_any_order_and_overlapping(connection: Connection) -> None:
    """Blocks are listed from below, overlap, lie in one another, touch, or cut segments in two."""
    connection.receive(16)
    for spans in (
        ((2, 3), (5, 6), (8, 9)), ((2, 5), (3, 7)), ((2, 8), (4, 5)), ((2, 3), (3, 4), (2, 3)),
        ((2.5, 4.5), (6, 6.5)), ((6, 7), (0, 1), (2, 3)),
    ):  # fmt: skip
        segments = connection.take_round()
        base, size = connection.delivered, connection.segment
        blocks = [(base + int(a * size), base + int(b * size)) for a, b in spans]
        for segment in segments:
            if segment.has_data and any(a <= segment.start and segment.end <= b for a, b in blocks):
                connection.hold(segment)
        connection.ack(ack=base, sack=blocks, pause=PAUSE_S)
        connection.receive_more(16)


@connected("RWBP-EC-015", "RWBP-SEC-004", to="chargen")
def test_acknowledgment_numbers_out_of_range(connection: Connection) -> None:
    """Acknowledgments of unsent data, and of numbers more than 2^30 old."""
    connection.receive(16)
    connection.await_round()
    for number in (connection.highest + 1, connection.highest + (1 << 20), -(1 << 30) - 100000):
        connection.send(ack=number, sack=(), pause=0.3)
    connection.receive_more(16)
    await_silence(connection)


@connected("RWBP-EC-015", "RWBP-EC-002")
def test_old_acknowledgments_tell_something_new(connection: Connection) -> None:
    """Acknowledgments come late, below what has been acknowledged, with news in blocks or edge."""
    connection.receive(16)
    segments = connection.take_round()
    old = connection.delivered
    connection.hold(segments[0])
    connection.hold(segments[1])
    connection.ack()
    connection.hold(segments[:6][-1])
    connection.ack(ack=old, pause=0.2)
    connection.ack(ack=old, window=connection.window + 8 * SEGMENT)
    connection.receive_more(30)


@connected("RWBP-EC-015", "RWBP-EC-002")
def test_acknowledgments_older_than_any_window(connection: Connection) -> None:
    """Others are older than all windows were wide, or than the stream, and tell as much."""
    size, usual = connection.segment, connection.window
    for old in (size, -(1 << 20), -LARGEST_WINDOW // 2):
        connection.receive_more(48)
        lost, *arrived = connection.take_round()
        for segment in arrived[:2]:
            connection.hold(segment)
        connection.ack(ack=old, pause=0.2)
        connection.hold(lost)
        connection.ack(pause=connection.rtt + PAUSE_S)
        connection.collect(0)
        # What its field permits counts from the old number.
        wide = connection.highest - old + 4 * size + connection.unit
        connection.ack(ack=old, sack=(), window=wide, pause=0.2)
        connection.window = usual
        connection.receive_more(16)


@connected("RWBP-EC-010", "RWBP-EC-012")
def test_reneging_receiver(connection: Connection) -> None:
    """What has been reported is reported no more; what was not is repaired all the same."""
    connection.receive(16)
    connection.await_round()
    base, size = connection.delivered, connection.segment
    for item in range(2, 8):
        connection.ack(sack=((base + 2 * size, base + (item + 1) * size),))
    connection.wait(0.3)
    connection.ack(sack=(), pause=8.0)
    make_room(connection)
    connection.receive_more(8)
