"""Checkers for robust acknowledgment processing (SNR-ACK)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise, takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, at_most, judged
from bentpipe_conformance.protocols.tcp.checkers.odd_acknowledgments import harmless, in_calm
from bentpipe_conformance.protocols.tcp.codec import MODULUS, PSH, nearest
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Reply, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import acts_at_once
from bentpipe_conformance.protocols.tcp.replay.order import (
    count_before,
    count_through,
    earlier,
    later,
)
from bentpipe_conformance.protocols.tcp.replay.round_trips import measurements, minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.users import (
    ECHO_PORT,
    largest_segment,
    never_short_of_data,
    newest_before,
    smss_may_vary,
)

ANSWER_S = 0.2
"""An acknowledgment that answers an unacceptable segment is not delayed; this is ample."""


def _without_effect(flow: Flow, context: Context, ack: Ack, what: str) -> Finding:
    """The finding about an acknowledgment whose number and window must be ignored."""
    for sent in ack.responses:
        # Most of a segment beyond every window validly offered.
        if sent.end - max(sent.start, sent.window_edge) > largest_segment(flow) // 2:
            sentence = f"{what} let {sent.span} leave beyond the window's edge {sent.window_edge}"
            actual = f"data up to {sent.end}"
            return context.violated(sentence, sent, ack, expected="no effect", actual=actual)
    return harmless(flow, context, ack, what)


@checker("SNR-ACK-001")
def old_acknowledgment_has_no_effect(flow: Flow, context: Context) -> Findings:
    """An acknowledgment below snd_una has no effect (RFC 9293 section 3.10.7.4)."""
    # Exercised by acknowledgments below una without SACK blocks, outside recovery.
    old = (ack for ack in flow.acks if ack.ancient and not ack.rejected and not ack.tcp.sack)
    named = ((ack, f"an old acknowledgment of {ack.ack}") for ack in old)
    for ack, what in in_calm(context, named):
        yield _without_effect(flow, context, ack, what)
    yield from _closed_all_the_same(flow, context)


def _closed_all_the_same(flow: Flow, context: Context) -> Findings:
    """An old acknowledgment that offers room leaves a closed window closed."""
    # Exercised by one between two probes, the first of which has shown how much a probe carries.
    room = [ack for ack in flow.acks if ack.ancient and not ack.rejected and ack.window > 0]
    for closure in context.prepared.closures:
        for before, probe in pairwise(closure.probes):
            between = earlier(list(later(room, before.packet)), probe.packet)
            old = next(iter(between), None)
            if old is None or before.payload > 1:
                continue
            yield judged(
                context,
                probe.payload <= 1,
                f"after an old acknowledgment that offered room a probe carried {probe.payload} "
                "octets",
                probe, old, before,
                expected=f"the window to stay closed, and a probe of {before.payload} octets",
                actual=f"{probe.payload} octets",
            )  # fmt: skip


@checker("SNR-ACK-002")
def acknowledgment_of_unsent_data_is_ignored(flow: Flow, context: Context) -> Findings:
    """An acknowledgment of data never sent has no effect (RFC 9293 section 3.10.7.4)."""
    # Exercised by acknowledgments above snd_max, outside recovery.
    beyond = (ack for ack in flow.acks if ack.beyond and not ack.rejected)
    named = ((ack, f"an acknowledgment of {ack.ack}, beyond what was sent,") for ack in beyond)
    for ack, what in in_calm(context, named):
        jump = next((sent for sent in ack.responses if sent.start > sent.max), None)
        if jump is None:
            yield _without_effect(flow, context, ack, what)
        else:
            sentence = f"{what} let the sender go on at {jump.start}, leaving out {jump.max}"
            actual = f"data from {jump.start}"
            yield context.violated(sentence, jump, ack, expected="no effect", actual=actual)


@checker("SNR-ACK-003")
def acknowledgment_of_unsent_data_is_answered(flow: Flow, context: Context) -> Findings:
    """An acknowledgment of data never sent is answered (RFC 9293 section 3.10.7.4)."""
    # Exercised by the first acknowledgment above snd_max (later ones may be rate-limited).
    established = context.prepared.lifetime.established
    begin = float("inf") if established is None else established.packet.number
    sound = (ack for ack in flow.acks if ack.tcp.options_ok)
    beyond = (ack for ack in sound if ack.beyond and not (ack.rejected or ack.may_refuse))
    # Half the space away from what is unacknowledged, it may as well be old.
    near = (ack for ack in beyond if ack.ack - ack.una < MODULUS // 2)
    ack = next((ack for ack in near if ack.packet.number > begin), None)
    if ack is None:
        return
    number = ack.packet.number
    lifetime = context.prepared.lifetime
    if lifetime.over is not None and lifetime.over < number:
        return
    reset = flow.own_reset
    if reset is not None and reset.packet.number < number:
        return  # it has given up
    ends = lifetime.closed, lifetime.own_fin
    closed = all(end is not None and end.packet.number < number for end in ends)
    own = lifetime.own_fin
    over = own is not None and any(
        item.ack == own.end and item.packet.number < number for item in flow.acks
    )
    if closed and (over or not lifetime.iut_closed_first):
        return  # LAST-ACK or TIME-WAIT, for which RFC 9293 names no answer
    # What leaves after another arrival may be the answer to that.
    next_in = next((item for item in flow.arriving if item.packet.number > number), None)
    following = flow.horizon if next_in is None else next_in.time
    until = float("inf") if next_in is None else next_in.packet.number
    limit = ack.time + ANSWER_S + context.timing_error
    left = [r for r in flow.replies if number < r.packet.number < until and r.time <= limit]
    answer = next((r for r in left if not r.payload), None)
    if answer is None and left:
        return  # data that was under way anyway acknowledges as well
    if answer is not None:
        yield context.holds(f"the acknowledgment of {ack.ack} was answered", answer, ack)
    elif following > ack.time + flow.reaction:
        sentence = f"the acknowledgment of {ack.ack}, beyond what was sent, was not answered"
        yield context.violated(sentence, ack, expected="an acknowledgment", actual="nothing")


def _judge_growth(
    flow: Flow, context: Context, exercising: list[Ack], least: int, what: str
) -> Findings:
    """Compare what is outstanding with the initial window and what has been acknowledged.

    Judged until something is held or retransmitted, for then other rules decide. A sender may
    count in octets or in segments: only one that exceeds both bounds is in violation.
    """
    new = list(takewhile(lambda sent: not (sent.retransmission or sent.sacked), flow.sent))
    exercising = [ack for ack in exercising if new and ack.time <= new[-1].time]
    if len(exercising) < least:
        return
    first_ack = next(ack.time for ack in flow.acks if ack.advance)
    initial = sum(sent.time < first_ack for sent in new)
    declared = int(context.ics.get("initial_window_segments") or 0)
    segments = max(initial, int(context.permitted("initial_segments")), declared)
    segments += int(context.permitted("slack_segments"))
    ends = [sent.end for sent in new]
    for count, sent in enumerate(new, 1):
        acknowledged = bisect_right(ends, sent.una)
        too_many = count - acknowledged > segments + acknowledged
        allowed = segments * largest_segment(flow) + sent.una
        if sent.time >= exercising[0].time and too_many and sent.outstanding > allowed:
            if context.ics.get("congestion_control") not in context.permitted("exempt"):
                sentence = f"too much was outstanding after {what} of {sent.una} octets"
                yield at_most(context, sent.outstanding, allowed, sentence, sent, exercising[0])
            return
    yield context.holds(f"{what} opened the window by what they covered at most", exercising[-1])


def _before_loss(flow: Flow) -> list[Ack]:
    loss = next((sent.time for sent in flow.sent if sent.retransmission), float("inf"))
    return [ack for ack in flow.acks if ack.advance and ack.time < loss]


@checker("SNR-ACK-004")
def split_acknowledgments_gain_nothing(flow: Flow, context: Context) -> Findings:
    """Splitting acknowledgments opens the window no faster (RFC 3465 section 2.1)."""
    # Exercised by at least eight acknowledgments before a loss that end within a segment.
    boundaries = {sent.end for sent in flow.sent}
    split = [ack for ack in _before_loss(flow) if ack.ack not in boundaries]
    yield from _judge_growth(flow, context, split, 8, "split acknowledgments")


@checker("SNR-ACK-005")
def stretch_acknowledgments_are_bounded(flow: Flow, context: Context) -> Findings:
    """A stretch acknowledgment opens the window by what it covers (RFC 3465 section 2.2)."""
    # Exercised by acknowledgments of three segments and more before a loss.
    stretch = [ack for ack in _before_loss(flow) if ack.advance >= 3 * largest_segment(flow)]
    yield from _judge_growth(flow, context, stretch, 1, "stretch acknowledgments")


@checker("SNR-ACK-006")
def stretch_acknowledgments_slide_the_window(flow: Flow, context: Context) -> Findings:
    """A stretch acknowledgment releases about as much as it covers (RFC 5681 section 3.1)."""
    # Exercised by runs of at least three stretch acknowledgments before a loss. Too little counts
    # against the sender only when each acknowledgment of the run released a full segment at once
    # and left more waiting: else it may have had nothing to send, or pace what it sends. What
    # follows duplicates or blocks covers data that they may have let the sender replace.
    share = context.permitted("least_share")
    may_shrink = context.ics.get("congestion_control") in context.permitted("exempt")
    rtt = minimum_rtt(flow)
    wide = 3 * largest_segment(flow)

    def stretches(ack: Ack) -> bool:
        before = flow.acks[count_before(flow.acks, ack.packet.number) - 1 :][:1]
        reported = any(item.duplicates or item.sacked for item in before)
        return ack.advance >= wide and ack.window_edge - ack.max >= ack.advance and not reported

    for run in _runs(_before_loss(flow), stretches, 3):
        acknowledged = sum(ack.advance for ack in run)
        # A pacing timer lets out what the window permits as well.
        meanwhile = flow.between(run[0].time, run[-1].time + flow.reaction)
        soon = sum(sent.length for sent in meanwhile if sent.new)
        eager = all(any(s.payload == largest_segment(flow) for s in ack.responses) for ack in run)
        eager = eager and never_short_of_data(flow, (s for ack in run for s in ack.responses))
        if eager and soon < share * acknowledged and not may_shrink:
            yield context.violated(
                f"{len(run)} acknowledgments of {acknowledged} octets released {soon} octets",
                *run,
                expected=f"about as much, at least {share * acknowledged:.0f} octets",
                actual=f"{soon} octets",
            )
            continue
        until = run[-1].time + rtt
        released = sum(s.length for s in flow.between(run[0].time, until) if s.new)
        if released >= share * acknowledged:
            yield context.holds(
                f"{len(run)} acknowledgments of {acknowledged} octets released {released} octets",
                run[0],
            )


def _runs(acks: Iterable[Ack], member: Callable[[Ack], bool], least: int) -> Iterator[list[Ack]]:
    """Uninterrupted runs of at least ``least`` acknowledgments of a kind."""
    for matches, run in groupby(acks, member):
        found = list(run)
        if matches and len(found) >= least:
            yield found


@checker("SNR-ACK-007")
def duplicate_storm_is_bounded(flow: Flow, context: Context) -> Findings:
    """Duplicates that report nothing new cause no flood (RFC 5681 section 3.2, RFC 9937)."""
    # Exercised by runs of at least six duplicates that report nothing new. What leaves is counted
    # only where no pacing delays it, and new data only where it certainly waited. Where the path
    # has shown that segments are too long, all that are may leave again (RFC 4821 section 7.7).
    if smss_may_vary(flow, context.ics):
        return
    rtt = minimum_rtt(flow)
    at_once = acts_at_once(context.ics)
    for run in _runs(
        flow.acks, lambda ack: ack.duplicate and not ack.newly_sacked and not ack.blocks, 6
    ):
        yield _judge_storm(run, list(_released(flow, run)), rtt, context, at_once=at_once)


def _released(flow: Flow, run: list[Ack]) -> Iterator[Sent]:
    """The retransmissions of a run of duplicates, and what new data certainly waited for them.

    PSH shows where the queue was empty (RFC 9293 MUST-61). What leaves behind it may have been
    written since, in pieces or much at once, until a pause shows that the sender was held again
    with more in its queue.
    """
    duplicates = set(run)
    last = max((item.packet.number for ack in run for item in ack.responses), default=0)
    number = run[0].packet.number
    newest = newest_before(flow, number)
    waited = True
    for item in flow.sent[count_before(flow.sent, number) : count_through(flow.sent, last)]:
        held = newest is not None and item.time - newest.time > flow.reaction
        waited = newest is not None and not newest.tcp.flags & PSH and (waited or held)
        if item.cause in duplicates and (item.retransmission or waited):
            yield item
        if item.new:
            newest = item


def _judge_storm(
    run: list[Ack], sent: list[Sent], rtt: float, context: Context, *, at_once: bool
) -> Finding:
    last: dict[int, Sent] = {}
    for item in sent:
        before = last.get(item.start)
        if item.retransmission and before is not None and item.time - before.time < 0.9 * rtt:
            return context.violated(
                f"{len(run)} duplicates let offset {item.start} leave once more",
                item,
                before,
                expected="one retransmission of a segment per round trip",
                actual=f"two within {item.time - before.time:.3f} s",
            )
        if item.retransmission:
            last[item.start] = item
    if not at_once:
        # Pacing may have delayed what something else released until now.
        return context.holds(f"{len(run)} duplicates repeated no retransmission", run[-1])
    most = 2 * len(run) + 2
    sentence = f"{len(run)} duplicates released {len(sent)} segments"
    where = run[-1], *(sent[-3:] if len(sent) > most else ())
    expected = f"at most {most} segments"
    actual = f"{len(sent)} segments"
    return judged(context, len(sent) <= most, sentence, *where, expected=expected, actual=actual)


@checker("SNR-ACK-008")
def acknowledgment_of_unacceptable_segment_is_ignored(flow: Flow, context: Context) -> Findings:
    """A segment beyond the receive window is dropped (RFC 9293 section 3.10.7.4)."""
    # Exercised by segments beyond the receive window that acknowledge or offer more.
    named = "a segment {} octets beyond the receive window"
    far = ((ack, named.format(distance)) for ack, distance in _beyond_receive_window(flow))
    for ack, what in in_calm(context, far):
        yield _without_effect(flow, context, ack, what)


def _beyond_receive_window(flow: Flow) -> Iterator[tuple[Ack, int]]:
    """Rejected acknowledgments and how many octets beyond the receive window each begins."""
    if flow.handshake.offer is None or not any(ack.rejected for ack in flow.acks):
        return
    first = flow.handshake.offer.seq + 1
    replies = iter(flow.replies)
    reply = next(replies, None)
    edge = reference = 0
    for ack in flow.acks:
        while reply is not None and reply.time <= ack.time:
            edge, reference = max(edge, reply.window_edge), reply.ack
            reply = next(replies, None)
        start = nearest(ack.tcp.seq - first, reference)
        if ack.rejected and not ack.beyond and start > edge:
            yield ack, start - edge


@checker("SNR-ACK-010")
def closed_window_keeps_no_acknowledgment_out(flow: Flow, context: Context) -> Findings:
    """A closed receive window admits acknowledgments (RFC 9293 section 3.10.7.4)."""
    # Exercised by data that a closed window refuses and that opens the tester's window, once the
    # echo service has something to send.
    offer = flow.handshake.offer
    if flow.iut[1] != ECHO_PORT or offer is None:
        return
    measured = measurements(flow)
    reply: Reply | None = None
    edge = 0
    for event in flow.events:
        if isinstance(event, Reply):
            reply = event
        if not isinstance(event, Ack):
            continue
        ack, before, edge = event, edge, event.window_edge
        if reply is None or reply.window or reply.ack != reply.expected or not ack.tcp.length:
            continue
        at = nearest(ack.tcp.seq - offer.seq - 1, reply.ack)
        waits = reply.ack > ack.max and before <= ack.max
        opens = ack.window_edge - ack.max >= 2 * min(flow.segment, flow.mss)
        # With more than a probe outstanding the congestion window may be full.
        opens = opens and ack.max - ack.ack <= 1
        if at != reply.ack or ack.ancient or ack.beyond or not (waits and opens):
            continue
        number = ack.packet.number
        prompt = max(measured.before(number).largest, 0.25) + context.timing_error
        # After timeouts the first segment may repeat no more than the probe that is outstanding.
        following = (s for s in flow.sent if s.packet.number > number)
        again = (s.time for s in flow.arriving if s.packet.number > number)
        used, until = next(following, None), min(next(again, flow.horizon), flow.horizon)
        if used is not None and used.time <= min(until, ack.time + prompt):
            sentence = "data that a closed window refused opened the window all the same"
            yield context.holds(sentence, used, ack)
        elif until > ack.time + prompt:
            sentence = f"the window opened by {ack.window} octets, which were not used"
            expected = f"data within {prompt:.2f} s, although its own window is closed"
            yield context.violated(sentence, ack, expected=expected, actual="none")
            return


UNDER_WAY_S = 0.05
"""A segment that leaves this soon after an acknowledgment may have been under way to the link."""


@checker("SNR-ACK-009")
def acknowledged_data_is_not_sent_again(flow: Flow, context: Context) -> Findings:
    """What is acknowledged is not sent again (RFC 9293 section 3.10.7.4)."""
    # Exercised by every retransmission after data was acknowledged.
    soon = UNDER_WAY_S + context.timing_error
    measured, at_once = measurements(flow), acts_at_once(context.ics)
    advances: list[Ack] = []
    found: Sent | None = None
    for event in flow.events:
        if isinstance(event, Ack):
            if event.acceptable and event.advance and not event.may_refuse:
                advances.append(event)
        elif isinstance(event, Sent):
            if not event.retransmission or not advances:
                continue
            longest = measured.before(event.packet.number).largest
            patience = soon if at_once else max(soon, longest)
            at = bisect_left(advances, event.end, key=lambda ack: ack.ack)
            if at < len(advances) and event.payload > 1:
                waited = event.time - advances[at].time
                if waited > patience:
                    yield context.violated(
                        f"{event.span} left again {waited:.3f} s after it had been acknowledged",
                        event,
                        advances[at],
                        expected=f"nothing below offset {event.una}",
                        actual=f"data from offset {event.start}",
                    )
                    return
            found = event
    if found is not None:
        yield context.holds(f"{found.span} was repeated, {found.una} being acknowledged", found)
