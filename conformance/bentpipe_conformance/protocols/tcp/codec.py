"""The tester's own IPv4/TCP codec: fast, and independent of the reference's.

It dissects whatever arrives for the checkers and builds the tester's ordinary segments; odd
and malformed ones are crafted with Scapy. Addresses are dotted strings, numbers are unsigned.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.engine.codec import MalformedPacket

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))
MODULUS = 1 << 32

_IP = struct.Struct("!BBHHHBBH4s4s")
_TCP = struct.Struct("!HHIIBBHHH")
_PROTOCOL_TCP = 6


@dataclass(frozen=True, slots=True)
class Tcp:
    """One TCP segment as dissected from an IPv4 packet.

    ``window`` is the raw field, unscaled. ``sack`` holds (left, right) edges as on the wire.
    ``checksum_ok`` covers header, payload and pseudo-header. ``options_ok`` is False when the
    option list could not be walked to its end.
    """

    src: str
    dst: str
    sport: int
    dport: int
    seq: int
    ack: int
    flags: int
    window: int
    payload: bytes
    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    sack: tuple[tuple[int, int], ...] = ()
    tsval: int | None = None
    tsecr: int | None = None
    options_ok: bool = True
    checksum_ok: bool = True

    @property
    def length(self) -> int:
        """Sequence space the segment occupies (RFC 9293, SEG.LEN)."""
        return len(self.payload) + bool(self.flags & SYN) + bool(self.flags & FIN)

    @property
    def flag_names(self) -> str:
        """Flags as letters, for example ``SA``."""
        return "".join(name for bit, name in enumerate("FSRPAUEC") if self.flags >> bit & 1)


def _pseudo_header(src: bytes, dst: bytes, length: int) -> bytes:
    return src + dst + struct.pack("!BBH", 0, _PROTOCOL_TCP, length)


def dissect(packet: bytes) -> Tcp:
    """Dissect one IPv4 packet.

    Raises:
        MalformedPacket: too short, not IPv4, a fragment, not TCP, or with impossible lengths.
    """
    if len(packet) < 40:
        raise MalformedPacket(f"{len(packet)} octets are too few for IPv4 and TCP headers")
    version_ihl, _, total, _, fragment, _, protocol, _, src, dst = _IP.unpack_from(packet)
    header = (version_ihl & 0xF) * 4
    if version_ihl >> 4 != 4 or header < 20:
        raise MalformedPacket("not an IPv4 header")
    if protocol != _PROTOCOL_TCP:
        raise MalformedPacket(f"IP protocol {protocol} is not TCP")
    if fragment & 0x3FFF:
        raise MalformedPacket("an IPv4 fragment")
    if total > len(packet) or total < header + 20:
        raise MalformedPacket(f"IPv4 total length {total} does not fit the packet")
    sport, dport, seq, ack, offset, flags, window, _, _ = _TCP.unpack_from(packet, header)
    data = header + (offset >> 4) * 4
    if data < header + 20 or data > total:
        raise MalformedPacket("the TCP data offset points outside the segment")
    segment = packet[header:total]
    summed = internet_checksum(_pseudo_header(src, dst, len(segment)) + segment)
    options = _dissect_options(packet[header + 20 : data])
    return Tcp(
        socket.inet_ntoa(src), socket.inet_ntoa(dst), sport, dport, seq, ack, flags, window,
        packet[data:total], *options, summed in (0, 0xFFFF),
    )  # fmt: skip


_Options = tuple[
    int | None, int | None, bool, tuple[tuple[int, int], ...], int | None, int | None, bool
]


def _dissect_options(octets: bytes) -> _Options:
    mss = scale = tsval = tsecr = None
    permitted, sack = False, ()
    at, end = 0, len(octets)
    while at < end:
        kind = octets[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 1 >= end or not 2 <= octets[at + 1] <= end - at:
            return mss, scale, permitted, sack, tsval, tsecr, False
        size = octets[at + 1]
        value = octets[at + 2 : at + size]
        at += size
        if kind == 2 and size == 4:
            mss = int.from_bytes(value, "big")
        elif kind == 3 and size == 3:
            scale = value[0]
        elif kind == 4 and size == 2:
            permitted = True
        elif kind == 5 and size >= 10 and (size - 2) % 8 == 0:
            sack = tuple(struct.iter_unpack("!II", value))  # type: ignore[assignment]
        elif kind == 8 and size == 10:
            tsval, tsecr = struct.unpack("!II", value)
    return mss, scale, permitted, sack, tsval, tsecr, True


def build(segment: Tcp, *, identification: int = 0, ttl: int = 64) -> bytes:
    """One IPv4 packet with correct lengths and checksums for ``segment``.

    Raises:
        ValueError: the options exceed the 40 octets a TCP header can carry.
    """
    options = b""
    if segment.mss is not None:
        options += struct.pack("!BBH", 2, 4, segment.mss)
    if segment.sack_permitted:
        options += b"\x01\x01\x04\x02"
    if segment.tsval is not None:
        options += b"\x01\x01" + struct.pack("!BBII", 8, 10, segment.tsval, segment.tsecr or 0)
    if segment.window_scale is not None:
        options += b"\x01" + struct.pack("!BBB", 3, 3, segment.window_scale)
    if segment.sack:
        options += b"\x01\x01" + struct.pack("!BB", 5, 2 + 8 * len(segment.sack))
        options += b"".join(struct.pack("!II", *block) for block in segment.sack)
    if len(options) > 40:
        raise ValueError(f"{len(options)} octets of TCP options do not fit in 40")
    options += b"\0" * (-len(options) % 4)
    src, dst = socket.inet_aton(segment.src), socket.inet_aton(segment.dst)
    length = 20 + len(options) + len(segment.payload)

    def header(value: int) -> bytes:
        return _TCP.pack(
            segment.sport, segment.dport, segment.seq % MODULUS, segment.ack % MODULUS,
            (5 + len(options) // 4) << 4, segment.flags, segment.window, value, 0,
        )  # fmt: skip

    tail = options + segment.payload
    summed = internet_checksum(_pseudo_header(src, dst, length) + header(0) + tail)

    def ip(value: int) -> bytes:
        # Don't Fragment set: the suites never want a link to cut a segment.
        return _IP.pack(
            0x45, 0, 20 + length, identification, 0x4000, ttl, _PROTOCOL_TCP, value, src, dst
        )

    return ip(internet_checksum(ip(0))) + header(summed) + tail
