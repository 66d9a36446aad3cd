"""Checkers for idle connections, and for urgent data (SNR-CON-022 to 024)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings
from bentpipe_conformance.protocols.tcp.checkers.resets import acknowledged
from bentpipe_conformance.protocols.tcp.codec import RST, URG
from bentpipe_conformance.protocols.tcp.replay.answers import (
    acknowledging,
    first_reply,
    is_clipped,
)
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Segment
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import (
    is_reset,
)
from bentpipe_conformance.protocols.tcp.replay.order import by_packet, count_before
from bentpipe_conformance.protocols.tcp.replay.users import is_own_reset


def _idle(flow: Flow) -> Iterator[tuple[Segment, float]]:
    """Each segment and how long the connection had been silent before it, nothing being owed."""
    established = next((ack for ack in flow.acks if ack.acceptable), None)
    ends = [s.packet.number for s in flow.arriving + flow.leaving if is_reset(s)]
    ends += [sent.packet.number for sent in flow.sent if sent.fin]
    until = min(ends, default=float("inf"))
    before = None
    for packet in flow.packets:
        if established is None or packet.number < established.packet.number:
            continue
        if packet.number > until:
            return
        if before is not None:
            yield Segment(packet), packet.time - before
        before = packet.time


def _updates_window(flow: Flow, number: int, since: int) -> bool:
    """Whether a packet of the IUT offers more than the one before it, or may.

    An edge that had moved back, as some do where they drop what finds no room, comes forward again.
    Where the field says as much as it can there may be more room than it says, once for what has
    arrived after the packet numbered ``since``.
    """
    at = count_before(flow.replies, number)
    if not 0 < at < len(flow.replies) or flow.replies[at].packet.number != number:
        return False
    before, reply = flow.replies[at - 1 : at + 1]
    arrived = count_before(flow.arrivals, number)
    news = arrived > 0 and flow.arrivals[arrived - 1].packet.number > since
    # A keep-alive repeats the number before the next one (section 3.8.4).
    widest = is_clipped(flow, reply) and reply.tcp.seq == before.tcp.seq + before.payload
    return reply.window_edge > before.window_edge or (news and widest)


@checker("SNR-CON-022")
def idle_connection_is_silent(flow: Flow, context: Context) -> Findings:
    """An idle connection sends nothing (RFC 9293 section 3.8.4, MUST-25)."""
    # Exercised by hours in which the tester sends nothing and nothing is outstanding.
    least = float(context.permitted("idle_s", 10.0))
    exercised = float(context.permitted("exercised_s", 7200.0))
    acks, sents = iter(flow.acks), iter(flow.sent)
    ack, own = next(acks, None), next(sents, None)
    una = sent = edge = read = 0
    latest: Ack | None = None
    for item, silence in _idle(flow):
        if silence < least:
            continue
        number = item.packet.number
        while ack is not None and ack.packet.number < number:
            if ack.acceptable:
                una, edge, latest = max(una, ack.ack), max(edge, ack.window_edge), ack
            ack = next(acks, None)
        while own is not None and own.packet.number < number:
            sent, own = max(sent, own.end), next(sents, None)
        closed = latest is None or latest.window_edge < edge or latest.window_edge <= sent
        if sent > una or closed:
            continue  # a retransmission or a window probe may be due
        if not item.packet.outgoing:
            if silence >= exercised:
                yield context.holds(f"nothing was sent in {silence:.0f} s of idleness", item)
            continue
        if own is not None and own.packet.number == number and own.start >= sent:
            continue  # its user wrote
        if item.tcp.flags & RST and not is_own_reset(flow, item.packet):
            continue  # its user may have aborted
        if _updates_window(flow, number, read):
            read = number
            continue  # its user has read
        sentence = f"a segment was sent after {silence:.0f} s of idleness"
        actual = f"a segment with flags {item.tcp.flag_names}"
        yield context.violated(sentence, item, expected="silence", actual=actual)
        return


@checker("SNR-CON-023")
def idle_connection_lives(flow: Flow, context: Context) -> Findings:
    """Idleness does not end a connection (RFC 9293 section 3.8.4)."""
    # Exercised by in-order data after hours of idleness.
    exercised = float(context.permitted("exercised_s", 7200.0))
    arrival_of = by_packet(flow.arrivals)
    for item, silence in _idle(flow):
        if silence < exercised:
            continue
        arrival = arrival_of(item.packet)
        if arrival is None or not arrival.in_order:
            continue
        what = f"data after {silence:.0f} s of idleness"
        reset = flow.own_reset
        answer = first_reply(flow, arrival, acknowledging(arrival.end))
        if reset is not None and answer is not None and answer.time <= reset.time:
            reset = None  # it has other reasons
        if reset is not None and 0 <= reset.time - arrival.time <= 0.5:
            expected = "an acknowledgment"
            sentence = f"{what} was answered by a RST"
            yield context.violated(sentence, reset, arrival, expected=expected, actual="a RST")
        else:
            yield from acknowledged(flow, context, arrival, what)
        return


@checker("SNR-CON-024")
def urgent_data_is_accepted(flow: Flow, context: Context) -> Findings:
    """Urgent data is acknowledged as any other (RFC 9293 section 3.8.5)."""
    # Exercised by in-order data with URG.
    for arrival in flow.arrivals:
        fits = arrival.in_order and arrival.end <= arrival.window_edge
        if arrival.tcp.flags & URG and arrival.payload and fits:
            yield from acknowledged(flow, context, arrival, "urgent data")
