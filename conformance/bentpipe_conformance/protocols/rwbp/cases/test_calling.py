"""The IUT calls: what its SYN offers, and how it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.rwbp.cases.exchange import (
    receive_some,
    report_congestion,
    send_crafted,
    send_some,
)
from bentpipe_conformance.protocols.rwbp.cases.steps import (
    PAUSE_S,
    RECEIVES,
    SENDS,
    lose_until,
)
from bentpipe_conformance.protocols.rwbp.codec import option_octets
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, CWR, ECE, MODULUS, RST, SYN
from bentpipe_conformance.protocols.tcp.connection import Connection

CALLS = ("active_open",)

AGREED = ("RWBP-NG-001", "RWBP-NG-002")
PLAIN = ("RWBP-NG-001", "RWBP-NG-005", "RWBP-NG-008")
VOID = ("RWBP-NG-001", "RWBP-NG-006", "RWBP-NG-008")


@dataclass(frozen=True, slots=True)
class Answer(Row):
    """A SYN-ACK.

    Attributes:
        offer: what the tester answers, see :class:`Connection`.
        more: fields of the SYN-ACK besides, whatever the IUT has offered.
        flags: of it beside SYN and ACK.
        reserved: bits behind its data offset.
    """

    offer: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    flags: int = 0
    reserved: int = 0


def _option(**fields: Any) -> dict[str, Any]:
    return {"option": option_octets(**fields)}


ROWS = (
    Answer("rwbp", "The SYN-ACK agrees.", AGREED),
    Answer("rwbp-and-everything-else", "Window Scale, Timestamps and ECE beside RWBP.",
           (*AGREED, "RWBP-NG-009", "RWBP-NG-010"),
           more={"window_scale": 7, "tsval": 77, "tsecr": 0}, flags=ECE),
    Answer("rwbp-and-flags", "RWBP, with ECE, CWR and AE.", (*AGREED, "RWBP-NG-010"),
           flags=ECE | CWR, reserved=1),
    Answer("small-unit", "A unit of 600 octets.", (*AGREED, "RWBP-WF-006"), offer={"unit": 600}),
    Answer("small-mss", "An MSS of 536 octets.", (*AGREED, "RWBP-WF-006"),
           offer={"mss": 536, "unit": SEGMENT}),
    Answer("interval-2", "An interval of 2.", AGREED, offer={"interval": 2}),
    Answer("data-in-the-syn-ack", "The SYN-ACK has data.", (*AGREED, "RWBP-NG-011"),
           more={"payload": b"x" * 50}),
    Answer("void-option-first", "A void option stands before one that counts.",
           (*AGREED, "RWBP-NG-006"),
           offer={"option": option_octets(2, 500, version=9) + option_octets()}),
    Answer("two-options", "The second option has a smaller unit and interval.",
           (*AGREED, "RWBP-NG-006"), offer={"option": option_octets() + option_octets(2, 500)}),
    Answer("without-rwbp", "The SYN-ACK of a plain TCP.", PLAIN, offer={"rwbp": False}),
    Answer("without-rwbp-with-everything-else", "A plain TCP with scale and timestamps.", PLAIN,
           offer={"rwbp": False, "window_scale": 2, "timestamps": True}),
    *(Answer(f"without-rwbp-with-scale-{scale}",
             "A plain TCP whose window fields are small, for they are scaled.", PLAIN,
             offer={"rwbp": False, "window_scale": scale})
      for scale in (7, 10)),
    Answer("with-nothing", "The SYN-ACK has no options.", PLAIN,
           offer={"rwbp": False, "sack": False, "mss": None}),
    Answer("without-sack-permitted", "RWBP without SACK-Permitted.", PLAIN, offer={"sack": False}),
    *(Answer(f"{name}-{value}", f"An option of {name} {value}.", VOID,
             offer=_option(**{name: value}))
      for name, value in (("version", 2), ("interval", 0), ("unit", 47), ("length", 6),
                          ("length", 11))),
    Answer("void-and-everything-else", "A void option with scale and timestamps.", VOID,
           offer={"window_scale": 2, "timestamps": True, **_option(version=2)}),
    Answer("another-experiment", "An option with another ExID.", PLAIN,
           offer=_option(exid=b"RWBQ")),
)  # fmt: skip


def _answer(connection: Connection, row: Answer) -> None:
    """Send the SYN-ACK of a row."""
    if not (row.more or row.flags or row.reserved):
        connection.answer()
        return
    fields = {"flags": SYN | ACK | row.flags, "sack_permitted": True, **row.more}
    theirs = connection.syn_ack
    assert theirs is not None
    ack = (theirs.seq + 1) % MODULUS
    syn_ack = replace(connection.syn, **{"window_scale": None, "tsval": None, "ack": ack, **fields})
    send_crafted(connection, syn_ack, row.reserved)


def _drive(peer: Peer, row: Answer) -> None:
    for port, use in ((SENDS, receive_some), (RECEIVES, send_some)):
        connection = peer.summon(port, **row.offer)
        _answer(connection, row)
        connection.wait(connection.rtt)
        use(connection)
        connection.abort()
        peer.wait(PAUSE_S)


each(globals(), [replace(row, name=f"called-{row.name}", needs=CALLS) for row in ROWS], _drive)


@case("RWBP-NG-001", "RWBP-CX-002", needs=CALLS)
def test_syn_unanswered(peer: Peer) -> None:
    """The SYN is answered after its fifth copy."""
    connection = peer.summon(SENDS)
    peer.wait(2.0**5 - 1 + PAUSE_S)
    connection.answer()
    connection.wait(connection.rtt)
    receive_some(connection)


@case("RWBP-NG-001", "RWBP-NG-002", needs=CALLS)
def test_syn_ack_repeated_with_another_option(peer: Peer) -> None:
    """The SYN-ACK comes again, with another unit and without RWBP; the first one counts."""
    for again in (option_octets(2, 500), b""):
        connection = peer.summon(SENDS)
        connection.answer()
        kept, connection.appended = connection.appended, again
        connection.answer()
        connection.appended = kept
        connection.wait(connection.rtt)
        receive_some(connection)
        connection.abort()
        peer.wait(PAUSE_S)


@case("RWBP-NG-001", needs=CALLS)
def test_call_refused(peer: Peer) -> None:
    """The SYN is refused by a RST; no other follows it."""
    connection = peer.summon(SENDS)
    connection.send(flags=RST | ACK, at=-1, sack=())
    peer.wait(8.0)


@case("RWBP-NG-001", needs=CALLS)
def test_syns_cross(peer: Peer) -> None:
    """Both ends call; the tester's SYN has RWBP, or not."""
    for offer in ({}, {"rwbp": False}):
        connection = peer.summon(SENDS, **offer)
        connection.answer(flags=SYN)
        peer.wait(connection.rtt + PAUSE_S)
        connection.answer()
        connection.ack()
        receive_some(connection)
        connection.abort()
        peer.wait(PAUSE_S)


@case("RWBP-NG-001", "RWBP-WN-001", "RWBP-AK-004", needs=CALLS)
def test_syns_cross_and_the_syn_ack_has_another_option(peer: Peer) -> None:
    """Both ends call; the SYN-ACK that follows has another unit and interval: the SYN counts."""
    for port, use in ((SENDS, receive_some), (RECEIVES, send_some)):
        connection = peer.summon(port)
        connection.answer(flags=SYN)
        peer.wait(connection.rtt + PAUSE_S)
        kept, connection.appended = connection.appended, option_octets(2, 500)
        connection.answer()
        connection.appended = kept
        connection.ack()
        use(connection)
        connection.abort()
        peer.wait(PAUSE_S)


@case("RWBP-NG-010", needs=CALLS)
def test_ecn_answered_and_used(peer: Peer) -> None:
    """The SYN-ACK has ECE, and so have segments after it: agreement has made that void."""
    for port, use in ((SENDS, receive_some), (RECEIVES, send_some)):
        connection = peer.summon(port)
        _answer(connection, Answer("", "", (), flags=ECE))
        connection.wait(connection.rtt)
        report_congestion(connection)
        use(connection)
        connection.abort()
        peer.wait(PAUSE_S)


@case("RWBP-CX-002", "RWBP-TM-001", needs=CALLS)
def test_syns_cross_and_answers_are_late(peer: Peer) -> None:
    """Both ends call; the SYN-ACK is repeated for a while, and then the first segment is lost."""
    connection = peer.summon(SENDS)
    connection.answer(flags=SYN)
    peer.wait(8.0)
    connection.answer()
    connection.ack()
    lose_until(connection, 2)
    receive_some(connection)
