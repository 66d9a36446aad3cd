"""Checkers for how long the retransmission timeout is (SNR-RTO-015 and -016)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import (
    TICK_S,
    Context,
    Findings,
    judged,
    timer_expiries,
    too_coarse,
)
from bentpipe_conformance.protocols.tcp.replay.estimates import Estimate
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.timeouts import Expiry


def _first_timeouts(context: Context) -> Iterator[tuple[Expiry, Estimate]]:
    """First timeouts of the only segment outstanding, with what they should be."""
    estimates = context.prepared.estimates
    copies = {sent.start: sent for sent in estimates if not sent.retransmission}
    for expiry in timer_expiries(context):
        original = copies.get(expiry.sent.start)
        if original is None or not expiry.certain or expiry.rank > 1:
            continue
        if expiry.sent.max > original.end:
            continue
        if expiry.sent.transmission == 2 and expiry.sent.window_edge >= original.end:
            yield expiry, estimates[original]


@checker("SNR-RTO-015")
def timeout_is_no_shorter_than_computed(_flow: Flow, context: Context) -> Findings:
    """The timeout is no shorter than SRTT + 4 * RTTVAR (RFC 6298 rules 2.2 and 2.3)."""
    # Exercised by the first timeout of a lone segment after at least one measurement.
    share = context.permitted("share")
    for expiry, estimate in _first_timeouts(context):
        least = share * estimate.least - TICK_S
        waited = expiry.since_transmission
        if estimate.least and estimate.samples:
            yield too_coarse(context, waited, expiry.sent) or judged(
                context,
                waited >= least - context.timing_error,
                f"a lone segment timed out after {waited:.3f} s",
                expiry.sent,
                expected=f"at least {estimate.least:.3f} s by the round trips measured",
                actual=f"{waited:.3f} s",
            )


@checker("SNR-RTO-016")
def timeout_follows_the_measurements(_flow: Flow, context: Context) -> Findings:
    """The timeout is what the measurements give, also after back-off (RFC 6298 section 5)."""
    # Exercised by the first timeout of a lone segment after a measurement since the last timeout.
    ratio, late = context.permitted("ratio"), context.permitted("tick_s")
    for expiry, estimate in _first_timeouts(context):
        if not estimate.samples:
            continue
        most = ratio * max(context.permitted("minimum_s"), estimate.most) + late
        waited = expiry.since_transmission
        yield too_coarse(context, waited, expiry.sent) or judged(
            context,
            waited <= most + context.timing_error,
            f"a lone segment timed out after {waited:.3f} s",
            expiry.sent,
            expected=f"at most {most:.3f} s by the round trips measured",
            actual=f"{waited:.3f} s",
        )
