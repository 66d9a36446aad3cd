"""The implementation calls: its SYN is answered well, badly, late, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.tcp.cases.steps import PAUSE_S
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, build
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.peer import Peer

SENDS, RECEIVES = 9, 19
"""Ports of the tester: to the first the implementation sends, from the second it receives."""

UNIT = 100
CALLS = ("active_open",)

SOON_S = 0.15
"""Longer than an answer takes, and shorter than any timeout."""

LATE_S = 181.0
"""A little more than the three minutes of RFC 9293 section 3.8.3."""


def _open(connection: Connection, **answer: int) -> None:
    connection.answer(**answer)
    connection.wait(connection.rtt + PAUSE_S)


def _talk(connection: Connection) -> None:
    """Be an ordinary receiver, or sender, for a while."""
    if connection.source_port == SENDS:
        connection.receive(12)
        return
    connection.wait(connection.rtt + PAUSE_S)
    for unit in (0, 2, 2, 1, 0, 3):
        connection.send_data(UNIT, at=unit * UNIT)
        connection.wait(PAUSE_S)
    connection.next_offset = 4 * UNIT
    connection.send(flags=ACK | PSH | FIN)
    connection.wait(connection.rtt + PAUSE_S)


@case("SNR-CON-025", "SNR-CON-026", "SNR-TS-011", needs=CALLS)
def test_calling_nobody_answers_for_three_minutes(peer: Peer) -> None:
    """The SYN is not answered before three minutes have passed."""
    connection = peer.summon(RECEIVES)
    peer.wait(LATE_S)
    _open(connection)
    connection.ack()


@case(
    "SNR-CON-030",
    "SNR-CON-042",
    "SNR-CON-043",
    "SNR-RCV-006",
    "SNR-WIN-001",
    "SNR-OPT-009",
    needs=CALLS,
)
def test_calling_answered(peer: Peer) -> None:
    """The SYN-ACK offers everything, little or nothing; it comes again when all is open."""
    for offer in (
        {"timestamps": True, "iss": MODULUS - 1},
        {"sack": False, "window_scale": None, "mss": 500, "window": 4000, "syn_window": 4000},
        {"mss": None, "window_scale": 14, "syn_window": 1000},
    ):
        for port in (SENDS, RECEIVES):
            connection = peer.summon(port, **offer)
            connection.answer()
            _talk(connection)
            connection.answer()
            peer.wait(PAUSE_S + peer.rtt)
            connection.ack()
            peer.wait(PAUSE_S)
            connection.abort()


@case("SNR-OPT-008", needs=(*CALLS, "window_scale"))
def test_calling_answered_with_a_shift_of_fifteen(peer: Peer) -> None:
    """The SYN-ACK names a shift of 15, which counts as 14: the field 1 offers 16384 octets."""
    connection = peer.summon(SENDS, window_scale=15, window=1 << 15, syn_window=1500)
    connection.answer()
    connection.receive(60)


@case("SNR-CON-027", "SNR-CON-029", "SNR-CON-030", needs=CALLS)
def test_calling_wrong_acknowledgments(peer: Peer) -> None:
    """Segments that acknowledge too little or too much come before the SYN-ACK, and odd ones.

    The odd ones are RSTs that acknowledge nothing, and segments without SYN.
    """
    connection = peer.summon(SENDS)
    odd = (
        (SYN | ACK, -1), (SYN | ACK, 1), (ACK, 1000), (RST | ACK, -1), (RST, 0), (SYN | RST, 0),
        (ACK, 0), (PSH, 0), (FIN, 0),
    )  # fmt: skip
    for flags, ack in odd:
        tcp = replace(connection.compose(flags=flags, sack=(), at=-1, ack=ack), tsval=None)
        peer.send(build(tcp))
        peer.wait(PAUSE_S + peer.rtt)
    peer.wait(2.0)
    connection.closed = ""  # the RSTs that answered were meant for these segments alone
    connection.answer()
    _talk(connection)


@case("SNR-CON-028", needs=CALLS)
def test_calling_refused(peer: Peer) -> None:
    """The SYN is refused by a RST that acknowledges it."""
    connection = peer.summon(SENDS)
    connection.send(flags=RST | ACK, at=-1, sack=())
    peer.wait(8.0)
    connection.send(flags=RST, at=0, sack=())
    peer.wait(PAUSE_S)


def _call_at_once(peer: Peer, flags: int, **offer: Any) -> None:
    """Answer the implementation's SYN with a SYN, and the SYN-ACK that follows with ``flags``."""
    connection = peer.summon(SENDS, **offer)
    # Not when the SYN is about to be repeated anyway.
    peer.wait(max(0.0, 1.3 - peer.rtt))
    _open(connection, flags=SYN)
    if flags & SYN:
        connection.answer()
    else:
        connection.ack()
    _talk(connection)
    connection.abort()


@case("SNR-CON-031", needs=CALLS)
def test_calling_while_called(peer: Peer) -> None:
    """Both sides call at once; the tester's SYN-ACK, or its pure acknowledgment, completes it."""
    for flags in (SYN | ACK, ACK):
        _call_at_once(peer, flags, timestamps=True, mss=1000)


@case("SNR-OPT-021", "SNR-CON-031", needs=CALLS)
def test_calling_while_called_with_less(peer: Peer) -> None:
    """Both sides call at once, and the tester's SYN lacks options; a SYN-ACK or ACK completes it.

    It lacks Window Scale, or Timestamps, or SACK-permitted, or all of them and the MSS.
    """
    for lacking in (
        {"timestamps": True, "window_scale": None}, {}, {"timestamps": True, "sack": False},
        {"mss": None, "sack": False, "window_scale": None},
    ):  # fmt: skip
        for flags in (SYN | ACK, ACK):
            _call_at_once(peer, flags, **lacking)


def _abort(connection: Connection) -> None:
    """Have the implementation's user abort, and wait for the RST."""
    peer = connection.peer
    peer.have_aborted()
    if not peer.pump_until(lambda: bool(connection.closed), peer.patience):
        raise NotReached("SNR-CON-047: its user aborted, but no RST came")


def _leave(_: Connection) -> None:
    """Do nothing: no more comes than SYNs, and nothing acknowledges what is sent."""


def _acknowledged_in_part(connection: Connection) -> None:
    connection.hold(connection.expect())
    connection.ack()


def _heard(connection: Connection) -> None:
    connection.send_data(UNIT)


def _holding(connection: Connection) -> None:
    connection.send_data(UNIT)
    connection.send_data(UNIT, at=3 * UNIT)


@case("SNR-CON-047", needs=(*CALLS, "user_aborts"))
def test_calling_user_aborts(peer: Peer) -> None:
    """The user aborts what it has called, soon after something has come, and before any timeout.

    Nothing has been sent; or data has come, or some above a gap; or a window is outstanding, or
    what follows a part of it.
    """
    for port, reach in (
        (RECEIVES, _leave), (RECEIVES, _heard), (RECEIVES, _holding), (SENDS, _leave),
        (SENDS, _acknowledged_in_part), (SENDS, _heard),
    ):  # fmt: skip
        for offer in ({}, {"timestamps": True}):
            connection = peer.summon(port, **offer)
            connection.answer()
            if port == RECEIVES:
                connection.wait(connection.rtt)
            else:
                connection.inbox.appendleft(connection.expect())
            reach(connection)
            connection.wait(connection.rtt / 2 + SOON_S)
            _abort(connection)
