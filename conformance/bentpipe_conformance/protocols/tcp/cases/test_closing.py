"""How a connection ends: FINs from either side, resets, and hours of silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import (
    PAUSE_S,
    TIMEOUT_S,
    await_retransmissions,
    fill_window,
    show_silence,
)
from bentpipe_conformance.protocols.tcp.cases.test_receiver import close_window
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, URG
from bentpipe_conformance.protocols.tcp.connection import Connection, Segment
from bentpipe_conformance.protocols.tcp.peer import Peer

UNIT = 100

PROBED_S = 70.0
"""Longer than the checker waits for a probe."""
PROBE_S = 8.0
"""Longer than the first probes take."""
QUIET_S = 80.0
"""Longer than the checker waits for a probe after the user has had time to end its stream."""
PROBES = 4
"""Probes to answer: a host may end a connection that has no user any more (RFC 6429 section 4)."""

LONG_S = 0.2
"""A round trip that is long beside the time in which a flight of four segments arrives."""

SHORT_MSS = 400
"""Octets, of which the tester's largest segment has as many as three and a half."""

DAYTIME = 13
"""Port of a service that ends its stream first; see the statement's item ``daytime``."""

SILENT_S = 3700.0
"""A little more than an hour."""

IDLE_S = 7230.0
"""A little more than two hours, the shortest interval of keep-alives (RFC 9293 section 3.8.4)."""


def _say(connection: Connection, times: int = 1) -> None:
    """Send a small segment and wait for its acknowledgment."""
    for _ in range(times):
        connection.send_data(UNIT)
        connection.wait(PAUSE_S)


def _finish(connection: Connection, octets: int = 0) -> None:
    connection.send(pattern(connection.next_offset, octets), flags=ACK | PSH | FIN)


def _take_echo(connection: Connection) -> None:
    connection.serve(lambda: connection.delivered >= connection.next_offset)


def _await_fin(connection: Connection, what: str) -> Segment:
    """The implementation's FIN.

    Raises:
        NotReached: it did not come in time, which another segment then shows.
    """
    try:
        return connection.await_arrival(lambda s: bool(s.tcp.flags & FIN), what, TIMEOUT_S)
    except NotReached as reason:
        raise show_silence(connection, str(reason)) from reason


def _again(connection: Connection, *, after: float) -> None:
    """Repeat the FIN ``after`` seconds."""
    connection.wait(after)
    connection.send(flags=ACK | FIN, at=connection.next_offset - 1)


@connected("SNR-CON-011", "SNR-CON-010", "SNR-CON-003", "SNR-CON-004", to="discard")
def test_established_resets(connection: Connection) -> None:
    """RSTs below and far beyond the window end nothing; one at the next expected octet does."""
    _say(connection, 2)
    connection.wait(connection.rtt)
    beyond = connection.acked + 3 * max(connection.iut_window, 65535) + 10000
    for at in (connection.acked - 1, connection.acked - 150, beyond, beyond + (1 << 30)):
        connection.send_odd(flags=RST, at=at)
        connection.wait(PAUSE_S)
        _say(connection)
    connection.wait(connection.rtt)
    connection.send_odd(flags=RST, at=connection.acked)
    connection.wait(PAUSE_S)
    _say(connection, 2)


@case("SNR-CON-012", "SNR-CON-013", needs=("challenge_acks",))
def test_established_challenges(peer: Peer) -> None:
    """A RST inside the window, or a SYN anywhere, is answered by an acknowledgment.

    The RSTs lie just beyond the next expected octet and just below the window's edge.
    """
    for where in ("next", "edge"):
        connection = peer.connect("discard")
        _say(connection)
        peer.wait(peer.rtt)
        inside = 1 if where == "next" else connection.iut_window - 1
        connection.send_odd(flags=RST, at=connection.acked + inside)
        peer.wait(PAUSE_S)
        _say(connection)
    for at in (-1, UNIT, 2 * UNIT, 1 << 30):
        connection = peer.connect("discard")
        _say(connection)
        peer.wait(peer.rtt)
        connection.send_odd(flags=SYN, at=at)
        peer.wait(PAUSE_S)
        _say(connection)


@case("SNR-CON-012", "SNR-CON-041", needs=("challenge_acks",))
def test_challenges_while_data_is_held(peer: Peer) -> None:
    """While data is held above a gap, a RST arrives at its beginning, at its end, or behind it."""
    for octets in (0, UNIT, 2 * UNIT):
        connection = peer.connect("discard")
        _say(connection)
        connection.send_data(UNIT, at=2 * UNIT)
        connection.wait(PAUSE_S + connection.rtt)
        connection.send_odd(flags=RST, at=2 * UNIT + octets)
        connection.wait(PAUSE_S)
        _say(connection)
        connection.next_offset = 3 * UNIT
        _say(connection)


@case("SNR-CON-012", "SNR-CON-013", needs=("challenge_acks",))
def test_challenges_with_acknowledgments(peer: Peer) -> None:
    """A RST in the window, or a SYN, acknowledges a full window: it is challenged and dropped."""
    for flags in (RST | ACK, SYN | ACK):
        connection, _ = fill_window(peer, 4)
        end = connection.highest
        connection.send_odd(flags=flags, at=1, ack=end)
        peer.wait(PAUSE_S)
        connection.reception.renege(end)
        connection.ack()
        connection.receive_more(4)


@connected("SNR-CON-014", "SNR-RCV-003", to="discard")
def test_established_segments_without_ack(connection: Connection) -> None:
    """Data and a FIN come without the ACK flag, then with it.

    After each comes old data, whose answer says what has been accepted.
    """
    _say(connection)
    for flags in (0, PSH, FIN):
        connection.send_odd(pattern(UNIT, UNIT), flags=flags, at=UNIT)
        connection.wait(PAUSE_S)
        connection.send_data(UNIT, at=0)
        connection.wait(PAUSE_S)
    _say(connection, 2)
    connection.ack()


@connected("SNR-CON-024", to="discard")
def test_established_urgent_data(connection: Connection) -> None:
    """Segments with URG are acknowledged like any others."""
    for _ in range(3):
        connection.send_odd(pattern(connection.next_offset, UNIT), flags=ACK | PSH | URG)
        connection.wait(PAUSE_S)
    _say(connection)


@connected("SNR-CON-022", "SNR-CON-023", "SNR-CON-042", to="discard")
def test_established_two_hours_idle(connection: Connection) -> None:
    """Nothing is said for more than two hours; then data arrives."""
    _say(connection)
    connection.wait(IDLE_S)
    _say(connection, 2)
    connection.ack()


def _lose_ends(connection: Connection) -> Callable[[Segment, int], bool]:
    """Lose the last data of the stream once, and its FIN twice."""
    total = connection.next_offset - 1

    def lost(segment: Segment, before: int) -> bool:
        return before < (2 if segment.tcp.flags & FIN else int(segment.end >= total))

    return lost


@connected(
    "SNR-CON-015", "SNR-CON-016", "SNR-CON-017", "SNR-CON-018", "SNR-CON-019", "SNR-CON-003",
    "SNR-CON-035", to="echo",
)  # fmt: skip
def test_tester_closes_with_data_under_way(connection: Connection) -> None:
    """The tester closes while its data is being echoed; the end of the echo and its FIN are lost.

    The tester repeats its own FIN meanwhile, and sends once more when everything is over.
    """
    for _ in range(12):
        connection.send_data(1000)
    _finish(connection, UNIT)
    total = connection.next_offset
    _again(connection, after=0.5 * connection.rtt)
    connection.serve(lambda: connection.delivered >= total, losing=_lose_ends(connection))
    connection.ack()
    connection.wait(4.0)
    connection.send_data(UNIT)
    connection.wait(PAUSE_S)
    connection.send_data(UNIT)


@connected(
    "SNR-CON-015", "SNR-CON-016", "SNR-CON-017", "SNR-CON-018", to="discard", iss=MODULUS - 1
)
def test_tester_closes_without_data(connection: Connection) -> None:
    """A FIN is all that the tester sends; the FIN that answers it is lost several times.

    The tester's FIN lies at the end of the sequence space.
    """
    _finish(connection)
    found = _await_fin(connection, "a FIN")
    for _ in range(3):
        found = _await_fin(connection, "its FIN again")
        _again(connection, after=0.0)
    connection.take(found)
    connection.wait(4.0)


@connected(
    "SNR-CON-020", "SNR-CON-021", "SNR-CON-032", "SNR-CON-018", "SNR-CON-017", "SNR-CON-015",
    "SNR-CON-016",
    needs=("daytime",), to=DAYTIME,
)  # fmt: skip
def test_iut_closes_first(connection: Connection) -> None:
    """The implementation ends its stream first, and its FIN is lost once.

    Data arrives before and after its FIN is acknowledged, then the tester's FIN, again after a
    second, three times 25 s later, and once more when TIME-WAIT must be over.
    """
    fin = _await_fin(connection, "a FIN")
    line = fin.end - 1
    connection.hold(fin)
    connection.reception.renege(line)
    connection.send_data(UNIT)
    connection.wait(PAUSE_S)
    fin = _await_fin(connection, "its FIN again")
    _say(connection)
    connection.reception.renege(fin.end)
    _say(connection, 2)
    _finish(connection, UNIT)
    _again(connection, after=PAUSE_S + connection.rtt)
    for seconds in (PAUSE_S, 25.0, 25.0, 25.0, 250.0):
        _again(connection, after=seconds)
    connection.wait(PAUSE_S)


@case("SNR-RCV-001", "SNR-RCV-002", "SNR-RCV-008", "SNR-RCV-022", "SNR-RCV-013", needs=("daytime",))
def test_iut_closes_first_data_out_of_order(peer: Peer) -> None:
    """In FIN-WAIT-1, then in FIN-WAIT-2, one segment comes late and others twice."""
    connection = peer.connect(DAYTIME, timestamps=True)
    fin = _await_fin(connection, "a FIN")
    connection.reception.renege(fin.end - 1)
    for base in (0, 5):
        if base:
            connection.reception.renege(fin.end)
            connection.ack()
        for unit in (0, 2, 3, 3, 1, 0, 4):
            connection.send_data(UNIT, at=(base + unit) * UNIT)
            connection.wait(0.3)
        connection.next_offset = (base + 5) * UNIT
        connection.wait(PAUSE_S)
    _finish(connection)
    connection.wait(connection.rtt + PAUSE_S)


@connected("SNR-CON-032", "SNR-CON-020", needs=("daytime",), to=DAYTIME)
def test_iut_closes_first_long_before_the_tester(connection: Connection) -> None:
    """The tester's FIN comes minutes after the implementation's, and again when all is over."""
    fin = _await_fin(connection, "a FIN")
    connection.reception.renege(fin.end)
    connection.ack()
    connection.wait(150.0)
    _say(connection)
    _finish(connection)
    _again(connection, after=250.0)
    connection.wait(PAUSE_S)


@case("SNR-CON-015", "SNR-CON-016", "SNR-CON-019", "SNR-CON-021", "SNR-CON-032", needs=("daytime",))
def test_both_close_at_once(peer: Peer) -> None:
    """Both FINs are under way at once; the tester acknowledges late, then repeats its FIN or not.

    It sends once more when TIME-WAIT must be over.
    """
    for repeats in ((2 * PAUSE_S, 20.0), ()):
        connection = peer.connect(DAYTIME)
        fin = _await_fin(connection, "a FIN")
        connection.send(flags=ACK | FIN, ack=fin.end - 1)
        peer.wait(peer.rtt + PAUSE_S)
        connection.reception.renege(fin.end)
        connection.ack()
        for seconds in (*repeats, 250.0):
            _again(connection, after=seconds)
        peer.wait(PAUSE_S)


@case("SNR-CON-036")
def test_silence_of_more_than_an_hour(peer: Peer) -> None:
    """Three connections hear nothing for more than an hour: one of them sends, two are half open.

    Afterwards the tester acknowledges what is still owed.
    """
    sending = peer.connect()
    sending.receive(4)
    half_open = peer.begin("discard")
    closing = peer.connect("discard")
    _finish(closing)
    peer.wait(SILENT_S)
    for connection in (sending, half_open, closing):
        connection.ack()
        peer.wait(PAUSE_S + peer.rtt)
        connection.ack()


@case("SNR-CON-010")
def test_reset_while_an_acknowledgment_is_delayed(peer: Peer) -> None:
    """A RST follows data at once, whose acknowledgment may be delayed; more data shows its effect.

    The data has one segment or, on another connection, two, with a pause between.
    """
    for times in (1, 2):
        connection = peer.connect("discard")
        _say(connection)
        for _ in range(times):
            connection.send_data(UNIT)
            connection.wait(0.03)
        connection.send_odd(flags=RST, at=connection.next_offset)
        peer.wait(PAUSE_S)
        _say(connection, 2)


@connected("SNR-CON-011", to="discard")
def test_reset_below_data_just_received(connection: Connection) -> None:
    """A RST follows data whose acknowledgment may be delayed, and lies where that data begins."""
    _say(connection)
    connection.wait(connection.rtt)
    at = connection.next_offset
    connection.send_data(UNIT)
    connection.wait(0.03)
    connection.send_odd(flags=RST, at=at)
    connection.wait(PAUSE_S)
    _say(connection, 2)


RESETS = (
    (RST, UNIT), (RST | ACK, UNIT), (RST | FIN, 0), (RST | SYN, 0), (RST | PSH | URG, 1),
    (RST | FIN | ACK, UNIT),
)  # fmt: skip
"""Flags and octets of RSTs at the next expected octet."""


@case("SNR-CON-010")
def test_resets_that_carry_something(peer: Peer) -> None:
    """RSTs carry data, other flags, and an acknowledgment of what was never sent (SHLD-2)."""
    for flags, octets in RESETS:
        connection = peer.connect("discard")
        _say(connection)
        connection.wait(connection.rtt)
        at = connection.next_offset
        connection.send_odd(pattern(at, octets), flags=flags, at=at, ack=5000)
        peer.wait(PAUSE_S)
        _say(connection, 2)


@connected("SNR-CON-010", to="echo")
def test_reset_while_the_window_is_closed(connection: Connection) -> None:
    """A RST arrives at the next expected octet, for which there is no room; probes follow."""
    close_window(connection)
    connection.send_odd(flags=RST, at=connection.next_offset)
    for _ in range(2):
        connection.wait(PAUSE_S)
        connection.send_data(1, at=connection.next_offset)
    connection.wait(connection.rtt)


FINS = ((-UNIT, 2 * UNIT), (-UNIT // 2, UNIT), (-UNIT, UNIT), (-1, 1), (-2 * UNIT, 2 * UNIT))
"""Where the segment with the FIN begins, from the next expected octet on, and its octets."""


@case("SNR-CON-015", "SNR-CON-017", "SNR-CON-035")
def test_tester_closes_with_old_data(peer: Peer) -> None:
    """The FIN is behind data that has arrived before, in whole or in part; once it is urgent."""
    for urgent in (0, URG):
        for where, octets in FINS[: 2 if urgent else None]:
            connection = peer.connect("discard")
            _say(connection, 2)
            at = connection.next_offset + where
            connection.send_odd(pattern(at, octets), flags=ACK | PSH | FIN | urgent, at=at)
            connection.next_offset = at + octets + 1
            peer.wait(peer.rtt + PAUSE_S)
            connection.ack()
            connection.abort()


@connected("SNR-CON-015", "SNR-CON-017", to="discard")
def test_tester_closes_above_a_gap(connection: Connection) -> None:
    """Data with a FIN arrives before what lies below it, then the FIN comes again."""
    _say(connection)
    connection.send(pattern(2 * UNIT, UNIT), flags=ACK | PSH | FIN, at=2 * UNIT)
    connection.wait(PAUSE_S)
    connection.send_data(UNIT, at=UNIT)
    connection.next_offset = 3 * UNIT + 1
    connection.wait(PAUSE_S)
    _again(connection, after=PAUSE_S)
    connection.wait(PAUSE_S)


@connected("SNR-CON-016", "SNR-CON-035", to="echo")
def test_tester_closes_long_before_it_reads(connection: Connection) -> None:
    """The tester's window is closed when its FIN arrives, twice, and opens after a minute."""
    connection.ack(window=0)
    connection.send_data(UNIT)
    _finish(connection)
    _again(connection, after=PAUSE_S + connection.rtt)
    connection.wait(70.0)
    connection.ack(window=1 << 20)
    connection.serve(lambda: connection.delivered > UNIT)


def _close_before_the_fin(connection: Connection, octets: int, window: int) -> None:
    """Have so much echoed into a window, which then closes, and end the stream.

    If a probe comes with the last octet, it is taken.
    """
    room = min(octets, window)
    if octets:
        connection.send_data(octets)
    while connection.delivered < room:
        connection.hold(connection.expect(what="the echo"))
        connection.ack(window=room - connection.delivered)
    connection.ack(window=0)
    _finish(connection)
    if octets > room and any(probe.end >= octets for probe in connection.arrivals(PROBE_S)):
        connection.reception.renege(octets)
        connection.ack()


@case("SNR-WIN-003", "SNR-CON-035")
def test_tester_closes_and_its_window_with_a_fin_waiting(peer: Peer) -> None:
    """The window is closed when all but the FIN has been sent; for more than a minute all is quiet.

    There was nothing to send before, and no window ever; or it has been sent, into a window that
    closed then or that it filled; or a probe took the last octet of it.
    """
    for octets, window in ((0, 0), (0, 4000), (UNIT, 4000), (UNIT, UNIT), (UNIT, UNIT - 1)):
        connection = peer.connect("echo", window_scale=None, window=window, syn_window=window)
        _close_before_the_fin(connection, octets, window)
        connection.wait(QUIET_S)
        connection.inbox.clear()
        _take_rest(connection)
        connection.abort()


@case("SNR-CON-018")
def test_last_octet_acknowledged_without_the_fin(peer: Peer) -> None:
    """All octets of the stream are acknowledged, but the FIN behind them is lost three times.

    On one connection the FIN follows data, on another it comes alone.
    """
    for octets in (UNIT, 0):
        connection = peer.connect("echo")
        connection.send_data(UNIT)
        _take_echo(connection)
        _finish(connection, octets)
        total = UNIT + octets
        for _ in range(3):
            fin = _await_fin(connection, "a FIN")
            connection.reception.renege(total)
            connection.ack()
        connection.reception.renege(fin.end)
        connection.ack()
        peer.wait(4.0)


@case("SNR-SEG-006", "SNR-CON-019", "SNR-CON-015", needs=("daytime",))
def test_fin_acknowledges_the_fin(peer: Peer) -> None:
    """The tester's FIN is the only segment that acknowledges the implementation's data and FIN.

    It comes alone or with data.
    """
    for octets in (0, UNIT):
        connection = peer.connect(DAYTIME)
        fin = _await_fin(connection, "a FIN")
        connection.reception.renege(fin.end)
        _finish(connection, octets)
        peer.wait(8.0)
        _again(connection, after=0.0)
        peer.wait(PAUSE_S)


WAITING = 14
"""Segments of 1000 octets, at most, whose echo waits for a window when the tester closes."""


def _half_close(peer: Peer, **offer: Any) -> Connection:
    """A connection whose tester has closed while much of its echo waits for a window."""
    connection = peer.connect("echo", window=0, syn_window=0, **offer)
    for _ in range(min(WAITING, connection.iut_window // 1000)):
        connection.send_data(1000)
    _finish(connection)
    connection.wait(peer.rtt + PAUSE_S)
    return connection


def _take_rest(connection: Connection, window: int = 1 << 16, **how: Any) -> None:
    connection.inbox.clear()
    connection.ack(window=window)
    connection.serve(lambda: connection.delivered >= connection.next_offset, **how)
    connection.wait(PAUSE_S)


@case("SNR-WIN-003", "SNR-WIN-007", "SNR-CON-035")
def test_tester_closes_and_its_window_with_data_waiting(peer: Peer) -> None:
    """After the tester's FIN its window stays closed, with data and a FIN waiting, then opens.

    Its window has been closed from the start, or closes once more; probes are answered.
    """
    connection = _half_close(peer, window_scale=None)
    # A thin channel takes long for it, and what acknowledges it is no probe.
    peer.pump_until(lambda: connection.acked >= connection.next_offset, TIMEOUT_S)
    for window in (3000, 60000):
        connection.inbox.clear()
        for _ in range(PROBES):
            if connection.next(PROBED_S) is None:
                break
            connection.ack(window=0)
        if window < 60000:
            edge = connection.delivered + window
            connection.ack(window=window)
            # Acknowledged at once: a retransmission would leave the timer backed off.
            while (segment := connection.next(peer.rtt + PAUSE_S)) is not None:
                connection.hold(segment)
                connection.ack(window=max(0, edge - connection.delivered))
    _take_rest(connection, 60000)


@case("SNR-FR-002")
def test_tester_closes_then_losses(peer: Peer) -> None:
    """After the tester's FIN a segment of its echo is lost, reported without SACK or with it."""
    for sack in (False, True):
        # Slow start sends it with at least three that follow; segments are small, to be enough.
        connection = _half_close(peer, sack=sack, mss=536)
        _take_rest(connection, losing=[3])
        connection.abort()


@case("SNR-RTO-006", "SNR-RTO-001")
def test_tester_closes_then_silence(peer: Peer) -> None:
    """After the tester's FIN the link fails for four timeouts, data and a FIN being outstanding."""
    connection = _half_close(peer, sack=False)
    connection.inbox.clear()
    connection.ack(window=1 << 16)
    lost = connection.expect()
    connection.take(await_retransmissions(connection, lost.start, 4))
    connection.serve(lambda: connection.delivered >= connection.next_offset)


def _lose_first(connection: Connection, reports: int) -> None:
    """Lose the first segment of a flight, and of the reports of the others all but the last."""
    flight = [item for item in connection.take_round() if item.has_data]
    if len(flight) < 3:
        raise NotReached(f"the flight has {len(flight)} segments only")
    for number, item in enumerate(flight[1:]):
        connection.hold(item)
        if number < reports - 1:
            connection.ack()
    connection.ack()
    connection.serve(lambda: connection.delivered >= connection.next_offset)


@case("SNR-SAK-015", needs=("sack_sender",), profiles=("rfc",))
def test_tester_closes_then_a_short_segment_shows_a_loss(peer: Peer) -> None:
    """The first of four segments is lost; the last, with the FIN, is short.

    More than two full segments' octets are reported held above it, and less than three. The other
    acknowledgments are lost, or all but one. One connection has timestamps.
    """
    for reports, stamped in ((1, False), (2, False), (1, True)):
        connection = peer.connect("echo", rtt=LONG_S, mss=SHORT_MSS, timestamps=stamped)
        _finish(connection, 3 * (SHORT_MSS - 12 * connection.timestamps) + SHORT_MSS // 2)
        _lose_first(connection, reports)
        connection.abort()
