"""IPv4 packets from and to :class:`~bentpipe_reference.tcp.wire.segment.Segment`.

Guarantees, held by property tests:

* any octet string either parses or raises :class:`WireError`, and nothing else;
* ``parse_packet(emit_packet(x)) == x`` for every segment ``x`` whose options fit the header and
  whose ``unknown`` holds only what the parser would put there;
* hence ``emit_packet`` and ``parse_packet`` agree on everything that ever parsed.
"""

from __future__ import annotations

import struct

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.ipv4 import emit_ipv4, parse_ipv4
from bentpipe_reference.tcp.wire.options import emit_options, parse_options
from bentpipe_reference.tcp.wire.segment import Segment, WireError

_TCP = struct.Struct("!HHIIHHHH")
_TCP_OCTETS = 20
_TCP_PROTOCOL = 6
_FLAG_BITS = 0x1FF


def parse_packet(packet: bytes) -> Segment:
    """Read one IPv4 packet; octets after the IP total length are ignored.

    Raises:
        WireError: truncated, not IPv4, not TCP, a fragment, a wrong checksum, or an option
            list that cannot be walked.
    """
    protocol, source, destination, body = parse_ipv4(packet, WireError)
    if protocol != _TCP_PROTOCOL:
        raise WireError(f"IP protocol {protocol} is not TCP")
    if len(body) < _TCP_OCTETS:
        raise WireError(f"{len(body)} octets cannot hold a TCP header")
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
    source, destination = segment.source, segment.destination
    try:
        options = emit_options(segment)
        offset = (_TCP_OCTETS + len(options)) << 10
        body = _TCP.pack(
            segment.sport, segment.dport, segment.seq, segment.ack,
            offset | segment.flags & _FLAG_BITS, segment.window, 0, segment.urgent,
        ) + options + segment.payload  # fmt: skip
        pseudo = source + destination + _TCP_PROTOCOL + len(body)
        field = checksum_field(ones_complement_residue(body) + pseudo)
        body = body[:16] + field.to_bytes(2, "big") + body[18:]
        return emit_ipv4(_TCP_PROTOCOL, source, destination, body)
    except (struct.error, OverflowError, ValueError) as error:
        raise WireError(f"the segment has no encoding: {error}") from error
