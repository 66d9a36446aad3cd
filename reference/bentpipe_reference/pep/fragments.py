"""Putting TCP segments together that arrive in fragments (RFC 791 section 3.2, PEP-TR-016)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from bentpipe_reference.common.checksum import internet_checksum, ones_complement_residue

MOST_DATAGRAMS = 64
"""Incomplete ones that are held; the oldest makes room."""

MOST_OCTETS = 65_515
"""Of the payload of an IPv4 packet."""

LIFETIME = 30.0
"""Seconds (RFC 1122 section 3.3.2 asks for 60 to 120 of an end; a box is in a hurry)."""

MORE, OFFSET = 0x2000, 0x1FFF
"""Of the field behind the identification."""


def is_fragment(packet: bytes) -> bool:
    """Whether an IPv4 packet is a part of a larger one."""
    return bool(int.from_bytes(packet[6:8], "big") & (MORE | OFFSET))


@dataclass(slots=True)
class _Datagram:
    began: float
    parts: dict[int, bytes] = field(default_factory=dict)
    length: int | None = None
    octets: int = 0


class Fragments:
    """Datagrams that are not complete."""

    def __init__(self) -> None:
        self._held: OrderedDict[bytes, _Datagram] = OrderedDict()

    def take(self, packet: bytes, now: float) -> tuple[bytes, tuple[bytes, ...]] | None:
        """The whole packet and its fragments, once the last of them is here."""
        start = (packet[0] & 15) * 4
        total = int.from_bytes(packet[2:4], "big")
        field_ = int.from_bytes(packet[6:8], "big")
        offset = (field_ & OFFSET) * 8
        size = total - start
        if size <= 0 or offset + size > MOST_OCTETS or total > len(packet):
            return None
        if ones_complement_residue(packet[:start]):
            return None
        key = packet[4:6] + packet[9:10] + packet[12:20]
        held = self._held.get(key)
        if held is None or now - held.began > LIFETIME:
            self._held[key] = held = _Datagram(now)
            if len(self._held) > MOST_DATAGRAMS:
                self._held.popitem(last=False)
        if offset in held.parts:
            return None
        held.parts[offset] = packet[:total]
        held.octets += size
        if not field_ & MORE:
            held.length = offset + size
        if held.length is None or held.octets < held.length:
            return None
        del self._held[key]
        return _joined(held)


def _joined(held: _Datagram) -> tuple[bytes, tuple[bytes, ...]] | None:
    """One packet of parts that lie end to end; nothing of parts that overlap."""
    parts = sorted(held.parts.items())
    payload = b""
    for offset, part in parts:
        if offset != len(payload):
            return None
        payload += part[(part[0] & 15) * 4 :]
    head = bytearray(parts[0][1][: (parts[0][1][0] & 15) * 4])
    head[2:4] = (len(head) + len(payload)).to_bytes(2, "big")
    head[6:8] = bytes(2)
    head[10:12] = bytes(2)
    head[10:12] = internet_checksum(bytes(head)).to_bytes(2, "big")
    return bytes(head) + payload, tuple(part for _, part in parts)
