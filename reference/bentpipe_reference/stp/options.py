"""The options of BEGIN and BGAK (STP/1 section 3.3)."""

from __future__ import annotations

import struct

from bentpipe_reference.stp.errors import MalformedPacket

PADDING, MAX_SD = 0, 1

MAXIMUM_OCTETS = 60
"""What the four bits of optlen can express, in words of four octets."""

_MAX_SD = struct.Struct("!BBH")

Others = tuple[tuple[int, bytes], ...]


def decode_options(raw: bytes) -> tuple[int | None, Others]:
    """MaxSD, and (kind, value) of every other option.

    The first MaxSD of length 4 counts; further ones, and ones of another length, are other options.

    Raises:
        MalformedPacket: a length is missing, below 2, or points beyond the field.
    """
    if raw[:2] == b"\x01\x04" and len(raw) == 4:
        return raw[2] << 8 | raw[3], ()
    max_sd = None
    others = []
    at, end = 0, len(raw)
    while at < end:
        kind = raw[at]
        if kind == PADDING:
            at += 1
            continue
        length = raw[at + 1] if at + 1 < end else 0
        if length < 2 or at + length > end:
            raise MalformedPacket(f"option kind {kind} has the impossible length {length}")
        value = raw[at + 2 : at + length]
        if kind == MAX_SD and length == 4 and max_sd is None:
            max_sd = int.from_bytes(value, "big")
        else:
            others.append((kind, value))
        at += length
    return max_sd, tuple(others)


def encode_options(max_sd: int | None, others: Others) -> bytes:
    """The option field, padded to whole words.

    Raises:
        MalformedPacket: more than 60 octets, or an option of kind 0.
        struct.error: a number out of its range.
    """
    raw = b"" if max_sd is None else _MAX_SD.pack(MAX_SD, 4, max_sd)
    if others:
        for kind, value in others:
            if kind == PADDING:
                raise MalformedPacket("kind 0 is padding and has no value")
            raw += struct.pack("!BB", kind, 2 + len(value)) + value
        raw += bytes(-len(raw) % 4)
        if len(raw) > MAXIMUM_OCTETS:
            raise MalformedPacket(f"{len(raw)} octets of options do not fit {MAXIMUM_OCTETS}")
    return raw
