"""Checkers for resets, SYNs and the like on a connection (SNR-CON-010 to 014)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import attrgetter

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.checkers.opening import early_reset
from bentpipe_conformance.protocols.tcp.checkers.receiving import never_accepted
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN, nearest
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.answers import (
    DAYTIME_PORT,
    LONGEST_DELAY_S,
    acknowledging,
    answer_within,
)
from bentpipe_conformance.protocols.tcp.replay.events import Arrival, Reply, Segment
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import (
    Lifetime,
    is_early,
    is_reset,
    lasts,
    leaving_after,
    silent_before,
    throttled,
)
from bentpipe_conformance.protocols.tcp.replay.order import count_before, count_through, later
from bentpipe_conformance.protocols.tcp.replay.resets import latest_before, perhaps_next


@checker("SNR-CON-010")
def exact_reset_is_heeded(flow: Flow, context: Context) -> Findings:
    """A RST at the next expected octet resets the connection (RFC 9293 section 3.10.7.4)."""
    # Exercised by such a RST on an open connection, once more arrives.
    lifetime = context.prepared.lifetime
    reset = lifetime.reset
    if reset is None or lifetime.established is None:
        return
    number = reset.packet.number
    if _closed(flow, lifetime, number):
        return
    earlier = any(item.outgoing and item.number < number for item in flow.resets)
    if number < lifetime.established.packet.number or earlier:
        return
    if any(_may_be_taken(item, reset, flow) for item in flow.arrivals):
        return  # then the RST is below the window
    again = (s for s in flow.arriving if s.packet.number > number)
    until = next((s.packet.number for s in again if s.tcp.flags & SYN), float("inf"))
    for item in flow.leaving:
        if not number < item.packet.number < until or is_reset(item):
            continue
        if item.time > reset.time + flow.reaction:
            sentence = "the connection continues after a RST at the next expected octet"
            actual = f"a segment with flags {item.tcp.flag_names}"
            yield context.violated(sentence, item, reset, expected="nothing", actual=actual)
            return
    if any(s.tcp.length for s in later(flow.arriving, reset.packet)):
        yield context.holds("a RST at the next expected octet reset the connection", reset)


def _may_be_taken(item: Arrival, reset: Segment, flow: Flow) -> bool:
    """Whether data that belies a FIN was taken, all the same, at the place of a later RST."""
    offer = flow.handshake.offer
    if offer is None or item.acceptable or item.packet.number > reset.packet.number:
        return False
    at = nearest(reset.tcp.seq - offer.seq - 1, item.start)
    return item.start <= at < item.end <= item.window_edge


def _last(flow: Flow, lifetime: Lifetime) -> float:
    """Number of the packet until which every state has the rules of ESTABLISHED.

    When its FIN is acknowledged the IUT has no connection any more, or lingers, where stacks keep
    less of it; but the daytime service reads on in FIN-WAIT-2, until the tester's FIN.
    """
    acked, closed = lifetime.own_fin_acked, lifetime.closed
    if acked is None:
        return math.inf
    if flow.iut[1] != DAYTIME_PORT or not lifetime.iut_closed_first:
        return acked.packet.number
    return math.inf if closed is None else max(acked.packet.number, closed.packet.number)


def _closed(flow: Flow, lifetime: Lifetime, number: int) -> bool:
    """Whether a packet came when not every rule of ESTABLISHED held any more, see :func:`_last`."""
    return _last(flow, lifetime) < number


def _resets(flow: Flow, lifetime: Lifetime) -> Iterator[tuple[Segment, int, Reply]]:
    """The tester's RSTs on an open connection, the offset of each and the reply before it.

    Only while the last thing that happened was that reply: then it says what is expected.
    """
    offer = flow.handshake.offer
    if offer is None:
        return
    over = math.inf if lifetime.reset is None else lifetime.reset.packet.number
    for packet in flow.resets:
        if packet.outgoing or packet.number > over or _closed(flow, lifetime, packet.number):
            return
        reset = Segment(packet)
        known = _reply_before(flow, packet)
        if known is None or known.ack != known.expected or not reset.tcp.options_ok:
            continue
        last, offset = packet.number, nearest(reset.tcp.seq - offer.seq - 1, known.ack)
        if offset in perhaps_next(flow, known):
            continue
        if count_through(flow.arrivals, known.packet.number) == count_before(flow.arrivals, last):
            yield reset, offset, known


def _reply_before(flow: Flow, packet: Packet) -> Reply | None:
    """What left last before a packet, RSTs excepted, where that is an acknowledgment."""
    latest = latest_before(flow, packet.number)
    if latest is None:
        return None
    at = count_through(flow.replies, latest.packet.number) - 1
    return flow.replies[at] if at >= 0 and flow.replies[at].packet is latest.packet else None


def _survives(flow: Flow, context: Context, odd: Segment, what: str) -> Findings:
    """Whether the connection is used after an odd segment, or was reset by it."""
    number, over = odd.packet.number, context.prepared.lifetime.over
    lingers = context.prepared.lifetime.time_wait
    news = next(later(flow.arrivals, odd.packet), None)
    for item in later(flow.leaving, odd.packet):
        if over is not None and item.packet.number > over:
            return
        if is_reset(item):
            if _refuses_early(flow, item):
                continue  # which says nothing of the connection
            if flow.handshake.iut_opens and (
                min(item.time - odd.time, silent_before(flow, item)) > flow.reaction
            ):
                # The user of a caller may abort, which shows that there was a connection.
                yield context.holds(f"the connection outlived {what}", item, odd)
                return
            if lingers is not None and item.time > lingers:
                return  # TIME-WAIT may have ended
            caused = not any(
                number < other.number < item.packet.number
                for other in flow.resets if not other.outgoing
            )  # fmt: skip
            if caused:
                sentence = f"the connection was reset by {what}"
                expected = "a connection that continues"
                yield context.violated(sentence, item, odd, expected=expected, actual="a RST")
            return
        timed = bool(item.tcp.length) or _is_probe(flow, item)
        lives = timed and item.time > odd.time + flow.reaction
        if lives or (news is not None and item.packet.number > news.packet.number):
            yield context.holds(f"the connection outlived {what}", item, odd)
            return
    waiting = [a for a in flow.arrivals if a.packet.number > number and a.acceptable]
    patience = 1.0 + flow.reaction
    if waiting and _may_end(flow, odd, waiting[0].time + patience):
        return  # the answer was delayed until there was no connection any more
    if waiting and lasts(flow, waiting[0], patience):
        sentence = f"the connection fell silent after {what}"
        expected = "a connection that continues"
        yield context.violated(sentence, odd, waiting[0], expected=expected, actual="silence")


def _refuses_early(flow: Flow, reset: Segment) -> bool:
    """Whether a RST answers a wrong acknowledgment of the SYN, which ends nothing."""
    at = count_before(flow.arriving, reset.packet.number)
    heard = flow.arriving[at - 1] if at else None
    if heard is None or not (heard.tcp.flags & ACK and is_early(flow, heard)):
        return False
    return heard.tcp.ack == reset.tcp.seq


def _may_end(flow: Flow, odd: Segment, until: float) -> bool:
    """Whether another RST may end the connection by then: one not below what was acknowledged."""
    resets = (Segment(p) for p in flow.resets if p.number > odd.packet.number and p.time <= until)
    others = (item for item in resets if not item.packet.outgoing and item.tcp.seq != odd.tcp.seq)
    known = ((item, latest_before(flow, item.packet.number)) for item in others)
    return any(s is None or nearest(item.tcp.seq - s.tcp.ack, 0) >= 0 for item, s in known)


def _is_probe(flow: Flow, segment: Segment) -> bool:
    """Whether a segment below SND.NXT probes a closed window or keeps the connection alive.

    Its timer may expire at any time (RFC 9293 sections 3.8.4 and 3.8.6.1); an answer
    carries SND.NXT.
    """
    at = count_before(flow.leaving, segment.packet.number)
    return at > 0 and nearest(_tops(flow)[at - 1] - segment.tcp.seq, 0) > 0


@remembered
def _tops(flow: Flow) -> Sequence[int]:
    """The highest number that had left with each segment, one past its end; they do not wrap."""

    def higher(top: int, item: Segment) -> int:
        return max(top, nearest(item.tcp.seq + item.tcp.length, top))

    first = flow.leaving[0].tcp
    return [*accumulate(flow.leaving, higher, initial=first.seq + first.length)][1:]


@checker("SNR-CON-011")
def reset_outside_the_window_is_ignored(flow: Flow, context: Context) -> Findings:
    """A RST outside the window has no effect (RFC 9293 section 3.10.7.4)."""
    # Exercised by such a RST, once data follows it.
    fin = context.prepared.lifetime.fin
    yield from _at_last_acknowledgment(flow, context)
    widest = max((item.window for item in flow.replies), default=0)
    for reset, offset, reply in _resets(flow, context.prepared.lifetime):
        if fin is not None and offset == fin.end - 1 and fin.packet.number < reset.packet.number:
            continue
        if offset < reply.ack or offset > reply.ack + 2 * widest:
            following = (s.packet.number for s in later(flow.arriving, reset.packet))
            until = next(following, float("inf"))
            answer = leaving_after(
                flow, reset, flow.reaction,
                lambda s: not s.tcp.length and not _is_probe(flow, s),
            )  # fmt: skip
            if answer is not None and answer.packet.number < until:
                sentence = "a RST outside the window was answered"
                actual = f"a segment with flags {answer.tcp.flag_names}"
                yield context.violated(sentence, answer, reset, expected="nothing", actual=actual)
            yield from _survives(flow, context, reset, "a RST outside its window")
            continue
        if offset < reply.window_edge:
            return  # what follows may be its effect


@checker("SNR-CON-044")
def edge_is_outside_the_window(flow: Flow, context: Context) -> Findings:
    """A RST at the right edge is outside the window (RFC 9293 section 3.10.7.4)."""
    # Exercised by such a RST on a connection without scaling.
    if flow.handshake.window_scale:
        return
    for reset, offset, reply in _resets(flow, context.prepared.lifetime):
        if offset != reply.window_edge or offset == reply.ack:
            continue
        answer = leaving_after(flow, reset, flow.reaction, lambda s: not s.tcp.length)
        other = next((s for s in flow.arriving if s.packet.number > reset.packet.number), None)
        if answer is not None and other is not None and other.packet.number < answer.packet.number:
            answer = None  # it answers what came later
        if answer is not None:
            sentence = "a RST at the right edge of the window was answered"
            actual = f"a segment with flags {answer.tcp.flag_names}"
            yield context.violated(sentence, answer, reset, expected="nothing", actual=actual)
        yield from _survives(flow, context, reset, "a RST at the right edge of the window")


def _at_last_acknowledgment(flow: Flow, context: Context) -> Findings:
    """A RST below data in sequence whose acknowledgment is delayed, at the last one sent.

    Whether that RST was answered the delayed acknowledgment hides.
    """
    offer = flow.handshake.offer
    for packet in flow.resets[:1]:
        known = _reply_before(flow, packet)
        if packet.outgoing or known is None or offer is None:
            return
        reset = Segment(packet)
        at = nearest(reset.tcp.seq - offer.seq - 1, known.ack)
        first, last = known.packet.number, packet.number
        since = [a for a in flow.arrivals if first < a.packet.number < last]
        fits = all(a.in_order and a.end <= a.window_edge and not a.fin for a in since)
        if since and fits and at == known.ack == since[0].start:
            what = "a RST below the data that had just arrived"
            yield from _survives(flow, context, reset, what)


_UNANSWERED = 4
"""Segments whose text may not be acknowledged yet."""


def _challenged(
    flow: Flow, context: Context, odd: Segment, known: Reply | None, what: str
) -> Findings:
    longest = float(context.permitted("longest_s", 0.5)) + flow.reaction
    # A timer repeats what it would have repeated anyway.
    again = _timed_repeats(flow)
    answer = leaving_after(
        flow, odd, longest, lambda s: not (s.tcp.flags & SYN or s.packet.number in again)
    )
    behind = bisect_right(flow.resets, odd.packet.number, key=attrgetter("number"))
    others = (flow.resets[at] for at in range(behind, len(flow.resets)))
    another = next((packet for packet in others if not packet.outgoing), None)
    if another is not None and another.time <= (answer.time if answer else odd.time + longest):
        return  # another RST came before an answer
    over = context.prepared.lifetime.over
    if answer is not None and over is not None and answer.packet.number > over:
        return  # it answers what met no connection any more
    wanted = "an acknowledgment"
    if answer is not None:
        same = known is None or answer.tcp.ack in _expected_since(flow, known, odd)
        met = not is_reset(answer) and bool(answer.tcp.flags & ACK) and same
        actual = f"flags {answer.tcp.flag_names}, acknowledgment {answer.tcp.ack}"
        sentence = f"{what} was answered by {actual}"
        yield judged(context, met, sentence, answer, odd, expected=wanted, actual=actual)
    elif lasts(flow, odd, longest) and not throttled(flow, odd):
        sentence = f"{what} was not answered"
        yield context.violated(sentence, odd, expected=wanted, actual="nothing")
    yield from _survives(flow, context, odd, what)


@remembered
def _timed_repeats(flow: Flow) -> set[int]:
    """Numbers of the packets that a timer has repeated."""
    return {sent.packet.number for sent in flow.sent if sent.retransmission and sent.timed}


def _expected_since(flow: Flow, known: Reply, odd: Segment) -> set[int]:
    """What the IUT may expect next: what it has acknowledged, or the end of what came last.

    What the acknowledgment of a segment lets out may leave before its text is processed.
    """
    last = count_before(flow.arriving, odd.packet.number)
    latest = flow.arriving[max(0, last - _UNANSWERED) : last]
    return {known.tcp.ack, *((item.tcp.seq + item.tcp.length) % MODULUS for item in latest)}


def _challenged_reset(flow: Flow, context: Context, *, at_held: bool) -> Findings:
    """How each RST in the window was answered, beyond the next expected octet.

    ``at_held`` says whether it lies at the end of the highest data held above a gap.
    """
    for reset, offset, reply in _resets(flow, context.prepared.lifetime):
        if not reply.ack < offset < reply.window_edge:
            continue
        end = max((right for _, right in reply.held), default=-1)
        if (offset == end) is at_held:
            what = f"a RST {offset - reply.ack} octets into the window"
            if at_held:
                what += ", at the end of what is held,"
            yield from _challenged(flow, context, reset, reply, what)


@checker("SNR-CON-012")
def reset_in_the_window_is_challenged(flow: Flow, context: Context) -> Findings:
    """A RST in the window but not at its left edge is challenged (RFC 5961 section 3.2)."""
    # Exercised by such a RST, but for one at the end of what is held (SNR-CON-041), and by one that
    # is the first to come in SYN-RECEIVED.
    early = early_reset(flow, context)
    if early is not None:
        reset, offset = early
        what = f"a RST {offset} octets into the window in SYN-RECEIVED"
        yield from _challenged(flow, context, reset, None, what)
        return
    yield from _challenged_reset(flow, context, at_held=False)


@checker("SNR-CON-041")
def reset_at_the_end_of_held_data_is_challenged(flow: Flow, context: Context) -> Findings:
    """A RST at the end of the highest data held is challenged (RFC 5961 section 3.2)."""
    # Exercised by such a RST.
    yield from _challenged_reset(flow, context, at_held=True)


@checker("SNR-CON-013")
def syn_is_challenged(flow: Flow, context: Context) -> Findings:
    """A SYN on an open connection is challenged (RFC 5961 section 4.2)."""
    # Exercised by a SYN on an open connection, the IUT's FIN not having been acknowledged.
    lifetime = context.prepared.lifetime
    if flow.handshake.iut_opens or lifetime.established is None or not flow.replies:
        return
    begin = lifetime.established.packet.number
    reset = lifetime.reset
    given_up = (item.number for item in flow.resets if item.outgoing and item.number > begin)
    ends = next(given_up, math.inf), math.inf if reset is None else reset.packet.number
    until = min(_last(flow, lifetime), _perhaps_reset(flow), *ends)
    for item in flow.arriving:
        is_syn = item.tcp.flags & (SYN | RST) == SYN and item.tcp.options_ok
        # Without its timestamp it may be dropped before (RFC 7323 section 3.2).
        bare = flow.handshake.timestamps and item.tcp.tsval is None
        if is_syn and not bare and begin < item.packet.number < until:
            yield from _challenged(flow, context, item, None, "a SYN on an open connection")


def _perhaps_reset(flow: Flow) -> float:
    """Number of the first RST at the number acknowledged last, which may have been the next."""
    resets = (Segment(packet) for packet in flow.resets if not packet.outgoing)
    known = ((item, latest_before(flow, item.packet.number)) for item in resets)
    exact = (i.packet.number for i, s in known if s is not None and i.tcp.seq == s.tcp.ack)
    return next(exact, math.inf)


@checker("SNR-CON-014")
def segment_without_ack_is_dropped(flow: Flow, context: Context) -> Findings:
    """A segment without ACK is dropped (RFC 9293 section 3.10.7.4)."""
    # Exercised by new data without ACK, once an acknowledgment follows.

    def refused(arrival: Arrival) -> bool:
        return not arrival.tcp.flags & (ACK | RST | SYN) and arrival.end > arrival.expected

    yield from never_accepted(flow, context, refused, "without ACK", "the segment dropped")


def acknowledged(flow: Flow, context: Context, arrival: Arrival, what: str) -> Findings:
    """Whether a segment was acknowledged within half a second; nothing where a RST came."""
    answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
    if answer.timely == "in time" and answer.reply is not None:
        yield context.holds(f"{what} was acknowledged", answer.reply, arrival)
    elif answer.timely == "late":
        expected = f"an acknowledgment of {arrival.end} within {LONGEST_DELAY_S} s"
        yield context.violated(
            f"{what} was not acknowledged in time", arrival, expected=expected, actual="none"
        )
