"""How a connection begins, and segments that belong to none."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import UNUSED_PORT, NotReached, pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import PAUSE_S
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, URG
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.crafting import FALSE_CHECKSUMS, craft, wrong_checksum
from bentpipe_conformance.protocols.tcp.peer import Peer

UNIT = 100

FOUR_SEGMENTS = 45 << 7
"""Almost; octets that a window field shifted by 7 can tell."""

LATE_S = 174.0
"""With all round trips a little less than the three minutes of RFC 9293 section 3.8.3."""

STRAYS = (
    (ACK, 0), (ACK | PSH, 60), (PSH, 60), (ACK | FIN, 0), (FIN, 20), (SYN | ACK, 0),
    (RST, 0), (RST | ACK, 0), (URG | PSH, 10), (SYN, 20), (SYN | FIN, 0), (SYN | FIN, 7), (ACK, 1),
)  # fmt: skip
"""Flags and octets of segments that belong to no connection; the last has an answer."""


def _answered(peer: Peer, service: str | int = "discard", **offer: int | None) -> Connection:
    """A connection in SYN-RECEIVED: its SYN-ACK has come and was not acknowledged."""
    connection = peer.begin(service, **offer)
    if not peer.pump_until(lambda: connection.answered, peer.patience):
        raise NotReached("no SYN-ACK came")
    return connection


def _send_strays(connection: Connection, *strays: tuple[int, int]) -> None:
    for index, (flags, octets) in enumerate(strays):
        at = (index + 1) * 1000
        # The field of a segment without ACK has no meaning and is not zero either.
        connection.send_odd(
            pattern(at, octets), flags=flags, at=at, sack=(), fields={"ack": at * at % MODULUS}
        )
        connection.wait(connection.rtt + PAUSE_S)


@case("SNR-CON-003", "SNR-CON-004", "SNR-CON-005", "SNR-CON-001")
def test_closed_port_every_kind_of_segment(peer: Peer) -> None:
    """Segments of every kind reach a port on which nothing listens; only a RST has no answer.

    The last ones lie at the end of the sequence space, so that their numbers wrap.
    """
    for iss in (None, MODULUS - 1):
        connection = peer.begin(UNUSED_PORT, iss=iss)
        peer.wait(peer.rtt + PAUSE_S)
        _send_strays(connection, *STRAYS)
    last = peer.draft(UNUSED_PORT, iss=MODULUS - 1030)
    _send_strays(last, (PSH, 60), (ACK, 0))


@case("SNR-CON-003", "SNR-CON-004", "SNR-CON-005")
def test_listening_port_segments_of_no_connection(peer: Peer) -> None:
    """Segments with ACK reach a listening port without a connection; then one opens there.

    A RST and segments without ACK have no answer, SYN or not, and none of them keeps a SYN from
    being answered.
    """
    stray = peer.draft("discard")
    _send_strays(
        stray, (RST, 0), (RST | ACK, 0), (ACK, 0), (ACK | PSH, 60), (ACK | FIN, 0), (ACK, 1)
    )
    for flags in (SYN | ACK, SYN | RST, SYN | RST | ACK):
        _send_strays(peer.draft("discard"), (flags, 0))
    connection = peer.connect("discard")
    connection.send_data(UNIT)
    peer.wait(PAUSE_S)


@case("SNR-CON-006", "SNR-CON-007", "SNR-CON-009", "SNR-CON-033")
def test_syn_received_wrong_acknowledgments(peer: Peer) -> None:
    """Before the right acknowledgment of the SYN-ACK come wrong ones, one with data.

    One is too low, one too high, one is half the sequence space away. The SYN comes twice.
    """
    connection = _answered(peer)
    connection.send_syn()
    for ack, octets in ((-1, 0), (1, UNIT), (1000, UNIT), (1 << 31, 0)):
        connection.send_odd(pattern(0, octets), ack=ack, at=0)
        peer.wait(peer.rtt + PAUSE_S)
    connection.closed = ""  # the RSTs that answered were meant for these segments alone
    connection.send_data(UNIT)
    peer.wait(PAUSE_S)
    connection.send_data(UNIT)
    peer.wait(PAUSE_S + peer.rtt)


@case("SNR-CON-007", "SNR-RCV-029")
def test_syn_received_old_acknowledgment(peer: Peer) -> None:
    """The SYN-ACK is acknowledged by a segment below the window, and later by a right one."""
    connection = _answered(peer, "chargen")
    # Not when the SYN-ACK is about to be repeated anyway.
    peer.wait(max(0.0, 1.3 - peer.rtt))
    connection.send_odd(flags=ACK, at=-1)
    peer.wait(peer.rtt + 2.0)
    connection.ack()
    connection.receive(4)


@connected(
    "SNR-WIN-002", "SNR-CON-034", needs=("window_scale",),
    window=FOUR_SEGMENTS, syn_window=FOUR_SEGMENTS,
)  # fmt: skip
def test_first_window_is_scaled(connection: Connection) -> None:
    """The acknowledgment that completes the handshake offers four segments by a scaled field."""
    connection.wait(2.0)
    connection.receive(12)


@case("SNR-CON-008", "SNR-CON-003")
def test_syn_received_reset(peer: Peer) -> None:
    """A RST ends the handshake; the acknowledgment that comes afterwards belongs to nothing."""
    connection = _answered(peer)
    connection.send_odd(flags=RST, at=0)
    peer.wait(8.0)
    connection.ack()
    peer.wait(peer.rtt + PAUSE_S)
    connection.ack()


@case("SNR-CON-012", needs=("challenge_acks",))
def test_syn_received_reset_in_the_window(peer: Peer) -> None:
    """A RST beyond the next expected octet is challenged, and the handshake goes on."""
    for beyond in (1, 1000):
        connection = _answered(peer, "echo")
        connection.send_odd(flags=RST, at=beyond)
        peer.wait(peer.rtt + PAUSE_S)
        connection.establish()
        connection.send(b"still there")
        peer.wait(peer.rtt + 2.0)
        connection.abort()


@case("SNR-CON-045", needs=("patient_syn_ack",))
def test_syn_received_for_three_minutes(peer: Peer) -> None:
    """The SYN-ACK is not acknowledged before three minutes have nearly passed, then with data."""
    for again in (False, True):
        connection = _answered(peer)
        if again:  # a late copy of the SYN shortens nothing
            peer.wait(2.0)
            connection.send_syn()
        peer.wait(LATE_S)
        connection.send_data(UNIT)
        peer.wait(peer.rtt + PAUSE_S)
        connection.abort()


@case("SNR-CON-009", "SNR-RCV-006", "SNR-RCV-018", "SNR-CON-046")
def test_syn_received_data(peer: Peer) -> None:
    """The segment that completes the handshake carries data.

    Once it is the first segment, once the second, the pure acknowledgment being lost; the third
    time data arrives above the gap that such a loss leaves.
    """
    for first in (0, 0, UNIT):
        connection = _answered(peer, "echo")
        for at in (first, UNIT - first, 2 * UNIT):
            connection.send_data(UNIT, at=at)
            peer.wait(PAUSE_S)
        connection.next_offset = 3 * UNIT
        connection.serve(lambda which=connection: which.delivered >= 3 * UNIT)  # type: ignore[misc]


@case("SNR-RCV-018", "SNR-RCV-006")
def test_syn_with_data(peer: Peer) -> None:
    """The SYN carries data, which comes again if the SYN-ACK does not acknowledge it."""
    for octets in (1, UNIT):
        connection = peer.draft("echo")
        peer.send(craft(replace(connection.syn, payload=pattern(0, octets))))
        connection.establish()
        for at in (0, 2 * UNIT, UNIT):
            connection.send_data(UNIT, at=at)
            peer.wait(PAUSE_S)
        connection.next_offset = 3 * UNIT
        connection.serve(lambda which=connection: which.delivered >= 3 * UNIT)  # type: ignore[misc]
        connection.abort()


def _reset_early(connection: Connection) -> None:
    """End it in SYN-RECEIVED."""
    connection.send_odd(flags=RST, at=0)
    connection.closed = "the tester reset it"


def _reset(connection: Connection) -> None:
    connection.ack()
    connection.send_data(UNIT)
    connection.wait(PAUSE_S)
    connection.abort()


def _close(connection: Connection) -> None:
    """End it from both sides; the implementation, which ends second, does not linger."""
    connection.ack()
    connection.send(flags=ACK | FIN)
    fin = connection.await_arrival(lambda s: bool(s.tcp.flags & FIN), "a FIN")
    connection.take(fin)
    connection.closed = "both have closed"


@case("SNR-CON-046", "SNR-CON-033")
def test_port_called_from_again(peer: Peer) -> None:
    """The tester calls from the same port again and again.

    The connection before was reset in SYN-RECEIVED, or later, or closed from both sides.
    """
    port = peer.new_port()
    for end in (_reset_early, _reset, _close, _close, _reset, _reset_early):
        connection = peer.draft("discard", source_port=port)
        connection.send_syn()
        connection.await_answer("SYN-ACK")
        end(connection)
        connection.wait(peer.rtt + PAUSE_S)


@case("SNR-CON-015", "SNR-CON-009", "SNR-CON-035")
def test_syn_received_fin(peer: Peer) -> None:
    """The segment that completes the handshake carries a FIN, alone or behind data."""
    for octets in (0, UNIT):
        connection = _answered(peer, "echo")
        connection.send(pattern(0, octets), flags=ACK | PSH | FIN)
        connection.serve(lambda which=connection, end=octets: which.delivered > end)  # type: ignore[misc]
        peer.wait(peer.rtt + PAUSE_S)


@case("SNR-CON-002", "SNR-CON-001", "SNR-WIN-001")
def test_segments_with_wrong_checksums(peer: Peer) -> None:
    """SYN, acknowledgment, window update, data, FIN and RST arrive damaged, each before a good one.

    The damaged window update would open a window that is used up.
    """
    window = 4 * 1460
    connection = peer.draft(mss=1460, window_scale=0, window=window, syn_window=window)
    peer.send(wrong_checksum(craft(connection.syn)))
    peer.wait(peer.rtt + PAUSE_S)
    connection.send_syn()
    connection.establish()
    connection.grow(4)
    peer.send(wrong_checksum(connection.craft(fields={"window": 60000})))
    peer.wait(0.4 * peer.rtt)
    connection.receive(12)
    other = peer.connect("discard")
    for flags in (ACK | PSH, ACK | PSH | FIN, RST | ACK):
        octets = b"" if flags & RST else pattern(other.next_offset, UNIT)
        peer.send(wrong_checksum(other.craft(octets, flags=flags)))
        peer.wait(PAUSE_S)
        other.send_data(UNIT)
        peer.wait(PAUSE_S)


@case("SNR-CON-002", "SNR-WIN-001")
def test_segments_with_checksums_that_look_right(peer: Peer) -> None:
    """SYNs, data, FINs, RSTs and window updates have a checksum of zero, or others by mistake.

    A good segment follows each but the updates, which would open a window that is used up.
    """
    window = 4 * 1460
    sender = peer.draft(mss=1460, window_scale=0, window=window, syn_window=window)
    for false in FALSE_CHECKSUMS:
        peer.send(wrong_checksum(craft(sender.syn), false))
    peer.wait(peer.rtt + PAUSE_S)
    sender.send_syn()
    sender.establish()
    sender.grow(4)
    for false in FALSE_CHECKSUMS:
        peer.send(wrong_checksum(sender.craft(fields={"window": 60000}), false))
    peer.wait(0.4 * peer.rtt)
    sender.receive(12)
    connection = peer.connect("discard")
    for flags in (ACK | PSH, ACK | PSH | FIN, RST | ACK):
        for false in FALSE_CHECKSUMS:
            octets = b"" if flags & RST else pattern(connection.next_offset, UNIT)
            peer.send(wrong_checksum(connection.craft(octets, flags=flags), false))
            peer.wait(PAUSE_S)
            connection.send_data(UNIT)
            peer.wait(PAUSE_S)
