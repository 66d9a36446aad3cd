"""The sender's use of selective acknowledgments: what is repaired, when, and in which order."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

SEGMENT = 1460

SACK = ("sack_sender",)


def _grown(peer: Peer, window: int = 8) -> tuple[Connection, int]:
    """A connection in slow start, and the index of the first segment of its next flight.

    That flight comes as a burst, which the link spreads out: the acknowledgments are spaced by its
    rate.
    """
    connection = peer.connect()
    connection.grow(window)
    return connection, connection.highest // connection.segment


@case("SNR-SAK-004", "SNR-SAK-005", needs=SACK)
def test_flight_of_segments_one_lost(peer: Peer) -> None:
    """One hole in a flight: only the hole is retransmitted.

    Everything above the lost segment arrives and is reported held.
    """
    connection, base = _grown(peer)
    connection.receive(base + 36, losing=[base + 2])


@connected("SNR-SAK-006", needs=SACK, profiles=("rfc",), window=8 * SEGMENT, syn_window=8 * SEGMENT)
def test_constant_window_one_lost(connection: Connection) -> None:
    """Recovery begins at the threshold, not at the first report.

    The offered window keeps eight segments in flight, so that no queue hides how long the sender
    waited.
    """
    connection.receive(40, losing=[25])


@case(
    "SNR-SAK-001", "SNR-SAK-003", "SNR-SAK-005", "SNR-SAK-007", "SNR-SAK-008", "SNR-SAK-009",
    needs=SACK,
)  # fmt: skip
def test_flight_of_segments_four_lost(peer: Peer) -> None:
    """Several holes in a flight are repaired in order, in one round trip, once each."""
    connection, base = _grown(peer)
    connection.receive(base + 50, losing=[base + offset for offset in (1, 4, 7, 10)])


@case("SNR-SAK-001", "SNR-SAK-003", "SNR-SAK-008", "SNR-SAK-009", needs=SACK)
def test_flight_of_segments_runs_lost(peer: Peer) -> None:
    """Adjacent losses: runs of holes are repaired lowest first, one by one."""
    connection, base = _grown(peer)
    connection.receive(base + 50, losing=[base + offset for offset in (1, 2, 3, 6, 7)])


@case("SNR-SAK-008", needs=SACK, profiles=("hk99",))
def test_flight_of_segments_late_hole(peer: Peer) -> None:
    """A hole that becomes eligible when the inflated window already lets new data out.

    The acknowledgment that makes it eligible sends the retransmission and nothing else.
    """
    connection, base = _grown(peer, 12)
    connection.receive(base + 60, losing=[base + 2, base + 24])


@case("SNR-SAK-009", needs=SACK)
def test_recovery_retransmission_lost(peer: Peer) -> None:
    """A retransmission is lost as well: it is not repeated before that can be known."""
    connection, base = _grown(peer)
    connection.receive(base + 40, losing={base + 2: 2, base + 6: 1})


@case("SNR-SAK-010", needs=SACK)
def test_two_recoveries_window_open(peer: Peer) -> None:
    """New data keeps the acknowledgment clock running during recovery.

    The second recovery meets a smaller window than was in flight before, so that the sender's
    buffer cannot be what holds it back.
    """
    connection, base = _grown(peer)
    connection.receive(base + 75, losing=[base + 2, base + 52])


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


def _lose_head(connection: Connection, base: int, lost: int) -> None:
    """Keep silent until the first of ``lost`` segments from ``base`` on is retransmitted."""
    segment = connection.segment
    seen: set[int] = set()
    while True:
        item = connection.expect(within=30.0, what=f"a retransmission of offset {base * segment}")
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
    connection.collect(1.5 * connection.rtt)
    connection.ack()
    connection.receive(40)


@case("SNR-SAK-011", needs=SACK)
def test_held_data_receiver_reneges(peer: Peer) -> None:
    """A receiver throws away what it had reported held; the sender still has it.

    After the hole is filled, the acknowledgment covers the hole alone and no report repeats.
    """
    connection = peer.connect(window=8 * SEGMENT, syn_window=8 * SEGMENT)
    connection.receive(24)
    hole = connection.delivered
    lost = False
    while True:
        item = connection.expect(within=30.0, what="the retransmission of the lost segment")
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
    deadline = peer.now() + 20.0 + 12 * peer.rtt
    while (found := connection.next(deadline - peer.now())) is not None:
        if found.start == connection.delivered:
            connection.take(found)
            break
    else:
        connection.ack()
        peer.wait(peer.rtt)
        raise NotReached("the data was not retransmitted")
    connection.receive(36)
