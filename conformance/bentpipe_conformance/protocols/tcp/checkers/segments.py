"""Checkers for the fixed header of a segment (SNR-SEG)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.checkers.receiving import never_accepted
from bentpipe_conformance.protocols.tcp.codec import ACK, CWR, ECE, MODULUS, RST, SYN, nearest
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    acknowledging,
    answer_within,
    still_receiving,
)
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Reply, Segment, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import lasts, leaving_after
from bentpipe_conformance.protocols.tcp.replay.option_list import has_ip_options, offset_octet
from bentpipe_conformance.protocols.tcp.replay.order import later
from bentpipe_conformance.protocols.tcp.replay.recovery import PROMPT_S

RESERVED = 0x0E
"""The reserved bits of the octet that begins with the data offset, without that of RFC 9768."""

ACCURATE = 0x01
"""The bit of the same octet to which RFC 9768 has given a meaning."""


def reserved_bits(packet: Packet) -> int:
    """The reserved bits of a segment."""
    return offset_octet(packet) & RESERVED


@checker("SNR-SEG-001")
def impossible_offset_is_not_taken(flow: Flow, context: Context) -> Findings:
    """Data behind an impossible offset is not accepted (RFC 9293 section 3.1)."""
    # Exercised by such a segment on an open connection, once a later one is answered.
    offer = flow.handshake.offer
    for item in flow.misaligned:
        if item.packet.outgoing or offer is None:
            continue
        offset = offset_octet(item.packet) >> 4
        what = f"a segment with the data offset {offset}"
        later = [reply for reply in flow.replies if reply.packet.number > item.packet.number]
        start = nearest(item.tcp.seq - offer.seq - 1, later[0].ack if later else 0)
        taken = next((reply for reply in later if reply.ack > max(reply.limit, start)), None)
        if taken is not None:
            yield context.violated(
                f"{what} was accepted", taken, item,
                expected=f"an acknowledgment up to offset {taken.limit} at most",
                actual=f"an acknowledgment up to offset {taken.ack}",
            )  # fmt: skip
            return
        if later:
            yield context.holds(f"{what} was not accepted", later[0], item)


@checker("SNR-SEG-002")
def reserved_bits_are_sent_as_zero(flow: Flow, context: Context) -> Findings:
    """Reserved bits are sent as zero (RFC 9293 section 3.1)."""
    # Exercised by every segment of the IUT.
    wrong = next((item for item in flow.leaving if reserved_bits(item.packet)), None)
    if wrong is not None:
        actual = f"{reserved_bits(wrong.packet):#x}"
        sentence = f"a segment with flags {wrong.tcp.flag_names} has reserved bits"
        yield context.violated(sentence, wrong, expected="zero", actual=actual)
    elif flow.leaving:
        yield context.holds("the reserved bits of every segment are zero", flow.leaving[0])


def _odd_bits(segment: Segment) -> int:
    return reserved_bits(segment.packet) or segment.tcp.flags & (ECE | CWR)


@checker("SNR-SEG-003")
def reserved_bits_are_ignored(flow: Flow, context: Context) -> Findings:
    """Reserved bits that are set, and those of ECN, change nothing (RFC 9293 section 3.1)."""
    # Exercised by a SYN to a port that listens, and by data in sequence inside the window.
    for item in flow.arriving:
        if item.tcp.flags & (SYN | ACK | RST) == SYN and _odd_bits(item) and flow.listening:
            if item.tcp.options_ok:
                yield from _answered(flow, context, item)
            break
    for arrival in flow.arrivals:
        inside = arrival.in_order and arrival.end <= arrival.window_edge
        if not inside or not _odd_bits(arrival) or arrival.tcp.flags & (RST | SYN):
            continue
        if not arrival.tcp.options_ok:
            continue
        answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
        what = "data with reserved bits"
        if answer.reply is not None:  # how soon is another requirement's business
            yield context.holds(f"{what} was accepted", answer.reply, arrival)
        elif answer.timely == "late":
            expected = f"an acknowledgment up to offset {arrival.end}"
            yield context.violated(
                f"{what} was not acknowledged", arrival, expected=expected, actual="none"
            )


@checker("SNR-SEG-008")
def ecn_bits_are_not_reflected(flow: Flow, context: Context) -> Findings:
    """A SYN-ACK has CWR never and ECE where a SYN asks for ECN (RFC 3168 section 6.1.1)."""
    # Exercised by a SYN-ACK that answers a SYN with ECE or CWR, but not by accurate ECN.
    syns = [item for item in flow.arriving if item.tcp.flags & (SYN | ACK) == SYN]
    asked = [item for item in syns if item.tcp.flags & (ECE | CWR)]
    if (
        flow.handshake.iut_opens
        or not asked
        or any(offset_octet(s.packet) & ACCURATE for s in syns)
    ):
        return
    accepts = any(item.tcp.flags & ECE and item.tcp.flags & CWR for item in asked)
    permitted = ECE if accepts else 0
    for item in later(flow.leaving, asked[0].packet):
        if item.tcp.flags & (SYN | ACK) == SYN | ACK:
            bits = item.tcp.flags & (ECE | CWR)
            yield judged(
                context, not bits & ~permitted, "a SYN with bits of ECN was answered", item,
                asked[0], expected="ECE alone or neither" if accepts else "neither ECE nor CWR",
                actual=f"a SYN-ACK with flags {item.tcp.flag_names}",
            )  # fmt: skip


@checker("SNR-SEG-007")
def options_of_ip_are_ignored(flow: Flow, context: Context) -> Findings:
    """Data in a packet with options of IP is accepted (RFC 9293 section 3.9.2.1, MUST-50)."""
    # Exercised by such data in sequence, inside the window.
    for arrival in still_receiving(flow):
        if not has_ip_options(arrival.packet) or not arrival.in_order:
            continue
        if arrival.end > arrival.window_edge:
            continue
        answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
        if answer.reply is not None:  # how soon is another requirement's business
            yield context.holds("data behind options of IP was accepted", answer.reply, arrival)
        elif answer.timely == "late":
            sentence = "data behind options of IP was not acknowledged"
            expected = f"an acknowledgment up to offset {arrival.end}"
            yield context.violated(sentence, arrival, expected=expected, actual="none")


@checker("SNR-SEG-004")
def segment_that_acknowledges_the_future_is_dropped(flow: Flow, context: Context) -> Findings:
    """A segment that acknowledges what was never sent is dropped (RFC 9293 section 3.10.7.4)."""
    # Exercised by new data in such a segment, once an acknowledgment follows.
    beyond = {ack.packet.number for ack in flow.acks if ack.beyond}

    def refused(arrival: Arrival) -> bool:
        return arrival.packet.number in beyond and arrival.end > arrival.expected

    what = "acknowledging what was never sent"
    yield from never_accepted(flow, context, refused, what, "the segment dropped")


@checker("SNR-SEG-005")
def data_with_an_old_acknowledgment_is_accepted(flow: Flow, context: Context) -> Findings:
    """Data that acknowledges less than data before it is accepted (RFC 9293 section 3.10.7.4)."""
    # Exercised by data in sequence, inside the window, that acknowledges less than SND.UNA.
    ancient: dict[int, int] = {}
    widest = flow.handshake.offer.window if flow.handshake.offer is not None else 0
    for ack in flow.acks:
        if ack.ancient:
            if ack.una - ack.ack <= widest:  # else RFC 5961 section 5.2 lets it be dropped
                ancient[ack.packet.number] = ack.ack
        elif ack.acceptable:
            widest = max(widest, ack.window)
    for arrival in still_receiving(flow) if ancient else ():
        number = ancient.get(arrival.packet.number)
        if number is None or not arrival.in_order or arrival.end > arrival.window_edge:
            continue
        answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
        what = f"data in a segment that acknowledges {number}, less than before,"
        if answer.timely == "in time" and answer.reply is not None:
            yield context.holds(f"{what} was acknowledged", answer.reply, arrival)
        elif answer.timely == "late":
            expected = f"an acknowledgment of {arrival.end} within {LONGEST_DELAY_S} s"
            sentence = f"{what} was not acknowledged"
            yield context.violated(sentence, arrival, expected=expected, actual="none in time")
            return


def _answered(flow: Flow, context: Context, syn: Segment) -> Findings:
    """Whether the first SYN of a flow, with reserved bits, drew a SYN-ACK."""
    if syn is not flow.arriving[0]:
        return
    wanted = (syn.tcp.seq + 1) % MODULUS
    longest = LONGEST_DELAY_S + flow.reaction
    answer = leaving_after(flow, syn, longest, lambda _: True)
    if answer is not None or lasts(flow, syn, longest):
        met = answer is not None and bool(answer.tcp.flags & SYN) and answer.tcp.ack == wanted
        where = [syn] if answer is None else [answer, syn]
        yield judged(
            context, met, f"a SYN with reserved bits was {'' if met else 'not '}answered", *where,
            expected="a SYN-ACK", actual="none" if answer is None else answer.tcp.flag_names,
        )  # fmt: skip


@checker("SNR-SEG-006")
def acknowledgments_carry_the_next_number(flow: Flow, context: Context) -> Findings:
    """An acknowledgment carries SND.NXT (RFC 9293 section 3.10.7.4)."""
    # Exercised by every segment without data that answers an arrival once something was sent, while
    # nothing since the last full acknowledgment may have moved SND.NXT back.
    first = flow.handshake.answer
    if first is None or first.size:
        return
    highest, doubtful, arrived, answered = 0, False, 0.0, False
    latest: Ack | None = None
    for event in flow.events:
        if isinstance(event, Ack):
            arrived, answered = event.time, False
            if event.acceptable:
                latest = event
                doubtful = doubtful and event.ack < highest
            else:
                doubtful = doubtful or event.may_heed
        elif isinstance(event, Sent):
            doubtful = doubtful or event.retransmission or (event.timed and event.payload <= 1)
            highest = max(highest, event.end)
        elif isinstance(event, Reply) and not event.tcp.length and not event.tcp.flags & SYN:
            if latest is None or doubtful or latest.window_edge < highest or not latest.window:
                continue
            if event.time - arrived > flow.reaction or not highest:
                continue
            at = nearest(event.tcp.seq - first.seq - 1, highest)
            before, answered = answered, True
            apart = before or event.time - arrived > PROMPT_S or event.ack < event.expected
            if at == highest - 1 and apart:
                continue  # a keep-alive (section 3.8.4), whose timer met an arrival
            sentence = f"an acknowledgment has the number of offset {at}"
            yield judged(
                context, at == highest, sentence, event, latest,
                expected=f"that of offset {highest}", actual=f"that of offset {at}",
            )  # fmt: skip
            if at != highest:
                return
