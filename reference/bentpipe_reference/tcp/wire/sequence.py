"""Sequence numbers modulo 2**32 (RFC 9293 section 3.4) and their unwrapped form.

The protocol machines count octets with ordinary unbounded integers, so that every comparison is
an ordinary comparison; only the edges of the machines speak modulo 2**32.
"""

from __future__ import annotations

MODULUS = 1 << 32
MASK = MODULUS - 1
HALF = 1 << 31


def wrap(number: int) -> int:
    """The 32-bit field that carries the unwrapped ``number``."""
    return number & MASK


def unwrap(field: int, near: int) -> int:
    """The number congruent to ``field`` that lies closest to ``near``.

    The result is within ``near - 2**31 <= result < near + 2**31`` and so may be negative.
    """
    return near + ((field - near + HALF) & MASK) - HALF


def difference(left: int, right: int) -> int:
    """``left - right`` as a signed 32-bit quantity."""
    return ((left - right + HALF) & MASK) - HALF


def before(left: int, right: int) -> bool:
    """Whether the sequence number ``left`` comes before ``right``."""
    return difference(left, right) < 0
