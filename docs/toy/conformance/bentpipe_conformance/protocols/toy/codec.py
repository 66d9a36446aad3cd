"""TOY packets as the judge reads and writes them."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from bentpipe_conformance.engine.codec import (
    UDP,
    MalformedPacket,
    build_ipv4,
    build_udp,
    read_ipv4,
    read_udp,
)
from bentpipe_conformance.engine.encapsulation import DEFAULT_UDP_PORT

OPEN, ACCEPT, REFUSE, DATA, ACK, CLOSE, ABORT = range(1, 8)
NAMES = ("", "OPEN", "ACCEPT", "REFUSE", "DATA", "ACK", "CLOSE", "ABORT")

_HEADER = struct.Struct("!BBHH")


@dataclass(frozen=True, slots=True)
class Toy:
    """One packet with what carries it; addresses are dotted."""

    src: str
    dst: str
    sport: int
    dport: int
    kind: int
    bit: int = 0
    data: bytes = b""
    udp_sport: int = DEFAULT_UDP_PORT
    udp_dport: int = DEFAULT_UDP_PORT
    checksum_ok: bool = True

    @property
    def name(self) -> str:
        """The name of its type."""
        return NAMES[self.kind]

    @property
    def in_sequence(self) -> bool:
        """Whether it is acknowledged by its sequence bit."""
        return self.kind in (DATA, CLOSE)

    @property
    def is_numbered(self) -> bool:
        """Whether its sequence bit counts."""
        return self.kind in (DATA, ACK, CLOSE)


def build(toy: Toy) -> bytes:
    """The IPv4 packet."""
    src, dst = socket.inet_aton(toy.src), socket.inet_aton(toy.dst)
    octets = _HEADER.pack(toy.kind, toy.bit, toy.sport, toy.dport) + toy.data
    return build_ipv4(src, dst, UDP, build_udp(src, dst, toy.udp_sport, toy.udp_dport, octets))


def dissect(octets: bytes) -> Toy:
    """The TOY packet in an IPv4 packet.

    Raises:
        MalformedPacket: there is none.
    """
    src, dst, protocol, start, end, _ = read_ipv4(octets)
    if protocol != UDP:
        raise MalformedPacket(f"IP protocol {protocol} does not carry TOY")
    udp_sport, udp_dport, payload, checksum_ok = read_udp(src, dst, octets[start:end])
    if len(payload) < _HEADER.size or not OPEN <= payload[0] <= ABORT:
        raise MalformedPacket("neither a header nor a known type")
    kind, bit, sport, dport = _HEADER.unpack_from(payload)
    return Toy(
        socket.inet_ntoa(src), socket.inet_ntoa(dst), sport, dport, kind, bit & 1,
        payload[_HEADER.size :], udp_sport, udp_dport, checksum_ok,
    )  # fmt: skip
