"""The receiving side of one direction: VR variables, held SDs, STATs and USTATs (STP/1 section 6).

Numbers are kept unwrapped, from the peer's ISS on.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque

from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.memory import Share
from bentpipe_reference.stp.sequence import PACKET_MASK

Run = tuple[int, int]
"""The numbers from the first up to, but not including, the second."""

_REOPENED_SDS = 16
"""New credit worth an announcement, or half the buffer if that is less (STP-DT-024)."""

_LATER_SDS = 3
"""After that many, a waiting USTAT is sent (STP-DT-026)."""


class Receiver:
    """One stream's receiving side.

    Attributes:
        vr_r: VR(R), next number to be delivered.
        vr_h: VR(H), next highest number expected.
        vr_mr: VR(MR), first number not permitted: the highest N(MR) announced (STP-DT-020).
        delivered: octets of user data delivered in sequence.
        readable: those of them that :meth:`read` can return.
        fin_number: number of the SD with FIN, None before it has arrived, in sequence or not.
    """

    def __init__(self, config: StpConfig, iss: int, share: Share | None = None) -> None:
        self.iss = self.vr_r = self.vr_h = iss
        self.delivered = self.readable = 0
        self.fin_number: int | None = None
        self._share = share
        self._credit = config.credit if share is None else share.sds
        self._max_sd = config.own_max_sd
        self._list_limit = config.max_stat
        self._held: dict[int, tuple[bytes, int]] = {}
        self._starts: list[int] = []  # of the runs that are missing below VR(H), rising
        self._ends: list[int] = []
        self._chunks: deque[bytes] = deque()
        self._offset = 0
        self._closed = False  # the last report showed no credit beyond VR(H)
        self._waiting: list[tuple[int, int, int, float]] = []
        self._arrivals = 0
        self.vr_mr = iss + self._credit

    # The user's side

    @property
    def finished(self) -> bool:
        """STP-CC-004: whether everything up to the peer's FIN has been delivered."""
        return self.fin_number is not None and self.vr_r > self.fin_number

    def read(self, octets: int | None = None) -> bytes:
        """Take up to ``octets``, or all there are; there is room for new credit."""
        chunks = self._chunks
        if octets is None or octets >= self.readable:
            if self._offset:
                chunks[0] = chunks[0][self._offset :]
            data = b"".join(chunks)
            chunks.clear()
            self._offset = 0
        else:
            parts = []
            wanted = octets
            while wanted:
                chunk = chunks[0]
                part = chunk[self._offset : self._offset + wanted]
                parts.append(part)
                wanted -= len(part)
                self._offset += len(part)
                if self._offset == len(chunk):
                    chunks.popleft()
                    self._offset = 0
            data = b"".join(parts)
        self.readable -= len(data)
        if self._share is not None:
            self._credit = self._share.grow(self.vr_r - len(chunks) - self.iss)
        return data

    def credit(self) -> int:
        """STP-DT-021: the N(MR) that can be announced; it rises as the user takes data."""
        return max(self.vr_mr, self.vr_r - len(self._chunks) + self._credit)

    # SDs

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        """Section 6.2: take an SD. The run that a USTAT has to report, if any."""
        number = self.vr_r + (field - self.vr_r & PACKET_MASK)
        if not self.fits(data):
            return None
        if number == self.vr_r == self.vr_h < self.vr_mr and self.fin_number is None:
            self.vr_h += 1
            self.deliver(data, fin)
            return None
        if not self.takes(number) or (fin and self.contradicts(number)):
            return None
        if fin:
            self.fin_number = number
        self._arrivals += 1
        gap = None
        if self.is_gap(number):
            gap = (self.gap_start(), number)
            self._miss(*gap)
        if number >= self.vr_h:
            self.vr_h = number + 1
        else:
            self._found(number)
        self._held[number] = (data, fin)
        if number == self.vr_r:
            self._deliver_run()
        return gap

    def fits(self, data: bytes) -> bool:
        """STP-DT-028: no more user data than our own MaxSD."""
        return len(data) <= self._max_sd

    def contradicts(self, number: int) -> bool:
        """STP-DT-028: whether a FIN there would be below an SD that is held."""
        return max(self._held, default=number) > number

    def takes(self, number: int) -> bool:
        """STP-DT-019, -020, -028: neither a duplicate nor beyond the credit, nor after the FIN."""
        if number >= self.vr_mr or number in self._held:
            return False
        return self.fin_number is None or number <= self.fin_number

    def is_gap(self, number: int) -> bool:
        """STP-DT-001: beyond the next *highest* number expected."""
        return number > self.vr_h

    def gap_start(self) -> int:
        """STP-DT-001: where the reported run begins."""
        return self.vr_h

    def deliver(self, data: bytes, fin: int) -> None:
        """STP-DT-012: deliver the SD numbered VR(R)."""
        if data:
            self._chunks.append(data)
            self.readable += len(data)
            self.delivered += len(data)
        if fin:
            self.fin_number = self.vr_r
        self.vr_r += 1

    def _deliver_run(self) -> None:
        held = self._held
        while self.vr_r in held:
            self.deliver(*held.pop(self.vr_r))

    def _miss(self, start: int, end: int) -> None:
        """The numbers from ``start``, the highest so far, up to ``end`` are missing."""
        if self._ends and self._ends[-1] == start:
            self._ends[-1] = end
        else:
            self._starts.append(start)
            self._ends.append(end)

    def _found(self, number: int) -> None:
        """``number``, which was missing, has arrived."""
        at = bisect_right(self._starts, number) - 1
        halves = (self._starts[at], number), (number + 1, self._ends[at])
        runs = [(start, end) for start, end in halves if start < end]
        self._starts[at : at + 1] = [start for start, _ in runs]
        self._ends[at : at + 1] = [end for _, end in runs]

    # Reports

    def on_poll(self, field: int) -> list[tuple[int, ...]]:
        """Section 6.3: the lists of the STATs that answer a POLL."""
        self.raise_highest(self.vr_r + (field - self.vr_r & PACKET_MASK))
        self.reported()
        self._waiting.clear()  # STP-DT-026: this STAT reports them
        return self._cut_list()

    def raise_highest(self, number: int) -> None:
        """STP-DT-002, but only within the credit, and not beyond the FIN (STP-DT-008)."""
        if self.fin_number is None and self.vr_h < number <= self.vr_mr:
            self._miss(self.vr_h, number)
            self.vr_h = number

    def whole_list(self) -> list[int]:
        """STP-DT-006, STP-DT-018: every missing run, and VR(H) as the bound."""
        if not self._starts:
            return []
        elements = [edge for run in zip(self._starts, self._ends, strict=True) for edge in run]
        if elements[-1] != self.vr_h:
            elements.append(self.vr_h)
        return elements

    def _cut_list(self) -> list[tuple[int, ...]]:
        """STP-PF-012: the list, cut where it is too long for one packet."""
        elements = [number & PACKET_MASK for number in self.whole_list()]
        step = self._list_limit - 1
        last_start = max(len(elements) - 1, 1)
        return [tuple(elements[at : at + self._list_limit]) for at in range(0, last_start, step)]

    def reported(self) -> None:
        """A STAT or USTAT leaves: it announces all the credit there is (section 6.5)."""
        self.vr_mr = self.credit()
        self._closed = self.vr_mr <= self.vr_h

    def reopened(self) -> bool:
        """STP-DT-024: whether a STAT has to announce credit that the last report lacked."""
        if not self._closed or self.fin_number is not None:
            return False
        return self.credit() - self.vr_mr >= min(_REOPENED_SDS, self._credit // 2)

    # USTATs that wait (STP-DT-026)

    def hold_back(self, gap: Run, until: float) -> None:
        """Report ``gap`` at ``until`` seconds, or after three more SDs."""
        self._waiting.append((*gap, self._arrivals + _LATER_SDS, until))

    def ustat_deadline(self) -> float:
        """When the next waiting USTAT is due, infinity when none waits."""
        return min((until for *_, until in self._waiting), default=math.inf)

    def due_ustats(self, now: float) -> list[Run]:
        """The runs to report now: those still missing of each gap that has waited."""
        due = [item for item in self._waiting if item[3] <= now or item[2] <= self._arrivals]
        self._waiting = [item for item in self._waiting if item not in due]
        return [
            (max(first, start), min(end, stop))
            for first, end, *_ in due
            for start, stop in zip(self._starts, self._ends, strict=True)
            if max(first, start) < min(end, stop)
        ]

    # For traces and tests

    def held(self) -> list[int]:
        """Numbers held beyond VR(R), rising."""
        return sorted(self._held)
