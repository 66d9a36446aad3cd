"""The IUT as a sender, replayed (STP/1, sections 6.1, 6.4 and 6.5)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, FIN, STAT
from bentpipe_conformance.protocols.stp.numbers import near
from bentpipe_conformance.protocols.stp.replay.events import At, PollSent, ReportHeard, SdSent, runs


@dataclass(slots=True)
class _Sd:
    """One SD that was sent."""

    octets: int
    transmissions: int = 0
    stamp: int = 0
    arrived: bool = False
    awaited: ReportHeard | None = None


@dataclass
class Sender:
    """The IUT's variables as the packets at its side of the link show them.

    Attributes:
        iss: of the IUT.
        vt_s, vt_a, vt_ms, vt_ps, vt_pa: the sender's variables.
        sent, polls, reports: the flow's SDs and POLLs sent and reports heard, added to here.
        data: what each SD carried when it was first sent.
        fin: count of the SD with the FIN flag, None before it was sent.
    """

    iss: int
    sent: list[SdSent]
    polls: list[PollSent]
    reports: list[ReportHeard]
    vt_s: int = 0
    vt_a: int = 0
    vt_ms: int = 4
    vt_ps: int = 0
    vt_pa: int = 0
    fin: int | None = None
    data: dict[int, bytes] = field(default_factory=dict)
    _sds: dict[int, _Sd] = field(default_factory=dict)
    _order: list[int] = field(default_factory=list)
    _flight: int = 0
    _twice: int = 0
    _queue: dict[int, None] = field(default_factory=dict)

    def sd(self, at: At, number: int) -> SdSent:
        """An SD, SDP or BEGIN with data leaves."""
        stp = at.stp
        sd = self._sds.get(number)
        if sd is None:
            sd = self._sds[number] = _Sd(max(len(stp.data), 1))
            insort(self._order, number)
            self.data[number] = stp.data
        event = SdSent(
            at.packet, number, sd.transmissions + 1, self.vt_ps, self.vt_s, self.vt_a,
            self.vt_ms, self._flight, sd.awaited, tuple(self._queue), self._twice,
        )  # fmt: skip
        if sd.awaited is not None:
            sd.awaited.responses.append(event)
        if not sd.arrived and (sd.transmissions == 0 or sd.awaited is not None):
            self._flight += sd.octets
        self._queue.pop(number, None)
        sd.awaited = None
        if (
            stp.type != BEGIN or not sd.transmissions
        ):  # STP-DT-014: a BEGIN's repetitions do not count
            sd.transmissions += 1
        sd.stamp = self.vt_ps
        self.vt_s = max(self.vt_s, number + 1)
        if stp.flags & FIN and self.fin is None:
            self.fin = number
        self.sent.append(event)
        return event

    def poll(self, at: At, n_s: int) -> PollSent:
        """A POLL leaves, or that of an SDP whose SD has been recorded."""
        stp = at.stp
        n_ps = near(stp.n_ps or 0, 0, self.vt_ps + 1)
        self.vt_ps = max(self.vt_ps, n_ps)
        event = PollSent(at.packet, n_ps, n_s, self.vt_s, self.vt_a)
        self.polls.append(event)
        return event

    def number(self, wire: int) -> int:
        """The count that a number of the IUT stands for."""
        return near(wire, self.iss, self.vt_s)

    def report(self, at: At) -> ReportHeard:
        """A STAT, USTAT or BGAK arrives at a connection in data transfer."""
        stp = at.stp
        n_r = near((stp.n_r if stp.type == BGAK else stp.seq) or 0, self.iss, self.vt_a)
        n_ps = None
        if stp.type == STAT:
            n_ps = near(stp.n_ps, 0, self.vt_ps) if stp.n_ps else 0
        event = ReportHeard(
            at.packet, n_r, near(stp.n_mr or 0, self.iss, self.vt_ms),
            tuple(near(element, self.iss, n_r) for element in stp.elements), n_ps, "",
            self.vt_a, self.vt_s, self.vt_pa, self.vt_ms, self._flight,
        )  # fmt: skip
        event.fault = self._fault(event)
        self.reports.append(event)
        if not event.fault:
            self._take(event)
        event.flight_after = self._flight
        return event

    def _fault(self, event: ReportHeard) -> str:
        """Why a report must be discarded (STP-DT-007, STP-DT-023)."""
        if event.n_r < self.vt_a:
            return f"N(R) {event.n_r} is below VT(A) {self.vt_a}"
        if event.n_r > self.vt_s:
            return f"N(R) {event.n_r} is above VT(S) {self.vt_s}"
        if problem := event.list_fault():
            return f"the list {problem}"
        if event.elements and event.elements[-1] > self.vt_s:
            return f"the bound {event.elements[-1]} is above VT(S) {self.vt_s}"
        if event.n_ps == 0:
            return "N(PS) is 0 and the list not empty" if event.elements else ""
        if event.n_ps is not None:
            if event.n_ps > self.vt_ps:
                return f"N(PS) {event.n_ps} is above VT(PS) {self.vt_ps}"
            if event.n_ps < self.vt_pa:
                return f"N(PS) {event.n_ps} is below VT(PA) {self.vt_pa}"
        return ""

    def _take(self, event: ReportHeard) -> None:
        held = [] if event.n_ps is None else runs(event.elements, 1)
        arrived = self._sent_in((self.vt_a, event.n_r), *held)
        event.arrived = tuple(number for number in arrived if self._arrives(number))
        self.vt_a = event.n_r
        self.vt_ms = max(self.vt_ms, event.n_mr)
        if event.n_ps:
            self.vt_pa = event.n_ps
            poll = next((poll for poll in reversed(self.polls) if poll.n_ps == event.n_ps), None)
            if poll is not None:
                poll.answers.append(event)
        event.waiting = sum(self._sds[number].octets for number in self._queue)
        self._judge_missing(event)

    def _sent_in(self, *spans: Range) -> Iterator[int]:
        """The SDs that have been sent of each span: a span may be wide, and what was sent few."""
        for left, right in spans:
            first, last = (bisect_left(self._order, bound) for bound in (left, right))
            yield from self._order[first:last]

    def _arrives(self, number: int) -> bool:
        """Note that an SD has arrived; whether that is news."""
        sd = self._sds[number]
        if sd.arrived:
            return False
        sd.arrived = True
        if sd.awaited is None:
            self._flight -= sd.octets
        else:
            self._twice += sd.octets
        sd.awaited = None
        self._queue.pop(number, None)
        return True

    def _judge_missing(self, event: ReportHeard) -> None:
        """Decide what a report's list makes await retransmission (sections 6.4 and 6.5)."""
        wanted: list[int] = []
        spared: list[int] = []
        for number in self._sent_in(*runs(event.elements, 0)):
            sd = self._sds[number]
            if sd.arrived or sd.awaited is not None:
                continue
            old = sd.transmissions == 1 if event.n_ps is None else sd.stamp < event.n_ps
            (wanted if old else spared).append(number)
            if old:
                sd.awaited = event
                self._queue[number] = None
                self._flight -= sd.octets
        event.wanted, event.spared = tuple(wanted), tuple(spared)
