"""Checkers for the Timestamps option and PAWS (SNR-TS)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise, takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.checkers.receiving import never_accepted
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    Answer,
    acknowledging,
    answer_within,
    refused_by_moved_edge,
    still_receiving,
)
from bentpipe_conformance.protocols.tcp.replay.direction import older
from bentpipe_conformance.protocols.tcp.replay.events import Arrival, Reply, Segment
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import may_have_given_up
from bentpipe_conformance.protocols.tcp.replay.order import count_before, latest_first
from bentpipe_conformance.protocols.tcp.replay.users import is_own_reset

_CLOCK_SPAN_S = 2.0
"""The slowest clock allowed (RFC 7323 section 5.4: 1 Hz) ticks at least once in this time."""


@checker("SNR-TS-001")
def echoes_ts_recent(flow: Flow, context: Context) -> Findings:
    """TSecr is TS.Recent (RFC 7323 section 4.3)."""
    # Exercised by every acknowledgment with a timestamp, and by the SYN-ACK.
    yield from _echo_of_the_syn(flow, context)
    for reply in flow.replies:
        echoed = reply.tcp.tsecr
        if echoed is None or not reply.echoes:
            continue
        old = context.profile == "hk99" and echoed in reply.older_echoes
        if echoed in reply.echoes or old:
            yield context.holds("TSecr is TS.Recent", reply)
            continue
        where = (reply,) if reply.last_arrival is None else (reply, reply.last_arrival)
        wanted = " or ".join(str(value) for value in sorted(reply.echoes))
        sentence = f"TSecr is {echoed}, but TS.Recent is {wanted}"
        expected = f"TSecr {wanted}"
        yield context.violated(sentence, *where, expected=expected, actual=f"TSecr {echoed}")


def _echo_of_the_syn(flow: Flow, context: Context) -> Findings:
    """Whether every SYN-ACK echoes the timestamp of a SYN that came before it."""
    if not flow.handshake.timestamps or flow.handshake.iut_opens:
        return
    offered: set[int | None] = set()
    last = max((item.packet.number for item in flow.leaving if item.tcp.flags & SYN), default=0)
    for segment in map(Segment, takewhile(lambda packet: packet.number <= last, flow.packets)):
        # What comes before the handshake is complete may be taken for TS.Recent too.
        if not segment.packet.outgoing and (offered or segment.tcp.flags & SYN):
            offered.add(segment.tcp.tsval)
        elif segment.packet.outgoing and segment.tcp.flags & SYN and segment.tcp.tsval is not None:
            wanted = " or ".join(str(value) for value in offered)
            echoed = segment.tcp.tsecr
            sentence = f"the SYN-ACK echoes {echoed}"
            yield judged(
                context, echoed in offered, sentence, segment,
                expected=f"TSecr {wanted}", actual=f"TSecr {echoed}",
            )  # fmt: skip


def _stamped(flow: Flow, context: Context) -> Iterator[tuple[Segment, int]]:
    """The segments of the IUT with a timestamp and their TSval, RST excepted.

    A late copy of the SYN may begin another connection, whose clock may begin elsewhere.
    """
    over = context.prepared.lifetime.over
    for segment in flow.leaving:
        tcp = segment.tcp
        if over is not None and segment.packet.number > over:
            return
        if tcp.tsval is not None and not tcp.flags & RST:
            yield segment, tcp.tsval


@checker("SNR-TS-002")
def tsval_does_not_decrease(flow: Flow, context: Context) -> Findings:
    """TSval does not decrease on a connection (RFC 7323 section 4.1)."""
    # Exercised by every segment after the first with a timestamp, RST excepted.
    for (before, known), (segment, tsval) in pairwise(_stamped(flow, context)):
        if older(tsval, known):
            sentence = f"TSval went back from {known} to {tsval}"
            expected = f"at least {known}"
            yield context.violated(sentence, segment, before, expected=expected, actual=str(tsval))
            return
        yield context.holds("TSval did not decrease", segment)


@checker("SNR-TS-003")
def clock_rate(flow: Flow, context: Context) -> Findings:
    """The timestamp clock ticks between once a second and once a millisecond (RFC 7323 5.4)."""
    # Exercised by timestamps of one connection at least two seconds apart.
    stamped = _stamped(flow, context)
    beginning = next(stamped, None)
    if beginning is None:
        return
    (first, begin), (last, end) = beginning, (deque(stamped, 1) or [beginning])[0]
    span = last.time - first.time
    if span < _CLOCK_SPAN_S:
        return
    ticks = (end - begin) % MODULUS
    slowest = float(context.permitted("slowest_ticks_per_s", 1))
    fastest = float(context.permitted("fastest_ticks_per_s", 1000))
    low = slowest * (span - context.timing_error) - 1
    # A clock of 1 ms is often a timer interrupt's, a little faster or slower than it says.
    high = fastest * (span + context.timing_error) * 1.01 + 2
    sentence = f"{ticks} ticks passed in {span:.1f} s"
    where = last, first
    expected = f"between {max(0.0, low):.0f} and {high:.0f} ticks"
    actual = f"{ticks} ticks"
    yield judged(context, low <= ticks <= high, sentence, *where, expected=expected, actual=actual)


def _fits(arrival: Arrival) -> bool:
    """Whether it has data that the window admits."""
    inside = arrival.start < arrival.window_edge and arrival.end > arrival.expected
    return inside and arrival.payload > 0


@checker("SNR-TS-004")
def old_timestamp_is_dropped(flow: Flow, context: Context) -> Findings:
    """A segment with an old timestamp is dropped (RFC 7323 section 5.3 rule R1)."""
    # Exercised by new data with an old timestamp that is answered.

    def refused(arrival: Arrival) -> bool:
        new = (right <= arrival.start or arrival.end <= left for left, right in arrival.held)
        return arrival.paws_rejected and _fits(arrival) and all(new)

    what = "with an old timestamp"
    yield from never_accepted(flow, context, refused, what, "the segment dropped")


@checker("SNR-TS-005")
def old_timestamp_is_acknowledged(flow: Flow, context: Context) -> Findings:
    """A segment with an old timestamp is acknowledged (RFC 7323 section 5.3 rule R1)."""
    # Exercised by every data segment with an old timestamp.
    for arrival in still_receiving(flow):
        if not arrival.paws_rejected:
            continue
        answer = answer_within(flow, arrival, LONGEST_DELAY_S)
        if answer.timely == "unclear":
            yield context.unclear("answered, but the bed is too coarse", arrival)
        expected = f"an acknowledgment within {LONGEST_DELAY_S} s"
        yield from _acknowledged(context, answer, "with an old timestamp", expected)


def _acknowledged(context: Context, answer: Answer, described: str, expected: str) -> Findings:
    """Whether data was acknowledged in time; none where that is unclear."""
    if answer.timely == "in time" and answer.reply is not None:
        yield context.holds(f"data {described} was acknowledged", answer.reply, answer.arrival)
    elif answer.timely == "late":
        sentence = f"data {described} was not acknowledged in time"
        yield context.violated(sentence, answer.arrival, expected=expected, actual="none in time")


@checker("SNR-TS-006")
def reset_is_exempt(flow: Flow, context: Context) -> Findings:
    """PAWS does not apply to a RST (RFC 7323 section 5.2)."""
    # Exercised by a RST at the next expected octet with an old timestamp, or without one.
    if not flow.handshake.timestamps or not flow.resets or flow.resets[0].outgoing:
        return
    reset = Segment(flow.resets[0])
    number = reset.packet.number
    lingers = context.prepared.lifetime.time_wait
    if lingers is not None and lingers <= reset.time:
        return  # a RST may be ignored in TIME-WAIT (RFC 1337 section 3)
    replies = [reply for reply in flow.replies if reply.packet.number < number]
    if not replies or not reset.tcp.options_ok or not _exact(flow, replies[-1], reset):
        return
    tsval = reset.tcp.tsval
    if tsval is not None and not _older_than_all(tsval, replies[-1]):
        return
    settled = reset.time + flow.reaction
    for item in flow.leaving:
        if item.packet.number > number and not item.tcp.flags & RST and item.time > settled:
            sentence = "the connection continues after a RST with an old timestamp"
            expected = "the connection reset"
            actual = f"a segment with flags {item.tcp.flag_names}"
            yield context.violated(sentence, item, reset, expected=expected, actual=actual)
            return
    # A segment after the RST shows whether the connection still exists.
    if any(item.packet.number > number and item.tcp.length for item in flow.arriving):
        yield context.holds("a RST with an old timestamp reset the connection", reset)


def _older_than_all(tsval: int, reply: Reply) -> bool:
    """Whether a timestamp is older than every value that a segment may have echoed."""
    return bool(reply.echoes) and all(older(tsval, known) for known in reply.echoes)


def _exact(flow: Flow, last: Reply, reset: Segment) -> bool:
    """Whether a RST has exactly the sequence number that the IUT expects."""
    first, until = last.packet.number, reset.packet.number
    between = any(first < arrival.packet.number < until for arrival in flow.arrivals)
    return not between and last.ack == last.expected and reset.tcp.seq == last.tcp.ack


@checker("SNR-TS-007")
def wrapped_timestamp_is_accepted(flow: Flow, context: Context) -> Findings:
    """Timestamps are compared modulo 2**32 (RFC 7323 section 5.2)."""
    # Exercised by the first in-order data after the tester's timestamps wrapped.
    before: int | None = None
    for arrival in still_receiving(flow):
        tsval = arrival.tcp.tsval
        if tsval is None or arrival.may_be_stale or not flow.handshake.timestamps:
            continue
        wrapped = before is not None and tsval < before and not older(tsval, before)
        before = tsval
        if not wrapped or not arrival.in_order or arrival.end > arrival.window_edge:
            continue
        answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
        expected = f"an acknowledgment up to offset {arrival.end}"
        yield from _acknowledged(context, answer, "after the wrap of TSval", expected)


@checker("SNR-TS-013")
def overtaken_segment_is_accepted(flow: Flow, context: Context) -> Findings:
    """A timestamp that is not older than TS.Recent is not old (RFC 7323 section 5.3 rule R1)."""
    # Exercised by in-order data whose timestamp is older than that of data held above it, or the
    # same as that of data in order before it.
    latest: int | None = None
    same: int | None = None
    if not flow.handshake.timestamps:
        return
    for arrival in still_receiving(flow):
        tsval = arrival.tcp.tsval
        if tsval is None or arrival.may_be_stale:
            continue
        known, latest = latest, tsval if latest is None or older(latest, tsval) else latest
        before, same = same, tsval if arrival.in_order else same
        if known is None or not (older(tsval, known) or tsval == before):
            continue
        if arrival.in_order and arrival.end <= arrival.window_edge:
            if refused_by_moved_edge(flow, arrival):
                continue
            answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
            what = "whose timestamp is not older than TS.Recent"
            expected = f"an acknowledgment up to offset {arrival.end}"
            yield from _acknowledged(context, answer, what, expected)


@checker("SNR-TS-008")
def missing_timestamp_does_not_abort(flow: Flow, context: Context) -> Findings:
    """A segment without the negotiated option aborts nothing (RFC 7323 section 3.2)."""
    # Exercised by such a segment, once anything else follows.
    if not flow.handshake.timestamps:
        return
    bare: Segment | None = None
    latest: Segment | None = None
    over = context.prepared.lifetime.over
    if all(item.tcp.tsval is not None for item in flow.arriving):
        return
    for segment in map(Segment, flow.packets):
        if over is not None and segment.packet.number > over:
            return
        if segment.tcp.flags & RST:
            if bare is not None and latest is bare and _aborts(flow, segment, bare):
                sentence = "a segment without the negotiated Timestamps option reset the connection"
                expected = "the segment dropped, or processed"
                yield context.violated(sentence, segment, bare, expected=expected, actual="a RST")
            return
        if not segment.packet.outgoing:
            latest = segment
            if segment.tcp.tsval is None and not segment.tcp.flags & SYN:
                bare = segment
        elif bare is not None:
            yield context.holds("the connection outlives a missing timestamp", segment, bare)
            bare = None


def _aborts(flow: Flow, reset: Segment, cause: Segment) -> bool:
    """Whether a RST certainly aborts a connection, and nothing but its cause's options is odd.

    Where there is none any more, all is answered by a RST (RFC 9293 section 3.10.7.1), and in
    SYN-RECEIVED what does not acknowledge the SYN, which aborts nothing (section 3.10.7.4, fifth).
    """
    sent = reset.packet.outgoing and is_own_reset(flow, reset.packet)
    if not sent or may_have_given_up(flow, cause):
        return False
    opened = flow.handshake.established
    odd = any(ack.packet is cause.packet and not ack.acceptable for ack in flow.acks)
    return not odd or (opened is not None and opened < cause.time)


@checker("SNR-TS-009")
def missing_timestamp_is_dropped(flow: Flow, context: Context) -> Findings:
    """A segment without the negotiated option is dropped silently (RFC 7323 section 3.2)."""
    # Exercised by new data without the option, once an acknowledgment follows.
    kind, expected = "without its timestamp", "the segment silently dropped"
    yield from never_accepted(
        flow, context, lambda a: a.lacks_timestamp and _fits(a), kind, expected
    )


@checker("SNR-TS-010")
def unnegotiated_timestamp_is_ignored(flow: Flow, context: Context) -> Findings:
    """A timestamp that was not negotiated is ignored (RFC 7323 section 3.2)."""
    # Exercised by in-order data with a timestamp on a connection without.
    if flow.handshake.timestamps or flow.handshake.answer is None:
        return
    for arrival in still_receiving(flow):
        if arrival.tcp.tsval is None or not arrival.in_order:
            continue
        if arrival.end <= arrival.window_edge:
            answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
            expected = f"an acknowledgment up to offset {arrival.end}"
            what = "with a timestamp that was not negotiated"
            yield from _acknowledged(context, answer, what, expected)


@checker("SNR-TS-011")
def echo_without_acknowledgment_is_zero(flow: Flow, context: Context) -> Findings:
    """TSecr is zero where ACK is not set (RFC 7323 section 3.2)."""
    # Exercised by every segment of the IUT with a timestamp and without ACK: its own SYN.
    for item in flow.leaving:
        echoed = item.tcp.tsecr
        if echoed is None or item.tcp.flags & ACK:
            continue
        sentence = f"TSecr is {echoed} in a segment with flags {item.tcp.flag_names}"
        yield judged(context, echoed == 0, sentence, item, expected="zero", actual=str(echoed))


@checker("SNR-TS-012")
def acknowledgment_with_an_old_timestamp_is_ignored(flow: Flow, context: Context) -> Findings:
    """An old timestamp keeps an acknowledgment from counting (RFC 7323 section 5.3 rule R1)."""
    # Exercised by such a segment that would let out more than the window does, or acknowledges new
    # data; what had been offered before is used up.
    if not flow.handshake.timestamps:
        return
    for ack in flow.acks:
        number, tsval = ack.packet.number, ack.tcp.tsval
        if not ack.rejected or ack.beyond or tsval is None:
            continue
        known = next(latest_first(flow.replies, count_before(flow.replies, number)), None)
        if known is None or not _older_than_all(tsval, known):
            continue
        again = next((s for s in flow.arriving if s.packet.number > number), None)
        until = flow.horizon if again is None else again.time
        sent = next((s for s in flow.sent if s.packet.number > number), None)
        used = ack.max + min(flow.segment, flow.mss) > max(
            (a.window_edge for a in flow.acks if a.packet.number < number and a.acceptable),
            default=0,
        )
        if not used or ack.window_edge <= ack.max:
            continue
        early = sent is not None and sent.time <= until and sent.end > sent.window_edge + 1
        if early and sent is not None:
            sentence = f"an acknowledgment with an old timestamp let out {sent.span}"
            expected = f"nothing beyond offset {sent.window_edge}"
            yield context.violated(sentence, sent, ack, expected=expected, actual=sent.span)
            return
        if until > ack.time + flow.reaction:
            yield context.holds("an acknowledgment with an old timestamp let nothing out", ack)
