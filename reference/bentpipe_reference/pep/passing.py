"""What a box has to know of packets that it does not split (PEP/1 section 4.3)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.pep.fragments import OFFSET, is_fragment
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.wire.segment import Segment

TCP, ICMP = 6, 1
_MD5, _AUTHENTICATION = 19, 29
"""TCP options that sign addresses, ports and sequence numbers (RFC 2385, RFC 5925)."""

_UNREACHABLE, _TOO_BIG = 3, 4
ERRORS = frozenset((3, 4, 5, 11, 12))
"""Types of ICMP messages that quote a packet (RFC 792, RFC 1122 section 3.2.2)."""
_SHORTEST = 20
"""Octets of an IPv4 header (RFC 791 section 3.1)."""


@dataclass(frozen=True, slots=True)
class Report:
    """An ICMP message that a packet has not arrived.

    Attributes:
        ends: of the connection whose segment it quotes, as its sender sees them.
        seq: the sequence number of that segment.
        mtu: of the link that it was too big for, None when something else was wrong.
    """

    ends: Addresses
    seq: int
    mtu: int | None


class Passing:
    """Tells what is split from what is not."""

    def protocol(self, packet: bytes) -> int | None:
        """The protocol in an IPv4 packet, None when it is no such packet."""
        if len(packet) < 20 or packet[0] >> 4 != 4 or (packet[0] & 15) < 5:
            return None
        return packet[9]

    def must_stay_whole(self, syn: Segment) -> bool:
        """Whether its connection cannot be split (PEP-TR-013)."""
        return any(kind in (_MD5, _AUTHENTICATION) for kind, _ in syn.unknown)

    def report(self, packet: bytes) -> Report | None:
        """What an ICMP message reports of a TCP segment, None when it reports of none."""
        start, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        message = packet[start:total]
        if is_fragment(packet) or len(message) < 36 or message[0] != _UNREACHABLE:
            return None
        if internet_checksum(message):  # RFC 1122 section 3.2.2
            return None
        quoted = message[8:]
        version, head = quoted[0] >> 4, (quoted[0] & 15) * 4
        if version != 4 or head < _SHORTEST or quoted[9] != TCP or len(quoted) < head + 8:
            return None
        if int.from_bytes(quoted[6:8], "big") & OFFSET:  # which has no ports
            return None
        source, destination = struct.unpack_from("!II", quoted, 12)
        sport, dport, seq = struct.unpack_from("!HHI", quoted, head)
        mtu = int.from_bytes(message[6:8], "big") if message[1] == _TOO_BIG else None
        return Report(Addresses(source, sport, destination, dport), seq, mtu)
