"""TCP options: negotiated only when offered, in the right segments, and odd ones survived."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import PAUSE_S
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.crafting import close_options, craft, usual_options
from bentpipe_conformance.protocols.tcp.peer import Peer

UNKNOWN = [(200, b"\x01\x02\x03\x04"), (99, b"")]
"""Two well-formed options of kinds the IANA has not assigned."""


def _talk(connection: Connection, times: int = 3) -> None:
    """Send ordinary data now and then, so that a live IUT has something to answer."""
    for _ in range(times):
        connection.send_data(100)
        connection.wait(PAUSE_S)


@connected(
    "SNR-OPT-001", "SNR-OPT-002", "SNR-OPT-003", "SNR-OPT-006", "SNR-OPT-010",
    mss=None, sack=False, window_scale=None, window=60000,
)  # fmt: skip
def test_syn_without_options_is_answered_without_options(connection: Connection) -> None:
    """What the SYN does not offer, the answer does not carry.

    The SYN has no option at all, not even the MSS, so data segments carry at most 536 octets.
    """
    connection.receive(6)


@connected("SNR-OPT-005", "SNR-RCV-001", to="discard", sack=False)
def test_no_sack_offered_out_of_order_data(connection: Connection) -> None:
    """Without SACK-permitted from the tester, nothing is reported in SACK blocks.

    Neither data above a gap is, nor what came twice below it or above it, nor after the FIN.
    """
    for at in (0, 200, 400, 400, 0, 100, 50, 100, 300):
        connection.send_data(100, at=at)
        connection.wait(0.1)
    connection.next_offset = 500
    connection.send(pattern(500, 100), flags=ACK | PSH | FIN)
    for at in (400, 500):
        connection.wait(PAUSE_S)
        connection.send_data(100, at=at)
    connection.wait(PAUSE_S)


@connected(
    "SNR-OPT-004", "SNR-OPT-006", "SNR-OPT-007", "SNR-OPT-009", "SNR-TS-001", "SNR-TS-002",
    timestamps=True,
)  # fmt: skip
def test_timestamps_negotiated_transfer_with_losses(connection: Connection) -> None:
    """Timestamps are in every segment, retransmissions included, and leave room for themselves.

    The tester offers every option; two segments of one window are lost.
    """
    connection.receive(16, losing=[7, 9])


@connected("SNR-OPT-009", "SNR-OPT-004", to="echo", mss=500, timestamps=True)
def test_small_mss_data_with_sack_blocks(connection: Connection) -> None:
    """Data that carries SACK blocks and timestamps stays within the peer's MSS.

    The tester names an MSS of 500 and leaves a hole in what it sends to the echo service; the
    echo of what lies below the hole carries the block above it.
    """
    connection.send_data(300, at=3000)
    for at in (0, 500, 1000):
        connection.send_data(500, at=at)
    connection.next_offset = 3300
    connection.serve(lambda: connection.delivered >= 1500)


@connected("SNR-OPT-010", "SNR-OPT-004", "SNR-TS-002", mss=None, timestamps=True)
def test_no_mss_timestamps_negotiated_transfer_with_losses(connection: Connection) -> None:
    """Without an MSS option timestamps take room of the 536 octets, in retransmissions as well."""
    connection.receive(16, losing=[7, 9])


@connected("SNR-OPT-010", "SNR-OPT-004", to="echo", mss=None, timestamps=True)
def test_no_mss_data_with_sack_blocks(connection: Connection) -> None:
    """Without an MSS option SACK blocks and timestamps take room of the 536 octets."""
    connection.send_data(300, at=3000)
    for at in (0, 500, 1000):
        connection.send_data(500, at=at)
    connection.next_offset = 3300
    connection.serve(lambda: connection.delivered >= 1500)


@connected("SNR-OPT-008", needs=("window_scale",), window_scale=15, window=1 << 15, syn_window=1500)
def test_shift_of_fifteen_fills_the_window(connection: Connection) -> None:
    """A shift of 15 counts as 14: the window field 1 offers 16384 octets.

    The tester keeps acknowledging, so the sender's own window grows beyond the offered one.
    """
    connection.receive(60)


@connected("SNR-OPT-015", mss=1000, window_scale=0, window=8000, syn_window=1000)
def test_established_window_scale_option_later(connection: Connection) -> None:
    """A Window Scale option in a later segment changes nothing: the window stays 8000 octets."""
    connection.receive(2)
    connection.send_odd(at=0, more=[("NOP", None), ("WScale", 14)])
    connection.receive(40)


@case("SNR-OPT-011")
def test_syn_with_absurd_mss(peer: Peer) -> None:
    """MSS options of 0, 1 and 47 octets neither crash nor silence the implementation."""
    for mss in (0, 1, 47):
        connection = peer.connect(mss=None, options=[("MSS", mss)], window=600, syn_window=600)
        connection.collect(2.0)
        _talk(connection, 2)
        connection.abort()


@case("SNR-OPT-012")
def test_syn_with_unknown_options(peer: Peer) -> None:
    """A SYN with options nobody knows is answered as any other.

    An ordinary connection to the same port follows and shows that the port accepts connections.
    """
    odd = peer.begin("discard", options=UNKNOWN)
    for _ in range(2):
        peer.wait(peer.rtt + 1.5)
        if odd.syn_ack is None and not odd.closed:
            odd.send_syn()
    peer.connect("discard")


@connected("SNR-OPT-013", to="discard")
def test_established_data_with_unknown_options(connection: Connection) -> None:
    """Data in a segment with options nobody knows is taken like any other."""
    connection.send_odd(b"x" * 100, more=UNKNOWN)
    connection.wait(PAUSE_S)
    _talk(connection, 2)


@connected("SNR-OPT-018", to="discard")
def test_established_data_with_an_end_of_options(connection: Connection) -> None:
    """Data whose option list ends with the End of Option List and zeros is taken like any other."""
    for octets in (bytes(4), bytes((1, 1, 1, 0)), bytes(8)):
        connection.send_odd(pattern(connection.next_offset, 100), raw=octets)
        connection.wait(PAUSE_S)
    _talk(connection, 2)


@case("SNR-OPT-014")
def test_established_data_with_illegal_option_lengths(peer: Peer) -> None:
    """Option lengths of zero, of one and past the end of the header do no harm.

    Each odd segment is followed by ordinary ones, to which a live implementation has an answer.
    """
    for octets in (bytes((200, 0)), bytes((200, 1)), bytes((200, 40, 1, 1)), bytes((1, 1, 1, 8))):
        connection = peer.connect("discard")
        connection.send_odd(b"x" * 100, at=0, raw=octets)
        peer.wait(PAUSE_S)
        _talk(connection)
    peer.begin("discard", raw=bytes((2, 0, 200, 0)))
    _talk(peer.connect("discard"), 1)


@connected("SNR-OPT-016", "SNR-OPT-017", mss=9000)
def test_syn_with_a_large_mss(connection: Connection) -> None:
    """The tester could take larger segments than the link carries."""
    connection.receive(12)


@connected(
    "SNR-OPT-010", "SNR-OPT-012", mss=None, sack=False, window_scale=None, window=60000,
    options=[(99, b"\x05\xb4")],
)  # fmt: skip
def test_syn_with_an_unknown_option_as_long_as_the_mss(connection: Connection) -> None:
    """A SYN without MSS has an option nobody knows, which would read as an MSS of 1460 octets."""
    connection.receive(6)


ODD_LENGTHS = (
    bytes((99, 2, 99, 2)), bytes((100, 3, 0, 100, 4, 0, 0)), bytes((101, 10)) + bytes(8),
    bytes((4, 3, 0, 3, 2)), bytes((3, 4, 0, 0, 4, 4, 0, 0)), bytes((2, 3, 0, 8, 2)),
    bytes((8, 9)) + bytes(7), bytes((5, 2, 2, 2)),
)  # fmt: skip
"""Options nobody knows, as long as those that are known, and known ones of other lengths."""


@case("SNR-OPT-001", "SNR-OPT-002", "SNR-OPT-003", "SNR-OPT-012")
def test_syn_with_options_of_odd_lengths(peer: Peer) -> None:
    """What is not an offer is not answered as one.

    The SYNs carry unknown options as long as the known ones, and known ones of impossible length.
    """
    for octets in ODD_LENGTHS:
        connection = peer.begin("discard", sack=False, window_scale=None, raw=octets)
        peer.wait(peer.rtt + PAUSE_S)
        if connection.answered:
            connection.ack()
            _talk(connection, 1)


def _unknown_first(peer: Peer, service: str, **offer: Any) -> Connection:
    """A connection whose SYN has its unknown options in front of those that are known."""
    connection = peer.draft(service, **offer)
    peer.send(craft(connection.syn, [*UNKNOWN, *usual_options(connection.syn)]))
    connection.establish()
    return connection


@case("SNR-OPT-009", "SNR-OPT-012", "SNR-WIN-002")
def test_syn_with_unknown_options_first(peer: Peer) -> None:
    """What follows an unknown option of a SYN counts: its MSS and its window scale."""
    _unknown_first(peer, "chargen", mss=500, syn_window=4000).receive(20)


@connected(
    "SNR-OPT-013", "SNR-RCV-003", "SNR-TS-001", needs=("timestamps",), to="discard",
    timestamps=True,
)  # fmt: skip
def test_established_timestamps_behind_unknown_options(connection: Connection) -> None:
    """What follows an unknown option of data counts: its timestamp."""
    for _ in range(4):
        offset = connection.next_offset
        usual = usual_options(connection.compose(flags=ACK))
        connection.send_odd(pattern(offset, 100), flags=ACK | PSH, options=[*UNKNOWN, *usual])
        connection.wait(PAUSE_S)
    connection.ack()


ORDERS = ((3, 1, 0, 2), (1, 3, 2, 0), (2, 0, 1, 3))
"""Of the options of a SYN: MSS, SACK-permitted, Timestamps and Window Scale."""


@case("SNR-OPT-004", "SNR-OPT-009", needs=("timestamps",))
def test_syn_with_options_in_every_order(peer: Peer) -> None:
    """The options of the SYN come in other orders, without any padding between them."""
    for order in ORDERS:
        connection = peer.draft("chargen", mss=500, timestamps=True)
        options = close_options(connection.syn, 0)
        peer.send(craft(connection.syn, [options[place] for place in order]))
        connection.establish()
        connection.receive(8)
        connection.abort()


@case("SNR-SAK-001", needs=("sack_sender",))
def test_sack_blocks_on_every_boundary(peer: Peer) -> None:
    """SACK blocks begin on each octet of a word (RFC 9293 section 3.1, MUST-64).

    Several segments of a window are lost.
    """
    for padding in (0, 1, 3):
        connection = peer.connect(timestamps=padding == 0)
        connection.padding = padding
        connection.receive(24, losing=[10, 12, 14])
        connection.abort()


@case("SNR-OPT-019", "SNR-OPT-020", "SNR-CON-006", "SNR-CON-033")
def test_syn_repeated(peer: Peer) -> None:
    """The SYN comes again, once and twice, before the SYN-ACK is acknowledged."""
    for times in (1, 2):
        connection = peer.begin("discard", timestamps=True)
        for _ in range(times):
            peer.wait(peer.rtt + 0.1)
            connection.send_syn()
        peer.wait(peer.rtt)
        connection.establish()
        _talk(connection, 2)
