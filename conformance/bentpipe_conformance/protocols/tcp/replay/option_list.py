"""The octets of a TCP segment's option list."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.codec import locate
from bentpipe_conformance.protocols.tcp.replay import Packet

NO_OPERATION = 1
SACK = 5
_ANY_LENGTH = 1 << 32


def _header(data: bytes) -> int:
    """Where the TCP header of a packet begins."""
    # Nearly every packet is IPv4 without options.
    return 20 if data[0] == 0x45 else locate(data, _ANY_LENGTH)[3]


def offset_octet(packet: Packet) -> int:
    """The octet of a segment that begins with the data offset."""
    return packet.data[_header(packet.data) + 12]


def has_ip_options(packet: Packet) -> bool:
    """Whether the IPv4 header of a segment is longer than without options."""
    return packet.data[0] >> 4 == 4 and packet.data[0] & 0xF > 5


def option_octets(packet: Packet) -> bytes:
    """The octets of a segment's option list, padding included."""
    # A capture may have cut the packet behind its headers.
    header = _header(packet.data)
    return packet.data[header + 20 : header + (packet.data[header + 12] >> 4) * 4]


def options_length(packet: Packet) -> int:
    """Octets of a segment's option list, padding included."""
    return (offset_octet(packet) >> 4) * 4 - 20


def padding(packet: Packet) -> bytes:
    """What follows the options of a segment, from the End of Option List on."""
    octets = option_octets(packet)
    at = 0
    while at < len(octets) and octets[at]:
        size = 1 if octets[at] == NO_OPERATION else int.from_bytes(octets[at + 1 : at + 2], "big")
        at += size or len(octets)
    return octets[at:]


def walk_options(packet: Packet) -> Iterator[tuple[int, int, bool]]:
    """Kind and length field of each option without padding, and whether the option fits.

    The length is 0 where the field is missing. The walk ends at a length that is too small.
    """
    octets, at = option_octets(packet), 0
    while at < len(octets) and octets[at]:
        if octets[at] == NO_OPERATION:
            at += 1
            continue
        size = octets[at + 1] if at + 1 < len(octets) else 0
        yield octets[at], size, at + size <= len(octets)
        if size < 2:
            return
        at += size
