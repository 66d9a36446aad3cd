"""Unwrapping 32-bit sequence numbers into offsets."""

from __future__ import annotations

from bentpipe_conformance.protocols.tcp.codec import MODULUS, nearest


class Direction:
    """One direction's numbers as offsets that do not wrap; 0 is the first octet after the SYN."""

    def __init__(self, initial: int) -> None:
        self._base = initial + 1
        self._last = 0

    def offset(self, number: int) -> int:
        """The offset nearest to the highest one seen."""
        return nearest(number - self._base, self._last)

    def saw(self, offset: int) -> None:
        """Move the reference for unwrapping."""
        self._last = max(self._last, offset)


def older(value: int, other: int) -> bool:
    """Whether a 32-bit timestamp lies before another (RFC 7323 section 5.2, modular).

    Neither is before the other when they are half the range apart.
    """
    return 0 < (other - value) % MODULUS < MODULUS >> 1
