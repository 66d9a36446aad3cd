"""Checkers for security (RWBP-SEC, section 12)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, judged, rule
from bentpipe_conformance.protocols.rwbp.checkers.going_on import goes_on
from bentpipe_conformance.protocols.rwbp.replay.events import Ack, Call, Segment, Sent, Why
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN

OPENED_S = 5.0
"""A SYN is answered within this time by whoever answers at all."""


def _odd(flow: Flow) -> Iterator[Segment]:
    """What a careless endpoint may stumble over."""
    opening = flow.opening
    if not opening.own:
        yield from flow.arriving
    elif flow.agreed:
        # With another number it is answered, and does not end an attempt (section 5.4).
        yield from (syn for syn in opening.theirs if syn.tcp.seq != opening.theirs[0].tcp.seq)
    yield from flow.damaged
    yield from (reset for reset in flow.tried if not reset.exact)
    for arrival in flow.arrivals:
        no_ack = not arrival.tcp.flags & (ACK | RST | SYN)
        strange = arrival.calls in (Call.UNACCEPTABLE, Call.CHALLENGE, Call.REFUSED)
        if strange or no_ack or not arrival.tcp.flags:
            yield arrival
    for ack in flow.acks:
        if ack.untrue or ack.refused:
            yield ack


@rule("RWBP-SEC-003")
def no_packet_stops_an_endpoint(flow: Flow, context: Context) -> Findings:
    """After any packet an endpoint serves its connections as before (section 5.4)."""
    # Exercised by malformed, damaged, inopportune and untrue segments, and by a connection that
    # is opened after such, or after segments of no connection.
    odd = sorted(_odd(flow), key=lambda item: item.packet.number)
    for item in odd[:1] + odd[1:][-1:] if flow.opening.own else ():
        yield from goes_on(flow, context, item, "an odd segment")
    yield from _opens(flow, context)


def _opens(flow: Flow, context: Context) -> Findings:
    """Whether a connection opens after odd segments of another."""
    theirs = flow.opening.theirs
    if flow.opening.iut_calls or not theirs:
        return
    number = theirs[0].packet.number
    before = next(
        (odd for other in flow.siblings if other is not flow for odd in _odd(other)
         if odd.packet.number < number), None
    )  # fmt: skip
    if before is None:
        return
    at_once = flow.leaves_at_once(context.ics)
    if flow.opening.own:
        yield context.holds("a connection opened after odd segments", flow.opening.own[0], before)
    elif not flow.leaving and at_once and flow.packets[-1].time - theirs[0].time > OPENED_S:
        yield context.violated(
            "a SYN was not answered after odd segments", theirs[0], before,
            expected="a SYN-ACK", actual="nothing",
        )  # fmt: skip


@rule("RWBP-SEC-004", once=True)
def the_unsent_is_not_believed(flow: Flow, context: Context) -> Findings:
    """Nothing is taken for arrived that has not been sent (section 8.3)."""
    # Exercised by acknowledgments and blocks of what has not been sent, and what then leaves.
    lie: Ack | None = None
    for event in flow.events:
        if isinstance(event, Ack):
            above = event.refused and event.ack > event.nxt
            if above or any(right > event.nxt for _, right in event.untrue):
                lie = event
        elif isinstance(event, Sent) and lie is not None:
            met = event.why not in (Why.BEYOND, Why.RECUT)
            yield judged(
                context, met, "octets were acknowledged that had not been sent", event, lie,
                expected=f"what is next, {event.nxt}, or is sent again as before",
                actual=event.span,
            )  # fmt: skip
    if lie is None or not flow.leaves_at_once(context.ics):
        return
    number = lie.packet.number
    forgotten = [m.outgoing for m in flow.sender.missed if m.until >= lie.time]
    forgotten += [
        e.outgoing for e in flow.sender.expiries if not e.copies and e.until >= lie.time
    ]  # fmt: skip
    for item in forgotten:
        if item.transmissions and item.transmissions[0].packet.number < number:
            yield context.violated(
                f"{item.span} is not sent again", lie, item.transmissions[-1],
                expected="what had not arrived to be kept", actual="nothing",
            )  # fmt: skip
