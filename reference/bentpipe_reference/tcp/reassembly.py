"""Reassembly of the received stream."""

from __future__ import annotations

from bisect import insort
from collections import deque

from bentpipe_reference.common.ranges import RangeSet


class Reassembly:
    """In-order octets for the application, out-of-order ones until the gap before them is filled.

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
        self._held = RangeSet()
        self._pieces: list[tuple[int, bytes]] = []

    def covered(self, left: int, right: int) -> bool:
        """Whether every octet of the range has arrived before."""
        return right <= self.rcv_nxt or self._held.covers(max(left, self.rcv_nxt), right)

    def insert(self, seq: int, payload: bytes) -> None:
        """Take ``payload`` at ``seq``; octets that arrived before are ignored."""
        if seq <= self.rcv_nxt:
            self._deliver(payload[self.rcv_nxt - seq :])
            if self.blocks:
                self._fill()
            return
        if self._held.add(seq, seq + len(payload)):
            self._hold(seq, payload)
        grown = left, right = self._held.around(seq)
        self.blocks = [grown, *(block for block in self.blocks if not left <= block[0] < right)]

    def end_at(self, bound: int) -> None:
        """Forget what was held at or above ``bound``: there the stream ends."""
        if any(right > bound for _, right in self.blocks):
            self._pieces = [(at, piece[: bound - at]) for at, piece in self._pieces if at < bound]
            kept = [(left, min(right, bound)) for left, right in self.blocks if left < bound]
            self.blocks, self._held = kept, RangeSet(tuple(sorted(kept)))

    def _deliver(self, piece: bytes) -> None:
        if piece:
            self._ready.append(piece)
            self.unread += len(piece)
            self.rcv_nxt += len(piece)

    def _hold(self, seq: int, piece: bytes) -> None:
        """Store a piece in its place, which is mostly the last one."""
        pieces = self._pieces
        if pieces and pieces[-1][0] > seq:
            insort(pieces, (seq, piece))
        else:
            pieces.append((seq, piece))

    def _fill(self) -> None:
        """Deliver stored pieces that are now in order."""
        pieces = self._pieces
        while pieces and pieces[0][0] <= self.rcv_nxt:
            start, piece = pieces.pop(0)
            self._deliver(piece[self.rcv_nxt - start :])
        self._held.remove_below(self.rcv_nxt)
        self.blocks = [block for block in self.blocks if block[1] > self.rcv_nxt]

    def read(self, octets: int | None = None) -> bytes:
        """In-order octets, at most ``octets``, which then leave the buffer."""
        ready, taken = self._ready, []
        wanted = self.unread if octets is None else min(octets, self.unread)
        self.unread -= wanted
        if ready and len(ready[0]) == wanted:
            return ready.popleft()
        while wanted > 0:
            piece = ready.popleft()
            if len(piece) > wanted:
                ready.appendleft(piece[wanted:])
            taken.append(piece[:wanted])
            wanted -= len(taken[-1])
        return b"".join(taken)
