"""Packet numbers modulo 2**24 and connection sequence numbers modulo 2**32 (STP/1 section 2).

Numbers half the modulus apart are in no order: neither is below the other.
"""

from __future__ import annotations

PACKET_MODULUS = 1 << 24
PACKET_MASK = PACKET_MODULUS - 1
PACKET_HALF = 1 << 23
CSN_MODULUS = 1 << 32
CSN_MASK = CSN_MODULUS - 1
CSN_HALF = 1 << 31
TAG_MASK = 0xFFFF
"""A tag is the low 16 bits of the sender's CSN (section 4)."""


def wrap(number: int) -> int:
    """The 24-bit field that carries the unwrapped packet number."""
    return number & PACKET_MASK


def unwrap(field: int, near: int) -> int:
    """The number congruent to ``field`` that lies closest to ``near``.

    The result is within ``near - 2**23 <= result < near + 2**23`` and so may be negative.
    """
    return near + ((field - near + PACKET_HALF) & PACKET_MASK) - PACKET_HALF


def below(left: int, right: int) -> bool:
    """Whether the packet number ``left`` is below ``right``."""
    return 0 < (right - left) & PACKET_MASK < PACKET_HALF


def at_or_below(left: int, right: int) -> bool:
    """Whether the packet number ``left`` is below ``right`` or equal to it."""
    return (right - left) & PACKET_MASK < PACKET_HALF


def distance(left: int, right: int) -> int:
    """How many packet numbers the run [``left``, ``right``) holds, modulo 2**24."""
    return (right - left) & PACKET_MASK


def newer(left: int, right: int) -> bool:
    """Whether the connection sequence number ``left`` is newer than ``right``."""
    return 0 < (left - right) & CSN_MASK < CSN_HALF
