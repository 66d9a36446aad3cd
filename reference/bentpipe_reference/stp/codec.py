"""STP/1 packets from and to octets (STP/1 section 3).

Guarantees, held by property tests:

* any octet string either decodes or raises :class:`MalformedPacket`, and nothing else;
* ``decode(encode(x)) == x`` for every packet ``x`` without reserved flags whose ``options`` hold
  only what the decoder would put there; a BEGIN of another version loses what follows its first
  20 octets.

``encode`` writes ``flags`` unchanged; ``decode`` returns neither reserved flags nor reserved
fields, so that its callers cannot depend on them (STP-PF-004).

The checksum is computed from words of 32 bits: since 65536 is 1 modulo 65535, a word has the
residue of the sum of its halves.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import lru_cache

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.encapsulation import MalformedPacket
from bentpipe_reference.stp import packets

__all__ = ["MalformedPacket", "decode", "encode"]

_HEADER_OCTETS = 12
_24_BITS = 0xFFFFFF
_NO_FLAGS = 0
"""What is decoded for types without flags (STP-PF-004)."""


@lru_cache
def _format(head: str, count: int) -> struct.Struct:
    """The format of what begins with ``head`` and goes on with ``count`` words."""
    return struct.Struct(f"!{head}{count}I")


_HEADER = struct.Struct("!HHIHH")


def encode(packet: packets.Packet, pseudo_header: bytes = b"") -> bytes:
    """The octets of ``packet`` with its checksum.

    Args:
        packet: any of the ten.
        pseudo_header: empty in UDP, else with a length of zero, which is added here (see
            :func:`~bentpipe_reference.common.encapsulation.pseudo_header`).

    Raises:
        MalformedPacket: a field is out of its range, or the options do not fit.
    """
    try:
        number, others, words, tail = _FIELDS[type(packet)](packet)
        if max((number, *others)) >> 24:
            raise MalformedPacket("a number has more than 24 bits")
        sport, dport, tag = packet.sport, packet.dport, packet.tag
        word = packet.flags << 28 | packet.type << 24 | number
        total = sport + dport + tag + word + sum(words)
        if tail:
            total += ones_complement_residue(tail)
        if pseudo_header:
            size = _HEADER_OCTETS + 4 * len(words) + len(tail)
            total += ones_complement_residue(pseudo_header) + size
        head = _format("HHIHH", len(words)).pack(
            sport, dport, word, checksum_field(total), tag, *words
        )
    except (struct.error, TypeError, ValueError, OverflowError) as error:
        raise MalformedPacket(f"the packet has no encoding: {error}") from error
    return head + tail


def decode(octets: bytes, pseudo_header: bytes = b"") -> packets.Packet:
    """Read one packet, which ends where ``octets`` end.

    Args:
        octets: the payload of the IP or UDP datagram.
        pseudo_header: as for :func:`encode`.

    Raises:
        MalformedPacket: a wrong checksum, a type that is not used, a length that the type does not
            allow, or options that do not fit.
    """
    size = len(octets)
    if size < _HEADER_OCTETS:
        raise MalformedPacket(f"{size} octets cannot hold the common header")
    residue = ones_complement_residue(octets)
    if pseudo_header:
        residue = (residue + ones_complement_residue(pseudo_header) + size) % 0xFFFF
    # RFC 1071: a sum of all ones is right. It is the residue 0, as a type is never zero.
    if residue:
        raise MalformedPacket("wrong checksum")
    sport, dport, word, _, tag = _HEADER.unpack_from(octets)
    kind = word >> 24 & 15
    if kind not in _READERS:
        raise MalformedPacket(f"packet type {kind} is not used")
    least, most, read = _READERS[kind]
    if not least <= size <= most:
        raise _wrong_length(packets.Type(kind), octets)
    return read(octets, sport, dport, tag, word)


_Numbers = tuple[int, ...]
_Fields = tuple[int, _Numbers, tuple[int, ...], bytes]
"""The sequence field, other numbers that must have 24 bits, words and octets after the header."""


def _begin(packet: packets.Begin) -> _Fields:
    options = _encode_options(packet)
    second = packet.version << 28 | len(options) >> 2 << 24 | packet.n_mr
    return packet.iss, (packet.n_mr,), (second, packet.csn), options + packet.data


def _bgak(packet: packets.Bgak) -> _Fields:
    options = _encode_options(packet)
    words = (len(options) >> 2 << 24 | packet.n_mr, packet.csn, packet.peer_csn, packet.n_r)
    return packet.iss, (packet.n_mr, packet.n_r), words, options


def _bgrej(packet: packets.Bgrej) -> _Fields:
    options = _encode_options(packet)
    words = (packet.reason << 24 | len(options) >> 2 << 16, packet.peer_csn)
    return 0, (), words, options


def _stat(packet: packets.Stat) -> _Fields:
    numbers = (packet.n_mr, packet.n_ps, *packet.elements)
    words = (packet.n_mr, packet.n_ps, packet.timestamp, *packet.elements)
    return packet.n_r, numbers, words, b""


def _ustat(packet: packets.Ustat) -> _Fields:
    first, second = packet.elements
    numbers = (packet.n_mr, first, second)
    return packet.n_r, numbers, numbers, b""


_FIELDS: dict[type, Callable[..., _Fields]] = {
    packets.Begin: _begin,
    packets.Bgak: _bgak,
    packets.Bgrej: _bgrej,
    packets.End: lambda packet: (
        packet.n_r, (), (packet.reason << 24, packet.csn, packet.peer_csn), b""),
    packets.Endak: lambda packet: (0, (), (packet.peer_csn,), b""),
    packets.Sd: lambda packet: (packet.n_s, (), (), packet.data),
    packets.Sdp: lambda packet: (
        packet.n_s, (packet.n_ps,), (packet.n_ps, packet.timestamp, packet.csn), packet.data),
    packets.Poll: lambda packet: (
        packet.n_s, (packet.n_ps,), (packet.n_ps, packet.timestamp, packet.csn), b""),
    packets.Stat: _stat,
    packets.Ustat: _ustat,
}  # fmt: skip


def _read_begin(octets: bytes, sport: int, dport: int, tag: int, word: int) -> packets.Begin:
    second, csn = _format("", 2).unpack_from(octets, 12)
    n_mr, version = second & _24_BITS, second >> 28
    flags, iss = word >> 28 & 3, word & _24_BITS
    if version != packets.VERSION:  # STP-PF-003: nothing beyond is looked at
        return packets.Begin(sport, dport, tag, flags, iss, n_mr, csn, version)
    data_at = 20 + (second >> 22 & 60)
    if data_at > len(octets):
        raise _wrong_length(packets.Type.BEGIN, octets)
    max_sd, cookie, options = _decode_options(octets[20:data_at])
    return packets.Begin(
        sport, dport, tag, flags, iss, n_mr, csn, version, max_sd, cookie, octets[data_at:], options
    )


def _read_bgak(octets: bytes, sport: int, dport: int, tag: int, word: int) -> packets.Bgak:
    second, csn, peer_csn, n_r = _format("", 4).unpack_from(octets, 12)
    if len(octets) != 28 + (second >> 22 & 60):
        raise _wrong_length(packets.Type.BGAK, octets)
    return packets.Bgak(
        sport, dport, tag, _NO_FLAGS, word & _24_BITS, second & _24_BITS, csn, peer_csn,
        n_r & _24_BITS, *_decode_options(octets[28:]),
    )  # fmt: skip


def _read_bgrej(octets: bytes, sport: int, dport: int, tag: int, _: int) -> packets.Bgrej:
    second, peer_csn = _format("", 2).unpack_from(octets, 12)
    if len(octets) != 20 + (second >> 14 & 60):
        raise _wrong_length(packets.Type.BGREJ, octets)
    return packets.Bgrej(
        sport, dport, tag, _NO_FLAGS, second >> 24, peer_csn, *_decode_options(octets[20:])
    )


def _read_end(octets: bytes, sport: int, dport: int, tag: int, word: int) -> packets.End:
    second, csn, peer_csn = _format("", 3).unpack_from(octets, 12)
    return packets.End(
        sport, dport, tag, word >> 28 & 12, word & _24_BITS, second >> 24, csn, peer_csn
    )


def _read_endak(octets: bytes, sport: int, dport: int, tag: int, _: int) -> packets.Endak:
    return packets.Endak(sport, dport, tag, _NO_FLAGS, *_format("", 1).unpack_from(octets, 12))


def _read_sd(octets: bytes, sport: int, dport: int, tag: int, word: int) -> packets.Sd:
    return packets.Sd(sport, dport, tag, word >> 28 & 1, word & _24_BITS, octets[12:])


def _read_sdp(octets: bytes, sport: int, dport: int, tag: int, word: int) -> packets.Sdp:
    n_ps, timestamp, csn = _format("", 3).unpack_from(octets, 12)
    return packets.Sdp(
        sport, dport, tag, word >> 28 & 1, word & _24_BITS, n_ps & _24_BITS, timestamp, csn,
        octets[24:],
    )  # fmt: skip


def _read_poll(octets: bytes, sport: int, dport: int, tag: int, word: int) -> packets.Poll:
    n_ps, timestamp, csn = _format("", 3).unpack_from(octets, 12)
    return packets.Poll(
        sport, dport, tag, _NO_FLAGS, word & _24_BITS, n_ps & _24_BITS, timestamp, csn
    )


def _read_stat(octets: bytes, sport: int, dport: int, tag: int, word: int) -> packets.Stat:
    if len(octets) & 3:
        raise _wrong_length(packets.Type.STAT, octets)
    n_mr, n_ps, timestamp, *elements = _format("", len(octets) - 12 >> 2).unpack_from(octets, 12)
    return packets.Stat(
        sport, dport, tag, _NO_FLAGS, word & _24_BITS, n_mr & _24_BITS, n_ps & _24_BITS, timestamp,
        tuple([element & _24_BITS for element in elements]),
    )  # fmt: skip


def _read_ustat(octets: bytes, sport: int, dport: int, tag: int, word: int) -> packets.Ustat:
    n_mr, first, second = [field & _24_BITS for field in _format("", 3).unpack_from(octets, 12)]
    return packets.Ustat(sport, dport, tag, _NO_FLAGS, word & _24_BITS, n_mr, (first, second))


_PADDING, _MAX_SD, _COOKIE = 0, 1, 2

_MOST_OPTIONS = 60
"""What the four bits of optlen can express, in words of four octets."""

_MAX_SD_OPTION = struct.Struct("!BBH")

_Options = tuple[tuple[int, bytes], ...]


def _decode_options(raw: bytes) -> tuple[int | None, bytes | None, _Options]:
    """MaxSD, cookie, and (kind, value) of every other option.

    Of MaxSD and Cookie the first one with a length that its kind allows counts; further ones, and
    ones of another length, are other options.

    Raises:
        MalformedPacket: a length is missing, below 2, or points beyond the field.
    """
    max_sd = cookie = None
    others = []
    at, end = 0, len(raw)
    while at < end:
        kind = raw[at]
        if kind == _PADDING:
            at += 1
            continue
        length = raw[at + 1] if at + 1 < end else 0
        if length < 2 or at + length > end:
            raise MalformedPacket(f"option kind {kind} has the impossible length {length}")
        value = raw[at + 2 : at + length]
        if kind == _MAX_SD and length == 4 and max_sd is None:
            max_sd = int.from_bytes(value, "big")
        elif kind == _COOKIE and cookie is None and _may_be_cookie(value):
            cookie = value
        else:
            others.append((kind, value))
        at += length
    return max_sd, cookie, tuple(others)


def _may_be_cookie(value: bytes) -> bool:
    return packets.LEAST_COOKIE <= len(value) <= packets.MOST_COOKIE


def _encode_options(packet: packets.Begin | packets.Bgak | packets.Bgrej) -> bytes:
    """The option field, padded to whole words.

    Raises:
        MalformedPacket: more than 60 octets, an option of kind 0, or a cookie of a wrong length.
        struct.error: a number out of its range.
    """
    max_sd, cookie, others = packet.max_sd, packet.cookie, packet.options
    raw = b"" if max_sd is None else _MAX_SD_OPTION.pack(_MAX_SD, 4, max_sd)
    if cookie is not None:
        if not _may_be_cookie(cookie):
            raise MalformedPacket(f"a cookie cannot have {len(cookie)} octets")
        others = ((_COOKIE, cookie), *others)
    for kind, value in others:
        if kind == _PADDING:
            raise MalformedPacket("kind 0 is padding and has no value")
        raw += struct.pack("!BB", kind, 2 + len(value)) + value
    raw += bytes(-len(raw) % 4)
    if len(raw) > _MOST_OPTIONS:
        raise MalformedPacket(f"{len(raw)} octets of options do not fit {_MOST_OPTIONS}")
    return raw


def _wrong_length(kind: packets.Type, octets: bytes) -> MalformedPacket:
    return MalformedPacket(f"{kind.name} cannot have {len(octets)} octets")


_ANY = sys.maxsize
_READERS: dict[int, tuple[int, int, Callable[[bytes, int, int, int, int], packets.Packet]]] = {
    packets.Type.BEGIN: (20, _ANY, _read_begin),
    packets.Type.BGAK: (28, _ANY, _read_bgak),
    packets.Type.END: (24, 24, _read_end),
    packets.Type.ENDAK: (16, 16, _read_endak),
    packets.Type.BGREJ: (20, 80, _read_bgrej),
    packets.Type.SD: (12, _ANY, _read_sd),
    packets.Type.SDP: (24, _ANY, _read_sdp),
    packets.Type.POLL: (24, 24, _read_poll),
    packets.Type.STAT: (24, _ANY, _read_stat),
    packets.Type.USTAT: (24, 24, _read_ustat),
}
"""The least and the most octets of each type, and what reads its fields."""
