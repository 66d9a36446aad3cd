"""Checkers for paths that do not keep the order (RWBP-FF, section 8.5)."""

from __future__ import annotations

from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, judged, rule
from bentpipe_conformance.protocols.rwbp.checkers.error_control import wrongly_sent_again
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow


@rule("RWBP-FF-002", at_once=True)
def two_false_losses_are_borne(flow: Flow, context: Context) -> Findings:
    """K is 1 until the third false loss."""
    # Exercised by a loss after one or two false losses, or after arrivals that would be such if a
    # timeout took anything for lost.
    count = repeated = 0
    for ack in flow.acks:
        if ack.k > 1:
            return
        if (count or repeated) and ack.taken:
            missed = [item for item in flow.sender.missed if item.cause is ack]
            yield judged(
                context, not missed,
                f"the order still tells (false losses: {count}, arrivals just after timeouts: "
                f"{repeated})",
                ack, expected="what was sent before the right edge to be sent again at once",
                actual=f"{missed[0].outgoing.span} was not" if missed else "",
            )  # fmt: skip
        count += len(ack.false)
        repeated += len(ack.repeated)


@rule("RWBP-FF-003", at_once=True)
def the_third_raises_the_threshold(flow: Flow, context: Context) -> Findings:
    """From the third false loss on three later segments have to arrive."""
    # Exercised by an arrival out of order after the third false loss.
    for ack in flow.acks:
        late = [item for item in flow.sender.missed if ack.k > 1 and item.cause is ack]
        for item in late[:1]:
            yield context.violated(
                f"three that were sent later than {item.outgoing.span} have arrived", ack,
                expected="it to be sent again at once", actual="nothing",
            )  # fmt: skip
        if ack.spared:
            wrong = wrongly_sent_again(flow, ack)
            yield judged(
                context, not wrong, f"{ack.spared[0].span} was not taken for lost yet",
                *wrong[:1], ack, expected="three later segments to have arrived first",
                actual=f"{wrong[0].span} was sent again" if wrong else "",
            )  # fmt: skip
