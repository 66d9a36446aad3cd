"""Checkers for flow control between connections (RWBP-FC, section 9)."""

from __future__ import annotations

from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, rule
from bentpipe_conformance.protocols.rwbp.replay.events import Why
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow


@rule("RWBP-FC-003", at_once=True)
def sends_if_there_is_room(flow: Flow, context: Context) -> Findings:
    """A segment for which the highest window has room is sent at once."""
    # Exercised by an acknowledgment that makes room while data waits.
    for stall in flow.sender.stalls:
        if not stall.losses:
            yield context.violated(
                f"{stall.octets} octets waited that the window had room for", stall.since,
                expected="what the window permits to be sent at once",
                actual=f"nothing for {stall.until - stall.since.time:.2f} s",
            )  # fmt: skip
    for ack in flow.acks:
        made = [sent for sent in ack.responses if sent.why is Why.NEW and sent.end > ack.edge]
        if made:
            yield context.holds(f"{made[0].span} was sent when there was room", made[0], ack)


@rule("RWBP-FC-007", at_once=True, agreed=True)
def others_go_on(flow: Flow, context: Context) -> Findings:
    """A connection whose window stays closed holds up no other."""
    # Exercised by a connection that can send while another waits for its window.
    for other in flow.siblings:
        if other is flow:
            continue
        for probe in other.sender.probes:
            if probe.segment is None:
                continue
            held = [
                stall for stall in flow.sender.stalls
                if stall.since.time < probe.until and stall.until > probe.started.time
            ]  # fmt: skip
            for stall in held[:1]:
                yield context.violated(
                    "one connection could send and did not while another had no window",
                    stall.since, probe.started, expected="its segments at once",
                    actual=f"nothing for {stall.until - stall.since.time:.2f} s",
                )  # fmt: skip
            went_on = [
                sent for sent in flow.sent if probe.started.time < sent.time < probe.until
            ]  # fmt: skip
            if went_on and not held:
                yield context.holds("one connection sent while another had no window", went_on[0])
                return
