"""From captured frames of any usual link type to IP packets."""

from __future__ import annotations

from bentpipe_conformance.evidence.frames import Frame

_IPV4, _IPV6, _PPPOE = b"\x08\x00", b"\x86\xdd", b"\x88\x64"
_VLAN_TAGS = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")

LINK_TYPES = (0, 1, 9, 12, 14, 50, 51, 101, 108, 113, 228, 229, 276)
"""LINKTYPE numbers whose frames are understood."""
(
    _NULL, _ETHERNET, _PPP, _RAW_BSD, _RAW_OPENBSD, _PPP_HDLC, _PPP_ETHER, _RAW, _LOOP, _SLL,
    _RAW_IPV4, _RAW_IPV6, _SLL2,
) = LINK_TYPES  # fmt: skip
_RAW_TYPES = (_RAW, _RAW_BSD, _RAW_OPENBSD, _RAW_IPV4, _RAW_IPV6)
_ETHERTYPE_AT = {_ETHERNET: (12, 14), _SLL: (14, 16), _SLL2: (0, 20)}
"""Where a frame's EtherType is, and where its packet begins."""
_FAMILIES = (2, 24, 28, 30)
"""Address families of IPv4, and of IPv6 on NetBSD, FreeBSD and macOS (LINKTYPE_NULL)."""
_PACKET_TYPE_AT = {_SLL: slice(0, 2), _SLL2: slice(10, 11)}
_OUTGOING = 4
"""PACKET_OUTGOING of Linux cooked frames."""


def ip_packet(frame: Frame) -> tuple[bytes, int] | None:
    """The IPv4 or IPv6 packet of a frame as captured, and its octets on the wire; None without one.

    Link-layer padding is left out. Where segmentation offload left a length of 0, the frame's own
    length tells.
    """
    data = frame.data
    start = _network_start(frame.link_type, data)
    if start is None or len(data) < start + 20:
        return None
    version = data[start] >> 4
    if version == 4:
        total = int.from_bytes(data[start + 2 : start + 4], "big")
    elif version == 6 and len(data) >= start + 40:
        total = int.from_bytes(data[start + 4 : start + 6], "big")
        total += 40 if total else 0
    else:
        return None
    if not total:
        total = max(frame.original_length, len(data)) - start
    captured = data[start : start + total]
    return captured, total if frame.cut else len(captured)


def ipv4_packet(frame: Frame) -> bytes | None:
    """The IPv4 packet a frame carries, without link-layer padding; None when it carries none.

    A packet that the capture cut short is padded with zeros to its total length, so that lengths
    and sequence numbers stay true; its checksum is then wrong (see `Frame.cut`).
    """
    found = ip_packet(frame)
    if found is None or found[0][0] >> 4 != 4:
        return None
    packet, wire = found
    return packet + b"\0" * (wire - len(packet))


def sent_here(frame: Frame) -> bool | None:
    """Whether the capturing host sent a frame; None when nothing says so."""
    if frame.outgoing is not None:
        return frame.outgoing
    place = _PACKET_TYPE_AT.get(frame.link_type)
    if place is None or not frame.data:
        return None
    return int.from_bytes(frame.data[place], "big") == _OUTGOING


def _network_start(link_type: int, data: bytes) -> int | None:
    if link_type in _RAW_TYPES:
        return 0
    if link_type in (_NULL, _LOOP):  # in the byte order of the capturing host, or the network's
        family = data[:4] if data[:2] == b"\0\0" else data[3::-1]
        return 4 if int.from_bytes(family, "big") in _FAMILIES and len(data) > 4 else None
    if link_type in (_PPP, _PPP_HDLC):
        return _ppp_start(data, 2 if data[:2] in (b"\xff\x03", b"\x0f\x00", b"\x8f\x00") else 0)
    if link_type == _PPP_ETHER:
        return _ppp_start(data, 6)
    if link_type not in _ETHERTYPE_AT:
        return None
    at, start = _ETHERTYPE_AT[link_type]
    while (kind := data[at : at + 2]) in _VLAN_TAGS:
        at, start = start + 2, start + 4
    if kind in (_IPV4, _IPV6):
        return start
    return _ppp_start(data, start + 6) if kind == _PPPOE else None


def _ppp_start(data: bytes, at: int) -> int | None:
    """Where the packet begins behind a PPP protocol field, which may be compressed (RFC 1661)."""
    if data[at : at + 2] in (b"\x00\x21", b"\x00\x57"):
        return at + 2
    return at + 1 if data[at : at + 1] in (b"\x21", b"\x57") else None
