"""TOY packets: type, sequence bit, source port, destination port, data."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from bentpipe_reference.common.encapsulation import MalformedPacket

UDP_PORT = 7253
_HEADER = struct.Struct("!BBHH")


class Kind(IntEnum):
    """The types of packets."""

    OPEN = 1
    ACCEPT = 2
    REFUSE = 3
    DATA = 4
    ACK = 5
    CLOSE = 6
    ABORT = 7


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet; ``bit`` counts for DATA, CLOSE and ACK."""

    sport: int
    dport: int
    kind: Kind
    bit: int = 0
    data: bytes = b""


def encode(packet: Packet) -> bytes:
    """The octets of a packet."""
    return _HEADER.pack(packet.kind, packet.bit, packet.sport, packet.dport) + packet.data


def decode(octets: bytes) -> Packet:
    """The packet that octets hold.

    Raises:
        MalformedPacket: they hold none.
    """
    try:
        kind, bit, sport, dport = _HEADER.unpack_from(octets)
        return Packet(sport, dport, Kind(kind), bit & 1, octets[_HEADER.size :])
    except (struct.error, ValueError) as error:
        raise MalformedPacket(f"not a TOY packet: {error}") from error
