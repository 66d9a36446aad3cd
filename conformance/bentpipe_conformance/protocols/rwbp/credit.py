"""The tester's own codec of the gateway's credit frames (section 9.4)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.engine.codec import (
    UDP,
    MalformedPacket,
    build_ipv4,
    build_udp,
    read_ipv4,
    read_udp,
)
from bentpipe_conformance.engine.lane import GATEWAY_ADDRESS

PORT = 1021
"""UDP port of the proxy (RFC 4727)."""

OCTETS = 12
"""Of a frame."""

VERSION_AND_TYPE = 0x11
LOW_PRIORITY = 0

MODULUS = 1 << 32
EPOCHS = 1 << 16

_FRAME = struct.Struct("!BBHII")
_CHECKSUM = slice(26, 28)
"""Of UDP, in an IPv4 packet without options."""


@dataclass(frozen=True, slots=True)
class CreditFrame:
    """A datagram that is, or looks like, a credit frame.

    Attributes:
        flaw: why it is not valid, empty if it is.
        epoch, arrived, limit: its fields; what a frame that is too short does not have is 0.
        sport: its source port.
    """

    flaw: str
    epoch: int
    arrived: int
    limit: int
    sport: int = PORT


def newer(epoch: int, than: int) -> bool:
    """Whether an epoch is newer than another one."""
    return 0 < (epoch - than) % EPOCHS < EPOCHS // 2


def below(count: int, limit: int) -> bool:
    """Whether a count of packets is below another one, modulo 2^32."""
    return 0 < (limit - count) % MODULUS < MODULUS // 2


def build_frame(
    proxy: str, epoch: int, arrived: int, limit: int, *, gateway: str = GATEWAY_ADDRESS,
    first: int = VERSION_AND_TYPE, queue: int = LOW_PRIORITY, octets: int = OCTETS,
    sport: int = PORT, dport: int = PORT, checksum: int | None = None,
) -> bytes:  # fmt: skip
    """An IPv4 packet with a credit frame.

    Args:
        proxy: address of the proxy.
        epoch: what the gateway says.
        arrived: likewise.
        limit: likewise.
        gateway: the source address.
        first: version and type.
        queue: the class.
        octets: of the payload, which is cut off or has zeros behind it.
        sport: source port.
        dport: destination port.
        checksum: that of UDP, the right one if omitted.
    """
    payload = _FRAME.pack(first, queue, epoch % EPOCHS, arrived % MODULUS, limit % MODULUS)
    src, dst = socket.inet_aton(gateway), socket.inet_aton(proxy)
    payload = payload[:octets].ljust(octets, b"\0")
    packet = build_ipv4(src, dst, UDP, build_udp(src, dst, sport, dport, payload))
    if checksum is None:
        return packet
    return packet[: _CHECKSUM.start] + checksum.to_bytes(2, "big") + packet[_CHECKSUM.stop :]


def read_frame(packet: bytes, gateway: str = GATEWAY_ADDRESS) -> CreditFrame | None:
    """What an IPv4 packet to a proxy says of credit; None where it is no UDP datagram."""
    try:
        src, dst, protocol, start, end, _ = read_ipv4(packet)
        if protocol != UDP:
            return None
        sport, dport, payload, intact = read_udp(src, dst, packet[start:end])
    except MalformedPacket:
        return None
    first, queue, epoch, arrived, limit = _FRAME.unpack(payload[:OCTETS].ljust(OCTETS, b"\0"))
    flaws = {
        "its IP header is damaged": internet_checksum(packet[:start]) != 0,
        "its checksum is wrong or missing": not intact,
        "it does not come from the gateway": src != socket.inet_aton(gateway),
        f"it goes to port {dport}": dport != PORT,
        f"it has {len(payload)} octets": len(payload) != OCTETS,
        f"its version is {first >> 4}": first >> 4 != VERSION_AND_TYPE >> 4,
        f"its type is {first & 15}": first & 15 != VERSION_AND_TYPE & 15,
        f"its class is {queue}": queue != LOW_PRIORITY,
        "its limit is below what has arrived": (limit - arrived) % MODULUS >= MODULUS // 2,
    }
    flaw = next((text for text, there in flaws.items() if there), "")
    return CreditFrame(flaw, epoch, arrived, limit, sport)
