"""Checkers for the link rate (RWBP-LC-011, section 9.3)."""

from __future__ import annotations

from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, judged, rule
from bentpipe_conformance.protocols.rwbp.replay.events import Segment
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow

CLOCK_S = 2e-6
"""What two recorded times may be wrong by without the bed's error: they are rounded."""


@rule("RWBP-LC-011", once=True)
def link_rate_is_kept(flow: Flow, context: Context) -> Findings:
    """Each packet leaves when the one before has had its time at the configured rate."""
    # Exercised by two packets of which the second follows as soon as the rate permits.
    rate = float(context.ics.get("link_rate_bps", 0))
    if not rate or flow is not flow.link.flows[0] or flow.leaves_at_once(context.ics):
        return
    leaving = [item for one in flow.link.flows for item in one.leaving]
    leaving.sort(key=lambda item: item.packet.number)
    before: Segment | None = None
    for item in leaving:
        if before is not None:
            takes = 8 * len(before.packet.data) / rate
            waited = item.time - before.time
            if waited < 2 * takes:
                yield judged(
                    context, waited >= takes - CLOCK_S - 2 * context.timing_error,
                    f"a packet left {1000 * waited:.3f} ms after the one before", item, before,
                    expected=f"{1000 * takes:.3f} ms for {len(before.packet.data)} octets",
                    actual=f"{1000 * waited:.3f} ms",
                )  # fmt: skip
        before = item
