"""Checkers of transparency, as far as octets, addresses and what passes whole go (PEP-TR)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    At,
    Context,
    all_octets,
    of_relay,
    of_scene,
    of_stream,
    watched,
)
from bentpipe_conformance.protocols.pep.codec import TCP, header
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import Packet, Segment
from bentpipe_conformance.protocols.pep.replay.stream import Step, Stream
from bentpipe_conformance.protocols.pep.routed import altered
from bentpipe_conformance.protocols.tcp.codec import ACK, PSH, RST, SYN, URG

MD5, AUTHENTICATION, MULTIPATH = 19, 29, 30
CAPABLE, JOIN = 0, 1
"""Subtypes of the option of Multipath TCP (RFC 8684 section 3)."""
EXPERIMENTAL = range(200, 256)
"""Kinds of options that nobody implements: 253 and 254 are for experiments (RFC 4727)."""
PUSHED_S = 0.2
LEAST_WINDOW = 3
"""Segments that a congestion window permits at least behind a pause (RFC 3390, RFC 5681 4.1)."""


@of_stream("PEP-TR-001")
def octets_as_sent(_: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """Octets arrive as they were sent."""
    # Exercised by octets that the box sends.
    if stream.differs is not None:
        segment, offset = stream.differs
        yield context.violated(
            f"octet {offset} of the stream {stream.name} is another one", segment,
            expected="the octets that its sender has sent", actual="other octets",
        )  # fmt: skip
    elif stream.beyond is not None:
        yield context.violated(
            f"the box sends octets of the stream {stream.name} that it has not got",
            stream.beyond, expected="octets that have arrived", actual="octets of its own",
        )  # fmt: skip
    else:
        last = stream.last
        if last is not None and last.relayed:
            yield context.holds(f"{last.relayed} octets {stream.name} are as they were sent", last)


@of_relay("PEP-TR-002")
def addresses_kept(relay: Relay, context: Context) -> Iterator[Finding]:
    """Each end sees the other's address."""
    # Exercised by each call of the box.
    for leg in relay.calls[:1]:
        yield judged(
            context, leg.ends[0] == relay.client.ends[0],
            f"the server is called from {leg.ends[0]}", At(leg.packets[0]),
            expected=f"the client's address, {relay.client.ends[0]}", actual=leg.ends[0],
        )  # fmt: skip


@of_relay("PEP-TR-003")
def port_kept(relay: Relay, context: Context) -> Iterator[Finding]:
    """The client's port is kept where it is free."""
    # Exercised by each call of the box from a port that is free.
    for leg in relay.calls[:1]:
        wanted = relay.client.ends
        taken = any(
            other is not relay and call.ends == wanted and call.began < leg.began
            for other in relay.scene.relays for call in other.calls
        )  # fmt: skip
        if not taken:
            yield judged(
                context, leg.ends[1] == wanted[1], f"the server is called from port {leg.ends[1]}",
                At(leg.packets[0]), expected=f"the client's port, {wanted[1]}",
                actual=str(leg.ends[1]),
            )  # fmt: skip


@of_relay("PEP-TR-012")
def unknown_options_stay(relay: Relay, context: Context) -> Iterator[Finding]:
    """An unknown option is not passed on."""
    # Exercised by an option for experiments in a segment of an end.
    if relay.is_whole:
        return
    packets = relay.packets
    asked = [it for it in packets if not it.outgoing and _unknown(it)]
    if not asked:
        return
    passed = next((it for it in packets if it.outgoing and _unknown(it)), None)
    if passed is not None:
        yield context.violated(
            "the box sends an option that it does not know", At(passed), At(asked[0]),
            expected="segments without it", actual=f"kind {_unknown(passed)[0]}",
        )  # fmt: skip
    elif any(it.outgoing for it in packets if it.number > asked[0].number):
        yield context.holds("the unknown option is not passed on", At(asked[0]))


@of_relay("PEP-TR-013")
def signed_stay_whole(relay: Relay, context: Context) -> Iterator[Finding]:
    """Connections that cannot be split are left whole."""
    # Exercised by a SYN with a TCP-AO or MD5 option.
    first = relay.client.packets[0]
    if not {MD5, AUTHENTICATION} & set(_kinds(first)):
        return
    yield from _all_pass(relay, context)


@of_relay("PEP-TR-014")
def multipath(relay: Relay, context: Context) -> Iterator[Finding]:
    """Multipath TCP is split whole or not at all."""
    # Exercised by a SYN with MP_CAPABLE, and by one with MP_JOIN beside a connection left whole.
    first, answer = relay.client.packets[0], relay.client.answered
    if MULTIPATH not in _kinds(first):
        return
    if relay.is_whole:
        yield from _all_pass(relay, context)
        return
    whole = _first_subflow(relay) if JOIN in _subtypes(first) else None
    if whole is not None and (relay.calls or watched(relay, relay.client.began, 1.0)):
        yield context.violated(
            "a multipath connection is left whole, and a SYN with MP_JOIN is not passed", At(first),
            At(whole.client.packets[0]), expected="the same SYN at the server's side",
            actual="one of the box" if relay.calls else "none",
        )  # fmt: skip
    if answer is None:
        return
    yield judged(
        context, MULTIPATH not in _kinds(answer), "the SYN with MP_CAPABLE is answered", At(answer),
        At(first), expected="a SYN-ACK without it, or a connection that is left whole",
        actual="MP_CAPABLE in the answer to a connection that is split",
    )  # fmt: skip


@of_scene("PEP-TR-016")
def fragments_arrive(scene: Scene, context: Context) -> Iterator[Finding]:
    """Fragments pass or are put together."""
    # Exercised by a segment that an end sends in fragments.
    yield from _arrives(scene, scene.fragmented, "sent in fragments", context)


@of_scene("PEP-TR-017")
def ip_options_do_no_harm(scene: Scene, context: Context) -> Iterator[Finding]:
    """IP options do not stop a segment."""
    # Exercised by a segment of an end in a packet with IP options.
    found = [
        it for it in scene.packets if not it.outgoing and len(it.data) >= 20 and it.data[0] & 15 > 5
    ]
    yield from _arrives(scene, found, "with IP options", context)


@of_scene("PEP-TR-018")
def strangers(scene: Scene, context: Context) -> Iterator[Finding]:
    """Strangers are not acknowledged."""
    # Exercised by a segment of a connection whose opening the box has not seen.
    wanted = context.ics.get("strangers", "forward")
    for packet in scene.others:
        tcp = packet.content
        if tcp is None or packet.outgoing or not tcp.checksum_ok or not tcp.offset_ok:
            continue
        if tcp.flags & (SYN | ACK) == SYN or (tcp.flags & RST and wanted == "reset"):
            continue  # a call, or what nobody answers
        if any(_touches(relay, packet) for relay in scene.relays):
            continue
        ends = (tcp.dst, tcp.dport, tcp.src, tcp.sport)
        later = [
            it for it in scene.others
            if it.outgoing and it.number > packet.number and it.content is not None
        ]  # fmt: skip
        back = [
            it for it in later if it.side == packet.side and it.content
            and (it.content.src, it.content.sport, it.content.dst, it.content.dport) == ends
        ]  # fmt: skip
        acked = next((it for it in back if it.content and not it.content.flags & RST), None)
        refused = any(it.content and it.content.flags & RST for it in back)
        passed = any(it.side != packet.side and _payload(it) == _payload(packet) for it in later)
        if acked is not None:
            yield context.violated(
                "the box acknowledges a segment of a connection that it does not know",
                At(acked), At(packet), expected="no acknowledgment", actual="one",
            )  # fmt: skip
        elif scene.until - packet.time > 3.0:
            became = "passed on" if passed else "refused" if refused else "lost"
            yield judged(
                context, refused if wanted == "reset" else passed,
                f"the segment of a stranger is {became}", At(packet),
                expected=f"{wanted}, as the statement says", actual=became,
            )  # fmt: skip


@of_stream("PEP-TR-019")
def pushed_octets_leave(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """Octets do not wait for more."""
    # Exercised by octets with PSH that the receiver has room for.
    if stream.differs is not None or stream.beyond is not None:
        return  # what was relayed is not the stream
    # A timer that has doubled meanwhile expires later than the path works again.
    calm = relay.scene.repaired_at
    for step in stream.steps:
        segment = step.segment
        if step.packet.number > relay.reset_at:
            return
        if not step.inlet or step.by_box or not segment.tcp.flags & PSH or not segment.counts:
            continue
        if step.arrived < segment.end or step.outlet < segment.end or not segment.payload:
            continue
        left = stream.first(
            it for it in stream.steps
            if it.packet.number > step.packet.number and it.relayed >= segment.end
        )  # fmt: skip
        least = PUSHED_S + relay.crossing_s + 0.5
        if step.time <= relay.reset_time <= step.time + least:
            return  # it has crossed a reset
        if step.relayed < segment.start and (left is None or left.time - step.time > least):
            continue  # more was waiting before it
        if (left is None or left.time - step.time > least) and _in_flights(
            stream, step, segment, least
        ):
            continue  # its congestion window does not permit them all at once
        if left is not None and (left.time - step.time <= least or step.time <= calm):
            yield context.holds("octets with PSH leave", left, step)
        elif step.time > calm and (left is not None or watched(relay, step.time, PUSHED_S)):
            yield context.violated(
                "octets with PSH wait although the receiver has room", step,
                expected=f"they leave within {PUSHED_S} s and the way", actual="they do not",
            )  # fmt: skip
            return


@of_stream("PEP-TR-020")
def urgent_in_place(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """Urgent octets keep their place."""
    # Exercised by a segment of an end with URG.
    urgent = [
        it for it in stream.source.segments
        if not it.outgoing and it.tcp.flags & URG and it.counts and it.payload
    ]  # fmt: skip
    if not urgent or stream.last is None:
        return
    if stream.differs is not None or stream.beyond is not None:
        at = stream.differs[0] if stream.differs is not None else stream.beyond
        assert at is not None
        yield context.violated(
            "urgent octets are not relayed at their place", at, urgent[0],
            expected="the stream as it was sent", actual="other octets",
        )  # fmt: skip
        return
    yield from _relayed(relay, stream, urgent, "with URG", context)


# -- what several ask --------------------------------------------------------------------------


def _in_flights(stream: Stream, step: Step, segment: Segment, least: float) -> bool:
    """Whether a segment is sent on in many, the first of which have left in time."""
    sent = {
        it.segment.end for it in stream.steps
        if it.packet.number > step.packet.number and it.time - step.time <= least
        and not it.inlet and it.by_box and segment.start < it.segment.end < segment.end
    }  # fmt: skip
    return len(sent) >= LEAST_WINDOW


def _options(packet: Packet) -> Iterator[tuple[int, bytes]]:
    """Kind and octets of each TCP option."""
    found = header(packet)
    if found is None or found[0] != TCP or len(found[1]) < 20:
        return
    raw = found[1][20 : (found[1][12] >> 4) * 4]
    at = 0
    while at < len(raw) and raw[at]:
        if raw[at] == 1:
            at += 1
            continue
        size = raw[at + 1] if at + 1 < len(raw) else 0
        if size < 2 or at + size > len(raw):
            return
        yield raw[at], raw[at + 2 : at + size]
        at += size


def _kinds(packet: Packet) -> list[int]:
    return [kind for kind, _ in _options(packet)]


def _subtypes(packet: Packet) -> list[int]:
    """Of options of Multipath TCP."""
    return [data[0] >> 4 for kind, data in _options(packet) if kind == MULTIPATH and data]


def _first_subflow(relay: Relay) -> Relay | None:
    """A multipath connection of the same ends that began before, and was left whole."""
    ends = relay.client.ends
    found = (
        it for it in relay.scene.relays
        if (it.client.ends[0], it.client.ends[2]) == (ends[0], ends[2])
        and it.client.began < relay.client.began and it.is_whole
        and CAPABLE in _subtypes(it.client.packets[0])
    )  # fmt: skip
    return next(found, None)


def _unknown(packet: Packet) -> list[int]:
    return [kind for kind in _kinds(packet) if kind in EXPERIMENTAL]


def _protocol(packet: Packet) -> int | None:
    found = header(packet)
    return None if found is None else found[0]


def _payload(packet: Packet) -> bytes | None:
    found = header(packet)
    return None if found is None else found[1]


def _all_pass(relay: Relay, context: Context) -> Iterator[Finding]:
    """Each segment of a connection appears unaltered at the other side."""
    own = [it for it in relay.packets if not it.outgoing]
    out = [it for it in relay.packets if it.outgoing]
    for packet in own:
        if relay.scene.until - packet.time < 3.0:
            continue
        found = [
            altered(packet.data, it.data) for it in out
            if it.side != packet.side and _payload(it) == _payload(packet)
        ]  # fmt: skip
        if "" not in found:
            yield context.violated(
                "a segment of a connection that cannot be split does not pass as it is", At(packet),
                expected="the same segment at the other side",
                actual=f"{found[0]} differs" if found else "another one, or none",
            )  # fmt: skip
            return
    foreign = [it for it in out if not any(_payload(it) == _payload(other) for other in own)]
    if foreign:
        yield context.violated(
            "the box sends a segment of its own in a connection that cannot be split",
            At(foreign[0]), expected="segments of the ends only", actual="another one",
        )  # fmt: skip
    elif len(own) > 2:
        yield context.holds("the connection passes as it is", At(own[0]))


def _touches(relay: Relay, packet: Packet) -> bool:
    tcp = packet.content
    if tcp is None:
        return False
    ends = {(tcp.src, tcp.sport), (tcp.dst, tcp.dport)}
    mine = relay.client.ends
    return ends == {mine[:2], mine[2:]}


def _arrives(
    scene: Scene, packets: Iterable[Packet], how: str, context: Context
) -> Iterator[Finding]:
    """The octets of these segments leave at the other side."""
    wanted = {packet.number for packet in packets}
    for relay in scene.relays:
        for stream in relay.streams:
            found = [
                it for it in stream.source.segments
                if it.packet.number in wanted and it.payload and it.counts
            ]  # fmt: skip
            if found and stream.last is not None:
                yield from _relayed(relay, stream, found, how, context)


def _relayed(
    relay: Relay, stream: Stream, found: list[Segment], how: str, context: Context
) -> Iterator[Finding]:
    assert stream.last is not None
    end = max(segment.end for segment in found)
    yield from all_octets(
        stream.last.relayed, end, found[0], context,
        missed=watched(relay, found[-1].time, 5.0) and stream.last.outlet >= end,
        good=f"a segment {how} reaches the receiver",
        bad=f"a segment {how} does not reach the receiver",
    )  # fmt: skip
