"""The retransmission timer: when it expires, what it sends, and how it backs off."""

from __future__ import annotations

from itertools import product

from bentpipe_reference.common.rtt import RttEstimator

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import (
    PLAIN,
    SACK,
    TIMEOUT_S,
    await_again,
    await_retransmissions,
    show_silence,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection, Segment
from bentpipe_conformance.protocols.tcp.peer import Peer

SMALL_WINDOW = 35 << 7
"""Octets for three segments, so that ten round trips take few packets."""


def _fail_for_four_timeouts(connection: Connection) -> None:
    """After ten round trips lose everything for four timeouts, then receive on."""
    connection.receive(30)
    lost = connection.expect().start
    connection.discard(0)
    outstanding = connection.highest
    connection.take(await_retransmissions(connection, lost, 4))
    connection.receive(outstanding // connection.segment + 6)


@connected(
    "SNR-RTO-001", "SNR-RTO-002", "SNR-RTO-006", "SNR-RTO-007", "SNR-RTO-008", "SNR-RTO-009",
    "SNR-RTO-012", sack=False, timestamps=True, window=SMALL_WINDOW, syn_window=SMALL_WINDOW,
)  # fmt: skip
def test_silence_timeouts_in_a_row(connection: Connection) -> None:
    """The link fails for four timeouts: each sends one segment, each waits twice as long.

    Without SACK no other timer can interfere. Ten round trips before, measured with timestamps
    where supported, let the timeout settle.
    """
    _fail_for_four_timeouts(connection)


@connected(
    "SNR-RTO-001", "SNR-RTO-002", "SNR-RTO-006", "SNR-RTO-007", "SNR-RTO-008", needs=("sack",),
    timestamps=True, window=SMALL_WINDOW, syn_window=SMALL_WINDOW,
)  # fmt: skip
def test_silence_timeouts_in_a_row_with_sack(connection: Connection) -> None:
    """The same with SACK and timestamps, where tail loss probes may come first."""
    _fail_for_four_timeouts(connection)


@connected("SNR-RTO-010", sack=False, timestamps=True, window=SMALL_WINDOW, syn_window=SMALL_WINDOW)
def test_late_acknowledgment_then_silence(connection: Connection) -> None:
    """An acknowledgment that comes just before the timer would expire restarts it."""
    connection.receive(30)
    first = connection.expect()
    connection.wait(0.15)
    connection.take(first)
    await_retransmissions(connection, connection.delivered, 1, seen=True)


@connected("SNR-RTO-010", needs=(*SACK, *PLAIN), window=SMALL_WINDOW, syn_window=SMALL_WINDOW)
def test_late_acknowledgment_with_a_block_then_silence(connection: Connection) -> None:
    """The same with SACK; the acknowledgment also reports a segment held above a gap."""
    connection.receive(30)
    first, _, third = (connection.expect() for _ in range(3))
    connection.wait(0.15)
    connection.hold(third)
    connection.take(first)
    connection.discard(0)
    await_retransmissions(connection, connection.delivered, 1)


@case("SNR-RTO-006", needs=PLAIN)
def test_recovery_timeouts_in_a_row(peer: Peer) -> None:
    """The link fails within a recovery: the first timeout too doubles the next one."""
    for sack in (False, True):
        connection = peer.connect(sack=sack)
        connection.grow(12)
        lost, *rest = connection.collect(0)
        for item in rest[:3]:
            connection.ack(lost.start, sack=[(rest[0].start, item.end)] if sack else None)
        await_again(connection, lost.start, "a fast retransmit")
        await_retransmissions(connection, lost.start, 3)
        connection.abort()


@connected("SNR-RTO-001", "SNR-RTO-011", "SNR-CON-038", to="echo")
def test_tail_lost(connection: Connection) -> None:
    """The only segment in flight is lost; nothing after it could report that."""
    connection.send_data(400)
    reply = connection.expect(what="the echo")
    again = connection.next(TIMEOUT_S)
    while again is not None and again.start != reply.start:
        again = connection.next(TIMEOUT_S)
    if again is None:
        raise show_silence(connection, f"{TIMEOUT_S:.0f} s passed without a retransmission")
    connection.take(again)


LATE_RTTS = ((0.0,), (0.0,) * 6, (0.0, 0.65, 1.5, 2.3), (0.0, 1.3, 2.0, *(0.0,) * 20))
"""Round trips by which acknowledgments are late before one segment is lost; a connection each.

The first two show RTTVAR's first value and how it falls, the third how both averages rise, the last
how both fall again; none of them makes the timer expire.
"""


MOST_TIMEOUTS = 17
"""More than any implementation in use lets pass in a row before it gives up (Linux 15)."""


def _exchange(connection: Connection, late: float) -> Segment:
    """Have one segment echoed and acknowledge it late; the pause after it stops the timer."""
    connection.send_data(100)
    reply = connection.expect(what="the echo")
    connection.wait(late)
    connection.take(reply)
    connection.wait(0.8)
    return reply


def _lose_echo(connection: Connection, timeouts: int) -> None:
    """Have one segment echoed that is lost until so many timeouts have passed."""
    connection.send_data(100)
    reply = connection.expect(what="the echo")
    connection.take(await_retransmissions(connection, reply.start, timeouts))


@case("SNR-RTO-015", "SNR-RTO-016")
def test_lone_segments_measured_then_lost(peer: Peer) -> None:
    """One segment at a time is acknowledged after known times, then one is lost.

    On several connections without SACK and timestamps, so that every implementation takes the same
    measurements and its timeout can be computed.
    """
    for samples in LATE_RTTS:
        connection = peer.connect("echo", sack=False)
        for late in samples:
            _exchange(connection, late * peer.rtt)
        _lose_echo(connection, 1)
        connection.abort()


BACKED_OFF = ((1, 4, 2), (10, 2, 1))
"""Segments measured before back-off, timeouts in a row, and segments measured after it."""


@case("SNR-RTO-016", "SNR-RTO-006")
def test_lone_segments_back_off_then_measured(peer: Peer) -> None:
    """Back-off over several timeouts collapses once a segment or two have been measured again.

    After ten measurements the timeout is at its minimum.
    """
    for before, timeouts, after in BACKED_OFF:
        connection = peer.connect("echo", sack=False)
        for _ in range(before):
            _exchange(connection, 0.0)
        _lose_echo(connection, timeouts)
        connection.wait(0.8)
        for _ in range(after):
            _exchange(connection, 0.0)
        _lose_echo(connection, 1)
        connection.abort()


@connected("SNR-RTO-013", sack=False)
def test_repeated_timeouts_ambiguous_acknowledgment(connection: Connection) -> None:
    """The acknowledgment of a retransmitted segment does not end the back-off.

    Without SACK and timestamps it cannot tell which copy it answers. After it the link fails
    once more, and the next timeout shows which value was in force.
    """
    connection.grow(5)
    outstanding = connection.highest
    lost = connection.delivered
    connection.discard(0)
    connection.take(await_retransmissions(connection, lost, 2))
    connection.take(await_retransmissions(connection, connection.delivered, 1, seen=True))
    connection.receive(outstanding // connection.segment + 4)


@case("SNR-RTO-013")
def test_lone_segments_lost_one_after_another(peer: Peer) -> None:
    """Lone segments are lost in turn, once or twice each: their repairs measure nothing.

    Without SACK and timestamps, after no round trip that is a measurement, after one and after two.
    """
    for samples, timeouts in ((1, 1), (2, 2), (0, 1)):
        connection = peer.connect("echo", sack=False)
        for _ in range(samples):
            _exchange(connection, 0.0)
        _lose_echo(connection, timeouts)
        connection.wait(0.8)
        _lose_echo(connection, 1)
        connection.abort()


@case("SNR-RTO-013")
def test_repeated_timeouts_repair_acknowledged(peer: Peer) -> None:
    """Acknowledgments of all that timeouts and the slow start after them repeat measure nothing.

    Without SACK and timestamps; on one connection each copy is acknowledged for itself, on another
    those of a round trip together. Then the link fails once more.
    """
    for together, rounds in product((False, True), (1, 2)):
        connection = peer.connect(sack=False)
        connection.grow(12)
        lost = connection.delivered
        connection.discard(0)
        connection.take(await_retransmissions(connection, lost, 2))
        for _ in range(rounds):
            connection.await_round()
            if together:
                connection.collect(0)
                connection.ack()
                continue
            for item in [item for item in connection.inbox if item.has_data]:
                connection.take(item)
            connection.inbox.clear()
        connection.await_round()
        connection.discard(0)
        await_retransmissions(connection, connection.delivered, 1)
        connection.abort()


@connected("SNR-RTO-014", "SNR-RTO-006", sack=False)
def test_silence_of_two_minutes(connection: Connection) -> None:
    """The link fails for longer than a satellite's hand-over; then the connection goes on."""
    connection.grow(3)
    lost = connection.delivered
    connection.discard(0)
    began = connection.peer.now()
    while True:
        segment = await_retransmissions(connection, lost, 1, within=250.0)
        if connection.peer.now() - began > 101:
            break
    connection.take(segment)
    connection.receive(lost // connection.segment + 6)


@connected(
    "SNR-RTO-011", needs=("timestamps",), to="echo", sack=False, timestamps=True, aborted=True
)
def test_many_timeouts_all_answered(connection: Connection) -> None:
    """Segment after segment is lost once: no count of timeouts survives an acknowledgment."""
    for _ in range(MOST_TIMEOUTS):
        _lose_echo(connection, 1)


@case("SNR-RTO-003", "SNR-RTO-004", "SNR-OPT-020")
def test_handshake_unanswered_syn_ack(peer: Peer) -> None:
    """The SYN-ACK is not acknowledged for a while."""
    connection = peer.begin()
    peer.wait(16)
    connection.establish()
    connection.receive(3)


@case("SNR-RTO-005", profiles=("rfc",))
def test_handshake_lost_then_data_lost(peer: Peer) -> None:
    """The SYN-ACK was repeated, and the first data is lost: the timeout starts at three seconds.

    On one connection the SYN-ACK is repeated once if its timer begins with a second, on the other
    more often, or for the first time if the timer begins with three; on the last its back-off has
    gone beyond that.
    """
    for silence in (1.5, 3.5, 7.5):
        connection = peer.begin(sack=False)
        peer.wait(peer.rtt + silence)
        connection.establish()
        lost = connection.expect()
        connection.discard(0.1)
        connection.take(await_retransmissions(connection, lost.start, 1))
        connection.abort()


@connected(
    "SNR-RTO-016", needs=("timestamps",), to="echo", sack=False, timestamps=True, aborted=True
)
def test_old_timestamps_echoed_then_lost(connection: Connection) -> None:
    """What acknowledges nothing new echoes an old timestamp, and is no measurement.

    Once in a request after a long pause, once in a pure acknowledgment; then an echo is lost.
    """
    for pause in (3.0, 4.0):
        _exchange(connection, 0.0)
        connection.wait(pause)
        connection.ack()
        connection.wait(0.8)
    _lose_echo(connection, 1)


def _interrupt(connection: Connection, start: int, kind: str) -> None:
    """Amid timeouts of the data at ``start``, send what acknowledges nothing new, and lose on."""
    await_retransmissions(connection, start, 3)
    if kind == "data":
        connection.send_data(10)
    elif kind == "window":
        connection.ack(window=1 << 19)
    else:
        connection.ack(sack=[(start + 50, start + 60)] if kind == "report" else [])
    connection.take(await_retransmissions(connection, start, 2, within=4 * TIMEOUT_S))


@case("SNR-RTO-006")
def test_timeouts_in_a_row_amid_duplicates(peer: Peer) -> None:
    """Between two timeouts an acknowledgment comes that acknowledges nothing new.

    It is no measurement, so that the timeouts go on doubling. On one connection it is pure, on
    others it comes with data, with another window, or with a report of held data; each once with
    timestamps, of which it echoes an old one.
    """
    for kind, timestamps in product(("", "data", "window", "report"), (False, True)):
        connection = peer.connect("echo", sack=kind == "report", timestamps=timestamps)
        _exchange(connection, 0.0)
        connection.send_data(100)
        reply = connection.expect(what="the echo")
        _interrupt(connection, reply.start, kind)
        connection.abort()


@case("SNR-RTO-015")
def test_handshake_repeated_needlessly_then_data_lost(peer: Peer) -> None:
    """The SYN comes again just before the SYN-ACK is acknowledged, which is then no measurement.

    After one round trip that is one, a lone segment is lost.
    """
    connection = peer.begin("echo", sack=False)
    connection.await_answer("SYN-ACK")
    connection.send_syn()
    connection.ack()
    peer.wait(2 * peer.rtt)
    _exchange(connection, 0.0)
    _lose_echo(connection, 1)
    connection.abort()


def _request(connection: Connection) -> None:
    """Have a full-sized segment echoed, which Nagle's rule does not hold."""
    assert connection.syn_ack is not None
    connection.send_data(min(connection.syn_ack.mss or 536, SEGMENT))


def _same(connection: Connection, _: int) -> None:
    connection.ack()


def _window_update(connection: Connection, turn: int) -> None:
    connection.ack(window=(1 << 19) + (turn << 12))


def _data(connection: Connection, _: int) -> None:
    _request(connection)


def _small_data(connection: Connection, _: int) -> None:
    connection.send_data(1, at=0)


def _report(connection: Connection, turn: int) -> None:
    held = connection.delivered + SEGMENT
    connection.ack(sack=[(held, held + 60 * (turn + 1))] if connection.sack else None)


def _older(connection: Connection, _: int) -> None:
    connection.ack(connection.delivered - 60)


def _duplicate_report(connection: Connection, _: int) -> None:
    delivered = connection.delivered
    connection.ack(sack=[(delivered - 60, delivered)] if connection.sack else None)


POSTPONING = {
    "the same acknowledgment": _same, "a window update": _window_update,
    "a full segment": _data, "an old octet": _small_data, "a report of held data": _report,
    "an older acknowledgment": _older, "a report of a duplicate": _duplicate_report,
}  # fmt: skip
"""What restarts no retransmission timer, although it arrives, or has new data leave."""


@case("SNR-RTO-016", needs=PLAIN)
def test_loss_amid_what_restarts_no_timer(peer: Peer) -> None:
    """The first of a few segments is lost, and other things arrive before its timer expires.

    They come every quarter of a second: each of POSTPONING on a connection of its own, with SACK
    and without, and some after the tester has closed its side.
    """
    for happen, sack, closed in product(POSTPONING.values(), (False, True), (False, True)):
        if closed and happen in (_data, _small_data):
            continue
        connection = peer.connect("echo", sack=sack)
        for _ in range(6):
            _exchange(connection, 0.0)
        for _ in range(3):
            _request(connection)
        if closed:
            connection.send(flags=ACK | FIN)
        first = connection.expect(what="the echo").start
        for turn in range(20):
            connection.wait(0.25)
            happen(connection, turn)
        connection.inbox.clear()
        connection.take(await_again(connection, first, "a timeout", TIMEOUT_S))
        connection.abort()


@case("SNR-RTO-016", needs=PLAIN)
def test_recovery_whose_repair_is_lost(peer: Peer) -> None:
    """What recovery repeats is lost again and again while all else arrives.

    Neither new data nor the reports of what arrives restart the timer. On one connection the first
    segment of a window is lost so, on another one that a partial acknowledgment shows missing.
    """
    for sack, partial in product((False, True), (False, True)):
        connection = peer.connect(sack=sack)
        connection.grow(12)
        lost = connection.delivered // connection.segment
        losing = {lost: 1, lost + 4: 3} if partial else {lost: 3}
        connection.receive(lost + 40, losing=losing, within=TIMEOUT_S)
        connection.abort()


@case("SNR-RTO-016", needs=PLAIN)
def test_timeouts_then_measured_and_lost(peer: Peer) -> None:
    """After timeouts the first measurement restarts the timer, with the timeout that it gives.

    A lone segment is lost until its timeout is backed off. Of the two segments after it the first
    is acknowledged, which is a measurement, and the second is lost.
    """
    for sack in (False, True):
        connection = peer.connect("echo", sack=sack)
        for _ in range(6):
            _exchange(connection, 0.0)
        _request(connection)
        lost = connection.expect(what="the echo")
        connection.take(await_retransmissions(connection, lost.start, 3))
        connection.wait(0.8)
        for _ in range(2):
            _request(connection)
        connection.take(connection.expect())
        connection.discard(0)
        connection.take(await_retransmissions(connection, connection.delivered, 1, seen=True))
        connection.abort()


SLOW_HANDSHAKE_S = 0.95
"""The first round trip: below the second after which a SYN-ACK is repeated. The timeout after it is
three times as long (RFC 6298 rule 2.2)."""


@case("SNR-RTO-016", needs=PLAIN)
def test_repaired_by_duplicates_long_after_sending(peer: Peer) -> None:
    """A lone segment is lost, and what shows that leaves just before its timer would expire.

    Without timestamps, the acknowledgment of its fast retransmission measures nothing. A slow
    handshake has made the timeout long. The next segment, or one after two measurements, is lost
    and shows the timeout.
    """
    for sack, measured in product((False, True), (0, 2)):
        connection = peer.begin("echo", sack=sack)
        connection.await_answer("SYN-ACK")
        peer.wait(max(0.0, SLOW_HANDSHAKE_S - peer.rtt))
        connection.ack()
        _exchange(connection, 0.0)
        _request(connection)
        lost = connection.expect(what="the echo")
        estimator = RttEstimator(initial=1.0, minimum=1.0, maximum=60.0, granularity=0.0)
        for sample in (max(peer.rtt, SLOW_HANDSHAKE_S), peer.rtt):
            estimator.sample(sample)
        connection.wait(estimator.rto - 2 * peer.rtt - 0.25)
        for _ in range(4):
            _request(connection)
        batch = [connection.expect(what="the echo") for _ in range(4)]
        for item in batch:
            connection.ack(lost.start, sack=[(batch[0].start, item.end)] if sack else None)
        await_again(connection, lost.start, "a fast retransmit")
        connection.reception.take(lost.start, connection.highest)
        connection.ack()
        connection.wait(0.8)
        for _ in range(measured):
            _exchange(connection, 0.0)
        _lose_echo(connection, 1)
        connection.abort()


@case("SNR-RTO-016", needs=PLAIN)
def test_measured_by_what_carries_data_then_lost(peer: Peer) -> None:
    """A window of a segment: each is acknowledged on data of the tester, which measures as well.

    The first ones have no other measurement; later timeouts are backed off before two more. Without
    timestamps and with them.
    """
    for timestamps in (False, True):
        connection = peer.connect(
            sack=False, timestamps=timestamps, window_scale=None, **_offer(SEGMENT)
        )
        connection.bearing = 4
        for measured, timeouts in ((12, 3), (2, 1), (3, 1)):
            for _ in range(measured):
                connection.take(connection.expect())
            lost = connection.expect()
            connection.take(await_retransmissions(connection, lost.start, timeouts))
        connection.abort()


def _offer(window: int) -> dict[str, int]:
    return {"window": window, "syn_window": window}


@case("SNR-RTO-016", needs=PLAIN)
def test_first_flight_lost_amid_two_duplicates(peer: Peer) -> None:
    """Of the first flight only the first segment is acknowledged; two late duplicates follow.

    The new data that limited transmit sends on them does not restart the timer, which is long while
    the first measurement counts.
    """
    for sack in (False, True):
        connection = peer.connect(sack=sack)
        first = connection.expect()
        connection.take(first)
        connection.discard(0.2)
        later = first.end + connection.segment
        for turn in range(2):
            connection.wait(0.65)
            held = [(later, later + (turn + 1) * connection.segment)]
            connection.ack(sack=held if sack else None)
        connection.discard(0)
        connection.take(await_again(connection, first.end, "a timeout", TIMEOUT_S))
        connection.abort()
