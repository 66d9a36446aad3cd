"""Checkers for what the user is given (RWBP-EC-009)."""

from __future__ import annotations

from bentpipe_conformance.engine.context import until_violated
from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, rule
from bentpipe_conformance.protocols.rwbp.checkers.format import echoed
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow


@rule("RWBP-EC-009")
def delivered_in_order_and_once(flow: Flow, context: Context) -> Findings:
    """The user is given every octet in order and exactly once, as the echo shows."""
    # Exercised by the echo of octets that did not simply arrive in order.
    if flow.service != "echo" or not flow.agreed:
        return
    odd = (item for item in flow.arrivals if item.payload and item.acceptable and not item.orderly)
    first = next(odd, None)
    if first is not None and any(sent.end > first.start for sent in flow.sent):
        yield from until_violated(echoed(flow, context))
