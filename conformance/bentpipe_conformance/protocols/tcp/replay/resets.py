"""Whether a RST of the tester lies where the implementation expects the next octet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

from bentpipe_conformance.engine.remembered import remembered
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

    @property
    def reaction(self) -> float:
        """Seconds within which an answer counts as caused by an arrival."""


@remembered
def _spoken(flow: Exchange) -> Sequence[Segment]:
    """What left the IUT, RSTs excepted."""
    return [item for item in flow.leaving if not item.tcp.flags & RST]


def latest_before(flow: Exchange, number: int) -> Segment | None:
    """The last segment that left the IUT before a packet, RSTs excepted, of a flow read whole."""
    spoken = _spoken(flow)
    at = count_through(spoken, number)
    return spoken[at - 1] if at else None


def perhaps_next(flow: Exchange, reply: Reply) -> set[int]:
    """Offsets that the IUT may expect next though an acknowledgment has not told so yet.

    What a segment acknowledges may let others out before its text is processed, if that is taken.
    """
    if reply.ack >= reply.limit:
        return set()
    before = latest_first(flow.arrivals, count_before(flow.arrivals, reply.packet.number))
    recent = takewhile(lambda item: reply.time - item.time <= flow.reaction, before)
    beside = (item for item in recent if item.start <= reply.ack < item.end)
    return {at for item in beside if not item.acceptable for at in (item.end, reply.limit)}


class Expected:
    """Follows which number the IUT certainly expects next.

    That is what its latest segment acknowledged, or the end of the data that has arrived in
    sequence since, whose acknowledgment may be delayed; provided that nothing was held.
    """

    def __init__(self, flow: Exchange) -> None:
        self._flow = flow
        self._left = self._arrived = 0
        self._latest: Segment | None = None
        self._reply: Reply | None = None
        self._sure = False
        self._next = 0
        self._read = 0
        self._end = math.inf

    def is_next(self, segment: Segment) -> bool:
        """Whether a segment certainly has that number; asked of segments in order."""
        self._follow(segment.packet.number)
        return self._sure and segment.tcp.seq == self._next

    def _follow(self, number: int) -> None:
        flow, latest = self._flow, self._latest
        while self._left < len(flow.leaving) and flow.leaving[self._left].packet.number < number:
            if not flow.leaving[self._left].tcp.flags & RST:
                latest = flow.leaving[self._left]
            self._left += 1
        if latest is not None and latest is not self._latest:
            self._speaks(latest)
        while (
            self._arrived < len(flow.arriving)
            and flow.arriving[self._arrived].packet.number < number
        ):
            self._hears(flow.arriving[self._arrived])
            self._arrived += 1

    def _speaks(self, latest: Segment) -> None:
        self._latest = latest
        flow, number = self._flow, latest.packet.number
        spoken = count_through(flow.replies, number)
        known = spoken > count_before(flow.replies, number)
        self._reply = flow.replies[spoken - 1] if known else None
        self._sure = bool(latest.tcp.flags & ACK)
        reply = self._reply
        if reply is not None and (reply.ack != reply.expected or perhaps_next(flow, reply)):
            self._sure = False
        self._next = latest.tcp.ack
        self._arrived = count_through(flow.arriving, number)

    def _hears(self, item: Segment) -> None:
        # Without ACK it is dropped (RFC 9293 section 3.10.7.4, fifth).
        if not (self._sure and item.tcp.length) or item.tcp.flags & (SYN | ACK) != ACK:
            return
        arrivals, number = self._flow.arrivals, item.packet.number
        at = count_before(arrivals, number)
        arrival = arrivals[at] if at < len(arrivals) else None
        if arrival is None or arrival.packet.number != number:
            self._sure = False
            return
        if arrival.start >= arrival.window_edge or self._has_ended(at):
            return  # nothing of it is taken
        # The data of an answer to the SYN is taken only when the handshake is complete.
        sure = arrival.in_order and not arrival.held and self._reply is not None
        sure = sure and not arrival.fin and arrival.end <= arrival.window_edge
        sure = sure and not (arrival.may_be_stale or arrival.lacks_timestamp)
        self._sure = sure
        self._next = (item.tcp.seq + item.tcp.length) % MODULUS

    def _has_ended(self, count: int) -> bool:
        """Whether one of the first so many arrivals was a FIN in sequence and is acknowledged."""
        for arrival in self._flow.arrivals[self._read : count]:
            if arrival.fin and arrival.in_order and arrival.end <= arrival.window_edge:
                self._end = min(self._end, arrival.end)
        self._read = max(self._read, count)
        return self._reply is not None and self._reply.ack >= self._end
