"""Replaying the IUT as a receiver (STP/1, sections 6.2, 6.3 and 6.6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_conformance.protocols.stp.codec import FIN, SDP, STAT, Stp
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT, near
from bentpipe_conformance.protocols.stp.reception import Reception
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.events import (
    Knowledge,
    PollHeard,
    ReportSent,
    SdHeard,
)


@dataclass(slots=True)
class _Doubt:
    """An SD or POLL above the announced credit: the IUT's own credit may have been higher."""

    number: int
    data: bytes
    fin: bool
    event: SdHeard | None


@dataclass
class Receiver:
    """What the IUT must have, from what reached it.

    Attributes:
        iss: of the tester.
        announced: the highest credit the IUT has sent, as a count; its own may be higher.
        reception: its variables; ``vr_mr`` is not used.
        sds, polls: what arrived, in order.
        reports: STATs and USTATs it sent, in order.
        certain: False while an SD or POLL beyond the announced credit may or may not have counted.
    """

    iss: int
    announced: int = 0
    reception: Reception = field(default_factory=Reception)
    sds: list[SdHeard] = field(default_factory=list)
    polls: list[PollHeard] = field(default_factory=list)
    reports: list[ReportSent] = field(default_factory=list)
    certain: bool = True
    _doubts: list[_Doubt] = field(default_factory=list)
    _early: list[tuple[int, bytes, bool]] = field(default_factory=list)
    _history: list[tuple[float, Knowledge]] = field(default_factory=list)
    _now: Knowledge = field(default_factory=lambda: Knowledge(0, 0, ()))

    def credit(self, n_mr: int) -> int:
        """The IUT announces a credit on the wire; return it as a count."""
        count = near(n_mr, self.iss, self.announced)
        self.announced = max(self.announced, count)
        return count

    def number(self, wire: int) -> int:
        """The count that a number of the tester stands for."""
        return near(wire, self.iss, self.reception.vr_r)

    def _look(self, time: float) -> Knowledge:
        got = self.reception
        self._now = Knowledge(got.vr_r, got.vr_h, got.elements())
        self._history.append((time, self._now))
        return self._now

    def sd(self, packet: Packet, stp: Stp, number: int, *, open_: bool) -> SdHeard:
        """An SD, SDP or BEGIN with data arrives."""
        got = self.reception
        before = self._now
        fin = bool(stp.flags & FIN)
        duplicate = number < got.vr_r or number in got.held
        beyond = number >= self.announced
        event = SdHeard(
            packet, packet.time, number, before, self.announced, duplicate, beyond, not open_,
            self.certain, None,
        )  # fmt: skip
        self.sds.append(event)
        if not open_:
            self._early.append((number, stp.data, fin))
        elif beyond and not duplicate:
            self._doubt(_Doubt(number, stp.data, fin, event))
        elif not duplicate:
            got.vr_mr = self.announced
            event.gap = got.take(number, stp.data, fin)
            self._look(packet.time)
        return event

    def opened(self, time: float, *, known: bool) -> None:
        """The connection enters data transfer: what was held back is taken (section 5.2).

        A ``known`` caller's connection was open from the BEGIN on, so its POLLs have counted.
        """
        got = self.reception
        got.vr_mr = max(self.announced, EARLY_CREDIT)
        for number, data, fin in self._early:
            if 0 <= number < EARLY_CREDIT:
                got.take(number, data, fin)
        for poll in self.polls if known else ():
            got.polled(poll.n_s)
        self._early.clear()
        self._look(time)

    def poll(self, packet: Packet, stp: Stp, *, open_: bool) -> PollHeard:
        """A POLL arrives, or that of an SDP whose SD was told before."""
        n_s = self.number(stp.seq) + (1 if stp.type == SDP else 0)
        if open_:
            if n_s > self.announced:
                self._doubt(_Doubt(n_s, b"", False, None))
            self.reception.vr_mr = self.announced
            self.reception.polled(n_s)
        after = self._look(packet.time)
        event = PollHeard(
            packet, packet.time, stp.n_ps or 0, stp.timestamp or 0, n_s, after, open_, self.certain
        )
        self.polls.append(event)
        return event

    def report(self, packet: Packet, stp: Stp) -> ReportSent:
        """A STAT or USTAT leaves."""
        n_r = self.number(stp.seq)
        announced = self.announced
        n_mr = self.credit(stp.n_mr or 0)
        elements = tuple(near(element, self.iss, n_r) for element in stp.elements)
        self._resolve(packet.time, n_r, n_mr, elements)
        poll = cause = None
        since = packet.time
        if stp.type == STAT:
            poll = self._answered(stp)
            since = poll.time if poll else packet.time
        else:
            cause = next((sd for sd in reversed(self.sds) if sd.gap == elements), None)
            since = cause.time if cause else packet.time
        event = ReportSent(
            packet, packet.time, n_r, n_mr, elements, announced, poll, cause,
            self._between(since), self.certain,
        )  # fmt: skip
        if poll is not None:
            poll.answers.append(event)
        if cause is not None:
            cause.answers.append(event)
        self.reports.append(event)
        return event

    def _doubt(self, doubt: _Doubt) -> None:
        self._doubts.append(doubt)
        self.certain = False

    def _resolve(self, time: float, n_r: int, n_mr: int, elements: tuple[int, ...]) -> None:
        """See from a report whether what was in doubt counted.

        Credit never falls, so what is beyond it now was beyond it then. Otherwise only the report
        itself can tell.
        """
        for doubt in self._doubts:
            if doubt.event is None:
                if doubt.number <= n_mr and elements and elements[-1] >= doubt.number:
                    self.reception.vr_mr = max(self.announced, doubt.number)
                    self.reception.polled(doubt.number)
            elif doubt.number >= n_mr:
                doubt.event.discarded = True
            elif doubt.number < n_r or _listed_as_held(doubt.number, elements):
                self.reception.vr_mr = max(self.announced, doubt.number + 1)
                self.reception.take(doubt.number, doubt.data, doubt.fin)
        if self._doubts:
            self._doubts.clear()
            self.certain = True
            self._look(time)

    def _answered(self, stp: Stp) -> PollHeard | None:
        for poll in reversed(self.polls):
            if (poll.n_ps, poll.timestamp) == (stp.n_ps, stp.timestamp):
                return poll
        return None

    def _between(self, since: float) -> tuple[Knowledge, ...]:
        """What it had from a moment until now, latest first."""
        found: list[Knowledge] = []
        for time, known in reversed(self._history):
            if time < since:
                break
            if not found or found[-1] != known:
                found.append(known)
        return tuple(found) or (self._now,)


def _listed_as_held(number: int, elements: tuple[int, ...]) -> bool:
    runs = zip(elements[1::2], elements[2::2], strict=False)
    return any(first <= number < second for first, second in runs)
