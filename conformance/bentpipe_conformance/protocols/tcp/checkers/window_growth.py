"""Checkers for a window that opens too slowly (SNR-SS-005, SNR-CA-004, SNR-RTO-017).

A sender may always be more cautious, so these are recommendations; but a window that lags behind
what RFC 5681 recommends costs a satellite path minutes.
"""

from __future__ import annotations

from itertools import accumulate

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.checkers.slow_start import read_opening, read_rounds
from bentpipe_conformance.protocols.tcp.checkers.timeout_recovery import recent
from bentpipe_conformance.protocols.tcp.replay.events import Ack
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import acts_at_once, disturbed_at
from bentpipe_conformance.protocols.tcp.replay.order import count_before, latest_first
from bentpipe_conformance.protocols.tcp.replay.pipe import reneges
from bentpipe_conformance.protocols.tcp.replay.users import (
    always_sends,
    largest_segment,
    latest,
    may_be_last,
    most_outstanding,
    smss_may_vary,
    stopped_at,
)


def _busy(flow: Flow, context: Context) -> bool:
    """Whether only its windows, in segments of one size, and its buffer can hold a sender back."""
    steady = not smss_may_vary(flow, context.ics)
    return steady and always_sends(flow) and acts_at_once(context.ics)


@checker("SNR-SS-005")
def slow_start_opens_by_a_segment(flow: Flow, context: Context) -> Findings:
    """Slow start grows by a segment for each acknowledgment (RFC 5681 section 3.1, equation 2)."""
    # Exercised by the acknowledgments of a connection's beginning.
    if not _busy(flow, context):
        return
    opening, segment = read_opening(flow), largest_segment(flow)
    slack = context.permitted("slack_segments") * segment
    growths = accumulate(min(ack.advance, segment) for ack in opening.acks)
    for ack, growth in zip(opening.acks, growths, strict=True):
        if ack.packet.number >= min(stopped_at(flow), flow.first_reset) or opening.last is ack:
            return
        window = min(opening.first_flight + growth, most_outstanding(flow))
        flight = max((sent.end for sent in ack.responses), default=ack.max) - ack.ack
        last = latest(flow, ack)
        narrow = ack.window_edge - ack.ack < window + 2 * segment
        full = last is not None and may_be_last(flow, last)
        if last is not None and last.payload < segment and not full:
            return  # SMSS has become smaller, as the path has shown (RFC 4821)
        burst = sum(sent.new for sent in ack.responses) >= context.permitted("burst_segments")
        if flight < window - slack and (narrow or full or burst):
            # A window that the receiver or the buffer does not let fill need not grow (RFC 7661),
            # and who has sent several segments at once may put the rest off.
            return
        if narrow:
            continue
        finding = judged(
            context,
            flight >= window - slack,
            f"{flight} octets were outstanding once {ack.ack} were acknowledged",
            ack,
            *ack.responses,
            expected=f"at least {window - slack} octets in slow start",
            actual=f"{flight} octets",
        )
        yield finding
        if flight < window - slack:
            return


@checker("SNR-CA-004")
def congestion_avoidance_opens_the_window(flow: Flow, context: Context) -> Findings:
    """Congestion avoidance opens the window (RFC 5681 section 3.1)."""
    # Exercised by several round trips without loss after a recovery phase.
    if not _busy(flow, context):
        return
    segment, least = largest_segment(flow), context.permitted("segments_per_round_trip")
    for episode in context.prepared.episodes:
        if episode.end is None or not episode.fast or disturbed_at(episode) < float("inf"):
            continue
        rounds = read_rounds(flow, episode, at_once=True)
        full = [item for item in rounds[1:-1] if item.largest is not None]
        if len(full) < context.permitted("round_trips"):
            continue
        first, last = full[0], full[-1]
        assert first.largest is not None
        assert last.largest is not None
        largest = [item.largest for item in full if item.largest is not None]
        # SMSS may have become smaller, as the path has shown (RFC 4821).
        within = (s for s in flow.between(first.largest.time, last.largest.time) if s.new)
        used = min(segment, max((s.payload for s in within), default=segment))
        # The edge may have moved back.
        edges = [(sent, sent.window_edge if sent.cause is None else sent.cause.window_edge)
                 for sent in largest]  # fmt: skip
        room = min(edge - sent.end for sent, edge in edges)
        if last.largest.packet.number >= stopped_at(flow) or room < 2 * segment:
            continue
        wanted = first.peak + int(least * (len(full) - 1)) * used - used
        if last.peak < wanted and any(may_be_last(flow, sent) for sent in largest):
            # The buffer may be full.
            continue
        yield judged(
            context,
            last.peak >= wanted,
            f"{len(full) - 1} round trips took the flight from {first.peak} to {last.peak} octets",
            last.largest,
            episode.end,
            expected=f"at least {wanted} octets",
            actual=f"{last.peak} octets",
        )


def _counts_less(flow: Flow, ack: Ack, segment: int) -> bool:
    """Whether a window in segments admits less: they are short, or only a part was acknowledged."""
    if any(sent.payload < segment for sent in ack.responses):
        return True
    earlier = latest_first(flow.sent, count_before(flow.sent, ack.packet.number))
    last = next((sent for sent in earlier if sent.start < ack.ack), None)
    return last is not None and ack.ack < last.end


@checker("SNR-RTO-017")
def slow_start_after_timeout_opens_the_window(flow: Flow, context: Context) -> Findings:
    """After a timeout slow start opens the window (RFC 5681 section 3.1)."""
    # Exercised by acknowledgments after a timeout that leave data to send.
    if smss_may_vary(flow, context.ics):
        return
    if not acts_at_once(context.ics) or any(map(reneges, flow.acks)):
        return
    # SMSS may be larger; but then nothing has shown that the window lags.
    segment, slack = flow.segment, context.permitted("slack_segments")
    counts_segments = context.permitted("counts_segments", False)
    by_time = flow.handshake.sack and context.ics.get("rack", True)
    for aftermath in context.prepared.aftermaths(acts_at_once(context.ics)):
        if aftermath.lowered:
            continue  # ssthresh is "no more than" half of what was outstanding
        target = max(aftermath.expiry.flight // 2 // segment, 2) * segment
        lost = aftermath.recover
        if by_time:
            young = (sent.start for sent in recent(flow, aftermath.expiry) if sent.new)
            lost = min(young, default=lost)
        for reaction in aftermath.reactions:
            ack = reaction.ack
            if reaction.disturbed:
                break
            wanted = min(segment + reaction.growth, target) - slack * segment
            waiting = lost - ack.ack >= wanted
            if wanted <= 0 or not waiting or ack.window_edge - ack.ack < wanted or ack.may_refuse:
                continue
            held = sum(right - left for left, right in ack.sacked)
            if lost - ack.ack - held < wanted:
                continue
            put = max(reaction.pipe, reaction.reach)
            if counts_segments and _counts_less(flow, ack, segment):
                continue
            if put < wanted and ack.window_edge - ack.ack - reaction.reach < segment:
                continue  # the receiver's window has no room for a whole segment (MUST-38)
            finding = judged(
                context,
                put >= wanted,
                f"{reaction.acks} acknowledgments after a timeout put {reaction.pipe} octets "
                "in the network",
                ack,
                aftermath.expiry.sent,
                expected=f"at least {wanted} octets in slow start",
                actual=f"{reaction.pipe} octets",
            )
            yield finding
            if put < wanted:
                break
