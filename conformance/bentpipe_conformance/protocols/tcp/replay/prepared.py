"""What checkers may know of a connection besides its events, computed when first asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cache, cached_property, partial
from operator import attrgetter

from bentpipe_conformance.protocols.tcp.replay.aftermath import Aftermath, read_aftermaths
from bentpipe_conformance.protocols.tcp.replay.bounds import Bound, read_bounds
from bentpipe_conformance.protocols.tcp.replay.closures import Closure, read_closures
from bentpipe_conformance.protocols.tcp.replay.estimates import Estimate, read_estimates
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import Lifetime, read_lifetime
from bentpipe_conformance.protocols.tcp.replay.moments import Moment, read_moments
from bentpipe_conformance.protocols.tcp.replay.pipe import Recovery, read_recoveries
from bentpipe_conformance.protocols.tcp.replay.recovery import Episode, read_episodes
from bentpipe_conformance.protocols.tcp.replay.scoreboard import Scoreboard, read_scoreboard
from bentpipe_conformance.protocols.tcp.replay.timeouts import read_expiries
from bentpipe_conformance.protocols.tcp.replay.waits import Wait, read_waits


class Prepared:
    """What several checkers ask of one connection.

    Attributes:
        expiries: what its timers retransmitted, given whether acknowledgments are answered at
            once; see :func:`.timeouts.read_expiries`.
        aftermaths: the accounts of those that are certain, given the same.
        bounds: what was sent outside recovery with the largest window it may have met, given how
            many segments one acknowledgment may add; see :func:`.bounds.read_bounds`.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.expiries = cache(partial(read_expiries, flow))
        self.aftermaths = cache(self._read_aftermaths)
        self.bounds = cache(self._read_bounds)

    def _read_aftermaths(self, at_once: bool) -> tuple[Aftermath, ...]:
        return read_aftermaths(self._flow, self.expiries(at_once), at_once)

    def _read_bounds(self, growth: int) -> tuple[Bound, ...]:
        return tuple(read_bounds(self._flow, self.episodes, self.aftermaths(True), growth))

    @cached_property
    def episodes(self) -> tuple[Episode, ...]:
        """Its loss-recovery episodes, in order."""
        return tuple(read_episodes(self._flow))

    @cached_property
    def recovery_ends(self) -> frozenset[Ack]:
        """The acknowledgments that ended its episodes."""
        return frozenset(episode.end for episode in self.episodes if episode.end is not None)

    @cached_property
    def further_partial_acks(self) -> frozenset[Ack]:
        """What acknowledged new data within its fast recoveries, but for the first of each.

        Of the partial acknowledgments only the first restarts the timer for certain (RFC 6582
        section 3.2 step 3).
        """
        fast = (episode for episode in self.episodes if episode.fast)
        partial = ([ack for ack in e.acks if ack.advance and ack is not e.end] for e in fast)
        return frozenset(ack for acks in partial for ack in acks[1:])

    @cached_property
    def unrepaired_ends(self) -> tuple[Ack, ...]:
        """Where recoveries end, or may end, that leave something held above a hole, in order.

        If all holes had been repaired, the next begins there without a sign of it, and may end so.
        """
        found: list[Ack] = []
        for ack in self._flow.acks:
            hidden = bool(found) and ack.una < found[-1].max <= ack.ack
            if ack.sacked and ack.acceptable and (hidden or ack in self.recovery_ends):
                found.append(ack)
        return tuple(found)

    def may_continue(self, first: Sent) -> bool:
        """Whether what a retransmission seems to begin may have begun at such an end."""
        ends = self.unrepaired_ends
        before = bisect_right(ends, first.time, key=attrgetter("packet.time"))
        # What a later one left missing lies no lower.
        return before > 0 and first.una < ends[before - 1].max

    @cached_property
    def recoveries(self) -> tuple[Recovery, ...]:
        """Its recoveries with SACK beside RFC 6675."""
        return read_recoveries(self._flow, self.episodes)

    @cached_property
    def moments(self) -> tuple[Moment, ...]:
        """Its acknowledgments with what preceded each."""
        return tuple(read_moments(self._flow, self.episodes))

    @cached_property
    def lifetime(self) -> Lifetime:
        """When it began and ended."""
        return read_lifetime(self._flow)

    @cached_property
    def closures(self) -> tuple[Closure, ...]:
        """The times during which the receiver offered no window."""
        return read_closures(self._flow)

    @cached_property
    def _timer(self) -> tuple[Mapping[Sent, Estimate], tuple[Wait, ...]]:
        found = read_estimates(self._flow)
        return found.alone, read_waits(self._flow, found.longest)

    @property
    def estimates(self) -> Mapping[Sent, Estimate]:
        """The timeouts that RFC 6298 computes for segments that leave alone."""
        return self._timer[0]

    @property
    def waits(self) -> tuple[Wait, ...]:
        """How long its retransmission timer ran."""
        return self._timer[1]

    @cached_property
    def scoreboard(self) -> Scoreboard:
        """What its scoreboard must and may have said."""
        return read_scoreboard(self._flow, self.episodes, self._flow.timing_error)
