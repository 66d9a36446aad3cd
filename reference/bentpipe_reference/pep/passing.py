"""What a box has to know of packets that it does not split (PEP/1 section 4.3)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.wire.segment import Segment

TCP, ICMP = 6, 1
_MD5, _AUTHENTICATION = 19, 29
"""TCP options that sign addresses, ports and sequence numbers (RFC 2385, RFC 5925)."""

_UNREACHABLE, _TOO_BIG = 3, 4


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
        start = (packet[0] & 15) * 4
        message = packet[start:]
        if len(message) < 36 or message[0] != _UNREACHABLE or message[8] >> 4 != 4:
            return None
        quoted = message[8:]
        head = (quoted[0] & 15) * 4
        if quoted[9] != TCP or len(quoted) < head + 8:
            return None
        source, destination = struct.unpack_from("!II", quoted, 12)
        sport, dport, seq = struct.unpack_from("!HHI", quoted, head)
        mtu = int.from_bytes(message[6:8], "big") if message[1] == _TOO_BIG else None
        return Report(Addresses(source, sport, destination, dport), seq, mtu)
