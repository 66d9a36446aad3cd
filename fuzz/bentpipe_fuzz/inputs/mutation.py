"""Mutations that know no format: octets changed, cut, repeated, spliced from another file."""

from __future__ import annotations

import random
from collections.abc import Sequence

ODD = (
    b"\0", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0",
    b"null", b"-1", b"1e999", b"[" * 200, b"{" * 200, b'"', b"'", b"\\ud800", b"\x1b]0;x\x07",
    b"9" * 400, b"true", b"[/x]", b"../", b"\n", b"#", b"=", b"inf", b"nan",
)  # fmt: skip
"""What readers seldom expect."""


def mutated(octets: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """A file with one to six changes; most are small, so that what follows is still read."""
    found = bytearray(octets)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        if not found:
            return bytes(found)
        at = draw.randrange(len(found))
        # Headers are few among the octets, and matter more.
        if draw.random() < 0.3:
            at = min(at, draw.randrange(64))
        match draw.randrange(8):
            case 0:
                found[at] ^= 1 << draw.randrange(8)
            case 1:
                found[at] = draw.randrange(256)
            case 2:
                length = draw.choice((1, 2, 4, 8, 40, 400))
                del found[at : at + length]
            case 3:
                found[at:at] = draw.choice(ODD)
            case 4:
                piece = draw.choice(ODD)
                found[at : at + len(piece)] = piece
            case 5:
                length = draw.choice((1, 4, 20, 60, 1000))
                found[at:at] = found[at : at + length]
            case 6:
                other = draw.choice(others)
                start = draw.randrange(len(other) or 1)
                length = draw.choice((2, 16, 60, 300))
                found[at : at + length] = other[start : start + length]
            case 7:
                size = draw.choice((2, 4))
                value = int.from_bytes(found[at : at + size], "little")
                value += draw.choice((-1, 1, 2, 255, 65535, -(1 << 8 * size - 1)))
                found[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(found)
