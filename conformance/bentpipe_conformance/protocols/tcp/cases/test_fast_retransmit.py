"""Entering fast retransmit: duplicates below, at and above the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import Row, connected, each
from bentpipe_conformance.protocols.tcp.cases.steps import (
    DISTANT_S,
    PLAIN,
    lose_second,
    take_round,
)
from bentpipe_conformance.protocols.tcp.connection import Connection, Segment
from bentpipe_conformance.protocols.tcp.peer import Peer

# Scripts lose the 17th segment (index 16) where they want its followers to be of the same flight:
# with initial windows of 1, 2, 3, 4 or 10 segments slow start sends it with the four that follow.


def receive_reordered(connection: Connection, segments: int, late: Mapping[int, int]) -> None:
    """Be a receiver for whom segments (by index) arrive as many segments late as ``late`` says."""
    waiting: list[list[Segment]] = []
    while connection.delivered < segments * connection.segment:
        segment = connection.expect()
        by = late.get(segment.start // connection.segment, 0)
        if by and not connection.reception.seen.get(segment.start):
            connection.reception.seen[segment.start] = 1
            waiting.append([segment] * by)
            continue
        connection.take(segment)
        for countdown in waiting:
            overdue = countdown.pop()
            if not countdown:
                connection.take(overdue)
        waiting = [countdown for countdown in waiting if countdown]


@connected("SNR-FR-001", "SNR-FR-002", sack=False)
def test_established_third_duplicate_acknowledgment(connection: Connection) -> None:
    """Fast retransmit starts at the third duplicate, not before.

    Without SACK, one segment of a window is lost; the three that follow it each cause a
    duplicate acknowledgment.
    """
    connection.receive(40, losing=[16])


@connected("SNR-FR-002", "SNR-FR-003", rtt=DISTANT_S)
def test_established_third_duplicate_with_sack(connection: Connection) -> None:
    """With SACK, recovery starts when the evidence suffices, not before.

    One segment of a window is lost; each that follows it is reported in a SACK block.
    """
    connection.receive(40, losing=[16])


@connected("SNR-FR-002", needs=("sack_sender", "rack=no"), profiles=("rfc",))
def test_established_small_reports(connection: Connection) -> None:
    """With SACK, three acknowledgments that report little held start recovery all the same.

    A sender with RACK counts segments instead.
    """
    connection.grow(16)
    first, _, third, *_ = connection.collect(0)
    connection.ack(first.end)
    for octets in (1, 200, 300):
        connection.ack(first.end, sack=[(third.start, third.start + octets)])
    connection.collect(0.5 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(4)


@connected("SNR-FR-003", "SNR-SAK-015", needs=("sack_sender", "rack=no"), profiles=("rfc",))
def test_established_scattered_small_reports(connection: Connection) -> None:
    """Two separate ranges above a hole start no recovery, a third does, however small they are.

    Two acknowledgments report them, so that their number decides and not that of duplicates.
    """
    connection.grow(16)
    first, _, *rest = connection.collect(0)
    connection.ack(first.end)
    small = [(item.start + 100, item.start + 200) for item in rest[:3]]
    connection.ack(first.end, sack=small[:2])
    connection.collect(0.3 * connection.rtt)
    connection.ack(first.end, sack=small[::-1])
    connection.collect(1.2 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(4)


@connected("SNR-CON-034", sack=False)
def test_opened_first_segment_lost(connection: Connection) -> None:
    """The very first segment is lost: with a larger initial window three duplicates tell."""
    connection.receive(40, losing=[0])


@connected("SNR-FR-003", needs=("sack_sender", "rack=no"))
def test_established_reports_around_an_acknowledgment_with_data(connection: Connection) -> None:
    """Two reports, an acknowledgment of all that comes with data, and two more: no loss."""
    connection.grow(16)
    batch = connection.collect(0)
    for start, data in ((0, b"bentpipe"), (4, b"")):
        hole, held = batch[start], batch[start + 1 : start + 3]
        for item in held:
            connection.ack(hole.start, sack=[(held[0].start, item.end)])
        connection.send(data, ack=batch[start + 3].end, sack=[])
        connection.collect(0.3 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(6)


@connected("SNR-FR-003", needs=("sack_sender", "rack=no"))
def test_established_reports_around_an_acknowledgment_with_a_report(connection: Connection) -> None:
    """Two reports, an acknowledgment of new data with another, and one more: no loss."""
    connection.grow(16)
    batch = connection.collect(0)
    second, fourth, fifth = (batch[index] for index in (1, 3, 4))
    connection.ack(batch[0].start, sack=[(second.start, second.end)])
    connection.ack(batch[0].start, sack=[(fourth.start, fourth.end), (second.start, second.end)])
    for end in (fourth.end, fifth.end):
        connection.ack(second.end, sack=[(fourth.start, end)])
    connection.collect(0.3 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(6)


@connected(
    "SNR-FR-002", "SNR-SAK-001", "SNR-SAK-018", needs=("sack_sender", "rack=no"), profiles=("rfc",)
)
def test_established_reports_on_segments_with_data(connection: Connection) -> None:
    """All that the tester reports is on segments that carry data of its own, with two holes.

    A report counts for what it newly tells, whatever else its segment carries (RFC 6675).
    """
    connection.grow(16)
    first, *batch = connection.collect(0)
    connection.ack(first.end)
    left = batch[1].start
    for item in (*batch[1:5], *batch[6:10]):
        right = item.end
        blocks = [(left, right)]
        if item.start > batch[5].start:
            blocks = [(batch[6].start, right), (left, batch[4].end)]
        connection.send(pattern(connection.next_offset, 8), ack=first.end, sack=blocks)
        connection.collect(0.05 * connection.rtt)
    connection.collect(1.2 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(6)


@connected("SNR-FR-001", "SNR-FR-007", sack=False)
def test_established_reordering_below_threshold(connection: Connection) -> None:
    """Segments that arrive one or two places late cause no retransmission.

    Without SACK, five segments of a transfer are late, so that far more than three duplicates
    come in all, but never three in a row.
    """
    receive_reordered(connection, 48, {16: 2, 20: 1, 24: 2, 28: 2, 32: 1, 36: 2})


@connected("SNR-FR-003")
def test_established_reordering_below_threshold_with_sack(connection: Connection) -> None:
    """With SACK, segments that arrive one or two places late start no recovery."""
    receive_reordered(connection, 48, {16: 2, 22: 2, 27: 1})


@connected("SNR-FR-002", "SNR-FR-006", sack=False)
def test_established_reordering_above_threshold(connection: Connection) -> None:
    """A segment that arrives five places late is retransmitted once, and the transfer goes on."""
    receive_reordered(connection, 60, {24: 5})


@connected("SNR-FR-007", sack=False)
def test_established_acknowledgments_duplicated_by_the_network(connection: Connection) -> None:
    """Acknowledgments that each arrive twice or three times cause no retransmission.

    Without SACK, nothing is lost; the network repeats every acknowledgment.
    """
    connection.grow(8)
    for index, segment in enumerate(connection.collect(0)):
        for _ in range(2 + index % 2):
            connection.ack(segment.end)
    for segment in connection.collect(1.5 * connection.rtt):
        connection.ack(segment.end)


def _other_windows(peer: Peer, row: Windows) -> None:
    connection = peer.connect(sack=False, window=WINDOW)
    connection.grow(8)
    first, *_ = connection.collect(0)
    connection.ack(first.end)
    for step in range(1, 7):
        connection.ack(first.end, window=WINDOW + step * row.by)
    take_round(connection)
    take_round(connection)


WINDOW = 30_000


@dataclass(frozen=True, slots=True)
class Windows(Row):
    """Six repeated acknowledgments, each of which offers ``by`` octets more."""

    by: int = 0


each(
    globals(),
    (
        Windows("established-window-updates",
                "Acknowledgments that repeat a number but raise the window are no duplicates.",
                ("SNR-FR-004",), (), None, 1_460),
        Windows("established-window-updates-small",
                "Acknowledgments that repeat a number but raise the window a little.",
                ("SNR-FR-004",), (), None, 130),
        Windows("established-window-narrowed",
                "Acknowledgments that repeat a number but lower the window are no duplicates.",
                ("SNR-FR-004",), PLAIN, None, -260),
    ),
    _other_windows,
)  # fmt: skip


def _echo_burst(connection: Connection, segments: int) -> int:
    """Have segments echoed, which are lost for now; return where they begin."""
    start, end = connection.delivered, connection.delivered + segments * connection.segment
    for _ in range(segments):
        connection.send_data(connection.segment)
    connection.expect(lambda item: item.end >= end, what="the echo")
    return start


@case("SNR-FR-001", needs=PLAIN, profiles=("rfc",))
def test_small_flights_below_threshold(peer: Peer) -> None:
    """In flights of two, three and four segments one is lost: one or two duplicates do not suffice.

    Without SACK. Early Retransmit (RFC 5827) would lower the threshold there.
    """
    for flight in (2, 3, 4):
        connection = peer.connect("echo", sack=False)
        _echo_burst(connection, 1)
        connection.reception.delivered = connection.highest
        connection.ack()
        connection.wait(0.6 * connection.rtt)
        start = _echo_burst(connection, flight)
        for _ in range(min(flight - 1, 2)):
            connection.ack(start)
            connection.discard(0.1 * connection.rtt)
        connection.reception.delivered = connection.highest
        connection.ack()
        connection.wait(connection.rtt)
        connection.abort()


@case("SNR-FR-001", needs=PLAIN, profiles=("rfc",))
def test_idle_duplicates_then_loss(peer: Peer) -> None:
    """What repeats an acknowledgment while nothing is outstanding is no duplicate.

    Without SACK, once, twice and three times before an echo whose first segment is lost.
    """
    for repeated in (1, 2, 3):
        connection = peer.connect("echo", sack=False)
        _echo_burst(connection, 4)
        connection.reception.delivered = connection.highest
        connection.ack()
        connection.wait(0.6 * connection.rtt)
        for _ in range(repeated):
            connection.ack()
        connection.wait(0.6 * connection.rtt)
        lost = _echo_burst(connection, 6)
        for _ in range(3):
            connection.ack(lost)
            connection.wait(0.2 * connection.rtt)
        connection.discard(connection.rtt)
        connection.reception.delivered = connection.highest
        connection.ack()
        connection.wait(connection.rtt)
        connection.abort()


@connected("SNR-FR-005", sack=False)
def test_established_segments_with_data(connection: Connection) -> None:
    """Segments with data that repeat an acknowledgment number are no duplicates.

    Without SACK, six of them arrive while a window is outstanding.
    """
    connection.grow(8)
    first, *_ = connection.collect(0)
    connection.ack(first.end)
    for _ in range(6):
        connection.send(b"bentpipe", ack=first.end)
    take_round(connection)
    take_round(connection)


@connected("SNR-FR-006", sack=False)
def test_recovery_many_duplicates(connection: Connection) -> None:
    """A window full of duplicates brings one retransmission of the missing segment.

    Without SACK, one segment is lost and some thirty arrive after it. Then another one is, and each
    duplicate comes when nothing puts off any more what the one before it let out.
    """
    connection.receive(64, losing=[24])
    lose_second(connection, connection.rtt / 8)


@connected("SNR-FR-006")
def test_recovery_many_duplicates_with_sack(connection: Connection) -> None:
    """With SACK too, one retransmission of the missing segment suffices."""
    connection.receive(64, losing=[24])


@connected("SNR-FR-008", profiles=("rfc",))
def test_established_bare_repetitions_with_sack(connection: Connection) -> None:
    """With SACK, repeated acknowledgments that report nothing held start no recovery.

    Six copies of one acknowledgment arrive, as from a network that duplicates packets.
    """
    connection.grow(8)
    first, *_ = connection.collect(0)
    for _ in range(7):
        connection.ack(first.end, sack=[])
    take_round(connection, bare=True)
    take_round(connection)


@connected("SNR-FR-008", profiles=("rfc",), rtt=DISTANT_S)
def test_established_reports_repeated(connection: Connection) -> None:
    """One segment above a gap is reported again and again, which is no news; then the gap fills.

    RFC 6675 section 2 wants new information in a duplicate acknowledgment.
    """
    connection.grow(16)
    first, _, third, *_ = connection.collect(0)
    for _ in range(6):
        connection.ack(first.end, sack=[(third.start, third.end)])
        # Sooner than time shows the loss (RFC 8985 section 6.2).
        connection.collect(min(0.02, connection.rtt / 20))
    connection.collect(0.5 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(4)
