"""How an implementation answered a segment as a receiver, and how soon."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.codec import ACK
from bentpipe_conformance.protocols.tcp.replay.events import Arrival, Reply
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.order import count_through

LONGEST_DELAY_S = 0.5
"""RFC 9293 section 3.8.6.3: an acknowledgment is never delayed longer."""

THROTTLED_S = 0.5
"""What is odd need not be answered this soon after the last answer to something odd (RFC 5961
section 7); Linux waits so long."""

DAYTIME_PORT = 13
"""RFC 867; what the service does is in the statement's item ``daytime``."""

_UNSIGNED, _SIGNED = 0xFFFF, 0x7FFF
"""What the window field holds at most, by RFC 9293 section 3.1 and for who takes it for signed."""

_TIMED_S = 0.03
"""A delay above this was timed: the shortest delayed-ACK timer in use is 40 ms (Linux)."""

Match = Callable[[Reply], bool]


@dataclass(frozen=True, slots=True)
class _Covers:
    """A match that :func:`first_reply` need not ask of every reply."""

    end: int

    def __call__(self, reply: Reply) -> bool:
        return reply.ack >= self.end


def acknowledging(end: int) -> Match:
    """Whether an acknowledgment covers everything below offset ``end``."""
    return _Covers(end)


@remembered
def _records(flow: Flow) -> tuple[list[int], list[int]]:
    """The acknowledgment numbers above all before, and the places of their replies."""
    numbers: list[int] = []
    places: list[int] = []
    for place, reply in enumerate(flow.replies):
        if not numbers or reply.ack > numbers[-1]:
            numbers.append(reply.ack)
            places.append(place)
    return numbers, places


def first_reply(
    flow: Flow,
    arrival: Arrival,
    match: Match = lambda _reply: True,
    *,
    within: float = float("inf"),
) -> Reply | None:
    """The first matching acknowledgment after ``arrival``, at most ``within`` seconds later."""
    replies, began = flow.replies, arrival.packet.time
    for reply in arrival.replies:  # those before the next segment are at hand
        if reply.packet.time - began > within:
            return None
        if match(reply):
            return reply
    known = arrival.replies[-1] if arrival.replies else arrival
    first = count_through(replies, known.packet.number)
    if isinstance(match, _Covers):  # what is never acknowledged is not looked for in all
        numbers, places = _records(flow)
        record = bisect_left(numbers, match.end)
        first = max(first, places[record]) if record < len(numbers) else len(replies)
    for at in range(first, len(replies)):
        reply = replies[at]
        if reply.packet.time - began > within:
            return None
        if match(reply):
            return reply
    return None


def refused_by_moved_edge(flow: Flow, arrival: Arrival) -> bool:
    """Whether the edge has moved back over a segment before it was looked at.

    What lies beyond the window is refused (RFC 9293 section 3.10.7.4), which segments that arrive
    together may meet, the first of them closing it; SNR-RCV-017 judges how the edge moved.
    """
    reply = first_reply(flow, arrival)
    return reply is not None and reply.window_edge < min(arrival.end, arrival.window_edge)


@remembered
def _widest_field(flow: Flow) -> int:
    """What the IUT puts into the window field at most.

    Without scaling, or with a shift of nothing, some keep below the sign bit, for the sake of peers
    that take it for one.
    """
    answer, own = flow.handshake.answer, flow.handshake.iut
    highest = max((reply.tcp.window for reply in flow.replies), default=_UNSIGNED)
    highest = max(highest, answer.window if answer is not None else 0)
    shifted = flow.handshake.window_scale and own and own.content and own.content.window_scale
    unsigned = shifted or highest > _SIGNED
    return _UNSIGNED if unsigned else _SIGNED


def is_clipped(flow: Flow, reply: Reply) -> bool:
    """Whether there may be more room than the window field of a reply can tell."""
    return reply.tcp.window == _widest_field(flow)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a segment.

    Attributes:
        arrival: the segment.
        reply: the acknowledgment that answers it, None when there is none.
        timely: whether it left in time; None when the trace ends too early to tell.
    """

    arrival: Arrival
    reply: Reply | None
    timely: Literal["in time", "late", "unclear"] | None


def answer_at_once(flow: Flow, arrival: Arrival, match: Match = lambda _reply: True) -> Answer:
    """The first matching acknowledgment, and whether it left immediately."""
    late = _TIMED_S + 2 * flow.timing_error
    return _answer(flow, arrival, first_reply(flow, arrival, match), flow.reaction, late)


def answer_within(
    flow: Flow, arrival: Arrival, limit: float, match: Match = lambda _reply: True
) -> Answer:
    """The first matching acknowledgment, and whether it left within ``limit`` seconds."""
    reply = first_reply(flow, arrival, match)
    return _answer(flow, arrival, reply, limit, limit + flow.reaction)


def _answer(flow: Flow, arrival: Arrival, reply: Reply | None, limit: float, late: float) -> Answer:
    delay = (reply.time if reply is not None else flow.horizon) - arrival.time
    if reply is not None and delay <= limit:
        return Answer(arrival, reply, "in time")
    if delay > late:
        return Answer(arrival, reply, "late")
    return Answer(arrival, reply, "unclear" if reply is not None else None)


def takes_held_fin(flow: Flow) -> Reply | None:
    """The first acknowledgment of a FIN that arrived above a gap."""
    fin = next((item for item in flow.arrivals if item.fin), None)
    if fin is None or not fin.out_of_order:
        return None
    return next((item for item in flow.replies if item.ack >= fin.end), None)


@remembered
def still_receiving(flow: Flow, *, fins: bool = False) -> Sequence[Arrival]:
    """The segments with data that arrived while the connection was open in both directions.

    With ``fins`` also those that carry a FIN alone.

    Stacks differ in what they do once the IUT has closed; before its FIN and before any RST every
    receiver is in the state ESTABLISHED or CLOSE-WAIT. The daytime service reads on in FIN-WAIT,
    until the tester's FIN. A segment whose options cannot be read may be dropped (MUST-7); one
    without ACK is (section 3.10.7.4, fifth), by many before they look at its number.
    """
    closing = [sent.packet for sent in flow.sent if sent.fin]
    if flow.iut[1] == DAYTIME_PORT and closing:
        closing = [item.packet for item in flow.arrivals if item.fin]
    end = min((packet.number for packet in (*closing[:1], *flow.resets[:1])), default=math.inf)
    return tuple(
        item for item in flow.arrivals
        if (item.payload or fins) and item.packet.number < end
        and item.tcp.options_ok and item.tcp.flags & ACK
    )  # fmt: skip


def refusals(
    flow: Flow, refused: Callable[[Arrival], bool]
) -> Iterator[tuple[Arrival, Reply, bool]]:
    """Follow each segment for which ``refused`` holds until its data arrives again.

    With it comes the acknowledgment that covers any of its data and True, or the last one seen that
    does not and False. Segments after which no acknowledgment left are not mentioned, nor is data
    that had arrived before in another segment, which may have been kept.
    """
    waiting = _Waiting()
    arrived = RangeSet()
    latest: Reply | None = None
    refusing = {item for item in flow.arrivals if refused(item)}
    for event in flow.events if refusing else ():
        if isinstance(event, Arrival):
            for item, _ in waiting.taken(event.start, event.end):
                if latest is not None and latest.packet.number > item.packet.number:
                    yield item, latest, False
            if event not in refusing:
                arrived.add(event.start, event.end)  # a FIN counts, too
            elif event.payload and (
                new := arrived.gaps(max(event.start, event.expected), event.end)
            ):
                waiting.add(event, new)
        elif isinstance(event, Reply):
            latest = event
            for item in waiting.covered(event):
                yield item, event, True
    for item, _ in waiting.taken(-math.inf, math.inf):
        if latest is not None and latest.packet.number > item.packet.number:
            yield item, latest, False


class _Waiting:
    """Refused segments, none of which overlaps another, with what in them is new."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._items: dict[int, tuple[Arrival, list[Range]]] = {}

    def add(self, item: Arrival, new: list[Range]) -> None:
        """A further one, that overlaps none."""
        insort(self._starts, item.start)
        self._items[item.start] = item, new

    def taken(self, left: float, right: float) -> list[tuple[Arrival, list[Range]]]:
        """Take out those that overlap [left, right), in the order in which they arrived."""
        found = [found for at in self._among(left, right) if (found := self._items[at])]
        for item, _ in found:
            self._remove(item)
        return sorted(found, key=lambda entry: entry[0].packet.number)

    def covered(self, reply: Reply) -> list[Arrival]:
        """Take out those of which an acknowledgment, or a block, covers anything new."""
        if not self._starts:
            return []
        spans = [(-math.inf, reply.ack), *reply.blocks]
        found = {
            item: None
            for left, right in spans
            for at in self._among(left, right)
            for item, new in (self._items[at],)
            if any(left < b and a < right for a, b in new)
        }
        for item in found:
            self._remove(item)
        return sorted(found, key=lambda item: item.packet.number)

    def _among(self, left: float, right: float) -> list[int]:
        first = bisect_right(self._starts, left)
        if first and self._items[self._starts[first - 1]][0].end > left:
            first -= 1
        return self._starts[first : bisect_left(self._starts, right)]

    def _remove(self, item: Arrival) -> None:
        del self._items[item.start]
        del self._starts[bisect_left(self._starts, item.start)]
