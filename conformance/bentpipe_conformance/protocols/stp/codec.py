"""The tester's own STP/1 codec: fast, and independent of the reference's.

It dissects what an implementation sends, keeps what a receiver would ignore (reserved bits, wrong
checksums, impossible lengths) for the checkers, and builds the tester's packets, odd ones included.
Section numbers are those of STP/1. Addresses are dotted strings, numbers are unsigned.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import field
from typing import Any

from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.codec import (
    UDP,
    MalformedPacket,
    address_text,
    build_ipv4,
    build_udp,
    pseudo_header,
    read_ipv4,
    read_udp,
)

BEGIN, BGAK, END, ENDAK, BGREJ, SD, SDP, POLL, STAT, USTAT = 1, 2, 3, 4, 7, 8, 9, 10, 11, 12
NAMES = {
    BEGIN: "BEGIN", BGAK: "BGAK", END: "END", ENDAK: "ENDAK", BGREJ: "BGREJ",
    SD: "SD", SDP: "SDP", POLL: "POLL", STAT: "STAT", USTAT: "USTAT",
}  # fmt: skip

FIN, V, A, R = 1, 2, 4, 8
FLAGS = {BEGIN: FIN | V, END: A | R, SD: FIN, SDP: FIN}
"""The flags that section 3.1 names for a type; for a type that is not here, none."""

VERSION = 2
PROTOCOLS = (253, 254)

_HEADER = struct.Struct("!HHBBHHH")
LEAST = {
    BEGIN: 20, BGAK: 28, END: 24, ENDAK: 16, BGREJ: 20,
    SD: 12, SDP: 24, POLL: 24, STAT: 24, USTAT: 24,
}  # fmt: skip
"""The least octets of each type (section 3.1)."""

_OPTIONED = (BEGIN, BGAK, BGREJ)
_COOKIE_LENGTHS = range(10, 35)
"""Of a whole Cookie option (section 3.3)."""


@record
class Stp:
    """One STP packet and what carried it, as dissected from an IPv4 datagram.

    Fields that the packet's type does not have are None, empty or zero. Of a packet with a
    ``fault`` only the common header and ``octets`` are read; what follows the first 20 octets of a
    BEGIN of another version is all ``data``.

    Attributes:
        src, dst: addresses of sender and receiver.
        sport, dport: source and destination port of the STP header.
        type: 4 bits, whether used or not.
        flags: 4 bits, reserved ones included; ``reserved_flags`` are those not named for the type.
        seq: the 24-bit sequence field.
        tag: 16 bits.
        n_mr: credit of BEGIN, BGAK, STAT and USTAT, 24 bits.
        n_r: N(R) of BGAK's body, 24 bits; END, STAT and USTAT have theirs in ``seq``.
        n_ps: poll number of SDP, POLL and STAT, 24 bits.
        timestamp: of SDP, POLL and STAT, 32 bits.
        elements: list of STAT and USTAT, 24 bits each.
        csn: connection sequence number of the sender in BEGIN, BGAK, END, SDP and POLL.
        peer_csn: that of the recipient in BGAK, BGREJ, END and ENDAK.
        reason: of BGREJ and END.
        version: of BEGIN.
        max_sd: value of the first well-formed MaxSD option, None without one.
        cookie: value of the first well-formed Cookie option, None without one.
        options: the raw option field of BEGIN, BGAK and BGREJ.
        data: user data of BEGIN, SD and SDP.
        reserved: the reserved fields of the body in the order of the wire, empty when all are zero
            or there are none. BGAK: 4 bits beside optlen, 8 before N(R). BGREJ: 4 bits beside
            optlen, 16 behind it. END: 24 bits. SDP, POLL: 8 bits before N(PS). STAT, USTAT: 8 bits
            for each word but the timestamp.
        protocol: IP protocol number: 17 for UDP, 253 or 254.
        udp_sport, udp_dport: UDP source and destination port, 0 without UDP.
        dont_fragment: the IP header's flag.
        checksum: the raw field.
        checksum_ok: whether it is correct, with the pseudo-header where there is one.
        udp_checksum: UDP's raw field, zero when there is none; 0 without UDP.
        udp_checksum_ok: False when UDP's checksum is wrong or absent; True without UDP.
        ip_checksum_ok: whether that of the IPv4 header is correct.
        fault: why a receiver must discard the packet (STP-PF-003), apart from its checksum; empty
            for a well-formed one.
        octets: the whole STP packet as it was on the wire; it and ``checksum`` are not compared,
            and ignored by ``build``.
    """

    src: str
    dst: str
    sport: int
    dport: int
    type: int
    flags: int = 0
    seq: int = 0
    tag: int = 0
    n_mr: int | None = None
    n_r: int | None = None
    n_ps: int | None = None
    timestamp: int | None = None
    elements: tuple[int, ...] = ()
    csn: int | None = None
    peer_csn: int | None = None
    reason: int | None = None
    version: int | None = None
    max_sd: int | None = None
    cookie: bytes | None = None
    options: bytes = b""
    data: bytes = b""
    reserved: tuple[int, ...] = ()
    protocol: int = UDP
    udp_sport: int = 0
    udp_dport: int = 0
    dont_fragment: bool = True
    checksum: int = field(default=0, compare=False)
    checksum_ok: bool = True
    udp_checksum: int = field(default=0, compare=False)
    udp_checksum_ok: bool = True
    ip_checksum_ok: bool = True
    fault: str = ""
    octets: bytes = field(default=b"", compare=False, repr=False)

    @property
    def name(self) -> str:
        """The type's name, for example ``SD``."""
        return NAMES.get(self.type, f"type {self.type}")

    @property
    def flag_names(self) -> str:
        """The flags that are set, joined by ``+``, for example ``A+R``."""
        names = {FIN: "FIN", V: "V", A: "A", R: "R"}
        return "+".join(name for flag, name in names.items() if self.flags & flag)

    @property
    def reserved_flags(self) -> int:
        """The flags that are set though section 3.1 does not name them for the type."""
        return self.flags & ~FLAGS.get(self.type, 0)

    @property
    def wellformed(self) -> bool:
        """Whether a receiver takes notice of the packet: no fault and no wrong checksum."""
        return not self.damaged and not self.fault

    @property
    def damaged(self) -> bool:
        """Whether its checksum or UDP's is wrong; UDP's may be absent."""
        wrong_udp = bool(self.udp_checksum) and not self.udp_checksum_ok
        return not self.checksum_ok or wrong_udp


def dissect(packet: bytes) -> Stp:
    """Dissect one IPv4 datagram in UDP or with protocol 253 or 254; all UDP is taken for STP.

    Raises:
        MalformedPacket: not IPv4, a fragment, another protocol, impossible IP or UDP lengths, or
            an STP packet too short for the common header. Every other defect is in the result.
    """
    src, dst, protocol, at, total, dont_fragment = read_ipv4(packet)
    udp_sport = udp_dport = 0
    udp_checksum, udp_checksum_ok = 0, True
    if protocol == UDP:
        udp_sport, udp_dport, octets, udp_checksum_ok = read_udp(src, dst, packet[at:total])
        udp_checksum = int.from_bytes(packet[at + 6 : at + 8], "big")
        covered = octets
    elif protocol in PROTOCOLS:
        octets = packet[at:total]
        covered = pseudo_header(src, dst, protocol, len(octets)) + octets
    else:
        raise MalformedPacket(f"IP protocol {protocol} does not carry STP")
    if len(octets) < 12:
        raise MalformedPacket(f"{len(octets)} octets are too few for the common header of STP")
    sport, dport, flags_type, seq_high, seq_low, stp_checksum, tag = _HEADER.unpack_from(octets)
    kind = flags_type & 15
    seen = _read(
        address_text(src), address_text(dst), sport, dport,
        kind, flags_type >> 4, seq_high << 16 | seq_low, tag, *_BODYLESS,
        protocol, udp_sport, udp_dport, dont_fragment,
        stp_checksum, internet_checksum(covered) == 0, udp_checksum, udp_checksum_ok,
        internet_checksum(packet[:at]) == 0, "", octets,
    )  # fmt: skip
    # Thirty arguments by name take a fifth of the time that a packet costs.
    for name, value in _dissect_body(kind, octets).items():
        setattr(seen, name, value)
    return seen


_BODYLESS: tuple[Any, ...] = (
    *(None,) * 4, (), *(None,) * 6, b"", b"", (),
)  # fmt: skip
"""The fields of a packet from ``n_mr`` to ``reserved`` when it has none of them."""

_read: Callable[..., Stp] = Stp


def _dissect_body(kind: int, octets: bytes) -> dict[str, Any]:
    """The fields of :class:`Stp` behind the common header, or a fault."""
    size, least = len(octets), LEAST.get(kind)
    if least is None:
        return {"fault": f"type {kind} is not used"}
    if size < least:
        return {"fault": f"{size} octets are too few for {NAMES[kind]}, which has {least}"}
    if kind == SD:
        return {"data": octets[12:]}
    if kind == STAT:
        if size % 4:
            return {"fault": f"{size} octets do not end with a whole list element"}
    elif kind not in (*_OPTIONED, SDP) and size > least:
        return {"fault": f"{size} octets are too many for {NAMES[kind]}, which has {least}"}
    words = struct.unpack_from(f"!{(least - 12) // 4}I", octets, 12)
    if kind in _OPTIONED:
        return _dissect_opening(kind, octets, words)
    if kind == ENDAK:
        return {"peer_csn": words[0]}
    low = [word & 0xFFFFFF for word in words]
    if kind == END:
        reserved = (low[0],) if low[0] else ()
        reason = {"reason": words[0] >> 24, "reserved": reserved}
        return {**reason, "csn": words[1], "peer_csn": words[2]}
    if kind == USTAT:
        return {"n_mr": low[0], "elements": (low[1], low[2]), "reserved": _high_octets(words)}
    if kind in (SDP, POLL):
        polls = {"n_ps": low[0], "timestamp": words[1], "csn": words[2], "data": octets[24:]}
        return {**polls, "reserved": _high_octets(words[:1])}
    listed = struct.unpack(f"!{(size - 24) // 4}I", octets[24:])
    return {
        "n_mr": low[0],
        "n_ps": low[1],
        "timestamp": words[2],
        "elements": tuple([element & 0xFFFFFF for element in listed]),
        "reserved": _high_octets((*words[:2], *listed)),
    }


def _high_octets(words: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([word >> 24 for word in words]) if max(words) >> 24 else ()


def _dissect_opening(kind: int, octets: bytes, words: tuple[int, ...]) -> dict[str, Any]:
    """The fields of BEGIN, BGAK or BGREJ, or a fault."""
    first, csn, *own = words
    if kind == BEGIN and first >> 28 != VERSION:
        fixed = {"n_mr": first & 0xFFFFFF, "csn": csn, "version": first >> 28}
        return {**fixed, "data": octets[20:]}
    least = LEAST[kind]
    end = least + (first >> (16 if kind == BGREJ else 24) & 15) * 4
    if end > len(octets):
        return {"fault": f"optlen says {end} octets, the packet has {len(octets)}"}
    options = octets[least:end]
    known = _walk_options(options)
    if known is None:
        return {"fault": "an option does not fit into the option field"}
    opening: dict[str, Any] = {"options": options, **known}
    if kind == BEGIN:
        fixed = {"n_mr": first & 0xFFFFFF, "csn": csn, "version": first >> 28}
        return {**opening, **fixed, "data": octets[end:]}
    if end < len(octets):
        return {"fault": f"{len(octets) - end} octets behind the options of {NAMES[kind]}"}
    if kind == BGREJ:
        reserved = (first >> 20 & 15, first & 0xFFFF)
        opening |= {"reason": first >> 24, "peer_csn": csn}
    else:
        peer_csn, n_r = own
        reserved = (first >> 28, n_r >> 24)
        opening |= {"n_mr": first & 0xFFFFFF, "csn": csn, "peer_csn": peer_csn}
        opening["n_r"] = n_r & 0xFFFFFF
    return {**opening, "reserved": reserved if any(reserved) else ()}


def _walk_options(octets: bytes) -> dict[str, Any] | None:
    """MaxSD and Cookie as far as they are there; None if an option does not fit."""
    known: dict[str, Any] = {}
    at, end = 0, len(octets)
    while at < end:
        kind = octets[at]
        if kind == 0:
            at += 1
            continue
        if at + 1 >= end or not 2 <= octets[at + 1] <= end - at:
            return None
        size = octets[at + 1]
        value = octets[at + 2 : at + size]
        if kind == 1 and size == 4:
            known.setdefault("max_sd", int.from_bytes(value, "big"))
        elif kind == 2 and size in _COOKIE_LENGTHS:
            known.setdefault("cookie", value)
        at += size
    return known


def octets_of(packet: Stp) -> bytes:
    """The octets of the STP packet alone, with the correct checksum.

    All fields are written as they are: a reserved flag, a wrong sequence or nonsense in a list too.
    ``options`` is used when there are any, else ``max_sd`` and ``cookie`` make the option field.

    Raises:
        ValueError: a type that is not used, or a field out of its range.
    """
    try:
        body = _build_body(packet)
        header = _HEADER.pack(
            packet.sport, packet.dport, packet.flags << 4 | packet.type,
            packet.seq >> 16, packet.seq & 0xFFFF, 0, packet.tag,
        )  # fmt: skip
    except (struct.error, OverflowError) as error:
        raise ValueError(f"{packet.name} has a field out of its range: {error}") from error
    return _checked(packet, header + body)


def with_checksum(packet: Stp, octets: bytes) -> bytes:
    """Octets that are carried as ``packet`` is, at least 10, with the correct checksum."""
    return _checked(packet, octets[:8] + b"\0\0" + octets[10:])


def _checked(packet: Stp, octets: bytes) -> bytes:
    """The same of octets whose checksum is still zero."""
    covered = octets
    if packet.protocol != UDP:
        src, dst = socket.inet_aton(packet.src), socket.inet_aton(packet.dst)
        covered = pseudo_header(src, dst, packet.protocol, len(octets)) + octets
    return octets[:8] + internet_checksum(covered).to_bytes(2, "big") + octets[10:]


def _build_body(packet: Stp) -> bytes:
    kind = packet.type
    if kind == SD:
        return packet.data
    if kind in _OPTIONED:
        return _build_opening(packet)
    reserved = packet.reserved
    if kind == END:
        first = (packet.reason or 0) << 24 | (reserved[0] if reserved else 0)
        return _words(first, packet.csn or 0, packet.peer_csn or 0)
    if kind == ENDAK:
        return _words(packet.peer_csn or 0)
    if kind in (SDP, POLL):
        (n_ps,) = _with_reserved([packet.n_ps], reserved)
        words = _words(n_ps, packet.timestamp or 0, packet.csn or 0)
        return words + (packet.data if kind == SDP else b"")
    if kind == USTAT:
        return _words(*_with_reserved([packet.n_mr, *packet.elements], reserved))
    if kind == STAT:
        n_mr, n_ps, *listed = _with_reserved([packet.n_mr, packet.n_ps, *packet.elements], reserved)
        return _words(n_mr, n_ps, packet.timestamp or 0, *listed)
    raise ValueError(f"type {kind} is not used; make its octets and use build_datagram")


def _build_opening(packet: Stp) -> bytes:
    options = packet.options or option_field(packet.max_sd, packet.cookie)
    if len(options) % 4 or len(options) > 60:
        raise ValueError(f"{len(options)} octets of options; make it whole words, at most 60")
    beside, behind = packet.reserved or (0, 0)
    if packet.type == BGREJ:
        optlen = len(options) // 4
        first = (packet.reason or 0) << 24 | beside << 20 | optlen << 16 | behind
        return _words(first, packet.peer_csn or 0) + options
    if packet.type == BEGIN:
        beside = VERSION if packet.version is None else packet.version
    first = beside << 28 | len(options) << 22 | _24_bits(packet.n_mr)
    if packet.type == BEGIN:
        return _words(first, packet.csn or 0) + options + packet.data
    last = behind << 24 | _24_bits(packet.n_r)
    return _words(first, packet.csn or 0, packet.peer_csn or 0, last) + options


def option_field(max_sd: int | None = None, cookie: bytes | None = None) -> bytes:
    """The options MaxSD and Cookie, as far as they are given, padded to whole words."""
    options = b"" if max_sd is None else struct.pack("!BBH", 1, 4, max_sd)
    if cookie is not None:
        options += bytes([2, 2 + len(cookie)]) + cookie
    return options + bytes(-len(options) % 4)


def _words(*words: int) -> bytes:
    return struct.pack(f"!{len(words)}I", *words)


def _with_reserved(numbers: list[int | None], reserved: tuple[int, ...]) -> list[int]:
    if not reserved:
        return [_24_bits(number) for number in numbers]
    high = (*reserved, *[0] * len(numbers))
    return [_24_bits(number) | octet << 24 for number, octet in zip(numbers, high, strict=False)]


def _24_bits(number: int | None) -> int:
    if number is not None and not 0 <= number < 1 << 24:
        raise ValueError(f"{number} is not a number of 24 bits")
    return number or 0


def build(packet: Stp) -> bytes:
    """One IPv4 datagram with correct lengths and checksums for ``packet``.

    Raises:
        ValueError: a type that is not used, or a field out of its range.
    """
    return build_datagram(packet, octets_of(packet))


def build_datagram(packet: Stp, octets: bytes, *, rechecked: bool = False) -> bytes:
    """One IPv4 datagram that carries any ``octets`` the way ``packet`` travels.

    Args:
        packet: gives addresses, protocol and UDP ports.
        octets: an STP packet, or what is left of one.
        rechecked: whether to put the correct checksum into ``octets`` first, if there is room.
    """
    if rechecked and len(octets) >= 10:
        octets = with_checksum(packet, octets)
    src, dst = socket.inet_aton(packet.src), socket.inet_aton(packet.dst)
    if packet.protocol == UDP:
        octets = build_udp(src, dst, packet.udp_sport, packet.udp_dport, octets)
    return build_ipv4(src, dst, packet.protocol, octets, dont_fragment=packet.dont_fragment)
