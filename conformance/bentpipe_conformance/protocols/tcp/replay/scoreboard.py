"""What an implementation's scoreboard must and may have said at each retransmission.

:func:`read_scoreboard` walks a flow once and notes, for every retransmission and every
acknowledgment, what follows from the packets alone. In doubt it favours the implementation: data
is *held* only when a report reached the implementation long enough ago and nothing since permitted
it to forget; everything ever reported counts as *evidence* of a loss below it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from functools import cached_property

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.protocols.tcp.codec import nearest
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import REACTION_S, Flow
from bentpipe_conformance.protocols.tcp.replay.option_list import options_length
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    ROUND_TRIP_SHARE,
    Cause,
    Episode,
    least_timeout,
    reports_something,
    soonest_timeout,
)
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt, timed_rtt
from bentpipe_conformance.protocols.tcp.replay.users import largest_segment

RACE_S = 0.001
"""A segment may leave this long after a report arrived and still not know of it.

A bed that is late by some time can delay the implementation as well, several times over; hence ten
times its timing error is added.
"""

AT_ONCE_S = 0.0001
"""What leaves so soon after an arrival answers it."""


@dataclass(slots=True, eq=False)
class Repeat:
    """One retransmission and what was known when it left.

    Attributes:
        sent: the segment.
        age: seconds since its first octet was last sent.
        repeats: how often it had been retransmitted since the last possible timeout.
        timer: whether a timeout or a probe may have sent it.
        forgiven: a timeout or reneging may have made the sender forget since its last transmission.
        going_back: the sender repeats from una after what was certainly a timeout.
        reported: something is certainly known to be held.
        held: the whole of it is certainly known to be held.
        missing: something has been reported held, but not the whole of it.
        above: octets reported held above it.
        runs: separate ranges reported held above it.
        highest: highest offset reported held, exclusive; 0 when there is none.
        delivered_later: data sent after its last transmission is known to have arrived.
        duplicates: duplicate acknowledgments in a row, by RFC 5681 or by RFC 6675, counting those
            that met what was being sent.
        tail: it ends where the highest outstanding hole ends, its options not counted.
        lower: start of a lower segment that is neither held nor retransmitted, None without one.
        reordered: reordering or an unnecessary retransmission has been seen on this path.
    """

    sent: Sent
    age: float
    repeats: int
    timer: bool
    forgiven: bool
    going_back: bool
    reported: bool
    held: bool
    missing: bool
    above: int
    runs: int
    highest: int
    delivered_later: bool
    duplicates: int
    tail: bool
    lower: int | None
    reordered: bool


@dataclass(slots=True, eq=False)
class Report:
    """An acknowledgment and what it leaves to repair.

    Attributes:
        ack: the acknowledgment.
        eligible: starts of the segments HK99's rule 5 makes eligible by what is held, lowest first.
        holes: how many segments below the highest held octet are not held.
        above: octets reported held above the lowest outstanding segment.
        una_repeats: how often the lowest outstanding segment has been retransmitted.
        reordered: reordering or an unnecessary retransmission has been seen on this path.
        forgiven: a timeout or reneging may be in progress.
    """

    ack: Ack
    eligible: tuple[int, ...]
    holes: int
    above: int
    una_repeats: int
    reordered: bool
    forgiven: bool


@dataclass(eq=False)
class Scoreboard:
    """All retransmissions, and acknowledgments that leave or report anything, in time order."""

    repeats: list[Repeat]
    reports: list[Report]
    rtt: float

    @cached_property
    def repeat_of(self) -> dict[Sent, Repeat]:
        """The retransmissions by segment."""
        return {repeat.sent: repeat for repeat in self.repeats}

    @cached_property
    def report_of(self) -> dict[Ack, Report]:
        """The reports by acknowledgment."""
        return {report.ack: report for report in self.reports}

    def timed(self, sent: Sent) -> bool:
        """Whether a timeout or a probe may have sent a retransmission."""
        return sent in self.repeat_of and self.repeat_of[sent].timer


@dataclass(slots=True)
class _Segment:
    start: int
    end: int
    order: int
    time: float
    epoch: int
    repeats: int = 0
    total: int = 0
    stamp: int | None = None  # of its first retransmission


class _Replay:
    def __init__(self, flow: Flow, episodes: tuple[Episode, ...], timing_error: float) -> None:
        self.flow = flow
        self.race = RACE_S + 10 * timing_error
        self.rtt = minimum_rtt(flow)
        self.timeouts = {e.first for e in episodes if e.cause is Cause.TIMEOUT}
        self.starts: list[int] = []
        self.unrepeated: list[int] = []  # of those the ones that have left once
        self.segments: dict[int, _Segment] = {}
        self.order = self.latest = -1
        self.epoch = 0
        self.forgive_until = self.back_until = -1
        self.forgiven_order = -1
        self.progress = 0.0
        self.certain = RangeSet()
        self.pending: deque[tuple[float, int, int]] = deque()
        self.evidence = RangeSet()
        self.heeded = 0  # how far what cannot have been dropped has reported
        self.una = 0
        self.sack_duplicates = 0
        self.early = 0
        self.bare: list[float] = []
        self.reordered = False
        self.repeats: list[Repeat] = []
        self.reports: list[Report] = []

    def run(self) -> Scoreboard:
        for event in self.flow.events:
            if isinstance(event, Sent):
                self._sent(event)
            elif isinstance(event, Ack):
                self._ack(event)
        return Scoreboard(self.repeats, self.reports, self.rtt)

    # -- leaving

    def _sent(self, sent: Sent) -> None:
        self.order += 1
        if sent.flight == 0:
            self.progress = sent.time
            # What arrived while this was on its way to the capture met it outstanding.
            self.early = sum(sent.time - time <= REACTION_S for time in self.bare)
            self.bare.clear()
        if sent.retransmission and sent.end > sent.una:
            self._repeat(sent)
        elif sent.retransmission:
            self._forgive(sent.max)  # a timeout crossed the acknowledgment that just arrived
        self._record(sent)

    def _repeat(self, sent: Sent) -> None:
        while self.pending and self.pending[0][0] <= sent.time - self.race:
            _, left, right = self.pending.popleft()
            self.certain.add(left, right)
        self.certain.remove_below(self.una)
        at_una = sent.start <= sent.una < sent.end
        known = self.segments.get(sent.start)
        last_order = known.order if known else -1
        definite = sent in self.timeouts
        evidence = self.latest > last_order
        age = sent.time - known.time if known else float("inf")
        timeout = definite or (at_una and self._may_be_timeout(sent, evidence, age))
        timer = timeout or (sent.timed and (sent.end >= sent.max or (at_una and not evidence)))
        missing = self.evidence.gaps(sent.una, sent.max)
        snapshot = self.evidence.snapshot()
        repeats = known.repeats if known and known.epoch == self.epoch else 0
        forgiven = last_order <= self.forgiven_order or self.una < self.forgive_until
        held = self.certain.covers(sent.start, sent.end)
        absent = bool(self.evidence) and not self.evidence.covers(sent.start, sent.end)
        runs = sum(left >= sent.end for left, _ in snapshot)
        duplicates = max(sent.duplicates + self.early, self.sack_duplicates)
        # Options that the first transmission did not carry take room from the last segment.
        shortened = sent.end + options_length(sent.packet)
        tail = not missing or shortened >= missing[-1][1]
        repeat = Repeat(
            sent, age, repeats, timer, forgiven, self.una < self.back_until, bool(self.certain),
            held, absent, self.evidence.above(sent.end), runs, snapshot[-1][1] if snapshot else 0,
            evidence, duplicates, tail, self._lower(sent.start), self.reordered,
        )  # fmt: skip
        self.repeats.append(repeat)
        if timeout:
            self._forgive(sent.max)
            if definite:
                self.back_until = sent.max
        if timer and at_una:
            self.certain.clear()
            self.pending.clear()

    def _may_be_timeout(self, sent: Sent, evidence: bool, age: float) -> bool:
        """Whether a retransmission at una could be a timeout that coincided with an arrival.

        A timer of its own starts when the segment leaves, whatever progress there is then.
        """
        waited = sent.time - self.progress
        if waited >= 2 * self.rtt + 0.5 or (sent.timed and age >= soonest_timeout(self.rtt)):
            return True
        rtt = timed_rtt(self.flow, sent.time)
        unprompted = sent.timed or sent.transmission > 2 or not evidence
        # What reports nothing causes no retransmission, however soon that follows.
        if not unprompted and sent.since_arrival <= AT_ONCE_S and reports_something(sent.cause):
            return waited >= least_timeout(rtt)
        return waited >= (ROUND_TRIP_SHARE * rtt if unprompted else soonest_timeout(rtt))

    def _forgive(self, until: int) -> None:
        self.forgiven_order = self.order
        self.forgive_until = max(self.forgive_until, until)
        self.epoch += 1
        self.certain.clear()
        self.pending.clear()

    def _lower(self, bound: int) -> int | None:
        left = self.una
        while (gap := self.evidence.first_gap(left, bound)) is not None:
            begin, left = gap
            at = bisect_left(self.unrepeated, begin)
            if at < len(self.unrepeated) and self.segments[self.unrepeated[at]].end <= left:
                return self.unrepeated[at]
        return None

    def _record(self, sent: Sent) -> None:
        first, last = bisect_left(self.starts, sent.start), bisect_left(self.starts, sent.end)
        for start in self.starts[first:last]:
            segment = self.segments[start]
            segment.order, segment.time = self.order, sent.time
            if segment.epoch != self.epoch:
                segment.epoch, segment.repeats = self.epoch, 0
            segment.repeats += 1
            if not segment.total:
                del self.unrepeated[bisect_left(self.unrepeated, start)]
            segment.total += 1
            segment.stamp = sent.tcp.tsval if segment.stamp is None else segment.stamp
        if sent.start not in self.segments:
            again = int(sent.retransmission)
            self.segments[sent.start] = _Segment(
                sent.start, sent.end, self.order, sent.time, self.epoch, again, again,
                sent.tcp.tsval if again else None,
            )  # fmt: skip
            insort(self.starts, sent.start)
            if not again:
                insort(self.unrepeated, sent.start)

    # -- arriving

    def _ack(self, ack: Ack) -> None:
        if ack.beyond:
            self._report(ack)
            return
        fresh = 0
        for block in sorted(ack.blocks):  # what comes in one report shows no reordering
            for left, right in self.evidence.gaps(*block):
                fresh += right - left
                self._delivered(left, right, ack.time)
            self.evidence.add(*block)
            if ack.acceptable:
                self.pending.append((ack.time, *block))
            if not (ack.rejected or ack.may_refuse):
                self.heeded = max(self.heeded, block[1])
        if ack.dsack is not None:
            self.reordered = True
        if ack.advance:
            self._advance(ack)
        elif fresh:
            self.sack_duplicates += 1
        elif ack.acceptable and ack.max == ack.ack and not ack.tcp.length:
            self.bare.append(ack.time)
        if ack.sacked and ack.sacked[0][0] <= self.una < ack.max:
            self._forgive(ack.max)  # the receiver reneged: it holds what it does not acknowledge
        self._report(ack)

    def _advance(self, ack: Ack) -> None:
        if ack.una < self.forgive_until <= ack.ack:
            self.epoch += 1
        for left, right in self.evidence.gaps(ack.una, ack.ack):
            self._delivered(left, right, ack.time)
        self.una = ack.ack
        self.progress = ack.time
        self.sack_duplicates = 0
        self.early = 0
        self.bare.clear()
        self.evidence.remove_below(ack.ack)
        done = bisect_left(self.starts, ack.ack)
        kept = [start for start in self.starts[:done] if self.segments[start].end > ack.ack]
        for start in set(self.starts[:done]).difference(kept):
            # An echo older than the retransmission is that of the original (RFC 3522).
            stamp, echo = self.segments[start].stamp, ack.tcp.tsecr
            if stamp is not None and echo is not None and nearest(echo - stamp, 0) < 0:
                self.reordered = True
            del self.segments[start]
        self.starts[:done] = kept
        done = bisect_left(self.unrepeated, ack.ack)
        self.unrepeated[:done] = [start for start in kept if not self.segments[start].total]

    def _delivered(self, left: int, right: int, now: float) -> None:
        highest = self.evidence.snapshot()[-1][1] if self.evidence else 0
        first = max(0, bisect_left(self.starts, left) - 1)
        for start in self.starts[first : bisect_left(self.starts, right)]:
            segment = self.segments[start]
            if segment.end <= left:
                continue
            self.latest = max(self.latest, segment.order)
            # A retransmission cannot be acknowledged within a round trip: the original arrived.
            if segment.total:
                self.reordered |= now - segment.time < 0.9 * self.rtt
            else:
                self.reordered |= segment.end <= highest

    def _report(self, ack: Ack) -> None:
        lowest = self.segments[self.starts[0]] if self.starts else None
        eligible: list[int] = []
        holes = above = 0
        if self.evidence and lowest is not None:
            highest = self.evidence.snapshot()[-1][1]
            reach = DUPLICATE_THRESHOLD * largest_segment(self.flow)
            for left, right in self.evidence.gaps(lowest.start, highest):
                first, last = (bisect_left(self.starts, bound) for bound in (left, right))
                for start in self.starts[first:last]:
                    segment = self.segments[start]
                    if segment.end > right:
                        continue
                    holes += 1
                    repeated = segment.repeats if segment.epoch == self.epoch else 0
                    if not repeated and min(highest, self.heeded) > start + reach:
                        eligible.append(start)
            above = self.evidence.above(lowest.end)
        total = lowest.total if lowest else 0
        forgiven = self.una < self.forgive_until
        if ack.newly_sacked or eligible or holes or above or total or forgiven:
            report = Report(ack, tuple(eligible), holes, above, total, self.reordered, forgiven)
            self.reports.append(report)


def read_scoreboard(
    flow: Flow, episodes: tuple[Episode, ...], timing_error: float = 0.0
) -> Scoreboard:
    """What the scoreboard of a flow said, given by how much recorded times may be wrong."""
    return _Replay(flow, episodes, timing_error).run()
