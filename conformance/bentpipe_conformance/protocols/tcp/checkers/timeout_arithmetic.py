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
from bentpipe_conformance.protocols.tcp.checkers.retransmission_timer import PERSISTENCE_S
from bentpipe_conformance.protocols.tcp.checkers.window_bounds import follows_rfc_5681
from bentpipe_conformance.protocols.tcp.replay.estimates import Estimate
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.timeouts import Expiry


def _first_timeouts(context: Context) -> Iterator[tuple[Expiry, Estimate]]:
    """First timeouts of the only segment outstanding, with what they should be."""
    estimates = context.prepared.estimates
    expiries = [*timer_expiries(context)]
    starts = {expiry.sent.start for expiry in expiries}
    first = (sent for sent in estimates if sent.start in starts and not sent.retransmission)
    copies = {sent.start: sent for sent in first}
    for expiry in expiries:
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
    # Exercised by the first timeout of a lone segment after a measurement since the last timeout;
    # of whoever follows RFC 5681 by any timeout after something that must not postpone it.
    yield from _postponed(context)
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


def _postponed(context: Context) -> Findings:
    """Whether what restarts no timer postponed a timeout."""
    if not follows_rfc_5681(context):
        return
    ratio, late = context.permitted("ratio"), context.permitted("tick_s")
    for wait in context.prepared.waits:
        # What the timeout may be longer by is backed off with it (RFC 6298 rule 5.5).
        most = ratio * wait.timeout + late * 2**wait.doublings
        if wait.lasted > most + context.timing_error and wait.unanswered < PERSISTENCE_S:
            where = [item for item in (wait.ended, wait.since) if item is not None]
            yield too_coarse(context, wait.lasted, *where) or context.violated(
                f"nothing was retransmitted for {wait.lasted:.3f} s, while data was outstanding",
                *where,
                expected=f"a timeout within {most:.3f} s of what may restart the timer",
                actual=f"{wait.lasted:.3f} s",
            )
        elif wait.ended is not None and wait.ended.timed and wait.amid is not None:
            sentence = f"the timer expired after {wait.lasted:.3f} s, whatever arrived or left"
            yield context.holds(sentence, wait.ended, wait.amid)
