"""The largest congestion window that the rules permit the IUT, replayed (STP/1 section 7.3).

The window is hidden. It begins with what the statement declares, grows by what is reported as
arrived, and is reduced at reports that the packets show. What they do not show is resolved in the
IUT's favour: a loss that may belong to an earlier reduction makes none, but may have made one all
the same and then spares a later one. An SD that does not fit into this window fits into no
permitted one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, LEAST_MAX_SD
from bentpipe_conformance.protocols.stp.replay.events import PollSent, ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips

MOST_INITIAL_WINDOW = 10
"""SMSS (STP-CG-001)."""

GROWTH = 2
"""SMSS for each full window that has arrived, in congestion avoidance (STP-CG-004)."""

SLACK_S = 0.05
"""Seconds by which a silence may be noticed late."""

REDUCED_WINDOWS = 3
"""Windows of arrivals after a reduction in which it, and not growth, decides on the window."""

Phase = Literal["initial", "slow start", "reduced", "avoidance", "silence"]
"""What decided on the window last: its beginning, growth by arrivals, a reduction with few arrivals
since, growth from ssthresh on, or two silences."""


@remembered
def smss(flow: Flow) -> int:
    """The peer's MaxSD: SMSS is no larger, though a stream of small writes may never show it."""
    # A BEGIN and early SDs are cut before the peer's MaxSD is known.
    open_ = flow.established if flow.established is not None else 0.0
    sizes = (len(sd.stp.data) for sd in flow.sds_sent if sd.time >= open_)
    return max(flow.tester_max_sd or 0, LEAST_MAX_SD, *sizes)


def least_smss(flow: Flow) -> int:
    """What SMSS is at least: the peer's MaxSD if a path carries that, or the longest new SD.

    SDs that were cut by an earlier MaxSD may be longer.
    """
    open_ = flow.established if flow.established is not None else 0.0
    sizes = (len(sd.stp.data) for sd in flow.sds_sent if sd.new and sd.time >= open_)
    return max(LEAST_MAX_SD, min(flow.tester_max_sd or 0, _CARRIED), *sizes)


_CARRIED = 1400
"""Octets of an SD that every path carries."""


def shows_smss(flow: Flow) -> bool:
    """Whether an SD is as long as SMSS can be, so that it is no smaller."""
    size = smss(flow)
    return any(len(sd.stp.data) == size for sd in flow.sds_sent)


@record
class Bounded:
    """An SD and what the rules permit at most when it leaves.

    Attributes:
        sd: the SD.
        window: the largest congestion window, octets.
        grown: what it were if unused windows grew as well (STP-CG-010), octets.
        phase: what decided on it.
        slow: whether the sender may be in slow start.
        exempt: it may be the retransmission that does not wait for the window (STP-CG-006), the
            first after a reduction by STP-CG-005, be there two silences between them or not.
        reduction: the report of the last reduction by STP-CG-005, None when there was none.
        certain: whether that report must have caused one.
        repetitions: whether of what it reported lost only retransmissions were made after the
            reduction before.
        unasked: it leaves when the sender had stopped, and no report has come since.
        again: the window of a sender that two silences have made reduce, and a loss from before
            them once more, octets; 0 while there is none.
        freed: it may be the first retransmission that this loss has let go (STP-CG-006).
        fits: whether the window can have permitted it.
    """

    sd: SdSent
    window: float
    grown: float
    phase: Phase
    slow: bool
    exempt: bool
    reduction: ReportHeard | None
    certain: bool
    repetitions: bool
    unasked: bool
    again: float
    freed: bool
    fits: bool


@dataclass(slots=True)
class _Window:
    """The largest window of a kind.

    With ``unused``, that of a sender to which STP-CG-010 is unknown; with ``early``, that of one
    whose window was so small before a silence that growth by STP-CG-004 begins at two SMSS. It
    grows later than in slow start, so that it may count as used when a larger one does not.
    Unless SMSS is ``sure`` it may be smaller, and growth by STP-CG-004 begin below the threshold.
    """

    smss: int
    window: float
    sure: bool
    unused: bool = False
    early: bool = False
    threshold: float = math.inf
    counted: float = 0.0
    since: float = 0.0
    below: float = 0.0

    @property
    def permitted(self) -> float:
        """The window; one that was smaller may have taken its step a little earlier."""
        stepping = self.since > 0 and self.window >= self.threshold
        return self.window + (GROWTH * self.smss if stepping else 0)

    def grow(self, octets: int, flight: int) -> None:
        """``octets`` are reported as arrived, before which at most ``flight`` were in flight."""
        if not octets:
            return
        self.since += octets
        most = math.inf if self.unused or 2 * flight >= self.window else 2 * flight
        base = min(self.window, most)
        if base < self.threshold:
            grown = min(base + octets, self.threshold)  # STP-CG-003
            if base + octets <= self.threshold:
                grown = max(grown, self._step_below(base, octets))
            self.window = max(self.window, grown)
            if base + octets > self.threshold:
                self._step(octets)
        elif base < self.window:
            # A smaller window may have been used; what has arrived counts for its next step.
            grown = base + GROWTH * self.smss * (octets / base + 1)
            self.window = max(self.window, min(grown, self.window + GROWTH * self.smss))
            self.counted = min(self.counted + octets, self.window)
        else:
            self._step(octets)

    def _step_below(self, base: float, octets: int) -> float:
        """A window that has grown by STP-CG-004 in steps of a smaller SMSS, half of it at most."""
        if self.sure:
            return 0.0
        self.below += octets
        if self.below < base:
            return 0.0
        self.below -= base
        return base + GROWTH * min(self.smss, base / 2)

    def _step(self, octets: int) -> None:
        self.counted += octets
        while self.counted >= self.window:  # STP-CG-004
            self.counted -= self.window
            self.window += GROWTH * self.smss

    def reduce(self, to: float | None = None) -> None:
        """STP-CG-005, and STP-CG-007 with the window ``to`` which it reduces."""
        least = 2 * self.smss
        self.threshold = least if self.early and to else max(self.permitted / 2, least)
        self.window = self.threshold if to is None else to
        # What arrived before the threshold was reached may count for the first window.
        self.counted, self.since, self.below = self.threshold, 0.0, 0.0


@dataclass(slots=True)
class _Doubt:
    """A report of a loss that the IUT may not have read yet.

    Attributes:
        report: the report.
        until: frame from which on the IUT has read it for sure.
        before: the windows before it, in the order of :attr:`_Replay.all`.
    """

    report: ReportHeard
    until: float
    before: tuple[float, ...]


@dataclass(slots=True)
class _Replay:
    flow: Flow
    trips: RoundTrips
    window: _Window
    early: _Window
    grown: _Window
    phase: Phase = "initial"
    slow: bool = True
    ssthresh: float = math.inf
    """The largest that it can be, octets: slow start is over once more has been in flight."""
    exempt: bool = False
    reduction: ReportHeard | None = None
    certain: bool = False
    repetitions: bool = False
    """See :class:`Bounded`."""
    spared_until: float = 0.0
    """Frame from which on a lost transmission was made after the last reduction for sure."""
    reduced_at: float = 0.0
    """Frame before which a lost transmission was made before the last reduction for sure."""
    doubt: _Doubt | None = None
    shown: float = 0.0
    """What was in flight without fitting, since the last report."""
    heard: float = 0.0
    silent_since: float | None = None
    silent_from: int = 0
    """Frame before which everything left before the silence."""
    collapsed: bool = False
    last_sent: dict[int, int] = field(default_factory=dict)
    repeated: set[int] = field(default_factory=set)
    """SDs that have been sent again."""
    moved: float = 0.0
    """When the last SD left, or the last report came."""
    again: _Window | None = None
    frees: bool = False
    """See :class:`Bounded`, the latter of the next retransmission."""

    @property
    def all(self) -> tuple[_Window, ...]:
        return self.window, self.early, self.grown

    # -- SDs

    def sends(self, sd: SdSent) -> Bounded:
        self.be_silent(sd.time)
        doubt, late = self.doubt, sd.frame
        if doubt is not None and late >= doubt.until:
            doubt = self.doubt = None
        before = (0.0, 0.0, 0.0) if doubt is None else doubt.before
        *used, grown = (max(w.permitted, b) for w, b in zip(self.all, before, strict=True))
        window = max(used)
        exempt = self.exempt and not sd.new
        if exempt and doubt is None:
            self.exempt = False
        bounded = Bounded(
            sd, window, grown, self.phase, self.slow, exempt, self.reduction, self.certain,
            self.repetitions, self._is_unasked(sd.time),
            0.0 if self.again is None else self.again.permitted, self.frees and not sd.new,
            exempt or sd.flight_with <= window,
        )  # fmt: skip
        self.frees = self.frees and sd.new
        self.moved = sd.time
        if bounded.fits and not exempt and sd.flight_with > self.ssthresh:
            self.slow = False
        if not bounded.fits:
            self.shown = max(self.shown, float(sd.flight_with))
        self.last_sent[sd.number] = sd.frame
        if not sd.new:
            self.repeated.add(sd.number)
        return bounded

    def _is_unasked(self, now: float) -> bool:
        """Whether nothing has happened for so long that pacing cannot have held back an SD.

        Where there is always data, the window has.
        """
        if self.flow.service != CHARGEN and not self.flow.iut_calls:
            return False
        bounds = self.trips.bounds(self.moved, now)
        return bounds is not None and now - self.moved > bounds[1] + self.flow.timing_error

    # -- reports

    def hears(self, report: ReportHeard, octets: int, unread: int) -> None:
        """A valid report arrives.

        Args:
            report: the report.
            octets: reported as arrived for the first time.
            unread: octets of SDs that leave after it, perhaps before it is read.
        """
        self.moved = report.time
        # One excess is one finding: from here on the IUT's window is taken for what it has shown.
        for item in self.all:
            item.window = max(item.window, self.shown)
        self.shown = 0.0
        self.be_silent(report.time)
        self._ends_silence(report)
        lost = max((self.last_sent.get(number, 0) for number in report.wanted), default=-1)
        reduces = bool(report.wanted) and lost >= self.spared_until
        before = tuple(item.permitted for item in self.all)
        if report.stp.type != BGAK and not reduces:
            for item in (*self.all, *([] if self.again is None else [self.again])):
                item.grow(octets, report.flight + unread)
        if octets and self.phase == "initial":
            self.phase = "slow start"
        settled = self.window.since >= REDUCED_WINDOWS * self.window.threshold
        passed = self.phase == "silence" and self.window.window > self.window.threshold
        if passed or (self.phase in ("reduced", "silence") and settled):
            self.phase = "avoidance"
        if report.wanted and lost >= self.reduced_at:
            self._loses(report, reduces, before)
        elif report.wanted and self.phase == "silence":
            self.again = replace(self.window)
            self.again.reduce()
            self.frees = True

    def _loses(self, report: ReportHeard, reduces: bool, before: tuple[float, ...]) -> None:
        """STP-CG-005: a report makes SDs await retransmission, and may be reason to reduce."""
        read = read_from(self.flow, report)
        self.again, self.frees = None, False
        self.exempt, self.reduction, self.certain = True, report, reduces
        late = (
            number for number in report.wanted if self.last_sent.get(number, 0) >= self.spared_until
        )
        self.repetitions = reduces and self.repeated.issuperset(late)
        self.spared_until = read
        if not reduces:
            # If it did, its threshold was two SMSS at least, even above the window before.
            for item in self.all:
                item.window = max(item.window, 2.0 * item.smss)
            self._may_reduce()
            return
        for item in self.all:
            item.reduce()
        self.ssthresh = max(item.threshold for item in self.all)
        self.doubt = _Doubt(report, read, before)
        self.phase, self.slow, self.reduced_at = "reduced", False, report.frame

    def _may_reduce(self) -> None:
        """The IUT may have set ssthresh, to half of its window."""
        half = max(item.permitted / 2 for item in self.all)
        self.ssthresh = max(self.ssthresh, half, 2 * self.window.smss)

    # -- silence

    def polls(self, poll: PollSent) -> None:
        if self.silent_since is None and poll.vt_a < poll.vt_s:
            self.silent_since, self.silent_from = poll.time, poll.frame + 1

    def _ends_silence(self, report: ReportHeard) -> None:
        least = 3 * self.trips.silence(self.heard)[0] - SLACK_S - self.flow.timing_error
        if report.vt_a < report.vt_s and report.time - self.heard >= least:
            # Two silences may have passed: a reduction that spares what was lost before it.
            self.spared_until, self.slow = report.frame, True
            self._may_reduce()
        running = self.silent_since is not None and not report.acknowledges_all
        self.silent_since = report.time if running else None
        self.silent_from = report.frame
        self.heard, self.collapsed = report.time, False

    def be_silent(self, now: float) -> None:
        """STP-CG-007, once the second silence is over for sure: it lasts twice as long."""
        since = self.silent_since
        if since is None or self.collapsed:
            return
        if now - since > 3 * self.trips.silence(since)[1] + 2 * SLACK_S + self.flow.timing_error:
            self.collapsed, self.again, self.frees = True, None, False
            self.reduced_at = max(self.reduced_at, self.silent_from)
            for item in self.all:
                item.reduce(float(item.smss))
            self.ssthresh = max(item.threshold for item in self.all)
            self.phase, self.slow, self.reduction = "silence", True, None


def read_from(flow: Flow, report: ReportHeard) -> float:
    """The frame from which on packets left for sure after a report of a loss was read.

    That is what the report made the IUT send again, or what left when every answer was due.
    """
    due = report.time + flow.due_s
    sds = flow.sds_sent
    for place in range(bisect_right(sds, report.frame, key=lambda sd: sd.frame), len(sds)):
        if sds[place].awaited is report or sds[place].time > due:
            return sds[place].frame
    return math.inf


class _Sent:
    """Octets that left up to a moment."""

    def __init__(self, flow: Flow) -> None:
        self._times = [sd.time for sd in flow.sds_sent]
        self._octets = [0, *accumulate(sd.octets for sd in flow.sds_sent)]

    def within(self, start: float, end: float) -> int:
        first, last = (bisect_right(self._times, time) for time in (start, end))
        return self._octets[last] - self._octets[first]


def initial_flight(flow: Flow) -> int:
    """The most that the open IUT had in flight before the first report, octets."""
    first = next((item.frame for item in flow.reports_heard if _is_report(item)), math.inf)
    since = math.inf if flow.established is None else flow.established
    early = (sd for sd in flow.sds_sent if sd.frame < first and sd.time >= since)
    return max((sd.flight_with for sd in early), default=0)


def _is_report(heard: ReportHeard) -> bool:
    return not heard.fault and heard.stp.type != BGAK


def bounded(flow: Flow, trips: RoundTrips, initial: int) -> Iterator[Bounded]:
    """Every SD the open IUT sent, with the largest window the rules permit it then.

    Args:
        flow: the connection.
        trips: what the IUT can have measured.
        initial: its declared initial window, SMSS.
    """
    sender, established = flow.sender, flow.established
    if sender is None or established is None:
        return
    size = smss(flow)
    # An initial window that exceeds what is declared is a finding of its own.
    begin = float(max(min(initial, MOST_INITIAL_WINDOW) * size, initial_flight(flow)))
    sure = shows_smss(flow)
    early, grown = _Window(size, begin, sure, early=True), _Window(size, begin, sure, unused=True)
    windows = _Window(size, begin, sure), early, grown
    replay = _Replay(flow, trips, *windows, heard=established)
    sent = _Sent(flow)
    for event in flow.events:
        if isinstance(event, SdSent):
            if event.time >= established and event.stp.type != BEGIN:
                yield replay.sends(event)
            else:
                replay.last_sent[event.number] = event.frame
        elif isinstance(event, PollSent):
            replay.polls(event)
        elif isinstance(event, ReportHeard) and not event.fault:
            octets = sum(max(len(sender.data[number]), 1) for number in event.arrived)
            unread = sent.within(event.time, event.time + flow.due_s)
            replay.hears(event, octets, unread)
