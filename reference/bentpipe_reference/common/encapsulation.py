"""What carries packets of a protocol that kernels do not know: UDP over IPv4, or IPv4 itself.

Addresses of whole datagrams are 32-bit numbers; IP options, the type of service, the identification
and the time to live are not kept.
"""

from __future__ import annotations

import struct

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.ipv4 import emit_ipv4, parse_ipv4
from bentpipe_reference.common.record import record

UDP = 17
PROTOCOL = 253
"""The IP protocol number by default (RFC 3692)."""

OTHER_PROTOCOL = 254

_ADDRESSES = struct.Struct("!II")
_UDP = struct.Struct("!HHHH")
_UDP_OCTETS = 8


class MalformedPacket(ValueError):
    """Octets are malformed, or a packet cannot be encoded."""


def pseudo_header(source: bytes, destination: bytes, protocol: int = PROTOCOL) -> bytes:
    """The pseudo-header of a protocol directly over IP, with a length of zero.

    It is thus the same for all packets of a path; the protocol's codec adds the length.

    Args:
        source: packed address of the sender, 4 octets (RFC 9293 section 3.1) or 16 (RFC 8200
            section 8.1).
        destination: packed address of the receiver, of the same family.
        protocol: IP protocol number or last next-header value.

    Raises:
        ValueError: the addresses are not two of one family.
    """
    families = len(source), len(destination)
    if families == (4, 4):
        return source + destination + bytes((0, protocol, 0, 0))
    if families == (16, 16):
        return source + destination + bytes((0, 0, 0, 0, 0, 0, 0, protocol))
    raise ValueError(f"addresses of {families[0]} and {families[1]} octets are not of one family")


@record
class Datagram:
    """An IPv4 datagram; its payload is meant to be one packet of the protocol.

    Attributes:
        source: IPv4 address of the sender as a 32-bit number.
        destination: IPv4 address of the receiver, likewise.
        payload: the octets of that packet.
        protocol: 17 for UDP, else 253 or 254.
        udp_sport: UDP source port, 0 without UDP.
        udp_dport: UDP destination port, 0 without UDP.
    """

    source: int
    destination: int
    payload: bytes
    protocol: int = UDP
    udp_sport: int = 0
    udp_dport: int = 0

    @property
    def pseudo_header(self) -> bytes:
        """The pseudo-header that the packet's checksum covers; empty in UDP, which has its own."""
        if self.protocol == UDP:
            return b""
        return _ADDRESSES.pack(self.source, self.destination) + bytes((0, self.protocol, 0, 0))


def emit_datagram(datagram: Datagram) -> bytes:
    """The octets of ``datagram``, with checksums and Don't Fragment set.

    Raises:
        MalformedPacket: a field is out of its range, or more than 65535 octets.
    """
    protocol = datagram.protocol
    try:
        body = _with_udp_header(datagram) if protocol == UDP else datagram.payload
        return emit_ipv4(protocol, datagram.source, datagram.destination, body)
    except (struct.error, TypeError) as error:
        raise MalformedPacket(f"the datagram has no encoding: {error}") from error


def _with_udp_header(datagram: Datagram) -> bytes:
    sport, dport, payload = datagram.udp_sport, datagram.udp_dport, datagram.payload
    size = _UDP_OCTETS + len(payload)
    # The length counts twice: in the pseudo-header and in the header.
    total = datagram.source + datagram.destination + UDP + 2 * size + sport + dport
    # RFC 768: a checksum of zero is sent as all ones, as zero means that there is none.
    field = checksum_field(total + ones_complement_residue(payload)) or 0xFFFF
    return _UDP.pack(sport, dport, size, field) + payload


def parse_datagram(octets: bytes) -> Datagram:
    """Read one IPv4 datagram in UDP or with protocol 253 or 254; octets after its end are ignored.

    A UDP checksum of zero means that there is none (RFC 768), and passes.

    Raises:
        MalformedPacket: truncated, not IPv4, another protocol, a fragment, or a wrong checksum of
            IP or UDP. The packet that it carries is not examined.
    """
    protocol, source, destination, body = parse_ipv4(octets, MalformedPacket)
    if protocol == UDP:
        return _parse_udp(body, source, destination)
    if protocol not in (PROTOCOL, OTHER_PROTOCOL):
        raise MalformedPacket(f"IP protocol {protocol} is not one for experiments")
    return Datagram(source, destination, body, protocol)


def _parse_udp(body: bytes, source: int, destination: int) -> Datagram:
    if len(body) < _UDP_OCTETS:
        raise MalformedPacket(f"{len(body)} octets cannot hold a UDP header")
    sport, dport, size, field = _UDP.unpack_from(body)
    if not _UDP_OCTETS <= size <= len(body):
        raise MalformedPacket(f"a UDP length of {size} does not fit {len(body)} octets")
    body = body[:size]
    pseudo = source + destination + UDP + size
    if field and (ones_complement_residue(body) + pseudo) % 0xFFFF:
        raise MalformedPacket("wrong UDP checksum")
    return Datagram(source, destination, body[_UDP_OCTETS:], UDP, sport, dport)
