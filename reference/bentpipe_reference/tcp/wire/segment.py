"""One TCP segment in one IPv4 packet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class WireError(ValueError):
    """The packet is malformed, is not TCP over IPv4, or the segment has no encoding."""


class Flags(IntFlag):
    """Control bits of the TCP header (RFC 9293 section 3.1; AE from RFC 9768)."""

    FIN = 0x001
    SYN = 0x002
    RST = 0x004
    PSH = 0x008
    ACK = 0x010
    URG = 0x020
    ECE = 0x040
    CWR = 0x080
    AE = 0x100


@dataclass(slots=True)
class Segment:
    """A TCP segment, its addresses and its options.

    Attributes:
        source: IPv4 address of the sender as a 32-bit number.
        destination: IPv4 address of the receiver, likewise.
        sport: source port.
        dport: destination port.
        seq: sequence number field, 32 bits.
        ack: acknowledgment number field, 32 bits.
        flags: control bits, an ``int`` made of :class:`Flags`.
        window: the raw 16-bit window field, unscaled.
        urgent: urgent pointer field.
        payload: the data octets.
        mss: Maximum Segment Size option, None when absent.
        window_scale: shift count of the Window Scale option, None when absent.
        sack_permitted: whether the SACK-Permitted option is present.
        sack_blocks: (left edge, right edge) pairs of the SACK option, in wire order.
        timestamps: (TSval, TSecr) of the Timestamps option, None when absent.
        unknown: (kind, data) of every other option, and of known kinds that are repeated or
            have an unusual length.
    """

    source: int
    destination: int
    sport: int
    dport: int
    seq: int = 0
    ack: int = 0
    flags: int = 0
    window: int = 0
    urgent: int = 0
    payload: bytes = b""
    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    sack_blocks: tuple[tuple[int, int], ...] = ()
    timestamps: tuple[int, int] | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()

    @property
    def sequence_length(self) -> int:
        """Sequence numbers occupied: data, SYN and FIN (SEG.LEN of RFC 9293)."""
        return len(self.payload) + (self.flags & 1) + (self.flags >> 1 & 1)

    @property
    def packet_octets(self) -> int:
        """Size of the IPv4 packet, its options aligned on four-octet boundaries."""
        octets = 40 + len(self.payload) + 12 * (self.timestamps is not None)
        if self.sack_blocks:
            octets += 4 + 8 * len(self.sack_blocks)
        if self.unknown:
            octets += sum((len(data) + 5) // 4 * 4 for _, data in self.unknown)
        fixed = (self.mss is not None) + (self.window_scale is not None) + self.sack_permitted
        return octets + 4 * fixed
