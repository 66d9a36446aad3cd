"""What strangers and liars send: none of it stops the implementation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.rwbp.cases.exchange import UNIT, receive_some, send_some
from bentpipe_conformance.protocols.rwbp.cases.steps import (
    PATIENCE_S,
    PAUSE_S,
    await_silence,
    lose_first,
)
from bentpipe_conformance.protocols.rwbp.codec import build, option_octets
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, URG

ODD_FLAGS = (
    0, FIN, PSH, URG, FIN | PSH | URG, SYN, SYN | ACK, SYN | FIN, SYN | FIN | ACK, SYN | RST,
    RST | FIN, 255, FIN | URG,
)  # fmt: skip
"""Combinations of flags that no connection in order brings forth."""


@connected("RWBP-SEC-003", "RWBP-CX-005", to="discard")
def test_every_combination_of_flags(connection: Connection) -> None:
    """Segments with odd flags come within the window, and outside it; none ends the connection."""
    connection.send_data(UNIT, pause=connection.rtt)
    for flags in ODD_FLAGS:
        for at in (UNIT + 100, UNIT - 10, UNIT + (1 << 20)):
            connection.send(b"x" * 20, at=at, flags=flags & 255, sack=(), pause=0.1)
    connection.wait(connection.rtt)
    connection.closed = ""
    connection.send_data(2 * UNIT, at=UNIT)
    connection.next_offset = 3 * UNIT
    send_some(connection)


@connected("RWBP-SEC-003", to="discard")
def test_segments_without_ack(connection: Connection) -> None:
    """Data without ACK is not taken; it comes again with it."""
    for _ in range(10):
        connection.send(
            pattern(connection.next_offset, UNIT), flags=PSH, at=connection.next_offset, pause=0.1
        )
        connection.send_data(UNIT, pause=0.1)
    await_silence(connection)


MARGIN = 40 * SEGMENT
"""More than the tester has ever offered."""


@connected("RWBP-SEC-003", "RWBP-SEC-004", "RWBP-EC-013")
def test_blocks_of_what_was_never_sent(connection: Connection) -> None:
    """Blocks beyond what has been sent, next to a loss; everything is repaired all the same."""
    connection.receive(20)
    for octets in (MARGIN, 100 * SEGMENT, 1 << 29):
        lose_first(connection)
        high = connection.highest
        connection.ack(sack=((connection.delivered + SEGMENT, high + octets),))
        connection.ack(sack=((high + octets - 1, high + octets),))
        connection.receive_more(20)


@connected("RWBP-SEC-003", "RWBP-SEC-004", "RWBP-EC-015")
def test_acknowledgments_of_what_was_never_sent(connection: Connection) -> None:
    """Numbers beyond what has been sent, next to a loss; everything is repaired all the same."""
    connection.receive(20)
    for octets in (MARGIN, 100 * SEGMENT, 1 << 29, (1 << 31) - MARGIN):
        lose_first(connection)
        connection.ack(connection.highest + octets, sack=(), pause=connection.rtt)
        connection.receive_more(20)


@case("RWBP-SEC-004", "RWBP-EC-015", "RWBP-EC-013")
def test_one_octet_more_than_was_sent(peer: Peer) -> None:
    """The number after the last that was sent is acknowledged, or lies within a block."""
    for lie in ("number", "block", "both"):
        connection = peer.connect("echo")
        for _ in range(4):
            connection.send_data(UNIT)
        connection.wait(connection.rtt + PAUSE_S)
        # On a slow way back the echo of the last piece may still be under way, and is no lie then.
        while connection.highest < 4 * UNIT:
            connection.expect(within=PATIENCE_S, what="the echo of four pieces")
        connection.inbox.clear()
        high = connection.highest
        if lie != "number":
            connection.ack(0, sack=((UNIT, high + 1),))
        if lie != "block":
            connection.ack(high + 1, sack=())
        connection.wait(connection.rtt)
        connection.send_data(UNIT)
        connection.serve(lambda each=connection: each.delivered >= 5 * UNIT)  # type: ignore[misc]


@case("RWBP-SEC-003")
def test_segments_for_other_ports(peer: Peer) -> None:
    """Segments of no connection, of another port or address, come while one goes on."""
    connection = peer.connect("chargen")
    connection.receive(10)
    usual = connection.compose(sack=())
    for flags in (ACK, RST, FIN | ACK, SYN | ACK):
        for other in (
            replace(usual, sport=usual.sport + 1000, flags=flags),
            replace(usual, dport=12345, flags=flags),
            replace(usual, src="10.78.0.99", sport=usual.sport + 2000, flags=flags),
        ):
            peer.send(build(other))
            connection.wait(0.05)
        connection.receive_more(10)
    receive_some(peer.connect("chargen"))


@case("RWBP-SEC-003")
def test_many_syns(peer: Peer) -> None:
    """A hundred SYNs with and without options are left alone; then a connection opens."""
    for index in range(100):
        option = option_octets(index % 256, 48 * index % 65536, version=index % 16)
        peer.begin("discard", option=option[: 2 + index % 9] if index % 7 == 0 else option)
        peer.wait(0.01)
    peer.wait(PAUSE_S)
    connection = peer.connect("chargen")
    receive_some(connection)


@connected("RWBP-AK-005", "RWBP-AK-007", to="discard")
def test_hundreds_of_runs(connection: Connection) -> None:
    """Every other octet of four hundred comes, and then all of them."""
    for index in range(1, 400, 2):
        connection.send(b"x", at=index, sack=(), pause=0.005)
    connection.wait(connection.rtt)
    connection.send(b"x" * 400, at=0)
    connection.next_offset = 400
    send_some(connection)


@case("RWBP-CX-002")
def test_syn_repeated_while_its_answer_is_lost(peer: Peer) -> None:
    """Each copy of the SYN is answered, which starts the timer of the SYN-ACK anew."""
    for pauses in ((0.5,), (0.4, 0.3), (1.5, 1.2)):
        connection = peer.begin("chargen")
        for pause in pauses:
            connection.wait(pause)
            connection.send_syn()
        connection.wait(connection.rtt + 9.0)
        connection.abort()
        connection.wait(PAUSE_S)


@case("RWBP-SEC-003")
def test_syn_within_the_window_of_an_answer(peer: Peer) -> None:
    """A SYN with another number comes before the handshake is over, which it does not end."""
    for offset in (1, 100):
        connection = peer.begin("chargen")
        connection.await_answer("SYN-ACK")
        again = replace(connection.syn, seq=(connection.syn.seq + 1 + offset) % MODULUS)
        peer.send(build(again))
        connection.wait(connection.rtt + PAUSE_S)
        connection.ack()
        receive_some(connection)


@case("RWBP-WN-005", "RWBP-EC-006", "RWBP-SEC-003")
def test_acknowledgment_and_window_of_a_syn(peer: Peer) -> None:
    """A SYN within the window acknowledges everything and offers more: both count for nothing.

    It has ACK flag or not, and is below the window once.
    """
    for flags, at in ((SYN | ACK, 0), (SYN | ACK, 100), (SYN | ACK, -1), (SYN, 0)):
        connection = peer.connect("chargen", window=4 * SEGMENT)
        connection.await_round()
        said: dict[str, Any] = {"flags": flags, "at": at, "ack": connection.highest, "sack": ()}
        connection.send_odd(**said, fields={"window": 0xFFFF})
        connection.wait(connection.rtt + PATIENCE_S / 10)
        connection.inbox.clear()
        receive_some(connection)
        connection.abort()
        peer.wait(PAUSE_S)


@case("RWBP-EC-015", "RWBP-WF-002")
def test_data_with_acknowledgments_of_what_was_never_sent(peer: Peer) -> None:
    """Segments whose number is refused carry data and FIN, which are refused with it."""
    for octets in (1, MARGIN, 1 << 29):
        for flags in (ACK, ACK | FIN):
            connection = peer.connect("discard")
            connection.send_data(UNIT, pause=PAUSE_S)
            connection.send(b"y" * UNIT, at=UNIT, flags=flags, ack=octets, sack=(), pause=PAUSE_S)
            connection.wait(connection.rtt)
            send_some(connection)
            connection.abort()
