"""IPv4 packets from and to :class:`~bentpipe_reference.tcp.wire.segment.Segment`.

Guarantees, held by property tests:

* any octet string either parses or raises :class:`WireError`, and nothing else;
* ``parse_packet(emit_packet(x)) == x`` for every segment ``x`` whose options fit the header and
  whose ``unknown`` holds only what the parser would put there;
* hence ``emit_packet`` and ``parse_packet`` agree on everything that ever parsed.

IP options, the type of service, the identification and the time to live are not kept.
"""

from __future__ import annotations

import struct

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.tcp.wire.errors import WireError
from bentpipe_reference.tcp.wire.options import emit_options, parse_options
from bentpipe_reference.tcp.wire.segment import Segment

_PACKET = struct.Struct("!BBHHHBBHIIHHIIHHHH")
_CHECKSUM_AND_ADDRESSES = struct.Struct("!HII")
_TCP = struct.Struct("!HHIIHHHH")
_IP_OCTETS = 20
_TCP_OCTETS = 20
_TCP_PROTOCOL = 6
_DONT_FRAGMENT = 0x4000
_FRAGMENT = 0x3FFF
_TIME_TO_LIVE = 64
_FLAG_BITS = 0x1FF
HEADER_OCTETS = _IP_OCTETS + _TCP_OCTETS
"""Octets of an IPv4 packet before TCP options and data."""


def parse_packet(packet: bytes) -> Segment:
    """Read one IPv4 packet; octets after the IP total length are ignored.

    Raises:
        WireError: truncated, not IPv4, not TCP, a fragment, a wrong checksum, or an option
            list that cannot be walked.
    """
    available = len(packet)
    if available < HEADER_OCTETS:
        raise WireError(f"{available} octets cannot hold an IPv4 and a TCP header")
    if packet[0] >> 4 != 4:
        raise WireError("not an IPv4 packet")
    ip_octets = (packet[0] & 15) * 4
    total = packet[2] << 8 | packet[3]
    if ip_octets < _IP_OCTETS or total > available or total < ip_octets + _TCP_OCTETS:
        raise WireError(f"IPv4 lengths {ip_octets} and {total} do not fit {available} octets")
    if packet[9] != _TCP_PROTOCOL:
        raise WireError(f"IP protocol {packet[9]} is not TCP")
    if (packet[6] << 8 | packet[7]) & _FRAGMENT:
        raise WireError("an IPv4 fragment; reassembly is not supported")
    if ones_complement_residue(packet[:ip_octets]):
        raise WireError("wrong IPv4 header checksum")
    _, source, destination = _CHECKSUM_AND_ADDRESSES.unpack_from(packet, 10)
    body = packet[ip_octets:total]
    pseudo = source + destination + _TCP_PROTOCOL + len(body)
    if (ones_complement_residue(body) + pseudo) % 0xFFFF:
        raise WireError("wrong TCP checksum")
    sport, dport, seq, ack, offset_flags, window, _, urgent = _TCP.unpack_from(body)
    data_at = offset_flags >> 12 << 2
    if not _TCP_OCTETS <= data_at <= len(body):
        raise WireError(f"TCP data offset {data_at} does not fit {len(body)} octets")
    segment = Segment(
        source, destination, sport, dport, seq, ack, offset_flags & _FLAG_BITS, window, urgent,
        body[data_at:],
    )  # fmt: skip
    if data_at > _TCP_OCTETS:
        parse_options(body[_TCP_OCTETS:data_at], segment)
    return segment


def emit_packet(segment: Segment) -> bytes:
    """The IPv4 packet of ``segment`` with correct checksums and Don't Fragment set.

    Raises:
        WireError: a field is out of its range, or options or data do not fit.
    """
    payload = segment.payload
    try:
        options = emit_options(segment) if segment.has_options else b""
        tcp_octets = _TCP_OCTETS + len(options) + len(payload)
        tcp = [
            segment.sport, segment.dport, segment.seq, segment.ack,
            (_TCP_OCTETS + len(options)) << 10 | segment.flags & _FLAG_BITS,
            segment.window, 0, segment.urgent,
        ]  # fmt: skip
        body = _TCP.pack(*tcp) + options + payload
        pseudo = segment.source + segment.destination + _TCP_PROTOCOL + tcp_octets
        tcp[6] = checksum_field((ones_complement_residue(body) + pseudo) % 0xFFFF)
        total = _IP_OCTETS + tcp_octets
        head = (0x4500, total, _DONT_FRAGMENT, _TIME_TO_LIVE << 8 | _TCP_PROTOCOL)
        ip_sum = checksum_field((sum(head) + segment.source + segment.destination) % 0xFFFF)
        fixed = _PACKET.pack(
            0x45, 0, total, 0, _DONT_FRAGMENT, _TIME_TO_LIVE, _TCP_PROTOCOL, ip_sum,
            segment.source, segment.destination, *tcp,
        )  # fmt: skip
    except (struct.error, OverflowError, ValueError) as error:
        raise WireError(f"the segment has no encoding: {error}") from error
    return fixed + options + payload
