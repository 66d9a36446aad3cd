"""Connection sequence numbers: ours, and the newest known of each peer (STP/1 section 5)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Hashable
from dataclasses import dataclass

from bentpipe_reference.stp.config import REMEMBER_S
from bentpipe_reference.stp.sequence import CSN_MASK, newer


class CsnGenerator:
    """Rising CSNs from a random start.

    One counter serves all peers, with an offset of its own for each (RFC 6528), so that the numbers
    that one peer sees reveal nothing about another's. Steps are small, so that 2^31 (STP-CC-010)
    is never reached.
    """

    _LARGEST_STEP = 64

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
        return self._random.randint(1, self._LARGEST_STEP)

    def iss(self) -> int:
        """STP-CC-011: the number of a direction's first SD."""
        return self._random.getrandbits(24)


@dataclass(slots=True)
class _Known:
    csn: int
    time: float
    live: int = 0


class PeerCache:
    """The newest CSN of confirmed connections, by peer address (STP-CC-013).

    Args:
        capacity: peers remembered; the least recently confirmed is forgotten first.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._peers: dict[Hashable, _Known] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def knows_older(self, peer: Hashable, csn: int, now: float) -> bool:
        """STP-CC-003: whether the peer is known and ``csn`` newer than its newest."""
        known = self._peers.get(peer)
        if known is None:
            return False
        if not known.live and now - known.time > REMEMBER_S:
            del self._peers[peer]
            return False
        return newer(csn, known.csn)

    def confirmed(self, peer: Hashable, csn: int, now: float) -> None:
        """A connection with ``csn`` has been confirmed."""
        known = self._peers.pop(peer, None) or _Known(csn, now)
        if newer(csn, known.csn):
            known.csn = csn
        known.time = now
        known.live += 1
        self._peers[peer] = known
        while len(self._peers) > self._capacity:
            del self._peers[next(iter(self._peers))]

    def ended(self, peer: Hashable, now: float) -> None:
        """A confirmed connection has ended."""
        known = self._peers.get(peer)
        if known is not None:
            known.live = max(0, known.live - 1)
            known.time = now
