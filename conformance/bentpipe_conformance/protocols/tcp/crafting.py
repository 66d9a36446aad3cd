"""Odd segments: raw octets in the option list of an otherwise ordinary packet."""

from __future__ import annotations

import struct

from bentpipe_reference.common.checksum import internet_checksum

LARGEST_HEADER = 60
"""Octets of the longest TCP header (RFC 9293 section 3.1)."""


def append_options(packet: bytes, octets: bytes) -> bytes:
    """``packet`` with ``octets`` after its TCP options, lengths and checksums made right.

    The octets go out as they are, well-formed or not, padded with End-of-List options.

    Args:
        packet: an IPv4 packet without IP options that carries a TCP segment.
        octets: what to append.

    Raises:
        ValueError: the TCP header would exceed 60 octets.
    """
    header = (packet[32] >> 4) * 4
    octets += b"\0" * (-len(octets) % 4)
    if header + len(octets) > LARGEST_HEADER:
        raise ValueError(f"{header + len(octets)} octets of TCP header are more than 60")
    segment = bytearray(packet[20 : 20 + header] + octets + packet[20 + header :])
    segment[12] = (header + len(octets)) // 4 << 4
    segment[16:18] = bytes(2)
    pseudo = packet[12:20] + struct.pack("!BBH", 0, packet[9], len(segment))
    segment[16:18] = internet_checksum(pseudo + segment).to_bytes(2, "big")
    ip = bytearray(packet[:20])
    ip[2:4] = (20 + len(segment)).to_bytes(2, "big")
    ip[10:12] = bytes(2)
    ip[10:12] = internet_checksum(bytes(ip)).to_bytes(2, "big")
    return bytes(ip + segment)
