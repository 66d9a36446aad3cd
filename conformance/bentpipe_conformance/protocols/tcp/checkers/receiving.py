"""Checkers for acknowledging received data (SNR-RCV-001 to 006, 013 to 018, 028, 029, 032)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged, until_violated
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN, nearest
from bentpipe_conformance.protocols.tcp.replay.answers import (
    DAYTIME_PORT,
    LONGEST_DELAY_S,
    Answer,
    acknowledging,
    answer_at_once,
    answer_within,
    refusals,
    refused_by_moved_edge,
    still_receiving,
)
from bentpipe_conformance.protocols.tcp.replay.direction import older
from bentpipe_conformance.protocols.tcp.replay.events import Arrival, Reply, Segment
from bentpipe_conformance.protocols.tcp.replay.flow import DEFAULT_MSS, Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import least_end, leaving_after
from bentpipe_conformance.protocols.tcp.replay.option_list import options_length
from bentpipe_conformance.protocols.tcp.replay.order import by_packet
from bentpipe_conformance.protocols.tcp.replay.stream import read_stream
from bentpipe_conformance.protocols.tcp.replay.users import (
    ECHO_PORT,
    hears_of_urgent_data,
    is_own_reset,
)

_SURE_BLOCKS = 3
"""As many fit into every acknowledgment (RFC 2018 section 4, with timestamps)."""

_LONGEST_WINDOWS = 2
"""A receive window that was never offered cannot exceed the widest offered one by this factor."""


def _timely(context: Context, answer: Answer, what: str) -> Findings:
    """The finding about how soon ``what`` was answered; none where the trace ends too early."""
    arrival, reply = answer.arrival, answer.reply
    where = (arrival,) if reply is None else (reply, arrival)
    delay = 0.0 if reply is None else reply.time - arrival.time
    if answer.timely == "in time":
        yield context.met or context.holds(
            f"{what} was answered after {delay * 1000:.1f} ms", *where
        )
    elif answer.timely == "unclear":
        yield context.unclear(f"{what} was answered, but the bed is too coarse", *where)
    elif answer.timely == "late":
        sentence = f"{what} was not answered in time"
        actual = "none" if reply is None else f"one after {delay:.3f} s"
        yield context.violated(sentence, *where, expected="an acknowledgment", actual=actual)


def _of_the_stream(flow: Flow, arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    """Without text where the peer's FIN is, or behind it.

    That is ignored (RFC 9293 section 3.10.7.4, seventh).
    """
    text = least_end(flow) - 1
    return (arrival for arrival in arrivals if arrival.end - arrival.fin <= text)


@checker("SNR-RCV-001")
def out_of_order_at_once(flow: Flow, context: Context) -> Findings:
    """Data above a gap is acknowledged at once (RFC 5681 section 4.2)."""
    # Exercised by every acceptable segment that leaves a gap below itself.
    for arrival in _of_the_stream(flow, still_receiving(flow, fins=True)):
        if arrival.out_of_order and arrival.end <= arrival.window_edge:
            yield from _timely(context, answer_at_once(flow, arrival), "out-of-order data")


def _need_not_be_kept(arrival: Arrival, left: int, right: int) -> bool:
    """Whether what is held may be a FIN, which need not be, and nothing shows that it was."""
    return right - left == 1 and (left > arrival.end or right == arrival.end)


def _up_to_its_end(flow: Flow, held: Iterable[Range]) -> list[Range]:
    """What is held of the stream; what lies behind its end is forgotten once the FIN has come."""
    end = least_end(flow)
    return [(left, right if right < end else int(end)) for left, right in held if left < end]


@checker("SNR-RCV-002")
def filled_gap_at_once(flow: Flow, context: Context) -> Findings:
    """Data that fills a gap is acknowledged at once (RFC 5681 section 4.2)."""
    # Exercised by in-order data below data that the IUT turns out to have kept.
    with_fin = context.permitted("delays_with_fin", False)
    for arrival in still_receiving(flow):
        if not arrival.fills_gap or arrival.end > arrival.window_edge:
            continue
        above = _up_to_its_end(flow, arrival.held)
        if all(_need_not_be_kept(arrival, *held) for held in above):
            continue
        if with_fin and arrival.fin and arrival.held[-1][1] == arrival.end:
            continue
        if refused_by_moved_edge(flow, arrival):
            continue
        answer = answer_at_once(flow, arrival, acknowledging(arrival.end))
        reaches = max((b for a, b in above if a <= arrival.end), default=arrival.end)
        if answer.reply is None:
            continue
        # Who reports nothing of what was held has not kept it.
        told = reaches > arrival.end or not flow.handshake.sack
        held = RangeSet(arrival.held)
        kept = any(held.overlap(left, right) for left, right in answer.reply.blocks)
        if kept or (told and answer.reply.ack >= reaches):
            yield from _timely(context, answer, "data that fills a gap")


@checker("SNR-RCV-003")
def delay_at_most_half_a_second(flow: Flow, context: Context) -> Findings:
    """In-order data is acknowledged within half a second (RFC 9293 section 3.8.6.3, MUST-40)."""
    # Exercised by every in-order segment that fits the offered window.
    limit = float(context.permitted("longest_delay_s", LONGEST_DELAY_S))
    for arrival in still_receiving(flow):
        if not arrival.in_order or arrival.end > arrival.window_edge:
            continue
        if refused_by_moved_edge(flow, arrival):
            continue
        answer = answer_within(flow, arrival, limit, acknowledging(arrival.end))
        yield from _timely(context, answer, "in-order data")


@checker("SNR-RCV-004")
def every_second_full_segment(flow: Flow, context: Context) -> Findings:
    """Every second full-sized segment is acknowledged (RFC 9293 section 3.8.6.3, SHLD-19)."""
    # Exercised by full-sized segments in sequence that carry two segments' worth of data. Without
    # options two do; RFC 5681 section 4.2 counts in RMSS, which options do not lessen. Nothing is
    # asked of who acknowledges each at once; one that a timer acknowledges before the next comes
    # does not show whether the second would have been.
    if flow.handshake.answer is None:
        return
    mss = flow.handshake.answer.mss or DEFAULT_MSS
    segments = int(context.permitted("segments", 2))
    wanted = segments * mss
    row: deque[Arrival] = deque()
    carried = 0
    for arrival in still_receiving(flow):
        # A longer one was merged from several by receive offload, so they cannot be counted.
        fits = arrival.end <= arrival.window_edge and arrival.payload <= mss
        # A segment that repeats some data carries less than a full segment of new data.
        if not arrival.in_order or arrival.held or not fits or arrival.start < arrival.expected:
            row.clear()
            carried = 0
        elif arrival.payload + options_length(arrival.packet) >= mss:
            row.append(arrival)
            carried += arrival.payload
        before, first = len(row), row[0] if row else arrival
        while row and row[0].end <= arrival.last_ack:
            carried -= row.popleft().payload
        if before >= segments > len(row):
            answer = answer_at_once(flow, first, acknowledging(first.end))
            if answer.timely == "in time":
                yield context.holds("a full-sized segment was acknowledged alone", first)
        elif carried >= wanted:
            answer = answer_at_once(flow, arrival, acknowledging(row[0].end))
            what = f"full-sized segment {len(row)} that is not acknowledged"
            yield from _timely(context, answer, what)


@checker("SNR-RCV-005")
def acknowledgment_never_goes_back(flow: Flow, context: Context) -> Findings:
    """The acknowledgment number never decreases (RFC 9293 section 3.4)."""
    # Exercised by every segment after an acknowledgment of data.
    for before, reply in pairwise(flow.replies):
        if reply.ack < before.ack:
            sentence = f"the acknowledgment number went back from {before.ack} to {reply.ack}"
            yield context.violated(
                sentence, reply, before, expected=f"at least {before.ack}", actual=str(reply.ack)
            )
            return
        if reply.ack > 0:
            yield context.holds("the acknowledgment number did not go back", reply)


@checker("SNR-RCV-006")
def nothing_acknowledged_unreceived(flow: Flow, context: Context) -> Findings:
    """Only received data is acknowledged (RFC 9293 section 3.4)."""
    # Exercised by every acknowledgment once data arrived.
    yield from until_violated(
        judged(
            context,
            reply.ack <= reply.limit,
            f"offset {reply.ack} was acknowledged, {reply.limit} octets having arrived in sequence",
            reply,
            expected=f"at most {reply.limit}",
            actual=str(reply.ack),
        )
        for reply in flow.replies
        if reply.ack > reply.limit or reply.last_arrival is not None
    )


@checker("SNR-RCV-013")
def duplicate_is_acknowledged(flow: Flow, context: Context) -> Findings:
    """A duplicate is acknowledged (RFC 9293 section 3.10.7.4)."""
    # Exercised by every segment whose data had all been received in sequence.
    for arrival in _of_the_stream(flow, still_receiving(flow)):
        if arrival.duplicate and not arrival.may_be_stale and not arrival.lacks_timestamp:
            answer = answer_within(flow, arrival, LONGEST_DELAY_S)
            yield from _timely(context, answer, "duplicate data")


def never_accepted(
    flow: Flow, context: Context, refused: Callable[[Arrival], bool], kind: str, expected: str
) -> Findings:
    """What became of the segments of a kind that must not be accepted, once they are answered."""
    for arrival, reply, accepted in refusals(flow, refused):
        outcome = "accepted" if accepted else "not accepted"
        sentence = f"data from offset {arrival.start}, {kind}, was {outcome}"
        actual = f"an acknowledgment up to offset {reply.ack}"
        where = reply, arrival
        yield judged(context, not accepted, sentence, *where, expected=expected, actual=actual)


def _beyond(arrival: Arrival) -> bool:
    """Whether a segment lies beyond any window the IUT can have had.

    Half the space away it may as well be old.
    """
    furthest = arrival.expected + _LONGEST_WINDOWS * arrival.widest_window
    outside = arrival.start > max(arrival.window_edge, furthest)
    outside = outside and arrival.start - arrival.expected < MODULUS // 2
    return outside and not arrival.may_be_stale and not arrival.lacks_timestamp


@checker("SNR-RCV-015")
def beyond_window_is_answered(flow: Flow, context: Context) -> Findings:
    """Data beyond the window is answered (RFC 9293 section 3.10.7.4)."""
    # Exercised by every segment beyond the offered window. A receiver with a window wider than the
    # one it offered acknowledges it too, as data above a gap. RCV-026 has the closed window.
    for arrival in still_receiving(flow):
        beyond = arrival.start >= arrival.window_edge and arrival.start > arrival.expected
        if beyond and not arrival.may_be_stale and not arrival.lacks_timestamp:
            answer = answer_within(flow, arrival, LONGEST_DELAY_S)
            yield from _timely(context, answer, "data beyond the window")


@checker("SNR-RCV-016")
def beyond_window_is_refused(flow: Flow, context: Context) -> Findings:
    """Data beyond the window is not accepted (RFC 9293 section 3.10.7.4)."""
    # Exercised by every segment that is answered and lies far beyond the offered window, or, where
    # its edge is claimed to be exact, at the edge or behind it while the offer is up to date.
    expected = "nothing accepted beyond the offered window"
    exact = _exactly_beyond(flow) if context.ics.get("exact_edge") else set()
    yield from never_accepted(
        flow, context, lambda a: _beyond(a) or a in exact, "beyond the window", expected
    )


def _exactly_beyond(flow: Flow) -> set[Arrival]:
    """Segments beyond a window that is as wide as ever and whose latest offer is up to date.

    Everything has been acknowledged, so that the receiver has learned nothing since. A scaled
    window may be rounded.
    """
    found: set[Arrival] = set()
    latest: Reply | None = None
    unit = scale_unit(flow)
    for event in flow.events:
        if isinstance(event, Reply):
            latest = event
        elif isinstance(event, Arrival) and latest is not None:
            fresh = latest.ack == event.expected and latest.last_arrival is not None
            fresh = fresh and latest.window >= event.widest_window
            sure = fresh and not event.may_be_stale and not event.lacks_timestamp
            if sure and event.start >= event.window_edge + unit - 1:
                found.add(event)
    return found


def scale_unit(flow: Flow) -> int:
    """Octets of one unit of the IUT's window field."""
    answer = flow.handshake.answer
    return 1 << (answer.window_scale or 0 if answer and flow.handshake.window_scale else 0)


@checker("SNR-RCV-032")
def crossing_segment_is_taken(flow: Flow, context: Context) -> Findings:
    """What lies in the window of a segment that crosses its edge is taken (RFC 9293 3.10.7.4)."""
    # Exercised by data that begins in the window offered and ends beyond it.
    for arrival in still_receiving(flow):
        start, reach = arrival.start, min(arrival.start + arrival.payload, arrival.window_edge)
        if not arrival.acceptable or arrival.end <= arrival.window_edge or reach <= start:
            continue
        if arrival.out_of_order and (not flow.handshake.sack or len(arrival.held) >= _SURE_BLOCKS):
            continue
        answer = answer_within(flow, arrival, LONGEST_DELAY_S, _covering(start, reach))
        yield from _timely(context, answer, f"data up to the window's edge at {reach}")


def _covering(start: int, reach: int) -> Callable[[Reply], bool]:
    """Whether an acknowledgment reaches an offset, or a block reports everything between two."""
    return lambda reply: (
        reply.ack >= reach or any(left <= start and reach <= right for left, right in reply.blocks)
    )


@checker("SNR-RCV-017")
def right_edge_stays(flow: Flow, context: Context) -> Findings:
    """The right window edge does not move left (RFC 9293 section 3.8.6, SHLD-14)."""
    # Exercised by every acknowledgment until either side closes.
    answer = flow.handshake.answer
    if answer is None:
        return
    unit = scale_unit(flow)
    # What a SYN offers counts too; only its rounding may be lost.
    edge: int = answer.window
    offer: Segment | None = Segment(flow.handshake.iut) if flow.handshake.iut else None
    for event in flow.events:
        # Data is still received behind the own FIN, but not every user reads on.
        if event.tcp.flags & FIN and (isinstance(event, Arrival) or flow.iut[1] != DAYTIME_PORT):
            return
        if not isinstance(event, Reply):
            continue
        if not event.window and context.permitted("may_close", False):
            edge = event.window_edge
        if event.window_edge <= edge - unit and offer is not None:
            sentence = f"the right window edge moved back from {edge} to {event.window_edge}"
            expected = f"an edge above {edge - unit}"
            actual = str(event.window_edge)
            yield context.violated(sentence, event, offer, expected=expected, actual=actual)
            return
        if offer is not None and event.last_arrival is not None:
            yield context.holds("the right window edge did not move back", event)
        if event.window_edge > edge:
            edge, offer = event.window_edge, event


@checker("SNR-RCV-018")
def echo_is_exact(flow: Flow, context: Context) -> Findings:
    """The application receives exactly the octets sent (RFC 9293 section 3.4, RFC 862)."""
    # Exercised by an echo connection whose segments did not simply arrive in sequence.
    if flow.iut[1] != ECHO_PORT or hears_of_urgent_data(flow):
        return
    stream = read_stream(flow)
    disturbed = [a for a in flow.arrivals if a.payload and not (a.in_order and not a.held)]
    last = None
    for sent in flow.sent:
        end = sent.start + sent.payload
        # A probe may repeat the number of the SYN, at which there is no data.
        unknown = sent.tcp.missing or stream.disputed(sent.start, end)
        # Below what is acknowledged: a keep-alive may carry a garbage octet (section 3.8.4).
        unknown = unknown or sent.end <= sent.una
        if not sent.payload or sent.start < 0 or unknown:
            continue
        if not stream.equals(sent.start, sent.tcp.payload):
            source = [a for a in flow.arrivals if a.start <= sent.start < a.end][:1]
            sentence = f"the echo of octets {sent.start} to {end} differs from what was sent"
            yield context.violated(
                sentence, sent, *source, expected="the octets as sent", actual="other octets"
            )
            return
        last = sent
    if disturbed and last is not None and last.end > disturbed[0].start:
        yield context.holds("the echo returned the octets as sent", last, disturbed[0])


@checker("SNR-RCV-028")
def data_beyond_the_fin_is_ignored(flow: Flow, context: Context) -> Findings:
    """Data behind a FIN that was received is ignored (RFC 9293 section 3.10.7.4)."""
    # Exercised by data behind an acknowledged FIN, once an acknowledgment follows.
    fin = context.prepared.lifetime.fin
    if fin is None:
        return
    end = fin.end
    taken, beyond = False, None
    before = RangeSet()
    for event in flow.events:
        if isinstance(event, Reply):
            taken = taken or event.ack >= end
            if beyond is None:
                continue
            blocks = [right for left, right in event.sack if not before.covers(left, right)]
            highest = max([event.ack, *blocks])
            sentence = f"data behind the FIN at offset {end - 1} was "
            sentence += "acknowledged" if highest > end else "ignored"
            yield judged(
                context, highest <= end, sentence, event, beyond,
                expected=f"nothing acknowledged or reported above offset {end}",
                actual=f"offset {highest}",
            )  # fmt: skip
            if highest > end:
                return
            beyond = None
        elif isinstance(event, Arrival) and not taken:
            before.add(event.start, event.end)
        elif isinstance(event, Arrival) and event.start >= end and event.payload:
            beyond = event


ATTEMPT_S = 60.0
"""Seconds for which nobody gives up an attempt to open a connection."""


@checker("SNR-RCV-029")
def empty_segment_outside_the_window_is_answered(flow: Flow, context: Context) -> Findings:
    """An unacceptable segment without data is acknowledged (RFC 9293 section 3.10.7.4)."""
    # Exercised by every segment without data below the window or far beyond it, and by old data
    # once the IUT has sent a FIN, a second after the one before; timestamps are right.
    lifetime, offer, first = context.prepared.lifetime, flow.handshake.offer, flow.handshake.iut
    if offer is None or first is None or flow.handshake.answer is None:
        return
    apart = float(context.permitted("apart_s", 1.0))
    over = lifetime.over or math.inf
    own_fin = lifetime.own_fin.packet.number if lifetime.own_fin else math.inf
    arrival_of = by_packet(flow.arrivals)
    replies = iter(flow.replies)
    following = next(replies, None)
    ack, edge = 0, flow.handshake.answer.window
    now = edge
    begin: float = first.number
    if flow.handshake.iut_opens:
        begin = lifetime.established.packet.number if lifetime.established else math.inf
    newest: int | None = None
    before = -math.inf
    widest = _widest_offer(flow)
    for item in flow.arriving:
        tcp, number = item.tcp, item.packet.number
        while following is not None and following.packet.number < number:
            ack, now = max(ack, following.ack), following.window_edge
            edge = max(edge, now)
            following = next(replies, None)
        stale = newest is not None and tcp.tsval is not None and older(tcp.tsval, newest)
        newest = newest if stale else tcp.tsval
        if number > min(over, flow.first_reset):
            return
        challenged = bool(tcp.flags & (SYN | RST))  # RFC 5961: one limit for all answers
        if number <= begin:
            if challenged and item.packet is not flow.handshake.tester:
                before = item.time
            continue
        at = nearest(tcp.seq - offer.seq - 1, ack)
        arrival = arrival_of(item.packet)
        old = arrival is not None and arrival.duplicate and number > own_fin
        beyond = at > ack + _LONGEST_WINDOWS * max(edge - ack, widest)
        below = at + tcp.length <= ack if tcp.length else at < ack
        if not (below or beyond or challenged):
            if stale or max(at + tcp.length, at + 1) > now:
                # PAWS, or an edge that has moved back, may refuse it, which is answered.
                before = item.time
            continue
        waited, before = item.time - before, item.time
        if (tcp.length and not old) or tcp.flags & (ACK | SYN | RST | FIN) != ACK:
            continue
        if not tcp.options_ok:
            continue  # it may be dropped (MUST-7)
        if stale or waited < apart or (flow.handshake.timestamps and tcp.tsval is None):
            continue
        answer = leaving_after(flow, item, LONGEST_DELAY_S + flow.reaction, lambda _: True)
        where = "beyond" if beyond else "below"
        what = f"a segment with {tcp.length} octets {where} the window"
        if answer is not None and answer.tcp.flags & SYN:
            continue  # that may have been due
        at_once = answer is not None and answer.time - item.time <= flow.reaction
        if answer is not None and answer.tcp.flags & RST:
            if not at_once or lifetime.time_wait or not is_own_reset(flow, answer.packet):
                return
            opened = flow.handshake.established
            if (opened is None or opened >= item.time) and item.time - first.time >= ATTEMPT_S:
                return  # the attempt may have been given up
            sentence, actual = f"{what} was answered by a RST", "a RST"
            yield context.violated(
                sentence, item, answer, expected="an acknowledgment", actual=actual
            )
            return
        if answer is not None:
            yield context.holds(f"{what} was answered", answer, item)
        elif flow.horizon - item.time > LONGEST_DELAY_S + flow.reaction:
            sentence = f"{what} was not answered"
            yield context.violated(sentence, item, expected="an acknowledgment", actual="none")
            return


def _widest_offer(flow: Flow) -> int:
    """The widest window that the IUT ever offered, octets."""
    answer = flow.handshake.answer
    return max([item.window for item in flow.replies] + [answer.window if answer else 0])
