"""The TCP option list (RFC 9293, 2018 and 7323)."""

from __future__ import annotations

import struct

from bentpipe_reference.tcp.wire.segment import Segment, WireError

MAXIMUM_OCTETS = 40
"""Room for options in a header."""

END, NOP, MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 0, 1, 2, 3, 4, 5, 8

_TIMESTAMPS = struct.Struct("!BBII")
_PAIR = struct.Struct("!II")


def parse_options(raw: bytes, segment: Segment) -> None:
    """Read an option list, up to its end or its End-of-List option, into ``segment``.

    The first well-formed occurrence of a kind fills its field; every other option is kept
    in ``unknown``, in order.

    Raises:
        WireError: a length octet is missing, below 2, or points beyond the list.
    """
    unknown: list[tuple[int, bytes]] = []
    at, end = 0, len(raw)
    while at < end:
        kind = raw[at]
        if kind == END:
            break
        if kind == NOP:
            at += 1
            continue
        length = raw[at + 1] if at + 1 < end else 0
        if length < 2 or at + length > end:
            raise WireError(f"TCP option kind {kind} has the impossible length {length}")
        data = raw[at + 2 : at + length]
        if not _take(segment, kind, data):
            unknown.append((kind, data))
        at += length
    segment.unknown = tuple(unknown)


def _take(segment: Segment, kind: int, data: bytes) -> bool:
    """Fill the field of ``kind``; False when it is filled already or the length is unusual."""
    length = len(data)
    if kind == TIMESTAMPS and length == 8 and segment.timestamps is None:
        segment.timestamps = _PAIR.unpack(data)
    elif kind == SACK and length and length % 8 == 0 and not segment.sack_blocks:
        segment.sack_blocks = tuple(_PAIR.iter_unpack(data))
    elif kind == MSS and length == 2 and segment.mss is None:
        segment.mss = int.from_bytes(data, "big")
    elif kind == WINDOW_SCALE and length == 1 and segment.window_scale is None:
        segment.window_scale = int.from_bytes(data, "big")
    elif kind == SACK_PERMITTED and length == 0 and not segment.sack_permitted:
        segment.sack_permitted = True
    else:
        return False
    return True


def emit_options(segment: Segment) -> bytes:
    """The option list of ``segment``, padded to a multiple of four octets.

    Options start on four-octet boundaries where that still fits the header.

    Raises:
        WireError: the options need more than 40 octets.
    """
    parts: list[bytes] = []
    if segment.mss is not None:
        parts.append(bytes((MSS, 4)) + segment.mss.to_bytes(2, "big"))
    if segment.sack_permitted:
        parts.append(bytes((SACK_PERMITTED, 2)))
    if segment.timestamps is not None:
        parts.append(_TIMESTAMPS.pack(TIMESTAMPS, 10, *segment.timestamps))
    if segment.window_scale is not None:
        parts.append(bytes((WINDOW_SCALE, 3, segment.window_scale)))
    if segment.sack_blocks:
        blocks = b"".join(_PAIR.pack(*block) for block in segment.sack_blocks)
        parts.append(bytes((SACK, 2 + len(blocks))) + blocks)
    parts.extend(bytes((kind, 2 + len(data))) + data for kind, data in segment.unknown)
    aligned = b"".join(b"\x01" * (-len(part) % 4) + part for part in parts)
    if len(aligned) <= MAXIMUM_OCTETS:
        return aligned
    packed = b"".join(parts)
    if len(packed) > MAXIMUM_OCTETS:
        raise WireError(
            f"TCP options of {len(packed)} octets do not fit the {MAXIMUM_OCTETS} of the header"
        )
    return packed + b"\x00" * (-len(packed) % 4)
