"""Checkers for what a recovery's inflated window lets out (SNR-REC-006, -011 and -014).

Each duplicate inflates the window by a segment, and a partial acknowledgment deflates it again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, at_most, judged
from bentpipe_conformance.protocols.tcp.replay.events import (
    DUPLICATE_THRESHOLD,
    Ack,
    Sent,
)
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import (
    acts_at_once,
    disturbed_at,
    has_room,
    timer_within,
)
from bentpipe_conformance.protocols.tcp.replay.order import count_before
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    Episode,
    may_be_undone,
    outlives_inflation,
)
from bentpipe_conformance.protocols.tcp.replay.users import (
    always_sends,
    largest_segment,
    may_have_been_full,
    may_have_been_paced,
    smss_may_vary,
    stopped_at,
    was_held_down,
)


def share_left(context: Context) -> float | None:
    """Share of the window that remains after a loss, None when it is not known."""
    table = context.permitted("share", {})
    declared = context.ics.get("congestion_control", "")
    found: float | None = table.get(declared, table.get("other"))
    return found


@dataclass(frozen=True, slots=True)
class _Inflated:
    """New data sent in a recovery that inflates the window.

    Attributes:
        sent: the segment.
        limit: octets that may be outstanding after it.
        partial: a partial acknowledgment came before.
    """

    sent: Sent
    limit: float
    partial: bool


def _inflated(flow: Flow, context: Context, episode: Episode, share: float) -> Iterator[_Inflated]:
    """The new data of one recovery with the window of RFC 5681 section 3.2 and RFC 6582.

    It is ssthresh and a segment for each duplicate; a partial acknowledgment deflates it by what it
    acknowledges and adds a segment back. Proportional rate reduction, where it may be in use,
    spreads the reduction over the recovery instead.
    """
    segment = largest_segment(flow)
    proportional = context.permitted("proportional") and context.ics.get("prr", True)
    window = max(share * (episode.flight - sent_by_duplicates(flow, episode)), 2 * segment)
    threshold = window
    # One that begins late has heard of more than three segments that have left the network.
    heard = episode.trigger.duplicates if episode.trigger is not None else 0
    delivered = reported = max(DUPLICATE_THRESHOLD, heard) * segment
    window += reported
    acked = duplicates = 0
    timeout = timer_within(episode)
    acks = [ack for ack in episode.acks if ack is not episode.end]
    events: list[Sent | Ack] = [*episode.sent, *acks]
    for event in sorted(events, key=lambda item: item.packet.number):
        if isinstance(event, Sent):
            if (event.timed and event is not episode.first) or event.time >= timeout:
                return
            if event.new:
                limit = window
                if proportional:
                    # RFC 9937 section 6: below ssthresh, what has been delivered is replaced.
                    limit = max(window, threshold + reported) + 2 * segment
                    limit = max(limit, episode.flight - acked + share * delivered)
                yield _Inflated(event, limit, acked > 0)
        elif may_be_undone(episode.first, event):
            return
        elif event.advance:
            acked += event.advance
            delivered += max(0, event.advance - duplicates * segment)
            reported = max(0, reported - max(0, event.advance - segment))
            back = segment if event.advance >= segment or context.permitted("adds_back") else 0
            window = max(window - event.advance + back, segment)
            if flow.handshake.sack and not any(sent.retransmission for sent in event.responses):
                # HK99 rule 6: what an acknowledgment does not retransmit inflates the window.
                window += segment
            duplicates = 0
        elif event.duplicate:
            duplicates += 1
            delivered += segment
            reported += segment
            window += segment


def sent_by_duplicates(flow: Flow, episode: Episode) -> int:
    """Octets of new data that limited transmit sent before a recovery."""
    trigger = episode.trigger
    if trigger is None or not always_sends(flow):
        # What a user has just written may leave on a duplicate by chance.
        return 0
    last = count_before(flow.acks, trigger.packet.number)
    total = 0
    for ack in reversed(flow.acks[max(0, last - trigger.duplicates) : last]):
        if not ack.duplicate:
            break
        fresh = sum(sent.length for sent in ack.responses if sent.new)
        # Each may send a segment (RFC 3042 section 2); more than that had been held back before.
        total += min(fresh, largest_segment(flow))
    return total


@checker("SNR-REC-014")
def duplicates_let_data_out(flow: Flow, context: Context) -> Findings:
    """The inflated window is used (RFC 5681 section 3.2 step 5)."""
    # Exercised by a recovery without SACK whose duplicates inflate the window beyond the flight.
    if flow.handshake.sack or not always_sends(flow) or not acts_at_once(context.ics):
        return
    segment = largest_segment(flow)
    ended: Ack | None = None
    for episode in context.prepared.episodes:
        before, ended = ended, episode.end
        if not episode.fast or episode.nested or disturbed_at(episode) < math.inf:
            continue
        if outlives_inflation(before, episode):
            continue
        window = episode.flight // 2 - 2 * segment + DUPLICATE_THRESHOLD * segment
        further = [ack for ack in episode.acks if ack.acceptable and not ack.advance]
        first = next((ack for ack in episode.acks if ack.advance), None)
        further = [a for a in further if first is None or a.packet.number < first.packet.number]
        window += sum(ack.duplicate for ack in further) * segment
        slack = context.permitted("slack_segments") * segment
        if not further or further[-1].window_edge - episode.recover < 2 * segment:
            continue
        if window - episode.flight < slack or further[-1].packet.number >= stopped_at(flow):
            continue
        new = [sent for ack in further for sent in ack.responses if sent.new]
        room = has_room(context.ics, episode.flight, segment)
        if not new and (may_have_been_full(flow, episode.first) or not room):
            continue
        yield judged(
            context,
            bool(new),
            f"{len(further)} further duplicates sent {len(new)} new segments",
            further[-1],
            *new[:1],
            episode.first,
            expected="new data: the inflated window exceeds what is outstanding",
            actual="none",
        )


def _judge_inflation(flow: Flow, context: Context, *, partial: bool) -> Findings:
    share = share_left(context)
    if share is None or (flow.handshake.sack and not context.permitted("with_sack", False)):
        return
    for episode in context.prepared.episodes:
        if not episode.fast or episode.nested or disturbed_at(episode) == -math.inf:
            continue
        if context.permitted("halves_window", False) and (
            was_held_down(flow, episode.first)
            or may_have_been_paced(flow, episode.first, context.ics)
        ):
            continue  # what is outstanding does not show the window
        new = [item for item in _inflated(flow, context, episode, share) if item.partial == partial]
        worst = max(new, key=lambda item: item.sent.outstanding - item.limit, default=None)
        if worst is None:
            further = sum(ack.duplicate for ack in episode.acks)
            if further > 1 and not partial:
                yield context.holds(f"{further} further duplicates released nothing", episode.first)
            continue
        when = "after a partial acknowledgment" if partial else "before anything was acknowledged"
        flight = worst.sent.outstanding
        sentence = f"new data during recovery, {when}, made {flight} octets outstanding"
        yield at_most(context, flight, worst.limit, sentence, worst.sent, episode.first)


@checker("SNR-REC-006")
def new_data_during_recovery(flow: Flow, context: Context) -> Findings:
    """New data in recovery stays within the inflated window (RFC 5681 section 3.2 steps 3 to 5)."""
    # Exercised by new data during a recovery before anything is acknowledged.
    yield from _judge_inflation(flow, context, partial=False)


@checker("SNR-REC-011")
def partial_acknowledgments_deflate(flow: Flow, context: Context) -> Findings:
    """A partial acknowledgment deflates the window (RFC 6582 section 3.2 step 3)."""
    # Exercised by new data during a recovery after a partial acknowledgment.
    if smss_may_vary(flow, context.ics):
        return
    yield from _judge_inflation(flow, context, partial=True)
