"""Checkers for acknowledgments that a sender has to survive (SNR-SAK-011 to -014 and -016).

Those from SNR-SAK-012 on share one question: while nothing is known to be missing, did an odd
acknowledgment make the sender retransmit, reset or fall silent?
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged, timer_expiries
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import may_have_given_up
from bentpipe_conformance.protocols.tcp.replay.moments import acts_at_once, may_be_tail_probe
from bentpipe_conformance.protocols.tcp.replay.option_list import SACK, walk_options
from bentpipe_conformance.protocols.tcp.replay.order import later
from bentpipe_conformance.protocols.tcp.replay.round_trips import longest_timeout, minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.scoreboard import AT_ONCE_S
from bentpipe_conformance.protocols.tcp.replay.users import is_own_reset

SILENCE_S = 15.0
"""Silence with data outstanding that no first retransmission timeout explains (RFC 6298)."""

MAY_MEET_ARRIVALS_S = 0.95
"""From about here on a timeout may meet an arrival, however exactly (RFC 6298 rule 2.4)."""

HARMLESS = "no retransmission, no reset, no stall"


def in_calm(context: Context, odd: Iterable[tuple[Ack, str]]) -> Iterator[tuple[Ack, str]]:
    """Of described acknowledgments, those that arrived while nothing was known to be missing.

    That is on an established connection, outside recovery, with no hole known and few duplicates.
    """
    established = context.prepared.lifetime.established
    if established is None:
        return
    begin = established.packet.number
    episodes = context.prepared.episodes
    begun = [episode.first.time for episode in episodes]
    # Until when those that have begun last.
    ends = list(accumulate((e.end.time if e.end else float("inf") for e in episodes), max))
    for ack, what in odd:
        # This acknowledgment may have started an episode that began at the same time.
        before = bisect_left(begun, ack.time)
        recovering = before > 0 and ack.time <= ends[before - 1]
        report = context.prepared.scoreboard.report_of.get(ack)
        if ack.packet.number < begin:
            continue
        if report is not None and (report.holes or report.forgiven):
            continue
        if recovering or ack.duplicates >= DUPLICATE_THRESHOLD:
            continue
        yield ack, what


def _retransmission(context: Context, ack: Ack) -> Sent | None:
    """A retransmission that ``ack`` caused and nothing else explains.

    Something else may be a timer, a probe, or RACK's timer for what was sent before a segment that
    has been delivered (RFC 8985 section 6.2 step 5).
    """
    rack = context.ics.get("rack", True)
    for sent in ack.responses:
        repeat = context.prepared.scoreboard.repeat_of.get(sent)
        if repeat is None or repeat.forgiven or sent.probed:
            continue
        if may_be_tail_probe(sent, context.ics):
            continue
        by_timer = repeat.timer or (rack and repeat.delivered_later)
        apart = sent.since_arrival > AT_ONCE_S or repeat.age >= MAY_MEET_ARRIVALS_S
        # An acknowledgment may also be the occasion at which that timer's time is found to be over.
        overdue = rack and repeat.delivered_later and repeat.age >= context.prepared.scoreboard.rtt
        if not (by_timer and apart) and not overdue:
            return sent
    return None


def _reset(flow: Flow, ack: Ack) -> bool:
    """Whether the implementation itself answered ``ack`` with a RST."""
    return any(
        reset.outgoing and 0 <= reset.time - ack.time <= flow.reaction and is_own_reset(flow, reset)
        for reset in flow.resets[:1]
    )


@remembered
def _last_news(flow: Flow) -> tuple[int, int]:
    """Number of the last packet with a new acknowledgment, and the highest that may be heeded."""
    advanced = (ack.packet.number for ack in reversed(flow.acks) if ack.advance)
    heeded = (ack.ack for ack in flow.acks if ack.may_heed)
    return next(advanced, 0), max(heeded, default=-1)


def _stalled(flow: Flow, context: Context, ack: Ack) -> bool:
    """Whether the sender said nothing more although data stayed outstanding for long."""
    patience = max(SILENCE_S + 12 * context.prepared.scoreboard.rtt, longest_timeout(flow))
    if ack.max <= max(ack.una, ack.ack) or flow.horizon - ack.time < patience:
        return False
    advanced, heeded = _last_news(flow)
    if advanced > ack.packet.number or heeded > ack.una:
        return False  # in the second case perhaps nothing is outstanding
    return next(later(flow.sent, ack.packet), None) is None


def harmless(
    flow: Flow, context: Context, ack: Ack, what: str, *, may_reset: bool = False
) -> Finding:
    """The finding about an acknowledgment that must have no effect, but perhaps a RST."""
    repeat = _retransmission(context, ack)
    if repeat is not None:
        sentence = f"{what} made the sender retransmit {repeat.span}"
        actual = f"a retransmission of offset {repeat.start}"
        return context.violated(sentence, repeat, ack, expected=HARMLESS, actual=actual)
    if _reset(flow, ack) and not (may_reset or may_have_given_up(flow, ack)):
        return context.violated(
            f"{what} made the sender reset the connection", ack, expected=HARMLESS, actual="RST"
        )
    if _stalled(flow, context, ack):
        sentence = f"the sender fell silent after {what}"
        actual = f"nothing was sent for {SILENCE_S:.0f} s with data outstanding"
        return context.violated(sentence, ack, expected=HARMLESS, actual=actual)
    return context.holds(f"{what} did no harm", ack)


def _all_harmless(flow: Flow, context: Context, odd: Iterable[tuple[Ack, str]]) -> Findings:
    for ack, what in in_calm(context, odd):
        yield harmless(flow, context, ack, what)


def _impossible(block: Range, ack: Ack) -> bool:
    left, right = block
    return left >= right or left >= ack.max or right <= min(ack.una, ack.ack)


@checker("SNR-SAK-012")
def impossible_blocks_do_no_harm(flow: Flow, context: Context) -> Findings:
    """Impossible SACK blocks are ignored (RFC 2018 section 4, RFC 6675 section 3)."""
    # Exercised by acknowledgments all of whose blocks are empty, inverted or out of range.
    if flow.handshake.sack:
        odd = (
            (ack, "the impossible SACK block [{}, {})".format(*ack.invalid_blocks[0]))
            for ack in flow.acks
            if ack.invalid_blocks and not (ack.blocks or ack.dsack) and ack.acceptable
            if all(_impossible(block, ack) for block in ack.invalid_blocks)
        )
        yield from _all_harmless(flow, context, odd)


@checker("SNR-SAK-013")
def malformed_option_does_no_harm(flow: Flow, context: Context) -> Findings:
    """A malformed SACK option does no harm (RFC 9293 section 3.2, MUST-7)."""
    # Exercised by acknowledgments with a SACK option of impossible length.
    odd = ((ack, _malformed_length(ack)) for ack in flow.acks)
    named = ((ack, f"a SACK option of length {size}") for ack, size in odd if size is not None)
    for ack, what in in_calm(context, named):
        # A suggested procedure is to reset the connection.
        yield harmless(flow, context, ack, what, may_reset=True)


def _malformed_length(ack: Ack) -> int | None:
    """The length field of the first SACK option that is impossible, None when there is none."""
    for kind, size, fits in walk_options(ack.packet):
        if kind == SACK and (size < 10 or (size - 2) % 8 or not fits):
            return size
    return None


@checker("SNR-SAK-014")
def duplicate_report_is_no_evidence(flow: Flow, context: Context) -> Findings:
    """A D-SACK block is not evidence of a loss (RFC 2883 section 4)."""
    # Exercised by acknowledgments that carry a D-SACK block and report nothing else.
    if flow.handshake.sack:
        odd = ((a, a.dsack) for a in flow.acks if a.dsack and not a.blocks and a.acceptable)
        named = ((ack, "the D-SACK block [{}, {})".format(*dsack)) for ack, dsack in odd)
        yield from _all_harmless(flow, context, named)


@checker("SNR-SAK-016")
def blocks_not_negotiated_are_ignored(flow: Flow, context: Context) -> Findings:
    """SACK blocks that were not negotiated are ignored (RFC 2018 section 2)."""
    # Exercised by SACK blocks on a connection that did not negotiate SACK.
    if not flow.handshake.sack:
        odd = (ack for ack in flow.acks if ack.tcp.sack and ack.acceptable)
        named = ((ack, "a SACK block that was not negotiated") for ack in odd)
        yield from _all_harmless(flow, context, named)


def _forgotten_after_timeouts(flow: Flow, context: Context) -> Findings:
    """A timeout makes the sender forget what was reported before it (RFC 2018 section 8).

    Who keeps it has to find out that the receiver has reneged when the acknowledgment stops there
    (RFC 6675 section 5.1): either way that leaves before anything else.
    """
    timeouts = {item.sent for item in timer_expiries(context) if item.certain}
    timeout: Sent | None = None
    earlier, since = RangeSet(), RangeSet()
    for event in flow.events:
        if isinstance(event, Sent):
            if event in timeouts:
                timeout, earlier, since = event, RangeSet(event.sacked), RangeSet()
            if event.retransmission:
                since.add(event.start, event.end)
        elif isinstance(event, Ack) and timeout is not None and event.acceptable:
            for left, right in event.blocks:
                since.add(left, right)
            if not event.advance:
                continue
            una, first = event.ack, event.responses[:1]
            if una >= timeout.max:
                timeout = None
            elif first and not event.blocks and earlier.overlap(una, una + 1):
                if since.overlap(una, una + 1):
                    continue
                yield judged(
                    context,
                    first[0].start == una,
                    f"the acknowledgment stopped at offset {una}, reported held before a timeout",
                    first[0],
                    event,
                    timeout,
                    expected=f"offset {una} first",
                    actual=first[0].span,
                )


@checker("SNR-SAK-011")
def reneged_data_is_retransmitted(flow: Flow, context: Context) -> Findings:
    """Data reported held is kept until acknowledged (RFC 2018 sections 5 and 8)."""
    # Exercised when the cumulative acknowledgment stops at data that had been reported held.
    if not flow.handshake.sack:
        return
    if acts_at_once(context.ics) and not context.ics.get("rack", True):
        yield from _forgotten_after_timeouts(flow, context)
    round_trips = context.permitted("patience_rtts") * minimum_rtt(flow)
    patience = max(context.permitted("patience_s"), round_trips, longest_timeout(flow))
    original: dict[int, bytes] = {}
    timeouts = [e.first.time for e in context.prepared.episodes if not e.fast]
    last = flow.horizon
    for index, event in enumerate(flow.events):
        if isinstance(event, Sent) and not event.retransmission:
            original[event.start] = event.tcp.payload
        if not isinstance(event, Ack) or not event.acceptable:
            continue
        if event.advance:
            while original and _ended(original, event.ack):
                del original[next(iter(original))]
        reneged = event.sacked and event.sacked[0][0] <= event.ack < event.max
        if not reneged or (not event.advance and not event.newly_sacked):
            continue
        answer = _next_of_una(flow, index)
        backed_off = any(event.time - 60 < time <= event.time for time in timeouts)
        if isinstance(answer, Sent):
            yield _same_octets(context, answer, original, event)
        elif answer is None and last - event.time > patience and not backed_off:
            sentence = f"reneged data was not retransmitted within {patience:.0f} s"
            expected = f"a retransmission of offset {event.ack}"
            yield context.violated(sentence, event, expected=expected, actual="none")


def _ended(original: dict[int, bytes], ack: int) -> bool:
    """Whether the first of the segments ends at or below an acknowledgment number."""
    start = next(iter(original))
    return start + len(original[start]) <= ack


def _next_of_una(flow: Flow, index: int) -> Sent | Ack | None:
    """What comes first after event ``index``: a repetition of its ACK's offset, or its advance."""
    ack = flow.events[index]
    assert isinstance(ack, Ack)
    for event in flow.events[index + 1 :]:
        if isinstance(event, Sent) and event.retransmission and event.start <= ack.ack < event.end:
            return event
        if isinstance(event, Ack) and event.advance:
            return event
    return None


def _same_octets(context: Context, sent: Sent, original: dict[int, bytes], sign: Ack) -> Finding:
    payload, before = sent.tcp.payload, original.get(sent.start, b"")
    if sent.tcp.missing:
        # What the capture did not keep cannot be compared.
        return context.holds(f"{sent.span}, once reported held, was retransmitted", sent, sign)
    same = payload[: len(before)] == before[: len(payload)]
    how = "the same" if same else "other"
    sentence = f"{sent.span}, once reported held, was retransmitted with {how} octets"
    expected = "the same octets"
    return judged(context, same, sentence, sent, sign, expected=expected, actual="different octets")
