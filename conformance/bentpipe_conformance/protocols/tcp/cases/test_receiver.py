"""The implementation as a receiver of the tester's data."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import DISTANT_S, PAUSE_S
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, SYN
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

UNIT = 100
"""Octets of the small segments most scripts are made of."""

SMALL_MSS = 100
"""Octets of segments of which two come within any delayed acknowledgment on every link: 22 ms apart
at 50 kb/s."""

APART_S = 0.1
"""Seconds between segments that are to be answered one by one."""

WRAPPING, HALFWAY = MODULUS - 451, MODULUS // 2 - 451
"""Initial sequence numbers that let the small segments of a script cross 2^32 and 2^31."""

AT_ONCE = 24
"""Segments that every link's queue has room for."""

LONGEST_S = 30.0
"""Longer than the slowest link takes for all that a script sends."""


def _send_units(connection: Connection, *units: int, apart: float = APART_S) -> None:
    """Send small segments by index, so far apart that each is answered before the next."""
    for unit in units:
        connection.send_data(UNIT, at=unit * UNIT)
        connection.next_offset = max(connection.next_offset, (unit + 1) * UNIT)
        connection.wait(apart)


def _await_acknowledgment(connection: Connection) -> None:
    """Wait until everything sent is acknowledged, then for any delayed acknowledgment."""
    connection.peer.pump_until(lambda: connection.acked >= connection.next_offset, LONGEST_S)
    connection.wait(PAUSE_S)


def _conclude(connection: Connection, after: int) -> None:
    """Send one more segment at unit ``after`` when every delayed answer must have come."""
    connection.wait(PAUSE_S)
    _send_units(connection, after, apart=PAUSE_S)
    connection.ack()


@connected(
    "SNR-RCV-001", "SNR-RCV-002", "SNR-RCV-005", "SNR-RCV-006", "SNR-RCV-007", "SNR-RCV-008",
    "SNR-RCV-009", "SNR-RCV-010", "SNR-RCV-019", "SNR-RCV-020", "SNR-RCV-022", to="discard",
    iss=HALFWAY,
)  # fmt: skip
def test_established_one_gap_opened_and_filled(connection: Connection) -> None:
    """One segment comes late: each one beyond the gap and the late one are answered at once.

    The tester's numbers pass 2^31 meanwhile.
    """
    _send_units(connection, 0, 2, 3, 4, 5, 1)
    _conclude(connection, 6)


@connected(
    "SNR-RCV-001", "SNR-RCV-002", "SNR-RCV-020", "SNR-RCV-022", to="discard", sack=False,
    iss=WRAPPING,
)  # fmt: skip
def test_without_sack_one_gap_opened_and_filled(connection: Connection) -> None:
    """Without SACK, too, out-of-order data and data that fills a gap are answered at once.

    The tester's numbers wrap meanwhile.
    """
    _send_units(connection, 0, 2, 3, 4, 1)
    _conclude(connection, 5)


@connected(
    "SNR-RCV-007", "SNR-RCV-008", "SNR-RCV-009", "SNR-RCV-010", "SNR-RCV-011", "SNR-RCV-012",
    needs=("sack_receiver",), to="discard", iss=WRAPPING,
)  # fmt: skip
def test_established_several_gaps(connection: Connection) -> None:
    """Several gaps at once: which blocks are reported, in which order, and how they merge.

    The gaps are filled in an order that joins old blocks, so that the latest block is not always
    the highest. The tester's numbers wrap within the blocks.
    """
    _send_units(connection, 0, 2, 4, 6, 8, 3, 10, 12, 7, 1, 11, 5, 9)
    _conclude(connection, 13)


@connected(
    "SNR-RCV-010", "SNR-RCV-011", "SNR-RCV-012", "SNR-TS-001", "SNR-OPT-004",
    needs=("sack_receiver",), to="discard", timestamps=True,
)  # fmt: skip
def test_timestamps_negotiated_several_gaps(connection: Connection) -> None:
    """With timestamps only three blocks fit: the latest three are reported, of five at most."""
    _send_units(connection, 0, 2, 4, 6, 8, 10, 3, 12, 1, 5, 7, 9, 11)
    _conclude(connection, 13)


@case("SNR-RCV-030", needs=("sack_receiver", "recalls_blocks"))
def test_more_gaps_than_blocks_fit(peer: Peer) -> None:
    """More blocks are held than fit; then the latest go, by being joined or acknowledged.

    What was pushed out of the option comes back: the gaps are filled from below, from above, or
    by one segment that covers several; with and without timestamps.
    """
    for timestamps in (False, True):
        for held, filling in (
            ((2, 4, 6, 8, 10, 12), (11, 9, 7, 5)),
            ((12, 10, 8, 6, 4, 2), (1, 3, 5, 7)),
            ((2, 4, 6, 8, 10, 12, 14), (13, 3, 11, 5, 7)),
        ):
            connection = peer.connect("discard", timestamps=timestamps)
            _send_units(connection, 0, *held, *filling)
            _conclude(connection, max(held) + 2)
            connection.abort()
        connection = peer.connect("discard", timestamps=timestamps)
        _send_units(connection, 0, 2, 4, 6, 8, 10, 12)
        connection.send_data(9 * UNIT, at=4 * UNIT)
        connection.wait(PAUSE_S)
        _send_units(connection, 3)
        _conclude(connection, 14)
        connection.abort()


@connected("SNR-RCV-003", "SNR-RCV-005", "SNR-RCV-017", to="discard")
def test_established_single_small_segments(connection: Connection) -> None:
    """A small segment that nothing follows is acknowledged within half a second."""
    _send_units(connection, 0, 1, 2, apart=PAUSE_S)
    _conclude(connection, 3)


@connected("SNR-RCV-003", "SNR-RCV-004", "SNR-RCV-017", to="discard")
def test_established_stream_of_full_segments(connection: Connection) -> None:
    """Of a stream of full-sized segments every second is acknowledged at its arrival.

    First with pauses shorter than a delayed acknowledgment between them, then twice three that
    nothing follows, then many as the link goes.
    """
    _stream(connection)


@connected("SNR-RCV-003", "SNR-RCV-004", to="discard", timestamps=True)
def test_timestamps_negotiated_stream_of_full_segments(connection: Connection) -> None:
    """The same with timestamps, which take room in each: the third makes up for twice the MSS."""
    _stream(connection)


@connected("SNR-RCV-003", "SNR-RCV-005", "SNR-RCV-023", to="discard", mss=SMALL_MSS)
def test_stream_of_segments_over_a_small_mtu(connection: Connection) -> None:
    """Segments as small as the MTU that the tester announces come closely on a thin channel, too.

    Delayed acknowledgments wait for longer than the next takes, so that two can share one.
    """
    for _ in range(40):
        connection.send_data(SMALL_MSS, flags=ACK)
    _await_acknowledgment(connection)
    connection.ack()


def _full_size(connection: Connection) -> int:
    """Octets of the largest segment that the implementation takes and the link carries."""
    assert connection.syn_ack is not None
    return min(connection.syn_ack.mss or 536, 1460) - (12 if connection.timestamps else 0)


def _stream(connection: Connection) -> None:
    size = _full_size(connection)
    for apart, segments in ((0.05, 10), (0.0, 3), (0.0, 3), (0.0, 40)):
        for _ in range(segments):
            connection.send_data(size, flags=ACK)
            connection.wait(apart)
        _await_acknowledgment(connection)
    connection.ack()


@connected(
    "SNR-RCV-013", "SNR-RCV-014", "SNR-RCV-005", "SNR-RCV-020", "SNR-RCV-024", "SNR-RCV-031",
    to="discard", iss=WRAPPING,
)  # fmt: skip
def test_established_duplicate_segments(connection: Connection) -> None:
    """Segments that came before, in sequence or held above a gap, are acknowledged again.

    Others overlap what came before on either side, or are held in part. The numbers wrap.
    """
    _send_units(connection, 0, 1, apart=PAUSE_S)
    _send_units(connection, 0, 1, 3, apart=PAUSE_S)
    _send_units(connection, 3, 0, 2, apart=PAUSE_S)
    for at, octets in ((350, 100), (380, 40), (430, 60), (600, 100), (550, 100), (650, 100)):
        connection.send_data(octets, at=at)
        connection.wait(PAUSE_S)
    connection.send_data(50, at=770)  # a second block
    connection.wait(PAUSE_S)
    connection.send_data(50, at=600)  # a duplicate in the first
    connection.wait(PAUSE_S)
    connection.send_data(260, at=490)
    connection.wait(PAUSE_S)
    connection.send_data(100, at=740)
    connection.next_offset = 900
    connection.send_data(80, at=820)
    _conclude(connection, 9)


@connected("SNR-RCV-015", "SNR-RCV-016", to="discard")
def test_established_data_beyond_the_window(connection: Connection) -> None:
    """A segment far beyond the offered window is answered and not kept."""
    _send_units(connection, 0, apart=PAUSE_S)
    assert connection.syn_ack is not None
    beyond = 3 * max(connection.iut_window, connection.syn_ack.window) + 10000
    connection.send_data(UNIT, at=beyond)
    connection.wait(PAUSE_S)
    _send_units(connection, 1, 3, 2, apart=PAUSE_S)
    _conclude(connection, 4)


@connected("SNR-RCV-017", to="discard")
def test_established_window_while_data_is_held(connection: Connection) -> None:
    """Data held above a gap takes nothing away from the window that was offered."""
    for unit in (0, 1, *range(3, 13), 2):
        connection.send_data(500, at=unit * 500)
        connection.wait(0.02)
    connection.next_offset = 13 * 500
    _await_acknowledgment(connection)
    connection.ack()


@case("SNR-RCV-001", "SNR-RCV-006")
def test_fin_arrives_before_the_data_below_it(peer: Peer) -> None:
    """A FIN above a gap, with data or alone, is not acknowledged before the gap is filled."""
    for octets in (UNIT, 0):
        connection = peer.connect("discard")
        _send_units(connection, 0)
        connection.send(pattern(2 * UNIT, octets), flags=ACK | PSH | FIN, at=2 * UNIT)
        peer.wait(PAUSE_S)
        connection.send_data(UNIT, at=UNIT)
        peer.wait(peer.rtt + PAUSE_S)
        connection.send(at=2 * UNIT + octets + 1)


ECHOED = (
    (0, 170), (340, 170), (510, 170), (170, 170),  # one late
    (680, 170), (680, 170), (600, 300), (850, 100),  # twice, overlapping on both sides, inside
    (1400, 200), (1200, 100), (1100, 400), (950, 150),  # the middle of a gap with both its edges
    (1800, 100), (1700, 50), (1650, 300), (1600, 50),  # one that covers two held ones
)  # fmt: skip
"""(offset, octets) of the segments the echo service gets; together they cover 0 to 1950."""


@connected("SNR-RCV-018", "SNR-RCV-005", "SNR-RCV-006", to="echo")
def test_echo_after_reordering_duplication_and_overlap(connection: Connection) -> None:
    """The echo service returns exactly the octets sent, however their segments were cut."""
    for at, octets in ECHOED:
        connection.send_data(octets, at=at)
        connection.wait(0.03)
    connection.next_offset = total = max(at + octets for at, octets in ECHOED)
    connection.serve(lambda: connection.delivered >= total, within=60 + 20 * connection.rtt)


@connected(
    "SNR-RCV-018", "SNR-RCV-006", "SNR-WIN-011", to="echo", iss=MODULUS - 2000,
)  # fmt: skip
def test_echo_of_tiny_segments(connection: Connection) -> None:
    """Segments of one to three octets are echoed, in order and out of it, while the numbers wrap.

    The tester acknowledges nothing before the end, so that Nagle's algorithm has to wait.
    """
    at = 0
    for octets in (1, 1, 2, 3, 1, 2):
        connection.send_data(octets)
        connection.wait(0.05)
    at = connection.next_offset
    for start in (at + 2, at + 1, at):
        connection.send_data(1, at=start)
        connection.wait(0.05)
    connection.next_offset = at + 3
    connection.serve(lambda: connection.delivered >= at + 3)
    connection.send_data(1400)
    connection.serve(lambda: connection.delivered >= at + 1403)
    connection.send_data(1400)
    connection.serve(lambda: connection.delivered >= at + 2803)


@connected("SNR-WIN-011", to="echo", sack=False, rtt=DISTANT_S)
def test_echo_of_tiny_segments_during_a_repair(connection: Connection) -> None:
    """Octets come one by one while a loss is repaired: what they echo leaves together, behind it.

    Duplicates go on, so that the window would let each out.
    """
    for _ in range(12):
        connection.send_data(SEGMENT)
    connection.serve(lambda: connection.highest >= 10 * connection.segment, losing=[2])
    for _ in range(4):
        connection.send_data(1)
        connection.wait(0.05)
        connection.ack()
    octets = connection.next_offset
    connection.serve(lambda: connection.delivered >= octets)


@connected("SNR-WIN-011", to="echo", rtt=DISTANT_S, window=2560, syn_window=2560)
def test_echo_of_half_a_small_window(connection: Connection) -> None:
    """With 600 octets unacknowledged, more than half of the window and less than a segment waits.

    The tester never offers more than 2560 octets; it acknowledges nothing before the end.
    """
    connection.send_data(1400)
    connection.serve(lambda: connection.delivered >= 1400)
    for octets in (600, 1300):
        connection.send_data(octets)
        connection.wait(0.05)
    connection.serve(lambda: connection.delivered >= 3300)


def close_window(
    connection: Connection, beyond: int = 0, flags: int = ACK | PSH, size: int = 1400,
    at_once: int = AT_ONCE,
) -> int:  # fmt: skip
    """Fill the window of an echo service that cannot write to the last octet.

    Segments of ``size`` octets fill it, ``at_once`` before an acknowledgment. The last one has
    these flags and ends ``beyond`` octets behind it; if it is refused, one comes that does not.
    Returns the offset at which it ends.
    """
    connection.ack(window=0)
    _fill(connection, size, at_once)
    wait = connection.rtt + PAUSE_S
    edge = connection.acked + connection.iut_window
    if edge > connection.next_offset:
        connection.send_data(edge - connection.next_offset + beyond, flags=flags)
        connection.wait(wait)
        connection.next_offset = max(edge, connection.acked)
    if beyond and connection.acked < edge:
        connection.send_data(edge - connection.acked, at=connection.acked)
        connection.wait(wait)
    return edge + beyond


def _fill(connection: Connection, size: int, at_once: int) -> None:
    """Send until the implementation's window has no room for ``size`` octets, and go on waiting."""
    full = 0
    while full < 3:
        edge = connection.acked + connection.iut_window
        fits = edge - connection.next_offset >= size
        if fits and connection.next_offset - connection.acked < at_once * size:
            connection.send_data(size)
            full = 0
        elif not connection.peer.pump(connection.peer.now() + connection.rtt + PAUSE_S):
            full += 1


@connected(
    "SNR-RCV-021", "SNR-RCV-025", "SNR-RCV-026", "SNR-RCV-004", "SNR-RCV-017", "SNR-RCV-018",
    "SNR-RCV-020", to="echo",
)  # fmt: skip
def test_echo_whose_user_cannot_write(connection: Connection) -> None:
    """The tester takes nothing of the echo, so that the user stops reading and the window closes.

    Of full-sized segments every second is acknowledged even so, with no window to update. They come
    in pairs, so that a timer's acknowledgment is later than any that a third segment causes.
    It is filled to the last octet, probed, and told twice of nothing new; a SYN, and an octet
    without ACK, offer a window. Then the tester takes everything: the window opens.
    """
    close_window(connection, size=_full_size(connection), at_once=2)
    connection.window = 1 << 20
    for flags, octets in ((PSH, 1), (SYN | ACK, 0)):
        connection.send_odd(
            pattern(connection.next_offset, octets), flags=flags, at=connection.next_offset
        )
        connection.wait(PAUSE_S)
    # Some take the octet without ACK, and expect the next one.
    connection.next_offset = total = max(connection.next_offset, connection.acked)
    connection.window = 0
    for _ in range(2):
        connection.send_data(1, at=total)
        connection.wait(connection.rtt + PAUSE_S)
        connection.ack()
        connection.wait(connection.rtt + PAUSE_S)
    connection.window = 1 << 20
    connection.ack()
    connection.serve(lambda: connection.delivered >= total, ack_every=2, within=120.0)
    connection.ack()
    connection.wait(2.0)
    connection.send_data(100)
    connection.serve(lambda: connection.delivered >= total + 100)


@connected("SNR-ACK-010", "SNR-RCV-025", to="echo")
def test_echo_whose_window_is_opened_by_probes(connection: Connection) -> None:
    """The windows of both sides are closed; data that is refused opens that of the tester.

    The segment that fills the implementation's window reaches beyond its edge.
    """
    close_window(connection, beyond=700)
    connection.window = 1 << 20
    connection.send_data(1, at=connection.next_offset)
    connection.wait(2 * connection.rtt + PAUSE_S)
    connection.ack()
    total = connection.next_offset
    connection.serve(lambda: connection.delivered >= total, ack_every=2, within=120.0)
    connection.ack()


@connected("SNR-CON-017", "SNR-CON-015", to="echo")
def test_echo_whose_window_cuts_a_fin_off(connection: Connection) -> None:
    """Data with a FIN reaches beyond the edge of the window; when it has opened, the rest comes.

    The FIN is where it always was, and everything below it is echoed.
    """
    end = close_window(connection, beyond=700, flags=ACK | PSH | FIN)
    start, connection.window = connection.next_offset, 1 << 20
    connection.ack()
    connection.serve(lambda: connection.delivered >= start, ack_every=2, within=120.0)
    connection.send(pattern(start, max(0, end - start)), flags=ACK | PSH | FIN, at=min(start, end))
    connection.serve(lambda: connection.delivered > end)
    connection.wait(connection.rtt + PAUSE_S)


@connected("SNR-RCV-026", to="echo")
def test_echo_whose_window_keeps_a_fin_out(connection: Connection) -> None:
    """The tester closes while the implementation's window is closed: its FIN is answered.

    Then the tester takes everything, the window opens, and the FIN comes again.
    """
    close_window(connection)
    total = connection.next_offset
    for _ in range(2):
        connection.send(flags=ACK | FIN, at=total)
        connection.wait(connection.rtt + PAUSE_S)
    connection.window = 1 << 20
    connection.next_offset = max(total, connection.acked)
    connection.ack()
    connection.serve(lambda: connection.delivered >= total, ack_every=2, within=120.0)
    connection.send(flags=ACK | FIN, at=total)
    connection.wait(connection.rtt + PAUSE_S)


@connected("SNR-RCV-003", to="discard")
def test_established_small_segments_close_together(connection: Connection) -> None:
    """Small segments follow each other sooner than a delayed acknowledgment leaves.

    The delay counts from the first of them: alone, and behind a full-sized segment.
    """
    for first in (50, connection.segment):
        connection.send_data(first)
        for _ in range(12):
            connection.wait(0.08)
            connection.send_data(50)
        connection.wait(PAUSE_S)
    connection.ack()


@case("SNR-RCV-027", "SNR-RCV-008", "SNR-OPT-009", needs=("sack_receiver",))
def test_echo_in_full_segments_below_a_gap(peer: Peer) -> None:
    """Data above gaps is held while segments below it are echoed that are full or almost so.

    There may be no room for SACK blocks beside the echo; they are reported all the same.
    """
    for timestamps in (False, True):
        connection = peer.connect("echo", timestamps=timestamps, mss=1000)
        size = 1000 - 12 * connection.timestamps
        sizes = (size, size - 11, size - 12, UNIT)
        for gap in (1, 3, 5):
            connection.send_data(UNIT, at=sum(sizes) + gap * UNIT)
            connection.wait(PAUSE_S)
        for index, octets in enumerate(sizes):
            connection.send_data(octets, at=sum(sizes[:index]))
            connection.collect(peer.rtt + PAUSE_S)
            connection.reception.renege(connection.highest)
            connection.ack()
        connection.abort()
