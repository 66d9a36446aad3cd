"""Checkers for how often a receiver acknowledges, and what it keeps; and of a small segment.

SNR-RCV-020, 022, 023 and SNR-WIN-011.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from itertools import pairwise

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.codec import ECN
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings
from bentpipe_conformance.protocols.tcp.codec import PSH, SYN, nearest
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.answers import (
    acknowledging,
    first_reply,
    is_clipped,
    refused_by_moved_edge,
    still_receiving,
)
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Reply, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import DEFAULT_MSS, Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import least_end
from bentpipe_conformance.protocols.tcp.replay.moments import EXACT_S
from bentpipe_conformance.protocols.tcp.replay.option_list import options_length
from bentpipe_conformance.protocols.tcp.replay.order import by_packet, later
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.users import (
    echoes,
    smss_may_vary,
)

PROBE_S = 0.15
"""Seconds after which a tail loss probe may send what waits (RFC 8985 section 7.2: it allows for an
acknowledgment that is delayed by 200 ms)."""

AT_ONCE_S = 0.0005
"""An acknowledgment that takes longer than these seconds was delayed, if only a little: RFC 9293
section 3.8.6.3 says how long it may be delayed, not how long it must be."""

HELD_S = 1.0
"""Seconds within which data that was held is acknowledged once the gap below it is filled."""


class _Owed:
    """What may still be answered: ends of segments in the order in which they arrived."""

    def __init__(self) -> None:
        self._ends: OrderedDict[int, float] = OrderedDict()
        self._sorted: list[tuple[float, int]] = []
        self._added = 0

    def __bool__(self) -> bool:
        return bool(self._ends)

    def add(self, end: float) -> None:
        """A further segment."""
        self._added += 1
        self._ends[self._added] = end
        insort(self._sorted, (end, self._added))

    def drop(self, above: float, upto: float) -> None:
        """Those that end above one number and no higher than another are owed nothing."""
        first = bisect_right(self._sorted, (above, math.inf))
        last = bisect_right(self._sorted, (upto, math.inf), lo=first)
        for _, nth in self._sorted[first:last]:
            del self._ends[nth]
        del self._sorted[first:last]

    def answer(self) -> None:
        """The first of them is answered."""
        nth, end = self._ends.popitem(last=False)
        del self._sorted[bisect_left(self._sorted, (end, nth))]


@checker("SNR-RCV-020")
def one_acknowledgment_per_segment(flow: Flow, context: Context) -> Findings:
    """At most one acknowledgment answers a segment (RFC 5681 section 4.2)."""
    # Exercised by every pure acknowledgment that neither advances nor offers more. A probe of the
    # IUT's repeats a number that it has used; data carries its acknowledgment by the way.
    owed = _Owed()
    last: Reply | None = None
    sent = 0
    reply_of, arrival_of = by_packet(flow.replies), by_packet(flow.arrivals)
    # What is only an acknowledgment, and taken for one, has no answer.
    mute = by_packet(a for a in flow.acks if a.acceptable and not a.tcp.length)
    first, offer = flow.handshake.answer, flow.handshake.offer
    if first is None or offer is None:
        return
    edge, reached = first.window, 0

    def below(packet: Packet, offset: int) -> bool:
        tcp = packet.content
        return tcp is not None and nearest(tcp.seq - offer.seq - 1, offset) < offset

    for packet in flow.packets:
        if not packet.outgoing:
            if last is None and packet.content is not None and packet.content.flags & SYN:
                continue  # the SYN-ACK answers it
            bare = mute(packet)
            tcp = bare.tcp if bare is not None else None
            # At the right edge it is not acceptable (RFC 9293 section 3.10.7.4), but many take it;
            # it is at the next expected octet, the window being closed.
            at = edge if tcp is None else nearest(tcp.seq - offer.seq - 1, edge)
            if at >= edge and (tcp is None or last is None or at != last.ack):
                arrival = arrival_of(packet)
                # A duplicate, or what data has overtaken, is answered whatever an answer to others
                # covers.
                again = arrival.duplicate if arrival is not None else below(packet, reached)
                owed.add(math.inf if again else -1 if arrival is None else arrival.end)
                if arrival is not None and arrival.in_order:
                    reached = arrival.end
            continue
        reply = reply_of(packet)
        if reply is None:
            continue
        tcp, edge = reply.tcp, max(edge, reply.window_edge)
        start = nearest(tcp.seq - first.seq - 1, sent)
        probe, sent = start < sent, max(sent, start + tcp.length)
        if tcp.length or probe:
            known = 0 if last is None else last.ack
            if reply.ack > known:
                # What it acknowledges for the first time needs no other answer.
                owed.drop(known, reply.ack)
                last = reply
            continue
        if last is None or reply.ack > last.ack or reply.window_edge > last.window_edge:
            # What it covers needs no other answer; what lies above may still have one of its own,
            # and what is refused as well, if the user had just read.
            offers = last is not None and reply.ack == last.ack
            owed.drop(-1 if offers else -2, reply.ack)
        elif not owed and last.payload and reply.blocks != last.blocks:
            last = reply  # there was no room for its SACK blocks beside the data
        elif not owed:
            if is_clipped(flow, reply):
                continue  # a wider window may be what it would tell, if the field were wider
            sentence = "a second acknowledgment answered the same segment"
            expected = "one acknowledgment for each segment"
            actual = "another, with no news and nothing having arrived"
            yield context.violated(sentence, reply, last, expected=expected, actual=actual)
            return
        else:
            owed.answer()
            yield context.holds("one segment, one acknowledgment", reply)
        last = reply


@checker("SNR-RCV-022")
def data_above_a_gap_is_held(flow: Flow, context: Context) -> Findings:
    """Data above a gap is held (RFC 9293 section 3.10.7.4, SHLD-31)."""
    # Exercised by every segment that fills a gap below data, or a FIN, that fitted the window.
    fitting, end = RangeSet(), least_end(flow)
    for arrival in still_receiving(flow, fins=True):
        reach = min(arrival.end, arrival.window_edge)
        if refused_by_moved_edge(flow, arrival):
            continue
        if not arrival.fills_gap or arrival.end > arrival.window_edge:
            if arrival.acceptable and arrival.start < reach:
                fitting.add(arrival.start, reach)
            continue
        fitting.add(arrival.start, arrival.end)
        reaches = fitting.around(arrival.start)[1] if arrival.payload else arrival.end
        if reaches <= arrival.end or reaches > end:
            continue  # above a FIN, perhaps a later one, the peer contradicts itself
        what = f"data up to offset {reaches}, held above a gap,"
        reply = first_reply(flow, arrival, acknowledging(reaches), within=HELD_S)
        if reply is not None:
            yield context.holds(f"{what} was acknowledged when the gap was filled", reply, arrival)
            continue
        again = any(
            a.start < reaches and a.end > arrival.end and a.time <= arrival.time + HELD_S
            for a in later(flow.arrivals, arrival.packet)
        )  # fmt: skip
        if not again and flow.horizon - arrival.time > HELD_S + flow.reaction:
            sentence = f"{what} was not acknowledged when the gap was filled"
            expected = f"an acknowledgment of {reaches} within {HELD_S:.0f} s"
            yield context.violated(sentence, arrival, expected=expected, actual="none")
            return


@checker("SNR-RCV-023")
def acknowledgments_are_delayed(flow: Flow, context: Context) -> Findings:
    """Not every segment of a long stream is acknowledged alone (RFC 9293 3.8.6.3, SHLD-18)."""
    # Exercised by a long run of full-sized segments in sequence that follow one another closely.
    if flow.handshake.answer is None:
        return
    mss = flow.handshake.answer.mss or DEFAULT_MSS
    size = _full_size(flow, mss)
    least = int(context.permitted("segments", 30))
    apart = float(context.permitted("apart_s", 0.1))
    after_reading = bool(context.permitted("after_reading", False))
    edge_stays = bool(context.permitted("edge_stays", False))
    unmarked_at_once = bool(context.permitted("unmarked_at_once", False))
    unit = 1 << (flow.handshake.answer.window_scale or 0)
    capable = False
    run: list[Arrival] = []
    for arrival, following in pairwise(still_receiving(flow)):
        full = arrival.payload + options_length(arrival.packet) >= size
        # One that is pushed may be acknowledged when it is read, as Linux does.
        full = full and not arrival.tcp.flags & PSH
        marked = bool(arrival.packet.data[1] & ECN)
        capable = capable or marked
        full = full and (marked or not (unmarked_at_once and capable))
        steady = arrival.in_order and not arrival.held and full
        alone = any(
            _alone(reply, arrival, mss)
            and not _may_fill_a_gap(reply)
            and not (after_reading and _all_read(reply, arrival))
            and not (edge_stays and _keeps_edge(reply, arrival, unit))
            for reply in arrival.replies
        )
        waits = not any(reply.ack >= arrival.end for reply in arrival.replies)
        if not steady or following.time - arrival.time > apart:
            run = []
        elif alone:
            run.append(arrival)
        else:
            if waits and any(reply.ack >= following.end for reply in following.replies):
                yield context.holds("one acknowledgment covers several segments", arrival)
            run = []
        if len(run) >= least:
            sentence = f"{len(run)} full-sized segments in a row were acknowledged one by one"
            expected = "acknowledgments that cover two"
            yield context.violated(
                sentence, run[0], run[-1], expected=expected, actual="one for each segment"
            )
            return


def _full_size(flow: Flow, mss: int) -> int:
    """Octets of data and options in a full-sized segment of the tester.

    It sends as much at once as the smaller MTU carries (RFC 5681 section 2), and offers what its
    own does. An odd MSS option says nothing.
    """
    offer = flow.handshake.offer
    own = offer.mss if offer is not None and flow.handshake.ordinary else None
    return min(mss, own or mss)


def _all_read(reply: Reply, arrival: Arrival) -> bool:
    """Whether a reply offers as wide a window as the one before: the user has read everything."""
    return reply.window >= arrival.window_edge - arrival.last_ack


def _keeps_edge(reply: Reply, arrival: Arrival, unit: int) -> bool:
    """Whether a reply offers no more than before, but for what rounding in units adds."""
    return reply.window_edge < arrival.window_edge + unit


def _alone(reply: Reply, arrival: Arrival, mss: int) -> bool:
    """Whether a reply does nothing but acknowledge a segment, without delay.

    One with data goes with it, and one that offers much more room is a window update (RFC 9293
    section 3.8.6.2.2).
    """
    update = reply.window_edge - arrival.window_edge >= min(arrival.widest_window // 2, 2 * mss)
    at_once = reply.time - arrival.time < AT_ONCE_S
    return reply.ack == arrival.end and not reply.payload and not update and at_once


def _may_fill_a_gap(reply: Reply) -> bool:
    """Whether something may be held above what is acknowledged, then at once (RFC 5681 4.2).

    That is anything that has arrived in the window, also what might have been dropped.
    """
    return any(left < reply.window_edge for left, _ in reply.arrived)


def _may_probe(flow: Flow, context: Context, small: Sent, sent: Sent) -> bool:
    """Whether a segment may be a tail loss probe, which does not wait.

    Its timer takes two smoothed round trips, and allows for a delayed acknowledgment where a single
    segment is outstanding (RFC 8985 section 7.2).
    """
    if sent.time - small.time >= PROBE_S - context.timing_error:
        return True
    by_timer = sent.timed or context.timing_error <= EXACT_S < sent.since_arrival
    if not by_timer or sent.flight <= small.length or not context.ics.get("tlp", True):
        return False
    return sent.since_sent >= 2 * minimum_rtt(flow) - context.timing_error


@checker("SNR-WIN-011")
def one_small_segment_at_a_time(flow: Flow, context: Context) -> Findings:
    """One small segment is outstanding at a time (RFC 9293 section 3.7.4, SHLD-7)."""
    # Exercised by a small segment that waited for another, which shows as one sent upon its
    # acknowledgment. A tail loss probe may send one by timer (RFC 8985 section 7.3).
    if smss_may_vary(flow, context.ics):
        return
    if not echoes(flow):
        return  # a user that writes much shows where its writes end, not what waited
    small: Sent | None = None
    fin = context.prepared.lifetime.own_fin
    room = flow.segment - 40  # SACK blocks and timestamps take as much of a segment at most
    edge: float = math.inf  # offered last; it may have moved back
    for event in flow.events:
        if isinstance(event, Ack) and event.acceptable:
            edge = event.window_edge
            small = None if small and event.ack >= small.end else small
        if not isinstance(event, Sent) or event.retransmission or event.fin:
            continue
        if not 0 < event.payload < room or event.end >= min(event.window_edge, edge) - 1:
            continue
        if fin is not None and fin.start == event.end and fin.time - event.time <= flow.reaction:
            continue  # nothing would come to fill it
        if small is not None and not _may_probe(flow, context, small, event):
            sentence = f"{event.payload} octets were sent, {small.span} being unacknowledged"
            expected = "one small segment at a time"
            yield context.violated(sentence, event, small, expected=expected, actual="two")
            return
        if event.cause is not None and event.cause.advance:
            yield context.holds("a small segment waited for the one before", event)
        small = event
