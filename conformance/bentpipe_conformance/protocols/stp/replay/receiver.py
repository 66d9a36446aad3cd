"""The IUT as a receiver, replayed (STP/1, sections 6.2, 6.3 and 6.6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.stp.codec import FIN, SDP, STAT
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT, near
from bentpipe_conformance.protocols.stp.reception import Reception
from bentpipe_conformance.protocols.stp.replay.events import (
    At,
    Knowledge,
    PollHeard,
    ReportSent,
    SdHeard,
    runs,
)


@dataclass
class Receiver:
    """What the IUT must have, from what reached it.

    Attributes:
        iss: of the tester.
        announced: the highest credit the IUT has sent, as a count; its own may be higher.
        reception: its variables; ``vr_mr`` is not used.
        sds, polls, reports: the flow's SDs and POLLs heard and reports sent, added to here.
        certain: False while an SD or POLL beyond the announced credit may or may not have counted.
    """

    iss: int
    sds: list[SdHeard]
    polls: list[PollHeard]
    reports: list[ReportSent]
    announced: int = EARLY_CREDIT
    reception: Reception = field(default_factory=Reception)
    certain: bool = True
    _doubts: list[SdHeard | int] = field(default_factory=list)
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

    def sd(self, at: At, number: int) -> SdHeard:
        """An SD, SDP or BEGIN with data arrives."""
        got = self.reception
        before = self._now
        duplicate = number < got.vr_r or number in got.held
        beyond = number >= self.announced
        event = SdHeard(
            at.packet, number, before, self.announced, duplicate, beyond, self.certain, None,
        )  # fmt: skip
        self.sds.append(event)
        if beyond and not duplicate:
            self._doubt(event)
        elif not duplicate:
            got.vr_mr = self.announced
            event.gap = self._take_in(event)
            self._look(at.time)
        return event

    def _take_in(self, sd: SdHeard) -> Range | None:
        return self.reception.take(sd.number, sd.stp.data, bool(sd.stp.flags & FIN))

    def poll(self, at: At) -> PollHeard:
        """A POLL arrives, or that of an SDP whose SD has been recorded."""
        stp = at.stp
        n_s = self.number(stp.seq) + (1 if stp.type == SDP else 0)
        if n_s > self.announced:
            self._doubt(n_s)
        self.reception.vr_mr = self.announced
        self.reception.polled(n_s)
        after = self._look(at.time)
        event = PollHeard(at.packet, stp.n_ps or 0, stp.timestamp or 0, n_s, after, self.certain)
        self.polls.append(event)
        return event

    def report(self, at: At) -> ReportSent:
        """A STAT or USTAT leaves."""
        stp = at.stp
        n_r = self.number(stp.seq)
        n_mr = self.credit(stp.n_mr or 0)
        elements = tuple(near(element, self.iss, n_r) for element in stp.elements)
        self._resolve(at.time, n_r, n_mr, elements)
        poll = cause = None
        if stp.type == STAT:
            asked = stp.n_ps, stp.timestamp
            polls = (poll for poll in reversed(self.polls) if (poll.n_ps, poll.timestamp) == asked)
            poll = next(polls, None)
        else:
            cause = next((sd for sd in reversed(self.sds) if sd.gap == elements), None)
        answered = poll or cause
        since = answered.time if answered is not None else at.time
        event = ReportSent(
            at.packet, n_r, n_mr, elements, poll, cause, self._between(since), self.certain,
        )  # fmt: skip
        if answered is not None:
            answered.answers.append(event)
        self.reports.append(event)
        return event

    def _doubt(self, beyond: SdHeard | int) -> None:
        """An SD, or a POLL's N(S), above the announced credit: the IUT's own may be higher."""
        self._doubts.append(beyond)
        self.certain = False

    def _resolve(self, time: float, n_r: int, n_mr: int, elements: tuple[int, ...]) -> None:
        """See from a report whether what was in doubt counted.

        Credit never falls, so what is beyond it now was beyond it then. Otherwise only the report
        itself can tell.
        """
        for doubt in self._doubts:
            if isinstance(doubt, int):
                if doubt <= n_mr and elements and elements[-1] >= doubt:
                    self.reception.vr_mr = max(self.announced, doubt)
                    self.reception.polled(doubt)
            elif doubt.number >= n_mr:
                doubt.discarded = True
            elif doubt.number < n_r or any(a <= doubt.number < b for a, b in runs(elements, 1)):
                self.reception.vr_mr = max(self.announced, doubt.number + 1)
                self._take_in(doubt)
        if self._doubts:
            self._doubts.clear()
            self.certain = True
            self._look(time)

    def _between(self, since: float) -> tuple[Knowledge, ...]:
        """What it had from a moment until now, latest first."""
        found: list[Knowledge] = []
        for time, known in reversed(self._history):
            if time < since:
                break
            if not found or found[-1] != known:
                found.append(known)
        return tuple(found) or (self._now,)
