"""The sending side of one direction: VT variables, SDs kept, reports (STP/1 section 6).

Numbers are kept unwrapped: they begin at the ISS and go on beyond 2^24. Nothing here knows the
time; when something may be sent is decided by :mod:`~bentpipe_reference.stp.outgoing`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from bentpipe_reference.stp.config import EARLY_CREDIT, LEAST_MAX_SD, MOST_CREDIT, StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.packets import Stat, Ustat
from bentpipe_reference.stp.sequence import PACKET_MASK, unwrap_poll

Source = Callable[[int], bytes]
"""Gives the next octets of a stream, at most as many as asked for; perhaps none now."""

_PULLED_OCTETS = 1 << 14
"""Octets taken from a source at once."""


@dataclass(eq=False, slots=True)
class SentSd:
    """An SD that has been sent and not yet been reported as arrived.

    Attributes:
        number: its number, unwrapped.
        data: its user data.
        fin: 1 if it carries the FIN flag, else 0.
        size: octets for which it counts in the window.
        stamp: VT(PS) when it was last transmitted.
        serial: which transmission of an SD that was, counted over all SDs.
        times: how often it has been transmitted.
        queued: whether it awaits retransmission.
    """

    number: int
    data: bytes
    fin: int
    size: int
    stamp: int = field(init=False)
    serial: int = field(init=False)
    times: int = 0
    queued: bool = False


@dataclass(slots=True)
class Report:
    """What a valid STAT or USTAT has reported.

    Attributes:
        n_ps: number of the POLL it answers, None if it answers none.
        arrived: octets newly reported as arrived.
        new_loss: whether an SD newly queued calls for a reduction (STP-CG-005).
        flight: octets in flight before.
    """

    n_ps: int | None
    flight: int
    arrived: int = 0
    new_loss: bool = False


class Sender:
    """One stream's sending side.

    Attributes:
        iss: number of the first SD.
        vt_s: VT(S), next new number.
        vt_a: VT(A), lowest number not acknowledged in sequence.
        vt_ms: VT(MS), first number not permitted.
        vt_ps: VT(PS), number of the last POLL.
        vt_pa: VT(PA), number of the newest STAT's POLL.
        max_sd: most user data in one SD.
        flight: octets in flight: sent, not reported as arrived, not awaiting retransmission.
        serial: transmissions of SDs so far.
        retransmissions: those of them that were not the first of their SD.
        acknowledged: octets of user data acknowledged in sequence.
        closed: whether the user has ended the stream.
        fin_number: number of the SD with FIN, None before it is sent.
    """

    def __init__(self, config: StpConfig, iss: int, congestion: Congestion) -> None:
        self.iss = self.vt_s = self.vt_a = iss
        self.vt_ms = iss + EARLY_CREDIT
        self.vt_ps = self.vt_pa = 0
        self.max_sd = LEAST_MAX_SD
        self.flight = 0
        self.serial = self.retransmissions = 0
        self.acknowledged = 0
        self.fin_number: int | None = None
        self._congestion = congestion
        self._capacity = config.send_buffer
        self._most = config.send_window
        self._unsent = bytearray()
        self.closed = False
        self._source: Source | None = None
        self._numbers: list[int] = []  # of the SDs kept, rising
        self._kept: dict[int, SentSd] = {}
        self._queue: list[int] = []

    # The user's side

    @property
    def room(self) -> int:
        """Octets that :meth:`write` would take."""
        return max(0, self._capacity - len(self._unsent))

    @property
    def unsent(self) -> int:
        """Octets written and not yet cut into SDs."""
        return len(self._unsent)

    def write(self, data: bytes | memoryview) -> int:
        """Take as much of ``data`` as there is room for; return how much."""
        taken = min(len(data), self.room)
        self._unsent += data[:taken]
        return taken

    def attach(self, source: Source) -> None:
        """Take data from ``source`` as it can be sent."""
        self._source = source

    def close(self) -> None:
        """The stream ends after what has been written."""
        self.closed = True
        self._source = None

    def drop(self) -> None:
        """Forget all data: the connection is over."""
        self._unsent = bytearray()
        self.close()
        self._forget()

    def _forget(self) -> None:
        self._numbers, self._kept, self._queue = [], {}, []
        self.flight = 0

    def restart(self, iss: int) -> None:
        """STP-CC-037: the call begins anew; what has been sent, and not acknowledged, is not."""
        sent = b"".join(self._kept[number].data for number in self._numbers)
        self._unsent[:0] = sent
        self._forget()
        self.iss = self.vt_s = self.vt_a = iss
        self.vt_ms = iss + EARLY_CREDIT
        self.fin_number = None

    # What could be sent

    @property
    def unacknowledged(self) -> bool:
        """STP-DT-004: whether anything is unacknowledged, so that POLLs must continue."""
        return self.vt_a != self.vt_s

    @property
    def has_new(self) -> bool:
        """Whether there is data or a FIN for a new SD; nothing follows a FIN (STP-CC-024)."""
        if self.fin_number is not None:
            return False
        if self._source is not None and len(self._unsent) < self.max_sd:
            # It may close the stream, and so be detached, before it returns its last octets.
            self._unsent += self._source(min(_PULLED_OCTETS, self.room))
        return bool(self._unsent) or self.closed

    @property
    def fin_acknowledged(self) -> bool:
        """Whether everything up to the FIN has been acknowledged."""
        return self.fin_number is not None and self.vt_a > self.fin_number

    def permitted(self) -> bool:
        """STP-DT-011 and STP-DT-005: whether credit and memory permit one more new SD."""
        return self.vt_s < self.vt_ms and self.vt_s - self.vt_a < self._most

    def next_size(self) -> int:
        """Octets for which the next new SD would count in the window."""
        return min(len(self._unsent), self.max_sd) or 1

    def awaiting(self) -> SentSd | None:
        """STP-DT-009: the lowest SD that awaits retransmission."""
        queue = self._queue
        while queue:
            entry = self._kept.get(queue[0])
            if entry is not None and entry.queued:
                return entry
            heappop(queue)
        return None

    # Sending

    def take_new(self, most: int | None = None) -> SentSd:
        """STP-DT-016: number the next SD, of at most ``most`` octets, and note it as sent."""
        size = self.max_sd if most is None else min(self.max_sd, most)
        data = bytes(self._unsent[:size])
        del self._unsent[:size]
        fin = int(self.closed and not self._unsent)
        entry = SentSd(self.vt_s, data, fin, len(data) or 1)
        if fin:
            self.fin_number = entry.number
        self._numbers.append(entry.number)
        self._kept[entry.number] = entry
        self.vt_s += 1
        self._transmitted(entry)
        return entry

    def retransmit(self, entry: SentSd) -> None:
        """STP-DT-015: ``entry`` is transmitted again, unchanged."""
        entry.queued = False
        self.retransmissions += 1
        self._transmitted(entry)

    def _transmitted(self, entry: SentSd) -> None:
        self.serial += 1
        entry.serial = self.serial
        entry.stamp = self.vt_ps  # section 6.1
        entry.times += 1
        self.flight += entry.size

    def take_poll(self) -> int:
        """STP-PL-006: the number of the POLL that is sent now, unwrapped."""
        self.vt_ps += 1
        return self.vt_ps

    # Reports

    def on_stat(self, stat: Stat) -> Report | None:
        """Section 6.4. None when the STAT is discarded.

        The work is bounded by the lengths of the list and of the SDs kept (STP-SEC-004).
        """
        read = self.read_report(stat)
        if read is None:
            return None
        n_ps, n_r, elements = read
        report = self._take(stat, n_ps, n_r)
        if n_ps is not None:
            self.vt_pa = n_ps
            if elements:
                self._process_list(elements, n_ps, report)
        return report

    def on_ustat(self, ustat: Ustat) -> Report | None:
        """Section 6.4. None when the USTAT is discarded."""
        read = self.read_report(ustat)
        if read is None:
            return None
        _, n_r, elements = read
        report = self._take(ustat, None, n_r)
        numbers = self._numbers
        first = bisect_left(numbers, elements[0])
        for number in numbers[first : bisect_left(numbers, elements[1], first)]:
            entry = self._kept[number]
            if not entry.queued and self.sent_once(entry):
                self.queue(entry, report)
        return report

    def read_report(self, packet: Stat | Ustat) -> tuple[int | None, int, list[int]] | None:
        """N(PS), N(R) and the list, unwrapped; None if it is discarded (STP-DT-007, STP-DT-023)."""
        n_ps = None
        if isinstance(packet, Stat):
            if packet.n_ps:
                n_ps = unwrap_poll(packet.n_ps, self.vt_ps)
                if not 0 < n_ps <= self.vt_ps or not self.fresh(n_ps):
                    return None
            elif packet.elements:  # an announcement speaks of no SD (STP-DT-024)
                return None
        n_r = self.vt_a + (packet.n_r - self.vt_a & PACKET_MASK)
        if n_r > self.vt_s:  # or below VT(A) (STP-DT-023)
            return None
        elements = self.read_list(packet, n_r)
        return None if elements is None else (n_ps, n_r, elements)

    def _take(self, packet: Stat | Ustat, n_ps: int | None, n_r: int) -> Report:
        """Take credit and N(R) of a valid report."""
        report = Report(n_ps, self.flight)
        self.grant(packet.n_mr, n_r)
        self.acknowledge(n_r, report)
        return report

    def fresh(self, n_ps: int) -> bool:
        """STP-DT-007: a STAT older than the newest one is discarded."""
        return n_ps >= self.vt_pa

    def read_list(self, packet: Stat | Ustat, n_r: int) -> list[int] | None:
        """The list unwrapped; None unless STP-PF-011, STP-PF-013 and STP-DT-023 hold."""
        fields = packet.elements
        if not fields:
            return []
        if len(fields) == 1:
            return None
        elements = []
        last = n_r - 1
        for wrapped in fields:
            number = n_r + (wrapped - n_r & PACKET_MASK)
            if number <= last:
                return None
            elements.append(number)
            last = number
        credit = packet.n_mr - n_r & PACKET_MASK
        permitted = credit <= MOST_CREDIT and last <= n_r + credit
        return elements if permitted and last <= self.vt_s else None

    def grant(self, field: int, n_r: int) -> None:
        """VT(MS) becomes the higher of itself and N(MR) (section 6.4, STP-DT-007)."""
        credit = field - n_r & PACKET_MASK
        if credit <= MOST_CREDIT:
            self.vt_ms = max(self.vt_ms, n_r + credit)

    def acknowledge(self, n_r: int, report: Report) -> None:
        """Everything below ``n_r`` has arrived (section 6.4)."""
        if n_r <= self.vt_a:
            return
        self.vt_a = n_r
        numbers = self._numbers
        count = bisect_left(numbers, n_r)
        for number in numbers[:count]:
            self.release(number, report)
        del numbers[:count]

    def _process_list(self, elements: list[int], n_ps: int, report: Report) -> None:
        numbers = self._numbers
        at = bisect_left(numbers, elements[0])
        for index, edge in enumerate(elements[1:]):
            end = bisect_left(numbers, edge, at)
            if index & 1:
                for number in numbers[at:end]:
                    self.release(number, report)
            else:
                for number in numbers[at:end]:
                    entry = self._kept[number]
                    if not entry.queued and self.predates(entry, n_ps):
                        self.queue(entry, report)
            at = end
        kept = self._kept
        self._numbers = [number for number in numbers if number in kept]

    def predates(self, entry: SentSd, n_ps: int) -> bool:
        """STP-DT-003: the last transmission is strictly older than the POLL."""
        return entry.stamp < n_ps

    def sent_once(self, entry: SentSd) -> bool:
        """STP-DT-014."""
        return entry.times == 1

    def release(self, number: int, report: Report) -> None:
        """STP-DT-010: an SD has arrived and need not be kept."""
        entry = self._kept.pop(number)
        report.arrived += entry.size
        self.acknowledged += len(entry.data)
        if not entry.queued:
            self.flight -= entry.size

    def queue(self, entry: SentSd, report: Report) -> None:
        """``entry`` is missing and will be sent again."""
        entry.queued = True
        self.flight -= entry.size
        heappush(self._queue, entry.number)
        report.new_loss = report.new_loss or self._congestion.is_new_loss(entry.serial)

    # For traces and tests

    def queued(self) -> list[int]:
        """Numbers that await retransmission, rising."""
        return [n for n in self._numbers if self._kept[n].queued]

    def kept(self) -> list[tuple[int, int]]:
        """Numbers still kept, rising, each with its stamp."""
        return [(n, self._kept[n].stamp) for n in self._numbers]
