"""Reassembly without second thoughts: of octets that arrive twice the first ones stay."""

from __future__ import annotations

from bentpipe_reference.common.ranges import Range
from bentpipe_reference.tcp.reassembly import Reassembly


class RunReassembly(Reassembly):
    """Holds runs; an octet is held once, so that the buffer's size bounds the memory."""

    @property
    def runs(self) -> tuple[Range, ...]:
        """The octets held above ``rcv_nxt``, lowest run first."""
        return self._held.snapshot() if self._pieces else ()

    def insert(self, seq: int, payload: bytes) -> None:
        """Take what of ``payload`` is neither delivered nor held."""
        if not self._pieces and seq <= self.rcv_nxt:
            self._deliver(payload[self.rcv_nxt - seq :] if seq < self.rcv_nxt else payload)
            return
        held = self._held
        left, right = max(seq, self.rcv_nxt), seq + len(payload)
        for start, end in held.gaps(left, right):
            self._hold(start, payload[start - seq : end - seq])
        held.add(left, right)
        if seq <= self.rcv_nxt:
            self._fill()
