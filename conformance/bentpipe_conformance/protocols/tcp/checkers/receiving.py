"""Checkers for acknowledging received data (SNR-RCV-001 to 006 and 013 to 018)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.checkers import Context
from bentpipe_conformance.protocols.tcp.codec import FIN, Tcp
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    Timeliness,
    acknowledging,
    at_once,
    first_reply,
    refusals,
    soon,
    still_receiving,
)
from bentpipe_conformance.protocols.tcp.replay.flow import DEFAULT_MSS, Arrival, Flow, Reply

ECHO_PORT = 7
"""RFC 862."""

_LONGEST_WINDOWS = 2
"""A receive window that was never offered cannot exceed the widest offered one by this factor."""


def _judged(
    context: Context, arrival: Arrival, reply: Reply | None, timely: Timeliness | None, what: str
) -> Iterator[Finding]:
    if timely == "in time" and reply is not None:
        delay = reply.time - arrival.time
        yield context.holds(f"{what} was answered after {delay * 1000:.1f} ms", reply, arrival)
    elif timely == "unclear" and reply is not None:
        yield context.unclear(f"{what} was answered, but the bed is too coarse", reply, arrival)
    elif timely == "late":
        where = (arrival,) if reply is None else (reply, arrival)
        yield context.violated(
            f"{what} was not answered in time",
            *where,
            expected="an acknowledgment",
            actual="none" if reply is None else f"one after {reply.time - arrival.time:.3f} s",
        )


@checker("SNR-RCV-001")
def out_of_order_at_once(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every acceptable segment that leaves a gap below itself."""
    for arrival in still_receiving(flow):
        if arrival.out_of_order and arrival.end <= arrival.window_edge:
            reply = first_reply(flow, arrival)
            timely = at_once(flow, arrival, reply, context.timing_error)
            yield from _judged(context, arrival, reply, timely, "out-of-order data")


@checker("SNR-RCV-002")
def filled_gap_at_once(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by in-order data below data that the IUT turns out to have kept."""
    for arrival in still_receiving(flow):
        if not arrival.fills_gap or arrival.end > arrival.window_edge:
            continue
        reply = first_reply(flow, arrival, acknowledging(arrival.end))
        reaches = max((b for a, b in arrival.held if a <= arrival.end), default=arrival.end)
        kept = reply is not None and (reply.ack >= reaches or bool(reply.blocks))
        if kept:
            timely = at_once(flow, arrival, reply, context.timing_error)
            yield from _judged(context, arrival, reply, timely, "data that fills a gap")


@checker("SNR-RCV-003")
def delay_at_most_half_a_second(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every in-order segment that fits the offered window."""
    limit = float(context.permitted("longest_delay_s", LONGEST_DELAY_S))
    for arrival in still_receiving(flow):
        if not arrival.in_order or arrival.end > arrival.window_edge:
            continue
        reply = first_reply(flow, arrival, acknowledging(arrival.end))
        timely = soon(flow, arrival, reply, limit, context.timing_error)
        yield from _judged(context, arrival, reply, timely, "in-order data")


@checker("SNR-RCV-004")
def every_second_full_segment(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every second of full-sized segments that arrive in sequence."""
    syn_ack = flow.handshake.iut.content if flow.handshake.iut else None
    if syn_ack is None:
        return
    mss = syn_ack.mss or DEFAULT_MSS
    wanted = int(context.permitted("segments", 2))
    what = f"full-sized segment {wanted} in a row"
    row: list[Arrival] = []
    for arrival in still_receiving(flow):
        # A longer one was merged from several by receive offload, so they cannot be counted.
        fits = arrival.end <= arrival.window_edge and arrival.payload <= mss
        # One that repeats some of what has come brings less than a full segment.
        if not arrival.in_order or arrival.held or not fits or arrival.start < arrival.expected:
            row = []
        elif arrival.payload + _option_octets(arrival) >= mss:
            row.append(arrival)
        if len(row) < wanted:
            continue
        earlier, row = row[0], []
        if arrival.last_ack >= earlier.end:
            yield context.holds(f"{what} was preceded by an acknowledgment", arrival, earlier)
            continue
        reply = first_reply(flow, arrival, acknowledging(earlier.end))
        timely = at_once(flow, arrival, reply, context.timing_error)
        yield from _judged(context, arrival, reply, timely, what)


def _option_octets(arrival: Arrival) -> int:
    data = arrival.packet.data
    return (data[(data[0] & 0xF) * 4 + 12] >> 4) * 4 - 20


@checker("SNR-RCV-005")
def acknowledgment_never_goes_back(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every segment after an acknowledgment of data."""
    highest: Reply | None = None
    for reply in flow.replies:
        if highest is not None and reply.ack < highest.ack:
            yield context.violated(
                f"the acknowledgment number went back from {highest.ack} to {reply.ack}",
                reply,
                highest,
                expected=f"at least {highest.ack}",
                actual=str(reply.ack),
            )
            return
        if highest is not None and reply.ack > 0:
            yield context.holds("the acknowledgment number did not go back", reply)
        highest = reply


@checker("SNR-RCV-006")
def nothing_acknowledged_unreceived(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every acknowledgment once data arrived."""
    for reply in flow.replies:
        if reply.ack > reply.limit:
            yield context.violated(
                f"offset {reply.ack} was acknowledged, but only {reply.limit} octets had arrived",
                reply,
                expected=f"at most {reply.limit}",
                actual=str(reply.ack),
            )
            return
        if reply.last_arrival is not None:
            yield context.holds("only received data was acknowledged", reply)


@checker("SNR-RCV-013")
def duplicate_is_acknowledged(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every segment whose data had all been received in sequence."""
    for arrival in still_receiving(flow):
        if arrival.duplicate and not arrival.may_be_stale and not arrival.lacks_timestamp:
            reply = first_reply(flow, arrival)
            timely = soon(flow, arrival, reply, LONGEST_DELAY_S, context.timing_error)
            yield from _judged(context, arrival, reply, timely, "duplicate data")


def _beyond(arrival: Arrival) -> bool:
    """Whether a segment lies beyond any window the IUT can have had."""
    furthest = arrival.expected + _LONGEST_WINDOWS * arrival.widest_window
    outside = arrival.start > max(arrival.window_edge, furthest)
    return outside and not arrival.may_be_stale and not arrival.lacks_timestamp


@checker("SNR-RCV-015")
def beyond_window_is_answered(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every segment far beyond the offered window."""
    for arrival in still_receiving(flow):
        if _beyond(arrival):
            reply = first_reply(flow, arrival)
            timely = soon(flow, arrival, reply, LONGEST_DELAY_S, context.timing_error)
            yield from _judged(context, arrival, reply, timely, "data beyond the window")


@checker("SNR-RCV-016")
def beyond_window_is_refused(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every segment far beyond the offered window that is answered."""
    for refusal in refusals(flow, _beyond):
        arrival = refusal.arrival
        if not refusal.accepted:
            yield context.holds("data beyond the window was not accepted", refusal.reply, arrival)
            continue
        yield context.violated(
            f"data from offset {arrival.start} was accepted beyond the window's end",
            refusal.reply,
            arrival,
            expected=f"nothing accepted beyond offset {arrival.window_edge}",
            actual=f"an acknowledgment that covers data from offset {arrival.start}",
        )


@checker("SNR-RCV-017")
def right_edge_stays(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every acknowledgment until either side closes."""
    handshake = flow.handshake
    if handshake.iut is None or handshake.iut.content is None:
        return
    shift = (handshake.iut.content.window_scale or 0) if handshake.window_scale else 0
    edge, offer = 0, None
    for event in flow.events:
        tcp = event.packet.content
        if tcp is not None and tcp.flags & FIN:
            return
        if not isinstance(event, Reply):
            continue
        if event.window_edge <= edge - (1 << shift) and offer is not None:
            yield context.violated(
                f"the right window edge moved back from {edge} to {event.window_edge}",
                event,
                offer,
                expected=f"an edge above {edge - (1 << shift)}",
                actual=str(event.window_edge),
            )
            return
        if offer is not None and event.last_arrival is not None:
            yield context.holds("the right window edge did not move back", event)
        if event.window_edge > edge:
            edge, offer = event.window_edge, event


@checker("SNR-RCV-018")
def echo_is_exact(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by an echo connection whose segments did not simply arrive in sequence."""
    if flow.iut[1] != ECHO_PORT:
        return
    stream, differing = _tester_stream(flow)
    disturbed = [a for a in flow.arrivals if a.payload and not (a.in_order and not a.held)]
    last = None
    for sent in flow.sent:
        if not sent.payload or sent.packet.content is None:
            continue
        end = sent.start + sent.payload
        if differing.overlap(sent.start, end):
            continue
        if stream[sent.start : end] != sent.packet.content.payload:
            yield context.violated(
                f"the echo of octets {sent.start} to {end} differs from what was sent",
                sent,
                *_source(flow, sent.start),
                expected="the octets as sent",
                actual="other octets",
            )
            return
        last = sent
    if disturbed and last is not None and last.end > disturbed[0].start:
        yield context.holds("the echo returned the octets as sent", last, disturbed[0])


def _tester_stream(flow: Flow) -> tuple[bytes, RangeSet]:
    """The tester's octets by offset, and where two segments disagree about them."""
    stream, known, differing = bytearray(), RangeSet(), RangeSet()
    for arrival in flow.arrivals:
        tcp = arrival.packet.content
        assert tcp is not None
        # Data far outside the window is never part of the stream and would only take up memory.
        if arrival.start < 0 or arrival.start > arrival.window_edge:
            continue
        end = arrival.start + arrival.payload
        stream.extend(bytes(max(0, end - len(stream))))
        fresh = known.gaps(arrival.start, end)
        if _conflicts(stream, tcp, arrival.start, fresh):
            differing.add(arrival.start, end)
        for left, right in fresh:
            stream[left:right] = tcp.payload[left - arrival.start : right - arrival.start]
        known.add(arrival.start, end)
    return bytes(stream), differing


def _conflicts(stream: bytearray, tcp: Tcp, start: int, fresh: list[tuple[int, int]]) -> bool:
    at, end = start, start + len(tcp.payload)
    for left, right in [*fresh, (end, end)]:
        if stream[at:left] != tcp.payload[at - start : left - start]:
            return True
        at = right
    return False


def _source(flow: Flow, offset: int) -> list[Arrival]:
    return [arrival for arrival in flow.arrivals if arrival.start <= offset < arrival.end][:1]
