"""The Timestamps option: what is echoed, how the clock runs, and PAWS."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import PAUSE_S, await_retransmissions
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

UNIT = 100

DAYTIME = 13
"""Port of a service that ends its stream first; see the statement's item ``daytime``."""

OLD_MS = 60_000
"""How far behind the tester's clock an old timestamp lies."""

IDLE_S = 1700.0
"""A little less than half an hour, in which TS.Recent stays valid (RFC 7323 section 5.5)."""


def _send(connection: Connection, *units: int, age: int = 0, apart: float = PAUSE_S) -> None:
    """Send small segments stamped ``age`` milliseconds ago, each followed by a pause."""
    for unit in units:
        tsval = (connection.timestamp() - age) % MODULUS
        payload = pattern(unit * UNIT, UNIT)
        send = connection.send_odd if age else connection.send
        send(payload, flags=ACK | PSH, at=unit * UNIT, tsval=tsval)
        connection.next_offset = max(connection.next_offset, (unit + 1) * UNIT)
        connection.wait(apart)


def _send_bare(connection: Connection, unit: int) -> None:
    """Send a small segment without the Timestamps option that was negotiated."""
    payload = pattern(unit * UNIT, UNIT)
    connection.send_odd(payload, flags=ACK | PSH, at=unit * UNIT, options=[])


@connected("SNR-TS-001", needs=("timestamps",), to="discard", timestamps=True)
def test_delayed_acknowledgment_echoes_the_earliest(connection: Connection) -> None:
    """An acknowledgment that covers two segments echoes the timestamp of the first."""
    for unit in range(0, 10, 2):
        _send(connection, unit, apart=0.03)
        _send(connection, unit + 1)


@connected("SNR-TS-001", "SNR-RCV-002", needs=("timestamps",), to="discard", timestamps=True)
def test_gap_echoes_follow_the_left_edge(connection: Connection) -> None:
    """Out-of-order data does not move the echo; data that fills the gap does."""
    _send(connection, 0)
    _send(connection, 2, 3, 5, 1, 4, apart=0.2)
    connection.wait(PAUSE_S)
    _send(connection, 6)
    connection.ack()


@connected(
    "SNR-TS-013", "SNR-TS-001", "SNR-RCV-002", needs=("timestamps",), to="discard", timestamps=True
)
def test_overtaken_segments(connection: Connection) -> None:
    """Segments were overtaken by others, which have later timestamps; then two of one tick.

    One is overtaken by two that leave gaps, and one that fills a gap begins below what has been
    acknowledged. The last two have the timestamp of the one before.
    """
    now = connection.timestamp()
    for at, octets, tsval in (
        (0, UNIT, now), (2 * UNIT, UNIT, now + 30), (UNIT, UNIT, now + 20),
        (4 * UNIT, UNIT, now + 60), (6 * UNIT, UNIT, now + 70), (3 * UNIT, UNIT, now + 40),
        (5 * UNIT - 30, UNIT + 30, now + 50), (7 * UNIT - 50, 150, now + 800),
        (8 * UNIT, UNIT, now + 900), (9 * UNIT, UNIT, now + 900), (10 * UNIT, 0, now + 900),
    ):  # fmt: skip
        connection.send(
            pattern(at, octets), flags=ACK | (PSH if octets else 0), at=at, tsval=tsval % MODULUS
        )
        connection.wait(0.3 if octets else PAUSE_S)
    connection.next_offset = 10 * UNIT


@connected("SNR-TS-001", needs=("timestamps",), to="discard", timestamps=True)
def test_bare_segment_a_tick_older(connection: Connection) -> None:
    """A segment without data is stamped a tick before the latest; the echo does not go back."""
    latest = connection.timestamp()
    for unit, tsval in ((0, latest), (None, latest - 1), (2, latest), (1, latest)):
        offset, octets = (UNIT, 0) if unit is None else (unit * UNIT, UNIT)
        payload = pattern(offset, octets)
        connection.send(payload, flags=ACK, at=offset, tsval=tsval % MODULUS)
        connection.wait(PAUSE_S)
    connection.next_offset = 3 * UNIT


@connected("SNR-TS-002", "SNR-TS-003", needs=("timestamps",), timestamps=True)
def test_clock_of_a_connection_that_lasts(connection: Connection) -> None:
    """TSval advances with the time, in the retransmissions of a silent peer's data too."""
    connection.receive(4)
    connection.discard(4.0)
    connection.receive(12)


@connected("SNR-TS-004", "SNR-TS-005", needs=("timestamps",), to="discard", timestamps=True)
def test_new_data_with_an_old_timestamp(connection: Connection) -> None:
    """A segment from the past is answered, but its data is not taken.

    It comes once as the next octets in sequence and once above a gap.
    """
    _send(connection, 0)
    _send(connection, 1, 3, age=OLD_MS)
    _send(connection, 1, 2, 3)


@connected("SNR-TS-004", "SNR-TS-005", needs=("timestamps",), to="discard", timestamps=True)
def test_new_data_with_the_oldest_timestamps(connection: Connection) -> None:
    """New data is stamped a little less than half the clock's range before the latest data.

    That is as old as a timestamp can be; what is older is new.
    """
    for unit, behind in ((0, 1 << 30), (2, (1 << 30) + 1), (4, (1 << 31) - OLD_MS)):
        _send(connection, unit)
        _send(connection, unit + 1, age=behind)
        _send(connection, unit + 1)


@connected(
    "SNR-TS-012", needs=("timestamps",), timestamps=True, window_scale=None,
    window=4 * SEGMENT, syn_window=4 * SEGMENT,
)  # fmt: skip
def test_acknowledgments_with_an_old_timestamp(connection: Connection) -> None:
    """The window is full, and what acknowledges it or widens it has an old timestamp.

    It comes without data, and then with data that is in sequence.
    """
    connection.grow(4)
    before = connection.delivered
    connection.collect(0)
    for octets in (0, UNIT):
        old = (connection.timestamp() - OLD_MS) % MODULUS
        connection.window = 16 * SEGMENT
        connection.send_odd(pattern(0, octets), at=0, tsval=old, sack=())
        connection.wait(connection.rtt / 2 + 0.2)
        connection.window = 4 * SEGMENT
    connection.reception.renege(before)
    connection.ack()
    connection.collect(connection.rtt)
    connection.reception.renege(connection.highest)
    connection.ack()
    connection.receive_more(6)


def _send_fin(connection: Connection, unit: int, *ages: int) -> None:
    """Send data with a FIN, stamped so many milliseconds ago; once for each."""
    for age in ages:
        tsval = (connection.timestamp() - age) % MODULUS
        payload, at = pattern(unit * UNIT, UNIT), unit * UNIT
        connection.send_odd(payload, flags=ACK | PSH | FIN, at=at, tsval=tsval, sack=())
        connection.wait(connection.rtt + PAUSE_S)


@connected("SNR-TS-004", "SNR-TS-005", needs=("timestamps",), to="discard", timestamps=True)
def test_fin_with_an_old_timestamp(connection: Connection) -> None:
    """Data with a FIN has an old timestamp, and comes again with a new one."""
    _send(connection, 0)
    _send_fin(connection, 1, OLD_MS, 0)


@case("SNR-TS-004", "SNR-TS-005", needs=("timestamps",))
def test_half_an_hour_idle_then_old_timestamps(peer: Peer) -> None:
    """Nothing is said for half an hour; then segments arrive that are older than that.

    One connection gets data in sequence and above, one data with a FIN, each once more with a new
    timestamp. On a third data with a new timestamp comes first.
    """
    plain, closing, renewed = (peer.connect("discard", timestamps=True) for _ in range(3))
    for connection in (plain, closing, renewed):
        _send(connection, 0)
    peer.wait(IDLE_S)
    age = int(IDLE_S * 1000) + OLD_MS
    _send(plain, 1, 3, age=age)
    _send(plain, 1, 2, 3)
    _send_fin(closing, 1, age, 0)
    _send(renewed, 1)
    _send(renewed, 2, 4, age=age)
    _send(renewed, 2, 3, 4)


@connected("SNR-TS-004", "SNR-TS-005", needs=("timestamps", "daytime"), to=DAYTIME, timestamps=True)
def test_iut_closed_first_data_with_an_old_timestamp(connection: Connection) -> None:
    """The implementation has closed; segments from the past arrive, in sequence and above."""
    connection.await_arrival(lambda s: bool(s.tcp.flags & FIN), "a FIN")
    _send(connection, 0)
    _send(connection, 1, 3, age=OLD_MS)
    _send(connection, 1, 2, 3)


@connected("SNR-TS-001", "SNR-RCV-003", needs=("timestamps",), to="discard", timestamps=True)
def test_timestamps_on_every_boundary(connection: Connection) -> None:
    """The Timestamps option begins on each octet of a word (RFC 9293 section 3.1, MUST-64)."""
    for before in (0, 1, 2, 3):
        segment = connection.compose()
        option = ("Timestamp", (segment.tsval, segment.tsecr))
        payload = pattern(connection.next_offset, UNIT)
        connection.send_odd(payload, flags=ACK | PSH, options=[*[("NOP", None)] * before, option])
        connection.wait(PAUSE_S)
    connection.ack()


@case("SNR-TS-006", needs=("timestamps",))
def test_reset_with_an_old_timestamp_or_none(peer: Peer) -> None:
    """A RST resets the connection whatever its timestamp; data shows whether it did."""
    for stamped in (True, False):
        connection = peer.connect("discard", timestamps=True)
        _send(connection, 0, apart=peer.rtt + PAUSE_S)
        old = (connection.timestamp() - OLD_MS) % MODULUS
        connection.send_odd(flags=RST | ACK, at=UNIT, tsval=old, options=None if stamped else [])
        for unit in (1, 2):
            peer.wait(PAUSE_S)
            _send(connection, unit, apart=0)
        peer.wait(peer.rtt)


@connected(
    "SNR-TS-007", "SNR-TS-001", needs=("timestamps",),
    to="discard", timestamps=True, tsval=MODULUS - 2500,
)  # fmt: skip
def test_timestamp_clock_wraps(connection: Connection) -> None:
    """Data goes on being accepted when the tester's timestamps pass 2^32, and is echoed at zero."""
    _send(connection, *range(3))
    connection.wait(max(0.0, 2.6 - 3 * PAUSE_S))
    for unit, tsval in ((3, 0), (4, 1)):
        connection.send_odd(pattern(unit * UNIT, UNIT), at=unit * UNIT, tsval=tsval)
        connection.wait(0.03)
    connection.wait(PAUSE_S)
    connection.next_offset = 5 * UNIT
    _send(connection, 5)
    connection.ack()


@connected(
    "SNR-TS-007", needs=("timestamps",), to="discard", timestamps=True, tsval=MODULUS - OLD_MS
)
def test_timestamp_half_the_range_away(connection: Connection) -> None:
    """New data is stamped exactly half the clock's range after the latest, which is not older."""
    latest = connection.timestamp()
    half = (latest + MODULUS // 2) % MODULUS
    for unit, tsval in enumerate((latest, half)):
        connection.send(pattern(unit * UNIT, UNIT), flags=ACK | PSH, at=unit * UNIT, tsval=tsval)
        connection.wait(PAUSE_S)
    connection.next_offset = 2 * UNIT
    connection.send(tsval=half)
    connection.wait(PAUSE_S)


@connected(
    "SNR-TS-008", "SNR-TS-009", needs=("timestamps",), profiles=("rfc",),
    to="discard", timestamps=True,
)  # fmt: skip
def test_data_without_the_negotiated_timestamp(connection: Connection) -> None:
    """A segment that lacks the option is dropped, and the connection goes on."""
    _send(connection, 0)
    _send_bare(connection, 1)
    connection.wait(PAUSE_S)
    _send(connection, 2, 1, 3)


@connected("SNR-TS-010", "SNR-OPT-003", to="discard", timestamps=False)
def test_data_with_timestamps_not_negotiated(connection: Connection) -> None:
    """Data carries timestamps that go back and forth, though neither SYN did."""
    for unit, tsval in enumerate((5000, 4000, 1 << 31, 0, MODULUS - 1, 1)):
        connection.send_odd(
            pattern(unit * UNIT, UNIT), flags=ACK | PSH, at=unit * UNIT,
            more=[("NOP", None), ("NOP", None), ("Timestamp", (tsval, tsval))],
        )  # fmt: skip
        connection.wait(PAUSE_S)
    connection.next_offset = 6 * UNIT
    connection.send_data(UNIT)
    connection.wait(PAUSE_S)


@connected("SNR-RTO-016", "SNR-RTO-015", to="echo", sack=False, aborted=True)
def test_echoes_of_timestamps_not_negotiated_then_lost(connection: Connection) -> None:
    """Acknowledgments echo timestamps that nobody sent; then a lone segment is lost."""
    for tsecr in (0, 1 << 31, MODULUS - 1):
        connection.send_data(UNIT)
        connection.hold(connection.expect(what="the echo"))
        connection.send_odd(more=[("NOP", None), ("NOP", None), ("Timestamp", (1, tsecr))])
        connection.wait(PAUSE_S)
    connection.send_data(UNIT)
    reply = connection.expect(what="the echo")
    connection.take(await_retransmissions(connection, reply.start, 1, within=90.0))


@connected("SNR-TS-001", needs=("timestamps",), to="echo", timestamps=True)
def test_data_acknowledges_data(connection: Connection) -> None:
    """Requests are acknowledged by their replies alone, whose echo moves on with each of them.

    Then replies and pure acknowledgments alternate.
    """
    for reads in (True,) * 4 + (False, True) * 2:
        connection.send_data(UNIT)
        reply = connection.expect(what="the echo")
        connection.hold(reply)
        if not reads:
            connection.ack()
        connection.wait(0.3)
    connection.ack()
