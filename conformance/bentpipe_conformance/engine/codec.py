"""IPv4 as the codecs of all protocols read and write it."""

from __future__ import annotations

import struct

from bentpipe_reference.common.checksum import internet_checksum

DONT_FRAGMENT = 0x4000
"""The flag in the field that also holds the fragment offset (RFC 791 section 3.1)."""

_HEADER = struct.Struct("!BBHHHBBH4s4s")
_PSEUDO_HEADER_END = struct.Struct("!BBH")


class MalformedPacket(ValueError):
    """The octets do not hold a packet of the protocol; the message says why."""


def read_ipv4(packet: bytes) -> tuple[bytes, bytes, int, int, int, bool]:
    """Source, destination, protocol, start and end of the payload, and Don't Fragment.

    Addresses are four octets. What lies behind the end is padding.

    Raises:
        MalformedPacket: not an IPv4 header, an impossible length, or a fragment.
    """
    available = len(packet)
    if available < 20:
        raise MalformedPacket(f"{available} octets are too few for an IPv4 header")
    version_ihl, _, total, _, fragment, _, protocol, _, src, dst = _HEADER.unpack_from(packet)
    start = (version_ihl & 0xF) * 4
    if version_ihl >> 4 != 4 or start < 20:
        raise MalformedPacket("not an IPv4 header")
    if total > available or total < start:
        raise MalformedPacket(f"IPv4 total length {total} does not fit the packet")
    if fragment & 0x3FFF:
        raise MalformedPacket("an IPv4 fragment")
    return src, dst, protocol, start, total, fragment & DONT_FRAGMENT != 0


def build_ipv4(
    src: bytes, dst: bytes, protocol: int, payload: bytes, *, dont_fragment: bool = True
) -> bytes:
    """A packet that carries ``payload``; addresses are four octets."""
    flags = DONT_FRAGMENT if dont_fragment else 0
    header = _HEADER.pack(0x45, 0, 20 + len(payload), 0, flags, 64, protocol, 0, src, dst)
    return header[:10] + internet_checksum(header).to_bytes(2, "big") + header[12:] + payload


def pseudo_header(src: bytes, dst: bytes, protocol: int, length: int) -> bytes:
    """What a transport protocol's checksum covers besides its packet (RFC 9293 section 3.1)."""
    return src + dst + _PSEUDO_HEADER_END.pack(0, protocol, length)
