"""Data and its acknowledgment (TOY-DAT)."""

from __future__ import annotations

from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.toy.checkers import Context, Findings, prompt
from bentpipe_conformance.protocols.toy.replay.flow import Flow


@checker("TOY-DAT-001")
def one_packet_outstanding(flow: Flow, context: Context) -> Findings:
    """A new packet has the other bit and follows the ACK of the last one."""
    if flow.sent and flow.sent[0].toy.bit:
        yield context.violated("the first packet carries the sequence bit 1", flow.sent[0])
    for last, event in pairwise(flow.sent):
        if last.toy.bit == event.toy.bit:
            if (last.toy.kind, last.toy.data) != (event.toy.kind, event.toy.data):
                yield context.violated("another packet repeats the sequence bit", event, last)
        elif last.answer is None or last.answer.number > event.packet.number:
            yield context.violated("a new packet is sent before the last one's ACK", event, last)
        else:
            yield context.holds("a new packet follows the ACK of the last one", event, last)


@checker("TOY-DAT-002")
def everything_is_acknowledged(flow: Flow, context: Context) -> Findings:
    """An ACK, or ABORT, follows every DATA and CLOSE at once."""
    for event in flow.heard:
        if event.toy.in_sequence:
            yield from prompt(flow, event, context)
