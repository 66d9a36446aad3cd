"""The largest congestion window that RFC 5681 permits at each moment, computed from packets.

The window is hidden, but what raises and lowers it is not: acknowledgments of new data, recoveries,
timeouts and idle times. :func:`read_bounds` takes of everything left open the choice that permits
most. Where packets do not show which of these happened the bound is infinite, until the next
reduction that they show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.protocols.tcp.replay.aftermath import Aftermath
from bentpipe_conformance.protocols.tcp.replay.direction import older
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent, octets
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import disturbed_at
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    Cause,
    Episode,
    all_came_twice,
    soonest_timeout,
)
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.users import always_sends, largest_segment

SHARE = 0.5
"""Of what was outstanding remains as ssthresh (RFC 5681 equation 4)."""

SHORTEST_IDLENESS_S = 0.2
"""The shortest retransmission timeout in use, after which a restart window may apply."""


class Phase(StrEnum):
    """What bounds the window."""

    OPENING = "since the connection opened"
    RESTART = "at the restart after idleness"
    RECOVERED = "in the round trip after recovery"
    AVOIDANCE = "in congestion avoidance after recovery"
    REPAIR = "in slow start after a timeout"
    REPAIRED = "in congestion avoidance after a timeout"


@dataclass(frozen=True, slots=True)
class Bound:
    """A segment sent outside recovery and the largest window that it may have met.

    Attributes:
        sent: the segment.
        network: octets in the network after it.
        limit: octets that the largest window permits.
        phase: what bounds it.
        since: the event that did, None for the opening of the connection.
    """

    sent: Sent
    network: int
    limit: float
    phase: Phase
    since: Ack | Sent | None


class _Window:
    def __init__(
        self, flow: Flow, episodes: Sequence[Episode], aftermaths: Sequence[Aftermath], growth: int
    ) -> None:
        self.flow = flow
        self.smss = largest_segment(flow)
        self.rtt = minimum_rtt(flow)
        self.growth = growth
        self.cwnd = self.ssthresh = math.inf
        self.phase = Phase.OPENING
        self.since: Ack | Sent | None = None
        # What looks like a reordering timer's may be a timeout soon after a report.
        self.fast = {
            e.first: e
            for e in episodes
            if e.fast and e.cause is not Cause.REORDER_TIMER and not e.nested
            and disturbed_at(e) == math.inf
        }  # fmt: skip
        self.begun = {e.first for e in episodes}
        self.ends = {e.end: e for e in self.fast.values() if e.end is not None}
        self.timeouts = {item.expiry.sent: item for item in aftermaths}
        self.pipes = {step.sent: step.pipe for item in aftermaths for step in item.steps}
        self.recovering = False
        self.recover = -1
        self.round_end = -1
        self.restarting = False
        self.extra = 0
        self.edge = 0
        self.opening = False
        self.again = RangeSet()
        self.twice = RangeSet()
        self.stamp: int | None = None

    def unknown(self) -> None:
        """Something may have happened that makes the window larger than is known."""
        self.cwnd = self.ssthresh = math.inf
        self.recovering = False

    def _reduced(self, phase: Phase, since: Ack | Sent) -> None:
        self.phase, self.since, self.restarting = phase, since, False

    def _half(self, flight: int) -> float:
        return max(SHARE * flight, 2 * self.smss)

    def acknowledged(self, ack: Ack) -> None:
        """An acknowledgment arrived."""
        if ack.beyond or (ack.ancient and not ack.dsack):
            return
        self.opening, self.edge = ack.window_edge > self.edge, max(self.edge, ack.window_edge)
        if self._may_be_undone(ack):
            self.unknown()
        repairing = ack.una < self.recover
        if repairing and ack.duplicates >= DUPLICATE_THRESHOLD and ack.duplicate:
            self.unknown()  # a fast recovery within the repair of a timeout
        if ack.ack <= ack.una:
            return
        self.extra = 0
        self.restarting = False
        episode = self.ends.get(ack)
        if episode is not None and self.recovering:
            self.recovering = False
            self.cwnd = self.ssthresh
            self.round_end = ack.round_end
            self._reduced(Phase.RECOVERED, ack)
        elif not self.recovering:
            self._grow(ack.ack - ack.una, 1 if repairing else self.growth)
            if self.phase is Phase.RECOVERED and ack.ack >= self.round_end:
                self.phase = Phase.AVOIDANCE
        if ack.ack >= self.recover:
            self.recover = -1

    def _grow(self, advance: int, most: int) -> None:
        if self.cwnd == math.inf:
            return
        # What equation 3 adds, or one segment for each window of octets: whichever is more.
        slowly = max(advance, self.smss) * self.smss / self.cwnd
        if self.cwnd > self.ssthresh:
            self.cwnd += slowly
            return
        # Where the two are equal either applies.
        before = self.cwnd
        quickly = min(max(advance, self.smss), most * self.smss)
        self.cwnd += max(quickly, slowly) if before == self.ssthresh else quickly
        if self.cwnd > self.ssthresh:
            # Another window may reach ssthresh exactly, and take one more step of slow start.
            self.cwnd = max(self.cwnd, self.ssthresh + most * self.smss)
            self.phase = Phase.REPAIRED if self.phase is Phase.REPAIR else self.phase

    def _may_be_undone(self, ack: Ack) -> bool:
        """Whether what was retransmitted last is known to have been needless.

        All of it is reported twice (RFC 3708 section 2), or the acknowledgment echoes what was sent
        before it (RFC 3522).
        """
        if ack.dsack is not None and self.again:
            self.twice.add(*ack.dsack)
            if all_came_twice(self.again, self.twice):
                return True
        echoed = ack.tcp.tsecr
        if not ack.advance or echoed is None or self.stamp is None:
            return False
        return older(echoed, self.stamp)

    def sent(self, sent: Sent) -> Bound | None:
        """A segment left; the bound that it should have kept."""
        if sent.retransmission and (sent in self.begun or not sent.probed):
            self._retransmitted(sent)
        if not sent.flight:
            self._began(sent)
        if self.recovering:
            return None
        found = self._bound(sent)
        if sent.new and self._by_duplicate(sent.cause):
            # RFC 5681 section 3.2 step 2: limited transmit's segments are not halved.
            self.extra += sent.length
        return found

    def _by_duplicate(self, ack: Ack | None) -> bool:
        """Whether a duplicate lets data out; what a user has just written may by chance.

        A window that opens, too, lets out what was not outstanding before.
        """
        if ack is None or ack.advance or self.opening or not always_sends(self.flow):
            return False
        return ack.newly_sacked > 0 if self.flow.handshake.sack else ack.duplicate

    def _retransmitted(self, sent: Sent) -> None:
        first = sent in self.begun or sent in self.timeouts
        if first:
            self.again, self.twice = RangeSet(), RangeSet()
            self.stamp = sent.tcp.tsval
        self.again.add(sent.start, sent.end)
        if sent in self.fast:
            self.ssthresh = self._half(sent.flight - self.extra)
            self.recovering, self.recover = True, -1
        elif sent in self.timeouts:
            # Further timeouts of a segment leave ssthresh as it is.
            if self.timeouts[sent].expiry.rank == 1 or self.ssthresh == math.inf:
                self.ssthresh = self._half(sent.flight)
            self.cwnd = self.smss
            self.recovering, self.recover = False, sent.max
            self._reduced(Phase.REPAIR, sent)
        elif first or not (self.recovering or sent.start < self.recover):
            self.unknown()

    def _began(self, sent: Sent) -> None:
        idle = max(soonest_timeout(self.rtt), SHORTEST_IDLENESS_S)
        if sent.since_sent > idle and sent.since_sent < math.inf:
            self.restarting, self.since = True, sent

    def _bound(self, sent: Sent) -> Bound | None:
        if self.cwnd == math.inf:
            return None
        if sent.una < self.recover:
            pipe = self.pipes.get(sent)
            if pipe is None:
                return None
            return Bound(sent, pipe, self.cwnd, self.phase, self.since)
        if sent.retransmission:
            return None
        network = sent.end - sent.possible[1] - octets(sent.sacked)
        limit = self.cwnd
        if sent.duplicates and not sent.sacked:
            # RFC 3042 section 2: what duplicates let out may exceed the window by two segments,
            # some of which may be left of those that earlier duplicates let out.
            limit += (DUPLICATE_THRESHOLD - 1) * self.smss
        phase = Phase.RESTART if self.restarting else self.phase
        return Bound(sent, network, limit, phase, self.since)


def read_bounds(
    flow: Flow, episodes: Sequence[Episode], aftermaths: Sequence[Aftermath], growth: int
) -> Iterator[Bound]:
    """What was sent outside recovery, each with the largest window that it may have met.

    Args:
        flow: the connection.
        episodes: its recovery episodes.
        aftermaths: the accounts of its timeouts.
        growth: segments that one acknowledgment may add in slow start (RFC 3465 section 2.2).
    """
    window = _Window(flow, episodes, aftermaths, growth)
    for event in flow.until_reset:
        if isinstance(event, Ack):
            window.acknowledged(event)
        elif isinstance(event, Sent) and (bound := window.sent(event)) is not None:
            yield bound
