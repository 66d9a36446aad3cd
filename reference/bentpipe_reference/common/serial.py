"""Serial-number arithmetic (RFC 1982) and the unwrapped form of serial numbers.

The protocol machines count with ordinary unbounded integers, so that every comparison is an
ordinary comparison; only their edges, the fields of packets, count modulo a power of two.
"""

from __future__ import annotations


class SerialSpace:
    """The serial numbers that a field of ``bits`` bits carries.

    Numbers half the modulus apart are in no order: neither is before the other.

    Attributes:
        modulus: how many serial numbers there are.
        mask: ``modulus - 1``.
        half: half the modulus.
    """

    __slots__ = ("half", "mask", "modulus")

    def __init__(self, bits: int) -> None:
        self.modulus = 1 << bits
        self.mask = self.modulus - 1
        self.half = self.modulus >> 1

    def wrap(self, number: int) -> int:
        """The field that carries the unwrapped ``number``."""
        return number & self.mask

    def unwrap(self, field: int, near: int) -> int:
        """The number congruent to ``field`` that lies closest to ``near``.

        The result is within ``near - half <= result < near + half`` and so may be negative.
        """
        return near + ((field - near + self.half) & self.mask) - self.half

    def distance(self, left: int, right: int) -> int:
        """How many numbers the run [``left``, ``right``) holds, modulo ``modulus``."""
        return (right - left) & self.mask

    def before(self, left: int, right: int) -> bool:
        """Whether ``left`` comes before ``right``."""
        return 0 < (right - left) & self.mask < self.half
