"""Error control where what is sent waits for a link rate or for credit (section 8 beside 9.3).

What a packet was made by is not known there to the moment. What is known: it did not enter the IP
queue before the packet that left so many places earlier had left, and the order in which packets
leave is that in which they entered. By that alone some of them must not have been made, or not yet.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, ip_queue
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.events import (
    Ack,
    Outgoing,
    Segment,
    Sent,
    Why,
    after,
)
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.link import entries
from bentpipe_conformance.protocols.rwbp.replay.sender import FALL_BACK
from bentpipe_conformance.protocols.tcp.codec import ACK


def in_order(flow: Flow) -> Iterator[Ack]:
    """The acknowledgments while K is surely 1: before the third loss that may have been false.

    By what times a loss was false the IP queue hides (section 8.5). What is taken for lost here is
    so at most, for what waits in the queue has been sent already.
    """
    suspects = 0
    for ack in flow.acks:
        suspects += sum(item.cause is not None for item in ack.arrived)
        if suspects >= FALL_BACK:
            return
        yield ack


def guessed(flow: Flow, context: Context) -> float:
    """When somebody first acknowledged, or reported, what may have waited in the IP queue.

    It has been sent then (section 2), so that the acknowledgment counts, and with it the segment
    that bears it; nobody who sees the packets that leave knows what both have changed.
    """
    if flow.leaves_at_once(context.ics):
        return math.inf
    above = (
        ack.time for ack in flow.acks
        if (ack.refused and ack.ack > ack.nxt) or any(right > ack.nxt for _, right in ack.untrue)
    )  # fmt: skip
    return next(above, math.inf)


def refuses_late(flow: Flow, context: Context, reset: Segment) -> bool:
    """Whether a RST may have waited that answers a wrong acknowledgment in SYN-RECEIVED.

    It ends nothing (RFC 9293 section 3.10.7.4), and the handshake has gone on meanwhile.
    """
    if flow.leaves_at_once(context.ics) or flow.established is None:
        return False
    early = (item for item in flow.arriving if item.time < flow.established)
    return any(item.tcp.flags & ACK and item.tcp.ack == reset.tcp.seq for item in early)


def arrived_meanwhile(flow: Flow, context: Context) -> Findings:
    """What has arrived while it awaited retransmission is not sent again (RWBP-EC-010)."""
    # Exercised by a repair that waits, and a report that it is not needed.
    entered = entries(flow.link, ip_queue(context))
    told = {item.start: ack for ack in flow.acks for item in ack.arrived}
    for sent in flow.sent:
        ack = told.get(sent.start)
        if sent.why is Why.NEW or ack is None:
            continue
        if entered[sent.packet.number] > ack.time + AT_ONCE_S + flow.slack:
            yield context.violated(
                f"{sent.span} had been reported when it entered the IP queue", sent, ack,
                expected="nothing that has arrived to be sent again", actual=sent.span,
            )  # fmt: skip
    for ack in flow.acks:
        for item in ack.arrived:
            cause = item.cause
            if cause is not None and item.transmissions[-1].packet.number < cause.packet.number:
                later = next(after(flow.sent, ack.packet.number), None)
                if later is not None:
                    yield context.holds(f"{item.span} awaited retransmission no more", later, ack)


def lowest_first(flow: Flow, context: Context) -> Findings:
    """What was taken for lost goes before what is higher, and before anything new (RWBP-EC-004)."""
    # Exercised by several losses that one acknowledgment tells of, and that wait for credit.
    entered, until = entries(flow.link, ip_queue(context)), guessed(flow, context)
    for ack in in_order(flow):
        waiting = {item.start: item for item in ack.taken}
        since, counted = ack.time + AT_ONCE_S + flow.slack, len(waiting)
        for sent in after(flow.sent, ack.packet.number):
            if not waiting or sent.time >= until:
                break
            waiting = {start: item for start, item in waiting.items() if not _is_in(item, sent)}
            lower = next((item for start, item in waiting.items() if start < sent.start), None)
            new = sent.why is Why.NEW or sent.outgoing in ack.taken
            if lower is not None and new and entered[sent.packet.number] > since:
                yield context.violated(
                    f"{sent.span} was sent before {lower.span}, which had been taken for lost",
                    sent, ack, expected=f"{lower.span} first", actual=sent.span,
                )  # fmt: skip
                return
            if waiting.pop(sent.start, None) and counted > 1 and not waiting:
                yield context.holds("what was taken for lost was sent again in order", sent, ack)


def _is_in(item: Outgoing, sent: Sent) -> bool:
    """Whether a segment was reported before another one left."""
    return item.arrived is not None and item.arrived.time <= sent.time


def never_due(flow: Flow, context: Context) -> Findings:
    """What is not the lowest is sent again only after something sent later (RWBP-EC-012).

    The timer chooses the lowest alone (RWBP-EC-007).
    """
    # Exercised by what is sent again while something lower is outstanding.
    until, highest, news = guessed(flow, context), 0, iter(flow.acks)
    ack: Ack | None = next(news, None)
    last: dict[int, int] = {}
    outstanding: deque[Outgoing] = deque()
    for number, sent in enumerate(flow.sent, start=1):
        if sent.time >= until:
            return
        while ack is not None and ack.packet.number < sent.packet.number:
            highest = max((highest, *(item.ft for item in ack.arrived)))
            ack = next(news, None)
        while outstanding and _is_in(outstanding[0], sent):
            outstanding.popleft()
        before, item = last.get(sent.start, 0), sent.outgoing
        last[sent.start] = number
        if sent.why is Why.NEW and item is not None:
            outstanding.append(item)
        elif item is None or not outstanding or outstanding[0].start >= sent.start:
            continue
        elif highest <= before:
            yield context.violated(
                f"{sent.span} was sent again though nothing sent after it had arrived", sent,
                *((sent.cause,) if sent.cause is not None else ()),
                expected="nothing but the lowest segment, which the timer chooses",
                actual=sent.span,
            )  # fmt: skip
            return
        else:
            yield context.holds(f"{sent.span} was sent again after something sent later", sent)


def as_cut_first(flow: Flow, context: Context) -> Findings:
    """What is sent again keeps its boundaries (RWBP-EC-011)."""
    # Exercised by what is sent again.
    until = guessed(flow, context)
    for sent in flow.sent:
        if sent.time >= until:
            return
        if sent.why is Why.RECUT:
            yield context.violated(
                f"{sent.span} is none of the segments that were sent", sent,
                expected="a retransmission with the boundaries of the first transmission",
                actual=sent.span,
            )  # fmt: skip
        elif sent.why is not Why.NEW and sent.outgoing is not None:
            yield context.holds(f"{sent.span} was sent again with its boundaries", sent)
