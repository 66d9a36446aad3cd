"""Putting the received stream together, and remembering what arrived out of order."""

from __future__ import annotations

from bisect import insort
from collections import deque


class Reassembly:
    """In-order octets for the application, out-of-order ones until their gap fills.

    Numbers are unwrapped sequence numbers, ranges half-open.

    Attributes:
        rcv_nxt: next number expected in order.
        unread: in-order octets the application has not read.
        blocks: out-of-order ranges, the one that grew last first (RFC 2018 section 4).
    """

    def __init__(self, rcv_nxt: int) -> None:
        self.rcv_nxt = rcv_nxt
        self.unread = 0
        self.blocks: list[tuple[int, int]] = []
        self._ready: deque[bytes] = deque()
        self._starts: list[int] = []
        self._pieces: dict[int, bytes] = {}

    def covered(self, left: int, right: int) -> bool:
        """Whether every octet of the range has arrived before."""
        if right <= self.rcv_nxt:
            return True
        left = max(left, self.rcv_nxt)
        return any(lower <= left and right <= upper for lower, upper in self.blocks)

    def insert(self, seq: int, payload: bytes) -> None:
        """Take ``payload`` at ``seq``; octets that arrived before are ignored."""
        if seq <= self.rcv_nxt:
            self._deliver(payload[self.rcv_nxt - seq :])
            if self.blocks:
                self._fill()
            return
        end = seq + len(payload)
        self._store(seq, payload, end)
        left, right = seq, end
        apart: list[tuple[int, int]] = []
        for block in self.blocks:
            if block[1] < seq or block[0] > end:
                apart.append(block)
            else:
                left, right = min(left, block[0]), max(right, block[1])
        self.blocks = [(left, right), *apart]

    def _store(self, seq: int, payload: bytes, end: int) -> None:
        at = seq
        for left, right in sorted(self.blocks):
            if right <= at or left >= end:
                continue
            if left > at:
                self._keep(at, payload[at - seq : left - seq])
            at = right
        if at < end:
            self._keep(at, payload[at - seq :])

    def _keep(self, start: int, piece: bytes) -> None:
        insort(self._starts, start)
        self._pieces[start] = piece

    def _deliver(self, piece: bytes) -> None:
        if piece:
            self._ready.append(piece)
            self.unread += len(piece)
            self.rcv_nxt += len(piece)

    def _fill(self) -> None:
        """Deliver stored pieces that have come into order."""
        starts = self._starts
        while starts and starts[0] <= self.rcv_nxt:
            start = starts.pop(0)
            self._deliver(self._pieces.pop(start)[self.rcv_nxt - start :])
        self.blocks = [block for block in self.blocks if block[1] > self.rcv_nxt]

    def read(self, octets: int | None = None) -> bytes:
        """In-order octets, at most ``octets``, which then leave the buffer."""
        ready = self._ready
        if octets is None or octets >= self.unread:
            data = ready[0] if len(ready) == 1 else b"".join(ready)
            ready.clear()
            self.unread = 0
            return data
        taken: list[bytes] = []
        wanted = octets
        while wanted > 0:
            piece = ready.popleft()
            if len(piece) > wanted:
                ready.appendleft(piece[wanted:])
                piece = piece[:wanted]
            taken.append(piece)
            wanted -= len(piece)
        self.unread -= octets
        return b"".join(taken)
