"""Checkers for how far recovery reduces the window (SNR-FR-009, SNR-REC-002, -005).

The congestion window is hidden; the data outstanding shows it while the sender is limited by it.
So only episodes are judged whose flight was at its peak when they began and was not held down by
the receiver's window.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, at_most
from bentpipe_conformance.protocols.tcp.checkers.window_bounds import exceeded
from bentpipe_conformance.protocols.tcp.checkers.window_inflation import (
    sent_by_duplicates,
    share_left,
)
from bentpipe_conformance.protocols.tcp.replay.bounds import Phase
from bentpipe_conformance.protocols.tcp.replay.events import (
    Ack,
    Sent,
    octets,
)
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import (
    acts_at_once,
    disturbed_at,
)
from bentpipe_conformance.protocols.tcp.replay.order import count_before, count_through
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    PROMPT_S,
    ROUND_TRIP_SHARE,
    Episode,
    may_be_undone,
)
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.users import (
    largest_segment,
    last_before_reports,
    may_be_last,
    may_have_been_full,
    never_short_of_data,
    short_of_data,
    smss_may_vary,
    was_paced_below,
)

AT_EXIT_RTTS = 0.25
"""How long after an exit the window counts as not yet grown again."""

SMALLEST_FLIGHT = 8
"""Segments; below this, a reduced flight and a whole one are too similar."""

SMALLEST_FLIGHT_TO_GROW = 12
"""Segments; below this, a window reduced once and one reduced twice are too similar."""


def _in_network(sent: Sent) -> int:
    """Octets outstanding with a segment that the receiver has not reported held."""
    return sent.outstanding - octets(sent.sacked)


class _Window:
    """What the flight of one flow shows of the window."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self.flow = flow
        self.episodes = context.prepared.episodes
        self.may_continue = context.prepared.may_continue
        self.rtt = minimum_rtt(flow)
        self.ics = context.ics
        self.finds = smss_may_vary(flow, context.ics)
        self.pushed_is_last = context.permitted("pushed_is_last", False)
        self._times = [sent.time for sent in flow.sent]

    def sent(self, start: float, end: float) -> list[Sent]:
        """Segments sent in [start, end]."""
        return self.flow.sent[bisect_left(self._times, start) : bisect_right(self._times, end)]

    def after(self, ack: Ack, end: float) -> list[Sent]:
        """Segments sent after an acknowledgment, until a time."""
        number = ack.packet.number
        return [sent for sent in self.sent(ack.time, end) if sent.packet.number > number]

    def new_after(self, episode: Episode, end: Ack, round_trips: float) -> list[Sent]:
        """New data sent within so many round trips after an episode, and before the next one."""
        until, following = end.time + round_trips * self.rtt, self.following(episode)
        before = math.inf if following is None else following.first.packet.number
        return [s for s in self.after(end, until) if s.new and s.packet.number < before]

    def shows(self, episode: Episode) -> bool:
        """Whether the flight at the beginning of an episode shows the window."""
        if self.finds:
            return False  # nor need a lost probe reduce it (RFC 4821 section 7.7)
        segment = largest_segment(self.flow)
        first, trigger = episode.first, episode.trigger
        if not episode.fast or episode.nested or episode.flight < SMALLEST_FLIGHT * segment:
            return False
        if self.may_continue(first) or was_paced_below(self.flow, first, self.ics):
            return False  # the window was reduced when more was in the network, or is larger
        edge = trigger.window_edge if trigger is not None else first.window_edge
        if edge - first.max < 2 * segment or short_of_data(self.flow, first):
            return False
        if self.pushed_is_last and may_have_been_full(self.flow, first):
            return False
        last = last_before_reports(self.flow, first)
        if last is not None and last.window_edge - last.end < 2 * segment:
            return False
        if self.pushed_is_last and last is not None and may_be_last(self.flow, last):
            return False
        return episode.flight >= 0.9 * self._peak(episode)

    def _peak(self, episode: Episode) -> int:
        """Most octets outstanding after new data since the episode before; 0 when none was sent."""
        first = episode.first
        ends = (e.end.packet for e in self.episodes if e.end)
        since = max((p.number for p in ends if p.number < first.packet.number), default=0)
        sent, until = self.flow.sent, count_before(self.flow.sent, first.packet.number)
        return max(
            (s.outstanding for s in sent[count_through(sent, since) : until] if s.new), default=0
        )

    def draining(self, episode: Episode) -> bool:
        """Whether what was outstanding when it began may be left of an earlier episode.

        Then it may exceed the window, which some senders halve (RFC 2001 section 4, RFC 9438
        section 4.6).
        """
        return not self._peak(episode)

    def complete(self, episode: Episode) -> bool:
        """Whether an acknowledgment ended it and the sender cannot know it to be spurious."""
        if episode.end is None or episode.interrupted is not None or self.rtt <= 0:
            return False
        if episode.first.timed or disturbed_at(episode) < math.inf:
            return False
        advance = next((ack for ack in episode.acks if ack.advance), episode.end)
        early = advance.time - episode.first.time < ROUND_TRIP_SHARE * self.rtt
        undone = any(may_be_undone(episode.first, ack) for ack in episode.acks)
        return not (early or undone or self._reported_twice(episode.end))

    def _reported_twice(self, end: Ack) -> bool:
        """Whether a duplicate is reported within a round trip after an episode."""
        first = count_through(self.flow.acks, end.packet.number)
        later = takewhile(lambda ack: ack.time < end.time + self.rtt, self.flow.acks[first:])
        return any(ack.dsack is not None for ack in later)

    def judgeable(self) -> Iterator[tuple[Episode, Ack]]:
        """Episodes whose reduction the flight shows, with the acknowledgment that ended each."""
        for episode in self.episodes:
            if self.shows(episode) and self.complete(episode) and episode.end is not None:
                yield episode, episode.end

    def limit(self, episode: Episode, share: float) -> float:
        """Most octets outstanding right after it, with room for rounding and early growth."""
        segment = largest_segment(self.flow)
        return max(share * episode.flight, 2 * segment) + 2 * segment + 0.1 * episode.flight

    def next_start(self, episode: Episode) -> float:
        """When the next episode begins."""
        following = self.following(episode)
        return math.inf if following is None else following.first.time

    def following(self, episode: Episode) -> Episode | None:
        """The next episode, which may begin in the same instant."""
        number = episode.first.packet.number
        return next((e for e in self.episodes if e.first.packet.number > number), None)


@checker("SNR-FR-009")
def loss_reduces_the_window(flow: Flow, context: Context) -> Findings:
    """A fast recovery reduces the window (RFC 5681 section 3.2 step 2 and equation 4)."""
    # Exercised by every complete fast recovery of a window-limited sender.
    yield from exceeded(flow, context, Phase.RECOVERED)
    share = share_left(context)
    if share is None:
        return
    window = _Window(flow, context)
    for episode, end in window.judgeable():
        after = window.new_after(episode, end, AT_EXIT_RTTS)
        limit = window.limit(episode, share)
        if not after:  # then what comes soon after an end that released nothing
            after = window.new_after(episode, end, 1.5)[:1]
            if any(sent.cause is not None and sent.cause.duplicate for sent in after):
                # Limited transmit goes beyond the window that has grown since (RFC 3042 section 2).
                limit += 2 * largest_segment(flow)
        if not after:
            continue
        largest = max(after, key=_in_network)
        flight = _in_network(largest)
        sentence = f"recovery left {flight} of {episode.flight} octets outstanding"
        yield at_most(context, flight, limit, sentence, largest, end, episode.first)


@checker("SNR-REC-002")
def one_reduction_per_recovery(flow: Flow, context: Context) -> Findings:
    """However many segments are lost, the window is reduced once (RFC 6582 section 3.2)."""
    # Exercised by recoveries of several losses, judged by how the flight grows afterwards.
    share = share_left(context)
    if share is None:
        return
    window = _Window(flow, context)
    segment = largest_segment(flow)
    for episode, end in window.judgeable():
        if len({sent.start for sent in episode.retransmissions}) < 2 or window.draining(episode):
            continue
        # What limited transmit sent does not belong to the flight that is reduced, and a window
        # that is not a whole number of segments shows as one less.
        limited = max(2 * segment, sent_by_duplicates(flow, episode))
        floor = 0.9 * share * (episode.flight - limited) - segment
        held = octets(episode.first.sacked)
        if episode.flight < SMALLEST_FLIGHT_TO_GROW * segment or held > 5 * segment:
            # What was held before does not show the window in the network.
            continue
        # Whatever the exit policy, it does not deflate the window below what is outstanding.
        at_exit = window.after(end, end.time + AT_EXIT_RTTS * window.rtt)
        exit_flight = max(end.max - end.ack, segment, *(sent.outstanding for sent in at_exit))
        growth = max(0.0, math.log(floor / exit_flight) / math.log(1.5))
        round_trips = 1.5 + math.ceil(growth)
        at_end = max(end.max - end.ack, segment, *(sent.outstanding for sent in end.responses))
        grown = _after_growth(flow, end, floor - at_end)
        deadline = max(end.time + round_trips * window.rtt, grown)
        after = window.after(end, deadline)
        largest = max(after, key=lambda sent: sent.outstanding, default=None)
        if largest is None:
            continue
        flight = largest.outstanding
        repeats = len(episode.retransmissions)
        sentence = f"{repeats} retransmissions left {flight} of {episode.flight} octets outstanding"
        if flight >= floor:
            yield context.holds(sentence, largest, end, episode.first)
        elif _never_paced(context, after) and _free_to_grow(
            flow, after, deadline, window.next_start(episode)
        ):
            where = largest, end, episode.first
            expected = f"at least {floor:.0f} octets {deadline - end.time:.1f} s later"
            actual = f"{flight} octets at most"
            yield context.violated(sentence, *where, expected=expected, actual=actual)


def _after_growth(flow: Flow, start: Ack, octets: float) -> float:
    """When acknowledgments have let slow start add ``octets``, at most a segment each."""
    first = count_through(flow.acks, start.packet.number)
    for ack in flow.acks[first:]:
        octets -= min(ack.advance, flow.segment)
        if octets <= 0:
            return ack.time
    return math.inf


def _never_paced(context: Context, after: list[Sent]) -> bool:
    """Whether no pacing held data back, which keeps less in flight than the window permits."""
    prompt = PROMPT_S + context.timing_error
    return acts_at_once(context.ics) or all(sent.since_arrival <= prompt for sent in after)


def _free_to_grow(flow: Flow, after: list[Sent], deadline: float, next_loss: float) -> bool:
    """Whether only the congestion window can have held the sender down."""
    if next_loss <= deadline or flow.horizon < deadline:
        return False
    return (
        never_short_of_data(flow, after)
        and all(
            sent.payload >= largest_segment(flow)
            and not sent.timed
            and sent.window_edge - sent.end >= 2 * largest_segment(flow)
            for sent in after
        )
        and not any(  # nor an edge that has moved back
            after[0].time <= ack.time <= deadline
            and ack.window_edge - ack.max < 2 * largest_segment(flow)
            for ack in flow.acks
        )
    )


@checker("SNR-REC-005")
def exit_window(flow: Flow, context: Context) -> Findings:
    """The end of recovery releases no more than the deflated window (RFC 6582 3.2 step 3)."""
    # Exercised by the acknowledgment that ends a fast recovery.
    share = share_left(context)
    beyond = context.permitted("segments_beyond_flight")
    window = _Window(flow, context)
    for episode in context.prepared.episodes:
        end = episode.end
        if not episode.fast or episode.nested or not window.complete(episode) or end is None:
            continue
        new = [sent for sent in end.responses if sent.new]
        # What the next loss has left in the receiver's buffer is not in the network.
        held = octets(end.sacked)
        before = end.max - end.ack - held
        after = max((sent.end - end.ack - held for sent in new), default=before)
        limits = []
        if share is not None and window.shows(episode):
            limits.append(window.limit(episode, share))
        if beyond is not None:
            limits.append(before + beyond * largest_segment(flow))
        if not limits:
            continue
        limit = max(min(limits), before)
        where = [new[-1], end] if after > limit else [end, *new]
        sentence = f"the end of recovery raised the flight from {before} to {after} octets"
        yield at_most(context, after, limit, sentence, *where)
