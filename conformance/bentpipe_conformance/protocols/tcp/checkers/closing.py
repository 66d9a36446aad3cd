"""Checkers for how a connection is closed (SNR-CON-015 to 020, 032)."""

from __future__ import annotations

import math
from itertools import pairwise, takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.checkers.resets import acknowledged
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, nearest
from bentpipe_conformance.protocols.tcp.replay.answers import (
    DAYTIME_PORT,
    LONGEST_DELAY_S,
    acknowledging,
    answer_within,
    first_reply,
)
from bentpipe_conformance.protocols.tcp.replay.events import Arrival
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import (
    LEAST_TIME_WAIT_S,
    is_reset,
    leaving_after,
)
from bentpipe_conformance.protocols.tcp.replay.order import later
from bentpipe_conformance.protocols.tcp.replay.recovery import may_be_timed
from bentpipe_conformance.protocols.tcp.replay.round_trips import measurements, minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.users import ECHO_PORT, hears_of_urgent_data


@checker("SNR-CON-015")
def fin_is_acknowledged(flow: Flow, context: Context) -> Findings:
    """A FIN in sequence is acknowledged (RFC 9293 section 3.10.7.4)."""
    # Exercised by every FIN that arrives in sequence, or whose gap is filled.
    fins = [arrival for arrival in flow.arrivals if arrival.fin]
    some = any(fin.acceptable for fin in fins)
    for arrival in flow.arrivals if fins else ():
        if arrival.fin and arrival.in_order and arrival.end <= arrival.window_edge:
            yield from acknowledged(flow, context, arrival, "the FIN")
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
    ends: set[int] = set()
    for arrival in flow.arrivals:
        if not arrival.fin:
            continue
        # Another FIN, of a peer that contradicts itself, is not the one that has been received.
        again = arrival.end in ends and arrival.end <= arrival.last_ack
        ends.add(arrival.end)
        if not again or arrival.may_be_stale or arrival.lacks_timestamp:
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
    first = context.prepared.lifetime.own_fin
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
    echoed = flow.iut[1] == ECHO_PORT and not hears_of_urgent_data(flow)
    if echoed and fin is not None and fin.packet.number < first.packet.number:
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
    number = next((event.packet.number for event in flow.events if event.time >= until), math.inf)
    before = takewhile(lambda sent: sent.packet.number < number, flow.sent)
    expired = sum(map(may_be_timed, before))
    return measurements(flow).before(number - 1).longest_after(expired)


@checker("SNR-CON-019")
def nothing_after_both_fins(flow: Flow, context: Context) -> Findings:
    """Nothing is sent once both FINs are acknowledged (RFC 9293 section 3.6)."""
    # Exercised by a connection closed from both sides that lasts longer than any first timeout.
    lifetime = context.prepared.lifetime
    acked, closed = lifetime.own_fin_acked, lifetime.closed
    if acked is None or closed is None:
        return
    number = max(acked.packet.number, closed.packet.number)
    after = max(acked.time, closed.time)
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
        if _first_reset_near(flow) < arrival.packet.number:
            return
        reset, ended = flow.own_reset, lifetime.reset
        if reset is not None and ended is not None and ended.packet.number < reset.packet.number:
            reset = None  # it says that there is no connection any more
        if reset is not None and 0 <= reset.time - arrival.time <= LONGEST_DELAY_S:
            sentence = "data after the own FIN was answered by a RST"
            expected = f"an acknowledgment of {arrival.end}"
            yield context.violated(sentence, reset, arrival, expected=expected, actual="a RST")
            return
        yield from acknowledged(flow, context, arrival, "data after the own FIN")


@checker("SNR-CON-021")
def first_to_close_lingers(flow: Flow, context: Context) -> Findings:
    """The side that closed first lingers in TIME-WAIT (RFC 9293 section 3.6, MUST-13)."""
    # Exercised by a FIN that is repeated late, both FINs having been acknowledged.
    least = float(context.permitted("least_s", LEAST_TIME_WAIT_S))
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
