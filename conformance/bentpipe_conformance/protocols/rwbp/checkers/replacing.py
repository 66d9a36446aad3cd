"""How many acknowledgments are left of those that met a full IP queue (RWBP-SC-005)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, ip_queue, judged
from bentpipe_conformance.protocols.rwbp.checkers.acknowledgment import buffer_octets
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.events import Arrival, Call, Reply
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow

Bunch = tuple[list[Arrival], list[Reply]]
"""Segments that arrived one after the other, and what acknowledged them then."""


def counted(flow: Flow, context: Context) -> Findings:
    """Where one connection alone fills the queue, again and again, exactly so many are left.

    Each segment that calls for an acknowledgment at once gets one of its own (section 7.1). One
    that finds the queue full empties it, for nothing else stands there.
    """
    # Exercised by more calls of a discard service than the IP queue has places, one by one.
    if flow.service != "discard" or flow.receiver.interval != 1:
        return
    places = ip_queue(context)
    before: Bunch | None = None
    for bunch in bunches(flow):
        calls, replies = bunch
        until = next((reply for reply in replies if reply.ack == calls[-1].expected_after), None)
        if (
            before is not None and until is not None and len(calls) > places
            and _begins_empty(flow, before, calls[0])
            and _certain(flow, calls, replies[0])
            and _alone(flow, calls[0], until) and not _updates(flow, context, before[1][-1], calls)
        ):  # fmt: skip
            left = replies.index(until) + 1
            wanted = (len(calls) - 1) % places + 1
            yield judged(
                context, left == wanted,
                f"{len(calls)} acknowledgments met an IP queue of {places} places, and {left} left",
                until, calls[0], expected=f"{wanted}: each that finds it full replaces the others",
                actual=str(left),
            )  # fmt: skip
        before = bunch


def bunches(flow: Flow) -> Iterator[Bunch]:
    """Runs of segments that arrived while nothing left, and the acknowledgments that then left."""
    events: list[Arrival | Reply] = [*flow.arrivals, *(item for item in flow.replies if item.pure)]
    calls, left = list[Arrival](), list[Reply]()
    for event in sorted(events, key=lambda item: item.packet.number):
        if isinstance(event, Reply):
            left.append(event)
            continue
        if left and calls:
            yield calls, left
        if left:
            calls, left = [], []
        calls.append(event)
    if left and calls:
        yield calls, left


def _is_new(arrival: Arrival) -> bool:
    """Whether its acknowledgment has a number that none before has."""
    return arrival.expected_after > arrival.expected


def _begins_empty(flow: Flow, before: Bunch, first: Arrival) -> bool:
    """Whether everything that was called for before had left when a segment arrived."""
    calls, replies = before
    last = replies[-1]
    return (
        _is_new(calls[-1]) and last.ack == calls[-1].expected_after == first.expected
        and first.time - last.time > AT_ONCE_S + flow.slack
    )  # fmt: skip


def _certain(flow: Flow, calls: Sequence[Arrival], first: Reply) -> bool:
    """Whether each segment surely has an acknowledgment of its own, made before one has left."""
    surely = all(
        call.orderly or call.calls in (Call.DISORDER, Call.FIN)
        or (call.calls is Call.UNACCEPTABLE and call.payload)
        for call in calls
    )  # fmt: skip
    last = calls[-1]
    return surely and _is_new(last) and first.time - last.time > AT_ONCE_S + flow.slack


def _alone(flow: Flow, first: Arrival, until: Reply) -> bool:
    """Whether nothing else was in the queue meanwhile, or may have been."""
    begins, ends = first.packet.number, until.packet.number
    replies = {reply.packet.number for reply in flow.replies if reply.pure}
    own = all(
        item.packet.number in replies
        for item in flow.link.passed if begins <= item.packet.number <= ends
    )  # fmt: skip
    others = (
        packet.number for other in flow.link.flows if other is not flow
        for packet in other.packets if not packet.outgoing
    )  # fmt: skip
    return own and not any(begins <= number <= ends for number in others)


def _updates(flow: Flow, context: Context, last: Reply, calls: Sequence[Arrival]) -> bool:
    """Whether what was read meanwhile may have called for a window update, too (RWBP-WN-007)."""
    size, unit = buffer_octets(flow, context), flow.receiver.unit
    untold = size - last.field * unit + sum(call.payload for call in calls)
    return 2 * untold >= size
