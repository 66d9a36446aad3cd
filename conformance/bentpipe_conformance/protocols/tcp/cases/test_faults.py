"""The fault tables of segments: fields x values, options x lengths, and stimuli x states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bentpipe_reference.common.address import address_number

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.engine.scripts import Row, connected, each
from bentpipe_conformance.protocols.tcp.cases.steps import PAUSE_S, TIMEOUT_S
from bentpipe_conformance.protocols.tcp.cases.test_closing import DAYTIME
from bentpipe_conformance.protocols.tcp.codec import ACK, CWR, ECE, FIN, MODULUS, PSH, RST, SYN, URG
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.tcp.crafting import craft, layers, wrong_checksum
from bentpipe_conformance.protocols.tcp.peer import Peer

UNIT = 100

REPEATED_S = 4.0
"""Seconds in which a SYN-ACK that is not acknowledged is repeated."""

OLD_MS = 60_000
"""How far behind the tester's clock an old timestamp lies."""

APART_S = 1.2
"""Seconds between unacceptable segments, whose answers may be limited in rate."""

SHORT_S = 0.3
"""Seconds between stimuli to which the answer is immediate."""


def _say(connection: Connection) -> None:
    connection.send_data(UNIT)
    connection.wait(PAUSE_S)


# -- the fixed header

OFFSETS = (0, 1, 4, 15)
"""Data offsets in words; 15 words lie beyond the end of a segment of 20 + 30 octets."""


@connected("SNR-SEG-001", to="discard")
def test_established_impossible_data_offsets(connection: Connection) -> None:
    """Data, a FIN and a RST come behind data offsets that cannot be, each before right data."""
    _say(connection)
    for offset in OFFSETS:
        for flags in (ACK | PSH, ACK | FIN, RST | ACK):
            octets = pattern(connection.next_offset, 0 if flags & RST else 30)
            connection.peer.send(connection.craft(octets, flags=flags, fields={"dataofs": offset}))
            connection.wait(SHORT_S)
        _say(connection)


@connected("SNR-SEG-007", to="discard")
def test_established_data_in_packets_with_ip_options(connection: Connection) -> None:
    """Data comes in packets with options of IP: padding, a router alert, unknown ones."""
    _say(connection)
    for options in (b"\x01\x01\x01\x00", b"\x94\x04\x00\x00", b"\x9e\x06abcd\x00\x00"):
        packet = connection.craft(pattern(connection.next_offset, UNIT), flags=ACK | PSH)
        packet.options = [layers().IPOption(options)]
        connection.peer.send(packet)
        connection.next_offset += UNIT
        connection.wait(PAUSE_S)
    _say(connection)


@case("SNR-SEG-003", "SNR-SEG-008")
def test_listening_syn_with_ecn_bits(peer: Peer) -> None:
    """A SYN with ECE and CWR is answered as any other, and so is data with either of them."""
    peer.connect("echo").abort()
    connection = peer.draft("echo")
    for _ in range(2):  # the second one shows how long the first had no answer
        if not connection.answered:
            peer.send(craft(replace(connection.syn, flags=SYN | ECE | CWR)))
            peer.wait(peer.rtt + PAUSE_S)
    connection.establish()
    for flags in (ECE, CWR, ECE | CWR):
        connection.send_odd(pattern(connection.next_offset, UNIT), flags=ACK | PSH | flags)
        connection.wait(PAUSE_S)
    connection.serve(lambda: connection.delivered >= 3 * UNIT)


@case("SNR-SEG-003", "SNR-SEG-002")
def test_listening_syn_with_reserved_bits(peer: Peer) -> None:
    """A SYN with reserved bits is answered as any other, and so is every segment behind it."""
    peer.connect("echo").abort()
    for bits in (1, 2, 4, 7):
        connection = peer.draft("echo")
        for _ in range(2):  # the second one shows how long the first had no answer
            if not connection.answered:
                peer.send(craft(connection.syn, reserved=bits))
                peer.wait(peer.rtt + PAUSE_S)
        connection.establish()
        for flags in (ACK | PSH, ACK):
            connection.send_odd(
                pattern(connection.next_offset, UNIT), flags=flags, fields={"reserved": bits}
            )
            connection.wait(PAUSE_S)
        connection.serve(lambda which=connection: which.delivered >= 2 * UNIT)  # type: ignore[misc]
        connection.abort()


@connected("SNR-CON-024", to="discard")
def test_established_urgent_pointers(connection: Connection) -> None:
    """Urgent pointers lie at the first octet, the last, and behind the data, without URG too."""
    for pointer in (0, 1, UNIT, UNIT + 1, 65535):
        for flags in (ACK | PSH | URG, ACK | PSH):
            payload = pattern(connection.next_offset, UNIT)
            connection.send_odd(payload, flags=flags, fields={"urgptr": pointer})
            connection.wait(PAUSE_S)


BROKEN: tuple[dict[str, Any], ...] = (
    {"ihl": 4},
    {"version": 6},
    {"proto": 253},
    {"len": 19},
    {"len": 1400},
    {"frag": 1},
    {"flags": "MF"},
    {"chksum": 1},
)
"""Fields of IP that make of a packet none, a part of one, a damaged one or another protocol's."""


@connected("SNR-RCV-006", to="discard")
def test_established_data_in_broken_packets(connection: Connection) -> None:
    """Data in sequence comes in packets that are not whole, and in one too short for TCP's header.

    The checksum of that one is right. After each comes old data, whose answer says what has been
    accepted, and then the data.
    """
    _say(connection)
    for number, fields in enumerate((*BROKEN, {}), 1):
        packet = connection.craft(pattern(connection.next_offset, UNIT), flags=ACK | PSH)
        packet.id = number
        packet.payload.chksum = int.from_bytes(bytes(packet)[36:38], "big")
        if not fields:
            packet.remove_payload()
            pseudo = address_number(packet.src) + address_number(packet.dst) + 6 + 10
            packet.add_payload(layers().Raw((-pseudo % 0xFFFF).to_bytes(2, "big") + bytes(8)))
            packet.proto = 6
        for name, value in fields.items():
            setattr(packet, name, value)
        connection.peer.send(packet)
        connection.wait(PAUSE_S)
        connection.send_data(UNIT, at=0)
        connection.wait(PAUSE_S)
        _say(connection)


# -- the edges of acknowledgments and of the window


@connected("SNR-SEG-004", to="discard")
def test_established_data_that_acknowledges_the_future(connection: Connection) -> None:
    """Data acknowledges one octet more than was sent, a window more, and half the numbers more.

    After each comes old data, whose answer says what has been accepted, and then the data again.
    """
    _say(connection)
    for ahead in (1, 2, 65536, (1 << 31) - 1):
        start = connection.next_offset
        connection.send_odd(pattern(start, UNIT), at=start, ack=ahead)
        connection.wait(PAUSE_S)
        connection.send_data(UNIT, at=0)
        connection.wait(PAUSE_S)
        _say(connection)


@connected("SNR-SEG-005", to="echo")
def test_established_data_that_acknowledges_the_past(connection: Connection) -> None:
    """Data acknowledges one octet less than was acknowledged, a segment less, and nothing at all.

    What it carries is in sequence.
    """
    for behind in (0, 1, UNIT, 3 * UNIT):
        start, ack = connection.next_offset, max(0, connection.delivered - behind)
        connection.send_odd(pattern(start, UNIT), flags=ACK | PSH, ack=ack)
        connection.serve(
            lambda: connection.delivered >= connection.next_offset,
            within=PAUSE_S + 2 * connection.rtt,
        )
        connection.wait(PAUSE_S)


@connected("SNR-RCV-001", "SNR-RCV-006", "SNR-RCV-015", "SNR-RCV-032", to="discard")
def test_established_octets_at_the_edge_of_the_window(connection: Connection) -> None:
    """Single octets arrive as the last of the window, across its edge, and behind it.

    Segments lie half behind it, and one with FIN in part. Ordinary data follows, and what lies
    below the first of them stays missing. An odd number of octets came before, so that a scaled
    window has to be rounded.
    """
    connection.send_data(UNIT + 1)
    connection.wait(PAUSE_S)
    connection.wait(connection.rtt)
    edge = connection.acked + connection.iut_window
    for start, octets, flags in (
        (edge - 1, 1, 0), (edge - 1, 2, 0), (edge, 1, 0), (edge + 1, 1, 0), (edge - 2, 4, 0),
        (edge - 700, 1400, 0), (UNIT + 2, 1, 0), (edge - 1200, 1250, FIN),
    ):  # fmt: skip
        connection.send_odd(pattern(start, octets), flags=ACK | flags, at=start)
        connection.wait(PAUSE_S)
    _say(connection)
    _say(connection)


# -- options

KINDS: Mapping[int, int] = {2: 4, 3: 3, 4: 2, 5: 10, 8: 10, 254: 4}
"""Kind to its right length: MSS, Window Scale, SACK-permitted, SACK, Timestamps, experimental."""


def _malformed(kind: int, right: int) -> Iterator[bytes]:
    """An option of a kind with lengths 0 and 1, one short, one long, and beyond the header."""
    for length in (0, 1, right - 1, right + 1, 40):
        if length > 2 or length < 2 <= right:
            yield bytes((kind, length)) + bytes(range(1, max(1, min(length, right + 1) - 1)))


@connected("SNR-OPT-014", to="discard")
def test_established_options_of_every_length(connection: Connection) -> None:
    """Each option anybody knows comes in data with every length it must not have."""
    for kind, right in KINDS.items():
        for octets in _malformed(kind, right):
            connection.send_odd(pattern(connection.next_offset, 10), at=None, raw=octets)
            connection.wait(SHORT_S)
            if connection.closed:
                return  # to reset the connection is allowed
            connection.send_data(10, at=connection.next_offset - 10)
            connection.wait(SHORT_S)
    _say(connection)
    _say(connection)


@case("SNR-OPT-014")
def test_listening_syn_options_of_every_length(peer: Peer) -> None:
    """Each option anybody knows comes in a SYN with every length it must not have."""
    for kind, right in KINDS.items():
        for octets in _malformed(kind, right):
            connection = peer.begin("discard", mss=None, sack=False, window_scale=None, raw=octets)
            peer.wait(peer.rtt + SHORT_S)
            if connection.answered and not connection.closed:
                connection.ack()
                _say(connection)
                connection.abort()
    connection = peer.connect("discard")
    _say(connection)


# -- states


def _syn_received(peer: Peer, *, timestamps: bool = False) -> Connection:
    connection = peer.begin("discard", timestamps=timestamps)
    if not peer.pump_until(lambda: connection.answered, peer.patience):
        raise NotReached("no SYN-ACK came")
    return connection


def _established(peer: Peer, *, timestamps: bool = False) -> Connection:
    connection = peer.connect("discard", timestamps=timestamps)
    _say(connection)
    peer.wait(peer.rtt)
    return connection


def _close_wait(peer: Peer, *, timestamps: bool = True) -> Connection:
    """The tester has closed, and its zero window keeps the echo of its data from leaving."""
    connection = peer.connect("echo", window_scale=None, window=0, timestamps=timestamps)
    connection.send_data(UNIT)
    connection.send(flags=ACK | FIN)
    peer.wait(peer.rtt + PAUSE_S)
    return connection


def _last_ack(peer: Peer, *, timestamps: bool = False) -> Connection:
    """The tester has closed, and does not acknowledge the FIN of the implementation."""
    connection = peer.connect("discard", timestamps=timestamps)
    connection.send(flags=ACK | FIN)
    connection.await_arrival(lambda s: bool(s.tcp.flags & FIN), "a FIN", TIMEOUT_S)
    return connection


def _fin_wait(peer: Peer, *, timestamps: bool = True) -> Connection:
    """The implementation has closed, and its FIN is not acknowledged."""
    connection = peer.connect(DAYTIME, timestamps=timestamps)
    connection.await_arrival(lambda s: bool(s.tcp.flags & FIN), "a FIN", TIMEOUT_S)
    _say(connection)
    peer.wait(peer.rtt)
    return connection


def _fin_wait_2(peer: Peer, *, timestamps: bool = False) -> Connection:
    """The implementation has closed, and its FIN is acknowledged."""
    connection = peer.connect(DAYTIME, timestamps=timestamps)
    fin = connection.await_arrival(lambda s: bool(s.tcp.flags & FIN), "a FIN", TIMEOUT_S)
    connection.reception.renege(fin.end)
    _say(connection)
    peer.wait(peer.rtt)
    return connection


def _closing(peer: Peer, *, timestamps: bool = True) -> Connection:
    """Both sides have closed at once, and the FIN of the implementation is not acknowledged."""
    connection = peer.connect(DAYTIME, timestamps=timestamps)
    fin = connection.await_arrival(lambda s: bool(s.tcp.flags & FIN), "a FIN", TIMEOUT_S)
    connection.reception.renege(fin.end - 1)
    connection.send(flags=ACK | FIN)
    peer.wait(peer.rtt + PAUSE_S)
    return connection


def _time_wait(peer: Peer, *, timestamps: bool = False) -> Connection:
    """The implementation has closed first, and both FINs are acknowledged."""
    connection = peer.connect(DAYTIME, timestamps=timestamps)
    fin = connection.await_arrival(lambda s: bool(s.tcp.flags & FIN), "a FIN", TIMEOUT_S)
    connection.reception.renege(fin.end)
    connection.send(flags=ACK | FIN)
    peer.wait(peer.rtt + PAUSE_S)
    return connection


Stimulus = Callable[[Connection], object]


def _odd(flags: int, where: Callable[[Connection], int], octets: int = 0) -> Stimulus:
    return lambda c: c.send_odd(pattern(where(c), octets), flags=flags, at=where(c), sack=())


def _edge(connection: Connection) -> int:
    return connection.acked + max(connection.iut_window, 65535)


STIMULI: Mapping[str, Stimulus] = {
    "a RST below the window, and below a FIN": _odd(RST, lambda c: c.acked - 2),
    "a RST far beyond the window": _odd(RST, lambda c: c.acked + 3 * _edge(c) + 10000),
    "a RST one octet into the window": _odd(RST | ACK, lambda c: c.acked + 1),
    "a RST at the last octet of the window": _odd(RST, lambda c: c.acked + c.iut_window - 1),
    "a damaged RST": lambda c: c.peer.send(
        wrong_checksum(c.craft(flags=RST | ACK, at=c.acked, sack=()))
    ),
    "a SYN below the window": _odd(SYN, lambda c: c.acked - 1),
    "a SYN in the window": _odd(SYN, lambda c: c.acked + 1),
    "a SYN with FIN at the next expected octet": _odd(SYN | FIN | ACK, lambda c: c.acked),
    "an acknowledgment of the octet after the last": lambda c: c.ack(c.highest + 1, sack=()),
    "a segment without flags": _odd(0, lambda c: c.acked, 20),
    "a RST at the next expected octet": _odd(RST, lambda c: c.acked),
    "a RST there with an old timestamp": lambda c: c.send_odd(
        flags=RST | ACK, at=c.acked, sack=(), tsval=(c.timestamp() - OLD_MS) % MODULUS
    ),
}
"""Each goes to a connection of its own, because challenges may be limited in rate."""


@dataclass(frozen=True, slots=True)
class InState(Row):
    """Every stimulus in one state; ``bring`` makes a connection that is in it."""

    state: str = ""
    bring: Callable[..., Connection] = _established


def _show(connection: Connection, state: str) -> None:
    """Send what a live connection has an answer to: a FIN again, or old data and new."""
    for again in (True, False):
        if state in ("close-wait", "last-ack", "closing", "time-wait"):
            connection.send(flags=ACK | FIN, at=connection.next_offset - 1, sack=())
        else:
            connection.send_data(UNIT, at=0 if again and connection.next_offset else None)
        connection.wait(connection.rtt + PAUSE_S)


def _stimulate(peer: Peer, row: InState) -> None:
    for stimulus in STIMULI.values():
        connection = row.bring(peer)
        stimulus(connection)
        connection.wait(peer.rtt + (REPEATED_S if row.state == "syn-received" else 2 * PAUSE_S))
        _show(connection, row.state)
        if not connection.closed:
            connection.abort()


LINGERING = (
    "a RST below the window, and below a FIN", "a RST far beyond the window", "a damaged RST",
)  # fmt: skip
"""Of the stimuli those that must not end TIME-WAIT."""


@case("SNR-CON-016", needs=("daytime",))
def test_time_wait_resets(peer: Peer) -> None:
    """RSTs outside the window, and a damaged one, do not end TIME-WAIT; the FIN comes again.

    What lingers too short a time (SNR-CON-021) answers it by a RST.
    """
    for name in LINGERING:
        connection = _time_wait(peer)
        STIMULI[name](connection)
        connection.wait(peer.rtt + PAUSE_S)
        _show(connection, "time-wait")
        connection.abort()


UNACCEPTABLE: tuple[tuple[Callable[[Connection], int], int], ...] = (
    (lambda c: c.acked - 1, 0),
    (lambda c: c.acked - 1, 1),
    (lambda c: c.acked - 1, 0),
    (lambda c: c.acked - UNIT, 0),
    (lambda c: c.acked + 3 * _edge(c) + 10000, 0),
    (lambda c: c.acked + 3 * _edge(c) + 10000, 20),
    (lambda c: c.acked + (1 << 30), 0),
    (lambda c: c.acked - (1 << 30), 0),
)
"""Where a segment that the window does not admit begins, and its octets; the first is a
keep-alive."""


def _send_unacceptable(peer: Peer, row: InState) -> None:
    connection = row.bring(peer)
    connection.wait(PAUSE_S)
    for where, octets in UNACCEPTABLE:
        at = where(connection)
        connection.send_odd(pattern(max(0, at), octets), at=at, sack=())
        connection.wait(APART_S)
    _show(connection, row.state)
    connection.abort()


STAMPED = (
    "a RST one octet into the window", "a SYN below the window",
    "an acknowledgment of the octet after the last",
)  # fmt: skip
"""Of the stimuli those that are answered everywhere but in TIME-WAIT, which they may end."""


def _answer_stamped(peer: Peer, row: InState) -> None:
    connection = row.bring(peer, timestamps=True)
    connection.wait(PAUSE_S)
    for where, octets in UNACCEPTABLE[:6]:
        at = where(connection)
        connection.send_odd(pattern(max(0, at), octets), at=at, sack=())
        connection.wait(APART_S)
    old = (connection.timestamp() - OLD_MS) % MODULUS
    for flags in (ACK | PSH, ACK | FIN):
        connection.send_odd(
            pattern(connection.acked, UNIT), flags=flags, at=connection.acked, sack=(), tsval=old
        )
        connection.wait(APART_S)
    for name in STAMPED if row.state != "time-wait" else ():
        STIMULI[name](connection)
        connection.wait(APART_S)
    _show(connection, row.state)
    connection.abort()


@connected("SNR-CON-044", "SNR-RCV-016", needs=("exact_edge",), to="discard", window_scale=None)
def test_established_edge_of_an_unscaled_window(connection: Connection) -> None:
    """Data, nothing, and a RST arrive exactly at the right edge of the window, then ordinary data.

    What lies below the data stays missing. Full segments came before, so that the window has moved.
    """
    for _ in range(4):
        connection.send_data(SEGMENT)
        connection.wait(SHORT_S)
    connection.wait(connection.rtt + PAUSE_S)
    edge = connection.acked + connection.iut_window
    for flags, octets in ((ACK, 1), (ACK, 0), (RST, 0)):
        connection.send_odd(pattern(edge, octets), flags=flags, at=edge)
        connection.wait(APART_S)
    _say(connection)
    _say(connection)


@case("SNR-RCV-028")
def test_closed_data_beyond_the_fin(peer: Peer) -> None:
    """Data lies behind the tester's FIN, which has been acknowledged; then the FIN comes again.

    So does data with another FIN, and a second FIN alone.
    """
    for bring, state in ((_close_wait, "close-wait"), (_last_ack, "last-ack")):
        connection = bring(peer)
        at = connection.next_offset
        for start, octets, flags in (
            (at, UNIT, PSH), (at + UNIT, UNIT, PSH), (at, UNIT, FIN), (at, 0, FIN),
            (at - 1, UNIT, FIN), (at + 1, 0, FIN),
        ):  # fmt: skip
            connection.send_odd(pattern(start, octets), flags=ACK | flags, at=start, sack=())
            connection.wait(PAUSE_S)
        _show(connection, state)
        connection.abort()


ALIKE = ("SNR-CON-002", "SNR-CON-010", "SNR-CON-011", "SNR-CON-012", "SNR-CON-013", "SNR-CON-014")

each(
    globals(),
    (
        InState(
            f"{state}-every-odd-segment",
            f"RSTs and SYNs at every edge of the window, in the state {state.upper()}.",
            targets, needs, None, state, bring,
        )
        for state, bring, targets, needs in (
            ("syn-received", _syn_received, ("SNR-CON-002", "SNR-CON-008"), ()),
            ("established", _established, ALIKE, ()),
            ("close-wait", _close_wait, ALIKE[:-1], ()),
            ("last-ack", _last_ack, ALIKE[:-1], ()),
            ("fin-wait-1", _fin_wait, ALIKE, ("daytime",)),
            ("fin-wait-2", _fin_wait_2, ALIKE, ("daytime",)),
            ("closing", _closing, ALIKE[:-1], ("daytime",)),
        )
    ),
    _stimulate,
)  # fmt: skip

SYNCHRONIZED: tuple[tuple[str, Callable[..., Connection], tuple[str, ...]], ...] = (
    ("established", _established, ()),
    ("close-wait", _close_wait, ()),
    ("last-ack", _last_ack, ()),
    ("fin-wait-1", _fin_wait, ("daytime",)),
    ("fin-wait-2", _fin_wait_2, ("daytime",)),
    ("closing", _closing, ("daytime",)),
    ("time-wait", _time_wait, ("daytime",)),
)
"""The states of an open connection, what brings it there, and what that needs."""

each(
    globals(),
    (
        InState(
            f"{state}-every-unacceptable-segment",
            f"Segments below and beyond the window, most of them empty, in {state.upper()}.",
            ("SNR-RCV-029",), needs, None, state, bring,
        )
        for state, bring, needs in SYNCHRONIZED
    ),
    _send_unacceptable,
)  # fmt: skip

each(
    globals(),
    (
        InState(
            f"{state}-answers-with-timestamps",
            f"Segments with timestamps that are answered, but not accepted, in {state.upper()}.",
            ("SNR-OPT-004", "SNR-TS-001", "SNR-TS-002"), ("timestamps", *needs), None, state, bring,
        )
        for state, bring, needs in SYNCHRONIZED
    ),
    _answer_stamped,
)  # fmt: skip
