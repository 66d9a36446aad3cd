"""Checkers for how much a recovery with SACK sends, and what first (SNR-SAK-017 to -020).

RFC 6675 section 5 leaves nothing but cwnd hidden: it is ssthresh during a recovery, which the data
outstanding at the beginning bounds.
"""

from __future__ import annotations

from bisect import bisect_right

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, at_most, until_violated
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import EXACT_S, acts_at_once, has_room
from bentpipe_conformance.protocols.tcp.replay.pipe import Choice, Recovery, Rest, Step
from bentpipe_conformance.protocols.tcp.replay.recovery import least_timeout, may_be_undone
from bentpipe_conformance.protocols.tcp.replay.round_trips import longest_rtt, timed_rtt
from bentpipe_conformance.protocols.tcp.replay.scoreboard import AT_ONCE_S
from bentpipe_conformance.protocols.tcp.replay.users import (
    always_sends,
    largest_segment,
    last_before_reports,
    latest,
    may_be_last,
    more_waited,
    newest_before,
    smss_may_vary,
    stopped_at,
    was_paced_below,
)

BY_TIME_SEGMENTS = 1
"""Segments that rounding may add where the window is counted in segments (RFC 9937, RFC 9438)."""

RESTORED_RTTS = 1.5
"""Round trips within which a restored window fills."""


def _share(context: Context) -> float | None:
    """Share of the flight that remains as ssthresh, None when it is not known."""
    share: float | None = context.permitted("share", {}).get(context.ics.get("congestion_control"))
    return share


def _threshold(flight: int, share: float, smss: int) -> float:
    return max(share * flight, 2 * smss)


@checker("SNR-SAK-017")
def recovery_keeps_to_the_reduced_window(flow: Flow, context: Context) -> Findings:
    """A recovery with SACK keeps pipe within ssthresh (RFC 6675 section 5 step C, RFC 9937)."""
    # Exercised by everything a recovery sends after its first retransmission, if blocks began it.
    share = _share(context)
    if share is None or smss_may_vary(flow, context.ics):
        return  # a lost probe of the path's MTU reduces no window (RFC 4821 section 7.7)
    for recovery in context.prepared.recoveries:
        if not recovery.episode.first.sacked:
            # With nothing reported it is RFC 5681's, whose window each duplicate inflates (section
            # 3.2 step 4); that it should not begin is SNR-FR-008.
            continue
        yield from until_violated(_within(flow, context, recovery, share))


def _within(flow: Flow, context: Context, recovery: Recovery, share: float) -> Findings:
    smss = largest_segment(flow)
    rack, prr = (context.ics.get(item, True) for item in ("rack", "prr"))
    slack = BY_TIME_SEGMENTS * smss if rack or prr or share != 0.5 else 0
    limit = _threshold(recovery.most, share, smss) + slack
    first = recovery.episode.first
    if _restored_lately(flow, first) or context.prepared.may_continue(first):
        return
    if was_paced_below(flow, first, context.ics):
        return
    if rack or prr:
        # Limited transmit is two segments (RFC 3042 section 2); what such a sender sends while it
        # waits longer belongs to its window.
        limit = max(limit, share * (first.flight - (DUPLICATE_THRESHOLD - 1) * smss) + slack)
        last = last_before_reports(flow, first)
        pushed = context.permitted("pushed_is_last", False)
        full = pushed and last is not None and may_be_last(flow, last)
        if last is not None and (full or not more_waited(flow, last)):
            # The window that RFC 9438 section 4.6 reduces may be larger than what is outstanding.
            return
        if any(sent.window_edge - sent.max < 2 * smss for sent in (first, last or first)):
            return
        if last is not None:
            if last.window_edge - last.end < 2 * smss:
                return
            recent = flow.between(last.time - longest_rtt(flow), first.time)
            shown = max(sent.outstanding for sent in (last, *recent) if not sent.sacked)
            limit = max(limit, share * shown + slack)
    for step in recovery.steps:
        before, sent = step.before, step.sent
        if sent.timed or may_be_undone(first, sent.cause):
            return
        if rack and sent.since_arrival > AT_ONCE_S + context.timing_error:
            # A reordering timer: what it takes for lost is replaced within the window of the last
            # acknowledgment, for only these reduce it (RFC 9937 section 6).
            return
        pipe = (before.least if rack else before.pipe) + sent.length
        reduced = share * step.delivered + 2 * smss
        if prr and step.out + sent.length <= reduced:
            # Proportional rate reduction spreads the reduction over the recovery.
            continue
        sentence = f"{sent.span} made {pipe} octets in the network; it was {recovery.most}"
        yield at_most(context, pipe, limit, sentence, sent, recovery.episode.first)


def _restored_lately(flow: Flow, first: Sent) -> bool:
    """Whether a window that a D-SACK block restored may not have been filled yet."""
    since = first.time - RESTORED_RTTS * longest_rtt(flow)
    reports = _duplicate_reports(flow)
    at = bisect_right(reports, first.time)
    return at > 0 and reports[at - 1] >= since


@remembered
def _duplicate_reports(flow: Flow) -> list[float]:
    """When D-SACK blocks arrived."""
    return sorted(ack.time for ack in flow.acks if ack.dsack is not None)


def _busy(flow: Flow, at: Ack | Sent, ics: Ics) -> bool:
    """Whether full segments of data certainly waited, the send buffer not being full."""
    number = at.packet.number
    last = latest(flow, at) if isinstance(at, Ack) else newest_before(flow, number)
    full = last is not None and may_be_last(flow, last)
    una = max(at.ack, at.una) if isinstance(at, Ack) else at.una
    room = last is None or has_room(ics, last.end - una, largest_segment(flow))
    return always_sends(flow) and number < stopped_at(flow) and room and not full


def _free(rest: Rest, flow: Flow, smss: int, ics: Ics) -> bool:
    """Whether new data waits and the receiver's window has room for a segment of it."""
    return rest.window_edge - rest.top >= smss and _busy(flow, rest.ack, ics)


@checker("SNR-SAK-018")
def recovery_uses_the_reduced_window(flow: Flow, context: Context) -> Findings:
    """A recovery sends while pipe leaves room in cwnd (RFC 6675 section 5 step C)."""
    # Exercised by acknowledgments of a recovery that leave something to send.
    share = _share(context)
    if share is None or not acts_at_once(context.ics) or not always_sends(flow):
        return
    smss = largest_segment(flow)
    for recovery in context.prepared.recoveries:
        window = max(2, int(_threshold(recovery.flight, share, smss) / smss)) * smss
        for rest in recovery.rests:
            if context.timing_error > EXACT_S and rest.until - rest.ack.time < flow.reaction:
                continue
            offer = _offer(rest.after, _free(rest, flow, smss, context.ics))
            if offer is None:
                continue
            if window - rest.after.pipe >= smss:
                sentence = f"{rest.after.pipe} octets in the network, and {offer} was not sent"
                expected = f"{offer}, as {window} octets may be in the network"
                actual = "nothing more"
                where = rest.ack, *rest.ack.responses, recovery.episode.first
                yield context.violated(sentence, *where, expected=expected, actual=actual)
                break
            yield context.holds(f"{rest.after.pipe} octets filled the window", rest.ack)


def _offer(choice: Choice, fresh: bool) -> str | None:
    """What NextSeg() of RFC 6675 section 4 returns, in words."""
    for rule, found in enumerate((choice.lost, None, choice.doubtful, choice.tail), 1):
        if found is not None:
            return f"{('the lost', '', 'the missing', 'the last')[rule - 1]} offset {found[0]}"
        if rule == 2 and fresh:
            return "new data"
    return None


@checker("SNR-SAK-019")
def next_segment_in_order(flow: Flow, context: Context) -> Findings:
    """A recovery sends what NextSeg() returns (RFC 6675 section 4)."""
    # Exercised by everything a recovery sends after its first retransmission.
    smss = largest_segment(flow)
    for recovery in context.prepared.recoveries:
        for step in recovery.steps:
            if step.sent.timed or step.sent.cause is None:
                break
            if step.sent.start == step.sent.una < step.before.high_rxt:
                break  # what was repeated before: a timeout soon after an arrival
            wanted = _wanted(step, flow, smss, context.ics)
            if wanted is None:
                yield context.holds(f"{step.sent.span} was due", step.sent)
                continue
            yield context.violated(
                f"{_named(step.sent)} was sent before {wanted}",
                step.sent,
                recovery.episode.first,
                expected=wanted,
                actual=_named(step.sent),
            )
            break


def _named(sent: Sent) -> str:
    return f"{'the retransmission of' if sent.retransmission else 'new data'} {sent.span}"


def _wanted(step: Step, flow: Flow, smss: int, ics: Ics) -> str | None:
    """What should have been sent instead of a segment, None when it was right."""
    sent, before = step.sent, step.before
    if before.lost is not None:
        return None if sent.start == before.lost[0] else f"the lost offset {before.lost[0]}"
    if not sent.retransmission or sent.start < before.high_rxt:
        # That a segment is retransmitted twice is another requirement's business.
        return None
    edge = sent.window_edge if sent.cause is None else sent.cause.window_edge
    if edge - sent.max >= smss and _busy(flow, sent, ics):
        return "new data"
    if before.doubtful is not None:
        right = sent.start == before.doubtful[0]
        return None if right else f"the missing offset {before.doubtful[0]}"
    if before.rescued and sent.start >= before.highest:
        return "nothing more, as the end of the outstanding data was repeated before"
    if before.tail is not None and sent.end != before.tail[1]:
        return f"the end of the outstanding data, offset {before.tail[1] - 1}"
    return None


def _answers_report(sent: Sent) -> bool:
    """Whether a segment is the first that left at once after a report of newly held data."""
    if sent.cause is None or sent.since_arrival > AT_ONCE_S:
        return False
    return sent.cause.newly_sacked > 0 and sent.cause.responses[0] is sent


@checker("SNR-SAK-020")
def no_new_recovery_below_recovery_point(flow: Flow, context: Context) -> Findings:
    """After a timeout in a recovery none begins below RecoveryPoint (RFC 6675 section 5.1)."""
    # Exercised by three reports of newly held data below RecoveryPoint after such a timeout.
    if not flow.handshake.sack or not acts_at_once(context.ics):
        return
    for fast in context.prepared.episodes:
        timeout = fast.interrupted
        if not fast.fast or timeout is None or not timeout.first.timed:
            continue
        again = {timeout.first.start}
        reports, progress = 0, timeout.first.time
        events: list[Sent | Ack] = [*timeout.sent[1:], *timeout.acks]
        for event in sorted(events, key=lambda item: item.packet.number):
            if isinstance(event, Ack):
                reports = 0 if event.advance else reports + (event.newly_sacked > 0)
                progress = event.time if event.advance else progress
                if event is timeout.end or not event.acceptable:
                    break
                if reports == DUPLICATE_THRESHOLD and not any(
                    sent.start in again for sent in event.responses
                ):
                    sentence = f"reports below RecoveryPoint {fast.recover} began no recovery"
                    yield context.holds(sentence, event, timeout.first)
            elif event.timed:
                break
            elif context.prepared.scoreboard.timed(event) and not (
                reports == DUPLICATE_THRESHOLD
                and _answers_report(event)
                and event.time - progress < least_timeout(timed_rtt(flow, event.time))
            ):
                break  # a timer may have met an arrival
            elif event.retransmission and event.start in again:
                yield context.violated(
                    f"offset {event.start} was retransmitted twice after the timeout",
                    event,
                    timeout.first,
                    expected="no new recovery below RecoveryPoint",
                    actual=f"a fast retransmission after {reports} reports",
                )
                break
            else:
                again.add(event.start)
