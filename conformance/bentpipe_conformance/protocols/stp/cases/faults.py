"""The fault model of STP's packets as tables: types x defects x states.

A packet that would count if it were right (:func:`armed`) is spoiled in every way that section 3
forbids (:data:`FORBIDDEN`), or in those that change nothing (:func:`reserved`,
:func:`foreign_tag`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.codec import UDP
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.codec import (
    FLAGS,
    LEAST,
    Stp,
    octets_of,
    option_field,
    with_checksum,
)
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.crafting import (
    COMMON_HEADER,
    carried,
    craft,
    craft_octets,
    wrong_checksum,
    wrong_udp_checksum,
    zero_checksum,
)
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED

APART_S = 0.15
"""Seconds between packets where there are many, so that an answer has one cause only."""

ALL_FLAGS = 0b1111

OPEN_ENDED = (codec.BEGIN, codec.SD, codec.SDP)
"""Types whose packets may be longer, because they carry data."""

RESERVED: Mapping[int, tuple[int, ...]] = {
    codec.BGAK: (0xF, 0xFF), codec.BGREJ: (0xF, 0xFFFF), codec.END: (0xFFFFFF,),
    codec.SDP: (0xFF,), codec.POLL: (0xFF,), codec.STAT: (0xFF,) * 16,
    codec.USTAT: (0xFF,) * 3,
}  # fmt: skip
"""Every bit of the reserved fields of a body; see :attr:`Stp.reserved`."""


def armed(connection: Connection, **begin: Any) -> list[Stp]:
    """A packet of each type, which has an effect if it is taken wherever a right one has any.

    ``begin`` are fields of the BEGIN, which is the connection's own without any.

    A STAT gives credit and reports what is missing, and so does a USTAT, where an SD is missing;
    the END aborts, the BGREJ refuses. Reports come first, before two silences have left the IUT a
    window that is too small to send anything again.
    """
    polls = {"n_ps": connection.vt_ps + 1}
    reception = connection.reception
    missing = reception.elements()[:2]
    run = connection.their_list(missing) if len(missing) == 2 else (1, 2)
    raw: dict[int, dict[str, Any]] = {
        codec.BEGIN: begin,
        codec.END: {"flags": codec.A, "reason": 1},
        codec.SD: {"data": b"never to be taken in"},
        codec.SDP: {"data": b"never to be taken in", **polls},
        codec.POLL: polls,
        codec.STAT: {"n_mr": connection.theirs(reception.vr_mr + 8)},
        codec.USTAT: {"elements": run},
    }
    return [connection.compose(kind, **raw.get(kind, {})) for kind in reversed(codec.NAMES)]


def _checksums(packet: Stp) -> Iterator[Any]:
    for place in (0, 1):
        yield wrong_checksum(craft(packet), place)
    # In UDP zero stands for none; here it is wrong unless all else adds up (section 3.2).
    if octets_of(packet)[8:10] not in (b"\0\0", b"\xff\xff"):
        yield zero_checksum(craft(packet))
    if packet.protocol == UDP:
        yield wrong_udp_checksum(craft(packet))


def _lengths(packet: Stp) -> Iterator[Any]:
    """One octet short, without a body, and one or two octets too long."""
    octets, least = octets_of(packet), LEAST[packet.type]
    if least > COMMON_HEADER:
        yield craft_octets(packet, octets[COMMON_HEADER : least - 1])
        yield craft_octets(packet, b"")
    else:
        yield carried(packet, with_checksum(packet, octets[: least - 1]))
    if packet.type not in OPEN_ENDED:
        for more in (1, 2):
            yield craft_octets(packet, octets[COMMON_HEADER:] + bytes(more))


def _types(packet: Stp) -> Iterator[Any]:
    """A POLL under the types that are not used."""
    if packet.type == codec.POLL:
        for unused in (0, 5, 6, 13, 14, 15):
            yield craft_octets(packet, octets_of(packet)[COMMON_HEADER:], type=unused)


def _options(packet: Stp) -> Iterator[Any]:
    """Options longer than the option field, too short, and cut off; a field beyond the packet."""
    if packet.type not in (codec.BEGIN, codec.BGAK, codec.BGREJ):
        return
    right = option_field(packet.max_sd, packet.cookie)
    for octets in (bytes((1, 8, 5, 0)), bytes((9, 1, 0, 0)), bytes((0, 0, 0, 2))):
        yield craft(replace(packet, options=octets))
    # One of length 1, behind which all would be right if it were taken for one octet or two.
    yield craft(replace(packet, options=right + bytes((9, 1, 2, 0))))
    body = bytearray(octets_of(packet)[COMMON_HEADER:])
    body[packet.type == codec.BGREJ] += 1  # optlen
    yield craft_octets(packet, bytes(body))


Spoil = Callable[[Stp], Iterator[Any]]

FORBIDDEN: Mapping[str, Spoil] = {
    "checksum": _checksums,
    "length": _lengths,
    "type": _types,
    "options": _options,
}
"""By defect, what makes packets that must be discarded of a right one."""


def send_broken(connection: Connection, **begin: Any) -> None:
    """Send a packet of each type with every defect that has it discarded; see :func:`armed`."""
    for packet in armed(connection, **begin):
        for spoil in FORBIDDEN.values():
            for broken in spoil(packet):
                connection.peer.send(broken)
                connection.wait(APART_S)


def send_foreign(connection: Connection) -> None:
    """Send a packet of each type whose tag is examined with tags of no connection."""
    for packet in armed(connection):
        if packet.type in TAGGED:
            for wrong in (1, 0x8000, packet.tag):
                connection.peer.send(craft(replace(packet, tag=packet.tag ^ wrong)))
                connection.wait(APART_S)


def send_elsewhere(connection: Connection) -> None:
    """Send a packet of each type from another port of the tester, and to another one of the IUT."""
    other = connection.peer.new_port()
    for packet in armed(connection):
        for stray in (replace(packet, sport=other), replace(packet, dport=UNUSED_PORT)):
            connection.peer.send(craft(stray))
            connection.wait(APART_S)


def reserved(packet: Stp) -> Stp:
    """The same packet with every reserved flag and field set, which changes nothing."""
    flags = packet.flags | ALL_FLAGS & ~FLAGS.get(packet.type, 0)
    return replace(packet, flags=flags, reserved=RESERVED.get(packet.type, ()))


def foreign_tag(packet: Stp) -> Stp:
    """The same packet with a wrong tag, if it is of a type whose tag is not examined."""
    if packet.type in TAGGED:
        return packet
    return replace(packet, tag=tag_of((packet.csn or 0) ^ 0x5A5A))
