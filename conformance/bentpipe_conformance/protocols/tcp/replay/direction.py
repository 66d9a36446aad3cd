"""Unwrapping 32-bit sequence numbers into offsets."""

from __future__ import annotations

from bentpipe_conformance.protocols.tcp.codec import MODULUS

_HALF = MODULUS >> 1


class Direction:
    """One direction's numbers as offsets that do not wrap; 0 is the first octet after the SYN."""

    def __init__(self, initial: int) -> None:
        self._base = initial + 1
        self._last = 0

    def offset(self, number: int) -> int:
        """The offset nearest to the highest one seen."""
        ahead = number - self._base - self._last
        # As codec.nearest, of which each packet asks several times.
        return self._last + (ahead + _HALF) % MODULUS - _HALF

    def saw(self, offset: int) -> None:
        """Move the reference for unwrapping."""
        if offset > self._last:
            self._last = offset


def older(value: int, other: int) -> bool:
    """Whether a 32-bit timestamp lies before another (RFC 7323 section 5.2, modular).

    Neither is before the other when they are half the range apart.
    """
    return 0 < (other - value) % MODULUS < _HALF
