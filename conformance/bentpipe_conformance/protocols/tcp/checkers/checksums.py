"""Checkers for checksums: of what is sent, and on what arrives.

SNR-CON-001, 002 and 040.
"""

from __future__ import annotations

from itertools import islice, takewhile

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, nearest
from bentpipe_conformance.protocols.tcp.replay.events import Segment
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import (
    LEAST_TIME_WAIT_S,
    Lifetime,
    is_early,
    is_reset,
    lasts,
    may_have_given_up,
)
from bentpipe_conformance.protocols.tcp.replay.order import later


@checker("SNR-CON-001")
def checksums_are_correct(flow: Flow, context: Context) -> Findings:
    """Every segment sent has a correct checksum (RFC 9293 section 3.1, MUST-2)."""
    # Exercised by every segment of the IUT.
    wrong = next((item for item in flow.damaged if item.packet.outgoing), None)
    if wrong is not None:
        sentence = f"a segment with flags {wrong.tcp.flag_names} has a wrong checksum"
        yield context.violated(sentence, wrong, expected="the right one", actual="another")
    elif flow.leaving:
        yield context.holds("every segment sent has a correct checksum", flow.leaving[0])


@checker("SNR-CON-002")
def damaged_segment_is_dropped(flow: Flow, context: Context) -> Findings:
    """A segment with a wrong checksum has no effect (RFC 9293 section 3.1, MUST-3)."""
    # Exercised by every damaged segment that reaches the IUT, once something follows it.
    for item in flow.damaged:
        if item.packet.outgoing or not lasts(flow, item, 0.0):
            continue
        effect = _effect(flow, item, context.prepared.lifetime)
        kind = f"a segment with flags {item.tcp.flag_names} and a wrong checksum"
        if effect is not None:
            sentence = f"{kind} had an effect"
            actual = f"a segment with flags {effect.tcp.flag_names}"
            yield context.violated(sentence, effect, item, expected="none", actual=actual)
        else:
            yield context.holds(f"{kind} had no effect", item)


def _effect(flow: Flow, item: Segment, lifetime: Lifetime) -> Segment | None:
    """The first segment of the IUT that a damaged one certainly caused."""
    tcp, number = item.tcp, item.packet.number
    offer = flow.handshake.offer
    if offer is None or (tcp.flags & SYN and flow.handshake.tester is not None):
        known = any(s.tcp.flags & SYN and s.packet.number < number for s in flow.arriving)
        # A SYN is repeated in any case.
        fresh = (
            s for s in flow.leaving
            if s.packet.number > number and not is_reset(s) and s.tcp.flags & (SYN | ACK) != SYN
        )  # fmt: skip
        first = next(fresh, None)
        whole = next((s for s in flow.arriving if s.packet.number > number), None)
        early = whole is None or first is None or first.packet.number < whole.packet.number
        return first if tcp.flags & SYN and early and not known else None
    if tcp.flags & RST:
        # A live connection goes on; one that was reset answers the next segment by a RST.
        # Once the connection is over, a RST answers whatever comes.
        reset, over, lingers = flow.own_reset, lifetime.over, lifetime.time_wait
        if reset is None or (over is not None and number > over):
            return None
        if lingers is not None and reset.time > lingers + LEAST_TIME_WAIT_S:
            return None
        if may_have_given_up(flow, item):
            return None
        last = reset.packet.number
        heard = takewhile(lambda s: s.packet.number < last, later(flow.arriving, item.packet))
        following = list(islice(heard, 2))
        if len(following) != 1:
            return None
        between = range(number, last)
        if any(s.packet.number in between and not is_reset(s) for s in flow.leaving):
            return None
        if is_early(flow, following[0]):
            return None
        return reset if following[0].tcp.flags & (RST | SYN) == 0 else None
    base = offer.seq + 1
    for reply in flow.replies:
        if reply.packet.number < number or reply.ack <= reply.limit:
            continue
        start = nearest(tcp.seq - base, reply.ack)
        if tcp.length and start < reply.ack:
            return reply
    # Only a window that no intact segment has offered lets new data out.
    new = (sent for sent in flow.sent if sent.packet.number > number and sent.new)
    return next((sent for sent in new if sent.end > sent.window_edge + 1), None)


@checker("SNR-CON-040")
def header_checksums_are_correct(flow: Flow, context: Context) -> Findings:
    """The header checksum of every IPv4 packet is correct (RFC 791 section 3.1)."""
    # Exercised by every IPv4 packet of the IUT whose length field has been filled in.
    last = None
    for item in flow.leaving:
        octets = item.packet.data
        header = octets[: (octets[0] & 0xF) * 4]
        if octets[0] >> 4 != 4 or len(header) < 20 or header[2:4] == b"\0\0":
            continue
        if internet_checksum(header) not in (0, 0xFFFF):
            sentence = "an IPv4 header has a wrong checksum"
            yield context.violated(sentence, item, expected="the right one", actual="another")
            return
        last = item
    if last is not None:
        yield context.holds("every IPv4 header has a correct checksum", last)
