"""Checkers for segments of no connection and the handshake.

SNR-CON-003 to 009, 033, 042, 045 and 046.
"""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN, nearest
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    THROTTLED_S,
    acknowledging,
    answer_within,
)
from bentpipe_conformance.protocols.tcp.replay.events import Segment
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import (
    answers_as_none,
    is_reset,
    lasts,
    leaving_after,
    strays,
)
from bentpipe_conformance.protocols.tcp.replay.resets import Expected

HALF_OPEN_S = 20.0
"""Seconds for which no implementation gives a handshake up that is not completed."""

NEARLY_S = 10.0
"""Seconds before a handshake may be given up in which it shows that it lasts."""

OPEN_S = 4.0
"""Seconds after which a SYN would have been repeated."""


@checker("SNR-CON-003")
def stray_is_answered_by_a_reset(flow: Flow, context: Context) -> Findings:
    """A segment for no connection is answered by a RST (RFC 9293 section 3.5.2)."""
    # Exercised by every segment without RST that arrives while there is no connection for it.
    longest = float(context.permitted("longest_s", 0.5)) + flow.reaction
    for item in strays(flow, context.prepared.lifetime):
        if is_reset(item):
            continue
        kind = f"a segment with flags {item.tcp.flag_names} for no connection"
        answer = leaving_after(flow, item, longest, lambda _: True)
        if answer is not None:
            outcome = "answered by a RST" if is_reset(answer) else "not answered by a RST"
            actual = f"a segment with flags {answer.tcp.flag_names}"
            yield judged(
                context, is_reset(answer), f"{kind} was {outcome}", answer, item,
                expected="a RST", actual=actual,
            )  # fmt: skip
        elif lasts(flow, item, longest):
            yield context.violated(
                f"{kind} was not answered", item, expected="a RST", actual="nothing"
            )


@checker("SNR-CON-004")
def reset_of_a_stray_is_acceptable(flow: Flow, context: Context) -> Findings:
    """The numbers of a RST for no connection (RFC 9293 section 3.10.7.1)."""
    # Exercised by every RST that answers such a segment.
    longest = float(context.permitted("longest_s", 0.5)) + flow.reaction
    found = [item for item in strays(flow, context.prepared.lifetime) if not is_reset(item)]
    for index, item in enumerate(found):
        reset = leaving_after(flow, item, longest, is_reset)
        if reset is None:
            continue
        # The answer to another may still be under way.
        near = [s for s in found[: index + 2] if abs(s.time - item.time) <= longest]
        right = any(answers_as_none(reset, other) for other in near)
        tcp, answer = item.tcp, reset.tcp
        wanted = (
            f"sequence number {tcp.ack}" if tcp.flags & ACK
            else f"sequence number 0, acknowledgment {(tcp.seq + tcp.length) % MODULUS}"
        )  # fmt: skip
        said = f"sequence number {answer.seq}, acknowledgment {answer.ack}"
        sentence = f"the RST for a segment with flags {tcp.flag_names} has {said}"
        yield judged(context, right, sentence, reset, item, expected=wanted, actual=said)


@checker("SNR-CON-005")
def reset_is_not_answered(flow: Flow, context: Context) -> Findings:
    """A RST for no connection is not answered (RFC 9293 section 3.5.2)."""
    # Exercised by every RST that arrives while there is no connection for it.
    for item in strays(flow, context.prepared.lifetime):
        if not is_reset(item):
            continue
        following = (s for s in flow.arriving if s.packet.number > item.packet.number)
        until = next((s.time for s in following), flow.last_time)
        answer = leaving_after(flow, item, until - item.time, lambda _: True)
        if answer is not None and answer.time < until:
            actual = f"a segment with flags {answer.tcp.flag_names}"
            sentence = f"a RST for no connection was answered by {actual}"
            yield context.violated(sentence, answer, item, expected="nothing", actual=actual)
        elif answer is None and until > item.time + flow.reaction:
            yield context.holds("a RST for no connection was not answered", item)


@checker("SNR-CON-006")
def syn_ack_acknowledges_the_syn(flow: Flow, context: Context) -> Findings:
    """The numbers of a SYN-ACK (RFC 9293 section 3.10.7.2)."""
    # Exercised by every SYN-ACK that answers a SYN without data, up to the first data acknowledged.
    offer, first = flow.handshake.offer, flow.handshake.answer
    if offer is None or first is None or flow.handshake.iut_opens or offer.payload:
        return
    syns = {(s.tcp.seq + 1) % MODULUS for s in flow.arriving if s.tcp.flags & (SYN | ACK) == SYN}
    for item in flow.leaving:
        tcp = item.tcp
        if tcp.flags & (SYN | ACK) != SYN | ACK:
            if not tcp.flags & (SYN | RST) and tcp.ack not in syns:
                return  # the connection is open (SNR-CON-042)
            continue
        right = tcp.ack in syns and (len(syns) > 1 or tcp.seq == first.seq)
        said = f"sequence number {tcp.seq}, acknowledgment {tcp.ack}"
        expected = f"sequence number {first.seq}, acknowledgment {(offer.seq + 1) % MODULUS}"
        sentence = f"the SYN-ACK has {said}"
        yield judged(context, right, sentence, item, expected=expected, actual=said)
        if not right:
            return


def _in_syn_received(flow: Flow, context: Context) -> list[Segment]:
    """What arrived between the first SYN-ACK and what completed or ended the handshake."""
    if flow.handshake.iut is None or flow.handshake.iut_opens:
        return []
    begin = flow.handshake.iut.number
    established, reset = context.prepared.lifetime.established, context.prepared.lifetime.reset
    ends = [item.packet.number for item in (established, reset) if item is not None]
    until = min(ends, default=float("inf"))
    return [item for item in flow.arriving if begin < item.packet.number <= until]


def early_reset(flow: Flow, context: Context) -> tuple[Segment, int] | None:
    """The first thing that arrived in SYN-RECEIVED if it is a RST, and its place in the window.

    That is the octets by which it lies beyond the next expected one; None if it lies elsewhere.
    """
    offer, answer = flow.handshake.offer, flow.handshake.answer
    first = next(iter(_in_syn_received(flow, context)), None)
    if first is None or offer is None or answer is None:
        return None
    offset = nearest(first.tcp.seq - offer.seq - 1 - len(offer.payload), 0)
    inside = 0 < offset < answer.window - len(offer.payload)
    return (first, offset) if inside and is_reset(first) and first.tcp.options_ok else None


def refused_by_reset(
    flow: Flow, context: Context, item: Segment, reply: Segment | None, longest: float, wrong: str
) -> Findings:
    """Whether a RST with the number that ``item`` acknowledges answered it (section 3.10.7.1).

    A segment whose options cannot be read may be dropped before (RFC 9293 MUST-7).

    Args:
        flow: the connection.
        context: of the requirement.
        item: the segment that must be refused.
        reply: what answered it, None if nothing did.
        longest: seconds after which no answer is one too late.
        wrong: names the segment.
    """
    if not item.tcp.options_ok:
        return
    expected = f"a RST with sequence number {item.tcp.ack}"
    if reply is not None:
        met = is_reset(reply) and reply.tcp.seq == item.tcp.ack
        said = f"flags {reply.tcp.flag_names}, sequence number {reply.tcp.seq}"
        sentence = f"{wrong} was answered by {said}"
        yield judged(context, met, sentence, reply, item, expected=expected, actual=said)
    elif lasts(flow, item, longest):
        sentence = f"{wrong} was not answered"
        yield context.violated(sentence, item, expected=expected, actual="nothing")


@checker("SNR-CON-007")
def wrong_acknowledgment_of_the_syn_ack(flow: Flow, context: Context) -> Findings:
    """A wrong acknowledgment in SYN-RECEIVED is answered by a RST (RFC 9293 section 3.10.7.4)."""
    # Exercised by such a segment at the next expected sequence number.
    longest = float(context.permitted("longest_s", 0.5)) + flow.reaction
    answer, offer = flow.handshake.answer, flow.handshake.offer
    if answer is None or offer is None:
        return
    refused = None
    completing = context.prepared.lifetime.established
    doubtful = {ack.packet.number for ack in flow.acks if ack.rejected or ack.may_refuse}
    for item in _in_syn_received(flow, context):
        tcp = item.tcp
        if tcp.seq == offer.seq and not tcp.flags & (SYN | RST) and not offer.payload:
            settled = completing.time if completing is not None else flow.last_time
            early = leaving_after(flow, item, settled - item.time, lambda s: bool(s.tcp.length))
            if early is None or early.tcp.flags & SYN or early.time >= settled:
                if settled - item.time > longest:
                    yield context.holds("what was below the window completed nothing", item)
            else:
                sentence = "an acknowledgment below the window completed the handshake"
                yield context.violated(sentence, early, item, expected="no data", actual="data")
                return
        right, following = tcp.ack == (answer.seq + 1) % MODULUS, (offer.seq + 1) % MODULUS
        if tcp.flags & SYN and tcp.flags & ACK and right:
            break  # where both call, it ends the handshake (section 3.5)
        if not tcp.flags & ACK or tcp.flags & (SYN | RST) or tcp.seq != following:
            continue
        if right:
            break  # it may have been taken, whatever its options are
        if item.packet.number in doubtful:
            continue  # it may be dropped before (RFC 7323 sections 3.2 and 5.3)
        reply = leaving_after(flow, item, longest, lambda s: not s.tcp.flags & SYN)
        wrong = f"an acknowledgment of {tcp.ack} in SYN-RECEIVED"
        yield from refused_by_reset(flow, context, item, reply, longest, wrong)
        refused = item
    if refused is not None:
        yield from _outlives(flow, context, refused, longest)


def _outlives(flow: Flow, context: Context, refused: Segment, longest: float) -> Findings:
    """Whether a refused segment ended the handshake: then the right one is refused as well."""
    completing = context.prepared.lifetime.established
    opened = flow.handshake.iut
    if completing is None or opened is None or any(not packet.outgoing for packet in flow.resets):
        return
    if completing.time - opened.time > HALF_OPEN_S:
        return
    answer = leaving_after(flow, completing, longest, lambda _: True)
    if answer is not None and is_reset(answer) and answer.tcp.seq == completing.tcp.ack:
        sentence = "a wrong acknowledgment in SYN-RECEIVED ended the handshake"
        expected = "an open connection after the right one"
        yield context.violated(sentence, answer, refused, expected=expected, actual="a RST")


@checker("SNR-CON-008")
def reset_ends_a_handshake(flow: Flow, context: Context) -> Findings:
    """A RST ends SYN-RECEIVED (RFC 9293 section 3.10.7.4)."""
    # Exercised by a RST at the next expected sequence number before the handshake is complete,
    # when the SYN-ACK would have been repeated.
    answer, expected = flow.handshake.iut, Expected(flow)
    for item in _in_syn_received(flow, context):
        if not is_reset(item) or not expected.is_next(item) or answer is None:
            continue
        again = [s for s in flow.arriving if s.packet.number > item.packet.number]
        until = next((s.time for s in again if s.tcp.flags & SYN), flow.last_time)
        settled = item.time + flow.reaction
        late = [s for s in flow.leaving if settled < s.time < until and s.tcp.flags & SYN]
        if late:
            sentence = "a SYN-ACK was repeated after a RST had ended the handshake"
            yield context.violated(sentence, late[0], item, expected="none", actual="a SYN-ACK")
        elif until - answer.time > float(context.permitted("exercised_s", 3.5)):
            yield context.holds("no SYN-ACK followed the RST", item)
        return


@checker("SNR-CON-045")
def half_open_lasts_three_minutes(flow: Flow, context: Context) -> Findings:
    """A SYN-ACK is not given up within three minutes (RFC 9293 section 3.8.3, MUST-23)."""
    # Exercised by an acknowledgment shortly before, nothing but SYNs having come.
    least = float(context.permitted("least_s", 180.0))
    answer = flow.handshake.answer
    first = next((s for s in flow.leaving if s.tcp.flags & (SYN | ACK) == SYN | ACK), None)
    if answer is None or first is None or flow.handshake.iut_opens:
        return
    item = next((s for s in flow.arriving if s.tcp.flags & (SYN | ACK) != SYN), None)
    if item is None or item.tcp.flags & (SYN | RST) or item.tcp.ack != (answer.seq + 1) % MODULUS:
        return
    waited = item.time - first.time
    reply = leaving_after(flow, item, LONGEST_DELAY_S + flow.reaction, lambda _: True)
    if waited < least - NEARLY_S or reply is None or reply.tcp.flags & SYN:
        return
    refused = is_reset(reply)
    if refused and waited >= least:
        return  # it may have been given up
    how = "a RST" if refused else "an acknowledgment"
    sentence = f"an acknowledgment {waited:.0f} s after the SYN-ACK was answered by {how}"
    yield judged(
        context, not refused, sentence, reply, item, expected="an open connection", actual=how
    )


@checker("SNR-CON-009")
def text_completes_a_handshake(flow: Flow, context: Context) -> Findings:
    """Data in the segment that completes the handshake is accepted (RFC 9293 3.10.7.4)."""
    # Exercised by data in the first acceptable segment after the SYN-ACK.
    established = context.prepared.lifetime.established
    if flow.handshake.iut_opens or flow.handshake.iut is None or established is None:
        return
    number = established.packet.number
    arrival = next((item for item in flow.arrivals if item.packet.number == number), None)
    if arrival is None or not arrival.payload or not arrival.in_order:
        return
    if arrival.end > arrival.window_edge:
        return
    answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
    what = "data in the segment that completed the handshake"
    if answer.timely == "in time" and answer.reply is not None:
        yield context.holds(f"{what} was acknowledged", answer.reply, arrival)
    elif answer.timely == "late":
        expected = f"an acknowledgment up to offset {arrival.end} within {LONGEST_DELAY_S} s"
        yield context.violated(
            f"{what} was not acknowledged in time", arrival, expected=expected, actual="none"
        )


@checker("SNR-CON-033")
def syn_is_answered(flow: Flow, context: Context) -> Findings:
    """A SYN to a service is answered (RFC 9293 section 3.10.7.2)."""
    # Exercised by every first SYN to a standard service, and by its repetitions until it is open.
    standard = flow.iut[1] in STANDARD_SERVICES.values()
    syns = [s for s in flow.arriving if s.tcp.flags & (SYN | ACK | RST) == SYN]
    if not standard or not syns or flow.handshake.iut_opens or not syns[0].tcp.options_ok:
        return
    longest = float(context.permitted("longest_s", 0.5)) + flow.reaction
    ends = [item.packet.number for item in (context.prepared.lifetime.established,) if item]
    ends += [packet.number for packet in flow.resets]
    until = min(ends, default=float("inf"))
    for item in syns:
        if item.packet.number > until:
            return
        if item.tcp.seq != syns[0].tcp.seq or not item.tcp.options_ok:
            continue  # another attempt, or nothing that has to be read
        if any(0.0 < item.time - s.time < THROTTLED_S for s in flow.leaving):
            continue
        answer = leaving_after(flow, item, longest, lambda s: bool(s.tcp.flags & (SYN | RST | ACK)))
        if answer is not None and not is_reset(answer):
            yield context.holds("the SYN was answered", answer, item)
        elif answer is not None or lasts(flow, item, longest):
            refused = answer is not None
            sentence = f"a SYN to port {flow.iut[1]} was {'refused' if refused else 'not answered'}"
            actual = "a RST" if refused else "nothing"
            yield context.violated(sentence, item, expected="a SYN-ACK", actual=actual)
            return


@checker("SNR-CON-042")
def open_connection_sends_no_syn(flow: Flow, context: Context) -> Findings:
    """A SYN that has been acknowledged is not sent again (RFC 9293 section 3.10.7.3)."""
    # Exercised by every connection that has lasted longer than a SYN is repeated after.
    since, offer = flow.handshake.established, flow.handshake.offer
    if since is None or offer is None:
        return
    if len({item.tcp.seq for item in flow.arriving if item.tcp.flags & SYN}) > 1:
        return  # SYNs that contradict each other open nothing together
    opened: Segment | None = None
    for item in flow.leaving:
        tcp = item.tcp
        if item.time < since or is_reset(item):
            continue
        if not tcp.flags & SYN:
            # A listener may wait for data, and meanwhile answer what is not acceptable.
            news = tcp.length or tcp.ack != (offer.seq + 1) % MODULUS
            opened = opened or (item if news or flow.handshake.iut_opens else None)
        elif opened is not None:
            number = item.packet.number
            asked = (s.packet.number for s in flow.arriving if s.tcp.flags & SYN)
            if any(opened.packet.number < asking < number for asking in asked):
                return
            sentence = "a SYN was sent on a connection that had been opened"
            actual = f"a segment with flags {tcp.flag_names}"
            yield context.violated(sentence, item, opened, expected="no SYN", actual=actual)
            return
    if opened is not None and lasts(flow, opened, OPEN_S):
        yield context.holds("no SYN was sent on the open connection", opened)


@checker("SNR-CON-046")
def initial_numbers_differ(flow: Flow, context: Context) -> Findings:
    """Initial sequence numbers come from a clock (RFC 9293 section 3.4.1, MUST-8)."""
    # Exercised by every connection but the first.
    if flow.handshake.iut is None or flow.eldest is None or flow.alike is None:
        return
    own, first, alike = Segment(flow.handshake.iut), Segment(flow.eldest), Segment(flow.alike)
    apart = float(context.permitted("apart_s", 0.01)) + context.timing_error
    number = own.tcp.seq
    if own.time - alike.time >= apart:
        sentence = f"two connections began with {number}"
        expected = "a number that is not the same"
        yield context.violated(sentence, own, alike, expected=expected, actual=str(number))
    elif own.time - first.time >= apart:
        yield context.holds(f"a connection began with {number}, as none before it", own)
