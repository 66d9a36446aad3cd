"""Checker for a receiver that discards what it reported held (SNR-SAK-011)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt


@checker("SNR-SAK-011")
def reneged_data_is_retransmitted(flow: Flow, context: Context) -> Findings:
    """Data reported held is kept until acknowledged (RFC 2018 sections 5 and 8)."""
    # Exercised when the cumulative acknowledgment stops at data that had been reported held.
    if not flow.handshake.sack:
        return
    patience = max(
        context.permitted("patience_s"), context.permitted("patience_rtts") * minimum_rtt(flow)
    )
    original: dict[int, bytes] = {}
    timeouts = [e.first.time for e in context.prepared.episodes if not e.fast]
    last = flow.last_time
    for index, event in enumerate(flow.events):
        if isinstance(event, Sent) and not event.retransmission:
            original[event.start] = event.tcp.payload
        if not isinstance(event, Ack) or not event.acceptable:
            continue
        if event.advance:
            original = {k: v for k, v in original.items() if k + len(v) > event.ack}
        reneged = event.sacked and event.sacked[0][0] <= event.ack < event.max
        if not reneged or (not event.advance and not event.newly_sacked):
            continue
        answer = _next_of_una(flow, index)
        backed_off = any(event.time - 60 < time <= event.time for time in timeouts)
        if isinstance(answer, Sent):
            yield _same_octets(context, answer, original, event)
        elif answer is None and last - event.time > patience and not backed_off:
            yield context.violated(
                f"data that was reported held and then not acknowledged was not retransmitted "
                f"within {patience:.0f} s",
                event,
                expected=f"a retransmission of offset {event.ack}",
                actual="none",
            )


def _next_of_una(flow: Flow, index: int) -> Sent | Ack | None:
    """What comes first after event ``index``: a repetition of its ACK's offset, or its advance."""
    ack = flow.events[index]
    assert isinstance(ack, Ack)
    for event in flow.events[index + 1 :]:
        if isinstance(event, Sent) and event.retransmission and event.start <= ack.ack < event.end:
            return event
        if isinstance(event, Ack) and event.advance:
            return event
    return None


def _same_octets(context: Context, sent: Sent, original: dict[int, bytes], sign: Ack) -> Finding:
    payload, before = sent.tcp.payload, original.get(sent.start, b"")
    same = payload[: len(before)] == before[: len(payload)]
    return judged(
        context,
        same,
        f"{sent.span}, once reported held, was retransmitted with {'the same' if same else 'other'}"
        " octets",
        sent,
        sign,
        expected="the same octets",
        actual="different octets",
    )
