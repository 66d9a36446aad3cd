"""IP and UDP as the codecs of all protocols read and write them."""

from __future__ import annotations

import socket
import struct
from functools import lru_cache

from bentpipe_reference.common.checksum import internet_checksum

DONT_FRAGMENT = 0x4000
"""The flag in the field that also holds the fragment offset (RFC 791 section 3.1)."""

ECN, CE = 3, 3
"""The bits of the second octet that are the ECN field, and what they are where a router has met
congestion (RFC 3168 section 5)."""

UDP = 17
"""Its IP protocol number."""

IPV6_HEADER = 40
"""Octets of an IPv6 header without extension headers (RFC 8200 section 3)."""

_HEADER = struct.Struct("!BBHHHBBH4s4s")
_FRAGMENT, _AUTHENTICATION = 44, 51
_EXTENSIONS = (0, 43, 60, 135, 139, 140)
"""Extension headers of IPv6 whose second octet counts units of eight octets (RFC 8200 section 4):
hop-by-hop, routing and destination options, mobility, HIP and shim6."""
_UDP_HEADER = struct.Struct("!HHHH")
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


def locate(packet: bytes, wire: int | None = None) -> tuple[bytes, bytes, int, int, int]:
    """Source, destination, protocol, start and end of the payload of an IPv4 or IPv6 packet.

    Args:
        packet: the packet, which a capture may have cut behind its headers.
        wire: its octets on the wire, by default as many as are there; the end of the payload where
            segmentation offload left a length of 0.

    Raises:
        MalformedPacket: neither of the two, an impossible length, a fragment, or headers cut short.
    """
    available = len(packet) if wire is None else wire
    if len(packet) < 20:
        raise MalformedPacket(f"{len(packet)} octets are too few for an IP header")
    if packet[0] >> 4 == 6:
        return _locate_ipv6(packet, available)
    version_ihl, _, total, _, fragment, _, protocol, _, src, dst = _HEADER.unpack_from(packet)
    start = (version_ihl & 0xF) * 4
    if version_ihl >> 4 != 4 or start < 20:
        raise MalformedPacket("neither IPv4 nor IPv6")
    total = total or available
    if total > available or total < start:
        raise MalformedPacket(f"IPv4 total length {total} does not fit the packet")
    if fragment & 0x3FFF:
        raise MalformedPacket("an IPv4 fragment")
    return src, dst, protocol, start, total


def _locate_ipv6(packet: bytes, available: int) -> tuple[bytes, bytes, int, int, int]:
    if len(packet) < IPV6_HEADER:
        raise MalformedPacket(f"{len(packet)} octets are too few for an IPv6 header")
    length = int.from_bytes(packet[4:6], "big")
    # A jumbogram, or segmentation offload: RFC 2675 section 3.
    total = IPV6_HEADER + length if length else available
    if total > available:
        raise MalformedPacket(f"IPv6 payload length {length} does not fit the packet")
    protocol, at = packet[6], IPV6_HEADER
    while protocol in _EXTENSIONS or protocol in (_FRAGMENT, _AUTHENTICATION):
        if at + 8 > len(packet):
            raise MalformedPacket("the IPv6 extension headers do not end")
        if protocol == _FRAGMENT and int.from_bytes(packet[at + 2 : at + 4], "big") & 0xFFF9:
            raise MalformedPacket("an IPv6 fragment")
        units, size = (packet[at + 1], 8) if protocol != _FRAGMENT else (0, 8)
        step = (units + 2) * 4 if protocol == _AUTHENTICATION else (units + 1) * size
        protocol, at = packet[at], at + step
    if at > total:
        raise MalformedPacket("the IPv6 extension headers do not fit the packet")
    return packet[8:24], packet[24:40], protocol, at, total


@lru_cache(maxsize=4096)
def address_text(octets: bytes) -> str:
    """An IPv4 or IPv6 address as people write it."""
    family = socket.AF_INET if len(octets) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, octets)


def build_ipv4(
    src: bytes, dst: bytes, protocol: int, payload: bytes, *, dont_fragment: bool = True
) -> bytes:
    """A packet that carries ``payload``; addresses are four octets."""
    flags = DONT_FRAGMENT if dont_fragment else 0
    header = _HEADER.pack(0x45, 0, 20 + len(payload), 0, flags, 64, protocol, 0, src, dst)
    return header[:10] + internet_checksum(header).to_bytes(2, "big") + header[12:] + payload


def pseudo_header(src: bytes, dst: bytes, protocol: int, length: int) -> bytes:
    """What a transport protocol's checksum covers besides its packet (RFC 9293 section 3.1)."""
    if len(src) == 16:  # RFC 8200 section 8.1
        return src + dst + struct.pack("!I3xB", length, protocol)
    return src + dst + _PSEUDO_HEADER_END.pack(0, protocol, length)


def read_udp(src: bytes, dst: bytes, datagram: bytes) -> tuple[int, int, bytes, bool]:
    """Source port, destination port, payload, and whether there is a correct checksum.

    Raises:
        MalformedPacket: an impossible length.
    """
    if len(datagram) < 8:
        raise MalformedPacket("no room for a UDP header")
    sport, dport, length, checksum = _UDP_HEADER.unpack_from(datagram)
    if not 8 <= length <= len(datagram):
        raise MalformedPacket(f"UDP length {length} does not fit the packet")
    covered = pseudo_header(src, dst, UDP, length) + datagram[:length]
    return sport, dport, datagram[8:length], checksum != 0 and internet_checksum(covered) == 0


def build_udp(src: bytes, dst: bytes, sport: int, dport: int, payload: bytes) -> bytes:
    """A datagram, UDP header included."""
    length = 8 + len(payload)
    header = _UDP_HEADER.pack(sport, dport, length, 0)
    summed = internet_checksum(pseudo_header(src, dst, UDP, length) + header + payload)
    # RFC 768: zero would say that there is no checksum.
    return header[:6] + (summed or 0xFFFF).to_bytes(2, "big") + payload
