"""Checkers of headers, which belong to one side (PEP-TR-005 to -011, PEP-LR-005)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.engine.codec import CE, ECN
from bentpipe_conformance.engine.context import judged, until_violated
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import At, Context, of_relay, of_scene, of_stream
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import DEFAULT_MSS, Leg, Segment
from bentpipe_conformance.protocols.pep.replay.stream import Stream
from bentpipe_conformance.protocols.tcp.codec import ACK, CWR, ECE, MODULUS, RST, SYN, nearest

CLASS = 0xFC
_ECE_CWR = ECE | CWR


@of_stream("PEP-TR-005")
def class_is_kept(_: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """The class of a packet is kept."""
    # Exercised by octets that come in packets with a DSCP other than 0, or behind such octets.
    came: list[tuple[int, int, int]] = []
    marked = False
    for step in stream.steps:
        segment = step.segment
        if step.inlet and not step.by_box and segment.payload and segment.counts:
            dscp = segment.packet.data[1] & CLASS
            came.append((segment.start, segment.end, dscp))
            marked |= dscp != 0
        if step.inlet or not step.by_box or not segment.payload or not marked:
            continue
        # One packet has one class, and so may all that is under way with it.
        came = [it for it in came if it[1] > min(step.delivered, segment.start)]
        classes = {dscp for _, _, dscp in came}
        if not classes:
            continue
        dscp = segment.packet.data[1] & CLASS
        yield judged(
            context, dscp in classes, f"octets of class {dscp >> 2} are sent on", step,
            expected=f"DSCP {' or '.join(str(one >> 2) for one in sorted(classes))}",
            actual=f"DSCP {dscp >> 2}",
        )  # fmt: skip


@of_relay("PEP-TR-006")
def congestion_signals(relay: Relay, context: Context) -> Iterator[Finding]:
    """Congestion signals belong to one connection."""
    # Exercised by packets with ECT that arrive on the other side, and with CE where it has ECN.
    for leg, other in _pairs(relay):
        marked = next((it for it in other.packets if not it.outgoing and it.data[1] & ECN), None)
        if marked is None or _ecn(leg):
            continue
        for packet in leg.packets:
            if packet.outgoing and packet.number > marked.number:
                yield judged(
                    context, not packet.data[1] & ECN,
                    f"a packet of the side of the {leg.side}, without ECN, is sent", At(packet),
                    At(marked), expected="no ECT", actual=f"ECN field {packet.data[1] & ECN}",
                )  # fmt: skip

    for leg in relay.legs if not relay.is_whole else ():
        if _ecn(leg):
            yield from _marks_echoed(leg, context)


@of_relay("PEP-TR-007")
def segments_suit_their_side(relay: Relay, context: Context) -> Iterator[Finding]:
    """Segments suit the side on which they leave."""
    # Exercised by segments to an end that takes smaller ones than the other.
    for leg, other in _pairs(relay):
        if leg.own.first is None or other.own.first is None:
            continue
        most = leg.own.first.mss or DEFAULT_MSS
        if most >= (other.own.first.mss or DEFAULT_MSS):
            continue
        for segment in leg.segments:
            if segment.outgoing and segment.payload:
                size = _data_and_options(segment)
                yield judged(
                    context, size <= most, f"{size} octets are sent to the {leg.side}", segment,
                    expected=f"at most the {most} that its MSS option permits, TCP options counted",
                    actual=f"{size}",
                )  # fmt: skip


@of_stream("PEP-TR-008")
def windows_are_scaled(_: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """Windows are scaled by the handshake of their side."""
    # Exercised by octets to an end whose windows are scaled otherwise than those of the other.
    sink = stream.sink
    if sink is None or sink.shift(sink.own) == stream.source.shift(stream.source.own):
        return
    outlet = 0
    for step in stream.steps:
        segment = step.segment
        if not step.inlet and step.by_box and segment.payload:
            # One octet beyond a closed window probes it.
            beyond = segment.end - outlet
            yield judged(
                context, beyond <= 1, f"{segment.end} octets are sent, {outlet} are permitted",
                step, expected="none beyond the window as its own side scales it",
                actual=f"{beyond} octets beyond",
            )  # fmt: skip
        outlet = step.outlet


@of_relay("PEP-TR-009")
def timestamps_of_their_side(relay: Relay, context: Context) -> Iterator[Finding]:
    """Timestamps are those of their side."""
    # Exercised by each timestamp that the box echoes.
    for leg in relay.legs if relay.streams else ():
        yield from until_violated(_echoes(leg, context))


@of_relay("PEP-TR-010")
def blocks_of_their_side(relay: Relay, context: Context) -> Iterator[Finding]:
    """Selective acknowledgments tell of their side."""
    # Exercised by SACK blocks of the box, after an end has left out a segment.
    for leg in relay.legs if relay.streams else ():
        yield from _blocks(leg, context)


@of_relay("PEP-TR-011")
def nothing_answered_unasked(relay: Relay, context: Context) -> Iterator[Finding]:
    """No option is answered that was not offered."""
    # Exercised by a SYN without Window Scale, Timestamps or SACK-Permitted that is answered.
    answer, syn = relay.client.answered, relay.client.syn
    if answer is None or answer.content is None or relay.is_whole:
        return
    names = {
        "window_scale": "Window Scale",
        "tsval": "Timestamps",
        "sack_permitted": "SACK-Permitted",
    }
    for field, name in names.items():
        if _is_there(getattr(syn, field)):
            continue
        there = _is_there(getattr(answer.content, field))
        yield judged(
            context, not there,
            f"the SYN has no {name}, and its answer {'has' if there else 'has none'}",
            At(answer), expected=f"no {name}", actual=f"{name}",
        )  # fmt: skip


def _is_there(value: object) -> bool:
    """Whether an option is; a shift count and a timestamp may be zero."""
    return value is not None and value is not False


@of_scene("PEP-LR-005")
def blocks_on_the_long_side(scene: Scene, context: Context) -> Iterator[Finding]:
    """Selective acknowledgments are used on the long side."""
    # Exercised by each SYN of the box over the satellite, and by its answers to those with the
    # option, where that link is visible. What it lets pass has the number of an end.
    ends = {
        it.content.seq for it in scene.packets
        if not it.outgoing and it.content is not None and it.content.flags & SYN
    }  # fmt: skip
    offered: dict[tuple[str, tuple[str, int, str, int]], bool] = {}
    for packet in scene.satellite:
        tcp = packet.content
        if tcp is None or not tcp.flags & SYN or tcp.seq in ends:
            continue
        if not packet.outgoing:
            caller = tcp.src, tcp.sport, tcp.dst, tcp.dport
            offered[packet.side, caller] = tcp.sack_permitted
            continue
        called = tcp.dst, tcp.dport, tcp.src, tcp.sport
        if not tcp.flags & ACK or offered.get((packet.side, called)):
            yield judged(
                context, tcp.sack_permitted, "the box opens a connection over the satellite",
                At(packet), expected="SACK-Permitted", actual="none",
            )  # fmt: skip


# -- what several ask --------------------------------------------------------------------------


def _pairs(relay: Relay) -> list[tuple[Leg, Leg]]:
    """Each side of a split connection, with the other one."""
    if relay.server is None or not relay.streams:
        return []
    return [(relay.client, relay.server), (relay.server, relay.client)]


def _data_and_options(segment: Segment) -> int:
    """Octets behind the fixed headers; RFC 9293 section 3.7.1 leaves the MSS for all of them."""
    return len(segment.packet.data) - 20 - (segment.packet.data[0] & 15) * 4


def _marks_echoed(leg: Leg, context: Context) -> Iterator[Finding]:
    """Whether the acknowledgments of new octets that came with CE have ECE."""
    # RFC 3168 section 6.1.3: ECE is set from then on until CWR arrives.
    top, marked = 0, None
    for segment in leg.segments:
        flags = segment.tcp.flags
        if not segment.outgoing and segment.counts and segment.payload:
            if segment.packet.data[1] & ECN == CE and segment.start == top:
                marked = segment
            elif flags & CWR:
                marked = None
            top = max(top, segment.end)
        elif segment.outgoing and marked is not None and not flags & (SYN | RST):
            if segment.ack is None or segment.ack < marked.end:
                continue
            yield judged(
                context, bool(flags & ECE), f"CE of the {leg.side}'s octets is answered", segment,
                marked, expected="ECE until CWR arrives", actual=segment.tcp.flag_names,
            )  # fmt: skip


def _ecn(leg: Leg) -> bool:
    """Whether ECN was negotiated (RFC 3168 section 6.1.1)."""
    first, answer = leg.caller.first, leg.callee.first
    if first is None or answer is None:
        return False
    return first.flags & _ECE_CWR == _ECE_CWR and answer.flags & _ECE_CWR == ECE


def _echoes(leg: Leg, context: Context) -> Iterator[Finding]:
    seen: set[int] = set()
    # A SYN with another number passes, and is not the box's own; so does what follows a reset.
    passing = {
        it.packet.number for it in leg.segments
        if not it.counts and (it.outgoing or it.tcp.flags & SYN)
    }  # fmt: skip
    for packet in leg.packets:
        tcp = packet.content
        if tcp is None or tcp.tsval is None or packet.number in passing:
            continue
        if not packet.outgoing:
            seen.add(tcp.tsval)
        elif leg.side == "client" and (leg.answered is None or packet.number < leg.answered.number):
            continue  # of an earlier connection with the same ports
        elif not tcp.flags & RST and not (tcp.flags & SYN and packet is leg.caller.syn):
            if tcp.tsecr is None or (tcp.flags & SYN and tcp.tsecr == 0):
                continue
            yield judged(
                context, tcp.tsecr in seen, f"the box echoes the timestamp {tcp.tsecr}", At(packet),
                expected=f"one that the {leg.side} has sent", actual="none that it has sent",
            )  # fmt: skip


def _blocks(leg: Leg, context: Context) -> Iterator[Finding]:
    """Each block of the box names what has arrived from the end."""
    arrived = RangeSet()
    first = leg.own.first
    if first is None:
        return
    for segment in leg.segments:
        if not segment.outgoing:
            # A FIN has a number, too; and what was not acceptable may be reported (RFC 2883).
            end = segment.end + (segment.fin is not None)
            if end > segment.start:
                arrived.add(segment.start, end)
            continue
        for left, right in segment.tcp.sack:
            start = nearest((left - first.seq - 1) % MODULUS, segment.ack or 0)
            end = nearest((right - first.seq - 1) % MODULUS, segment.ack or 0)
            yield judged(
                context, start < end and arrived.covers(start, end),
                f"the box reports octets {start} to {end} of the {leg.side}", segment,
                expected="octets that have arrived from that side", actual="others",
            )  # fmt: skip
