"""Segments on the wire: sizes, numbers, options and flags, usual and odd ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import Row, connected, each
from bentpipe_conformance.protocols.rwbp.cases.exchange import UNIT, close, receive_some, send_some
from bentpipe_conformance.protocols.rwbp.cases.steps import PAUSE_S, await_silence, lose_first
from bentpipe_conformance.protocols.rwbp.codec import option_octets
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, CWR, ECE, FIN, MODULUS, PSH, RST, SYN, URG
from bentpipe_conformance.protocols.tcp.crafting import wrong_checksum

STAMPS = bytes((8, 10)) + bytes(range(8))
OLD_STAMPS = bytes((8, 10)) + bytes(8)
UNKNOWN = bytes((200, 6, 1, 2, 3, 4))


def _sack(*edges: int, octets: int | None = None) -> bytes:
    values = b"".join(edge.to_bytes(4, "big") for edge in edges)
    return bytes((5, len(values) + 2 if octets is None else octets)) + values


@dataclass(frozen=True, slots=True)
class Odd(Row):
    """What is odd about the tester's segments.

    Attributes:
        raw: octets behind their options.
        fields: fields of Scapy's ``TCP``.
        flags: beside ACK.
        mark: the ECN field of the IP header.
    """

    raw: bytes = b""
    fields: Mapping[str, Any] = field(default_factory=dict)
    flags: int = 0
    mark: int = 0


ROWS = (
    Odd("unknown-option", "An option of kind 200.", ("RWBP-WF-005",), raw=UNKNOWN),
    Odd("another-experiment", "An option of another experiment.", ("RWBP-WF-005",),
        raw=bytes((253, 4, 0xF9, 0x89))),
    Odd("mss-and-scale", "MSS, Window Scale and SACK-Permitted.", ("RWBP-WF-002",),
        raw=bytes((2, 4, 1, 0, 3, 3, 5, 4, 2))),
    Odd("lengths-that-are-wrong", "MSS, Timestamps and SACK of wrong lengths.", ("RWBP-WF-005",),
        raw=bytes((2, 3, 9, 8, 4, 1, 1)) + _sack(octets=2) + bytes((5, 6, 0, 0, 0, 1))),
    Odd("rwbp-option", "An RWBP option of a smaller unit and interval.",
        ("RWBP-NG-007",), raw=option_octets(2, 500)),
    Odd("rwbp-option-larger", "An RWBP option of a larger unit and interval.",
        ("RWBP-NG-007",), raw=option_octets(200, 60000)),
    Odd("timestamps", "Timestamps, the same ones again and again.", ("RWBP-NG-009",), raw=STAMPS),
    Odd("timestamps-of-zero", "Timestamps of zero.", ("RWBP-NG-009",), raw=OLD_STAMPS),
    Odd("ece", "ECE in every segment.", ("RWBP-NG-010",), flags=ECE),
    Odd("cwr", "CWR in every segment.", ("RWBP-NG-010",), flags=CWR),
    Odd("ae-and-reserved", "AE and the reserved bits.", ("RWBP-NG-010",),
        fields={"reserved": 15}),
    Odd("congestion-experienced", "Every packet is marked CE.", ("RWBP-NG-010",), mark=3),
    Odd("ect", "Every packet is marked ECT(0).", ("RWBP-NG-010",), mark=2),
    Odd("urgent", "URG with an urgent pointer of 10.", ("RWBP-WF-009",), flags=URG,
        fields={"urgptr": 10}),
    Odd("urgent-pointer", "An urgent pointer without URG.", ("RWBP-WF-002",),
        fields={"urgptr": 10}),
    Odd("pushed", "PSH in every segment.", ("RWBP-WF-002",), flags=PSH),
)  # fmt: skip


def _send(connection: Connection, row: Odd, payload: bytes = b"", **usual: Any) -> None:
    packet = connection.craft(
        payload, flags=ACK | row.flags, raw=row.raw, fields=row.fields, **usual
    )
    packet.tos |= row.mark
    connection.peer.send(packet)


def _odd_data(peer: Peer, row: Odd) -> None:
    """Data in and out of sequence comes so."""
    connection = peer.connect("discard")
    for index in (0, 1, 3, 4, 2, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13):
        _send(connection, row, pattern(index * UNIT, UNIT), at=index * UNIT)
        connection.wait(0.05)
    connection.next_offset = 14 * UNIT
    connection.wait(connection.rtt + PAUSE_S)
    connection.abort()


def _odd_acknowledgments(peer: Peer, row: Odd) -> None:
    """Acknowledgments come so, the second of them with blocks."""
    connection = peer.connect("chargen")
    for _ in range(6):
        waiting = connection.take_round()
        lost = waiting[1] if len(waiting) > 3 else None
        for segment in waiting:
            if segment is not lost:
                connection.hold(segment)
        _send(connection, row)
        if lost is not None:
            connection.hold(
                connection.expect(lambda s, lost=lost: s.start == lost.start)  # type: ignore[misc]
            )
    connection.ack()
    receive_some(connection)


def _drive(peer: Peer, row: Odd) -> None:
    _odd_data(peer, row)
    _odd_acknowledgments(peer, row)


each(globals(), ROWS, _drive)


# -- sizes


@connected("RWBP-WF-007", "RWBP-WF-010", to="echo")
def test_small_pieces_echoed(connection: Connection) -> None:
    """Pieces of 1 to 40 octets come while their echoes are outstanding."""
    for size in (*range(1, 30), 40):
        connection.send_data(size, pause=0.03)
    connection.serve(lambda: connection.delivered >= connection.next_offset)


@connected("RWBP-WF-007", to="echo", window=2 * SEGMENT)
def test_pieces_joined_by_a_closed_window(connection: Connection) -> None:
    """What has waited for the window in pieces leaves in full segments."""
    for _ in range(40):
        connection.send_data(200, pause=0.02)
    connection.wait(connection.rtt)
    connection.collect(0.1)
    connection.ack(window=16 * SEGMENT)
    connection.serve(lambda: connection.delivered >= connection.next_offset)


@connected("RWBP-WF-006", "RWBP-WF-010", mss=1000, unit=SEGMENT)
def test_mss_below_the_unit(connection: Connection) -> None:
    """The MSS is smaller than the unit."""
    receive_some(connection)


@connected("RWBP-WF-006", "RWBP-WF-010", mss=SEGMENT, unit=1000)
def test_unit_below_the_mss(connection: Connection) -> None:
    """The unit is smaller than the MSS."""
    receive_some(connection)


@connected("RWBP-WF-003", "RWBP-WF-004", "RWBP-WF-010", to="echo")
def test_echo_while_runs_are_held(connection: Connection) -> None:
    """The echo of some data leaves while other data has holes."""
    for index in (0, 1, 2, 4, 6, 8, 3, 5, 7, 9):
        connection.send_data(UNIT, at=index * UNIT, pause=0.05)
    connection.next_offset = 10 * UNIT
    connection.serve(lambda: connection.delivered >= connection.next_offset)


@connected("RWBP-WF-003", "RWBP-WF-004")
def test_holes_while_data_leaves(connection: Connection) -> None:
    """The implementation sends while what comes has holes, and loses some of what it sends."""
    connection.bearing = UNIT
    connection.receive(10)
    connection.bearing = 0
    base = connection.next_offset
    for hole in (1, 3, 5, 7, 9, 11):
        connection.send_data(UNIT, at=base + hole * UNIT)
        connection.receive_more(3)
    connection.receive_more(30, losing=[45])


@connected("RWBP-WF-005", "RWBP-EC-002")
def test_blocks_on_data(connection: Connection) -> None:
    """Losses are reported in segments that carry data."""
    connection.receive(20)
    lose_first(connection)
    for _ in range(min(3, len(connection.inbox))):
        connection.hold(connection.inbox.popleft())
    blocks = connection.sack_blocks()
    connection.send(pattern(connection.next_offset, UNIT), sack=blocks, pause=connection.rtt)
    connection.receive_more(20)


@connected("RWBP-WF-005", "RWBP-EC-002")
def test_two_sack_options(connection: Connection) -> None:
    """Of two SACK options the first counts, and one of a wrong length before it does not."""
    connection.receive(20)
    for wrong in (b"", bytes((5, 6, 0, 0, 0, 1))):
        lose_first(connection)
        for _ in range(min(3, len(connection.inbox))):
            connection.hold(connection.inbox.popleft())
        iss = connection.syn_ack.seq + 1 if connection.syn_ack is not None else 0
        (left, right), *_ = connection.sack_blocks()
        first = _sack((iss + left) % MODULUS, (iss + right) % MODULUS)
        beyond = iss + connection.highest
        second = _sack(beyond % MODULUS, (beyond + SEGMENT) % MODULUS)
        connection.send_odd(sack=(), raw=wrong + first + second)
        connection.wait(connection.rtt)
        connection.receive_more(20)


# -- numbers


@case("RWBP-WF-002", "RWBP-WF-010", "RWBP-AK-007")
def test_numbers_wrap(peer: Peer) -> None:
    """The tester's numbers pass 2^32 and 2^31 with the first octet, within data, at FIN."""
    for before in (0, 1, UNIT, 3 * UNIT + 7, 20 * UNIT, 20 * UNIT + 1):
        for middle in (MODULUS, MODULUS // 2):
            connection = peer.connect("echo", iss=middle - 1 - before)
            send_some(connection)
            connection.serve(lambda each=connection: each.delivered >= each.next_offset)  # type: ignore[misc]
            close(connection)


@case("RWBP-WF-002", "RWBP-EC-002")
def test_losses_where_own_numbers_may_wrap(peer: Peer) -> None:
    """Four connections lose segments while 400 are sent on each."""
    for _ in range(4):
        connection = peer.connect("chargen")
        connection.receive(100, losing=[3, 4, 8, 21, 47, 48, 90])
        connection.abort()


# -- FIN


def _closing_echo(connection: Connection, octets: int, room: int) -> None:
    """Data and FIN come while the window is closed, which then opens by so many octets."""
    connection.send_data(octets)
    connection.send(flags=ACK | FIN, pause=connection.rtt + PAUSE_S)
    connection.ack(window=room)
    connection.collect(connection.rtt + PAUSE_S)
    connection.ack(window=16 * SEGMENT)
    connection.collect(connection.rtt + PAUSE_S)
    connection.ack(pause=connection.rtt)


@dataclass(frozen=True, slots=True)
class Ending(Row):
    """How much waits when the service closes, and how much room is then made, in units of 100."""

    octets: int = 0
    room: int = 0


ENDINGS = (
    Ending("room-for-both", "Data and FIN wait, and there is room for both.", ("RWBP-WF-008",),
           octets=300, room=400),
    Ending("room-for-data-only", "The room ends with the data.",
           ("RWBP-WF-008", "RWBP-WN-005"), octets=300, room=300),
    Ending("room-for-less", "There is no room for the data at first.",
           ("RWBP-WF-008",), octets=300, room=200),
    Ending("several-segments", "Several segments wait.", ("RWBP-WF-008",), octets=350, room=1000),
)  # fmt: skip


def _end(peer: Peer, row: Ending) -> None:
    connection = peer.connect("echo", mss=100, unit=100, window=0, syn_window=0)
    _closing_echo(connection, row.octets, row.room)


each(globals(), ENDINGS, _end)


@case("RWBP-WF-008", "RWBP-WF-010")
def test_services_close(peer: Peer) -> None:
    """Each service closes after the tester's FIN, with everything sent, or nothing."""
    for service in ("echo", "discard", "chargen"):
        for octets in (0, 3000):
            connection = peer.connect(service)
            if octets:
                connection.send_data(octets // 3)
                connection.send_data(octets // 3, pause=PAUSE_S)
            close(connection)


# -- malformed


def _bad_checksum(connection: Connection, **usual: Any) -> Any:
    return wrong_checksum(connection.craft(**usual))


BAD: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("a wrong checksum", _bad_checksum),
    ("an offset of 4", lambda c, **u: c.craft(fields={"dataofs": 4}, **u)),
    ("an offset of 15", lambda c, **u: c.craft(fields={"dataofs": 15}, **u)),
    ("an option of length 0", lambda c, **u: c.craft(options=[], raw=b"\xc8\0\0\0", **u)),
    ("an option of length 1", lambda c, **u: c.craft(options=[], raw=b"\xc8\1\0\0", **u)),
    ("an option beyond the header", lambda c, **u: c.craft(options=[], raw=b"\xc8\7\0\0", **u)),
    ("a kind without a length", lambda c, **u: c.craft(options=[], raw=b"\1\1\1\xc8", **u)),
)  # fmt: skip


@connected("RWBP-WF-001", "RWBP-SEC-003", to="discard")
def test_malformed_data(connection: Connection) -> None:
    """Data in and out of sequence is malformed or damaged; then it comes intact."""
    for number, (_, bad) in enumerate(BAD):
        at = number * UNIT
        for start in (at, at + 3 * UNIT):
            connection.peer.send(bad(connection, payload=pattern(start, 60), at=start))
            connection.wait(0.2)
        connection.send_data(UNIT, pause=0.2)
    await_silence(connection)


@connected("RWBP-WF-001", "RWBP-SEC-003")
def test_malformed_acknowledgments(connection: Connection) -> None:
    """Acknowledgments are malformed or damaged, and acknowledge what has been lost."""
    connection.receive(16)
    for _, bad in BAD:
        lose_first(connection)
        connection.peer.send(bad(connection, ack=connection.highest, sack=()))
        connection.wait(0.2)
        connection.collect(0.1)
        connection.ack()
        connection.receive_more(16)


@connected("RWBP-WF-001", "RWBP-SEC-003", to="discard")
def test_malformed_ends(connection: Connection) -> None:
    """FIN, RST and SYN that are malformed or damaged end nothing and are not answered."""
    for flags in (FIN | ACK, RST, RST | ACK, SYN):
        for _, bad in BAD:
            connection.peer.send(bad(connection, flags=flags))
            connection.wait(0.1)
    send_some(connection)


@case("RWBP-WF-001", "RWBP-SEC-003")
def test_malformed_syns(peer: Peer) -> None:
    """SYNs that are malformed or damaged are not answered; an intact one is."""
    for _, bad in BAD:
        connection = peer.draft("discard")
        packet = bad(connection, flags=SYN)
        peer.send(packet)
        peer.wait(peer.rtt + PAUSE_S)
    connection = peer.connect("discard")
    send_some(connection)
