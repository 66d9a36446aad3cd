"""Checkers for opening, closing and resets (RWBP-CX, section 10)."""

from __future__ import annotations

from itertools import pairwise

from bentpipe_conformance.protocols.rwbp.checkers import (
    PATIENCE_S,
    TICK_S,
    Context,
    Findings,
    judged,
    rule,
)
from bentpipe_conformance.protocols.rwbp.checkers.going_on import goes_on, unasked
from bentpipe_conformance.protocols.rwbp.checkers.waiting import guessed, refuses_late
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.events import Segment, Why, after
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN

FIRST_S, MOST_S = 1.0, 60.0
"""The time after which a SYN is repeated first, and the longest (section 11)."""


@rule("RWBP-CX-002", at_once=True, once=True)
def syns_are_repeated(flow: Flow, context: Context) -> Findings:
    """SYN and SYN-ACK are repeated after 1 s, 2 s, 4 s and so on, one copy each (section 10)."""
    # Exercised by every SYN or SYN-ACK that is not answered.
    own = flow.opening.own
    if not own:
        return
    crossing = flow.opening.theirs[0].packet if flow.opening.crossed else None
    asking = [] if flow.opening.iut_calls else _asking(flow)
    answers = [
        i for i in after(flow.arriving, own[0].packet.number)
        if i.packet is not crossing and i not in asking
    ]  # fmt: skip
    heard = [i.time for i in answers]
    silent = [i for i in own if not answers or i.packet.number < answers[0].packet.number]
    due, most = FIRST_S, FIRST_S
    for before, copy in pairwise(silent):
        asked = [i for i in asking if before.packet.number < i.packet.number < copy.packet.number]
        if asked and copy.time - asked[-1].time <= AT_ONCE_S + context.timing_error:
            # It answers the caller's SYN and restarts the timer (section 5.4), which may have
            # doubled by that or not.
            most = min(MOST_S, 2 * most)
            continue
        waited = copy.time - before.time
        due = most if waited > due + AT_ONCE_S + context.timing_error else due
        early = waited < due - TICK_S - context.timing_error
        met = not early and waited <= due + AT_ONCE_S + context.timing_error
        # The SYN-ACK that answers a crossing SYN counts as a repetition (section 4.2).
        if copy.tcp.flags & ACK == before.tcp.flags & ACK:
            yield judged(
                context, met, "SYN or SYN-ACK was repeated", copy, before,
                expected=f"one copy after {due:.0f} s", actual=f"after {waited:.2f} s",
            )  # fmt: skip
        due = most = min(MOST_S, 2 * due)
    due = most
    end = heard[0] if heard else flow.packets[-1].time
    waited, since = end - silent[-1].time, end - silent[0].time
    late = waited > due + AT_ONCE_S + context.timing_error
    if late and since - waited + due < PATIENCE_S and not flow.resets:
        yield context.violated(
            "SYN or SYN-ACK was not repeated", silent[-1], expected=f"a copy after {due:.0f} s",
            actual=f"none for {waited:.1f} s",
        )  # fmt: skip


def _asking(flow: Flow) -> list[Segment]:
    """The repetitions of the caller's SYN."""
    first, *again = flow.opening.theirs
    return [i for i in again if not i.tcp.flags & ACK and i.tcp.seq == first.tcp.seq]


@rule("RWBP-CX-003", at_once=True, once=True)
def fin_is_a_segment(flow: Flow, context: Context) -> Findings:
    """A FIN is kept, repeated, held and acknowledged as data is (section 10)."""
    # Exercised by a FIN of the implementation that is lost, and by one of the tester that comes
    # behind a hole or again.
    for sent in flow.sent:
        again = sent.start < sent.nxt
        if sent.fin and again:
            met = sent.why in (Why.LOST, Why.TIMEOUT)
            yield judged(
                context, met, f"the FIN in {sent.span} was sent again", sent,
                expected="it to be taken for lost, or the timer to have expired",
                actual=sent.why.value,
            )  # fmt: skip
    for missed in flow.sender.missed:
        item = missed.outgoing
        if item.fin:
            yield context.violated(
                f"the FIN in {item.span} was not sent again", item.transmissions[-1],
                expected="what every lost segment calls for", actual="nothing",
            )  # fmt: skip
    for expiry in flow.sender.expiries:
        item = expiry.outgoing
        if item.fin and not expiry.copies:
            yield context.violated(
                f"the FIN in {item.span} was not sent again", expiry.started,
                expected=f"copies after {expiry.most:.2f} s",
                actual=f"nothing for {expiry.lasted:.1f} s",
            )  # fmt: skip
    yield from _held(flow, context)


def _held(flow: Flow, context: Context) -> Findings:
    """Whether the tester's FIN is kept behind a hole, and acknowledged whenever it comes."""
    late = {due.arrival.packet.number for due in flow.receiver.late}
    fins = (
        item for item in flow.arrivals
        if item.fin and item.acceptable and not item.tcp.flags & (SYN | RST)
    )  # fmt: skip
    fin = next(fins, None)
    if fin is None:
        return
    for arrival in flow.arrivals:
        if arrival.packet.number < fin.packet.number:
            continue
        filled = arrival.expected < fin.end <= arrival.expected_after == fin.end
        if arrival.fin and not arrival.tcp.flags & RST and arrival.packet.number in late:
            yield context.violated(
                "a FIN was not acknowledged", arrival, expected="an acknowledgment at once",
                actual="none",
            )  # fmt: skip
        if filled and arrival.answer is not None:
            yield judged(
                context, arrival.answer.ack >= fin.end, "everything up to the FIN had arrived",
                arrival.answer, arrival, fin, expected=f"acknowledgment of {fin.end}",
                actual=f"of {arrival.answer.ack}",
            )  # fmt: skip


@rule("RWBP-CX-004", once=True)
def half_closed(flow: Flow, context: Context) -> Findings:
    """Receiving goes on after the own FIN, sending after the peer's (section 10)."""
    # Exercised by data that arrives after the own FIN, and by data that waits when the peer's
    # FIN arrives.
    waits = not flow.leaves_at_once(context.ics)
    own = None if waits else next((sent for sent in flow.sent if sent.fin), None)
    late = {due.arrival.packet.number for due in flow.receiver.late}
    for arrival in after(flow.arrivals, own.packet.number) if own is not None else ():
        assert own is not None
        if not arrival.payload or arrival.expected_after == arrival.expected:
            continue
        if arrival.packet.number in late:
            yield context.violated(
                f"{arrival.span} arrived after the own FIN", arrival, own,
                expected="what any data calls for", actual="no acknowledgment",
            )  # fmt: skip
        answer = next(after(flow.replies, arrival.packet.number), None)
        if answer is not None and (answer.calls is not None or not flow.slack):
            # What lies behind the peer's FIN is not taken.
            fin = flow.receiver.fin
            end = arrival.end if fin is None else min(arrival.end, fin + 1)
            yield judged(
                context, answer.ack >= end or bool(answer.blocks),
                f"{arrival.span} arrived after the own FIN", answer, arrival, own,
                expected=f"acknowledgment of {end}", actual=f"of {answer.ack}",
            )  # fmt: skip
    yield from _sends_on(flow, context)


def _sends_on(flow: Flow, context: Context) -> Findings:
    fin = flow.receiver.fin
    if fin is None or flow.receiver.nxt <= fin:
        return
    closing = next(a for a in flow.arrivals if a.expected_after > fin)
    later = (sent for sent in after(flow.sent, closing.packet.number) if sent.payload)
    went_on = next((sent for sent in later if sent.why is not Why.NOTHING), None)
    stall = next((s for s in flow.sender.stalls if s.until > closing.time), None)
    missed = next((m for m in flow.sender.missed if m.until > closing.time), None)
    silent = next(
        (e for e in flow.sender.expiries if not e.copies and e.until > closing.time), None
    )  # fmt: skip
    if flow.leaves_at_once(context.ics) and (stall or missed or silent):
        yield context.violated(
            "what waited, or was outstanding, when the peer's FIN came was not sent", closing,
            expected="sending by section 8", actual="nothing",
        )  # fmt: skip
    elif went_on is not None:
        yield context.holds("data was sent after the peer's FIN", went_on, closing)


@rule("RWBP-CX-005")
def resets_are_checked(flow: Flow, context: Context) -> Findings:
    """Only a RST at RCV.NXT counts; one elsewhere in the window is challenged (section 10)."""
    # Exercised by RSTs at RCV.NXT, elsewhere in the window, and outside it.
    for reset in flow.tried:
        if reset.packet.number > flow.ended:
            return
        if reset.exact:
            yield from _heeded(flow, context, reset)
            return
        where = f"a RST at {reset.start}, {reset.expected} being the next number,"
        if reset.arrival is not None and reset.arrival.calls is not None:
            answer = reset.arrival.answer
            late = flow.leaves_at_once(context.ics) and any(
                due.arrival is reset.arrival for due in flow.receiver.late
            )
            if answer is not None or late:
                yield judged(
                    context, answer is not None, f"{where} arrived", reset,
                    *([answer] if answer is not None else []), expected="an acknowledgment",
                    actual="nothing",
                )  # fmt: skip
        elif (said := unasked(flow, context, reset)) is not None:
            yield context.violated(
                f"{where} was answered", said, reset, expected="nothing",
                actual=f"flags {said.tcp.flag_names}",
            )  # fmt: skip
        yield from goes_on(flow, context, reset, where.rstrip(","))


def _heeded(flow: Flow, context: Context, reset: Segment) -> Findings:
    if not flow.leaves_at_once(context.ics):
        return
    number = reset.packet.number
    again = (i for i in after(flow.arriving, number) if i.tcp.flags & SYN)
    until = next((i.packet.number for i in again), float("inf"))
    said = next(
        (i for i in after(flow.leaving, number) if i.packet.number < until
         and not i.tcp.flags & RST and i.time > reset.time + flow.slack), None
    )  # fmt: skip
    if said is not None:
        yield context.violated(
            "the connection goes on after a RST at the next number", said, reset,
            expected="nothing", actual=f"flags {said.tcp.flag_names}",
        )  # fmt: skip
    elif flow.packets[-1].time - reset.time > AT_ONCE_S + flow.slack:
        yield context.holds("a RST at the next number ended the connection", reset)


@rule("RWBP-CX-006")
def abort_is_one_reset(flow: Flow, context: Context) -> Findings:
    """An abort is one RST at SND.NXT, and nothing after it (section 10)."""
    # Exercised by the user's abort, which leaves a RST that nothing else explains.
    if not flow.agreed or flow.established is None:
        return
    own = [item for item in flow.resets if item.packet.outgoing]
    if not own or own[0].packet.number > flow.ended or _gave_up(flow, own[0]):
        return
    reset = own[0]
    if reset.time >= guessed(flow, context) or refuses_late(flow, context, reset):
        return  # its end may have been acknowledged before anybody saw it
    sender = flow.sender
    at = sender.offset(reset.tcp.seq)
    yield judged(
        context, at == sender.nxt, "the user aborted", reset, expected=f"RST at {sender.nxt}",
        actual=f"at {at}",
    )  # fmt: skip
    if not flow.leaves_at_once(context.ics):
        return  # what answers something earlier may leave later
    since = reset.time - flow.slack
    arrived = [
        i.packet.number for i in flow.arriving
        if i.packet.number > reset.packet.number or (flow.slack and i.time >= since)
    ]  # fmt: skip
    for item in after(flow.leaving, reset.packet.number):
        unasked_for = not arrived or item.packet.number < arrived[0]
        if unasked_for or not item.tcp.flags & RST:
            yield context.violated(
                "more was sent after the RST of an abort", item, reset,
                expected="nothing but RSTs as answers", actual=f"flags {item.tcp.flag_names}",
            )  # fmt: skip
            return


def _gave_up(flow: Flow, reset: Segment) -> bool:
    """Whether a RST follows a long silence, in which the implementation may have given up."""
    before = [i.time for i in flow.arriving if i.packet.number < reset.packet.number]
    return not before or reset.time - before[-1] >= PATIENCE_S
