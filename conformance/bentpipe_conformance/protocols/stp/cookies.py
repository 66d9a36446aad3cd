"""The cookies of one case: those the implementation (IUT) gave the tester, and the tester's own.

A cookie is 8 to 32 octets that have a meaning for their maker only (STP/1 section 3.3).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random

from bentpipe_conformance.protocols.stp.codec import Stp
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD

LIFE_S = 500.0
"""Seconds for which the tester keeps a cookie; it is good for 600 s (section 8)."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A cookie of the IUT, and when it came, seconds on the lane's clock."""

    value: bytes
    time: float


class Jar:
    """What the tester remembers of cookies.

    Attributes:
        kept: cookies of the IUT that have not been used, in the order in which they came.
        made: the tester's own, in the order in which they were made.
        max_sd: the IUT's MaxSD, as the last of them came with it.
    """

    def __init__(self, random: Random) -> None:
        self.kept: deque[Kept] = deque()
        self.made: list[bytes] = []
        self.max_sd = LEAST_MAX_SD
        self._random = random

    def keep(self, time: float, packet: Stp) -> None:
        """Remember the cookie of a BGAK or BGREJ, if there is one."""
        if packet.cookie is not None:
            self.kept.append(Kept(packet.cookie, time))
            self.max_sd = max(packet.max_sd or 0, LEAST_MAX_SD)

    def take(self, now: float) -> bytes | None:
        """The oldest cookie that is still good, to be used once; None when there is none."""
        while self.kept:
            found = self.kept.popleft()
            if now - found.time <= LIFE_S:
                return found.value
        return None

    def newest(self) -> bytes | None:
        """The newest cookie, to be used once; all others are forgotten."""
        found = self.kept[-1].value if self.kept else None
        self.kept.clear()
        return found

    def make(self, octets: int = 16) -> bytes:
        """A new cookie of the tester's."""
        self.made.append(self._random.randbytes(octets))
        return self.made[-1]


def altered(cookie: bytes, octet: int) -> bytes:
    """A cookie with one bit of one octet changed."""
    changed = bytearray(cookie)
    changed[octet] ^= 1 << octet % 8
    return bytes(changed)
