"""The IUT is called: what a SYN offers, and what becomes of it."""

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
from bentpipe_conformance.protocols.rwbp.cases.steps import PAUSE_S
from bentpipe_conformance.protocols.rwbp.codec import build, option_octets
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import CWR, ECE, SYN
from bentpipe_conformance.protocols.tcp.connection import Connection

AGREED = ("RWBP-NG-002", "RWBP-NG-003", "RWBP-NG-004", "RWBP-WN-001")
PLAIN = ("RWBP-NG-003", "RWBP-NG-008")
VOID = (*PLAIN, "RWBP-NG-006")
SEVERAL = (*AGREED, "RWBP-NG-006")

END = b"\0"


@dataclass(frozen=True, slots=True)
class Offer(Row):
    """A SYN.

    Attributes:
        offer: what the tester offers, see :class:`Connection`.
        flags: of the SYN beside SYN.
        reserved: bits behind its data offset.
        data: octets in it.
    """

    offer: Mapping[str, Any] = field(default_factory=dict)
    flags: int = 0
    reserved: int = 0
    data: bytes = b""


def _option(**fields: Any) -> dict[str, Any]:
    return {"option": option_octets(**fields)}


ROWS = (
    Offer("rwbp", "RWBP, MSS and SACK-Permitted, nothing else.", AGREED),
    Offer("rwbp-and-everything-else", "Window Scale and Timestamps beside RWBP, and ECN.",
          (*AGREED, "RWBP-NG-009", "RWBP-NG-010"), offer={"window_scale": 7, "timestamps": True},
          flags=ECE | CWR),
    Offer("rwbp-and-accurate-ecn", "RWBP, and the three flags of Accurate ECN.", AGREED,
          flags=ECE | CWR, reserved=1),
    Offer("rwbp-and-window-scale", "Window Scale beside RWBP.", (*AGREED, "RWBP-NG-009"),
          offer={"window_scale": 3}),
    Offer("rwbp-and-timestamps", "Timestamps beside RWBP.", (*AGREED, "RWBP-NG-009"),
          offer={"timestamps": True}),
    Offer("reserved-bits", "The reserved bits of the option are set.", AGREED,
          offer=_option(reserved=15)),
    Offer("no-mss", "RWBP without an MSS option.", (*AGREED, "RWBP-WF-006"),
          offer={"mss": None, "unit": SEGMENT}),
    Offer("smaller-mss", "The MSS option has been lowered on the way.", (*AGREED, "RWBP-WF-006"),
          offer={"mss": 536, "unit": SEGMENT}),
    Offer("smaller-unit", "The unit is smaller than the MSS.", (*AGREED, "RWBP-WF-006"),
          offer={"mss": SEGMENT, "unit": 600}),
    Offer("smallest-unit", "A unit of 48 octets.", (*AGREED, "RWBP-WF-006"),
          offer={"mss": SEGMENT, "unit": 48, "window": 4800}),
    Offer("largest-unit", "A unit of 65,535 octets.", AGREED,
          offer={"unit": 65535, "window": 65535, "syn_window": SEGMENT}),
    Offer("tiny-mss", "An MSS of 10 counts as 48.", (*AGREED, "RWBP-WF-006"),
          offer={"mss": 10, "unit": SEGMENT, "window": 4 * SEGMENT}),
    Offer("data-in-the-syn", "The SYN has data, which is not taken.", (*AGREED, "RWBP-NG-011"),
          data=b"x" * 100),
    Offer("after-another-experiment", "An option of another experiment comes first.", AGREED,
          offer={"option": bytes((253, 4, 0xF9, 0x89)) + option_octets()}),
    Offer("after-unknown-options", "Unknown options, and one that is too short, come first.",
          (*AGREED, "RWBP-WF-005"),
          offer={"option": bytes((200, 5, 1, 2, 3, 253, 2, 3, 2)) + option_octets()}),
    Offer("mss-of-0", "An MSS of 0 counts as 48, too, and is no absent one.",
          (*AGREED, "RWBP-WF-006"),
          offer={"mss": 0, "unit": SEGMENT, "window": 4 * SEGMENT}),
    Offer("second-mss", "A second MSS option, and one of a wrong length.",
          (*AGREED, "RWBP-WF-005"),
          offer={"option": bytes((2, 4, 1, 0, 2, 3, 9)) + option_octets()}),
    Offer("void-option-first", "An option of version 2 stands before one that counts.", SEVERAL,
          offer={"option": option_octets(3, 700, version=2) + option_octets()}),
    Offer("void-option-last", "An option of interval 0 stands behind one that counts.", SEVERAL,
          offer={"option": option_octets() + option_octets(0, 700)}),
    Offer("two-options", "Two options that would count; the second has a smaller unit.",
          (*SEVERAL, "RWBP-WF-006"),
          offer={"option": option_octets() + option_octets(3, 500)}),
    Offer("two-options-and-the-second-is-larger", "The second has a larger unit and interval.",
          SEVERAL, offer={"option": option_octets(4, 500) + option_octets(64), "unit": 500}),
    Offer("without-sack-permitted", "RWBP without SACK-Permitted.", PLAIN, offer={"sack": False}),
    Offer("plain", "A SYN of plain TCP, with scale and timestamps.", PLAIN,
          offer={"rwbp": False, "window_scale": 2, "timestamps": True}),
    *(Offer(f"plain-with-scale-{scale}",
            "A SYN of plain TCP whose window fields are small, for they are scaled.", PLAIN,
            offer={"rwbp": False, "window_scale": scale})
      for scale in (7, 10)),
    Offer("plain-without-sack", "A SYN of plain TCP, with nothing but MSS.", PLAIN,
          offer={"rwbp": False, "sack": False}),
    *(Offer(f"{name}-{value}", f"An option of {name} {value}.", VOID,
            offer=_option(**{name: value}))
      for name, values in (("version", (0, 2, 15)), ("interval", (0,)), ("unit", (0, 47)),
                           ("length", (6, 9, 11)))
      for value in values),
    Offer("two-void-options", "Two options, both void.", VOID,
          offer={"option": option_octets(version=3) + option_octets(unit=12)}),
    Offer("void-and-everything-else", "A void option beside Window Scale and Timestamps.", VOID,
          offer={"window_scale": 2, "timestamps": True, **_option(version=2)}),
    Offer("another-experiment", "An option of kind 253 with another ExID.", PLAIN,
          offer=_option(exid=b"RWBQ")),
    Offer("half-an-exid", "An option of kind 253 with 16 bits of the ExID.", PLAIN,
          offer={"option": bytes((253, 4)) + b"RW"}),
    Offer("another-kind", "The option with kind 254.", PLAIN,
          offer={"option": bytes((254,)) + option_octets()[1:]}),
    Offer("behind-the-end-of-the-list", "The option stands behind End of Option List.", PLAIN,
          offer={"option": END + option_octets()}),
)  # fmt: skip


def open_with(peer: Peer, service: str, row: Offer) -> Connection:
    """A connection that is opened by the SYN of a row."""
    connection = peer.draft(service, **row.offer)
    connection.syn = replace(connection.syn, flags=SYN | row.flags, payload=row.data)
    if row.reserved:
        send_crafted(connection, connection.syn, row.reserved)
    else:
        connection.send_syn()
    connection.syn = replace(connection.syn, flags=SYN, payload=b"")
    connection.establish()
    return connection


def _drive(peer: Peer, row: Offer) -> None:
    for service, use in (("chargen", receive_some), ("discard", send_some)):
        connection = open_with(peer, service, row)
        use(connection)
        connection.abort()
        peer.wait(PAUSE_S)


each(globals(), ROWS, _drive)


@case("RWBP-NG-010", "RWBP-NG-004")
def test_ecn_offered_and_used(peer: Peer) -> None:
    """The SYN offers ECN, and segments after it report congestion: agreement has made that void."""
    for service, use in (("chargen", receive_some), ("echo", send_some)):
        connection = open_with(peer, service, Offer("", "", (), flags=ECE | CWR))
        report_congestion(connection)
        use(connection)
        connection.abort()
        peer.wait(PAUSE_S)


@case("RWBP-NG-003", "RWBP-NG-004", "RWBP-CX-002")
def test_syn_ack_unanswered(peer: Peer) -> None:
    """The SYN-ACK is answered after its fourth copy, that of a plain SYN after the second."""
    for offer, copies in (({}, 4), ({"rwbp": False, "timestamps": True}, 2)):
        connection = peer.begin("chargen", **offer)
        connection.await_answer("SYN-ACK")
        peer.wait(2.0**copies + PAUSE_S - 1)
        connection.ack()
        receive_some(connection)
        connection.abort()


@case("RWBP-NG-003", "RWBP-WN-001")
def test_syn_repeated_with_another_option(peer: Peer) -> None:
    """The SYN comes again with another unit, without RWBP, and void; the first one counts."""
    for again in (option_octets(2, 500), b"", option_octets(version=2)):
        connection = peer.begin("chargen")
        connection.await_answer("SYN-ACK")
        kept, connection.appended = connection.appended, again
        connection.send_syn()
        connection.appended = kept
        connection.wait(connection.rtt)
        connection.ack()
        receive_some(connection)
        connection.abort()


@case("RWBP-NG-007", "RWBP-NG-009", "RWBP-WF-005")
def test_syn_ack_answered_with_options(peer: Peer) -> None:
    """The third segment has an RWBP option of another unit, Timestamps and Window Scale."""
    connection = peer.begin("chargen")
    connection.await_answer("SYN-ACK")
    odd = option_octets(2, 500) + bytes((8, 10)) + bytes(8) + bytes((3, 3, 9))
    peer.send(build(connection.compose(sack=()), odd))
    receive_some(connection)


@case("RWBP-NG-008")
def test_plain_loss(peer: Peer) -> None:
    """Segments of a plain connection are lost, one after slow start, then a whole window."""
    connection = peer.connect("chargen", rwbp=False, window_scale=7, window=1 << 18)
    connection.receive(120, losing=[40, 41, 70])
    connection.grow(8)
    connection.discard(8.0)
    connection.receive_more(40)


@case("RWBP-NG-008")
def test_plain_echo(peer: Peer) -> None:
    """A plain connection carries an echo both ways, with holes."""
    connection = peer.connect("echo", rwbp=False)
    send_some(connection)
    connection.serve(lambda: connection.delivered >= connection.next_offset)


@case("RWBP-NG-008")
def test_plain_upload(peer: Peer) -> None:
    """A peer of plain TCP sends full-sized segments, in bursts and with a hole."""
    connection = peer.connect("discard", rwbp=False)
    for burst in range(6):
        for index in range(6):
            connection.send_data(SEGMENT, at=(6 * burst + index) * SEGMENT)
        connection.wait(PAUSE_S)
    connection.send_data(SEGMENT, at=38 * SEGMENT, pause=PAUSE_S)
    connection.send_data(SEGMENT, at=36 * SEGMENT)
    connection.send_data(SEGMENT, at=37 * SEGMENT, pause=connection.rtt + PAUSE_S)
