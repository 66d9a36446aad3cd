"""Whether a RST of the tester lies where the implementation expects the next octet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN
from bentpipe_conformance.protocols.tcp.replay.events import Arrival, Reply, Segment
from bentpipe_conformance.protocols.tcp.replay.order import (
    count_before,
    count_through,
    latest_first,
)


class Exchange(Protocol):
    """What has left the IUT and reached it so far: a flow, even while it is still being read."""

    leaving: list[Segment]
    arriving: list[Segment]
    replies: list[Reply]
    arrivals: list[Arrival]


def latest_before(flow: Exchange, number: int) -> Segment | None:
    """The last segment that left the IUT before a packet, RSTs excepted."""
    earlier = latest_first(flow.leaving, count_through(flow.leaving, number))
    return next((item for item in earlier if not item.tcp.flags & RST), None)


def at_next_expected(flow: Exchange, segment: Segment) -> bool:
    """Whether a segment certainly has the sequence number that the IUT expects next.

    That is what its latest segment acknowledged, or the end of the data that has arrived in
    sequence since, whose acknowledgment may be delayed; provided that nothing was held.
    """
    number = segment.packet.number
    latest = latest_before(flow, number)
    if latest is None or not latest.tcp.flags & ACK:
        return False
    first = latest.packet.number
    spoken = count_through(flow.replies, first)
    reply = flow.replies[spoken - 1] if spoken > count_before(flow.replies, first) else None
    if reply is not None and reply.ack != reply.expected:
        return False
    expected = latest.tcp.ack
    since = count_through(flow.arrivals, first), count_before(flow.arrivals, number)
    arrivals = {item.packet.number: item for item in flow.arrivals[slice(*since)]}
    for item in _between(flow, first, number):
        arrival = arrivals.get(item.packet.number)
        if not item.tcp.length or item.tcp.flags & SYN:
            continue
        # The data of an answer to the SYN is taken only when the handshake is complete.
        sure = arrival is not None and arrival.in_order and not arrival.held and reply is not None
        if arrival is None or not sure or arrival.fin or arrival.end > arrival.window_edge:
            return False
        if not item.tcp.flags & ACK or arrival.may_be_stale or arrival.lacks_timestamp:
            return False
        expected = (item.tcp.seq + item.tcp.length) % MODULUS
    return segment.tcp.seq == expected


def _between(flow: Exchange, first: int, last: int) -> Sequence[Segment]:
    """What arrived between two packets."""
    begin = count_through(flow.arriving, first)
    end = count_before(flow.arriving, last)
    return flow.arriving[begin:end]
