"""Checkers for error control by order (RWBP-EC, section 8)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.protocols.rwbp.checkers import (
    Context,
    Findings,
    expiring,
    judged,
    rule,
    spans,
    waiting,
)
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.events import Ack, Sent, Why, after
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.sender import REACTION_S

STALLED_S = 1.0
"""A timer that is this much too late does not run (RWBP-EC-005); one that is less so runs wrong."""


def unexplained(flow: Flow) -> Iterator[Sent]:
    """Retransmissions of what is outstanding for which there is no reason."""
    return (sent for sent in flow.sent if sent.why is Why.NOTHING)


def after_news(flow: Flow, sent: Sent) -> bool:
    """Whether the acknowledgment that may have caused a segment reported any arrival."""
    cause = sent.cause
    return cause is not None and bool(cause.arrived) and sent.since_cause <= REACTION_S + flow.slack


def wrongly_sent_again(flow: Flow, ack: Ack) -> list[Sent]:
    """What was sent again for no reason because of an acknowledgment."""
    soon = REACTION_S + flow.slack
    return [
        sent for sent in ack.responses if sent.why is Why.NOTHING and sent.since_cause <= soon
    ]  # fmt: skip


@rule("RWBP-EC-002", at_once=True)
def lost_by_order(flow: Flow, context: Context) -> Findings:
    """What was last sent before the right edge was first sent is lost (section 8.3, step 5)."""
    # Exercised by a right edge that advances beyond a segment that has not arrived.
    missed = {missed.outgoing: missed for missed in flow.sender.missed}
    for sent in unexplained(flow):
        # What only the threshold spares violates RWBP-FF-003.
        spared = sent.cause is not None and sent.outgoing in sent.cause.spared
        if after_news(flow, sent) and sent.cause is not None and not spared:
            taken = [(item.start, item.end) for item in sent.cause.taken]
            yield context.violated(
                f"{sent.span} was taken for lost",
                sent, sent.cause,
                expected=f"these alone to be taken for lost: {spans(taken)}",
                actual=f"{sent.span}, not last sent before the right edge was first sent",
            )  # fmt: skip
    for ack in flow.acks:
        for item in ack.taken:
            again = next(after(item.transmissions, ack.packet.number), None)
            late = missed.get(item)
            if again is not None and again.time - ack.time <= AT_ONCE_S + flow.slack:
                yield context.holds(f"{item.span} was lost and sent again", again, ack)
            elif late is not None and late.cause is ack:
                yield context.violated(
                    f"{item.span} was lost and was not sent again at once",
                    *((again, ack) if again is not None else (ack,)),
                    expected="a retransmission within 0.05 s",
                    actual=f"none for {late.until - ack.time:.2f} s",
                )


@rule("RWBP-EC-003", at_once=True)
def right_edge_is_a_maximum(flow: Flow, context: Context) -> Findings:
    """An acknowledgment that names lower segments only changes nothing (section 8.3)."""
    # Exercised by news of lower segments alone while something below the right edge is missing.
    for ack in flow.acks:
        if not ack.arrived or ack.rose or ack.ack >= ack.nxt or not ack.blocks:
            continue
        wrong = wrongly_sent_again(flow, ack)
        yield judged(
            context, not wrong, "news of lower segments alone moves the right edge nowhere",
            *wrong[:1], ack, expected="nothing to be taken for lost",
            actual=f"{wrong[0].span} was sent again" if wrong else "",
        )  # fmt: skip


@rule("RWBP-EC-004", agreed=True, behind=waiting.lowest_first)
def retransmissions_first(flow: Flow, context: Context) -> Findings:
    """What awaits retransmission goes before anything new, lowest first (section 8.2)."""
    # Exercised where several segments await retransmission, or one and a new one that may leave.
    # What is not sent at all violates RWBP-EC-002 or -007.
    never = {missed.outgoing.start for missed in flow.sender.missed}
    for sent in flow.sent:
        if sent.why not in (Why.NEW, Why.LOST, Why.TIMEOUT) or sent.before in never:
            continue
        if sent.before is not None:
            yield context.violated(
                f"{sent.span} was sent before what awaits retransmission", sent,
                expected=f"the segment at offset {sent.before} first", actual=sent.why.value,
            )  # fmt: skip
        elif sent.why is Why.LOST:
            yield context.holds(f"{sent.span} was sent again before anything else", sent)


@rule("RWBP-EC-005", agreed=True, behind=expiring.expires_at_last)
def timer_runs(flow: Flow, context: Context) -> Findings:
    """The timer runs while anything is outstanding."""
    # Exercised by silence of the receiver for longer than the timeout.
    for expiry in flow.sender.expiries:
        late = expiry.lasted - expiry.most
        if late > STALLED_S or not expiry.copies:
            yield context.violated(
                f"{expiry.outgoing.span} was outstanding, and nothing was sent again",
                *expiry.copies[:1], expiry.started,
                expected=f"a retransmission after {expiry.most:.2f} s at most",
                actual=f"none for {expiry.lasted:.2f} s",
            )  # fmt: skip
        else:
            yield context.holds(f"the timer expired for {expiry.outgoing.span}", *expiry.copies)


@rule("RWBP-EC-006", at_once=True)
def kept_until_arrived(flow: Flow, context: Context) -> Findings:
    """What has not arrived can be sent again, as it was."""
    # Exercised by any retransmission, and by a timeout of what has been reported around.
    for sent in flow.sent:
        if sent.why in (Why.LOST, Why.TIMEOUT) and sent.outgoing is not None:
            first = sent.outgoing.transmissions[0]
            yield judged(
                context, sent.tcp.payload == first.tcp.payload,
                f"{sent.span} was sent again as it was", sent, first,
                expected="the same octets", actual="other octets",
            )  # fmt: skip
    for expiry in flow.sender.expiries:
        if not expiry.copies and expiry.outgoing.arrived is None:
            yield context.violated(
                f"{expiry.outgoing.span} was never sent again",
                expiry.started,
                expected="a copy of what has not arrived",
                actual="none",
            )


@rule("RWBP-EC-007", agreed=True, behind=expiring.two_copies)
def two_copies(flow: Flow, context: Context) -> Findings:
    """A timeout sends the earliest outstanding segment twice, and nothing else."""
    # Exercised by a timeout.
    for expiry in flow.sender.expiries:
        if not expiry.copies:
            continue
        first = expiry.copies[0]
        end = first.time + AT_ONCE_S + flow.slack
        around = [
            sent for sent in flow.sent_between(first, end)
            if sent.why in (Why.NOTHING, Why.TIMEOUT, Why.ARRIVED, Why.RECUT)
            and (sent.cause is first.cause)
        ]  # fmt: skip
        others = [sent for sent in around if sent not in expiry.copies]
        arrived = first.outgoing.arrived if first.outgoing is not None else None
        soon = arrived is not None and arrived.time <= end
        if flow.horizon < end and len(expiry.copies) < 2:
            continue
        met = not others and (len(expiry.copies) == 2 or (soon and len(expiry.copies) == 1))
        shown = ", ".join(sent.span for sent in around)
        yield judged(
            context, met, f"the timer expired and {first.span} was sent twice", first, *others,
            expected=f"{first.span} twice and nothing else", actual=f"{shown}",
        )  # fmt: skip


@rule("RWBP-EC-010", agreed=True, behind=waiting.arrived_meanwhile)
def arrived_is_not_sent_again(flow: Flow, context: Context) -> Findings:
    """What has arrived is released and never sent again."""
    # Exercised by retransmissions, and by timeouts, after blocks have reported anything.
    reported = False
    acks = iter(flow.acks)
    ack = next(acks, None)
    for sent in flow.sent:
        while ack is not None and ack.packet.number < sent.packet.number:
            reported = reported or bool(ack.arrived)
            ack = next(acks, None)
        if sent.why is Why.ARRIVED and sent.since_cause >= flow.slack:
            yield context.violated(
                f"{sent.span} had been reported and was sent again", sent,
                expected="nothing that has arrived to be sent again", actual=sent.span,
            )  # fmt: skip
        elif sent.why in (Why.LOST, Why.TIMEOUT) and reported:
            yield context.holds("only what had not arrived was sent again", sent)


@rule("RWBP-EC-011", agreed=True, behind=waiting.as_cut_first)
def boundaries_are_kept(flow: Flow, context: Context) -> Findings:
    """A retransmission is the segment that was sent first, with present ACK and window."""
    # Exercised by any retransmission.
    replies = {reply.packet.number: reply for reply in flow.replies}
    for sent in flow.sent:
        if sent.why in (Why.RECUT, Why.BEYOND):
            yield context.violated(
                f"{sent.span} is none of the segments that were sent", sent,
                expected="a retransmission with the boundaries of the first transmission",
                actual=sent.span,
            )  # fmt: skip
        elif sent.why is not Why.NEW and sent.outgoing is not None:
            present = replies[sent.packet.number]
            yield judged(
                context, present.ack == present.expected,
                f"{sent.span} was sent again with its boundaries", sent,
                expected=f"acknowledgment {present.expected}", actual=str(present.ack),
            )  # fmt: skip


@rule("RWBP-EC-012", agreed=True, behind=waiting.never_due)
def nothing_else_is_retransmitted(flow: Flow, context: Context) -> Findings:
    """Nothing is sent again that has not been taken for lost or been chosen by the timer."""
    # Exercised by acknowledgments that report what arrived behind a hole, after its repair.
    for sent in unexplained(flow):
        if not after_news(flow, sent):
            where = (sent, sent.cause) if sent.cause is not None else (sent,)
            yield context.violated(
                f"{sent.span} was sent again for no reason", *where,
                expected="no retransmission of what is neither lost nor due to the timer",
                actual=f"one, {sent.since_cause:.2f} s after the last acknowledgment",
            )  # fmt: skip
    last: Ack | None = None
    for ack in flow.acks:
        if ack.counts and last is not None and ack.ack == last.ack < ack.nxt:
            idle = not ack.rose or not ack.taken
            quiet = not any(sent.why is Why.NOTHING for sent in ack.responses)
            if idle and quiet and ack.nxt > ack.ack:
                yield context.holds("a repeated acknowledgment had nothing sent again", ack)
        last = ack


@rule("RWBP-EC-013", at_once=True)
def only_true_blocks(flow: Flow, context: Context) -> Findings:
    """Blocks that are not true count for nothing, the others of the segment do."""
    # Exercised by an untrue block: what it names is later sent again, or nothing is lost by it.
    for ack in flow.acks:
        if not ack.counts or not ack.untrue:
            continue
        wrong = wrongly_sent_again(flow, ack)
        missed = [item for item in flow.sender.missed if item.cause is ack]
        neglected = [
            expiry for expiry in flow.sender.expiries
            if not expiry.copies and expiry.started.packet.number >= ack.packet.number
            and any(a < expiry.outgoing.end and expiry.outgoing.start < b for a, b in ack.untrue)
        ]  # fmt: skip
        yield judged(
            context, not (wrong or missed or neglected),
            f"of the blocks {spans((*ack.blocks, *ack.untrue))} only the true ones counted",
            ack, *wrong[:1], expected=f"{spans(ack.untrue)} to be ignored",
            actual="a retransmission that only they explain, or none that is due",
        )  # fmt: skip


@rule("RWBP-EC-014", at_once=True)
def a_loss_does_not_slow(flow: Flow, context: Context) -> Findings:
    """A loss changes nothing about what the window permits to be sent."""
    # Exercised by room in the window, and something to send, after a loss.
    for stall in flow.sender.stalls:
        if stall.losses:
            yield context.violated(
                f"{stall.octets} octets waited that the window had room for", stall.since,
                expected="all that the window permits to be sent at once, losses or not",
                actual=f"nothing for {stall.until - stall.since.time:.2f} s",
            )  # fmt: skip
    lossy = next((ack for ack in flow.acks if ack.taken), None)
    expired = flow.sender.expiries[0].copies[:1] if flow.sender.expiries else []
    begun = min(
        (item.packet.number for item in (lossy, *expired) if item is not None), default=None
    )
    if begun is None or any(stall.losses for stall in flow.sender.stalls):
        return
    for sent in flow.sent:
        if sent.packet.number > begun and sent.why is Why.NEW:
            yield context.holds(f"{sent.span} was sent as the window permitted", sent)
            return


@rule("RWBP-EC-015", at_once=True)
def acknowledgments_out_of_range(flow: Flow, context: Context) -> Findings:
    """An acknowledgment number far too old, or of unsent data, is discarded and answered."""
    # Exercised by such a number in a segment that is acceptable otherwise, and by an old one.
    for ack in flow.acks:
        if ack.counts and ack.ack < ack.una and (ack.taken or ack.edge_after > ack.edge):
            missed = [item for item in flow.sender.missed if item.cause is ack]
            stalled = [item for item in flow.sender.stalls if item.since is ack]
            yield judged(
                context, not missed and not stalled,
                f"the old acknowledgment of {ack.ack} counted", ack,
                expected="what it reports, and the edge that it names, to be heeded",
                actual="nothing was sent because of it",
            )  # fmt: skip
        if not ack.refused:
            continue
        answers = [
            reply for reply in flow.replies
            if reply.pure and 0 <= reply.time - ack.time <= AT_ONCE_S + flow.slack
            and reply.packet.number > ack.packet.number
        ]  # fmt: skip
        spared = ack.packet.number in flow.receiver.spared
        if not answers and (spared or flow.horizon < ack.time + AT_ONCE_S):
            continue
        yield judged(
            context, bool(answers), f"acknowledgment {ack.ack} was answered and discarded", ack,
            *answers[:1], expected="an acknowledgment at once", actual="none",
        )  # fmt: skip
