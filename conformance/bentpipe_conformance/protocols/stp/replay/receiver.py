"""The IUT as a receiver, replayed (STP/1, sections 6.2, 6.3 and 6.5)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.stp.codec import FIN, SDP, STAT
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT, near
from bentpipe_conformance.protocols.stp.reception import Reception
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    At,
    Knowledge,
    PollHeard,
    ReportSent,
    SdHeard,
    runs,
)


@dataclass(slots=True)
class _Doubt:
    """An SD, or a POLL's N(S), above the credit that had left the IUT when it came."""

    at: At
    edge: int
    sd: SdHeard | None = None
    credited: bool = False

    def shown(self, n_r: int, elements: tuple[int, ...]) -> bool:
        """Whether a report shows that it counted."""
        if self.sd is None:
            return bool(elements) and elements[-1] >= self.edge
        number = self.sd.number
        return number < n_r or any(a <= number < b for a, b in runs(elements, 1))


@dataclass
class Receiver:
    """What the IUT must have, from what reached it.

    Attributes:
        iss: of the tester.
        announced: VR(MR), the highest credit the IUT has sent, as a count (STP-DT-020).
        max_sd: MaxSD of the IUT, None while it has announced none.
        reception: its variables.
        sds, polls, reports: the flow's SDs and POLLs heard and reports sent, added to here.
        certain: False while an SD or POLL beyond the credit that has left the IUT may count, since
            a report that gives more may be on its way out.
    """

    iss: int
    sds: list[SdHeard]
    polls: list[PollHeard]
    reports: list[ReportSent]
    announced: int = EARLY_CREDIT
    max_sd: int | None = None
    reception: Reception = field(default_factory=Reception)
    certain: bool = True
    _doubts: list[_Doubt] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)
    _history: list[Knowledge] = field(default_factory=list)
    _now: Knowledge = field(default_factory=lambda: Knowledge(0, 0, ()))

    def credit(self, n_mr: int) -> int:
        """The IUT announces a credit on the wire; return it as a count."""
        count = near(n_mr, self.iss, self.announced)
        self.announced = max(self.announced, count)
        return count

    def delivered(self, since: float, until: float) -> Range:
        """The least and the greatest VR(R) between two moments, as counts."""
        first, last = bisect_left(self._times, since), bisect_right(self._times, until)
        return self._delivered(first), self._delivered(last)

    def _delivered(self, looks: int) -> int:
        return self._history[looks - 1].vr_r if looks else 0

    def number(self, wire: int) -> int:
        """The count that a number of the tester stands for."""
        return near(wire, self.iss, self.reception.vr_r)

    def _look(self, time: float) -> Knowledge:
        got = self.reception
        self._now = Knowledge(got.vr_r, got.vr_h, got.elements())
        self._times.append(time)
        self._history.append(self._now)
        return self._now

    def sd(self, at: At, number: int) -> SdHeard:
        """An SD, SDP or BEGIN with data arrives."""
        got = self.reception
        event = SdHeard(
            at.packet, number, self._now, self.announced, number < got.vr_r or number in got.held,
            number >= self.announced, self._misfit(at, number), self.certain, None,
        )  # fmt: skip
        self.sds.append(event)
        if event.duplicate or event.misfit:
            return event
        if event.beyond:
            self._doubt(_Doubt(at, number + 1, event))
        else:
            self._take_in(event)
            self._look(event.time)
        return event

    def _misfit(self, at: At, number: int) -> str:
        """Why an SD must be discarded whatever else is known (STP-DT-028), empty if it need not."""
        got = self.reception
        size, most = len(at.stp.data), self.max_sd or math.inf
        if size > most:
            return f"with {size} octets, more than MaxSD"
        if got.fin is not None and number > got.fin:
            return f"numbered above the FIN in SD {got.fin}"
        highest = max(got.held, default=got.vr_r - 1)
        if at.stp.flags & FIN and number < highest:
            return f"with the FIN flag, below SD {highest}"
        return ""

    def _take_in(self, sd: SdHeard) -> None:
        self.reception.vr_mr = max(self.announced, sd.number + 1)
        sd.gap = self.reception.take(sd.number, sd.stp.data, bool(sd.stp.flags & FIN))

    def poll(self, at: At) -> PollHeard:
        """A POLL arrives, or that of an SDP whose SD has been recorded."""
        stp = at.stp
        n_s = self.number(stp.seq) + (1 if stp.type == SDP else 0)
        fin = self.reception.fin
        limit = self.announced if fin is None else min(self.announced, fin + 1)
        if n_s > self.announced and limit == self.announced:
            self._doubt(_Doubt(at, n_s))
        self.reception.vr_mr = self.announced
        self.reception.polled(n_s)
        after = self._look(at.time)
        event = PollHeard(
            at.packet, stp.n_ps or 0, stp.timestamp or 0, n_s, limit, after, self.certain
        )
        self.polls.append(event)
        return event

    def report(self, at: At) -> ReportSent:
        """A STAT or USTAT leaves."""
        stp = at.stp
        n_r = self.number(stp.seq)
        n_mr = near(stp.n_mr or 0, self.iss, self.announced)
        elements = tuple(near(element, self.iss, n_r) for element in stp.elements)
        poll = cause = None
        if stp.type == STAT:
            asked = stp.n_ps, stp.timestamp
            polls = (poll for poll in reversed(self.polls) if (poll.n_ps, poll.timestamp) == asked)
            poll = next(polls, None)
        self._resolve(at, n_r, n_mr, elements, poll)
        before = self.announced
        self.credit(stp.n_mr or 0)
        if stp.type != STAT:
            cause = next((sd for sd in reversed(self.sds) if sd.gap == elements), None)
        answered = poll or cause
        since = answered.time if answered is not None else at.time
        event = ReportSent(
            at.packet, n_r, n_mr, elements, poll, cause, before, self._between(since), self.certain,
        )  # fmt: skip
        if answered is not None:
            answered.answers.append(event)
        self.reports.append(event)
        return event

    def _doubt(self, doubt: _Doubt) -> None:
        self._doubts.append(doubt)
        self.certain = False

    def _resolve(
        self, at: At, n_r: int, n_mr: int, elements: tuple[int, ...], poll: PollHeard | None
    ) -> None:
        """See from a report whether what was in doubt counted.

        It did not if no credit for it left before what it has evoked, a USTAT or the answer to a
        POLL, or within the time in which packets are read; otherwise only a report can tell.
        """
        open_: list[_Doubt] = []
        for doubt in self._doubts:
            own = poll is None and doubt.sd is not None and elements[-1:] == (doubt.edge - 1,)
            evoked = own or (poll is not None and poll.frame >= doubt.at.frame)
            recent = at.time - doubt.at.time <= DUE_S and not evoked
            doubt.credited = doubt.credited or (recent and doubt.edge <= n_mr)
            if doubt.credited and (own or doubt.shown(n_r, elements)):
                self._count(doubt)
            elif recent:
                open_.append(doubt)
            elif doubt.sd is not None:
                doubt.sd.discarded = not doubt.credited
        if self._doubts:
            self._doubts = open_
            self.certain = not open_
            self._look(at.time)

    def _count(self, doubt: _Doubt) -> None:
        if doubt.sd is not None:
            self._take_in(doubt.sd)
        else:
            self.reception.vr_mr = max(self.announced, doubt.edge)
            self.reception.polled(doubt.edge)

    def _between(self, since: float) -> tuple[Knowledge, ...]:
        """What it had from a moment until now, latest first."""
        found: list[Knowledge] = []
        first = bisect_left(self._times, since)
        for known in reversed(self._history[first:]):
            if not found or found[-1] != known:
                found.append(known)
        return tuple(found) or (self._now,)
