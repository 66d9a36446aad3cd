"""The checker of segments with a wrong checksum (PEP-RE-015)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import OTHER_SIDE
from bentpipe_conformance.protocols.pep.checkers import At, Context, allowed, of_scene
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import Packet, segment_ends
from bentpipe_conformance.protocols.pep.replay.stream import Stream
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN, Tcp

SETTLED_S = 1.0
"""Seconds after which it would have been acted on, the way not counted."""

_Ends = tuple[str, int, str, int]


@of_scene("PEP-RE-015")
def errors_not_repaired(scene: Scene, context: Context) -> Iterator[Finding]:
    """Segments with errors are not repaired."""
    # Exercised by a segment with a wrong TCP checksum.
    right = {_identity(it) for it in scene.packets if not it.outgoing and _is_right(it)}
    left: dict[tuple[str, tuple[object, ...]], Packet] = {}
    for it in scene.packets:
        if it.outgoing and _is_right(it):
            left.setdefault((it.side, _identity(it)), it)
    for packet in scene.others:
        tcp = packet.content
        if tcp is None or tcp.checksum_ok or packet.outgoing:
            continue
        acted = _acted(scene, packet, tcp)
        other = OTHER_SIDE[packet.side]
        mended = left.get((other, _identity(packet)))
        if mended is not None and mended.number > packet.number and _identity(packet) not in right:
            acted = mended, "is sent on with a right one"
        if acted is not None:
            yield context.violated(
                f"a segment with a wrong checksum, {tcp.flag_names}, {acted[1]}", At(acted[0]),
                At(packet), expected="nothing, as if it had not come", actual=acted[1],
            )  # fmt: skip
        elif scene.until - packet.time > SETTLED_S:
            yield context.holds("the wrong segment is dropped", At(packet))


def _acted(scene: Scene, packet: Packet, tcp: Tcp) -> tuple[Packet, str] | None:
    """What the box has sent that only the wrong segment explains, and what that means."""
    ends = segment_ends(packet, tcp)
    relay = next((it for it in scene.relays if ends in (it.client.ends, *_calls(it))), None)
    if relay is None:
        return _opened(scene, packet, ends)
    if tcp.flags & SYN:
        return _answered(relay, packet) if tcp.flags & ACK and packet.side == "server" else None
    if tcp.flags & RST:
        return _reset(relay, packet)
    stream = relay.up if packet.side == "client" else relay.down
    return None if stream is None else _taken(stream, packet, tcp)


def _taken(stream: Stream, packet: Packet, tcp: Tcp) -> tuple[Packet, str] | None:
    """Whether octets or the end of a stream were taken from a wrong segment."""
    for step in stream.steps:
        if step.packet.number <= packet.number:
            continue
        if tcp.payload and step.taken > step.arrived:
            return step.packet, "is acknowledged"
        if tcp.flags & FIN and step.end is None and step.end_relayed:
            return step.packet, "ends the stream"
        if tcp.flags & FIN and step.end is None and step.taken > step.sent:
            return step.packet, "is acknowledged"
    if tcp.payload and stream.beyond is not None:
        return stream.beyond.packet, "is relayed"
    return None


def _reset(relay: Relay, packet: Packet) -> tuple[Packet, str] | None:
    """Whether the box resets a connection soon after a wrong RST, and for no other."""
    until = packet.time + allowed(relay, SETTLED_S)
    resets = [
        it for leg in relay.legs for it in leg.segments
        if it.outgoing and it.tcp.flags & RST and packet.time <= it.time <= until
        and it.packet.number > packet.number
    ]  # fmt: skip
    if not resets or any(map(relay.has_cause, resets)):
        return None
    return resets[0].packet, "resets the connection"


def _opened(scene: Scene, packet: Packet, ends: _Ends) -> tuple[Packet, str] | None:
    """Whether a wrong SYN was answered, or called for.

    What an end has sent itself, and the box has sent on, is no answer of the box: a server may have
    taken the wrong SYN that was sent on as it was.
    """
    passing: set[tuple[object, ...]] = set()
    for it in scene.packets:
        tcp = it.content
        if tcp is None or it.number < packet.number or not tcp.checksum_ok:
            continue
        if not it.outgoing:
            passing.add(_identity(it))
            continue
        if _identity(it) in passing:
            continue
        if tcp.flags & SYN and not tcp.flags & RST and segment_ends(it, tcp) == ends:
            return it, "opens a connection"
    return None


def _answered(relay: Relay, packet: Packet) -> tuple[Packet, str] | None:
    """Whether a wrong SYN-ACK has opened the connection with the server."""
    server = relay.server
    if server is None or server.answered is not None:
        return None
    found = next(
        (it.packet for it in server.segments if it.outgoing and it.packet.number > packet.number
         and it.tcp.flags & (SYN | ACK | RST) == ACK),
        None,
    )  # fmt: skip
    return None if found is None else (found, "opens a connection")


def _calls(relay: Relay) -> list[_Ends]:
    return [leg.ends for leg in relay.calls]


def _is_right(packet: Packet) -> bool:
    return packet.content is not None and packet.content.checksum_ok


def _identity(packet: Packet) -> tuple[object, ...]:
    """What tells a segment from others, whatever its checksum."""
    tcp = packet.content
    assert tcp is not None
    return tcp.src, tcp.sport, tcp.dst, tcp.dport, tcp.seq, tcp.flags, tcp.payload
