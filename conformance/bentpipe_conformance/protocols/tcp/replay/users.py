"""What the user of a connection may do, which looks on the wire like the protocol's own action.

The suite knows what its services do: chargen always has more to send, and none ever aborts. Any
other user sends and aborts when it likes, and every implementation that calls has such a user.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from typing import Any

from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.codec import PSH, URG
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Data, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow, Freedom
from bentpipe_conformance.protocols.tcp.replay.option_list import options_length
from bentpipe_conformance.protocols.tcp.replay.order import (
    count_before,
    count_through,
    latest_first,
)

MAX_OPTIONS = 40
"""Octets of options that a segment may carry."""

ECHO_PORT = STANDARD_SERVICES["echo"]
"""RFC 862."""


def is_own_reset(flow: Flow, reset: Packet) -> bool:
    """Whether a RST of the IUT is certainly its own decision to give a connection up.

    Not so where its user may have aborted (RFC 9293 section 3.10.5), nor where the connection was
    over, so that any later arrival had to be answered by a RST (section 3.10.7.1), nor where it
    answers data that a user who has closed will not read (section 3.6.1, SHLD-3).
    """
    if reset is not flow.resets[0]:
        return False
    if flow.handshake.iut_opens or flow.iut[1] not in STANDARD_SERVICES.values():
        return False
    if _tells_of_lost_data(flow, reset):
        return False
    arrived = [p.number for p in flow.packets if not p.outgoing and p.number < reset.number][-1:]
    own = next((sent.end for sent in flow.sent if sent.fin), None)
    other = next((arrival.packet.number for arrival in flow.arrivals if arrival.fin), None)
    if not arrived or own is None or other is None or other >= arrived[0]:
        return True
    return not any(
        a.packet.number < arrived[0] and a.acceptable and a.ack >= own for a in flow.acks
    )


def _tells_of_lost_data(flow: Flow, reset: Packet) -> bool:
    """Whether a RST answers data that came after the IUT's user may have closed."""
    arrival = next(
        (item for item in reversed(flow.arrivals) if item.packet.number < reset.number), None
    )
    if arrival is None or reset.time - arrival.time > flow.reaction:
        return False
    new = arrival.start + arrival.payload > arrival.expected
    return new and may_have_closed(flow, arrival.packet.number)


def may_have_closed(flow: Flow, number: int) -> bool:
    """Whether the IUT's user may have closed before a packet: its services end as the peer does."""
    events: tuple[Iterable[Data], ...] = (flow.sent, flow.arrivals)
    return any(item.fin and item.packet.number < number for items in events for item in items)


def always_sends(flow: Flow) -> bool:
    """Whether the IUT's user certainly has data to send at any time before its peer's FIN."""
    return not flow.handshake.iut_opens and flow.iut[1] == STANDARD_SERVICES["chargen"]


def echoes(flow: Flow) -> bool:
    """Whether the IUT's user certainly sends back all that the IUT acknowledges (RFC 862)."""
    called = not flow.handshake.iut_opens and flow.iut[1] == ECHO_PORT
    return called and not hears_of_urgent_data(flow)


def hears_of_urgent_data(flow: Flow) -> bool:
    """Whether an urgent pointer arrives: its user may be given that octet apart from the stream.

    RFC 6093 section 3.3 describes that; it is the user's interface, and no segment shows it.
    """
    return any(item.tcp.flags & URG for item in flow.arriving)


def stopped_at(flow: Flow) -> float:
    """Number of the packet at which a user that always sends stops: the peer's FIN, or infinity."""
    if not always_sends(flow):
        return math.inf
    return next((item.packet.number for item in flow.arrivals if item.fin), math.inf)


@remembered
def _peaks(flow: Flow) -> list[int]:
    """With each segment sent, the most that has been outstanding."""
    return list(accumulate((sent.outstanding for sent in flow.sent), max))


def most_outstanding(flow: Flow, number: float = math.inf) -> int:
    """The most that was outstanding before a packet: the sender's buffer holds at least as much."""
    at = len(flow.sent) if number == math.inf else count_before(flow.sent, int(number))
    return _peaks(flow)[at - 1] if at else 0


def more_waited(flow: Flow, sent: Sent) -> bool:
    """Whether the user certainly had more to send when a segment left.

    The last segment queued carries PSH (RFC 9293 MUST-61); one without has more behind it, unless
    the user makes up what it sends and has stopped. Behind a user that writes little by little that
    may be less than a segment.
    """
    if sent.fin or sent.packet.number >= stopped_at(flow):
        return False
    shows = Freedom.RUNS_SHORT not in flow.reading and not sent.tcp.flags & PSH
    return always_sends(flow) or shows


@remembered
def _pushes_all(flow: Flow) -> bool:
    """Whether every segment with data carries PSH, which then says nothing of what is queued."""
    return all(sent.tcp.flags & PSH for sent in flow.sent if sent.payload)


def may_be_last(flow: Flow, sent: Sent) -> bool:
    """Whether a segment may have been the last one queued, for want of data or of buffer space.

    A user that always has more to send fills the send buffer, whose size in octets depends on what
    an implementation counts.
    """
    return bool(sent.tcp.flags & PSH) and not _pushes_all(flow)


@remembered
def largest_segment(flow: Flow) -> int:
    """Octets that the IUT's segments may have at most: SMSS of RFC 5681 is no larger.

    A user that writes little makes segments that show nothing; one that filled its segment and had
    more behind it shows SMSS.
    """
    if _fits_half_a_window(flow):
        return max(flow.segment, flow.mss)
    new = (sent for sent in flow.sent if not sent.retransmission and sent.end < sent.window_edge)
    full = any(sent.payload == flow.segment and more_waited(flow, sent) for sent in new)
    return flow.segment if full or always_sends(flow) else max(flow.segment, flow.mss)


def smss_may_vary(flow: Flow, ics: Mapping[str, Any]) -> bool:
    """Whether SMSS may have changed, or not be known, as the path's MTU is found (RFC 4821).

    Options take room from the data, so that full segments differ in data alone (section 3.7.1).
    """
    return bool(ics.get("finds_segment_size", False)) and _full_segments_differ(flow)


@remembered
def _full_segments_differ(flow: Flow) -> bool:
    """Whether they do by more than options take, or stay below the peer's MSS."""
    new = _new(flow)
    sizes = [sent.payload + options_length(sent.packet) for sent in new]
    full = (size for size, sent in zip(sizes, new, strict=True) if not sent.tcp.flags & PSH)
    most = max(sizes, default=0)
    return min(full, default=most) < most or most < flow.mss


def _fits_half_a_window(flow: Flow) -> bool:
    """Whether segments are half the largest window, options left out, by RFC 9293 3.8.6.2.1."""
    widest = max((ack.window for ack in flow.acks if ack.acceptable), default=0)
    return 0 <= widest - 2 * flow.segment <= 2 * MAX_OPTIONS


@remembered
def _new(flow: Flow) -> list[Sent]:
    return [item for item in flow.sent if item.new]


def _newest(flow: Flow, number: int) -> Sent | None:
    """The new data sent last up to a packet."""
    new = _new(flow)
    at = count_through(new, number)
    return new[at - 1] if at else None


def newest_before(flow: Flow, number: int) -> Sent | None:
    """The new data sent last before a packet."""
    return _newest(flow, number - 1)


def data_waited(flow: Flow, ack: Ack) -> bool:
    """Whether the user certainly had more to send than had left when an acknowledgment arrived."""
    number = ack.packet.number
    if number >= stopped_at(flow):
        return False
    last = newest_before(flow, number)
    return always_sends(flow) or (last is not None and more_waited(flow, last))


def latest(flow: Flow, ack: Ack) -> Sent | None:
    """The new data sent last once an acknowledgment had been answered."""
    number = (ack.responses[-1] if ack.responses else ack).packet.number
    return _newest(flow, number)


def short_of_data(flow: Flow, sent: Sent) -> bool:
    """Whether the user, not a window, may have ended the flight that a segment leaves behind.

    What is outstanding then does not show the congestion window.
    """
    last = newest_before(flow, sent.packet.number)
    return last is None or not more_waited(flow, last)


def may_have_been_full(flow: Flow, sent: Sent) -> bool:
    """Whether the send buffer, not a window, may have ended the flight behind which a segment left.

    An implementation that reduces its window, not what is outstanding (RFC 9438 section 4.6), may
    then have more outstanding afterwards.
    """
    last = newest_before(flow, sent.packet.number)
    return last is not None and may_be_last(flow, last)


def was_held_down(flow: Flow, sent: Sent) -> bool:
    """Whether the receiver's window, or the send buffer, may have ended a flight.

    That is the one outstanding when a segment leaves. Behind a buffer that was full,
    acknowledgments let nothing out.
    """
    segment = largest_segment(flow)
    if sent.window_edge - sent.max < 2 * segment or may_have_been_full(flow, sent):
        return True
    last = newest_before(flow, sent.packet.number)
    return last is not None and sent.una - last.una >= 2 * segment


def may_have_been_paced(flow: Flow, sent: Sent, ics: Mapping[str, Any]) -> bool:
    """Whether pacing, not a window, may have ended the flight outstanding when a segment leaves.

    What a window lets out leaves with an acknowledgment; the new data before left by itself.
    """
    last = last_before_reports(flow, sent)
    alone = last is not None and last.since_arrival > flow.timing_error
    return alone and ics.get("pacing", False) is True


def was_paced_below(flow: Flow, sent: Sent, ics: Mapping[str, Any]) -> bool:
    """Whether what was outstanding may be less than the window that is reduced.

    RFC 9438 section 4.6 lets CUBIC reduce the window itself, which pacing may keep from being used.
    """
    cubic = ics.get("congestion_control") == "cubic"
    return cubic and may_have_been_paced(flow, sent, ics)


def last_before_reports(flow: Flow, first: Sent) -> Sent | None:
    """The new data sent last before the receiver reported what it holds.

    Some senders put segments off to send several at once, and a window may open with a report: what
    was outstanding then bounds the congestion window better than what was when a recovery began.
    """
    before = latest_first(_new(flow), count_before(_new(flow), first.packet.number))
    return next((sent for sent in before if not (sent.sacked or sent.duplicates)), None)


def never_short_of_data(flow: Flow, sent: Iterable[Sent]) -> bool:
    """Whether the user certainly had more to send each time the sender paused after one of these.

    A pause is where another arrival, or none, caused the next of them.
    """
    new = [item for item in sent if item.new]
    last = new[-1:]
    before = [a for a, b in pairwise(new) if b.cause is not a.cause or b.timed]
    return all(more_waited(flow, item) for item in (*before, *last))
