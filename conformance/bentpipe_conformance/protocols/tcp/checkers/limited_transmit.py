"""Checkers for limited transmit (SNR-LT)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged, within_window
from bentpipe_conformance.protocols.tcp.codec import PSH
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import (
    EXACT_S,
    SLUGGISH_S,
    Moment,
    acts_at_once,
    has_room,
    reaction,
)
from bentpipe_conformance.protocols.tcp.replay.order import count_through
from bentpipe_conformance.protocols.tcp.replay.users import (
    always_sends,
    echoes,
    largest_segment,
    may_be_last,
    more_waited,
    most_outstanding,
    newest_before,
)


def early_duplicates(context: Context) -> Iterator[Moment]:
    """First and second duplicates in a row outside recovery."""
    for m in context.prepared.moments:
        if m.episode is None and m.ack.duplicate and m.ack.duplicates <= 2 and m.pure:
            yield m


def _window_limited_before(m: Moment, flow: Flow, context: Context) -> bool:
    """Whether only the congestion window can have held the sender down before.

    It has if the last new acknowledgments clocked out full segments and left more waiting. The one
    that ends a recovery may leave slack on purpose, to avoid a burst.
    """
    if m.last_advance is None:
        return False
    ends = context.prepared.recovery_ends
    at = count_through(flow.acks, m.last_advance.packet.number)
    before = [ack for ack in flow.acks[max(0, at - 8) : at] if ack.advance][-2:]
    sent = [[s for s in ack.responses if s.new] for ack in before]
    return (
        not any(ack in ends for ack in before)
        and all(sent)
        and all(s.payload >= largest_segment(flow) for segments in sent for s in segments)
        and all(more_waited(flow, segments[-1]) for segments in sent)
        and not any(_ran_out(flow, *item) for item in zip(before, sent, strict=True))
    )


def _ran_out(flow: Flow, ack: Ack, sent: Sequence[Sent]) -> bool:
    """Whether less left than an acknowledgment covers, and PSH says that nothing waited.

    The send buffer may have been full, whose user is woken when a part of it is free again.
    """
    less = sum(item.length for item in sent) < ack.advance
    return less and may_be_last(flow, sent[-1])


@checker("SNR-LT-001")
def limited_transmit_sends(flow: Flow, context: Context) -> Findings:
    """The first two duplicates send new data (RFC 3042 section 2)."""
    # Exercised by the second duplicate of a sender with data and room. One that coalesces more than
    # two segments may hold these two back with others, and Nagle's rule holds back what does not
    # fill a segment.
    if not acts_at_once(context.ics) or _held_back(flow, context) > 1:
        return
    fresh = [sent for sent in flow.sent if sent.new]
    most = most_outstanding(flow)
    new: list[Sent] = []
    for m in early_duplicates(context):
        ack = m.ack
        if ack.duplicates == 1:
            new = []
        new += [sent for sent in ack.responses if sent.new]
        # What governs is cwnd less pipe: small reports make little room, and what reports nothing
        # new is no duplicate (RFC 6675 sections 2 and 5).
        reported = sum(right - left for left, right in ack.sacked)
        reported *= m.informative >= ack.duplicates
        informed = not flow.handshake.sack or reported >= 2 * largest_segment(flow)
        # The edge may have moved back.
        room = min(m.window_edge, ack.window_edge) - ack.max >= largest_segment(flow)
        room = room and has_room(context.ics, ack.flight, largest_segment(flow))
        if ack.duplicates != 2 or not (m.open and informed and room):
            continue
        if ack.flight + largest_segment(flow) > most and not _grew(flow, m):
            continue  # the sender's buffer may be full
        if not _window_limited_before(m, flow, context):
            continue
        if flow.handshake.sack and any(sent.retransmission for sent in ack.responses):
            continue  # what is held above may suffice to begin recovery (RFC 6675 section 5)
        late = next((s for s in flow.after(ack.packet, ack.time + SLUGGISH_S) if s.new), None)
        if new:
            yield context.holds("the first two duplicates sent new data", ack, *new)
        elif late and reaction(m, late, context.ics, context.timing_error) == "unclear":
            yield context.unclear(
                f"new data left {late.time - ack.time:.3f} s after the second duplicate", late, ack
            )
        elif _full_segment_waited(flow, fresh, ack) and not _may_be_full(flow, ack):
            sentence = "the first two duplicates sent no new data"
            expected = f"new data, {m.window_edge - ack.max} octets of window being free"
            yield context.violated(sentence, ack, expected=expected, actual="nothing new was sent")


def _grew(flow: Flow, m: Moment) -> bool:
    """Whether the last new acknowledgment made more outstanding than ever before."""
    if m.last_advance is None or not m.last_advance.responses:
        return False
    first, last = m.last_advance.responses[0], m.last_advance.responses[-1]
    before = most_outstanding(flow, first.packet.number)
    return last.outstanding >= before + largest_segment(flow)


def _may_be_full(flow: Flow, ack: Ack) -> bool:
    """Whether the send buffer, which may grow with the window, may hold just what is outstanding.

    It has room for the most that was outstanding before.
    """
    number = ack.packet.number
    last = newest_before(flow, number)
    more = ack.flight + largest_segment(flow) > most_outstanding(flow, number)
    return more and last is not None and may_be_last(flow, last)


def _full_segment_waited(flow: Flow, fresh: list[Sent], ack: Ack) -> bool:
    """Whether the first new data after an acknowledgment fills a segment, which was there before.

    An echo has what it has acknowledged, and is given more later.
    """
    if echoes(flow):
        told = flow.replies[: count_through(flow.replies, ack.packet.number)][-1:]
        if not told or told[0].ack < ack.max + largest_segment(flow):
            return False
    following = fresh[bisect_right(fresh, ack.time, key=lambda sent: sent.time) :][:1]
    return any(sent.payload >= largest_segment(flow) for sent in following)


@checker("SNR-LT-002")
def at_most_two_before_fast_retransmit(flow: Flow, context: Context) -> Findings:
    """The first two duplicates send no more than the profile allows (RFC 3042 section 2)."""
    # Exercised by the first two duplicates of a sender that had filled its window.
    if not acts_at_once(context.ics):
        return
    segments = int(context.permitted("segments", 2))
    held_back = _held_back(flow, context) if context.permitted("deferral", False) else 0
    sent_before = 0
    for m in early_duplicates(context):
        ack = m.ack
        if ack.duplicates == 1:
            sent_before = 0
        octets = sum(sent.length for sent in m.new_data)
        sent_before += octets
        if not _window_limited_before(m, flow, context):
            continue
        size = largest_segment(flow)
        allowed = segments * size
        if segments and flow.handshake.sack:
            # What is reported held has left the pipe (RFC 6675 section 5 step 3.3).
            reported = sum(b - a for a, b in ack.sacked)
            allowed = max(allowed, segments * reported // 2)
        back = held_back
        if segments and m.last_advance is not None:
            back = max(back, _handed_at_once(m.last_advance) - 1)
        within = not octets or sent_before <= allowed + back * size
        sentence = f"{sent_before} new octets were sent by duplicate {ack.duplicates}"
        where = *(() if within else m.new_data[-1:]), ack
        expected = f"at most {allowed} octets, and {back} segments held back before"
        actual = f"{sent_before} octets"
        yield judged(context, within, sentence, *where, expected=expected, actual=actual)


def _held_back(flow: Flow, context: Context) -> float:
    """Segments the sender may have held back to send them together.

    A sender that hands several segments at once to the layer below waits until it may send them
    all; what it sends on ordinary acknowledgments shows how many those are. Where there is none,
    they may be many.
    """
    ends = context.prepared.recovery_ends
    most = 2 * largest_segment(flow)
    ordinary = (ack for ack in flow.acks if 0 < ack.advance <= most and ack not in ends)
    bursts = [sum(sent.new for sent in ack.responses) for ack in ordinary]
    return max(max(bursts) - 1, 0) if bursts else math.inf


def _handed_at_once(ack: Ack) -> int:
    """Most new segments that left together on an acknowledgment, PSH in the last of them."""
    most = run = 0
    for sent in ack.responses:
        run += sent.new
        if sent.tcp.flags & PSH:
            most, run = max(most, run), 0
    return most


@checker("SNR-LT-003")
def limited_transmit_respects_the_window(flow: Flow, context: Context) -> Findings:
    """Limited transmit keeps to the receiver's window (RFC 3042 section 2)."""
    # Exercised by the first two duplicates while the receiver's window is full.
    for m in early_duplicates(context):
        if m.ack.flight and m.window_edge - m.ack.max < largest_segment(flow):
            what = f"duplicate {m.ack.duplicates}"
            yield from within_window(flow, context, m, what)


def _may_have_been_written_since(m: Moment, flow: Flow, context: Context) -> bool:
    """Whether new data may leave because the user refills the queue that the window had emptied.

    A user that always sends has done so after a pause.
    """
    last = m.last_advance
    if last is None or not last.responses[-1].tcp.flags & PSH:
        return False
    clocked_out = sum(sent.length for sent in last.responses)
    if clocked_out > 2 * last.advance:
        return True  # more than slow start: all that waited has left, and the window may be open
    exact = context.timing_error <= EXACT_S
    enough = min(SLUGGISH_S, m.rtt / 4) if exact else SLUGGISH_S
    return not always_sends(flow) or m.ack.time - last.time < enough


def _may_complete_a_burst(m: Moment, context: Context) -> bool:
    """Whether new data may have been due before, and held back to leave with more.

    A sender that hands several segments at once to the layer below may set PSH in the last of
    them, and waits until it may send as many again. Nothing was held back by one that sent all that
    slow start permits, unless its congestion control lets the window grow faster. Where no more
    leaves than was acknowledged the window had room for it, whatever held it back.
    """
    last = m.last_advance
    before = [sent for sent in last.responses if sent.new] if last is not None else []
    if last is None or not before:
        return False
    left = sum(sent.length for sent in before)
    if left + sum(sent.length for sent in m.new_data) <= last.advance:
        return True
    outruns = context.ics.get("congestion_control") in context.permitted("exempt")
    if not outruns and left >= 2 * last.advance:
        return False
    return bool(before[-1].tcp.flags & PSH) and len(m.new_data) < len(before)


@checker("SNR-LT-004")
def limited_transmit_needs_sack_information(flow: Flow, context: Context) -> Findings:
    """With SACK, a duplicate that reports nothing sends nothing (RFC 5681 section 3.2 step 1)."""
    # Exercised by the first two duplicates that report nothing although SACK was negotiated.
    if not flow.handshake.sack or not acts_at_once(context.ics):
        return
    for m in early_duplicates(context):
        room = m.window_edge - m.ack.max >= largest_segment(flow)
        if m.ack.sacked or not room or not _window_limited_before(m, flow, context):
            continue
        if _may_have_been_written_since(m, flow, context):
            continue
        new = m.new_data
        if new and _may_complete_a_burst(m, context):
            continue
        octets = sum(sent.payload for sent in new)
        sentence = f"duplicate {m.ack.duplicates}, which reports nothing, sent {octets} new octets"
        expected = "no new data without new SACK information"
        actual = f"{octets} new octets"
        yield judged(context, not new, sentence, *new[:1], m.ack, expected=expected, actual=actual)
