"""The retransmission timer (TOY-TIM)."""

from __future__ import annotations

from itertools import zip_longest

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.toy.checkers import PROMPT_S, Context, Findings
from bentpipe_conformance.protocols.toy.replay.flow import Event, Flow

MOST_TRANSMISSIONS = 5


@checker("TOY-TIM-001")
def retransmission_after_the_timeout(flow: Flow, context: Context) -> Findings:
    """Neither earlier nor later than declared."""
    timeout = context.ics["timeout_ms"] / 1000
    for exchange in flow.exchanges():
        limited = exchange[:MOST_TRANSMISSIONS]
        for event, following in zip_longest(limited, exchange[1:MOST_TRANSMISSIONS]):
            if event is not limited[-1] or following is not None:
                yield from _again(event, following, timeout, context)
            elif len(limited) < MOST_TRANSMISSIONS:
                yield from _in_vain(flow, event, timeout, context)


def _again(event: Event, following: Event, timeout: float, context: Context) -> Findings:
    """A retransmission was sent: whether at the right time."""
    error = abs(following.time - event.time - timeout)
    if error > PROMPT_S + context.timing_error:
        yield context.violated(
            "a retransmission does not follow when the timeout has passed", following, event,
            expected=f"{timeout:.1f} s", actual=f"{following.time - event.time:.1f} s",
        )  # fmt: skip
    elif error > PROMPT_S - context.timing_error:
        yield context.unclear("a retransmission follows about 0.1 s beside the timeout", following)
    else:
        yield context.holds("a retransmission follows after the timeout", following, event)


def _in_vain(flow: Flow, event: Event, timeout: float, context: Context) -> Findings:
    """No further transmission was sent: whether one was due."""
    ends = [flow.watched_until, flow.over_at, event.answer.time if event.answer else None]
    waited = min(end for end in ends if end is not None) - event.time
    if waited > timeout + PROMPT_S + context.timing_error:
        yield context.violated("no retransmission follows the timeout", event)
