"""Checkers for the use of TCP options (SNR-OPT)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.claims import carries
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, Tcp
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    acknowledging,
    answer_within,
)
from bentpipe_conformance.protocols.tcp.replay.events import Segment, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import (
    DEFAULT_MSS,
    DEFAULT_MSS_IPV6,
    MAX_WINDOW_SHIFT,
    MOST_OPTIONS,
    Flow,
)
from bentpipe_conformance.protocols.tcp.replay.handshake import ODD_MSS
from bentpipe_conformance.protocols.tcp.replay.lifetime import is_reset, least_end
from bentpipe_conformance.protocols.tcp.replay.option_list import (
    options_length,
    padding,
    walk_options,
)
from bentpipe_conformance.protocols.tcp.replay.order import later
from bentpipe_conformance.protocols.tcp.replay.users import is_own_reset

ETHERNET_MTU = 1500
"""A longer packet on a link of this size shows the sender's segmentation offload."""

HEADERS = 40
"""Octets of IPv4 and TCP headers without options."""

UNASSIGNED_KINDS = frozenset({*range(35, 69), *range(80, 172), *range(175, 253)})
"""Option kinds the IANA has not assigned, so that no implementation knows them."""

_ANSWERED_S = 1.0
"""Seconds a live implementation needs at most to answer one of several segments."""


def _unknown_kinds(packet: Packet) -> list[int]:
    """The unassigned option kinds a segment carries, lowest first."""
    return sorted(UNASSIGNED_KINDS.intersection(kind for kind, _, _ in walk_options(packet)))


def _never(
    flow: Flow, context: Context, name: str, situation: str, wrong: Callable[[Tcp], bool]
) -> Findings:
    """One finding: no segment of the IUT is ``wrong``, or the first that is."""
    last = None
    for last in flow.leaving:
        if wrong(last.tcp):
            sentence = f"a segment carries {name} {situation}"
            actual = f"{name} in a segment with flags {last.tcp.flag_names}"
            yield context.violated(sentence, last, expected=f"no {name} {situation}", actual=actual)
            return
    if last is not None:
        yield context.holds(f"no segment carries {name} {situation}", last)


def _only_if_offered(
    flow: Flow, context: Context, attribute: str, name: str, them: str = "it"
) -> Findings:
    """Whether an option that the answered SYN does not carry is left out in every segment."""
    handshake = flow.handshake
    if handshake.tester is None or handshake.iut is None or handshake.iut_opens:
        return
    if not handshake.offered(attribute):
        situation = f"though the SYN does not offer {them}"
        yield from _never(flow, context, name, situation, lambda tcp: carries(tcp, attribute))


@checker("SNR-OPT-001")
def sack_permitted_only_if_offered(flow: Flow, context: Context) -> Findings:
    """A SYN-ACK has SACK-permitted only if the SYN has it (RFC 2018 section 2)."""
    # Exercised by every SYN without SACK-permitted that is answered.
    yield from _only_if_offered(flow, context, "sack_permitted", "SACK-permitted")


@checker("SNR-OPT-002")
def window_scale_only_if_offered(flow: Flow, context: Context) -> Findings:
    """A SYN-ACK has Window Scale only if the SYN has it (RFC 7323 section 2.2)."""
    # Exercised by every SYN without Window Scale that is answered.
    yield from _only_if_offered(flow, context, "window_scale", "Window Scale")


@checker("SNR-OPT-003")
def timestamps_only_if_offered(flow: Flow, context: Context) -> Findings:
    """Timestamps are sent only if the SYN carries them (RFC 7323 section 3.2)."""
    # Exercised by every SYN without Timestamps that is answered; the SYN-ACK's answer counts too.
    yield from _only_if_offered(flow, context, "tsval", "Timestamps", "them")
    handshake, since = flow.handshake, flow.handshake.established
    if not handshake.iut_opens or handshake.offered("tsval") or since is None:
        return
    later = [s for s in flow.leaving if s.time > since + flow.reaction and not s.tcp.flags & SYN]
    wrong = next((s for s in later if s.tcp.tsval is not None), None)
    if wrong is not None:
        sentence = "a segment carries Timestamps though the SYN-ACK does not"
        expected = "no Timestamps after the handshake"
        yield context.violated(sentence, wrong, expected=expected, actual="Timestamps")
    elif later:
        yield context.holds("no segment carries Timestamps after a SYN-ACK without", later[0])


@checker("SNR-OPT-004")
def timestamps_in_every_segment(flow: Flow, context: Context) -> Findings:
    """Once negotiated, Timestamps are in every segment but a RST (RFC 7323 section 3.2)."""
    # Exercised by every segment after a handshake that negotiated timestamps.
    if not flow.handshake.timestamps:
        return
    last = None
    for segment in flow.leaving:
        if segment.tcp.flags & (SYN | RST):
            continue
        if segment.tcp.tsval is None:
            yield context.violated(
                "a segment lacks the Timestamps option that was negotiated",
                segment,
                expected="Timestamps in every segment but a RST",
                actual=f"none in a segment with flags {segment.tcp.flag_names}",
            )
            return
        last = segment
    if last is not None:
        yield context.holds("every segment carries Timestamps", last)


@checker("SNR-OPT-005")
def no_sack_without_negotiation(flow: Flow, context: Context) -> Findings:
    """SACK options are not sent to a peer that has not permitted them (RFC 2018 section 4)."""
    # Exercised once data is held out of sequence on a connection without SACK.
    handshake = flow.handshake
    if handshake.tester is None or handshake.offered("sack_permitted"):
        return
    if any(reply.held or reply.blocks for reply in flow.replies):
        situation = "without SACK-permitted from the peer"
        yield from _never(flow, context, "a SACK option", situation, lambda tcp: bool(tcp.sack))


@checker("SNR-OPT-006")
def handshake_options_only_in_syn(flow: Flow, context: Context) -> Findings:
    """Handshake options are sent with SYN only (RFC 9293 section 3.2, RFC 7323 section 2.2)."""
    # Exercised by every segment without SYN.
    if not flow.replies:
        return

    def wrong(tcp: Tcp) -> bool:
        present = tcp.mss is not None or tcp.window_scale is not None or tcp.sack_permitted
        return present and not tcp.flags & SYN

    yield from _never(flow, context, "a handshake option", "in a segment without SYN", wrong)


@checker("SNR-OPT-007")
def shift_of_at_most_14(flow: Flow, context: Context) -> Findings:
    """The window shift sent is at most 14 (RFC 7323 section 2.3)."""
    # Exercised by every Window Scale option the IUT sends.
    for segment in flow.leaving:
        shift = segment.tcp.window_scale
        if shift is not None and segment.tcp.flags & SYN:
            yield judged(
                context,
                shift <= MAX_WINDOW_SHIFT,
                f"the Window Scale option names a shift of {shift}",
                segment,
                expected=f"a shift of at most {MAX_WINDOW_SHIFT}",
                actual=f"a shift of {shift}",
            )


@checker("SNR-OPT-008")
def received_shift_counts_as_14(flow: Flow, context: Context) -> Findings:
    """A window shift received above 14 is used as 14 (RFC 7323 section 2.3)."""
    # Exercised by a sender that fills more than half of a window scaled by 14.
    offer = flow.handshake.offer
    shift = offer.window_scale or 0 if offer is not None and flow.handshake.window_scale else 0
    if shift > MAX_WINDOW_SHIFT:
        yield from _within_window(flow, context, 0, f"a shift of {shift} taken as 14")


@checker("SNR-OPT-015")
def window_scale_outside_handshake(flow: Flow, context: Context) -> Findings:
    """Window Scale without SYN is ignored (RFC 7323 section 2.2)."""
    # Exercised by a sender that fills more than half of the window after such an option.
    for segment in flow.arriving:
        if segment.tcp.window_scale is not None and not segment.tcp.flags & SYN:
            known = "the Window Scale option of a segment without SYN ignored"
            yield from _within_window(flow, context, segment.packet.number, known)
            return


def _within_window(flow: Flow, context: Context, after: int, how: str) -> Findings:
    filled = None
    for sent in flow.sent:
        if sent.packet.number <= after:
            continue
        # One octet beyond a closed window is a probe (RFC 9293 section 3.8.6.1).
        if sent.end > sent.window_edge + 1:
            yield context.violated(
                f"octets up to {sent.end} were sent into a window that ends at {sent.window_edge}",
                sent,
                expected=f"nothing beyond offset {sent.window_edge}, with {how}",
                actual=f"a segment up to offset {sent.end}",
            )
            return
        if sent.outstanding > (sent.window_edge - sent.una) // 2 > 0:
            filled = sent
    if filled is not None:
        yield context.holds(f"the window was used and kept, with {how}", filled)


def _segment_sizes(flow: Flow, context: Context, limit: int, what: str) -> Findings:
    data = [sent for sent in flow.sent if sent.payload]
    long = (sent for sent in data if sent.payload > limit - MOST_OPTIONS)
    for sent in long:
        size = sent.payload + _options(sent)
        if size <= limit:
            continue
        if _is_offloaded(flow, data, limit):
            yield context.unclear("the capture shows segments before segmentation offload", sent)
        else:
            yield context.violated(
                f"{sent.payload} octets of data and {size - sent.payload} of options were sent",
                sent,
                expected=f"at most {limit} octets together, {what}",
                actual=f"{size} octets",
            )
        return
    if data:
        largest = max(data, key=lambda sent: sent.payload)
        yield context.holds(f"no segment exceeds {limit} octets, {what}", largest)


def _is_offloaded(flow: Flow, data: Iterable[Sent], limit: int) -> bool:
    """Whether a capture of the sender's own shows segments before its network card cuts them."""
    return any(
        sent.payload + _options(sent) + HEADERS > ETHERNET_MTU
        or (sent.payload > limit and sent.payload % (limit - _options(sent) or 1) == 0)
        for sent in data
        if (sent.tcp.src, sent.tcp.seq, sent.payload) not in flow.whole
    )


def _options(sent: Sent) -> int:
    """Octets of options, padding included."""
    return options_length(sent.packet)


@checker("SNR-OPT-009")
def segments_within_mss(flow: Flow, context: Context) -> Findings:
    """Data and options keep to the peer's MSS (RFC 9293 section 3.7.1, MUST-16)."""
    # Exercised by every data segment to a peer that named its MSS.
    offer = flow.handshake.offer
    if offer is not None and offer.mss:
        limit = max(offer.mss, context.permitted("smallest_octets", 0))
        yield from _segment_sizes(flow, context, limit, f"the peer's MSS being {offer.mss}")


@checker("SNR-OPT-010")
def default_mss(flow: Flow, context: Context) -> Findings:
    """Without an MSS option the limit is 536 octets (RFC 9293 section 3.7.1, MUST-15)."""
    # Exercised by every data segment to a peer that named no MSS.
    offer = flow.handshake.offer
    if offer is not None and offer.mss is None:
        limit = DEFAULT_MSS_IPV6 if ":" in offer.src else DEFAULT_MSS
        yield from _segment_sizes(flow, context, limit, "the peer having named no MSS")


@checker("SNR-OPT-011")
def tiny_mss(flow: Flow, context: Context) -> Findings:
    """No MSS option crashes or hangs the implementation (RFC 9293 section 3.7.1)."""
    # Exercised by an accepted connection with an MSS option below 64 octets.
    offer, answer = flow.handshake.offer, flow.handshake.iut
    if offer is None or offer.mss is None or answer is None:
        return
    if offer.mss < ODD_MSS:
        yield from _survives(flow, context, Segment(answer), f"an MSS option of {offer.mss}")


@checker("SNR-OPT-012")
def unknown_options_in_syn(flow: Flow, context: Context) -> Findings:
    """Unknown options in a SYN are ignored (RFC 9293 section 3.1, MUST-6)."""
    # Exercised by a SYN with unassigned options to a port that accepts connections later.
    syns = [item for item in flow.arriving if item.tcp.flags & SYN and item.tcp.options_ok]
    if not syns or not flow.listening or flow.handshake.iut_opens:
        return
    unknown = _unknown_kinds(syns[0].packet)
    if not unknown:
        return
    answer, refusal = flow.handshake.iut, flow.own_reset
    expected = "a SYN-ACK, as to other SYNs to this port"
    if answer is not None:
        yield context.holds(f"the SYN with option {unknown[0]} was accepted", Segment(answer))
    elif refusal is not None:
        sentence = f"a SYN with the unknown option {unknown[0]} was refused"
        yield context.violated(sentence, refusal, syns[0], expected=expected, actual="a RST")
    elif syns[-1].time - syns[0].time > _ANSWERED_S + context.timing_error:
        sentence = f"a SYN with the unknown option {unknown[0]} was not answered"
        actual = f"nothing, though the SYN came {len(syns)} times"
        yield context.violated(sentence, syns[0], expected=expected, actual=actual)


def _data_is_accepted(flow: Flow, context: Context, odd: Callable[[Packet], str]) -> Findings:
    """Acceptable data in order is accepted although it carries something ``odd``."""
    for arrival in flow.arrivals:
        if not arrival.in_order or arrival.end > arrival.window_edge:
            continue
        what = odd(arrival.packet)
        if not what or not arrival.tcp.options_ok:
            continue
        answer = answer_within(flow, arrival, LONGEST_DELAY_S, acknowledging(arrival.end))
        if arrival.packet.number > flow.first_reset:
            return  # the connection is over, whatever the segment carries
        refusal = flow.own_reset
        if answer.timely == "in time" and answer.reply is not None:
            yield context.holds(f"data with {what} was accepted", answer.reply, arrival)
        elif answer.reply is None and refusal is not None:
            if is_own_reset(flow, refusal.packet):
                sentence = f"data with {what} reset the connection"
                where = refusal, arrival
                expected = "an acknowledgment"
                yield context.violated(sentence, *where, expected=expected, actual="a RST")
        elif answer.timely == "late":
            sentence = f"data with {what} was not acknowledged in time"
            expected = f"an acknowledgment up to offset {arrival.end} within {LONGEST_DELAY_S} s"
            yield context.violated(sentence, arrival, expected=expected, actual="none")


@checker("SNR-OPT-013")
def unknown_options_in_data(flow: Flow, context: Context) -> Findings:
    """Unknown options in data are ignored (RFC 9293 section 3.1, MUST-5 and MUST-6)."""
    # Exercised by acceptable in-order data with unassigned options.

    def odd(packet: Packet) -> str:
        unknown = _unknown_kinds(packet)
        return f"the unknown option {unknown[0]}" if unknown else ""

    yield from _data_is_accepted(flow, context, odd)


@checker("SNR-OPT-018")
def end_of_option_list(flow: Flow, context: Context) -> Findings:
    """The End of Option List ends the options (RFC 9293 section 3.1, MUST-4)."""
    # Exercised by acceptable in-order data whose options end before the header does.
    yield from _data_is_accepted(
        flow, context, lambda packet: "an End of Option List" if padding(packet) else ""
    )


@checker("SNR-OPT-014")
def illegal_option_length(flow: Flow, context: Context) -> Findings:
    """An illegal option length crashes or hangs nothing (RFC 9293 section 3.1, MUST-7)."""
    # Exercised by every segment whose option list cannot be walked to its end.
    for segment in flow.arriving:
        if not segment.tcp.options_ok:
            yield from _survives(flow, context, segment, "an illegal option length")


@remembered
def _behind_the_end(flow: Flow) -> frozenset[int]:
    """Numbers of the packets with text beyond the peer's own FIN alone, which may be ignored.

    RFC 9293 section 3.10.7.4, seventh.
    """
    end = least_end(flow)
    return frozenset(item.packet.number for item in flow.arrivals if item.start >= end)


def _survives(flow: Flow, context: Context, odd: Segment, what: str) -> Findings:
    """Whether the IUT still says anything on the connection after ``odd``."""
    answer = next(later(flow.leaving, odd.packet), None)
    if answer is not None:
        yield context.holds(f"the implementation lives after {what}", answer, odd)
        return
    ignored, following = _behind_the_end(flow), later(flow.arriving, odd.packet)
    handshake = flow.handshake
    if handshake.iut_opens:
        # Without SYN and RST nothing is answered before there is a SYN (section 3.10.7.3).
        syn = math.inf if handshake.tester is None else handshake.tester.number
        following = (item for item in following if item.packet.number >= syn)
    unanswered = [s for s in following if s.tcp.length and s.packet.number not in ignored]
    if unanswered and unanswered[-1].time - unanswered[0].time > _ANSWERED_S + context.timing_error:
        sentence = f"the implementation fell silent after {what}"
        expected = "an acknowledgment or a RST"
        actual = f"{len(unanswered)} later segments were not answered"
        yield context.violated(sentence, odd, unanswered[0], expected=expected, actual=actual)


@checker("SNR-OPT-016")
def larger_mss_enlarges_nothing(flow: Flow, context: Context) -> Findings:
    """Packets stay within the own link's size (RFC 9293 section 3.7.1, MUST-16)."""
    # Exercised by every data segment to a peer whose MSS is larger than that.
    offer, answer = flow.handshake.offer, flow.handshake.answer
    if offer is None or answer is None or offer.mss is None:
        return
    own = max(answer.mss or DEFAULT_MSS, ETHERNET_MTU - 40)
    if offer.mss > own:
        data = [sent for sent in flow.sent if sent.payload]
        if data:
            largest = max(data, key=lambda sent: sent.payload + _options(sent))
            size = largest.payload + _options(largest)
            sentence = f"{size} octets of data and options were sent"
            yield judged(
                context, size <= own, sentence, largest,
                expected=f"at most {own} octets, which the own link carries", actual=f"{size}",
            )  # fmt: skip


@checker("SNR-OPT-017")
def syn_ack_names_an_mss(flow: Flow, context: Context) -> Findings:
    """A SYN-ACK carries the MSS option (RFC 9293 section 3.7.1, SHLD-5)."""
    # Exercised by every SYN-ACK.
    answer = flow.handshake.answer
    if answer is None or flow.handshake.iut is None or flow.handshake.iut_opens:
        return
    mss = "an MSS" if answer.mss is not None else "no MSS"
    sentence = f"the SYN-ACK names {mss}"
    where = Segment(flow.handshake.iut)
    met = answer.mss is not None
    yield judged(context, met, sentence, where, expected="an MSS option", actual=mss)


@checker("SNR-OPT-019")
def repeated_syn_ack_negotiates_the_same(flow: Flow, context: Context) -> Findings:
    """The SYN-ACKs of a connection carry the same options (RFC 7323 section 2.2)."""
    # Exercised by every SYN-ACK but the first, where all SYNs that arrived are the same.
    if flow.handshake.iut_opens:
        return

    def offer(tcp: Tcp) -> tuple[int | None, int | None, bool, bool]:
        return tcp.mss, tcp.window_scale, bool(tcp.sack_permitted), tcp.tsval is not None

    syns = {(s.tcp.seq, offer(s.tcp)) for s in flow.arriving if s.tcp.flags & SYN}
    answers = [s for s in flow.leaving if s.tcp.flags & (SYN | ACK) == SYN | ACK]
    if len(syns) != 1 or not answers:
        return
    names = "MSS", "Window Scale", "SACK-permitted", "Timestamps"
    first, *others = answers
    for item in others:
        both = zip(names, offer(first.tcp), offer(item.tcp), strict=True)
        changed = [name for name, one, other in both if one != other]
        yield judged(
            context, not changed,
            f"a repeated SYN-ACK differs in {' and '.join(changed)}" if changed
            else "a repeated SYN-ACK carried the same options", item, first,
            expected="the options of the first SYN-ACK", actual="others" if changed else "them",
        )  # fmt: skip


@checker("SNR-OPT-020")
def window_of_a_syn_is_not_scaled(flow: Flow, context: Context) -> Findings:
    """The window of a SYN is not scaled (RFC 7323 section 2.2)."""
    # Exercised by every SYN or SYN-ACK that is sent again.
    for first, again in pairwise(item for item in flow.leaving if item.tcp.flags & SYN):
        less = again.tcp.window < first.tcp.window
        if is_reset(first) or is_reset(again) or first.tcp.seq != again.tcp.seq:
            continue
        yield judged(
            context, not less,
            f"a SYN offered {first.tcp.window} octets, its repetition {again.tcp.window}",
            again, first,
            expected="no less, as the window of a SYN is not scaled",
            actual=f"{again.tcp.window} octets",
        )  # fmt: skip


@checker("SNR-OPT-021")
def crossed_syn_is_offered_no_more(flow: Flow, context: Context) -> Findings:
    """A SYN that crosses is answered with what it offers (RFC 7323 sections 2.2 and 3.2)."""
    # Exercised by every SYN-ACK of a caller before which no SYN with one of the options came.
    answers = [s for s in flow.leaving if s.tcp.flags & (SYN | ACK) == SYN | ACK]
    if not flow.handshake.iut_opens:
        return
    for item in answers:
        number = item.packet.number
        syns = [s.tcp for s in flow.arriving if s.tcp.flags & SYN and s.packet.number < number]
        if not syns or not all(syn.options_ok for syn in syns):
            continue
        for attribute, name in (("window_scale", "Window Scale"), ("tsval", "Timestamps")):
            if any(carries(syn, attribute) for syn in syns):
                continue
            more = carries(item.tcp, attribute)
            sentence = f"a SYN that crossed offers no {name}, its answer {name if more else 'none'}"
            yield judged(
                context, not more, sentence, item,
                expected=f"no {name}", actual=name if more else "none",
            )  # fmt: skip
