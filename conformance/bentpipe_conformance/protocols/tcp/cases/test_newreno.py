"""The recovery phase: partial acknowledgments, recover, the window, and repeated loss."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import (
    DISTANT_S,
    PLAIN,
    await_again,
    await_retransmissions,
    fill_window,
    show_silence,
    take_round,
)
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

TIMEOUT_S = 15.0
"""Longer than a first retransmission timeout, even over a satellite."""

FAR_S = 0.2
"""A round trip of which half is more than any reaction takes."""

JUMP_SEGMENTS = 6
"""More than RFC 6582 section 4.1 takes for few."""


def _receive_or_show_silence(connection: Connection) -> None:
    """Receive; when the sender falls silent for good, leave a late packet in the trace."""
    try:
        connection.receive(50, losing={16: 2})
    except NotReached as error:
        raise show_silence(connection, str(error)) from error


def _repeat(connection: Connection, ack: int, times: int) -> None:
    for _ in range(times):
        connection.ack(ack)


@connected("SNR-REC-001", "SNR-REC-010", "SNR-REC-011", sack=False)
def test_recovery_partial_acknowledgments(connection: Connection) -> None:
    """Three losses in a window are repaired one per round trip, without a timeout.

    Without SACK, each retransmission brings a partial acknowledgment. Later the same happens once
    more.
    """
    connection.receive(150, losing=[22, 25, 28, 90, 93, 96])


@connected("SNR-CON-034", sack=False)
def test_recovery_partial_acknowledgments_within_segments(connection: Connection) -> None:
    """Partial acknowledgments of half a segment, then of all but an octet of what recovery repairs.

    Without SACK, as from a receiver that keeps octets.
    """
    connection.grow(16)
    lost, *rest = connection.collect(0)
    half = connection.segment // 2
    _repeat(connection, lost.start, len(rest))
    await_again(connection, lost.start, "a fast retransmit")
    recover = connection.highest
    for reached in (lost.start + half, lost.end + half, recover - 1):
        connection.ack(reached)
        connection.collect(0.6 * connection.rtt)
    take_round(connection)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(20)


@connected("SNR-REC-002", sack=False)
def test_recovery_burst_of_losses(connection: Connection) -> None:
    """Three losses in a window reduce the window once.

    Without SACK; the transfer goes on until the window shows how it grows again.
    """
    connection.receive(110, losing=[16, 18, 20])


@connected("SNR-REC-002", rtt=DISTANT_S)
def test_recovery_burst_of_losses_with_sack(connection: Connection) -> None:
    """With SACK, five losses in a window reduce the window once.

    Three segments arrive above the first, so that their number shows the loss before time does.
    """
    connection.receive(110, losing=[16, 20, 21, 23, 25])


@connected("SNR-REC-007", profiles=("hk99",))
def test_recovery_one_transmission_per_acknowledgment(connection: Connection) -> None:
    """With SACK, each acknowledgment during recovery brings one retransmission or new data.

    Five segments of a window are lost. The rfc profile lets the pipe decide instead.
    """
    connection.receive(60, losing=[16, 18, 19, 21, 23])


@connected("SNR-FR-009", "SNR-REC-005", "SNR-REC-006", "SNR-REC-007", "SNR-REC-014", sack=False)
def test_recovery_window(connection: Connection) -> None:
    """One loss in a large window: what leaves during recovery and at its end.

    Without SACK, duplicates inflate the window and clock out new data; the acknowledgment that
    ends the recovery deflates it.
    """
    connection.receive(90, losing=[24])


@connected("SNR-REC-005", "SNR-FR-009")
def test_recovery_window_with_sack(connection: Connection) -> None:
    """With SACK, one loss in a large window: what leaves at the end of recovery."""
    connection.receive(90, losing=[24])


@connected("SNR-REC-012", "SNR-REC-013", sack=False)
def test_recovery_ends_with_little_outstanding(connection: Connection) -> None:
    """Recovery ends when little is outstanding.

    Without SACK, duplicates for over half of a flight inflate the window so far that a few new
    segments leave; then the whole flight is acknowledged. They follow new data acknowledged, so
    that no timer explains what a sender with pacing repeats only a while later.
    """
    connection.grow(16)
    before, lost, *rest = connection.collect(0)
    connection.ack(before.end)
    _repeat(connection, lost.start, len(rest) // 2 + 3)
    await_again(connection, lost.start, "a fast retransmit")
    connection.ack(connection.highest)
    connection.collect(1.2 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(20)


@case("SNR-REC-005", profiles=("hk99",))
def test_recovery_ends_with_nothing_outstanding(peer: Peer) -> None:
    """When nothing is outstanding at the end of recovery, one segment leaves.

    Without SACK, the tester offers sixteen segments, so that the recovery cannot send new data,
    and loses the first when all are outstanding. RFC 6582 leaves the burst to the implementer.
    """
    connection, (lost, *rest) = fill_window(peer, 16)
    _repeat(connection, lost.start, len(rest))
    await_again(connection, lost.start, "a fast retransmit")
    connection.ack()
    take_round(connection)


def _ask_again(connection: Connection, reached: int) -> None:
    """Acknowledge up to an offset, then three times over while its repetition is on the way.

    So no timer of a sender with pacing can expire where a fast retransmit would leave.
    """
    connection.ack(reached)
    connection.wait(connection.rtt / 2)
    _repeat(connection, reached, 3)
    await_again(connection, reached, "the next segment")


@connected("SNR-REC-003", rtt=FAR_S, sack=False)
def test_timeout_during_recovery_then_duplicates(connection: Connection) -> None:
    """After a timeout during recovery, duplicates below recover start no fast retransmit.

    Without SACK, the retransmission of a lost segment is lost too. When the timeout has repaired
    it, the acknowledgment jumps, and the next segment is acknowledged three times over.
    """
    connection.grow(16)
    lost, *rest = connection.collect(0)
    connection.reception.delivered = lost.start
    _repeat(connection, lost.start, 4)
    await_again(connection, lost.start, "a fast retransmit")
    connection.discard(0)
    await_again(connection, lost.start, "a timeout", TIMEOUT_S)
    reached = rest[6].start
    _ask_again(connection, reached)
    connection.collect(1.2 * connection.rtt)
    connection.reception.delivered = rest[-1].end
    connection.ack()
    connection.receive(rest[-1].end // connection.segment + 4)


@case("SNR-REC-003", profiles=("rfc",))
def test_timeout_then_duplicates(peer: Peer) -> None:
    """After a timeout, duplicates below recover start no fast retransmit.

    Without SACK, a whole window seems lost. While slow start repeats it an acknowledgment jumps by
    several segments, as if only acknowledgments had been lost; the segment after the jump is
    acknowledged three times over. On connections with so many timeouts in a row, and more after
    some of the window has been repaired: all of them record what was sent before the first.
    """
    for series in ((1,), (2,), (3,), (1, 1), (1, 2)):
        connection = peer.connect(sack=False, rtt=FAR_S)
        connection.grow(16)
        _repeat_after_a_jump(connection, series)
        connection.abort()


def _repeat_after_a_jump(connection: Connection, series: Iterable[int]) -> None:
    outstanding = connection.highest
    for timeouts in series:
        connection.await_round()
        connection.discard(0)
        connection.take(await_retransmissions(connection, connection.delivered, timeouts))
    repaired = connection.delivered
    while connection.delivered == repaired:
        # F-RTO sends new data first, and duplicates decide (RFC 5682 section 2.1).
        connection.await_round()
        for _ in connection.collect(0):
            connection.ack(repaired)
    reached = connection.delivered + JUMP_SEGMENTS * connection.segment
    if reached >= outstanding - connection.segment:
        raise NotReached("too little was outstanding for an acknowledgment to jump")
    connection.reception.delivered = reached
    _ask_again(connection, reached)
    take_round(connection)
    connection.receive(outstanding // connection.segment + 2)


def _lose_what_follows(connection: Connection, recover: int) -> None:
    """All below ``recover`` has arrived; what is sent next is lost, and duplicates say so."""
    connection.ack(recover)
    connection.expect(lambda segment: segment.start >= recover, what="new data")
    _repeat(connection, recover, 3)
    connection.discard(1.2 * connection.rtt)
    connection.reception.delivered = recover
    connection.ack()
    connection.receive(recover // connection.segment + 8)


@connected("SNR-REC-004", needs=("frto=no",), profiles=("rfc",), sack=False)
def test_timeout_duplicates_exactly_at_recover(connection: Connection) -> None:
    """Three duplicates of the acknowledgment of exactly what was sent before a timeout.

    Without SACK; what follows is lost.
    """
    connection.grow(8)
    first, *_ = connection.discard(0)
    recover = connection.highest
    await_again(connection, first.start, "a timeout", TIMEOUT_S)
    _lose_what_follows(connection, recover)


@connected("SNR-REC-004", sack=False)
def test_recovered_duplicates_exactly_at_recover(connection: Connection) -> None:
    """Three duplicates of the acknowledgment that ended recovery exactly at recover.

    Without SACK, what was sent during the recovery is lost, so that nothing lies between. The
    paper starts a new fast retransmit, RFC 6582 does not. The duplicates of the recovery follow
    new data acknowledged, so that no timer explains what a sender with pacing repeats.
    """
    connection.grow(16)
    before, lost, *rest = connection.collect(0)
    connection.ack(before.end)
    connection.reception.delivered = lost.start
    _repeat(connection, lost.start, 3)
    await_again(connection, lost.start, "a fast retransmit")
    recover = connection.highest
    _repeat(connection, lost.start, len(rest[3:]))
    _lose_what_follows(connection, recover)


@connected("SNR-REC-008", sack=False)
def test_recovery_lost_retransmission(connection: Connection) -> None:
    """A segment whose retransmission is lost too is retransmitted again.

    Without SACK, only a timeout can tell.
    """
    _receive_or_show_silence(connection)


@connected("SNR-REC-008")
def test_recovery_lost_retransmission_with_sack(connection: Connection) -> None:
    """With SACK, a segment whose retransmission is lost too is retransmitted again."""
    _receive_or_show_silence(connection)


@case("SNR-REC-009")
def test_recovery_with_a_full_window(peer: Peer) -> None:
    """During recovery nothing is sent beyond the receiver's window, which does not move.

    Without SACK, the tester offers sixteen segments and loses the first and the ninth when all are
    outstanding; as its buffer fills, the partial acknowledgment closes the window accordingly.
    """
    size = 16 * SEGMENT
    connection, window = fill_window(peer, 16)
    edge = window[0].start + size
    _repeat(connection, window[0].start, len(window[1:8] + window[9:]))
    await_again(connection, window[0].start, "a fast retransmit")
    partial = window[8].start
    connection.ack(partial, window=edge - partial)
    await_again(connection, partial, "the next retransmission")
    connection.ack(window=size)
    take_round(connection)


@connected("SNR-FR-002", needs=PLAIN, sack=False)
def test_recovered_next_segment_lost(connection: Connection) -> None:
    """The acknowledgment that ends recovery is itself repeated: what follows it is lost.

    Without SACK. It covers more than recover, so that three duplicates show the next loss; the
    duplicates of the recovery before do not count.
    """
    connection.grow(16)
    lost, *rest = connection.collect(0)
    _repeat(connection, lost.start, len(rest))
    await_again(connection, lost.start, "a fast retransmit")
    recover, size = connection.highest, connection.segment
    connection.discard(0.9 * connection.rtt)
    if connection.highest < recover + 5 * size:
        raise NotReached("the recovery sent less than five segments of new data")
    _repeat(connection, recover + size, 1)
    connection.discard(0.1 * connection.rtt)
    _repeat(connection, recover + size, 3)
    await_again(connection, recover + size, "a second fast retransmit", TIMEOUT_S)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(20)


@connected("SNR-FR-004", needs=PLAIN, sack=False)
def test_recovery_amid_window_updates(connection: Connection) -> None:
    """In a recovery the window inflated by duplicates is used up; then come window updates.

    Without SACK. They are no duplicates, raise the window or lower it, and let nothing out.
    """
    connection.grow(16)
    lost, *rest = connection.collect(0)
    _repeat(connection, lost.start, len(rest))
    await_again(connection, lost.start, "a fast retransmit")
    for turn in range(1, 9):
        connection.ack(lost.start, window=(1 << 20) + (turn << 10) * (-1) ** turn)
    connection.discard(0.9 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(20)
