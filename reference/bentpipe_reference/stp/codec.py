"""STP/1 packets from and to octets (STP/1 section 3).

Guarantees, held by property tests:

* any octet string either decodes or raises :class:`MalformedPacket`, and nothing else;
* ``decode(encode(x)) == x`` for every packet ``x`` without reserved flags and whose ``options``
  hold only what the decoder would put there.

``encode`` writes ``flags`` as they are; ``decode`` returns neither reserved flags nor reserved
fields, so that nothing behind it can depend on them (STP-PF-004).

A packet's words of 32 bits are added as they are to get its checksum: 65536 leaves the remainder 1
modulo 65535, so a word has the residue of the sum of its halves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.stp.errors import MalformedPacket
from bentpipe_reference.stp.options import decode_options, encode_options
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Packet,
    Poll,
    Sd,
    Sdp,
    Stat,
    Type,
    Ustat,
)

__all__ = ["MalformedPacket", "decode", "encode"]

_HEADER_OCTETS = 12
_HEADER = struct.Struct("!HHIHH")
_ONE = struct.Struct("!HHIHHI")
_TWO = struct.Struct("!HHIHHII")
_THREE = struct.Struct("!HHIHHIII")
_FOUR = struct.Struct("!HHIHHIIII")
_BODY_ONE = struct.Struct("!I")
_BODY_TWO = struct.Struct("!II")
_BODY_THREE = struct.Struct("!III")
_BODY_FOUR = struct.Struct("!IIII")
_24_BITS = 0xFFFFFF

_LISTS = [struct.Struct(f"!{count}I") for count in range(70)]
"""Lists up to the usual MaxSTAT of 67 are common enough to keep their formats."""


def _list(count: int) -> struct.Struct:
    return _LISTS[count] if count < len(_LISTS) else struct.Struct(f"!{count}I")


def encode(packet: Packet, pseudo_header: bytes = b"") -> bytes:
    """The octets of ``packet`` with its checksum.

    Args:
        packet: any of the ten.
        pseudo_header: what the checksum covers beside the packet, with a length of zero (see
            :func:`~bentpipe_reference.stp.encapsulation.pseudo_header`; the length is added here);
            empty in UDP.

    Raises:
        MalformedPacket: a field is out of its range, or the options do not fit.
    """
    try:
        return _ENCODERS[type(packet)](packet, pseudo_header)
    except (struct.error, TypeError, ValueError, OverflowError) as error:
        raise MalformedPacket(f"the packet has no encoding: {error}") from error


def decode(octets: bytes, pseudo_header: bytes = b"") -> Packet:
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
    decoder = _DECODERS.get(word >> 24 & 15)
    if decoder is None:
        raise MalformedPacket(f"packet type {word >> 24 & 15} is not used")
    return decoder(octets, sport, dport, tag, word)


def _residue(data: bytes, pseudo_header: bytes, size: int) -> int:
    residue = ones_complement_residue(data) if data else 0
    if pseudo_header:
        residue += ones_complement_residue(pseudo_header) + size
    return residue


def _word(packet: Packet, number: int, *further: int) -> int:
    """Flags, type and sequence; all numbers given must be of 24 bits."""
    bits = number
    for other in further:
        bits |= other
    if bits >> 24:
        raise MalformedPacket("a number has more than 24 bits")
    return packet.flags << 28 | packet.type << 24 | number


def _encode_sd(packet: Sd, pseudo_header: bytes) -> bytes:
    data = packet.data
    sport, dport, tag = packet.sport, packet.dport, packet.tag
    word = _word(packet, packet.n_s)
    total = sport + dport + tag + word + _residue(data, pseudo_header, 12 + len(data))
    return _HEADER.pack(sport, dport, word, checksum_field(total), tag) + data


def _decode_sd(octets: bytes, sport: int, dport: int, tag: int, word: int) -> Sd:
    return Sd(sport, dport, tag, word >> 28 & 1, word & _24_BITS, octets[12:])


def _encode_sdp(packet: Sdp, pseudo_header: bytes) -> bytes:
    data, n_ps, timestamp = packet.data, packet.n_ps, packet.timestamp
    sport, dport, tag = packet.sport, packet.dport, packet.tag
    word = _word(packet, packet.n_s, n_ps)
    total = sport + dport + tag + word + n_ps + timestamp
    total += _residue(data, pseudo_header, 20 + len(data))
    return _TWO.pack(sport, dport, word, checksum_field(total), tag, n_ps, timestamp) + data


def _decode_sdp(octets: bytes, sport: int, dport: int, tag: int, word: int) -> Sdp:
    if len(octets) < 20:
        raise _wrong_length(Type.SDP, octets)
    n_ps, timestamp = _BODY_TWO.unpack_from(octets, 12)
    return Sdp(
        sport, dport, tag, word >> 28 & 1, word & _24_BITS, n_ps & _24_BITS, timestamp, octets[20:]
    )


def _encode_poll(packet: Poll, pseudo_header: bytes) -> bytes:
    n_ps, timestamp = packet.n_ps, packet.timestamp
    sport, dport, tag = packet.sport, packet.dport, packet.tag
    word = _word(packet, packet.n_s, n_ps)
    total = sport + dport + tag + word + n_ps + timestamp + _residue(b"", pseudo_header, 20)
    return _TWO.pack(sport, dport, word, checksum_field(total), tag, n_ps, timestamp)


def _decode_poll(octets: bytes, sport: int, dport: int, tag: int, word: int) -> Poll:
    if len(octets) != 20:
        raise _wrong_length(Type.POLL, octets)
    n_ps, timestamp = _BODY_TWO.unpack_from(octets, 12)
    return Poll(sport, dport, tag, 0, word & _24_BITS, n_ps & _24_BITS, timestamp)


def _encode_stat(packet: Stat, pseudo_header: bytes) -> bytes:
    n_mr, n_ps, timestamp, elements = packet.n_mr, packet.n_ps, packet.timestamp, packet.elements
    sport, dport, tag = packet.sport, packet.dport, packet.tag
    word = _word(packet, packet.n_r, n_mr, n_ps, max(elements, default=0))
    total = sport + dport + tag + word + n_mr + n_ps + timestamp + sum(elements)
    total += _residue(b"", pseudo_header, 24 + 4 * len(elements))
    field = checksum_field(total)
    fixed = _THREE.pack(sport, dport, word, field, tag, n_mr, n_ps, timestamp)
    return fixed + _list(len(elements)).pack(*elements)


def _decode_stat(octets: bytes, sport: int, dport: int, tag: int, word: int) -> Stat:
    size = len(octets)
    if size < 24 or size & 3:
        raise _wrong_length(Type.STAT, octets)
    n_mr, n_ps, timestamp = _BODY_THREE.unpack_from(octets, 12)
    elements = _list((size - 24) >> 2).unpack_from(octets, 24)
    # A word above 24 bits has something in its reserved octet.
    if elements and max(elements) > _24_BITS:
        elements = tuple([element & _24_BITS for element in elements])
    return Stat(
        sport, dport, tag, 0,
        word & _24_BITS, n_mr & _24_BITS, n_ps & _24_BITS, timestamp, elements,
    )  # fmt: skip


def _encode_ustat(packet: Ustat, pseudo_header: bytes) -> bytes:
    n_mr = packet.n_mr
    first, second = packet.elements
    sport, dport, tag = packet.sport, packet.dport, packet.tag
    word = _word(packet, packet.n_r, n_mr, first, second)
    total = sport + dport + tag + word + n_mr + first + second + _residue(b"", pseudo_header, 24)
    return _THREE.pack(sport, dport, word, checksum_field(total), tag, n_mr, first, second)


def _decode_ustat(octets: bytes, sport: int, dport: int, tag: int, word: int) -> Ustat:
    if len(octets) != 24:
        raise _wrong_length(Type.USTAT, octets)
    n_mr, first, second = _BODY_THREE.unpack_from(octets, 12)
    return Ustat(
        sport, dport, tag, 0,
        word & _24_BITS, n_mr & _24_BITS, (first & _24_BITS, second & _24_BITS),
    )  # fmt: skip


def _encode_begin(packet: Begin, pseudo_header: bytes) -> bytes:
    sport, dport, tag, csn = packet.sport, packet.dport, packet.tag, packet.csn
    word = _word(packet, packet.iss, packet.n_mr)
    options = encode_options(packet.max_sd, packet.options)
    if packet.version >> 4:
        raise MalformedPacket("the version has more than 4 bits")
    second = packet.version << 28 | len(options) >> 2 << 24 | packet.n_mr
    tail = options + packet.data
    total = sport + dport + tag + word + second + csn
    total += _residue(tail, pseudo_header, 20 + len(tail))
    return _TWO.pack(sport, dport, word, checksum_field(total), tag, second, csn) + tail


def _decode_begin(octets: bytes, sport: int, dport: int, tag: int, word: int) -> Begin:
    if len(octets) < 20:
        raise _wrong_length(Type.BEGIN, octets)
    second, csn = _BODY_TWO.unpack_from(octets, 12)
    data_at = 20 + (second >> 22 & 60)
    if data_at > len(octets):
        raise _wrong_length(Type.BEGIN, octets)
    max_sd, options = decode_options(octets[20:data_at])
    return Begin(
        sport, dport, tag, word >> 28 & 1,
        word & _24_BITS, second & _24_BITS, csn, second >> 28, max_sd, octets[data_at:], options,
    )  # fmt: skip


def _encode_bgak(packet: Bgak, pseudo_header: bytes) -> bytes:
    sport, dport, tag = packet.sport, packet.dport, packet.tag
    csn, peer_csn, n_r = packet.csn, packet.peer_csn, packet.n_r
    word = _word(packet, packet.iss, packet.n_mr, n_r)
    options = encode_options(packet.max_sd, packet.options)
    second = len(options) >> 2 << 24 | packet.n_mr
    total = sport + dport + tag + word + second + csn + peer_csn + n_r
    total += _residue(options, pseudo_header, 28 + len(options))
    field = checksum_field(total)
    return _FOUR.pack(sport, dport, word, field, tag, second, csn, peer_csn, n_r) + options


def _decode_bgak(octets: bytes, sport: int, dport: int, tag: int, word: int) -> Bgak:
    size = len(octets)
    if size < 28:
        raise _wrong_length(Type.BGAK, octets)
    second, csn, peer_csn, n_r = _BODY_FOUR.unpack_from(octets, 12)
    if size != 28 + (second >> 22 & 60):
        raise _wrong_length(Type.BGAK, octets)
    max_sd, options = decode_options(octets[28:])
    return Bgak(
        sport, dport, tag, word >> 28 & 2,
        word & _24_BITS, second & _24_BITS, csn, peer_csn, n_r & _24_BITS, max_sd, options,
    )  # fmt: skip


def _encode_end(packet: End, pseudo_header: bytes) -> bytes:
    sport, dport, tag = packet.sport, packet.dport, packet.tag
    csn, peer_csn = packet.csn, packet.peer_csn
    word = _word(packet, packet.n_r)
    second = packet.reason << 24
    total = sport + dport + tag + word + second + csn + peer_csn
    total += _residue(b"", pseudo_header, 24)
    return _THREE.pack(sport, dport, word, checksum_field(total), tag, second, csn, peer_csn)


def _decode_end(octets: bytes, sport: int, dport: int, tag: int, word: int) -> End:
    if len(octets) != 24:
        raise _wrong_length(Type.END, octets)
    second, csn, peer_csn = _BODY_THREE.unpack_from(octets, 12)
    return End(sport, dport, tag, word >> 28 & 12, word & _24_BITS, second >> 24, csn, peer_csn)


def _encode_bgrej(packet: Bgrej, pseudo_header: bytes) -> bytes:
    sport, dport, tag, peer_csn = packet.sport, packet.dport, packet.tag, packet.peer_csn
    word = _word(packet, 0)
    second = packet.reason << 24
    total = sport + dport + tag + word + second + peer_csn + _residue(b"", pseudo_header, 20)
    return _TWO.pack(sport, dport, word, checksum_field(total), tag, second, peer_csn)


def _decode_bgrej(octets: bytes, sport: int, dport: int, tag: int, _: int) -> Bgrej:
    if len(octets) != 20:
        raise _wrong_length(Type.BGREJ, octets)
    second, peer_csn = _BODY_TWO.unpack_from(octets, 12)
    return Bgrej(sport, dport, tag, 0, second >> 24, peer_csn)


def _encode_endak(packet: Endak, pseudo_header: bytes) -> bytes:
    sport, dport, tag, peer_csn = packet.sport, packet.dport, packet.tag, packet.peer_csn
    word = _word(packet, 0)
    total = sport + dport + tag + word + peer_csn + _residue(b"", pseudo_header, 16)
    return _ONE.pack(sport, dport, word, checksum_field(total), tag, peer_csn)


def _decode_endak(octets: bytes, sport: int, dport: int, tag: int, _: int) -> Endak:
    if len(octets) != 16:
        raise _wrong_length(Type.ENDAK, octets)
    return Endak(sport, dport, tag, 0, _BODY_ONE.unpack_from(octets, 12)[0])


def _wrong_length(kind: Type, octets: bytes) -> MalformedPacket:
    return MalformedPacket(f"{len(octets)} octets are no length of this {kind.name}")


_ENCODERS: dict[type, Callable[..., bytes]] = {
    Begin: _encode_begin,
    Bgak: _encode_bgak,
    Bgrej: _encode_bgrej,
    End: _encode_end,
    Endak: _encode_endak,
    Sd: _encode_sd,
    Sdp: _encode_sdp,
    Poll: _encode_poll,
    Stat: _encode_stat,
    Ustat: _encode_ustat,
}

_DECODERS: dict[int, Callable[[bytes, int, int, int, int], Packet]] = {
    Type.BEGIN: _decode_begin,
    Type.BGAK: _decode_bgak,
    Type.END: _decode_end,
    Type.ENDAK: _decode_endak,
    Type.BGREJ: _decode_bgrej,
    Type.SD: _decode_sd,
    Type.SDP: _decode_sdp,
    Type.POLL: _decode_poll,
    Type.STAT: _decode_stat,
    Type.USTAT: _decode_ustat,
}
