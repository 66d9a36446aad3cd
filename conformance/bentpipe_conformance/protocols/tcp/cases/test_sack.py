"""The sender's use of selective acknowledgments: what is repaired, when, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scripts import Row, connected, each
from bentpipe_conformance.protocols.tcp.cases.steps import (
    SACK,
    TIMEOUT_S,
    await_again,
    lose_second,
    show_silence,
    take_round,
)
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection, Segment
from bentpipe_conformance.protocols.tcp.peer import Peer


def _receive_flight(
    connection: Connection, segments: int, losing: Sequence[int], window: int = 8
) -> None:
    """Lose segments, by index in the next flight, of a connection in slow start.

    That flight comes as a burst, which the link spreads out: the acknowledgments are spaced by its
    rate. What is named twice is lost twice.
    """
    connection.grow(window)
    base = connection.highest // connection.segment
    connection.receive(base + segments, losing=Counter(base + index for index in losing))


@connected("SNR-SAK-004", "SNR-SAK-005", needs=SACK)
def test_flight_of_segments_one_lost(connection: Connection) -> None:
    """One hole in a flight: only the hole is retransmitted.

    Everything above the lost segment arrives and is reported held.
    """
    _receive_flight(connection, 36, [2])


@connected("SNR-SAK-006", needs=SACK, profiles=("rfc",), window=8 * SEGMENT, syn_window=8 * SEGMENT)
def test_constant_window_one_lost(connection: Connection) -> None:
    """Recovery begins at the threshold, not at the first report.

    The offered window keeps eight segments in flight, so that no queue hides how long the sender
    waited. Then three reports come together, for a burst may end too soon after what was lost.
    """
    connection.receive(40, losing=[25])
    lose_second(connection, connection.rtt / 60)


@connected(
    "SNR-SAK-001", "SNR-SAK-003", "SNR-SAK-005", "SNR-SAK-007", "SNR-SAK-008", "SNR-SAK-009",
    needs=SACK,
)  # fmt: skip
def test_flight_of_segments_four_lost(connection: Connection) -> None:
    """Several holes in a flight are repaired in order, in one round trip, once each."""
    _receive_flight(connection, 50, [1, 4, 7, 10])


@connected("SNR-SAK-001", "SNR-SAK-003", "SNR-SAK-008", "SNR-SAK-009", needs=SACK)
def test_flight_of_segments_runs_lost(connection: Connection) -> None:
    """Adjacent losses: runs of holes are repaired lowest first, one by one.

    Three segments arrive between them, so that their number shows the loss before time does.
    """
    _receive_flight(connection, 50, [1, 2, 6, 7, 8])


PIPE = ("SNR-SAK-017", "SNR-SAK-018", "SNR-SAK-019")
"""The requirements about how much a recovery sends, and what first."""


@connected(*PIPE, needs=SACK, profiles=("rfc",))
def test_flight_of_segments_half_lost(connection: Connection) -> None:
    """Half a flight is lost in one run: the retransmissions alone have to respect the window."""
    _receive_flight(connection, 90, range(1, 10), window=16)


@connected(*PIPE, needs=SACK, profiles=("rfc",))
def test_flight_of_segments_late_losses(connection: Connection) -> None:
    """Losses at both ends of a flight: those near its end are not known at the beginning."""
    _receive_flight(connection, 90, [0, 2, 13, 27, 33], window=16)


@connected(*PIPE, needs=SACK, profiles=("rfc",))
def test_flight_of_segments_acknowledgments_lost(connection: Connection) -> None:
    """Most acknowledgments of a recovery are lost; the blocks of the others tell all the same."""
    connection.grow(16)
    base = connection.highest // connection.segment
    losing = Counter(base + index for index in (1, 2, 5, 9))
    connection.receive(base + 12, losing=losing)
    for _ in range(4):
        connection.await_round()
        for segment in connection.collect(0):
            connection.hold(segment)
        connection.ack()
    connection.receive(base + 60)


@connected(*PIPE[1:], needs=SACK, profiles=("rfc",), window=17 * SEGMENT, syn_window=17 * SEGMENT)
def test_constant_window_tail_lost(connection: Connection) -> None:
    """No new data may be sent, and the end of the window is lost as well.

    The holes near the end are never reported lost by what is held above them: NextSeg's rule 3
    repeats them, and its rule 4 the last segment; later once more.
    """
    connection.grow(16)
    base = connection.delivered // connection.segment
    connection.receive(base + 60, losing=[base + at for at in (0, 12, 15, 40, 52, 55)])


@connected(*PIPE[1:], needs=SACK, profiles=("rfc",), window=17 * SEGMENT, syn_window=17 * SEGMENT)
def test_constant_window_last_lost(connection: Connection) -> None:
    """No new data may be sent; the last segment is lost, and one that counts as lost by nothing.

    NextSeg's rule 3 comes before its rule 4.
    """
    connection.grow(16)
    base = connection.delivered // connection.segment
    connection.receive(base + 60, losing=[base + at for at in (0, 14, 17, 40, 54, 57)])


@connected("SNR-SAK-018", needs=(*SACK, "rack=no", "prr=no"), profiles=("rfc",))
def test_flight_of_segments_reports_beside_copies(connection: Connection) -> None:
    """In a recovery each report comes behind a D-SACK block, as if the network doubled segments."""
    connection.grow(16)
    lost, *rest = connection.collect(0)
    _report(connection, rest[:4], lost.start)
    copy = (lost.start - connection.segment, lost.start)
    for item in rest[4:]:
        connection.send_odd(ack=lost.start, sack=[copy, (rest[0].start, item.end)])
    connection.collect(1.2 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(20)


@connected(*PIPE, "SNR-SAK-001", "SNR-SAK-003", needs=SACK, profiles=("rfc",), timestamps=True)
def test_flight_of_segments_more_holes_than_blocks(connection: Connection) -> None:
    """Nine holes: with timestamps an acknowledgment has room for three blocks.

    Three segments arrive above the first, so that their number shows the loss before time does.
    """
    _receive_flight(connection, 90, [1, *range(5, 21, 2)], window=16)


@connected(*PIPE[1:], needs=SACK, profiles=("rfc",))
def test_flight_of_segments_second_loss_in_recovery(connection: Connection) -> None:
    """New data that the recovery sends is lost as well, and a segment soon after its end."""
    connection.grow(16)
    base = connection.highest // connection.segment
    flight = (connection.highest - connection.delivered) // connection.segment
    losing = Counter([base + 1, base + 2 * flight + 2, base + 2 * flight + 9])
    connection.receive(base + 2 * flight + 60, losing=losing)


@connected(*PIPE[1:], "SNR-SAK-001", needs=SACK, profiles=("rfc",))
def test_flight_of_segments_reports_within_segments(connection: Connection) -> None:
    """Blocks and acknowledgments end within segments, as from a receiver that keeps octets."""
    connection.grow(16)
    batch = connection.collect(0)
    base, half = batch[0].start, connection.segment // 2
    ends = [item.end for item in batch[2:]]
    for end in ends:
        connection.ack(base + half, sack=[(batch[1].end + half, end)])
    connection.collect(0.8 * connection.rtt)
    connection.ack(batch[1].start + half, sack=[(batch[1].end + half, ends[-1])])
    take_round(connection)
    connection.reception.delivered = max(connection.delivered, ends[-1])
    connection.ack()
    connection.receive_more(20)


@connected(*PIPE[1:], needs=SACK, profiles=("rfc",))
def test_recovery_window_changes(connection: Connection) -> None:
    """The receiver's window grows and narrows by a few segments with each acknowledgment."""
    connection.grow(16)
    base = connection.delivered
    edge = connection.highest + 6 * connection.segment
    waiting = [segment for segment in connection.inbox if segment.has_data]
    connection.inbox.clear()
    for index, segment in enumerate(waiting):
        if index in (0, 5):
            continue
        connection.hold(segment)
        edge += (index % 3) * connection.segment // 2
        connection.ack(window=edge - base)
    connection.ack(window=1 << 20)
    connection.receive_more(60)


@connected("SNR-SAK-020", needs=SACK, profiles=("rfc",))
def test_timeout_in_recovery_then_reports(connection: Connection) -> None:
    """After a timeout during recovery, reports below RecoveryPoint begin no new recovery.

    The fast retransmission is lost, and the acknowledgments of what arrived come only when the
    timer has repeated the segment once more.
    """
    connection.grow(16)
    lost, *rest = connection.collect(0)
    for item in rest[:3]:
        connection.ack(lost.start, sack=[(rest[0].start, item.end)])
    await_again(connection, lost.start, "a fast retransmit")
    connection.discard(0)
    await_again(connection, lost.start, "a timeout", TIMEOUT_S)
    for item in rest[3:11]:
        connection.ack(lost.start, sack=[(rest[0].start, item.end)])
    connection.discard(0.5 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(20)


def _report(connection: Connection, segments: Sequence[Segment], hole: int) -> None:
    """Report segments held one by one, each together with those before it."""
    for item in segments:
        connection.ack(hole, sack=[(segments[0].start, item.end)])


@connected("SNR-SAK-020", needs=SACK, profiles=("rfc",))
def test_timeout_in_recovery_after_new_data(connection: Connection) -> None:
    """A timeout in a recovery that had sent new data: reports of that begin no new recovery.

    The fast retransmission is lost. When the timer has repeated it, the acknowledgment covers what
    was outstanding when the recovery began, and three reports follow of what it had sent then.
    """
    connection.grow(16)
    lost, *rest = connection.collect(0)
    _report(connection, rest, lost.start)
    await_again(connection, lost.start, "a fast retransmit")
    point = connection.highest
    await_again(connection, lost.start, "a timeout", TIMEOUT_S)
    size = connection.segment
    if connection.highest < point + 6 * size:
        raise NotReached("the recovery sent less than six segments of new data")
    connection.ack(point, sack=[])
    await_again(connection, point, "what follows the acknowledgment")
    for index in (3, 4, 5):
        left, right = point + 3 * size, point + (index + 1) * size
        connection.ack(point, sack=[(left, right)])
    connection.discard(0.8 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(20)


@connected("SNR-FR-003", needs=SACK)
def test_recovered_one_report(connection: Connection) -> None:
    """Right after the acknowledgment that ends a recovery, one report begins no other."""
    connection.grow(16)
    first, second, lost, *rest = connection.collect(0)
    # Not the first: a tail loss probe may have sent that long before the others.
    connection.ack(first.end, sack=[])
    connection.ack(second.end, sack=[])
    _report(connection, rest, lost.start)
    await_again(connection, lost.start, "a fast retransmit")
    point, size = connection.highest, connection.segment
    connection.collect(0.9 * connection.rtt)
    connection.ack(point, sack=[])
    connection.ack(point, sack=[(point + size, point + 2 * size)])
    connection.collect(0.5 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(20)


@connected(
    "SNR-SAK-019", needs=SACK, profiles=("rfc",), window=17 * SEGMENT, syn_window=17 * SEGMENT
)
def test_constant_window_rescue_lost(connection: Connection) -> None:
    """No new data may be sent, and the rescue retransmission is lost: it is not made again.

    Partial acknowledgments go on to make room.
    """
    connection.grow(16)
    base = connection.delivered // connection.segment
    connection.receive(base + 40, losing=Counter({base: 1, base + 3: 1, base + 6: 1, base + 15: 2}))


@connected(
    "SNR-SAK-018", needs=SACK, profiles=("rfc",), window=17 * SEGMENT, syn_window=17 * SEGMENT
)
def test_constant_window_two_rescues(connection: Connection) -> None:
    """Twice no new data may be sent, and the end of what is outstanding is lost beside a hole."""
    for _ in range(2):
        connection.grow(16)
        base = connection.delivered // connection.segment
        connection.receive(base + 40, losing=Counter({base: 1, base + 15: 1}))


@connected("SNR-SAK-008", needs=SACK, profiles=("hk99",))
def test_flight_of_segments_late_hole(connection: Connection) -> None:
    """A hole that becomes eligible when the inflated window already lets new data out.

    The acknowledgment that makes it eligible sends the retransmission and nothing else.
    """
    _receive_flight(connection, 60, [2, 24], window=12)


@connected("SNR-SAK-009", needs=SACK)
def test_recovery_retransmission_lost(connection: Connection) -> None:
    """A retransmission is lost as well: it is not repeated before that can be known."""
    _receive_flight(connection, 40, [2, 2, 6])


@connected("SNR-SAK-010", needs=SACK)
def test_two_recoveries_window_open(connection: Connection) -> None:
    """New data keeps the acknowledgment clock running during recovery.

    The second recovery meets a smaller window than was in flight before, so that the sender's
    buffer cannot be what holds it back.
    """
    _receive_flight(connection, 75, [2, 52])


@connected("SNR-SAK-002", needs=SACK)
def test_timeout_later_reports_of_held_data(connection: Connection) -> None:
    """What is reported held after a timeout is passed over.

    Four segments at the head of a flight are lost and no acknowledgment reaches the sender until
    its timer has repeated the first of them; then the others are reported held.
    """
    connection.grow(8)
    base = connection.delivered // connection.segment
    _lose_head(connection, base, 4)
    connection.ack()
    connection.receive(base + 24)


@connected("SNR-SAK-002", "SNR-RTO-009", needs=(*SACK, "tlp=no"))
def test_timeout_reports_of_the_middle(connection: Connection) -> None:
    """After a timeout the middle of a flight is reported held; both its ends are missing.

    What the acknowledgment has passed makes no more room.
    """
    connection.grow(16)
    batch = connection.discard(0)
    for item in batch[4:9]:
        connection.hold(item)
    end = connection.highest
    connection.take(await_again(connection, batch[0].start, "a timeout", TIMEOUT_S))
    connection.serve(lambda: connection.delivered >= end)
    connection.receive_more(12)


def _lose_head(connection: Connection, base: int, lost: int) -> None:
    """Keep silent until the first of ``lost`` segments from ``base`` on is retransmitted."""
    segment = connection.segment
    seen: set[int] = set()
    while True:
        what = f"a retransmission of offset {base * segment}"
        item = connection.expect(within=TIMEOUT_S, what=what)
        index = item.start // segment
        if base <= index < base + lost and item.start not in seen:
            seen.add(item.start)
            continue
        connection.hold(item)
        if index == base:
            return


@connected(
    "SNR-SAK-015", needs=SACK, profiles=("rfc",), window=12 * SEGMENT, syn_window=12 * SEGMENT,
)  # fmt: skip
def test_acknowledgments_lost_one_report(connection: Connection) -> None:
    """One acknowledgment that reports six segments above a hole starts recovery.

    The acknowledgments before it are lost, so no three duplicates arrive.
    """
    connection.receive(24)
    hole = connection.delivered
    for _ in range(7):
        item = connection.expect()
        if item.start != hole:
            connection.hold(item)
    connection.ack()
    take_round(connection, 1.5)
    connection.receive(40)


@connected("SNR-SAK-001", needs=SACK)
def test_flight_of_segments_four_blocks_at_once(connection: Connection) -> None:
    """The first report has four blocks, of every other segment; none is retransmitted.

    It comes three times. The other segments of the flight are lost.
    """
    connection.grow(16)
    batch = connection.discard(0)
    for at in (3, 5, 7, 9):
        connection.hold(batch[at])
    for _ in range(3):
        connection.ack()
    connection.receive(connection.highest // connection.segment + 10)


@connected("SNR-SAK-001", "SNR-SAK-018", needs=SACK, profiles=("rfc",))
def test_flight_of_segments_four_blocks_and_four_holes(connection: Connection) -> None:
    """The first report has four blocks, the lowest in the last place; all holes are repaired."""
    connection.grow(16)
    batch = connection.discard(0)
    for at in (1, 3, 5, *range(7, len(batch))):
        connection.hold(batch[at])
    connection.ack()
    connection.receive(connection.highest // connection.segment + 10)


@connected("SNR-SAK-015", needs=(*SACK, "rack=no"), profiles=("rfc",))
def test_flight_of_segments_three_blocks_at_once(connection: Connection) -> None:
    """The first report has three blocks, together just enough to show a loss."""
    connection.grow(16)
    first, _, *rest = connection.collect(0)
    connection.ack(first.end)
    blocks = [(item.start, item.end) for item in (rest[4], rest[2], rest[0])]
    connection.ack(first.end, sack=blocks)
    connection.collect(1.2 * connection.rtt)
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(6)


@connected("SNR-SAK-011", needs=SACK, window=8 * SEGMENT, syn_window=8 * SEGMENT)
def test_held_data_receiver_reneges(connection: Connection) -> None:
    """A receiver throws away what it had reported held; the sender still has it.

    After the hole is filled, the acknowledgment covers the hole alone and no report repeats.
    """
    connection.receive(24)
    hole = connection.delivered
    lost = False
    while True:
        item = connection.expect(within=TIMEOUT_S, what="the retransmission of the lost segment")
        if item.start <= hole < item.end and lost:
            break
        if item.start == hole:
            lost = True
            continue
        connection.take(item)
        if connection.delivered > hole:
            raise NotReached("the segment to lose never came")
    connection.reception.renege(item.end)
    connection.ack()
    for found in connection.arrivals(20.0 + 12 * connection.rtt):
        if found.start == connection.delivered:
            connection.take(found)
            break
    else:
        raise show_silence(connection, "the data was not retransmitted")
    connection.receive(36)


@connected("SNR-SAK-019", needs=SACK, profiles=("rfc",))
def test_recovery_repeats_what_the_one_before_did(connection: Connection) -> None:
    """Two segments above a recovery's end are lost, and their retransmissions within it as well.

    The recovery that follows has to repeat both once more.
    """
    connection.grow(16)
    first, second, *_, last = connection.discard(0)
    connection.ack(first.start, sack=[(second.start, last.start)])
    above = [item for item in connection.discard(1.3 * connection.rtt) if item.start >= last.end]
    if len(above) < 6:
        raise NotReached("too little new data was sent during the recovery")
    held = [(above[3].start, above[-1].end), (above[1].start, above[1].end)]
    connection.ack(last.start, sack=held)
    connection.discard(1.3 * connection.rtt)
    connection.ack(last.end, sack=held)
    connection.ack(last.end, sack=[(above[3].start, connection.highest), held[1]])
    for left, right in ((0, last.end), held[1], (above[3].start, connection.highest)):
        connection.reception.take(left, right)
    connection.receive(connection.highest // connection.segment + 24)


@connected(
    "SNR-SAK-019",
    needs=SACK,
    profiles=("rfc",),
    window_scale=None,
    window=8 * SEGMENT,
    syn_window=8 * SEGMENT,
)
def test_hole_of_two_segments_and_an_octet(connection: Connection) -> None:
    """What is missing of a flight ends with the first octet of a segment."""
    connection.grow(8)
    lost, _, third, *rest = connection.discard(0)
    for segment in rest:
        connection.ack(lost.start, sack=[(third.start + 1, segment.end)])
    connection.reception.take(third.start + 1, rest[-1].end)
    connection.receive(lost.start // connection.segment + 24)


@connected("SNR-SAK-011", needs=SACK, window_scale=None, window=8 * SEGMENT, syn_window=8 * SEGMENT)
def test_all_held_data_receiver_reneges(connection: Connection) -> None:
    """A receiver throws away everything above the hole, and repeats what is left to acknowledge.

    The window is full, so that nothing is outstanding that was not reported held, and the hole is
    filled before any timer expires.
    """
    connection.grow(8)
    lost, second, *_, last = connection.collect(0)
    connection.ack(lost.start, sack=[(second.start, last.end)])
    connection.collect(0.2)
    connection.reception.renege(lost.end)
    connection.ack(sack=[], window=last.end - lost.end)
    for _ in range(3):
        connection.ack(sack=[])
    for found in connection.arrivals(20.0 + 12 * connection.rtt):
        if found.start == connection.delivered:
            connection.take(found)
            break
    else:
        raise show_silence(connection, "the data was not retransmitted")
    connection.ack(window=8 * SEGMENT)
    connection.receive(lost.start // connection.segment + 24)


@dataclass(frozen=True, slots=True)
class Reneging(Row):
    """A flight of which the middle is reported held, and then thrown away.

    Attributes:
        before: timeouts before the report.
        after: timeouts after it, before the data below it arrives.
    """

    before: int = 0
    after: int = 1


RENEGING = (
    Reneging("report-timeout-renege", "The report comes before a timeout.",
             ("SNR-SAK-011",), SACK, None, 0, 1),
    Reneging("report-two-timeouts-renege", "The report comes before two timeouts in a row.",
             ("SNR-SAK-011",), SACK, None, 0, 2),
    Reneging("timeout-report-timeout-renege", "The report comes between two timeouts in a row.",
             ("SNR-SAK-011",), SACK, None, 1, 1),
    Reneging("two-timeouts-report-timeout-renege", "The report comes before a third timeout.",
             ("SNR-SAK-011",), SACK, None, 2, 1),
)  # fmt: skip
"""A timeout makes the sender forget (RFC 2018 section 8), be it the first of a row or not."""


def _renege(peer: Peer, row: Reneging) -> None:
    connection = peer.connect()
    connection.grow(12)
    batch = connection.discard(0)
    lost, held = batch[0], batch[4:8]
    for count in range(row.before):
        await_again(connection, lost.start, "a timeout", TIMEOUT_S * 2**count)
    connection.ack(lost.start, sack=[(held[0].start, held[-1].end)])
    for count in range(row.after):
        connection.discard(0.5)
        what, patience = "a timeout after the report", TIMEOUT_S * 2 ** (row.before + count)
        await_again(connection, lost.start, what, patience)
    connection.reception.delivered = held[0].start
    connection.ack(sack=[])
    again = await_again(connection, held[0].start, "what was held", 2 * TIMEOUT_S)
    connection.take(again)
    connection.receive(connection.highest // connection.segment + 4)


each(globals(), RENEGING, _renege)
