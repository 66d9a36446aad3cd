"""Checkers for segments on the wire (RWBP-WF, section 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bentpipe_conformance.engine.context import until_violated
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, judged, rule
from bentpipe_conformance.protocols.rwbp.checkers.going_on import SETTLED_S, taken, unasked
from bentpipe_conformance.protocols.rwbp.checkers.waiting import guessed
from bentpipe_conformance.protocols.rwbp.codec import (
    MSS,
    SACK,
    SACK_PERMITTED,
    TIMESTAMPS,
    WINDOW_SCALE,
    Rwbp,
)
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.events import Ack, Arrival, Segment, Sent, Why
from bentpipe_conformance.protocols.rwbp.replay.flow import DEFAULT_MSS, Flow
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN, URG
from bentpipe_conformance.protocols.tcp.replay.option_list import option_octets
from bentpipe_conformance.protocols.tcp.replay.stream import Stream

LENGTHS = {
    MSS: (2,), WINDOW_SCALE: (1,), SACK_PERMITTED: (0,), SACK: (8, 16, 24, 32), TIMESTAMPS: (8,),
}  # fmt: skip
"""Octets behind the length of the options that TCP knows."""

MANY = 10
"""So many segments of one size show how they are cut."""

SMALLEST_MSS = 48
"""An MSS option below counts as this (section 5.2)."""


@rule("RWBP-WF-001", once=True)
def tcp_on_the_wire(flow: Flow, context: Context) -> Findings:
    """Segments are well formed, and what is not is discarded without an answer (section 5.1)."""
    # Exercised by every segment that is sent, and by malformed ones and wrong checksums.
    for own in flow.leaving:
        if own.tcp.malformed or not own.tcp.checksum_ok:
            why = "malformed" if own.tcp.malformed else "with a wrong checksum"
            yield context.violated(
                "a segment was sent", own, expected="the header of TCP and its checksum", actual=why
            )  # fmt: skip
    for odd in flow.damaged:
        yield from _discarded(flow, context, odd)
    for reply in flow.replies if flow.damaged and not flow.slack else ():
        if reply.packet.number > flow.damaged[0].packet.number and reply.ack > reply.expected:
            yield context.violated(
                "a malformed or damaged segment was taken", reply, flow.damaged[0],
                expected=f"octets up to {reply.expected}", actual=f"up to {reply.ack}",
            )  # fmt: skip
    if flow.leaving:
        yield context.holds("the segments that were sent are those of TCP", flow.leaving[-1])


def _discarded(flow: Flow, context: Context, odd: Segment) -> Iterator[Finding]:
    what = "malformed" if odd.tcp.malformed else "of a wrong checksum"
    if not flow.arriving and not flow.opening.iut_calls:
        answer: Segment | None = next(iter(flow.leaving), None)
    elif not flow.agreed:
        return
    else:
        answer = unasked(flow, context, odd)
    if answer is not None:
        yield context.violated(
            f"a segment that is {what} was answered", answer, odd, expected="nothing",
            actual=f"flags {answer.tcp.flag_names}",
        )  # fmt: skip
    else:
        yield context.holds(f"a segment that is {what} was not answered", odd)


@rule("RWBP-WF-002", agreed=True, once=True)
def numbers_count_octets(flow: Flow, context: Context) -> Findings:
    """Octets, SYN and FIN have one number each, modulo 2^32 (section 5.1)."""
    # Exercised by every SYN-ACK, all data and every FIN; above all where the numbers wrap.
    offer, answer = flow.opening.theirs[0], flow.opening.own[0]
    if not flow.opening.iut_calls:
        wanted = (offer.tcp.seq + 1) % MODULUS
        yield judged(
            context, answer.tcp.ack == wanted, "the SYN was acknowledged", answer, offer,
            expected=str(wanted), actual=str(answer.tcp.ack),
        )  # fmt: skip
    for sent in flow.sent:
        if sent.why is Why.BEYOND:
            yield context.violated(
                f"{sent.span} was sent", sent, expected=f"the next number, {sent.nxt}",
                actual=str(sent.start),
            )  # fmt: skip
        elif sent.tcp.seq + sent.tcp.length >= MODULUS:
            yield context.holds("data was sent across the wrap of the numbers", sent)
    known = guessed(flow, context)
    for reply in flow.replies:
        if reply.ack > reply.expected and not flow.slack and reply.time < known:
            yield context.violated(
                f"octets up to {reply.ack} were acknowledged", reply,
                expected=f"up to {reply.expected}, SYN and FIN counting one each",
                actual=str(reply.ack),
            )  # fmt: skip
    for arrival in flow.arrivals:
        reply_to = arrival.answer
        if reply_to is None or flow.slack or not flow.leaves_at_once(context.ics):
            continue
        if arrival.expected_after == arrival.expected:
            continue
        yield judged(
            context, reply_to.ack == reply_to.expected, f"{arrival.span} was acknowledged",
            reply_to, arrival, expected=str(reply_to.expected), actual=str(reply_to.ack),
        )  # fmt: skip


@rule("RWBP-WF-003", agreed=True, once=True)
def data_without_options(flow: Flow, context: Context) -> Findings:
    """Segments with data, FIN or RST have no options (section 5.3)."""
    # Exercised by every such segment; above all while runs are held.
    for own in flow.leaving:
        tcp = own.tcp
        if not tcp.flags & SYN and (tcp.size or tcp.flags & (FIN | RST)):
            octets = len(option_octets(own.packet))
            yield judged(
                context, not octets, "a segment with data, FIN or RST was sent", own,
                expected="no options", actual=f"{octets} octets of options",
            )  # fmt: skip


@rule("RWBP-WF-004", agreed=True, once=True)
def acknowledgments_with_sack_only(flow: Flow, context: Context) -> Findings:
    """Pure acknowledgments have one SACK option at most, and padding (section 5.3)."""
    # Exercised by every pure acknowledgment.
    for reply in flow.replies:
        if reply.pure:
            kinds = [kind for kind, _ in reply.tcp.options]
            yield judged(
                context, kinds in ([], [SACK]), "a pure acknowledgment was sent", reply,
                expected="at most one SACK option",
                actual=f"options of kinds {', '.join(map(str, kinds))}",
            )  # fmt: skip


def _odd_options(tcp: Rwbp) -> bool:
    """Whether a segment has options to be ignored, several of a kind, or SACK beside data."""
    kinds = [kind for kind, _ in tcp.options]
    own = len(tcp.rwbp) if tcp.flags & SYN else 0
    strange = sum(kind not in LENGTHS for kind in kinds) > own
    wrong = any(len(value) not in LENGTHS.get(kind, (len(value),)) for kind, value in tcp.options)
    beside = bool(tcp.sack) and bool(tcp.size)
    return strange or wrong or beside or len(set(kinds)) < len(kinds)


@rule("RWBP-WF-005", agreed=True)
def odd_options_are_ignored(flow: Flow, context: Context) -> Findings:
    """Unknown options and those of a wrong length are ignored, the first of several counts."""
    # Exercised by such options, and by SACK options in segments with data.
    syn = flow.opening.theirs[0]
    if _odd_options(syn.tcp) and flow.sent:
        bound = _largest(flow)
        over = next((sent for sent in flow.sent if sent.payload > bound), None)
        yield judged(
            context, over is None, "odd options in a SYN were passed over",
            over or flow.sent[0], syn, expected=f"segments of {bound} octets at most",
            actual=f"{over.payload} octets" if over is not None else "",
        )  # fmt: skip
        sizes = {sent.payload for sent in flow.sent if sent.payload}
        largest = max(sizes, default=0)
        alike = len(sizes) == 1 and len(flow.sent) >= MANY and flow.service == "chargen"
        if over is None and alike and largest < flow.sender.smss:
            yield context.violated(
                "odd options in a SYN were heeded", flow.sent[0], syn,
                expected=f"segments of {flow.sender.smss} octets", actual=f"{largest} octets",
            )  # fmt: skip
    odd = [i for i in flow.arriving if not i.tcp.flags & SYN and _odd_options(i.tcp)]
    yield from taken(flow, context, odd, "odd options")


def _largest(flow: Flow) -> int:
    """SMSS as far as the peer's SYN bounds it (section 5.2)."""
    syn = flow.opening.theirs[0].tcp
    mss = DEFAULT_MSS if syn.mss is None else max(SMALLEST_MSS, syn.mss)
    return min(mss, flow.sender.unit)


@rule("RWBP-WF-006", agreed=True, once=True)
def no_larger_than_agreed(flow: Flow, context: Context) -> Findings:
    """No segment is larger than the peer's MSS and unit (section 5.2)."""
    # Exercised by every segment as large as that.
    bound = _largest(flow)
    for sent in flow.sent:
        if sent.payload > bound or sent.payload == flow.sender.smss:
            yield judged(
                context, sent.payload <= bound, f"{sent.payload} octets were sent", sent,
                expected=f"at most {bound}", actual=str(sent.payload),
            )  # fmt: skip


@rule("RWBP-WF-007", at_once=True, once=True)
def cut_when_it_leaves(flow: Flow, context: Context) -> Findings:
    """A new segment has SMSS octets or all that wait, and does not wait for more (section 5.2)."""
    # Exercised by new data where it is known how much waits, above all less than a segment
    # while other data is outstanding.
    yield from _cut(flow, context)
    for stall in flow.sender.stalls:
        # What waits for room that it does not need violates RWBP-FC-003.
        room = stall.edge - stall.nxt
        if stall.octets < flow.sender.smss <= room and not stall.losses:
            yield context.violated(
                f"{stall.octets} octets were held back", stall.since,
                expected="what waits to be sent at once, however little it is",
                actual=f"nothing for {stall.until - stall.since.time:.2f} s",
            )  # fmt: skip


def _cut(flow: Flow, context: Context) -> Iterator[Finding]:
    smss = flow.sender.smss
    for sent in flow.sent:
        if sent.why is not Why.NEW or sent.available is None or not sent.payload:
            continue
        if sent.end - sent.una > flow.sender.buffer and sent.available == math.inf:
            continue  # its send buffer may be full, so that its user writes by pieces
        wanted = sorted({int(min(smss, waits)) for waits in _waited(flow, sent)})
        # A segment cut to fit the window violates RWBP-WN-006.
        if not wanted or sent.end == sent.edge or sent.payload > wanted[-1]:
            continue
        yield judged(
            context, sent.payload in wanted, f"{sent.payload} octets were sent", sent,
            expected=f"{' or '.join(map(str, wanted))} octets of the {sent.available:.0f} "
            "that waited", actual=str(sent.payload),
        )  # fmt: skip


def _waited(flow: Flow, sent: Sent) -> Iterator[float]:
    """How many octets may have waited when a segment was cut.

    Where the order of an arrival and a departure is not certain, what has just arrived may not have
    been echoed yet: a user may take its time as long as it acts at once (section 2).
    """
    available = sent.available
    if available is None:
        return
    yield available
    if not flow.slack:
        return
    since = sent.time - AT_ONCE_S - flow.slack
    late = [a for a in flow.arrivals if since <= a.time and a.packet.number < sent.packet.number]
    for arrival in late:
        earlier = available - (late[-1].expected_after - arrival.expected)
        if earlier > 0:
            yield earlier


@rule("RWBP-WF-008")
def fin_with_the_last_data(flow: Flow, context: Context) -> Findings:
    """FIN leaves with the last data, or alone as soon as there is room (section 5.2)."""
    # Exercised by the end of echo and chargen after the tester's FIN.
    if not flow.agreed or flow.opening.iut_calls or not flow.leaves_at_once(context.ics):
        return
    closing = next(
        (a for a in flow.arrivals
         if flow.receiver.fin is not None and a.expected_after > flow.receiver.fin), None
    )  # fmt: skip
    if closing is None:
        return
    fin = next((sent for sent in flow.sent if sent.fin and sent.why is Why.NEW), None)
    before = [sent for sent in flow.sent if sent.payload and sent.why is Why.NEW]
    last = before[-1] if before else None
    settled = closing.time + (AT_ONCE_S if flow.slack else 0.0)
    rode = last is not None and last.packet.number > closing.packet.number
    if fin is None:
        return
    if last is not None and not fin.payload and rode and last.time > settled:
        yield judged(
            context, last.end + 1 > last.edge, "a FIN left behind the last data", fin, last,
            expected="FIN on the last data, for which there was room",
            actual=f"data up to {last.end} without, the edge being {last.edge}",
        )  # fmt: skip
    elif fin.payload:
        yield context.holds("the FIN left with the last data", fin)
    if fin.payload or fin.end > fin.edge:
        return
    room = _room(flow, fin, last, closing)
    if room is not None:
        late = fin.time - room.time
        yield judged(
            context, late <= AT_ONCE_S + flow.slack, "the FIN left alone", fin, room,
            expected="it at once, there being room", actual=f"{late:.2f} s later",
        )  # fmt: skip


def _room(flow: Flow, fin: Sent, last: Sent | None, closing: Arrival) -> Segment | None:
    """Since when a FIN that left alone could have left; None where that is not known."""
    begin = max(closing.packet.number, last.packet.number if last is not None else 0)
    edge = 0
    for event in flow.events:
        if event is fin:
            return None
        if isinstance(event, Ack):
            edge = event.edge_after
        elif isinstance(event, Sent):
            edge = event.edge
        if event.packet.number >= begin and edge > fin.start:
            return event
    return None


@rule("RWBP-WF-009", agreed=True, once=True)
def no_urgent_data(flow: Flow, context: Context) -> Findings:
    """URG is not sent, and has no meaning in what arrives (section 5.3)."""
    # Exercised by every segment that is sent, and by data with URG.
    for own in flow.leaving:
        met = not own.tcp.flags & URG
        yield judged(context, met, "a segment was sent", own, expected="no URG", actual="URG")
    odd = [i for i in flow.arriving if i.tcp.flags & URG and not i.tcp.flags & SYN]
    yield from taken(flow, context, odd, "URG")


_PERIOD = 1 << 16
_PATTERN = bytes((i ^ (i >> 8)) & 255 for i in range(_PERIOD)) * 2


def _pattern(start: int, octets: int) -> bytes:
    """What chargen sends, section 13: it repeats itself; ``octets`` are those of a segment."""
    return _PATTERN[start % _PERIOD : start % _PERIOD + octets]


@rule("RWBP-WF-010")
def services(flow: Flow, context: Context) -> Findings:
    """Echo and chargen send what section 13 says, and all close after the peer's FIN."""
    # Exercised by the data of chargen and echo, and by the tester's FIN.
    if not flow.agreed or flow.opening.iut_calls:
        return
    if flow.service == "chargen":
        yield from until_violated(_generated(flow, context))
    elif flow.service == "echo":
        yield from until_violated(echoed(flow, context))
    yield from _closes(flow, context)


def _generated(flow: Flow, context: Context) -> Iterator[Finding]:
    for sent in flow.sent:
        if not sent.payload or sent.tcp.missing:
            continue
        met = sent.tcp.payload == _pattern(sent.start, sent.payload)
        yield judged(
            context, met, f"{sent.span} was sent", sent, expected="the octets of section 13",
            actual="others",
        )  # fmt: skip


def echoed(flow: Flow, context: Context) -> Iterator[Finding]:
    """Whether what an echo sends is what it has received."""
    stream = Stream()
    for event in flow.events:
        if isinstance(event, Arrival) and event.acceptable and event.payload:
            room = max(0, event.edge - event.start)
            below = max(0, -event.start)
            if event.tcp.flags & ACK:
                stream.add(event.start + below, event.tcp.payload[below:room])
        elif isinstance(event, Sent) and event.payload:
            if stream.disputed(event.start, event.start + event.payload):
                continue
            met = stream.equals(event.start, event.tcp.payload)
            yield judged(
                context, met, f"{event.span} was echoed", event,
                expected="the octets that were received", actual="others",
            )  # fmt: skip


def _last_segment(flow: Flow) -> float:
    """Numbers that the window has to offer for the next segment before, or with, the FIN."""
    if flow.service == "discard":
        return 1
    waiting = flow.sender.available()
    smss = flow.sender.smss
    return smss if waiting is None else min(smss, waiting + 1)


def _closes(flow: Flow, context: Context) -> Findings:
    fin = flow.receiver.fin
    if fin is None or flow.receiver.nxt <= fin:
        return
    closing = next(a for a in flow.arrivals if a.expected_after > fin)
    own = next((sent for sent in flow.sent if sent.fin), None)
    if own is not None:
        yield context.holds("the service closed after the peer's FIN", own, closing)
        return
    sender = flow.sender
    busy = max((sent.time for sent in flow.sent), default=0.0)
    news = (ack.time for ack in flow.acks if ack.arrived or ack.edge_after > ack.edge)
    heard = max(news, default=0.0)
    since = max(closing.time, busy, heard)
    kept = sender.edge - sender.nxt < _last_segment(flow) or sender.outstanding
    settled = flow.leaves_at_once(context.ics) and flow.horizon - since > SETTLED_S
    if settled and not kept:
        yield context.violated(
            "no FIN was sent", closing, expected="a FIN, the peer having closed",
            actual=f"nothing for {flow.horizon - since:.1f} s",
        )  # fmt: skip
