"""Segments that pass in fragments, put together from the packets of a capture."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.protocols.pep.replay.leg import Packet
from bentpipe_conformance.protocols.tcp.codec import dissect

_MORE, _OFFSET = 0x2000, 0x1FFF


class Fragments:
    """What has passed of datagrams that are not complete, at each side and in each direction."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, bool, bytes], dict[int, Packet]] = {}

    def take(self, packet: Packet) -> Packet | None:
        """The last fragment with the segment of all as its content, once it is here."""
        data = packet.data
        key = packet.side, packet.outgoing, data[4:6] + data[9:10] + data[12:20]
        parts = self._parts.setdefault(key, {})
        parts[(int.from_bytes(data[6:8], "big") & _OFFSET) * 8] = packet
        payload = b""
        for offset in sorted(parts):
            if offset != len(payload):
                return None
            piece = parts[offset].data
            payload += piece[(piece[0] & 15) * 4 : int.from_bytes(piece[2:4], "big")]
        last = parts[max(parts)].data
        if int.from_bytes(last[6:8], "big") & _MORE:
            return None
        del self._parts[key]
        try:
            return replace(packet, content=dissect(_whole(parts[0].data, payload)))
        except MalformedPacket:
            return None


def is_fragment(packet: Packet) -> bool:
    """Whether it is a part of a larger IPv4 packet."""
    data = packet.data
    if len(data) < 20 or data[0] >> 4 != 4:
        return False
    return bool(int.from_bytes(data[6:8], "big") & (_MORE | _OFFSET))


def _whole(first: bytes, payload: bytes) -> bytes:
    head = bytearray(first[: (first[0] & 15) * 4])
    head[2:4] = (len(head) + len(payload)).to_bytes(2, "big")
    head[6:8] = head[10:12] = bytes(2)
    head[10:12] = internet_checksum(bytes(head)).to_bytes(2, "big")
    return bytes(head) + payload
