"""The Timestamps option: what is echoed, how the clock runs, and PAWS."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, PSH, RST, build
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

UNIT = 100
PAUSE_S = 0.8
"""Longer than any delayed acknowledgment."""

OLD_MS = 60_000
"""How far behind the tester's clock an old timestamp lies."""


def _send(connection: Connection, unit: int, *, age: int = 0) -> None:
    """Send a small segment stamped ``age`` milliseconds ago."""
    tsval = (connection.timestamp() - age) % MODULUS
    payload = pattern(unit * UNIT, UNIT)
    connection.send(payload, flags=ACK | PSH, at=unit * UNIT, tsval=tsval)
    connection.next_offset = max(connection.next_offset, (unit + 1) * UNIT)


def _send_bare(connection: Connection, unit: int) -> None:
    """Send a small segment without the Timestamps option that was negotiated."""
    segment = connection.compose(pattern(unit * UNIT, UNIT), flags=ACK | PSH, at=unit * UNIT)
    connection.peer.send(build(replace(segment, tsval=None, tsecr=None)))


@case("SNR-TS-001", needs=("timestamps",))
def test_delayed_acknowledgment_echoes_the_earliest(peer: Peer) -> None:
    """An acknowledgment that covers two segments echoes the timestamp of the first."""
    connection = peer.connect("discard", timestamps=True)
    for unit in range(0, 10, 2):
        _send(connection, unit)
        peer.wait(0.03)
        _send(connection, unit + 1)
        peer.wait(PAUSE_S)


@case("SNR-TS-001", "SNR-RCV-002", needs=("timestamps",))
def test_gap_echoes_follow_the_left_edge(peer: Peer) -> None:
    """Out-of-order data does not move the echo; data that fills the gap does."""
    connection = peer.connect("discard", timestamps=True)
    _send(connection, 0)
    peer.wait(PAUSE_S)
    for unit in (2, 3, 5, 1, 4):
        _send(connection, unit)
        peer.wait(0.2)
    peer.wait(PAUSE_S)
    _send(connection, 6)
    peer.wait(PAUSE_S)
    connection.ack()


@case("SNR-TS-002", "SNR-TS-003", needs=("timestamps",))
def test_clock_of_a_connection_that_lasts(peer: Peer) -> None:
    """TSval advances with the time, in the retransmissions of a silent peer's data too."""
    connection = peer.connect(timestamps=True)
    connection.receive(4)
    connection.discard(4.0)
    connection.receive(12)


@case("SNR-TS-004", "SNR-TS-005", needs=("timestamps",))
def test_new_data_with_an_old_timestamp(peer: Peer) -> None:
    """A segment from the past is answered, but its data is not taken.

    It comes once as the next octets in sequence and once above a gap.
    """
    connection = peer.connect("discard", timestamps=True)
    _send(connection, 0)
    peer.wait(PAUSE_S)
    for unit in (1, 3):
        _send(connection, unit, age=OLD_MS)
        peer.wait(PAUSE_S)
    for unit in (1, 2, 3):
        _send(connection, unit)
        peer.wait(PAUSE_S)


@case("SNR-TS-006", needs=("timestamps",))
def test_reset_with_an_old_timestamp_or_none(peer: Peer) -> None:
    """A RST resets the connection whatever its timestamp; data shows whether it did."""
    for stamped in (True, False):
        connection = peer.connect("discard", timestamps=True)
        _send(connection, 0)
        peer.wait(peer.rtt + PAUSE_S)
        reset = connection.compose(flags=RST | ACK, at=UNIT)
        old = (connection.timestamp() - OLD_MS) % MODULUS
        echo = reset.tsecr if stamped else None
        peer.send(build(replace(reset, tsval=old if stamped else None, tsecr=echo)))
        for unit in (1, 2):
            peer.wait(PAUSE_S)
            _send(connection, unit)
        peer.wait(peer.rtt)


@case("SNR-TS-007", "SNR-TS-001", needs=("timestamps",))
def test_timestamp_clock_wraps(peer: Peer) -> None:
    """Data goes on being accepted when the tester's timestamps pass 2^32."""
    connection = peer.connect("discard", timestamps=True, tsval=MODULUS - 2500)
    for unit in range(6):
        _send(connection, unit)
        peer.wait(PAUSE_S)
    connection.ack()


@case("SNR-TS-008", "SNR-TS-009", needs=("timestamps",), profiles=("rfc",))
def test_data_without_the_negotiated_timestamp(peer: Peer) -> None:
    """A segment that lacks the option is dropped, and the connection goes on."""
    connection = peer.connect("discard", timestamps=True)
    _send(connection, 0)
    peer.wait(PAUSE_S)
    _send_bare(connection, 1)
    peer.wait(PAUSE_S)
    for unit in (2, 1, 3):
        _send(connection, unit)
        peer.wait(PAUSE_S)
