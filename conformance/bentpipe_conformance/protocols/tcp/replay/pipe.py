"""What RFC 6675 permits and prefers at each moment of a recovery with SACK, computed from packets.

The algorithm of RFC 6675 section 5 depends on nothing hidden but cwnd: HighRxt and RescueRxt follow
from what was retransmitted, *pipe* and NextSeg() from that and from the SACK blocks received.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import disturbed_at
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    ROUND_TRIP_SHARE,
    Episode,
    least_timeout,
)
from bentpipe_conformance.protocols.tcp.replay.round_trips import timed_rtt
from bentpipe_conformance.protocols.tcp.replay.scoreboard import AT_ONCE_S
from bentpipe_conformance.protocols.tcp.replay.users import always_sends, largest_segment


@dataclass(frozen=True, slots=True)
class Choice:
    """The situation of a sender in recovery before it sends, and what NextSeg() offers.

    Attributes:
        pipe: octets in the network (SetPipe of RFC 6675 section 4).
        least: the same if everything sent before what was delivered last counts as lost, as it may
            for a sender that judges by time (RFC 8985 section 6.2).
        high_rxt: one past the highest octet retransmitted in this recovery.
        highest: one past the highest octet held.
        lost: rule 1: the lowest range that counts as lost and was not retransmitted.
        doubtful: rule 3: the lowest range below ``highest`` that was not retransmitted.
        tail: rule 4: the highest outstanding range not held, while no rescue has repeated it.
        rescued: whether the recovery has made its rescue retransmission.
    """

    pipe: int
    least: int
    high_rxt: int
    highest: int
    lost: Range | None
    doubtful: Range | None
    tail: Range | None
    rescued: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A segment sent in a recovery, and the situation just before it."""

    sent: Sent
    before: Choice
    delivered: int
    """Octets reported delivered since the recovery began, its trigger's own included."""
    out: int
    """Octets sent in the recovery before this segment."""


@dataclass(frozen=True, slots=True)
class Rest:
    """An acknowledgment in a recovery, and the situation once it had been answered.

    Attributes:
        ack: the acknowledgment.
        after: the situation.
        window_edge: right edge offered last, which may have moved back.
        until: when the next acknowledgment came.
        top: snd_max.
    """

    ack: Ack
    after: Choice
    window_edge: int
    until: float
    top: int


@dataclass(slots=True, eq=False)
class Recovery:
    """A recovery with SACK that acknowledgments started, up to where a timer may have expired.

    Attributes:
        episode: the recovery.
        flight: octets outstanding at its beginning without those of limited transmit, which RFC
            5681 section 3.2 step 2 leaves out.
        most: the same with what a window may have let out that opened with a report.
        steps: what was sent in it, the first retransmission left out.
        rests: its acknowledgments but for the one that ends it.
    """

    episode: Episode
    flight: int
    most: int
    steps: list[Step] = field(default_factory=list)
    rests: list[Rest] = field(default_factory=list)


def loss_edge(held: Sequence[Range], una: int, smss: int) -> int:
    """Everything not held below this offset counts as lost (IsLost of RFC 6675 section 4)."""
    total = 0
    for count, (left, right) in enumerate(reversed(held), 1):
        total += right - left
        if count >= DUPLICATE_THRESHOLD or total > (DUPLICATE_THRESHOLD - 1) * smss:
            return left
    return una


class _Tracker:
    def __init__(
        self, episode: Episode, flights: tuple[int, int], smss: int, originals: Sequence[Sent]
    ) -> None:
        self.recovery = Recovery(episode, *flights)
        self._smss = smss
        self._originals = originals
        self._again: list[Sent] = []
        self._newest = 0
        self._una = episode.first.una
        self._max = episode.first.max
        self._held: tuple[Range, ...] = episode.first.sacked
        self._high_rxt = self._una
        self._rescued = False
        self._repeated: dict[int, float] = {}
        self._out = self._delivered = 0
        if episode.trigger is not None:
            self._delivered = episode.trigger.advance + episode.trigger.newly_sacked
        self._deliver(RangeSet(self._held))

    def _deliver(self, ranges: RangeSet) -> None:
        """Note which transmission was delivered last, taken to be the latest of its octets."""
        found = [item for item in self._again if ranges.overlap(item.start, item.end)]
        for _, top in ranges.snapshot()[-1:]:
            at = bisect_left(self._originals, top, key=lambda item: item.start)
            found += self._originals[max(0, at - 1) : at]
        self._newest = max([self._newest, *(item.packet.number for item in found)])
        self._again = [item for item in self._again if item.packet.number > self._newest]

    def _least(self, gaps: Sequence[Range]) -> int:
        """Octets of gaps that left after what was delivered last."""
        at = bisect_right(self._originals, self._newest, key=lambda item: item.packet.number)
        later = self._originals[at].start if at < len(self._originals) else self._max
        again = RangeSet()
        for item in self._again:
            again.add(item.start, min(item.end, later))
        repeated = sum(again.overlap(left, right) for left, right in gaps)
        return repeated + sum(max(0, right - max(left, later)) for left, right in gaps)

    def _first_gap(self, held: RangeSet, end: int) -> Range | None:
        gap = held.first_gap(max(self._high_rxt, self._una), end)
        return None if gap is None else (gap[0], min(gap[1], gap[0] + self._smss))

    def choice(self) -> Choice:
        """The situation now."""
        edge = loss_edge(self._held, self._una, self._smss)
        highest = self._held[-1][1] if self._held else self._una
        held = RangeSet(self._held)
        gaps = held.gaps(self._una, self._max)
        again = sum(max(0, min(right, self._high_rxt) - left) for left, right in gaps)
        above = sum(max(0, right - max(left, edge)) for left, right in gaps)
        tail = gaps[-1] if gaps and gaps[-1][1] > self._high_rxt and not self._rescued else None
        return Choice(
            above + again, self._least(gaps), self._high_rxt, highest, self._first_gap(held, edge),
            self._first_gap(held, highest), tail, self._rescued,
        )  # fmt: skip

    def may_be_timed(self, sent: Sent, rtt: float, progress: float) -> bool:
        """Whether a timer may have sent a segment.

        That of RFC 6298 runs since ``progress`` for a round trip or more, whatever has been
        retransmitted meanwhile; any other waits for a round trip after a transmission.
        """
        before = self._repeated.get(sent.start, math.inf)
        chance = sent.since_arrival > AT_ONCE_S or sent.time - progress >= least_timeout(rtt)
        since = min(before, progress) if chance and sent.start == sent.una else before
        return sent.timed or sent.time - since >= ROUND_TRIP_SHARE * rtt

    def sent(self, sent: Sent) -> None:
        """A segment left."""
        if sent.retransmission:
            self._repeated[sent.start] = sent.time
        if sent is not self.recovery.episode.first:
            self.recovery.steps.append(Step(sent, self.choice(), self._delivered, self._out))
        if sent.retransmission:
            self._again.append(sent)
        highest = self._held[-1][1] if self._held else self._una
        if sent.retransmission and (sent.end <= highest or sent is self.recovery.episode.first):
            self._high_rxt = max(self._high_rxt, sent.end)
        elif sent.retransmission:
            self._rescued = True
        self._max = max(self._max, sent.end)
        self._out += sent.length

    def acknowledged(self, ack: Ack) -> None:
        """An acknowledgment arrived."""
        if ack.acceptable:
            reported = RangeSet(self._held).overlap(self._una, ack.ack)
            self._delivered += ack.newly_sacked + ack.advance - reported
            before = RangeSet(self._held)
            self._deliver(
                RangeSet(
                    tuple(
                        gap
                        for left, right in ((self._una, ack.ack), *ack.sacked)
                        for gap in before.gaps(left, right)
                    )
                )
            )
            self._una = max(self._una, ack.ack)
            self._held = ack.sacked

    def rest(self, ack: Ack, edge: int, until: float) -> None:
        """Everything that an acknowledgment clocked out has left."""
        self.recovery.rests.append(Rest(ack, self.choice(), edge, until, self._max))


def reneges(ack: Ack) -> bool:
    """Whether the receiver no longer holds what it had reported (RFC 2018 section 8)."""
    return bool(ack.sacked) and ack.sacked[0][0] <= ack.ack < ack.max


def read_recoveries(flow: Flow, episodes: Sequence[Episode]) -> tuple[Recovery, ...]:
    """The recoveries with SACK of a flow, in order, that acknowledgments certainly started.

    None where no segment shows SMSS, on which it depends what counts as lost.
    """
    smss = largest_segment(flow)
    if not flow.handshake.sack or smss > flow.segment:
        return ()
    begun = {
        episode.first: episode
        for episode in episodes
        if episode.fast and not episode.nested and not episode.first.timed
        and disturbed_at(episode) > -math.inf
    }  # fmt: skip
    busy = always_sends(flow)
    others = {episode.first for episode in episodes} - set(begun)
    found: list[Recovery] = []
    originals: list[Sent] = []
    tracker: _Tracker | None = None
    extra = opened = edge = 0
    opening = False
    progress = 0.0
    last: Ack | None = None
    for event in flow.until_reset:
        if isinstance(event, Ack):
            if tracker is not None and last is not None:
                tracker.rest(last, edge, event.time)
            last = None
            if tracker is not None and (event is tracker.recovery.episode.end or reneges(event)):
                tracker = None
            if event.acceptable:
                opening, edge = event.window_edge > edge, event.window_edge
                extra, opened = (0, 0) if event.advance else (extra, opened)
            if event.advance:
                progress = event.time
            if tracker is not None:
                tracker.acknowledged(event)
                last = event
        elif isinstance(event, Sent):
            if not event.flight:
                progress = event.time
            if not event.retransmission:
                originals.append(event)
            if event in begun:
                flights = event.flight - extra, event.flight - extra + opened
                tracker = _Tracker(begun[event], flights, smss, originals)
                found.append(tracker.recovery)
                last = event.cause
            elif tracker is not None and (
                event in others
                or event.time >= tracker.recovery.episode.timer
                or tracker.may_be_timed(event, timed_rtt(flow, event.time), progress)
            ):
                tracker = None
            if tracker is not None:
                tracker.sent(event)
            elif event.new and busy and (ack := event.cause) is not None:
                # What a user has just written may leave on a duplicate by chance.
                by_report = event.length if ack.newly_sacked and not ack.advance else 0
                extra += by_report
                opened += by_report if opening else 0
    return tuple(found)
