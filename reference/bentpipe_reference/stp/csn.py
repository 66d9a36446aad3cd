"""Connection sequence numbers that this endpoint chooses (STP/1 section 5.1)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Hashable

from bentpipe_reference.stp.sequence import CSN_MASK


class CsnGenerator:
    """Rising CSNs from a random start.

    One counter serves all peers, with an offset of its own for each (RFC 6528), so that the numbers
    that one peer sees reveal nothing about another's. Steps are small, so that 2^31 (STP-CC-010)
    is never reached.
    """

    _STEP_BITS = 6

    def __init__(self, numbers: random.Random, first: int | None) -> None:
        self._random = numbers
        self._next = self.first() if first is None else first
        self._secret = b"" if first is not None else numbers.randbytes(16)

    def first(self) -> int:
        """STP-CC-011: from the whole range."""
        return self._random.getrandbits(32)

    def for_peer(self, peer: Hashable) -> int:
        """The CSN of a new connection with ``peer``."""
        return self.next() + self.place(peer) & CSN_MASK

    def place(self, peer: Hashable) -> int:
        """Section 10: the offset of a peer's numbers, none if the first CSN was given."""
        if not self._secret:
            return 0
        digest = hashlib.blake2b(repr(peer).encode(), digest_size=4, key=self._secret)
        return int.from_bytes(digest.digest(), "big")

    def next(self) -> int:
        """STP-CC-010: newer than every one before."""
        csn = self._next & CSN_MASK
        self._next = csn + self.step()
        return csn

    def step(self) -> int:
        """How much newer the next one is."""
        return 1 + self._random.getrandbits(self._STEP_BITS)

    def iss(self) -> int:
        """STP-CC-011: the number of a direction's first SD."""
        return self._random.getrandbits(24)
