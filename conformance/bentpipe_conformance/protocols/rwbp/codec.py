"""The tester's own codec of RWBP/1: TCP's segments, and all of their options in order.

Clauses are those of the specification (``bentpipe show rwbp``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import fields
from operator import attrgetter
from typing import Any

from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.codec import ECN, MalformedPacket, locate
from bentpipe_conformance.protocols.tcp import codec as tcp_codec
from bentpipe_conformance.protocols.tcp.codec import Tcp

KIND = 253
"""TCP option for experiments (RFC 4727)."""

EXID = b"RWBP"
"""Section 4.1: the ExID 0x52574250."""

LENGTH = 10
"""Octets of the option, section 4.1."""

VERSION = 1

SMALLEST_UNIT = 48
"""Octets; an option with a smaller unit is void (section 4.1)."""

LARGEST_WINDOW = 1 << 30
"""Octets, section 6.1."""

EOL, NOP, MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 0, 1, 2, 3, 4, 5, 8
"""Kinds of options."""


@record
class RwbpOption:
    """An RWBP option, void or not (section 4.1).

    Attributes:
        length: its length octet.
        version, reserved: the halves of octet 6, 0 where it has none.
        interval: N that the peer is asked to use.
        unit: octets for which one stands in the window fields of its sender.
    """

    length: int
    version: int
    reserved: int
    interval: int
    unit: int

    @property
    def void(self) -> bool:
        """Whether it is treated as absent."""
        return (
            self.length != LENGTH
            or self.version != VERSION
            or not self.interval
            or self.unit < SMALLEST_UNIT
        )


def read_option(value: bytes) -> RwbpOption | None:
    """The RWBP option with these octets behind its length; None where the ExID is another."""
    if value[:4] != EXID:
        return None
    first, interval, unit = struct.unpack("!BBH", value[4:8].ljust(4, b"\0"))
    return RwbpOption(len(value) + 2, first >> 4, first & 15, interval, unit)


def option_octets(
    interval: int = 8, unit: int = 1460, *, version: int = VERSION, reserved: int = 0,
    length: int = LENGTH, exid: bytes = EXID,
) -> bytes:  # fmt: skip
    """An RWBP option; one of another length is cut off, or has zeros behind it."""
    value = exid + struct.pack("!BBH", version << 4 | reserved, interval, unit)
    return bytes((KIND, length)) + value[: length - 2].ljust(length - 2, b"\0")


@record
class Rwbp(Tcp):
    """A segment of a connection that has, or could have, RWBP.

    ``options`` are kind and octets behind the length of all options that are not padding, in order,
    up to where the list cannot be walked any further; ``walkable`` says whether that is its end.
    ``reserved`` are the four bits behind the data offset, the last of them AE; ``ecn`` is the field
    in the IP header.
    """

    options: tuple[tuple[int, bytes], ...] = ()
    walkable: bool = True
    reserved: int = 0
    ecn: int = 0

    @property
    def rwbp(self) -> tuple[RwbpOption, ...]:
        """Its RWBP options, in order."""
        return _rwbp_in(self.options)

    @property
    def counting(self) -> RwbpOption | None:
        """The RWBP option that counts (section 4.1), None where there is none."""
        return _counting(self.rwbp)

    @property
    def offers(self) -> bool:
        """Whether it offers RWBP, or agrees to it (section 4.2)."""
        return self.counting is not None and self.sack_permitted

    @property
    def malformed(self) -> bool:
        """Whether it has to be discarded without an answer (section 5.1), checksum aside."""
        return not (self.offset_ok and self.walkable)


_INHERITED = tuple(item.name for item in fields(Tcp))
_inherited = attrgetter(*_INHERITED)

_BLOCK = struct.Struct("!II")

_LENGTHS = {
    MSS: (2,), WINDOW_SCALE: (1,), SACK_PERMITTED: (0,), SACK: (8, 16, 24, 32), TIMESTAMPS: (8,),
}  # fmt: skip
"""Octets behind the length of what TCP's own options say."""

_OPTIONS_AT, _OPTIONS_END = _INHERITED.index("mss"), _INHERITED.index("tsecr") + 1


def _read_usual(options: tuple[tuple[int, bytes], ...]) -> tuple[Any, ...]:
    """What the first of each of TCP's own options whose length is right says (RWBP-WF-005)."""
    first: dict[int, bytes] = {}
    for kind, value in options:
        if len(value) in _LENGTHS.get(kind, ()):
            first.setdefault(kind, value)
    mss, scale, stamps = first.get(MSS), first.get(WINDOW_SCALE), first.get(TIMESTAMPS)
    return (
        None if mss is None else int.from_bytes(mss, "big"),
        None if scale is None else scale[0],
        SACK_PERMITTED in first,
        tuple(_BLOCK.iter_unpack(first.get(SACK, b""))),
        *((None, None) if stamps is None else _BLOCK.unpack(stamps)),
    )


def dissect(packet: bytes) -> Rwbp:
    """Dissect one IPv4 packet.

    Raises:
        MalformedPacket: see :func:`.tcp.codec.dissect`.
    """
    tcp = tcp_codec.dissect(packet)
    start = (packet[0] & 15) * 4 if packet[0] >> 4 == 4 else locate(packet, len(packet))[3]
    octets = b""
    if tcp.offset_ok:
        octets = packet[start + 20 : start + (packet[start + 12] >> 4) * 4]
    own: Any = (*_walk(octets), packet[start + 12] & 15, packet[1] & ECN)
    inherited = _inherited(tcp)
    if not own[0]:
        return Rwbp(*inherited, *own)
    read = _read_usual(own[0])
    return Rwbp(*inherited[:_OPTIONS_AT], *read, *inherited[_OPTIONS_END:], *own)


def _walk(octets: bytes) -> tuple[tuple[tuple[int, bytes], ...], bool]:
    found: list[tuple[int, bytes]] = []
    at, end = 0, len(octets)
    while at < end and (kind := octets[at]) != EOL:
        if kind == NOP:
            at += 1
            continue
        if at + 1 >= end or not 2 <= octets[at + 1] <= end - at:
            return tuple(found), False
        found.append((kind, octets[at + 2 : at + octets[at + 1]]))
        at += octets[at + 1]
    return tuple(found), True


def counting_in(octets: bytes) -> RwbpOption | None:
    """The RWBP option of an option list that counts, None where there is none."""
    return _counting(_rwbp_in(_walk(octets)[0]))


def _rwbp_in(options: Iterable[tuple[int, bytes]]) -> tuple[RwbpOption, ...]:
    read = (read_option(value) for kind, value in options if kind == KIND)
    return tuple(option for option in read if option is not None)


def _counting(options: Iterable[RwbpOption]) -> RwbpOption | None:
    return next((option for option in options if not option.void), None)


def build(segment: Tcp, appended: bytes = b"") -> bytes:
    """One IPv4 packet, see :func:`.tcp.codec.build`; options that it does not know are appended."""
    if isinstance(segment, Rwbp):
        known = (MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS)
        others = (item for item in segment.options if item[0] not in known)
        appended = b"".join(bytes((k, len(v) + 2)) + v for k, v in others) + appended
    return tcp_codec.build(segment, appended)


def trusting(segment: Rwbp) -> Any:
    """The segment with its checksums assumed correct."""
    values = {item.name: getattr(segment, item.name) for item in fields(segment)}
    return Rwbp(**{**values, "checksum_ok": True})


__all__ = ["MalformedPacket", "Rwbp", "RwbpOption", "build", "dissect", "option_octets"]
