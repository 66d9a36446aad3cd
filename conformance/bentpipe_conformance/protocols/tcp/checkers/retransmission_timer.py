"""Checkers for when the retransmission timer runs and expires (SNR-RTO)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise, takewhile
from operator import attrgetter

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.context import HasPacket
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.checkers import (
    BACK_OFF_CAP_S,
    COARSE_TICK_S,
    Context,
    Findings,
    judged,
    lasted,
    timer_expiries,
    too_coarse,
)
from bentpipe_conformance.protocols.tcp.checkers.window_bounds import follows_rfc_5681
from bentpipe_conformance.protocols.tcp.codec import SYN
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Reply, Segment, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import acts_at_once
from bentpipe_conformance.protocols.tcp.replay.order import (
    count_before,
    earlier,
    later,
    latest_first,
)
from bentpipe_conformance.protocols.tcp.replay.recovery import Episode
from bentpipe_conformance.protocols.tcp.replay.round_trips import INITIAL_TIMEOUT_S, measurements
from bentpipe_conformance.protocols.tcp.replay.timeouts import Expiry, timed_syn_acks
from bentpipe_conformance.protocols.tcp.replay.users import is_own_reset


def _no_sooner(
    context: Context, waited: float, rtt: float, sentence: str, *where: HasPacket
) -> Finding:
    """The finding about a timer that must not expire within a round trip, or its maximum (2.5)."""
    rtt = min(rtt, BACK_OFF_CAP_S)
    expected = f"no sooner than the smallest round trip of {rtt:.3f} s"
    actual = f"after {waited:.3f} s"
    return too_coarse(context, rtt, *where[:1]) or judged(
        context, lasted(context, waited, rtt), sentence, *where, expected=expected, actual=actual
    )


def _at_least(
    context: Context, waited: float, least: float, what: str, where: HasPacket
) -> Finding:
    """The finding about a timer that has a shortest duration."""
    return too_coarse(context, waited, where) or judged(
        context,
        lasted(context, waited, least),
        f"{what} {waited:.3f} s",
        where,
        expected=f"at least {least:.0f} s",
        actual=f"{waited:.3f} s",
    )


@checker("SNR-RTO-001")
def no_timeout_within_a_round_trip(flow: Flow, context: Context) -> Findings:
    """The timer retransmits nothing within a round trip (RFC 6298 section 2)."""
    # Exercised by everything a timer retransmits while no duplicates or SACK blocks came.
    for expiry in timer_expiries(context):
        sent = expiry.sent
        # A tail loss probe may come when the timer would expire anyway (RFC 8985 section 7.2).
        probe = flow.handshake.sack and not expiry.head and expiry.tail
        if not expiry.samples or probe or sent.duplicates or sent.sacked:
            continue
        # The timer may run since before the last progress.
        if expiry.progress in context.prepared.further_partial_acks:
            continue
        if may_be_paced(flow, expiry, context):
            continue
        # What left once more in between restarts no timer (RFC 6298 rules 5.1 and 5.3).
        first = expiry.head and expiry.rank == 1
        took = max(expiry.since_transmission, expiry.since_progress if first else 0.0)
        sentence = f"a timer retransmitted offset {sent.start} after {took:.3f} s"
        yield _no_sooner(context, took, expiry.rtt, sentence, sent)


def may_be_paced(flow: Flow, expiry: Expiry, context: Context) -> bool:
    """Whether a pacing timer may have put a repair off, which then looks as if timed."""
    sent = expiry.sent
    repairs = _is_under_repair(sent, context) or _after_loss_signals(flow, sent, expiry.rtt)
    return repairs and not acts_at_once(context.ics)


def _is_under_repair(sent: Sent, context: Context) -> bool:
    """Whether a segment belongs to what the latest recovery before it has still to repair."""
    number, episodes = sent.packet.number, context.prepared.episodes
    begun = bisect_left(episodes, number, key=attrgetter("first.packet.number"))
    if not begun or sent.una >= episodes[begun - 1].recover:
        return False
    repaired = _repaired(episodes[begun - 1]).get(sent.start)
    return repaired is None or repaired >= number


@remembered
def _repaired(episode: Episode) -> dict[int, int]:
    """With which packet each offset was first retransmitted in a recovery."""
    found: dict[int, int] = {}
    for again in episode.retransmissions:
        found.setdefault(again.start, again.packet.number)
    return found


def _after_loss_signals(flow: Flow, sent: Sent, rtt: float) -> bool:
    """Whether duplicates or SACK blocks came within a round trip before a segment."""
    signs = _loss_signals(flow)
    at = bisect_right(signs, sent.time)
    return at > 0 and sent.time - rtt <= signs[at - 1]


@remembered
def _loss_signals(flow: Flow) -> list[float]:
    """When duplicates and SACK blocks arrived."""
    return sorted(ack.time for ack in flow.acks if ack.duplicates or ack.sacked)


def _measured_between(flow: Flow, first: Sent, second: Sent) -> bool:
    """Whether a report between two timeouts may have measured a round trip, and ended the back-off.

    It does where it tells of something that had been sent once (RFC 6298 section 3, RFC 8985
    section 6.1).
    """
    between = takewhile(lambda ack: ack.packet.number < second.packet.number,
                        later(flow.acks, first.packet))  # fmt: skip
    return any(ack.newly_sacked for ack in between)


@checker("SNR-RTO-002")
def timeout_of_at_least_a_second(flow: Flow, context: Context) -> Findings:
    """The timeout is at least a second (RFC 6298 rule 2.4)."""
    # Exercised by the first timeouts of a row. The timer started no earlier than the last progress
    # or, where each segment has one of its own, than the segment left, so that the longer of both
    # times bounds the timeout from above; the second interval is twice the timeout.
    minimum = context.permitted("minimum_s", 1.0)
    tlp = context.ics.get("tlp", True)
    further = context.prepared.further_partial_acks
    before: Expiry | None = None
    for expiry in timer_expiries(context):
        last, before = before, expiry
        if not expiry.certain or expiry.rank > 2:
            continue
        first = expiry.interval is None
        if first and (expiry.rank > 1 or expiry.progress in further):
            continue
        # The first of a row may have been a tail loss probe, which doubles nothing (RFC 8985 7.3).
        alike = tlp or (last is not None and _measured_between(flow, last.sent, expiry.sent))
        part, share = ("the interval", 1) if alike else ("half the interval", 2)
        started = max(expiry.since_progress, expiry.since_transmission)
        bound = started if first else (expiry.interval or 0.0) / share
        reason = "by what started it" if first else f"by {part} between timeouts"
        what = f"the retransmission timeout, {reason}, is at most"
        yield _at_least(context, bound, minimum, what, expiry.sent)


@checker("SNR-RTO-003")
def first_timeout_without_a_measurement(flow: Flow, context: Context) -> Findings:
    """Without a measurement the timeout is at least a second (RFC 6298 rule 2.1)."""
    # Exercised by a SYN-ACK that the timer repeats.
    minimum = context.permitted("minimum_s", 1.0)
    syn_acks = timed_syn_acks(flow)
    if len(syn_acks) < 2:
        return
    waited, again = syn_acks[1].time - syn_acks[0].time, syn_acks[1]
    yield _at_least(context, waited, minimum, "the SYN-ACK was repeated after", again)


def _judge_ratio(
    context: Context,
    before: float,
    after: float,
    what: str,
    *where: HasPacket,
    restarted: float | None = None,
) -> Finding:
    """Judge two successive intervals of a back-off.

    ``restarted`` is how long before the end of the second the timer may have been restarted.
    """
    low, high = context.permitted("ratio", [1.8, 2.5])
    cap = context.permitted("cap_s", BACK_OFF_CAP_S)
    least, most = min(low * before, cap * 0.95), high * before + COARSE_TICK_S
    return too_coarse(context, before, *where) or judged(
        context,
        least - context.timing_error <= after
        and (after if restarted is None else restarted) <= most + context.timing_error,
        f"{what}: {before:.2f} s, then {after:.2f} s",
        *where,
        expected=f"about {min(2 * before, max(cap, before)):.2f} s",
        actual=f"{after:.2f} s",
    )


@checker("SNR-RTO-004")
def syn_ack_is_repeated_with_back_off(flow: Flow, context: Context) -> Findings:
    """The SYN-ACK is repeated with back-off (RFC 9293 section 3.8.1, RFC 6298 rule 5.5)."""
    # Exercised by two repetitions, or by a long silence after the SYN-ACK.
    syn_acks = timed_syn_acks(flow)
    if len(syn_acks) == 1:
        first = syn_acks[0]
        answers = (item.time for item in later(flow.arriving, first.packet))
        # Of one that may answer another SYN nothing is known but that it is a repetition.
        repeated = (s.time for s in later(flow.leaving, first.packet) if s.tcp.flags & SYN)
        silent = min(next(answers, flow.horizon), next(repeated, flow.horizon)) - first.time
        if silent > 4 * INITIAL_TIMEOUT_S:
            sentence = f"the SYN-ACK was not repeated in {silent:.1f} s"
            yield context.violated(sentence, first, expected="a retransmission", actual="none")
    intervals = [after.time - before.time for before, after in pairwise(syn_acks)]
    for (before, after), again in zip(pairwise(intervals), syn_acks[2:], strict=False):
        yield _judge_ratio(context, before, after, "intervals between SYN-ACKs", again)


@checker("SNR-RTO-005")
def three_seconds_after_a_lost_handshake(flow: Flow, context: Context) -> Findings:
    """After a lost handshake the timeout is three seconds (RFC 6298 rule 5.7)."""
    # Exercised by the first data timing out after the SYN-ACK had been repeated.
    if len(timed_syn_acks(flow)) < 2 or flow.handshake.timestamps:
        return
    minimum = context.permitted("minimum_s", 3.0)
    for expiry in timer_expiries(context)[:1]:
        if expiry.samples or not expiry.certain or expiry.progress is not None:
            return
        if any(sent.retransmission for sent in earlier(flow.sent, expiry.sent.packet)):
            return  # a timeout may have met an arrival before
        what = "the first data after a lost SYN-ACK timed out after"
        waited, late = expiry.since_progress, context.permitted("tick_s")
        most = context.permitted("ratio") * minimum + late
        if follows_rfc_5681(context) and waited > most + context.timing_error:
            expected = f"three seconds, however often the SYN-ACK was sent, {most:.2f} s at most"
            yield too_coarse(context, waited, expiry.sent) or context.violated(
                f"{what} {waited:.3f} s", expiry.sent, expected=expected, actual=f"{waited:.3f} s"
            )
            return
        yield _at_least(context, waited, minimum, what, expiry.sent)


@checker("SNR-RTO-006")
def back_off_doubles(flow: Flow, context: Context) -> Findings:
    """Timeouts in a row double, up to 60 seconds or more (RFC 6298 rules 2.5 and 5.5)."""
    # Exercised by three timeouts in a row for one segment.
    last: Expiry | None = None
    for expiry in timer_expiries(context):
        if (
            last is not None
            and (expiry.rank, expiry.sent.start) == (last.rank + 1, last.sent.start)
            and last.interval
            and expiry.interval
            and not _measured_between(flow, last.sent, expiry.sent)
        ):
            what = "intervals between timeouts"
            # What arrived in between may have restarted the timer, which then expires later.
            restarted = min(expiry.since_arrival, expiry.interval)
            intervals = last.interval, expiry.interval
            yield _judge_ratio(
                context, *intervals, what, expiry.sent, last.sent, restarted=restarted
            )
        last = expiry


@checker("SNR-RTO-010")
def acknowledgment_restarts_the_timer(_flow: Flow, context: Context) -> Findings:
    """An acknowledgment of new data restarts the timer (RFC 6298 rule 5.3)."""
    # Exercised by a timeout after an acknowledgment that left data outstanding.
    plain = follows_rfc_5681(context)
    recovering = {ack for episode in context.prepared.episodes for ack in episode.acks}
    for expiry in timer_expiries(context):
        sent, progress = expiry.sent, expiry.progress
        certain = expiry.certain or (plain and expiry.head and not expiry.tail)
        if not certain or expiry.rank > 1 or progress is None or not expiry.samples:
            continue
        # Within recovery a partial acknowledgment need not restart it (RFC 6582 section 3.2).
        if sent.transmission > 2 or sent.duplicates or progress.max <= sent.start:
            continue
        if sent.sacked and not (plain and progress not in recovering):
            continue
        waited = expiry.since_progress
        if context.permitted("from_transmission", False):
            waited = max(waited, expiry.since_transmission)
        sentence = f"the timer expired {waited:.3f} s after an acknowledgment of new data"
        yield _no_sooner(context, waited, expiry.rtt, sentence, sent, progress)


PERSISTENCE_S = 100.0
"""Seconds after which a silent peer may be given up, with or without a RST (RFC 9293, SHLD-11)."""
LEAST_TIMEOUT_S = 1.0
"""A timeout is no less (RFC 6298 rule 2.4)."""

CLOSED_PERSISTENCE_S = 30.0
"""The same for a connection whose user has closed it; Linux takes a minute."""


@checker("SNR-RTO-011")
def timer_runs_while_data_is_outstanding(flow: Flow, context: Context) -> Findings:
    """The timer runs while data is outstanding (RFC 6298 rule 5.1, RFC 8985 section 7)."""
    # Exercised by a timed retransmission, and by silence that lasts too long.
    patience, closed = context.permitted("patience_s", 12.0), context.permitted("closed_s", 60.0)
    expiries = {item.sent: item for item in timer_expiries(context)}
    measured = measurements(flow)
    longest = measured.at_first.longest_timeout
    last_event: Sent | Ack | Reply | None = None
    edge = una = top = 0
    waiting = backed_off = progress = 0.0
    transmitted: dict[int, float] = {}
    persistence = PERSISTENCE_S
    for event in flow.events:
        if flow.resets and event.packet.number > flow.resets[0].number:
            return  # the connection is over
        if isinstance(event, Reply) and edge <= una and top > una:
            last_event = event  # it may be a probe without data
        if not isinstance(event, Sent | Ack):
            continue
        given_up = last_event is not None and last_event.time - progress >= persistence
        owed = top > una and not given_up
        if owed and last_event is not None and event.time - last_event.time > waiting:
            yield _silence(context, last_event, event, event.time, waiting)
        if isinstance(event, Sent):
            progress = event.time if top <= una else progress
            persistence = CLOSED_PERSISTENCE_S if event.fin else persistence
            top = max(event.max, event.end)
            # A timer may have met an arrival, which hides that it expired.
            before, transmitted[event.start] = transmitted.get(event.start), event.time
            backed_off = max(backed_off, 4 * (event.time - before) if before is not None else 0.0)
            expiry = expiries.get(event)
            if expiry is not None:
                backed_off = max(backed_off, 4 * (expiry.interval or expiry.since_progress))
                yield context.holds(f"offset {event.start} was retransmitted by a timer", event)
        elif event.acceptable or event.may_heed:
            edge, una = event.window_edge, max(una, event.ack, event.una)
            progress = event.time if event.advance else progress
            longest = measured.before(event.packet.number).longest_timeout
        least = patience if edge > una else closed
        waiting = max(least, 4 * longest, backed_off)
        last_event = event
    given_up = last_event is not None and last_event.time - progress >= persistence
    owed = top > una and not given_up
    if owed and last_event is not None and flow.horizon - last_event.time > waiting:
        yield _silence(context, last_event, None, flow.horizon, waiting)


def _silence(
    context: Context, since: Sent | Ack | Reply, ended: Sent | Ack | None, until: float,
    patience: float,
) -> Finding:  # fmt: skip
    sentence = f"data was outstanding for {until - since.time:.1f} s and nothing was retransmitted"
    expected = f"a retransmission within {patience:.1f} s"
    where = since if ended is None else ended, since
    return context.violated(sentence, *where, expected=expected, actual="silence")


def _expired_after(flow: Flow, context: Context, expiry: Expiry) -> float | None:
    """The timeout that has expired: of a lone segment the first shows it, of others the second.

    That of a sender that paces may have run since the next segment would have been let out.
    """
    alone = min(expiry.since_transmission, expiry.since_progress)
    waited = alone if expiry.head and expiry.tail else expiry.interval
    if waited is None or acts_at_once(context.ics):
        return waited
    before = latest_first(flow.sent, count_before(flow.sent, expiry.sent.packet.number))
    first = next((sent for sent in before if sent.start <= expiry.sent.start), None)
    previous = next(before, None)
    gap = first.time - previous.time if first is not None and previous is not None else 0.0
    return max(0.0, waited - gap)


@checker("SNR-RTO-013")
def back_off_lasts_until_a_valid_measurement(flow: Flow, context: Context) -> Findings:
    """Back-off lasts until a valid measurement (RFC 6298 sections 3 and 5)."""
    # Exercised by a timeout after others and acknowledgments of nothing but what they repeated.
    # Twice the last timeout is the one then in force. The interval shows it, but for a coarse tick
    # on which the timer may have expired. It counts from the acknowledgment, or from a transmission
    # under that timeout: RFC 6298 section 5 asks for a timeout after that at least, and what
    # restarts the timer is SNR-RTO-010's business.
    if flow.handshake.timestamps:
        return
    expiries = {item.sent: item for item in timer_expiries(context)}
    row: Expiry | None = None
    kept: tuple[Ack, float] | None = None
    expired = 0.0
    again = RangeSet()
    for event in flow.events:
        if isinstance(event, Sent) and event.retransmission:
            again.add(event.start, event.end)
        if isinstance(event, Ack) and event.acceptable:
            if event.advance:
                ambiguous = again.covers(event.una, event.ack)
                if row is not None and ambiguous and (before := _expired_after(flow, context, row)):
                    kept, expired = (event, before), row.sent.time
                elif kept is not None:
                    kept = (event, kept[1]) if ambiguous else None
                row = None
            if event.newly_sacked:
                kept = None
        elif isinstance(event, Sent) and event in expiries:
            expiry = expiries[event]
            row = expiry if expiry.certain else None
            if kept is None or not expiry.certain or expiry.rank > 1:
                continue
            ack, before = kept
            kept = None
            if expiry.progress in context.prepared.further_partial_acks:
                continue
            waited = expiry.since_progress
            if event.time - expiry.since_transmission > expired:
                waited = max(waited, expiry.since_transmission)
            shown = max(before - COARSE_TICK_S, min(before, LEAST_TIMEOUT_S))
            least = min(1.8 * before, 2 * shown, 0.9 * BACK_OFF_CAP_S)
            yield too_coarse(context, least, event) or judged(
                context,
                waited >= least - context.timing_error,
                "a timeout followed the acknowledgment of a retransmitted segment",
                event,
                ack,
                expected=f"the backed-off timeout of {2 * before:.2f} s",
                actual=f"one of {waited:.2f} s",
            )


@checker("SNR-RTO-014")
def persistence(flow: Flow, context: Context) -> Findings:
    """A connection is not given up within 100 seconds (RFC 9293 section 3.8.3)."""
    # Exercised by a retransmission that late, and by a RST the tester did not cause.
    least = context.permitted("persistence_s", 100.0)
    expiries = timer_expiries(context)
    for expiry in expiries:
        if min(expiry.since_progress, expiry.since_arrival) >= least:
            yield context.holds(
                f"data was still retransmitted after {expiry.since_progress:.0f} s", expiry.sent
            )
    if not flow.resets or not flow.resets[0].outgoing or not is_own_reset(flow, flow.resets[0]):
        return
    reset = Segment(flow.resets[0])
    last = next((item for item in reversed(expiries) if item.sent.time <= reset.time), None)
    if last is None or any(
        event.time <= reset.time
        for events in (flow.acks, flow.arrivals)
        for event in later(events, last.sent.packet)
    ):
        found = _owed_at(flow, reset)
    else:
        waited = reset.time - last.sent.time + min(last.since_progress, last.since_arrival)
        found = last.sent, waited
    if found is None:
        return
    sent, waited = found
    if waited < least - context.timing_error:
        sentence = f"the connection was reset after {waited:.1f} s without an acknowledgment"
        yield context.violated(
            sentence, reset, sent, expected=f"at least {least:.0f} s", actual=f"{waited:.1f} s"
        )


def _owed_at(flow: Flow, reset: Segment) -> tuple[Sent, float] | None:
    """The latest segment before a RST that no arrival explains, and seconds without progress.

    None where nothing was outstanding, or the window was closed, whose probes may end for want of
    resources.
    """
    edge = una = 0
    since = heard = 0.0
    sent: Sent | None = None
    for event in flow.events:
        if event.packet.number >= reset.packet.number:
            break
        if isinstance(event, Sent):
            since = event.time if event.max == event.una else since
            edge = edge or event.window_edge
            sent = event
        else:
            heard = event.time
            if isinstance(event, Ack) and event.acceptable:
                edge, una = event.window_edge, max(una, event.ack)
                since = event.time if event.advance else since
                sent = None if event.ack >= event.max else sent
    if sent is None or edge <= una or reset.time - max(heard, sent.time) <= flow.reaction:
        return None
    return sent, reset.time - since
