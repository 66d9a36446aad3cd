"""Checkers for an implementation that calls (SNR-CON-025 to 031, 043, 047)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import (
    COARSE_TICK_S,
    Context,
    Findings,
    judged,
    lasted,
)
from bentpipe_conformance.protocols.tcp.checkers.opening import refused_by_reset
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN, nearest
from bentpipe_conformance.protocols.tcp.replay.events import Segment
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import (
    is_reset,
    lasts,
    leaving_after,
    may_have_given_up,
    throttled,
)
from bentpipe_conformance.protocols.tcp.replay.order import count_before, later

ATTEMPT_S = 60.0
"""Seconds for which no implementation gives an attempt up."""

SOON_AFTER_S = 10.0
"""Seconds after three minutes in which an attempt is still expected to be alive: one that ends just
then ends early."""

UNREPEATED_S = 10.0
"""Seconds after which the first repetition of a SYN is missing: three times the longest initial
timeout (RFC 1122 section 4.2.3.1)."""


def _syns(flow: Flow) -> list[Segment]:
    """The SYNs of an implementation that calls, repetitions included."""
    if not flow.handshake.iut_opens:
        return []
    return [item for item in flow.leaving if item.tcp.flags & (SYN | ACK) == SYN]


def _in_syn_sent(flow: Flow) -> Iterator[tuple[Segment, bool]]:
    """What arrives in SYN-SENT, and whether it acknowledges the SYN, until something ends that.

    Left out is what may be dropped because its options cannot be read.
    """
    syns = _syns(flow)
    for item in flow.arriving if syns else ():
        tcp = item.tcp
        if item.packet.number < syns[0].packet.number:
            continue
        good = bool(tcp.flags & ACK) and tcp.ack == (syns[0].tcp.seq + 1) % MODULUS
        if tcp.options_ok:
            yield item, good
        wrong = tcp.flags & ACK and not good
        opens = tcp.flags & (SYN | RST) == SYN
        if not wrong and (opens or (tcp.flags & RST and good)):
            return


@checker("SNR-CON-043")
def call_sends_a_syn(flow: Flow, context: Context) -> Findings:
    """A call sends a SYN (RFC 9293 section 3.10.1); a script says where none came."""
    # Exercised by every call of the implementation's user.
    syns = _syns(flow)
    if syns:
        yield context.holds("the user's call began with a SYN", syns[0])


@checker("SNR-CON-025")
def attempt_lasts_three_minutes(flow: Flow, context: Context) -> Findings:
    """A SYN is not given up within three minutes (RFC 9293 section 3.8.3, MUST-23)."""
    # Exercised by a first SYN-ACK that arrives just so late.
    least = float(context.permitted("least_s", 180.0))
    syns = _syns(flow)
    for item, good in _in_syn_sent(flow):
        if not good or not item.tcp.flags & SYN:
            return
        waited = item.time - syns[0].time
        answer = leaving_after(flow, item, 0.5 + flow.reaction, lambda s: not s.tcp.flags & SYN)
        if not least <= waited < least + SOON_AFTER_S or answer is None:
            return
        sentence = f"a SYN-ACK {waited:.0f} s after the SYN was answered by {{}}"
        how = "a RST" if is_reset(answer) else "an acknowledgment"
        yield judged(
            context, not is_reset(answer), sentence.format(how), answer, item,
            expected="an open connection", actual=how,
        )  # fmt: skip


@checker("SNR-CON-026")
def syn_backs_off(flow: Flow, context: Context) -> Findings:
    """The SYN is retransmitted with back-off (RFC 6298 section 5, rule 5.5)."""
    # Exercised by a SYN that is not answered.
    syns = _syns(flow)
    arrived_at = flow.arriving[0].time if flow.arriving else float("inf")
    syns = [item for item in syns if item.time < arrived_at]
    if len(syns) == 1:
        silent = min(arrived_at, flow.last_time) - syns[0].time
        if silent > UNREPEATED_S:
            sentence = f"the SYN was not repeated in {silent:.1f} s"
            yield context.violated(sentence, syns[0], expected="the SYN again", actual="nothing")
    if len(syns) < 2:
        return
    low, high = context.permitted("ratio", [1.8, 2.5])
    linear, cap = int(context.permitted("linear", 4)), float(context.permitted("cap_s", 60.0))
    fields = {
        (s.tcp.seq, s.tcp.flags, s.tcp.mss, s.tcp.window_scale, s.tcp.sack_permitted,
         s.tcp.tsval is not None)
        for s in syns
    }  # fmt: skip
    first = syns[1].time - syns[0].time
    in_time = lasted(context, first, 1.0) and first <= 3.0 + COARSE_TICK_S
    same = len(fields) == 1
    sentence = f"{'the same' if same else 'another'} SYN was sent after {first:.2f} s"
    yield judged(
        context, in_time and same, sentence, syns[1], syns[0],
        expected="the same SYN after one to three seconds", actual=f"{first:.2f} s",
    )  # fmt: skip
    intervals = [b.time - a.time for a, b in pairwise(syns)]
    for index, (before, after) in enumerate(pairwise(intervals)):
        ratio = after / before
        equal = index + 1 < linear and abs(ratio - 1) < 0.1
        if not (equal or low <= ratio <= high or after >= 0.95 * cap):
            sentence = f"intervals between SYNs: {before:.2f} s, then {after:.2f} s"
            expected = f"about {2 * before:.2f} s"
            where = syns[index + 2]
            yield context.violated(sentence, where, expected=expected, actual=f"{after:.2f} s")
            return
    if len(intervals) > linear:
        yield context.holds(f"{len(intervals)} intervals between SYNs grew", syns[-1])


@checker("SNR-CON-027")
def wrong_acknowledgment_of_the_syn(flow: Flow, context: Context) -> Findings:
    """A wrong acknowledgment in SYN-SENT is answered by a RST (RFC 9293 section 3.10.7.3)."""
    # Exercised by every segment in SYN-SENT with ACK, without RST, and with another number.
    longest = float(context.permitted("longest_s", 0.5)) + flow.reaction
    for item, good in _in_syn_sent(flow):
        tcp = item.tcp
        if good or not tcp.flags & ACK or tcp.flags & RST:
            continue
        wrong = f"a segment with flags {tcp.flag_names} that acknowledges {tcp.ack} in SYN-SENT"
        answer = leaving_after(flow, item, longest, lambda s: s.tcp.flags & (SYN | ACK) != SYN)
        yield from refused_by_reset(flow, context, item, answer, longest, wrong)


def _syns_after(flow: Flow, item: Segment) -> list[Segment]:
    settled = item.time + flow.reaction
    return [s for s in _syns(flow) if s.time > settled]


@checker("SNR-CON-028")
def refusal_is_heeded(flow: Flow, context: Context) -> Findings:
    """A RST that acknowledges the SYN ends the attempt (RFC 9293 section 3.10.7.3)."""
    # Exercised by such a RST, once the SYN would have been repeated.
    for item, good in _in_syn_sent(flow):
        if not is_reset(item) or not good:
            continue
        later = _syns_after(flow, item)
        if later:
            sentence = "the SYN was repeated although the connection had been refused"
            yield context.violated(sentence, later[0], item, expected="no SYN", actual="a SYN")
        elif lasts(flow, item, 4.0):
            yield context.holds("the refusal ended the attempt", item)


@checker("SNR-CON-029")
def other_resets_are_ignored(flow: Flow, context: Context) -> Findings:
    """A RST that does not acknowledge the SYN is dropped (RFC 9293 section 3.10.7.3)."""
    # Exercised by such a RST, by what follows it.
    for item, good in _in_syn_sent(flow):
        wrong = item.tcp.flags & ACK and not good
        if item.time - _syns(flow)[0].time > ATTEMPT_S:
            return  # the attempt may have been given up
        opens = item.tcp.flags & (SYN | RST) == SYN
        if opens or (is_reset(item) and good) or (wrong and not is_reset(item)):
            continue
        answer = leaving_after(
            flow, item, flow.reaction, lambda s: s.tcp.flags & (SYN | ACK) != SYN
        )
        following = next(later(flow.arriving, item.packet), None)
        if answer is not None and following is not None:
            # What leaves after another arrival may be the answer to that.
            answer = answer if answer.packet.number < following.packet.number else None
        if answer is not None:
            sentence = "a segment to be dropped in SYN-SENT was answered"
            actual = f"a segment with flags {answer.tcp.flag_names}"
            yield context.violated(sentence, answer, item, expected="nothing", actual=actual)
            return
        number = item.packet.number
        after = list(later(flow.leaving, item.packet))
        # A RST may answer an acknowledgment of nothing sent, and ends no attempt.
        alive = next((s for s in after if not is_reset(s)), None)
        if alive is not None:
            yield context.holds("what says nothing about the SYN was ignored", alive, item)
        elif any(
            good_one and is_reset(other) and other.packet.number > number
            for other, good_one in _in_syn_sent(flow)
        ):
            continue  # perhaps that has ended it before the next SYN was due
        elif after or lasts(flow, item, 10.0):
            sentence = "a segment that says nothing about the SYN ended the attempt"
            expected = "the SYN again"
            yield context.violated(sentence, item, expected=expected, actual="none")
            return


@checker("SNR-CON-030")
def syn_ack_is_acknowledged(flow: Flow, context: Context) -> Findings:
    """A SYN-ACK is acknowledged at once (RFC 9293 section 3.10.7.3)."""
    # Exercised by every SYN-ACK that acknowledges the SYN before any RST.
    longest = float(context.permitted("longest_s", 0.5))
    syns = _syns(flow)
    taken: int | None = None
    for item in flow.arriving if syns else ():
        tcp = item.tcp
        if not tcp.flags & ACK or tcp.ack != (syns[0].tcp.seq + 1) % MODULUS:
            continue
        if tcp.flags & RST or item.time - syns[0].time > ATTEMPT_S:
            return
        before = flow.leaving[: count_before(flow.leaving, item.packet.number)]
        if any(s.tcp.flags & (SYN | ACK) == SYN | ACK for s in before):
            return  # the SYNs crossed, and the peer's has been acknowledged (section 3.5, figure 7)
        if tcp.flags & (SYN | ACK) != SYN | ACK:
            continue
        answer = leaving_after(flow, item, longest + flow.reaction, lambda _: True)
        if not tcp.options_ok and (answer is None or answer.tcp.flags & SYN):
            continue  # it may be dropped (section 3.1, MUST-7), and a SYN be taken instead
        if taken is not None and flow.handshake.timestamps and tcp.tsval is None:
            continue  # another one without its timestamp may be dropped, too (RFC 7323 section 3.2)
        taken = tcp.seq if taken is None else taken
        if tcp.seq != taken:
            continue  # that of another connection, which a late copy of the SYN has begun
        wanted = (tcp.seq + 1) % MODULUS
        expected = f"an acknowledgment of {wanted}"
        if answer is not None and is_reset(answer):
            return  # its user may have given the connection up
        if answer is not None:
            behind = (answer.tcp.ack - wanted) % MODULUS
            met = bool(answer.tcp.flags & ACK) and behind < MODULUS // 2
            said = f"flags {answer.tcp.flag_names}, acknowledgment {answer.tcp.ack}"
            sentence = f"a SYN-ACK was answered by {said}"
            yield judged(context, met, sentence, answer, item, expected=expected, actual=said)
        elif lasts(flow, item, longest + flow.reaction) and not throttled(flow, item):
            sentence = "a SYN-ACK was not acknowledged"
            yield context.violated(sentence, item, expected=expected, actual="nothing")
            return


def _asks(flow: Flow, completing: Segment) -> bool:
    """Whether the segment that completes a handshake, or a later one, has to be answered."""
    since = flow.arriving[count_before(flow.arriving, completing.packet.number) :]
    return any(item.tcp.payload or item.tcp.flags & FIN for item in since)


@checker("SNR-CON-031")
def syns_cross(flow: Flow, context: Context) -> Findings:
    """SYNs may cross (RFC 9293 section 3.5, MUST-10)."""
    # Exercised by a SYN without ACK in SYN-SENT.
    longest = float(context.permitted("longest_s", 0.5)) + flow.reaction
    syns = _syns(flow)
    for item, _ in _in_syn_sent(flow):
        tcp = item.tcp
        if tcp.flags & (SYN | ACK | RST) != SYN:
            continue
        answer = leaving_after(flow, item, longest, lambda s: s.tcp.flags & (SYN | ACK) != SYN)
        wanted = (tcp.seq + 1) % MODULUS
        expected = f"a SYN-ACK with sequence number {syns[0].tcp.seq}, acknowledgment {wanted}"
        if answer is None:
            if lasts(flow, item, longest):
                sentence = "a SYN that crossed the own one was not answered"
                yield context.violated(sentence, item, expected=expected, actual="nothing")
            return
        said = f"flags {answer.tcp.flag_names}, numbers {answer.tcp.seq} and {answer.tcp.ack}"
        same = answer.tcp.seq == syns[0].tcp.seq and answer.tcp.ack == wanted
        met = same and answer.tcp.flags & (SYN | ACK | RST) == SYN | ACK
        sentence = f"a SYN that crossed the own one was answered by {said}"
        yield judged(context, met, sentence, answer, item, expected=expected, actual=said)
        number = answer.packet.number
        # One without its timestamp may be dropped (RFC 7323 section 3.2).
        stamped = flow.handshake.timestamps
        completing = next(
            (s for s in flow.arriving if s.packet.number > number and s.tcp.flags & ACK
             and s.tcp.ack == (syns[0].tcp.seq + 1) % MODULUS
             and not (stamped and s.tcp.tsval is None)), None,
        )  # fmt: skip
        if completing is None or not met or may_have_given_up(flow, completing):
            return
        begin = completing.packet.number
        if any(number < reset.number < begin for reset in flow.resets):
            return  # it may have ended the attempt
        later = (s for s in flow.leaving if s.packet.number > begin and not s.tcp.flags & SYN)
        first = next(later, None)
        until = math.inf if first is None else first.packet.number
        if any(begin < reset.number < until for reset in flow.resets):
            return  # it may have ended the connection before anything left
        if first is not None and not is_reset(first):
            yield context.holds("SYNs that crossed opened a connection", first, completing)
        elif first is not None or (_asks(flow, completing) and lasts(flow, completing, 5.0)):
            sentence = "SYNs that crossed opened no connection"
            actual = "nothing" if first is None else "a RST"
            yield context.violated(
                sentence, completing, expected="an open connection", actual=actual
            )
        return


@checker("SNR-CON-047")
def abort_has_the_next_number(flow: Flow, context: Context) -> Findings:
    """The RST of an abort has the number SND.NXT (RFC 9293 section 3.10.5)."""
    # Exercised by the IUT's RST that answers nothing; a script says where an abort sent none.
    reset, syn, offer = flow.own_reset, flow.handshake.answer, flow.handshake.offer
    if reset is None or reset.packet is not flow.resets[0] or syn is None or syn.size:
        return
    number = reset.packet.number
    heard = flow.arriving[: count_before(flow.arriving, number)]
    if offer is None or flow.handshake.established is None:
        return
    if reset.time - heard[-1].time <= flow.reaction:
        return
    sent = flow.sent[: count_before(flow.sent, number)]
    acks = flow.acks[: count_before(flow.acks, number)]
    highest = max((item.end for item in sent), default=0)
    told = (ack.window_edge for ack in reversed(acks) if ack.acceptable)
    if next(told, offer.window) < highest or any(
        ack.may_heed and not ack.acceptable for ack in acks
    ):
        return  # SND.NXT may lie where the peer does not take it
    if any(item.retransmission or (item.timed and item.payload <= 1) for item in sent):
        return  # it may have moved back
    at = nearest(reset.tcp.seq - syn.seq - 1, highest)
    yield judged(
        context, at == highest, f"the connection was aborted by a RST at offset {at}", reset,
        expected=f"that of offset {highest}", actual=f"that of offset {at}",
    )  # fmt: skip
