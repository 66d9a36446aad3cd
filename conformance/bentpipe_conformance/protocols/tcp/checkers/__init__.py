"""The checkers of the suite snr, a module per group of requirements."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine import context
from bentpipe_conformance.engine.context import HasPacket, judged, until_violated
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import Moment, acts_at_once
from bentpipe_conformance.protocols.tcp.replay.prepared import Prepared
from bentpipe_conformance.protocols.tcp.replay.timeouts import Expiry
from bentpipe_conformance.protocols.tcp.replay.users import largest_segment

Context = context.Context[Prepared]
Findings = Iterator[Finding]

__all__ = ["judged", "until_violated"]

TICK_S = 0.01
"""What a timer may be early against the capture's clock: a tick of a 100 Hz kernel."""

COARSE_TICK_S = 0.5
"""What a timer may be late: some stacks check their timers no more often."""

BACK_OFF_CAP_S = 60.0
"""A limit on the timeout is no less (RFC 6298 rule 2.5)."""


def at_most(
    context: Context, octets: int, limit: float, sentence: str, *where: HasPacket
) -> Finding:
    """The finding about a number of octets that has a limit."""
    return judged(
        context, octets <= limit, sentence, *where,
        expected=f"at most {limit:.0f} octets", actual=f"{octets} octets",
    )  # fmt: skip


def too_coarse(context: Context, seconds: float, *where: HasPacket) -> Finding | None:
    """A finding where the bed's timing error could turn a verdict about an interval this long."""
    if context.timing_error <= max(0.05, 0.05 * seconds):
        return None
    return context.unclear("the bed's timing error is too large to tell", *where)


def lasted(context: Context, seconds: float, least: float) -> bool:
    """Whether an interval may have lasted ``least``, allowing for a tick and the timing error."""
    return seconds >= least - TICK_S - context.timing_error


def within_window(flow: Flow, context: Context, m: Moment, what: str) -> Findings:
    """Whether what an acknowledgment clocked out kept to the receiver's full window.

    ``what`` names the acknowledgment.
    """
    beyond = [sent for sent in m.new_data if sent.end > m.window_edge]
    full = m.window_edge - m.ack.max < largest_segment(flow)
    if beyond:
        sentence = f"{what} sent new data up to offset {beyond[-1].end}"
        expected = f"no data beyond offset {m.window_edge}, which the receiver has offered"
        actual = f"{beyond[-1].end - m.window_edge} octets beyond"
        yield context.violated(sentence, beyond[-1], m.ack, expected=expected, actual=actual)
    elif full:
        yield context.holds(f"{what} sent nothing beyond the full window", m.ack)


def timer_expiries(context: Context) -> tuple[Expiry, ...]:
    """What the sender's timers retransmitted."""
    return context.prepared.expiries(acts_at_once(context.ics))
