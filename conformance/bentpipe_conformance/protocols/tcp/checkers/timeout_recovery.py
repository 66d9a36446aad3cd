"""Checkers for what a timeout sends and how the sender continues (SNR-RTO)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, at_most, timer_expiries
from bentpipe_conformance.protocols.tcp.checkers.retransmission_timer import may_be_paced
from bentpipe_conformance.protocols.tcp.checkers.window_bounds import exceeded
from bentpipe_conformance.protocols.tcp.replay.aftermath import Aftermath, Step
from bentpipe_conformance.protocols.tcp.replay.bounds import Phase
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import acts_at_once
from bentpipe_conformance.protocols.tcp.replay.order import count_before, later, latest_first
from bentpipe_conformance.protocols.tcp.replay.pacing import PACED_S
from bentpipe_conformance.protocols.tcp.replay.recovery import begins_last_buffer
from bentpipe_conformance.protocols.tcp.replay.round_trips import longest_delivery
from bentpipe_conformance.protocols.tcp.replay.timeouts import Expiry
from bentpipe_conformance.protocols.tcp.replay.users import largest_segment

LATEST_LOST_RTTS = 1.25
"""Round trips after which RACK takes for lost what has not been delivered (RFC 8985 6.2)."""


def _may_be_put_off(flow: Flow, context: Context, expiry: Expiry) -> bool:
    """Whether a pacing timer may have sent what the latest progress lets the sender repair."""
    soon = expiry.rank == 1 and expiry.progress is not None and expiry.since_progress < PACED_S
    return soon and may_be_paced(flow, expiry, context)


def _may_be_by_time(flow: Flow, context: Context, expiry: Expiry) -> bool:
    """Whether RACK's timer may have expired: a repair has just been delivered.

    What had left before it counts as lost after a reordering window, with nothing reported held
    (RFC 8985 section 6.2).
    """
    progress = expiry.progress
    if not (flow.handshake.sack and context.ics.get("rack", True)) or progress is None:
        return False
    repaired = any(
        sent.retransmission and progress.una <= sent.start < progress.ack
        for sent in flow.sent
        if sent.packet.number < progress.packet.number
    )
    return repaired and expiry.since_arrival <= expiry.longest_rtt


@checker("SNR-RTO-007")
def one_segment_per_timeout(flow: Flow, context: Context) -> Findings:
    """A timeout sends one segment (RFC 5681 section 3.1)."""
    # Exercised by every timeout.
    timeouts = {
        item.sent: item
        for item in timer_expiries(context)
        if item.certain
        and not _may_be_by_time(flow, context, item)
        and not _may_be_put_off(flow, context, item)
    }
    spares = context.permitted("spares_recent", False) and flow.handshake.sack
    current: Expiry | None = None
    edge = spared = 0
    for event in flow.events:
        if isinstance(event, Ack | Arrival):
            if current is not None:
                yield context.holds("one segment was sent on the timeout", current.sent)
            current = None
        elif isinstance(event, Sent):
            if event in timeouts:
                current = timeouts[event]
                edge = event.start + max(largest_segment(flow), event.length)
                spared = len(recent(flow, current)) if spares else 0
            elif current is not None and spared:
                spared -= 1
            elif current is not None and (event.end > edge or event.start < current.sent.start):
                yield context.violated(
                    "the timeout sent more than one segment",
                    event,
                    current.sent,
                    expected="one segment until something arrives or the timer expires again",
                    actual=f"also {event.span}, {event.time - current.sent.time:.3f} s later",
                )
                current = None


def _ends_at_the_edge(flow: Flow, sent: Sent) -> bool:
    """Whether it is the last that the window admits, which has moved back over what was sent."""
    acks = latest_first(flow.acks, count_before(flow.acks, sent.packet.number))
    latest = next((ack for ack in acks if ack.acceptable), None)
    return latest is not None and sent.end == latest.ack + latest.window < sent.max


@checker("SNR-RTO-008")
def earliest_segment_first(flow: Flow, context: Context) -> Findings:
    """A timeout retransmits the earliest segment (RFC 6298 rule 5.4)."""
    # Exercised by every retransmission after a silence too long for any other mechanism.
    grown = context.permitted("probes_first_of_last", False)
    for expiry in timer_expiries(context):
        sent = expiry.sent
        if expiry.certain:
            yield context.holds(f"the timeout retransmitted offset {sent.start}", sent)
            continue
        silent = min(expiry.since_arrival, sent.since_sent)
        # A tail loss probe needs SACK and is not repeated (RFC 8985 section 7.3).
        last = expiry.tail or _ends_at_the_edge(flow, sent)
        last = last or (grown and begins_last_buffer(flow, sent))
        probe = last and flow.handshake.sack and expiry.rank == 1
        earliest = sent.possible[0] <= sent.start <= sent.possible[1]
        # A segment acknowledged in part stays on the queue, whole (RFC 9293 section 3.10.7.4).
        earliest = earliest or sent.start < sent.una < sent.end
        if earliest or probe or not expiry.samples or silent <= 1.5 * expiry.longest_rtt:
            continue
        if may_be_paced(flow, expiry, context):
            if context.ics.get("pacing") is None:
                sentence = f"a pacing timer could have put the repair of offset {sent.start} off"
                yield context.unclear(sentence, sent)
            continue
        yield context.violated(
            f"the timer retransmitted offset {sent.start} while {sent.una} is outstanding",
            sent,
            expected=f"the segment at offset {sent.una}",
            actual=f"the segment at offset {sent.start}",
        )


def recent(flow: Flow, expiry: Expiry) -> list[Sent]:
    """What was sent too shortly before a timeout to be lost by time (RFC 8985 section 6.3)."""
    sent = expiry.sent
    longest = max(expiry.longest_rtt, longest_delivery(flow, sent.packet.number))
    since = sent.time - LATEST_LOST_RTTS * longest
    return flow.between(since, sent.time)


def _beyond_the_text(flow: Flow, context: Context, aftermath: Aftermath, step: Step) -> int:
    """Octets by which the window exceeds RFC 5681's with alternatives that no profile permits."""
    octets = 0
    segment, number = largest_segment(flow), step.sent.packet.number
    expiry = aftermath.expiry
    counts_segments = context.permitted("counts_segments", False)
    if counts_segments:
        delivered = (s.sent for s in aftermath.steps if s.sent.end <= step.sent.una)
        earlier = (sent for sent in delivered if sent.packet.number < number)
        octets += sum(segment - sent.payload for sent in earlier)
    if context.permitted("spares_recent", False) and flow.handshake.sack:
        spared = recent(flow, expiry)
        octets += sum(segment if counts_segments else sent.payload for sent in spared)
    return octets


def _asked_by(aftermath: Aftermath, segment: int) -> int:
    """Octets of new data by which F-RTO asks whether the timeout was spurious.

    Behind them it may retransmit as if they had not left (RFC 5682 section 2.1 steps 2b and 3a).
    """
    first = [step.sent for step in aftermath.steps if step.acks == 1]
    if not first or not first[0].new:
        return 0
    return min(sum(sent.payload for sent in first if sent.new), 2 * segment)


@checker("SNR-RTO-009")
def slow_start_after_timeout(flow: Flow, context: Context) -> Findings:
    """Slow start follows a timeout (RFC 5681 section 3.1)."""
    # Exercised by data that an acknowledgment clocks out after a timeout.
    yield from exceeded(flow, context, Phase.REPAIR)
    segment = largest_segment(flow)
    unlimited = context.ics.get("byte_counting", "unlimited") == "unlimited"
    counted = context.permitted("counts", "octets") == "octets"
    by_octets = counted and unlimited
    appropriate = counted and context.ics.get("byte_counting") == "abc"
    by_time = flow.handshake.sack and context.ics.get("rack", True)
    for aftermath in context.prepared.aftermaths(acts_at_once(context.ics)):
        repairing = 0
        for step in aftermath.steps:
            if step.sent.una < aftermath.recover:
                repairing = step.acks
            # Once the loss is repaired, appropriate byte counting may count two segments.
            further = step.acks - repairing if appropriate else 0
            growth = step.delivered if by_octets else (step.acks + further) * segment
            # One segment of tolerance: a sender that counts segments may round each one up.
            limit = 2 * segment + growth
            pipe = step.least if by_time else step.pipe
            if pipe > limit:
                limit += _beyond_the_text(flow, context, aftermath, step)
            if pipe > limit and step.sent.retransmission and context.ics.get("frto", True):
                limit += _asked_by(aftermath, segment)
            if pipe > limit and step.spurious and context.ics.get("frto", True):
                break  # the window may be what it was
            if pipe > limit:
                sentence = f"too much is in the network {step.acks} acknowledgments after a timeout"
                yield at_most(context, pipe, limit, sentence, step.sent, aftermath.expiry.sent)
                break
        else:
            if any(step.acks for step in aftermath.steps):
                where = aftermath.steps[0].sent, aftermath.expiry.sent
                yield context.holds("slow start began with one segment", *where)


@checker("SNR-RTO-012")
def one_timeout_repairs_a_window(flow: Flow, context: Context) -> Findings:
    """One timeout repairs a window (HK99 rule 7, RFC 5681 section 3.1)."""
    # Exercised by an acknowledgment below recover that empties the network.
    patience = 0.1 if acts_at_once(context.ics) else PACED_S
    for aftermath in context.prepared.aftermaths(acts_at_once(context.ics)):
        rtt = aftermath.expiry.longest_rtt
        for reaction in aftermath.reactions:
            ack = reaction.ack
            if reaction.spurious and context.ics.get("frto", True):
                break  # nothing is taken for lost any more (RFC 5682 section 3, step 3b)
            if ack.ack >= aftermath.recover or ack.window_edge < ack.ack + largest_segment(flow):
                continue
            if ack.responses:
                answer = ack.responses[0]
                sentence = f"the acknowledgment of {ack.ack} was answered by offset {answer.start}"
                yield context.holds(sentence, answer, ack)
                continue
            following = next(later(flow.sent, ack.packet), None)
            arrived = next(later(flow.acks, ack.packet), None)
            until = following.time if following else flow.horizon
            disturbed = arrived is not None and arrived.time < until
            if reaction.repeated:
                continue  # though a report of before the timeout had it
            if reaction.pipe == 0 and not disturbed and until - ack.time > max(rtt, patience):
                yield context.violated(
                    f"nothing followed an acknowledgment below recover, {aftermath.recover}",
                    ack,
                    *([following] if following else []),
                    expected="the next missing segment at once",
                    actual=f"nothing for {until - ack.time:.2f} s",
                )
