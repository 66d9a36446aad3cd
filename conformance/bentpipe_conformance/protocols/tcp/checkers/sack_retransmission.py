"""Checkers for which segments a sender with SACK retransmits (SNR-SAK-001 to -006 and -009)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from itertools import pairwise

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.checkers.fast_retransmit import held_segments, overdue
from bentpipe_conformance.protocols.tcp.codec import PSH
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import may_be_tail_probe
from bentpipe_conformance.protocols.tcp.replay.order import count_before
from bentpipe_conformance.protocols.tcp.replay.recovery import Episode, begins_last_buffer
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.scoreboard import AT_ONCE_S, Repeat, Scoreboard
from bentpipe_conformance.protocols.tcp.replay.users import (
    largest_segment,
    newest_before,
    smss_may_vary,
)


def negotiated_scoreboard(flow: Flow, context: Context) -> Scoreboard:
    """The flow's scoreboard, empty when SACK was not negotiated."""
    return context.prepared.scoreboard if flow.handshake.sack else Scoreboard([], [], 0.0)


def _repeats(flow: Flow, context: Context) -> list[Repeat]:
    """Retransmissions that no timer explains, with SACK negotiated."""
    board = negotiated_scoreboard(flow, context)
    return [repeat for repeat in board.repeats if not repeat.timer]


def _first_repeats(flow: Flow, context: Context) -> list[Repeat]:
    """Of these, the first of each segment, where the sender had no licence to forget."""
    repeats = [r for r in _repeats(flow, context) if not (r.forgiven or r.repeats)]
    return [repeat for repeat in repeats if not repeat.sent.probed]


@checker("SNR-SAK-001")
def held_data_is_not_retransmitted(flow: Flow, context: Context) -> Findings:
    """Data reported held is not retransmitted (RFC 2018 section 5, RFC 6675 section 4)."""
    # Exercised by every retransmission while something is held, timeouts aside.
    lost: set[int] = set()
    for repeat in _repeats(flow, context):
        if repeat.going_back or not (repeat.held or repeat.missing):
            continue
        if repeat.held and may_be_tail_probe(repeat.sent, context.ics):
            continue
        if repeat.held and _of_a_larger_packet(flow, context, repeat.sent, lost):
            continue
        yield judged(
            context,
            not repeat.held,
            _retransmitted(repeat),
            repeat.sent,
            expected="retransmissions of what is missing only",
            actual=f"a retransmission of held data {repeat.sent.span}",
        )


def _of_a_larger_packet(flow: Flow, context: Context, again: Sent, lost: set[int]) -> bool:
    """Whether a retransmission may be part of a larger packet of which something is missing.

    With the alternative ``whole_packets`` the report of a part of one may get lost, for good: of
    what is held within so many segments of an edge of its block, or left together with what is not.
    With ``rest_of_block`` a report that begins or ends inside a packet may be lost as a whole.
    """
    most = context.permitted("whole_packets", 0) * largest_segment(flow)
    around = ((a, b) for a, b in again.sacked if a <= again.start and again.end <= b)
    if (
        any(again.end - a <= most or b - again.start <= most for a, b in around)
        or (most and _is_partly_held(flow, again))
        or (context.permitted("rest_of_block", False) and _reported_in_part(flow, again))
    ):
        lost.add(again.start)
    return again.start in lost


def _is_partly_held(flow: Flow, again: Sent) -> bool:
    """Whether of what left together with a segment, when it was new, not all is reported held."""
    packets = _packets(flow)
    at = bisect_right(packets, (again.start, math.inf)) - 1
    left, right = packets[at] if at >= 0 else (0, 0)
    inside = left <= again.start and again.end <= right
    return inside and not any(a <= left and right <= b for a, b in again.sacked)


@remembered
def _packets(flow: Flow) -> list[Range]:
    """What new data left together, in order: up to a segment with PSH, or a pause."""
    found: list[Range] = []
    last: Sent | None = None
    for sent in flow.sent:
        if sent.transmission > 1:
            continue
        joined = last is not None and last.end == sent.start and not last.tcp.flags & PSH
        if joined and last is not None and sent.time - last.time <= AT_ONCE_S:
            found[-1] = found[-1][0], sent.end
        else:
            found.append((sent.start, sent.end))
        last = sent
    return found


def _reported_in_part(flow: Flow, again: Sent) -> bool:
    """Whether the block that first reported a segment held began or ended inside a larger packet.

    The segments before and behind such an edge left together when they were new, or had both been
    reported held, which makes one packet of them, before the receiver threw the first away.
    """
    first = _first_reports(flow).get((again.start, again.end))
    if first is None or first[0].packet.number >= again.packet.number:
        return False
    ack, block = first
    at = count_before(flow.acks, ack.packet.number)
    held = flow.acks[at - 1].sacked if at else ()
    below = bisect_left(held, (block[0],)) - 1
    joined = below >= 0 and block[0] < held[below][1]
    return joined or not _joints(flow).isdisjoint(block)


@remembered
def _first_reports(flow: Flow) -> dict[Range, tuple[Ack, Range]]:
    """The acknowledgment that first reported all of each range retransmitted, and its block."""
    found: dict[Range, tuple[Ack, Range]] = {}
    open_ranges = sorted({(sent.start, sent.end) for sent in flow.sent if sent.retransmission})
    for ack in flow.acks:
        for left, right in ack.blocks:
            among = slice(bisect_left(open_ranges, (left,)), bisect_left(open_ranges, (right,)))
            inside = [item for item in open_ranges[among] if item[1] <= right]
            if inside:
                found |= dict.fromkeys(inside, (ack, (left, right)))
                open_ranges[among] = [item for item in open_ranges[among] if item[1] > right]
    return found


@remembered
def _joints(flow: Flow) -> frozenset[int]:
    """Offsets where segments meet that left together when they were new."""
    new = (sent for sent in flow.sent if sent.transmission == 1)
    return frozenset(
        behind.start
        for before, behind in pairwise(new)
        if before.end == behind.start and behind.time - before.time <= AT_ONCE_S
    )


def _retransmitted(repeat: Repeat, when: str = "") -> str:
    known = "although it was reported held" if repeat.held else "while it was missing"
    return f"{repeat.sent.span} was retransmitted {when}{known}"


@checker("SNR-SAK-002")
def new_reports_are_used_after_a_timeout(flow: Flow, context: Context) -> Findings:
    """Reports that follow a timeout are used (RFC 6675 section 5.1)."""
    # Exercised by every retransmission of a go-back while something newly reported is held.
    lost: set[int] = set()
    for repeat in _repeats(flow, context):
        if repeat.going_back and repeat.reported:
            if repeat.held and _of_a_larger_packet(flow, context, repeat.sent, lost):
                continue
            yield judged(
                context,
                not repeat.held,
                _retransmitted(repeat, "after a timeout "),
                repeat.sent,
                expected="data reported held since the timeout is passed over",
                actual=f"a retransmission of {repeat.sent.span}",
            )
    yield from _went_past_held_data(context)


def _went_past_held_data(context: Context) -> Findings:
    """New data sent while going back, with held data between: the held data was passed over."""
    for episode in context.prepared.episodes:
        if episode.fast or episode.end is None:
            continue
        acks = [ack for ack in episode.acks if ack.newly_sacked or ack.blocks]
        new = next((sent for sent in episode.sent if sent.new and sent.sacked), None)
        if acks and new is not None and acks[0].time <= new.time:
            yield context.holds("held data was passed over after the timeout", new)


def _over(episode: Episode, sent: Sent) -> bool:
    return episode.end is not None and episode.end.time < sent.time


@checker("SNR-SAK-003")
def holes_are_repaired_lowest_first(flow: Flow, context: Context) -> Findings:
    """Holes are retransmitted in ascending order (RFC 6675 section 4, NextSeg)."""
    # Exercised by every first retransmission of a recovery but the first. Once a retransmission
    # turned out unnecessary, the sender may revise what it had considered lost.
    grown = context.permitted("probes_first_of_last", False)
    started: set[Episode] = set()
    going_on = deque(context.prepared.episodes)
    for repeat in _first_repeats(flow, context):
        sent = repeat.sent
        if repeat.tail or repeat.reordered or _begins_the_last(flow, sent):
            continue
        if repeat.lower is not None:
            if grown and begins_last_buffer(flow, sent):
                continue
            yield context.violated(
                f"{sent.span} was retransmitted before the lower hole at {repeat.lower}",
                sent,
                expected=f"the hole at {repeat.lower} first",
                actual=f"offset {sent.start} first",
            )
            continue
        while going_on and _over(going_on[0], sent):
            going_on.popleft()
        for episode in going_on:
            if episode.first.time > sent.time:
                break
            if not _over(episode, sent):
                if episode in started:
                    yield context.holds(f"{sent.span} was the lowest hole", sent)
                started.add(episode)
                break


def _begins_the_last(flow: Flow, sent: Sent) -> bool:
    """Whether a timer repeats the first part of the segment sent last: segments are shorter now.

    A tail loss probe is then no longer than they are (RFC 8985 section 7.3).
    """
    last = newest_before(flow, sent.packet.number) if sent.timed else None
    return last is not None and sent.start == last.start


@checker("SNR-SAK-004")
def retransmission_has_evidence(flow: Flow, context: Context) -> Findings:
    """A retransmission needs later data delivered (RFC 6675 section 4, RFC 8985 section 6.2)."""
    # Exercised by every first retransmission that no timer explains.
    for repeat in _first_repeats(flow, context):
        sent = repeat.sent
        if repeat.delivered_later:
            yield context.holds(f"data sent after {sent.span} had arrived", sent)
        elif sent.timed or _is_excused(flow, context, repeat):
            continue
        elif sent.start == sent.una and repeat.duplicates >= DUPLICATE_THRESHOLD:
            yield context.holds(f"{repeat.duplicates} duplicates asked for {sent.span}", sent)
        elif repeat.above:
            # A recovery begins anew with what the one before it may have retransmitted in vain.
            yield context.holds(f"{repeat.above} octets are held above {sent.span}", sent)
        elif not repeat.tail:
            yield context.violated(
                f"{sent.span} left again although nothing sent after it is known to have arrived",
                sent,
                expected="something held above it, three duplicates, or a timeout",
                actual=f"held above it: {repeat.above} octets; duplicates: {repeat.duplicates}",
            )


def _is_excused(flow: Flow, context: Context, repeat: Repeat) -> bool:
    """Whether a deviation of the implementation explains a retransmission without evidence."""
    if context.permitted("whole_packets", 0) and _seems_overtaken(flow, context, repeat):
        return True
    together = context.permitted("probes_fail_together", False)
    return together and _fails_with_a_probe(flow, repeat.sent)


def _seems_overtaken(flow: Flow, context: Context, repeat: Repeat) -> bool:
    """Whether held data that left again since the segment did has been acknowledged.

    To whom its report was lost, that is news of something sent later.
    """
    before = (r.sent for r in negotiated_scoreboard(flow, context).repeats if r.age < math.inf)
    since = (s for s in before if repeat.sent.time - repeat.age < s.time < repeat.sent.time)
    again = (s for s in since if s.end <= repeat.sent.una)
    return any(a <= s.start and s.end <= b for s in again for a, b in s.sacked)


def _fails_with_a_probe(flow: Flow, sent: Sent) -> bool:
    """Whether a probe of the path's MTU leaves again at once with a segment, as if both were lost.

    It is longer than all that left before it.
    """
    if sent.cause is None or sent.cause.responses[0].start != sent.una:
        return False
    longest = 0
    for item in flow.sent:
        if item.new and item.start == sent.una:
            return longest < item.payload
        longest = max(longest, item.payload)
    return False


@checker("SNR-SAK-005")
def only_eligible_segments_are_retransmitted(flow: Flow, context: Context) -> Findings:
    """Only eligible segments are retransmitted (HK99 rule 5)."""
    # Exercised by every first retransmission that no timer explains.
    for repeat in _first_repeats(flow, context):
        sent = repeat.sent
        distant = repeat.highest > sent.start + DUPLICATE_THRESHOLD * flow.segment
        asked = sent.start == sent.una and repeat.duplicates >= DUPLICATE_THRESHOLD
        evidence = f"{repeat.duplicates} duplicates and data held up to {repeat.highest}"
        sentence = f"{sent.span} left again on the evidence of {evidence}"
        expected = "three duplicates, or data held at least three segments beyond"
        yield judged(context, distant or asked, sentence, sent, expected=expected, actual=evidence)


def _lost_by_time(flow: Flow, sent: Sent) -> bool:
    """Whether a reordering window has passed since something sent later was delivered."""
    at = count_before(flow.acks, sent.packet.number)
    return at > 0 and overdue(sent.start, sent.time, flow.acks[at - 1], minimum_rtt(flow), flow)


@checker("SNR-SAK-006")
def recovery_begins_at_the_threshold(flow: Flow, context: Context) -> Findings:
    """Recovery begins at the threshold (RFC 6675 section 5, RFC 8985 section 6.2)."""
    # Exercised by the first retransmission of every recovery that no timeout starts.
    if smss_may_vary(flow, context.ics):
        return
    board = negotiated_scoreboard(flow, context)
    runs = context.permitted("held_runs")
    octets = context.permitted("held_segments") * flow.segment
    rack = context.ics.get("rack", True)
    patience = context.permitted("reordering_rtts") * board.rtt if rack else math.inf
    below = 4 * largest_segment(flow) if context.ics.get("early_retransmit", True) else 0
    moments = context.prepared.moments
    informative = {m.ack: m.informative for m in moments if m.informative}
    begun = (e for e in context.prepared.episodes if not (e.nested or e.doubtful))
    firsts = {episode.first for episode in begun if episode.fast}
    for repeat in _first_repeats(flow, context):
        sent = repeat.sent
        if sent not in firsts:
            continue
        if sent.start != sent.una or sent.flight < below:
            continue
        counted = informative.get(sent.cause, 0) if sent.cause is not None else 0
        if (
            max(repeat.duplicates, counted) >= DUPLICATE_THRESHOLD
            or repeat.runs >= runs
            or repeat.above > octets
            or (rack and sent.cause and held_segments(flow, sent.cause) >= DUPLICATE_THRESHOLD)
        ):
            yield context.holds(f"recovery began with {repeat.above} octets held", sent)
        elif repeat.age >= patience or (rack and _lost_by_time(flow, sent)):
            yield context.holds(f"recovery began {repeat.age:.3f} s after the transmission", sent)
        elif repeat is board.repeats[0]:
            # Later, a recovery the packets do not show may have begun where another ended.
            yield context.violated(
                f"recovery began with {repeat.above} octets held above {sent.span}",
                sent,
                expected=f"three duplicates, {runs} runs, {octets} octets or {patience:.3f} s",
                actual=f"{repeat.duplicates} duplicates and a wait of {repeat.age:.3f} s",
            )


@checker("SNR-SAK-009")
def no_second_retransmission_without_reason(flow: Flow, context: Context) -> Findings:
    """A segment is retransmitted once in an episode (HK99 rule 5, RFC 6675 section 4, HighRxt)."""
    # Exercised by every retransmission in an acknowledgment-driven recovery. A rescue
    # retransmission leaves HighRxt alone (RFC 6675 section 4, NextSeg rule 4), so that rule 1 or 3
    # may return the same octets once more.
    board = negotiated_scoreboard(flow, context)
    round_trips, rack = context.permitted("repeat_after_rtts"), context.ics.get("rack", True)
    if round_trips and not board.rtt:
        return
    patience = round_trips * board.rtt
    episode_of = {sent: e for e in context.prepared.episodes for sent in e.sent}
    last: dict[int, tuple[Episode | None, int]] = {}
    rescued = RangeSet()
    for repeat in board.repeats:
        sent = repeat.sent
        episode = episode_of.get(sent)
        before, times = last.get(sent.start, (None, 0))
        times = times + 1 if repeat.repeats and before == episode else 1
        last[sent.start] = episode, times
        if repeat.timer or repeat.forgiven:
            continue
        if times == 1:
            rescued.remove_below(sent.una)
            if repeat.tail and sent.end > repeat.highest:
                rescued.add(sent.start, sent.end)
            # A recovery that begins anew may begin with what the one before it retransmitted.
            if not repeat.repeats:
                yield context.holds(f"{sent.span} was retransmitted once", sent)
        elif patience and times == 2 and rescued.covers(sent.start, sent.end):
            yield context.holds(f"{sent.span} was retransmitted once after a rescue", sent)
        elif patience and rack and repeat.delivered_later:
            yield context.holds(f"{sent.span} was retransmitted again, lost by time", sent)
        elif patience and (repeat.tail or repeat.age >= patience - context.timing_error):
            yield context.holds(f"{sent.span} was retransmitted again with reason", sent)
        else:
            yield context.violated(
                f"{sent.span} was retransmitted again after {repeat.age:.3f} s",
                sent,
                expected="no second retransmission before a timeout"
                if not patience
                else f"no second retransmission within {patience:.3f} s",
                actual=f"retransmission number {repeat.repeats + 1}",
            )
