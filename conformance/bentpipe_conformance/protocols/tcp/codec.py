"""The tester's own IPv4/TCP codec: fast, and independent of the reference's.

It dissects what arrives for the checkers and builds the tester's segments. Addresses are dotted
strings, numbers are unsigned.
"""

from __future__ import annotations

import socket
import struct

from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.codec import (
    MalformedPacket,
    address_text,
    build_ipv4,
    locate,
    pseudo_header,
)

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))
MODULUS = 1 << 32

LARGEST_HEADER = 60
"""Octets of the longest TCP header (RFC 9293 section 3.1)."""

_HEADER = struct.Struct("!HHIIBBHHH")
_PLAIN = struct.Struct("!2xH2xHxB2x4s4sHHIIBBH")
"""IPv4 without options and TCP up to the window: nearly every packet."""
_PLAIN_OCTETS = 40
_ONLY_TIMESTAMPS = b"\x01\x01\x08\x0a"
"""How the usual option list begins (RFC 7323 appendix A), whose length is then 12."""
_STAMPS = struct.Struct("!II")
_PROTOCOL = 6
_SAME: dict[int, int] = {}
"""Ports and windows by themselves: 16 bits each."""
_LATELY: dict[int, int] = {}
_same, _lately = _SAME.setdefault, _LATELY.setdefault
_MOST_LATELY = 1 << 14


@record
class Tcp:
    """One TCP segment as dissected from an IP packet.

    ``window`` is the raw field, unscaled. ``sack`` holds (left, right) edges as on the wire.
    ``checksum_ok`` covers header, payload and pseudo-header, and that of the IPv4 header itself.
    ``options_ok`` is False when the option list could not be walked to its end, or an option has a
    length that its kind has not.
    ``offset_ok`` is False when the data offset points into the fixed header or outside the segment,
    which then has neither options nor payload here. ``missing`` counts octets at the end of the
    payload that the capture did not keep.
    """

    src: str
    dst: str
    sport: int
    dport: int
    seq: int
    ack: int
    flags: int
    window: int
    payload: bytes
    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    sack: tuple[tuple[int, int], ...] = ()
    tsval: int | None = None
    tsecr: int | None = None
    options_ok: bool = True
    checksum_ok: bool = True
    missing: int = 0
    offset_ok: bool = True

    @property
    def size(self) -> int:
        """Octets of data, captured or not."""
        captured = len(self.payload)
        return captured + self.missing if captured else self.missing

    @property
    def length(self) -> int:
        """Sequence space the segment occupies (RFC 9293, SEG.LEN)."""
        flags = self.flags
        return len(self.payload) + self.missing + (flags >> 1 & 1) + (flags & 1)

    @property
    def flag_names(self) -> str:
        """Flags as letters, for example ``SA``."""
        return "".join(name for bit, name in enumerate("FSRPAUEC") if self.flags >> bit & 1)


def one_of(number: int) -> int:
    """The object that stood for an equal number lately, if one did.

    What is sent comes back as what is acknowledged, and a capture has millions of both.
    """
    if len(_LATELY) >= _MOST_LATELY:
        _LATELY.clear()
    return _lately(number, number)


def nearest(offset: int, expected: int) -> int:
    """The offset nearest to ``expected`` that is the same modulo 2**32."""
    return expected + (offset - expected + MODULUS // 2) % MODULUS - MODULUS // 2


def dissect(packet: bytes) -> Tcp:
    """Dissect one IPv4 or IPv6 packet.

    Raises:
        MalformedPacket: too short, not IP, a fragment, not TCP, or an impossible IP length.
    """
    src, dst, start, data, end = _segment(packet, len(packet))
    segment = packet[start:end]
    summed = internet_checksum(pseudo_header(src, dst, _PROTOCOL, len(segment)) + segment)
    return _read(packet, src, dst, start, data, end, summed in (0, 0xFFFF) and _whole(packet))


def _whole(packet: bytes) -> bool:
    """Whether the checksum of an IPv4 header is right, or left to the interface."""
    if packet[0] >> 4 != 4 or packet[10:12] == bytes(2):
        return True
    return internet_checksum(packet[: (packet[0] & 15) * 4]) in (0, 0xFFFF)


def skim(packet: bytes, wire: int) -> Tcp:
    """Dissect a packet that a capture may have cut behind its headers; its checksum is trusted.

    ``wire`` counts its octets on the wire.

    Raises:
        MalformedPacket: as :func:`dissect`, or the headers are not whole.
    """
    found = _skim_plain(packet, wire)
    if found is not None:
        return found
    src, dst, start, data, end = _segment(packet, wire)
    if end >= data > len(packet):
        raise MalformedPacket("the capture cut the TCP header")
    return _read(packet, src, dst, start, data, end, True)


def _skim_plain(packet: bytes, wire: int) -> Tcp | None:
    """The same of a packet in whose headers nothing is unusual, else None."""
    if len(packet) < _PLAIN_OCTETS or packet[0] != 0x45:
        return None
    total, fragment, protocol, src, dst, sport, dport, seq, ack, offset, flags, window = (
        _PLAIN.unpack_from(packet)
    )
    end, data = total or wire, 20 + (offset >> 4) * 4
    if protocol != _PROTOCOL or fragment & 0x3FFF or end > wire:
        return None
    if not _PLAIN_OCTETS <= data <= min(end, len(packet)):
        return None
    if len(_LATELY) >= _MOST_LATELY:
        _LATELY.clear()
    if data == _PLAIN_OCTETS:
        options = _NO_OPTIONS
    elif data == _PLAIN_OCTETS + 12 and packet.startswith(_ONLY_TIMESTAMPS, _PLAIN_OCTETS):
        tsval, tsecr = _STAMPS.unpack_from(packet, _PLAIN_OCTETS + 4)
        tsval, tsecr = _lately(tsval, tsval), _lately(tsecr, tsecr)
        options = None, None, False, (), tsval, tsecr, True
    else:
        options = _dissect_options(packet[_PLAIN_OCTETS:data])
    missing, payload = end - data, b""
    if missing and len(packet) > data:
        payload = packet[data:end]
        missing -= len(payload)
    return Tcp(
        address_text(src), address_text(dst), _same(sport, sport), _same(dport, dport),
        _lately(seq, seq), _lately(ack, ack), flags, _same(window, window), payload, *options,
        True, _lately(missing, missing),
    )  # fmt: skip


def _segment(packet: bytes, wire: int) -> tuple[bytes, bytes, int, int, int]:
    """Addresses, and where the TCP header, its data and the packet begin or end."""
    src, dst, protocol, start, end = locate(packet, wire)
    if protocol != _PROTOCOL:
        raise MalformedPacket(f"IP protocol {protocol} is not TCP")
    if end < start + 20 or len(packet) < start + 20:
        raise MalformedPacket(f"{end - start} octets are too few for a TCP header")
    data = start + (packet[start + 12] >> 4) * 4
    return src, dst, start, data, end


def _read(
    packet: bytes, src: bytes, dst: bytes, start: int, data: int, end: int, checksum_ok: bool
) -> Tcp:
    sport, dport, seq, ack, _, flags, window, _, _ = _HEADER.unpack_from(packet, start)
    # Equal numbers are one object, for captures have millions of them.
    sport, dport, window = _same(sport, sport), _same(dport, dport), _same(window, window)
    seq, ack = one_of(seq), one_of(ack)
    offset_ok = start + 20 <= data <= end
    if not offset_ok:
        data = end
    payload = packet[data:end]
    if data == start + 20 or not offset_ok:
        options = _NO_OPTIONS
    else:
        options = _dissect_options(packet[start + 20 : data])
    return Tcp(
        address_text(src), address_text(dst), sport, dport, seq, ack, flags, window,
        payload, *options, checksum_ok, one_of(end - data - len(payload)), offset_ok,
    )  # fmt: skip


_SIZED = (2, 3, 4, 5, 8)
"""Kinds of options with lengths of their own: the five that are read."""

_Options = tuple[
    int | None, int | None, bool, tuple[tuple[int, int], ...], int | None, int | None, bool
]
_NO_OPTIONS: _Options = (None, None, False, (), None, None, True)


def _dissect_options(octets: bytes) -> _Options:
    mss = scale = tsval = tsecr = None
    permitted, sack, ok = False, (), True
    at, end = 0, len(octets)
    while at < end:
        kind = octets[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 1 >= end or not 2 <= octets[at + 1] <= end - at:
            return mss, scale, permitted, sack, tsval, tsecr, False
        size = octets[at + 1]
        value = octets[at + 2 : at + size]
        at += size
        if kind == 2 and size == 4:
            mss = int.from_bytes(value, "big")
        elif kind == 3 and size == 3:
            scale = value[0]
        elif kind == 4 and size == 2:
            permitted = True
        elif kind == 5 and size >= 10 and (size - 2) % 8 == 0:
            sack = tuple(struct.iter_unpack("!II", value))  # type: ignore[assignment]
        elif kind == 8 and size == 10:
            tsval, tsecr = map(one_of, struct.unpack("!II", value))
        elif kind in _SIZED:
            ok = False
    return mss, scale, permitted, sack, tsval, tsecr, ok


def build(segment: Tcp, appended: bytes = b"") -> bytes:
    """One IPv4 packet with correct lengths and checksums for ``segment``.

    Args:
        segment: what to build.
        appended: octets behind its options, well formed or not; padded with End of Option List.

    Raises:
        ValueError: the TCP header would exceed 60 octets.
    """
    options = b""
    if segment.mss is not None:
        options += struct.pack("!BBH", 2, 4, segment.mss)
    if segment.sack_permitted:
        options += b"\x01\x01\x04\x02"
    if segment.tsval is not None:
        options += b"\x01\x01" + struct.pack("!BBII", 8, 10, segment.tsval, segment.tsecr or 0)
    if segment.window_scale is not None:
        options += b"\x01" + struct.pack("!BBB", 3, 3, segment.window_scale)
    if segment.sack:
        options += b"\x01\x01" + struct.pack("!BB", 5, 2 + 8 * len(segment.sack))
        options += b"".join(struct.pack("!II", *block) for block in segment.sack)
    options += appended + b"\0" * (-len(appended) % 4)
    size = 20 + len(options)
    if size > LARGEST_HEADER:
        raise ValueError(f"{size} octets of TCP header are more than {LARGEST_HEADER}")
    header = _HEADER.pack(
        segment.sport, segment.dport, segment.seq % MODULUS, segment.ack % MODULUS,
        size // 4 << 4, segment.flags, segment.window, 0, 0,
    )  # fmt: skip
    tail = options + segment.payload
    src, dst = socket.inet_aton(segment.src), socket.inet_aton(segment.dst)
    covered = pseudo_header(src, dst, _PROTOCOL, 20 + len(tail)) + header + tail
    summed = internet_checksum(covered).to_bytes(2, "big")
    return build_ipv4(src, dst, _PROTOCOL, header[:16] + summed + header[18:] + tail)
