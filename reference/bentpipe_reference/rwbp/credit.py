"""The gateway's credit: its frame (section 9.4), and how a proxy counts."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from bentpipe_reference.common.encapsulation import UDP, Datagram, MalformedPacket, parse_datagram
from bentpipe_reference.common.serial import SerialSpace

PORT = 1021
"""UDP port of the proxy (RFC 4727)."""

LIFE = 1.0
"""Seconds for which a frame counts (RWBP-LC-005), and after which what was passed and has not
arrived is taken for lost (RWBP-LC-006)."""

REFRESH = 0.1
"""Seconds after which a gateway repeats its frame at the latest (RWBP-LC-009)."""

LOW_PRIORITY = 0
"""The class of the queue that takes all TCP packets."""

COUNTS = SerialSpace(32)
EPOCHS = SerialSpace(16)

_FRAME = struct.Struct("!BBHII")
_VERSION_AND_TYPE = 0x11


class MalformedFrame(ValueError):
    """The datagram is no valid credit frame."""


@dataclass(frozen=True, slots=True)
class CreditFrame:
    """What a gateway says.

    Attributes:
        epoch: in which it counts, modulo 2^16.
        arrived: packets that have entered its queue in this epoch, modulo 2^32.
        limit: packets that the proxy may have passed in this epoch, modulo 2^32.
    """

    epoch: int
    arrived: int
    limit: int

    def emit(self) -> bytes:
        """The payload of the datagram."""
        return _FRAME.pack(_VERSION_AND_TYPE, LOW_PRIORITY, self.epoch, self.arrived, self.limit)


def parse_frame(payload: bytes) -> CreditFrame:
    """Read the payload of a datagram.

    Raises:
        MalformedFrame: it is not valid by section 9.4.
    """
    if len(payload) != _FRAME.size:
        raise MalformedFrame(f"{len(payload)} octets are no credit frame")
    version, queue, epoch, arrived, limit = _FRAME.unpack(payload)
    if version != _VERSION_AND_TYPE or queue != LOW_PRIORITY:
        raise MalformedFrame("another version, type or class")
    if COUNTS.distance(arrived, limit) >= COUNTS.half:
        raise MalformedFrame("the limit is below what has arrived")
    return CreditFrame(epoch, arrived, limit)


def read_packet(packet: bytes, gateway: int, own: int) -> CreditFrame:
    """Read an IPv4 packet from the gateway.

    Args:
        packet: the packet.
        gateway: its address as a 32-bit number.
        own: the proxy's.

    Raises:
        MalformedFrame: it is no valid frame of this gateway.
    """
    try:
        datagram = parse_datagram(packet)
    except MalformedPacket as error:
        raise MalformedFrame(str(error)) from error
    if datagram.protocol != UDP or datagram.udp_dport != PORT or datagram.destination != own:
        raise MalformedFrame("not for the credit port")
    if datagram.source != gateway:
        raise MalformedFrame("not from the gateway")
    if not has_checksum(packet):
        raise MalformedFrame("no UDP checksum")
    return parse_frame(datagram.payload)


def has_checksum(packet: bytes) -> bool:
    """Whether a UDP datagram has a checksum at all."""
    at = (packet[0] & 15) * 4 + 6
    return packet[at : at + 2] != b"\0\0"


def frame_datagram(frame: CreditFrame, gateway: int, proxy: int) -> Datagram:
    """The datagram that carries a frame."""
    return Datagram(gateway, proxy, frame.emit(), UDP, PORT, PORT)


class Credit:
    """A proxy's account of what it may pass to the gateway.

    Attributes:
        passed: PASSED, modulo 2^32.
        limit: LIMIT, modulo 2^32.
        epoch: EPOCH, None before the first frame.
    """

    def __init__(self) -> None:
        self.passed = 0
        self.limit = 0
        self.epoch: int | None = None
        self._heard = self._last_pass = -math.inf

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """Take a valid frame."""
        if self.epoch is None or EPOCHS.before(self.epoch, frame.epoch):
            self.epoch, self.passed, self.limit = frame.epoch, frame.arrived, frame.limit
        elif frame.epoch != self.epoch:
            return
        else:
            if COUNTS.before(self.limit, frame.limit):
                self.limit = frame.limit
            if now - self._last_pass >= LIFE:
                self.passed = frame.arrived
        self._heard = now

    def may_pass(self, now: float) -> bool:
        """Whether a packet may be passed (RWBP-LC-002, RWBP-LC-005)."""
        return (
            self.epoch is not None
            and now - self._heard <= LIFE
            and 0 < self.limit - self.passed & COUNTS.mask < COUNTS.half
        )

    def on_pass(self, now: float) -> None:
        """A packet is passed (RWBP-LC-007)."""
        self.passed = self.passed + 1 & COUNTS.mask
        self._last_pass = now
