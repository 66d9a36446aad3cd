"""IPv4 packets around the payload of a protocol (RFC 791).

IP options, the type of service, the identification and the time to live are not kept.
"""

from __future__ import annotations

import struct

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue

_HEADER = struct.Struct("!BBHHHBBHII")
_OCTETS = 20
_DONT_FRAGMENT = 0x4000
_FRAGMENT = 0x3FFF
_TIME_TO_LIVE = 64


def parse_ipv4(packet: bytes, malformed: type[ValueError]) -> tuple[int, int, int, bytes]:
    """Protocol, source, destination and payload of a packet; octets after its end are ignored.

    Raises:
        malformed: truncated, not IPv4, a fragment, or a wrong header checksum.
    """
    available = len(packet)
    if available < _OCTETS:
        raise malformed(f"{available} octets cannot hold an IPv4 header")
    version, _, total, _, fragment, _, protocol, _, source, destination = _HEADER.unpack_from(
        packet
    )
    octets = (version & 15) * 4
    if version >> 4 != 4 or octets < _OCTETS:
        raise malformed("not an IPv4 header")
    if not octets <= total <= available:
        raise malformed(f"an IPv4 length of {total} does not fit {available} octets")
    if fragment & _FRAGMENT:
        raise malformed("an IPv4 fragment; reassembly is not supported")
    if ones_complement_residue(packet[:octets]):
        raise malformed("wrong IPv4 header checksum")
    return protocol, source, destination, packet[octets:total]


def emit_ipv4(protocol: int, source: int, destination: int, payload: bytes) -> bytes:
    """A packet with a correct header checksum and Don't Fragment set.

    Raises:
        struct.error: an address is out of its range, or more than 65535 octets.
    """
    total = _OCTETS + len(payload)
    words = 0x4500 + total + _DONT_FRAGMENT + (_TIME_TO_LIVE << 8 | protocol)
    field = checksum_field(words + source + destination)
    header = _HEADER.pack(
        0x45, 0, total, 0, _DONT_FRAGMENT, _TIME_TO_LIVE, protocol, field, source, destination
    )
    return header + payload
