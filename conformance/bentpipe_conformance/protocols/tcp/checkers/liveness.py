"""Checkers for what a live connection has to do in the end (SNR-CON-034 to 039)."""

from __future__ import annotations

import math
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.codec import ACK, PSH, SYN
from bentpipe_conformance.protocols.tcp.replay.answers import DAYTIME_PORT
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Segment, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import is_reset
from bentpipe_conformance.protocols.tcp.replay.stream import Stream
from bentpipe_conformance.protocols.tcp.replay.users import always_sends, echoes


@checker("SNR-CON-034")
def what_waits_is_sent(flow: Flow, context: Context) -> Findings:
    """What a service has to send is sent (RFC 9293 sections 3.7 and 3.10.2)."""
    # Exercised by every time in which all that was sent is acknowledged, the window is open by a
    # full segment, and the service has more: chargen always, echo what it was given.
    patience = float(context.permitted("patience_s", 5.0))
    echoing = echoes(flow)
    if not always_sends(flow) and not echoing:
        return
    ended = min((p.number for p in flow.resets), default=float("inf"))
    given = sent = 0
    idle: Ack | None = None
    for event in flow.events:
        if event.packet.number > ended:
            break
        if isinstance(event, Arrival):
            if event.fin and not echoing:
                return  # chargen ends when its peer does
            if event.acceptable and event.in_order and event.end <= event.window_edge:
                given = max(given, event.start + event.payload)
        waiting = not echoing or given > sent
        if idle is not None and waiting and not isinstance(event, Sent):
            yield from _asleep(context, idle, event.time - patience)
            if event.time - idle.time > patience:
                return
        if isinstance(event, Sent):
            more = not echoing or given - sent > 1
            sent = max(sent, event.start + event.payload)
            if idle is not None and more and event.timed and event.payload <= 1:
                continue  # a probe, though the window is open
            if idle is not None:
                yield context.holds("what waited was sent", event, idle)
            idle = None
        elif isinstance(event, Ack) and event.acceptable:
            room = event.window_edge - event.max >= flow.mss
            if not (room and event.ack >= event.max):
                idle = None
            elif idle is None and waiting:
                idle = event
    if idle is not None and (not echoing or given > sent):
        yield from _asleep(context, idle, flow.horizon - patience)


def _asleep(context: Context, idle: Ack, latest: float) -> Findings:
    """The violation where something had waited since ``idle``, and not only since ``latest``."""
    if idle.time < latest:
        sentence = f"no more was sent after {idle.ack} octets had been acknowledged"
        expected = "data within 5 seconds, the window being open"
        actual = "silence, or octets one by one"
        yield context.violated(sentence, idle, expected=expected, actual=actual)


@checker("SNR-CON-035")
def service_closes(flow: Flow, context: Context) -> Findings:
    """A service that ends its stream sends a FIN (RFC 9293 sections 3.6 and 3.10.4)."""
    # Exercised by the tester's FIN to a standard service, once all is acknowledged that the
    # service sent, and by every connection to the daytime service.
    patience = float(context.permitted("patience_s", 5.0))
    lifetime = context.prepared.lifetime
    if flow.handshake.iut_opens or lifetime.established is None:
        return
    if flow.iut[1] == DAYTIME_PORT and context.ics.get("daytime"):
        begin = lifetime.established
        start, since = begin.time, begin.packet.number
    elif flow.iut[1] in STANDARD_SERVICES.values() and lifetime.fin is not None:
        start, since = lifetime.fin.time, lifetime.fin.packet.number
    else:
        return
    own = lifetime.own_fin
    where = lifetime.fin or lifetime.established
    if own is not None:
        yield context.holds("the service's FIN was sent", own, where)
        return
    # Data, or the window, may hold it back.
    top = max((sent.end for sent in flow.sent), default=0)
    until = flow.first_reset  # nothing need be sent behind it, whatever arrives
    acks = [ack for ack in flow.acks if since <= ack.packet.number < until]
    # They do until the next acknowledgment says otherwise.
    busy = [
        following.time for ack, following in pairwise(acks)
        if ack.ack < ack.max or ack.window_edge <= ack.max
    ]  # fmt: skip
    busy += [sent.time for sent in flow.sent if sent.packet.number > since]
    start = max([start, *busy])
    sound = (a for a in reversed(flow.acks) if a.acceptable and a.packet.number < until)
    last = next(sound, None)
    if last is not None and (last.window_edge <= top or last.ack < top):
        return
    # Who has more to send may wait for room for a segment (section 3.8.6.2.1).
    discards = flow.iut[1] == STANDARD_SERVICES["discard"]
    if last is not None and last.window_edge < top + flow.mss and not discards:
        return
    if flow.horizon - start > patience + flow.reaction:
        sentence = f"no FIN was sent in {flow.horizon - start:.1f} s"
        expected = f"a FIN within {patience:.0f} s, the service having ended its stream"
        yield context.violated(sentence, where, expected=expected, actual="none")


@checker("SNR-CON-036")
def silence_ends_a_connection(flow: Flow, context: Context) -> Findings:
    """A peer that is silent for an hour is given up (RFC 9293 section 3.8.3, MUST-20)."""
    # Exercised by what happens after an hour in which nothing arrived although something was owed.
    longest = float(context.permitted("longest_s", 3600.0))
    owed = None  # the first segment since anything arrived that asks for an answer
    for packet in flow.packets:
        segment = Segment(packet)
        silence = segment.time - owed.time if owed is not None else 0.0
        if not packet.outgoing:
            if owed is not None and silence > longest:
                yield context.holds(f"nothing was sent after {longest:.0f} s of silence", owed)
                return
            owed = None
        elif segment.tcp.length and not is_reset(segment):
            owed = owed or segment
            if silence > longest:
                sentence = f"{silence:.0f} s after the peer fell silent it is not given up"
                actual = f"a segment with flags {segment.tcp.flag_names}"
                yield context.violated(sentence, segment, expected="nothing", actual=actual)
                return


@checker("SNR-CON-037")
def stream_is_consistent(flow: Flow, context: Context) -> Findings:
    """A sequence number stands for one octet for ever (RFC 9293 section 3.4)."""
    # Exercised by every retransmission, and by new data, which begins where the last ended.
    stream = Stream()
    for sent in flow.sent:
        end = sent.start + sent.payload
        if sent.start > sent.max:
            sentence = f"{sent.span} was sent, {sent.max} octets having been sent before"
            expected = f"data from offset {sent.max}"
            yield context.violated(sentence, sent, expected=expected, actual=sent.span)
            return
        if not sent.payload or sent.tcp.missing or sent.start < 0:
            continue
        # Below what is acknowledged: a keep-alive, which may carry a garbage octet (section 3.8.4).
        if sent.payload == 1 and end <= sent.una:
            continue
        stream.add(sent.start, sent.tcp.payload)
        if stream.disputed(sent.start, end):
            sentence = f"{sent.span} was sent with other octets than before"
            yield context.violated(sentence, sent, expected="the same octets", actual="others")
            return
        if sent.retransmission:
            yield context.holds("a retransmission carried the same octets", sent)


@checker("SNR-CON-038")
def last_segment_is_pushed(flow: Flow, context: Context) -> Findings:
    """The last segment queued has PSH (RFC 9293 section 3.9.1.2, MUST-61)."""
    # Exercised by the segment with which echo has returned all that ever arrived. What need not be
    # taken, such as data with too old an acknowledgment, was taken if it is acknowledged.
    if not echoes(flow):
        return
    # A FIN that is dropped for its acknowledgment takes no number.
    fins = (item.end for item in flow.arrivals if item.fin and not item.dropped)
    end = max(fins, default=math.inf)
    told = (reply.ack - (reply.ack >= end) for reply in flow.replies)
    given = max((*told, *(a.start + a.payload for a in flow.arrivals if a.acceptable)), default=0)
    for sent in flow.sent:
        if sent.payload and sent.start + sent.payload == given:
            pushed = "pushed" if sent.tcp.flags & PSH else "not pushed"
            yield judged(
                context, bool(sent.tcp.flags & PSH), f"the last octet queued was {pushed}", sent,
                expected="PSH", actual=f"flags {sent.tcp.flag_names}",
            )  # fmt: skip
            return


@checker("SNR-CON-039")
def every_segment_acknowledges(flow: Flow, context: Context) -> Findings:
    """Every segment but a first SYN and a RST has ACK (RFC 9293 section 3.1)."""
    # Exercised by every segment of the IUT once the tester's SYN has arrived.
    if flow.handshake.tester is None:
        return
    number = flow.handshake.tester.number
    last = None
    for item in flow.leaving:
        flags = item.tcp.flags
        first = flags & SYN and flow.handshake.iut_opens
        if item.packet.number < number or first or is_reset(item):
            continue
        if not flags & ACK:
            actual = f"a segment with flags {item.tcp.flag_names or 'none'}"
            yield context.violated("a segment lacks ACK", item, expected="ACK", actual=actual)
            return
        last = item
    if last is not None:
        yield context.holds("every segment has ACK", last)
