"""Checkers for resets, for closing and for idle connections (SNR-CON-010 to 024)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.checkers.receiving import never_accepted
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, URG, nearest
from bentpipe_conformance.protocols.tcp.replay.answers import (
    DAYTIME_PORT,
    LONGEST_DELAY_S,
    acknowledging,
    answer_within,
    first_reply,
)
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Reply, Segment, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import (
    Lifetime,
    is_reset,
    lasts,
    leaving_after,
)
from bentpipe_conformance.protocols.tcp.replay.order import later
from bentpipe_conformance.protocols.tcp.replay.recovery import may_be_timed
from bentpipe_conformance.protocols.tcp.replay.resets import latest_before
from bentpipe_conformance.protocols.tcp.replay.round_trips import RoundTrips, minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.users import ECHO_PORT, is_own_reset


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
    later = [s for s in flow.arriving if s.packet.number > number and s.tcp.length]
    if later:
        yield context.holds("a RST at the next expected octet reset the connection", reset)


def _last(flow: Flow, lifetime: Lifetime) -> float:
    """Number of the packet until which every state has the rules of ESTABLISHED.

    When its FIN is acknowledged the IUT has no connection any more, or lingers, where stacks keep
    less of it; but the daytime service reads on in FIN-WAIT-2, until the tester's FIN.
    """
    acked, fin = lifetime.own_fin_acked, lifetime.fin
    if acked is None:
        return math.inf
    if flow.iut[1] != DAYTIME_PORT or not lifetime.iut_closed_first:
        return acked.packet.number
    return math.inf if fin is None else max(acked.packet.number, fin.packet.number)


def _closed(flow: Flow, lifetime: Lifetime, number: int) -> bool:
    """Whether a packet came when not every rule of ESTABLISHED held any more, see :func:`_last`."""
    return _last(flow, lifetime) < number


def _resets(flow: Flow, lifetime: Lifetime) -> Iterator[tuple[Segment, int, Reply]]:
    """The tester's RSTs on an open connection, the offset of each and the reply before it.

    Only while the last thing that happened was that reply: then it says what is expected.
    """
    offer = flow.handshake.offer
    replies = [r for r in flow.replies if r.ack == r.expected]
    if offer is None or not replies:
        return
    over = math.inf if lifetime.reset is None else lifetime.reset.packet.number
    for packet in flow.resets:
        if packet.outgoing or packet.number > over or _closed(flow, lifetime, packet.number):
            return
        reset = Segment(packet)
        latest = latest_before(flow, packet.number)
        known = next((r for r in replies if latest and r.packet is latest.packet), None)
        if known is None or not reset.tcp.options_ok:
            continue
        first, last = known.packet.number, packet.number
        if not any(first < a.packet.number < last for a in flow.arrivals):
            yield reset, nearest(reset.tcp.seq - offer.seq - 1, known.ack), known


def _survives(flow: Flow, context: Context, odd: Segment, what: str) -> Findings:
    """Whether the connection is used after an odd segment, or was reset by it."""
    number, over = odd.packet.number, context.prepared.lifetime.over
    for item in flow.leaving:
        if item.packet.number <= number:
            continue
        if over is not None and item.packet.number > over:
            return
        if is_reset(item):
            caused = not any(
                number < other.number < item.packet.number
                for other in flow.resets if not other.outgoing
            )  # fmt: skip
            if caused:
                sentence = f"the connection was reset by {what}"
                expected = "a connection that continues"
                yield context.violated(sentence, item, odd, expected=expected, actual="a RST")
            return
        news = next((a for a in flow.arrivals if number < a.packet.number), None)
        repeated = item.tcp.length and item.time > odd.time + flow.reaction
        if repeated or (news is not None and item.packet.number > news.packet.number):
            yield context.holds(f"the connection outlived {what}", item, odd)
            return
    waiting = [a for a in flow.arrivals if a.packet.number > number and a.acceptable]
    if waiting and lasts(flow, waiting[0], 1.0 + flow.reaction):
        sentence = f"the connection fell silent after {what}"
        expected = "a connection that continues"
        yield context.violated(sentence, odd, waiting[0], expected=expected, actual="silence")


def _is_probe(flow: Flow, segment: Segment) -> bool:
    """Whether a segment below SND.NXT probes a closed window or keeps the connection alive.

    Its timer may expire at any time (RFC 9293 sections 3.8.4 and 3.8.6.1); an answer
    carries SND.NXT.
    """
    before = (s.tcp for s in flow.leaving if s.packet.number < segment.packet.number)
    return any(nearest(t.seq + t.length - segment.tcp.seq, 0) > 0 for t in before)


@checker("SNR-CON-011")
def reset_outside_the_window_is_ignored(flow: Flow, context: Context) -> Findings:
    """A RST outside the window has no effect (RFC 9293 section 3.10.7.4)."""
    # Exercised by such a RST, once data follows it.
    fin = context.prepared.lifetime.fin
    yield from _at_last_acknowledgment(flow, context)
    for reset, offset, reply in _resets(flow, context.prepared.lifetime):
        if fin is not None and offset == fin.end - 1 and fin.packet.number < reset.packet.number:
            continue
        widest = max(item.window for item in flow.replies)
        if offset < reply.ack or offset > reply.ack + 2 * widest:
            number = reset.packet.number
            following = (s for s in flow.arriving if s.packet.number > number)
            until = next((s.packet.number for s in following), float("inf"))
            answer = leaving_after(
                flow, reset, flow.reaction,
                lambda s: not s.tcp.length and not _is_probe(flow, s),
            )  # fmt: skip
            if answer is not None and answer.packet.number < until:
                sentence = "a RST outside the window was answered"
                actual = f"a segment with flags {answer.tcp.flag_names}"
                yield context.violated(sentence, answer, reset, expected="nothing", actual=actual)
            yield from _survives(flow, context, reset, "a RST outside its window")
            return
        if offset < reply.window_edge:
            return  # what follows may be its effect


@checker("SNR-CON-044")
def edge_is_outside_the_window(flow: Flow, context: Context) -> Findings:
    """A RST at the right edge is outside the window (RFC 9293 section 3.10.7.4)."""
    # Exercised by the first such RST on a connection without scaling.
    if flow.handshake.window_scale:
        return
    for reset, offset, reply in _resets(flow, context.prepared.lifetime):
        if offset != reply.window_edge or offset == reply.ack:
            continue
        answer = leaving_after(flow, reset, flow.reaction, lambda s: not s.tcp.length)
        if answer is not None:
            sentence = "a RST at the right edge of the window was answered"
            actual = f"a segment with flags {answer.tcp.flag_names}"
            yield context.violated(sentence, answer, reset, expected="nothing", actual=actual)
        yield from _survives(flow, context, reset, "a RST at the right edge of the window")
        return


def _at_last_acknowledgment(flow: Flow, context: Context) -> Findings:
    """A RST below data in sequence whose acknowledgment is delayed, at the last one sent.

    Whether that RST was answered the delayed acknowledgment hides.
    """
    offer = flow.handshake.offer
    for packet in flow.resets[:1]:
        latest = latest_before(flow, packet.number)
        known = next((r for r in flow.replies if latest and r.packet is latest.packet), None)
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


def _challenged(
    flow: Flow, context: Context, odd: Segment, known: Reply | None, what: str
) -> Findings:
    longest = float(context.permitted("longest_s", 0.5)) + flow.reaction
    # A timer repeats what it would have repeated anyway.
    again = {s.packet.number for s in flow.sent if s.retransmission and s.timed}
    answer = leaving_after(
        flow, odd, longest, lambda s: not (s.tcp.flags & SYN or s.packet.number in again)
    )
    number = odd.packet.number
    others = (p for p in flow.resets if not p.outgoing and p.number > number)
    another = next(others, None)
    if another is not None and another.time <= (answer.time if answer else odd.time + longest):
        return  # another RST came before an answer
    wanted = "an acknowledgment"
    if answer is not None:
        same = known is None or answer.tcp.ack == known.tcp.ack
        met = not is_reset(answer) and bool(answer.tcp.flags & ACK) and same
        actual = f"flags {answer.tcp.flag_names}, acknowledgment {answer.tcp.ack}"
        sentence = f"{what} was answered by {actual}"
        yield judged(context, met, sentence, answer, odd, expected=wanted, actual=actual)
    elif lasts(flow, odd, longest):
        sentence = f"{what} was not answered"
        yield context.violated(sentence, odd, expected=wanted, actual="nothing")
    yield from _survives(flow, context, odd, what)


def _challenged_reset(flow: Flow, context: Context, *, at_held: bool) -> Findings:
    """How the first RST in the window was answered, beyond the next expected octet.

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
        return


@checker("SNR-CON-012")
def reset_in_the_window_is_challenged(flow: Flow, context: Context) -> Findings:
    """A RST in the window but not at its left edge is challenged (RFC 5961 section 3.2)."""
    # Exercised by the first such RST, but for one at the end of what is held (SNR-CON-041).
    yield from _challenged_reset(flow, context, at_held=False)


@checker("SNR-CON-041")
def reset_at_the_end_of_held_data_is_challenged(flow: Flow, context: Context) -> Findings:
    """A RST at the end of the highest data held is challenged (RFC 5961 section 3.2)."""
    # Exercised by the first such RST.
    yield from _challenged_reset(flow, context, at_held=True)


@checker("SNR-CON-013")
def syn_is_challenged(flow: Flow, context: Context) -> Findings:
    """A SYN on an open connection is challenged (RFC 5961 section 4.2)."""
    # Exercised by the first SYN on an open connection, the IUT's FIN not having been acknowledged.
    lifetime = context.prepared.lifetime
    if flow.handshake.iut_opens or lifetime.established is None or not flow.replies:
        return
    begin = lifetime.established.packet.number
    reset = lifetime.reset
    until = min(_last(flow, lifetime), math.inf if reset is None else reset.packet.number)
    for item in flow.arriving:
        if begin < item.packet.number < until and item.tcp.flags & SYN and item.tcp.options_ok:
            yield from _challenged(flow, context, item, None, "a SYN on an open connection")
            return


@checker("SNR-CON-014")
def segment_without_ack_is_dropped(flow: Flow, context: Context) -> Findings:
    """A segment without ACK is dropped (RFC 9293 section 3.10.7.4)."""
    # Exercised by new data without ACK, once an acknowledgment follows.

    def refused(arrival: Arrival) -> bool:
        return not arrival.tcp.flags & (ACK | RST | SYN) and arrival.end > arrival.expected

    yield from never_accepted(flow, context, refused, "without ACK", "the segment dropped")


def _acknowledged(flow: Flow, context: Context, arrival: Arrival, what: str) -> Findings:
    """Whether a segment was acknowledged within half a second; nothing where a RST came."""
    answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
    if answer.timely == "in time" and answer.reply is not None:
        yield context.holds(f"{what} was acknowledged", answer.reply, arrival)
    elif answer.timely == "late":
        expected = f"an acknowledgment of {arrival.end} within {LONGEST_DELAY_S} s"
        yield context.violated(
            f"{what} was not acknowledged in time", arrival, expected=expected, actual="none"
        )


@checker("SNR-CON-015")
def fin_is_acknowledged(flow: Flow, context: Context) -> Findings:
    """A FIN in sequence is acknowledged (RFC 9293 section 3.10.7.4)."""
    # Exercised by every FIN that arrives in sequence, or whose gap is filled.
    fins = [arrival for arrival in flow.arrivals if arrival.fin]
    some = any(fin.acceptable for fin in fins)
    for arrival in flow.arrivals if fins else ():
        if arrival.fin and arrival.in_order and arrival.end <= arrival.window_edge:
            yield from _acknowledged(flow, context, arrival, "the FIN")
            return
        if some and arrival.fills_gap:
            fin = fins[0]
            before = fin.packet.number < arrival.packet.number
            gap = any(left <= arrival.end and right == fin.end for left, right in arrival.held)
            if before and gap and fin.end <= fin.window_edge:
                answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(fin.end))
                if answer.timely == "in time" and answer.reply is not None:
                    yield context.holds("the FIN was acknowledged", answer.reply, fin)
                elif answer.timely == "late":
                    # A receiver may drop what lies above a gap; then the FIN comes again.
                    yield from _fin_forgotten(flow, context, fin, arrival)
                return


def _fin_forgotten(flow: Flow, context: Context, fin: Arrival, filler: Arrival) -> Findings:
    """Whether the data of a segment with FIN was kept above a gap, but not its FIN."""
    within = LONGEST_DELAY_S + flow.reaction
    reply = first_reply(flow, filler, lambda r: r.ack >= filler.end, within=within)
    if fin.payload and reply is not None and reply.ack == fin.end - 1 > filler.end:
        sentence = "the data of a segment above a gap was acknowledged, its FIN was not"
        expected = f"an acknowledgment of {fin.end}"
        yield context.violated(sentence, reply, fin, expected=expected, actual=str(reply.ack))


@checker("SNR-CON-016")
def repeated_fin_is_acknowledged(flow: Flow, context: Context) -> Findings:
    """A FIN that comes again is acknowledged again (RFC 9293 section 3.10.7.4)."""
    # Exercised by every FIN that had been acknowledged and arrives again before any RST.
    longest = float(context.permitted("longest_s", 0.5))
    lifetime = context.prepared.lifetime
    for arrival in flow.arrivals:
        if not arrival.fin or not arrival.duplicate or arrival.may_be_stale:
            continue
        if not (arrival.tcp.flags & ACK and arrival.tcp.options_ok):
            continue  # it may be dropped
        over = lifetime.over
        if over is not None and arrival.packet.number > over:
            return
        reply = first_reply(
            flow, arrival, acknowledging(arrival.end), within=longest + flow.reaction
        )
        if reply is not None:
            yield context.holds("a repeated FIN was acknowledged", reply, arrival)
        elif flow.horizon - arrival.time > longest + flow.reaction:
            sentence = "a repeated FIN was not acknowledged"
            expected = f"an acknowledgment of {arrival.end}"
            yield context.violated(sentence, arrival, expected=expected, actual="none")


@checker("SNR-CON-017")
def fin_ends_the_stream(flow: Flow, context: Context) -> Findings:
    """The FIN follows the last octet (RFC 9293 section 3.6)."""
    # Exercised by every FIN of the IUT.
    first = next((sent for sent in flow.sent if sent.fin), None)
    if first is None:
        return
    end = first.end
    for sent in flow.sent:
        if sent.end > end or (sent.fin and sent.end != end):
            sentence = f"{sent.span} was sent, the FIN being at {end - 1}"
            expected = f"nothing above {end}, and the FIN at {end - 1}"
            yield context.violated(sentence, sent, first, expected=expected, actual=sent.span)
            return
    # A FIN that the window has cut off still says where the stream ends.
    fin = next((item for item in flow.arrivals if item.fin and item.in_order), None)
    if flow.iut[1] == ECHO_PORT and fin is not None and fin.packet.number < first.packet.number:
        octets, returned = fin.end - 1, end - 1
        sentence = f"{octets} octets were to be echoed, and the FIN follows {returned}"
        yield judged(
            context, octets == returned, sentence, first, fin,
            expected=f"a FIN at offset {octets}", actual=f"a FIN at offset {returned}",
        )  # fmt: skip
    else:
        yield context.holds("nothing follows the FIN", first)


@checker("SNR-CON-018")
def fin_is_retransmitted(flow: Flow, context: Context) -> Findings:
    """An unacknowledged FIN is retransmitted (RFC 9293 section 3.8.1)."""
    # Exercised by a FIN that is not acknowledged for longer than any first timeout.
    sent = [item for item in flow.sent if item.fin]
    if not sent:
        return
    first = sent[0]
    round_trips = context.permitted("patience_rtts", 12.0) * minimum_rtt(flow)
    acked = context.prepared.lifetime.own_fin_acked
    until = flow.horizon if acked is None else min(flow.horizon, acked.time)
    heeded = (a.time for a in flow.acks if a.may_heed and a.ack >= first.end)
    until = min(until, next(heeded, until))
    longest = max(round_trips, _longest_timeout(flow, until))
    patience = max(float(context.permitted("patience_s", 10.0)), longest)
    if len(sent) > 1:
        waited = sent[1].time - first.time
        yield context.holds(f"the FIN was repeated after {waited:.2f} s", sent[1], first)
    else:
        # What lies below it may have had to be repeated first, and progress restarts the timer.
        below = list(later(flow.sent, first.packet))
        progress = [a.time for a in flow.acks if a.advance and first.time < a.time < until]
        waited = max(after - before for before, after in pairwise([first.time, *progress, until]))
        if waited > patience and not below:
            sentence = f"the FIN was not repeated in {waited:.1f} s"
            expected = f"a retransmission within {patience:.1f} s"
            yield context.violated(sentence, first, expected=expected, actual="none")


def _longest_timeout(flow: Flow, until: float) -> float:
    """Seconds that no timeout exceeds by then, backed off as often as the timer had expired."""
    trips, expired = RoundTrips(flow), 0
    for event in flow.events:
        if event.time >= until:
            break
        if isinstance(event, Ack) and event.acceptable and event.advance:
            trips.acknowledged(event)
        elif isinstance(event, Sent):
            trips.sent(event)
            expired += may_be_timed(event)
    return trips.longest_after(expired)


@checker("SNR-CON-019")
def nothing_after_both_fins(flow: Flow, context: Context) -> Findings:
    """Nothing is sent once both FINs are acknowledged (RFC 9293 section 3.6)."""
    # Exercised by a connection closed from both sides that lasts longer than any first timeout.
    lifetime = context.prepared.lifetime
    acked, fin = lifetime.own_fin_acked, lifetime.fin
    if acked is None or fin is None:
        return
    number = max(acked.packet.number, fin.packet.number)
    after = max(acked.time, fin.time)
    late = [s for s in flow.sent if s.packet.number > number and s.time > after + flow.reaction]
    if late:
        sentence = f"{late[0].span} was sent after both FINs had been acknowledged"
        yield context.violated(sentence, late[0], acked, expected="nothing", actual=late[0].span)
    elif flow.last_time - after > max(3.0, 2 * minimum_rtt(flow)):
        yield context.holds("nothing was sent after both FINs", acked)


@checker("SNR-CON-020")
def data_after_the_own_fin(flow: Flow, context: Context) -> Findings:
    """Data that follows the own FIN is accepted (RFC 9293 section 3.6)."""
    # Exercised by in-order data after the FIN of a service that reads on.
    lifetime = context.prepared.lifetime
    if flow.iut[1] != DAYTIME_PORT or lifetime.own_fin is None or not lifetime.iut_closed_first:
        return
    for arrival in flow.arrivals:
        after = arrival.packet.number > lifetime.own_fin.packet.number
        fits = arrival.in_order and arrival.end <= arrival.window_edge
        if not after or not arrival.payload or not fits:
            continue
        if lifetime.reset is not None and lifetime.reset.packet.number < arrival.packet.number:
            return
        reset = flow.own_reset
        if reset is not None and 0 <= reset.time - arrival.time <= LONGEST_DELAY_S:
            sentence = "data after the own FIN was answered by a RST"
            expected = f"an acknowledgment of {arrival.end}"
            yield context.violated(sentence, reset, arrival, expected=expected, actual="a RST")
            return
        yield from _acknowledged(flow, context, arrival, "data after the own FIN")


@checker("SNR-CON-021")
def first_to_close_lingers(flow: Flow, context: Context) -> Findings:
    """The side that closed first lingers in TIME-WAIT (RFC 9293 section 3.6, MUST-13)."""
    # Exercised by a FIN that is repeated late, both FINs having been acknowledged.
    least = float(context.permitted("least_s", 30.0))
    begin = context.prepared.lifetime.time_wait
    if begin is None:
        return
    for arrival in flow.arrivals:
        if not arrival.fin or not arrival.duplicate or arrival.time <= begin:
            continue
        waited = arrival.time - begin
        reset = flow.own_reset
        answer = leaving_after(flow, arrival, 0.5 + flow.reaction, lambda _: True)
        if answer is None:
            continue
        if answer.packet.number > _first_reset_near(flow):
            return  # a RST can end TIME-WAIT (RFC 1337)
        if waited < least and reset is not None and reset.packet is answer.packet:
            sentence = f"a FIN repeated after {waited:.1f} s was answered by a RST"
            expected = f"an acknowledgment for at least {least:.0f} s"
            yield context.violated(sentence, answer, arrival, expected=expected, actual="a RST")
            return
        if not is_reset(answer):
            if waited > least / 2:
                yield context.holds(f"TIME-WAIT lasted {waited:.1f} s", answer, arrival)
            begin = arrival.time  # the time starts anew


def _first_reset_near(flow: Flow) -> float:
    """Number of the first RST of the IUT, or of one that does not lie outside its window."""
    offer = flow.handshake.offer
    known = max((reply.ack for reply in flow.replies), default=0)
    widest = max((reply.window for reply in flow.replies), default=0)
    for packet in flow.resets:
        if offer is None or packet.outgoing or packet.content is None:
            return packet.number
        offset = nearest(packet.content.seq - offer.seq - 1, known)
        if known - 1 <= offset <= known + 2 * widest:
            return packet.number
    return math.inf


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


def _updates_window(flow: Flow, number: int) -> bool:
    """Whether a packet of the IUT offers more than any before it."""
    own = next((reply for reply in flow.replies if reply.packet.number == number), None)
    if own is None:
        return False
    edges = (r.window_edge for r in flow.replies if r.packet.number < number)
    return own.window_edge > max(edges, default=own.window_edge)


@checker("SNR-CON-022")
def idle_connection_is_silent(flow: Flow, context: Context) -> Findings:
    """An idle connection sends nothing (RFC 9293 section 3.8.4, MUST-25)."""
    # Exercised by hours in which the tester sends nothing and nothing is outstanding.
    least = float(context.permitted("idle_s", 10.0))
    exercised = float(context.permitted("exercised_s", 7200.0))
    acks = [ack for ack in flow.acks if ack.acceptable]
    outstanding = {sent.packet.number: sent for sent in flow.sent}
    for item, silence in _idle(flow):
        if silence < least:
            continue
        number = item.packet.number
        una = max((a.ack for a in acks if a.packet.number < number), default=0)
        sent = max((s.end for s in flow.sent if s.packet.number < number), default=0)
        edge = max((a.window_edge for a in acks if a.packet.number < number), default=0)
        latest = next((a for a in reversed(acks) if a.packet.number < number), None)
        closed = latest is None or latest.window_edge < edge or latest.window_edge <= sent
        if sent > una or closed:
            continue  # a retransmission or a window probe may be due
        if not item.packet.outgoing:
            if silence >= exercised:
                yield context.holds(f"nothing was sent in {silence:.0f} s of idleness", item)
            continue
        offered = max((r.window_edge for r in flow.replies if r.packet.number < number), default=0)
        news = next((r for r in flow.replies if r.packet.number == number), None)
        if news is not None and news.window_edge > offered:
            continue  # its user read
        own = outstanding.get(number)
        if own is not None and own.start >= sent:
            continue  # its user wrote
        if item.tcp.flags & RST and not is_own_reset(flow, item.packet):
            continue  # its user may have aborted
        if _updates_window(flow, number):
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
    arrivals = {arrival.packet.number: arrival for arrival in flow.arrivals}
    for item, silence in _idle(flow):
        arrival = arrivals.get(item.packet.number)
        if arrival is None or silence < exercised or not arrival.in_order:
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
            yield from _acknowledged(flow, context, arrival, what)
        return


@checker("SNR-CON-024")
def urgent_data_is_accepted(flow: Flow, context: Context) -> Findings:
    """Urgent data is acknowledged as any other (RFC 9293 section 3.8.5)."""
    # Exercised by in-order data with URG.
    for arrival in flow.arrivals:
        fits = arrival.in_order and arrival.end <= arrival.window_edge
        if arrival.tcp.flags & URG and arrival.payload and fits:
            yield from _acknowledged(flow, context, arrival, "urgent data")


@checker("SNR-CON-032")
def time_wait_ends(flow: Flow, context: Context) -> Findings:
    """TIME-WAIT ends (RFC 9293 section 3.6)."""
    # Exercised by a FIN that is repeated long after anything else, both FINs being acknowledged.
    most = float(context.permitted("most_s", 240.0))
    begin = context.prepared.lifetime.time_wait
    if begin is None:
        return
    for item in flow.arriving:
        silence, begin = item.time - begin, max(begin, item.time)
        answer = leaving_after(flow, item, 0.5 + flow.reaction, lambda _: True)
        if silence <= most or answer is None or item.tcp.flags & (SYN | RST):
            continue
        sentence = f"TIME-WAIT was {'' if is_reset(answer) else 'not '}over after {silence:.0f} s"
        actual = f"a segment with flags {answer.tcp.flag_names}"
        met = is_reset(answer)
        yield judged(context, met, sentence, answer, item, expected="a RST", actual=actual)
        return
