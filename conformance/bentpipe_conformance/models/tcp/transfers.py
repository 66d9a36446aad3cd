"""A captured transfer as input to the model: which connection, and how far the capture suffices.

A capture judges a sender only where it shows all that reached it and all that left it. What it
lacks is found here, with the packet from which on nothing can be said.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.trace import Packet, Trace
from bentpipe_conformance.evidence.frames import CaptureError, Frame
from bentpipe_conformance.evidence.network import ipv4_packet
from bentpipe_conformance.evidence.pcapng import read_capture
from bentpipe_conformance.models.tcp.windows import race_of
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, Tcp, dissect
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import REACTION_S, Flow, read_flows
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt

Endpoint = tuple[str, int]

SUFFIXES = (".pcapng", ".pcap", ".cap")
"""Files with these suffixes are captures; all others are read as NDJSON."""

_SHOWN = 4
_ICMP, _UNREACHABLE, _TOO_BIG = 1, 3, 4
RACES_PER_RTT = 4
"""A round trip shorter than this many races does not tell what the sender knew."""


class CaptureProblem(Exception):
    """A file is not a capture, or the connection meant is ambiguous; one sentence."""


@dataclass(frozen=True, slots=True)
class Lack:
    """What a capture lacks.

    Attributes:
        packet: the packet from which on nothing can be said; 0 when nothing can be said at all.
        sentence: what is missing.
    """

    packet: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """One connection of a capture, seen from its sender.

    Attributes:
        name: the file.
        sender, receiver: (address, port).
        flow: the connection replayed; None when the capture does not show its beginning.
        events: the sender's events up to what the capture lacks.
        total: all events of the sender in the capture.
        lack: why the rest cannot be judged; None when all of it can.
    """

    name: str
    sender: Endpoint
    receiver: Endpoint
    flow: Flow | None
    events: tuple[Sent | Ack, ...]
    total: int
    lack: Lack | None


@dataclass(frozen=True, slots=True)
class _Segment:
    frame: Frame
    octets: bytes
    tcp: Tcp

    @property
    def source(self) -> Endpoint:
        return self.tcp.src, self.tcp.sport

    @property
    def destination(self) -> Endpoint:
        return self.tcp.dst, self.tcp.dport


def endpoint_text(end: Endpoint) -> str:
    """An endpoint as ``--flow`` takes it."""
    return f"{end[0]}:{end[1]}"


def read_transfer(path: str | os.PathLike[str], chosen: str | None = None) -> Transfer:
    """Read the transfer of a capture.

    Args:
        path: a pcapng or pcap file.
        chosen: ``SENDER-RECEIVER``, each ``ADDRESS:PORT``; may be omitted when only one connection
            carries data, and the end that sent most of it is then the sender.

    Raises:
        CaptureProblem: the file is not a capture, or holds no such connection or several.
    """
    name = os.fspath(path)
    damage: Lack | None = None
    try:
        frames = read_capture(path)
    except CaptureError as error:
        if not error.partial:
            raise CaptureProblem(str(error)) from error
        frames = error.partial
        damage = Lack(frames[-1].number + 1, str(error).rstrip("."))
    segments = list(_segments(frames))
    sender, receiver = _choose(name, segments, chosen)
    mine = [item for item in segments if {item.source, item.destination} == {sender, receiver}]
    lacks = [*_lacks_of_the_file(frames, mine, sender), *([damage] if damage else [])]
    flow = _replay(frames, mine, sender)
    if flow is None:
        start = "the capture starts late: it shows no SYN and SYN-ACK of the connection"
        return Transfer(name, sender, receiver, None, (), 0, Lack(0, start))
    everything = [event for event in flow.events if isinstance(event, Sent | Ack)]
    lacks += _lacks_of_the_flow(flow, everything)
    first = min(lacks, key=lambda lack: lack.packet, default=None)
    events = everything
    if first is not None:
        events = [event for event in everything if event.packet.number < first.packet]
    return Transfer(name, sender, receiver, flow, tuple(events), len(everything), first)


def _segments(frames: tuple[Frame, ...]) -> Iterator[_Segment]:
    for frame in frames:
        octets = ipv4_packet(frame) or b""
        try:
            yield _Segment(frame, octets, dissect(octets))
        except MalformedPacket:
            continue


def _choose(name: str, segments: list[_Segment], chosen: str | None) -> tuple[Endpoint, Endpoint]:
    octets: Counter[tuple[Endpoint, Endpoint]] = Counter()
    for item in segments:
        octets[item.source, item.destination] += len(item.tcp.payload)
    if not segments:
        raise CaptureProblem(f"{name} holds no TCP segment over IPv4.")
    wanted = _parse(chosen) if chosen is not None else None
    if wanted is not None:
        if wanted not in octets:
            raise CaptureProblem(
                f"{name} has no segment from {endpoint_text(wanted[0])} to "
                f"{endpoint_text(wanted[1])}; it has {_listed(octets)}."
            )
        return wanted
    best: Counter[tuple[Endpoint, Endpoint]] = Counter()
    for (source, destination), count in octets.items():
        if count and count >= octets[destination, source]:
            best[source, destination] = count
    if not best:
        raise CaptureProblem(f"{name} holds no TCP payload to judge a sender by.")
    if len(best) > 1:
        raise CaptureProblem(
            f"{name} holds {len(best)} connections with data; choose one with --flow, such as "
            f"--flow {_listed(best)}."
        )
    return next(iter(best))


def _listed(octets: Counter[tuple[Endpoint, Endpoint]]) -> str:
    some = [f"{endpoint_text(a)}-{endpoint_text(b)}" for (a, b), _ in octets.most_common(_SHOWN)]
    return " or ".join(some) + (" or others" if len(octets) > _SHOWN else "")


def _parse(chosen: str) -> tuple[Endpoint, Endpoint]:
    ends = [end.rsplit(":", 1) for end in chosen.split("-")]
    if len(ends) != 2 or any(len(end) != 2 or not end[1].isdigit() for end in ends):
        raise CaptureProblem(
            f"{chosen!r} names no connection; give ADDRESS:PORT-ADDRESS:PORT, the sender first."
        )
    (sender, sport), (receiver, dport) = ends
    return (sender, int(sport)), (receiver, int(dport))


def _replay(frames: tuple[Frame, ...], mine: list[_Segment], sender: Endpoint) -> Flow | None:
    base = next((frame.time_ns for frame in frames if frame.time_ns is not None), 0)
    packets = tuple(
        Packet(
            item.frame.number, ((item.frame.time_ns or base) - base) / 1e9, "iut",
            item.source == sender, replace(item.tcp, checksum_ok=True), item.octets,
        )
        for item in mine
    )  # fmt: skip
    for flow in read_flows(Trace(packets)):
        if flow.handshake.iut is not None and flow.handshake.tester is not None:
            return flow
    return None


# -- what a capture can lack ------------------------------------------------------------------


def _lacks_of_the_file(
    frames: tuple[Frame, ...], mine: list[_Segment], sender: Endpoint
) -> Iterator[Lack]:
    names = {item.frame.interface for item in mine}
    if len(names) > 1:
        yield Lack(
            0, f"packets of {len(names)} capture points are mixed: {', '.join(sorted(names))}"
        )
    elif _seen_twice(mine, sender):
        yield Lack(0, "most segments occur twice, as if from two capture points")
    previous = 0
    initial: dict[bool, int] = {}
    for item in mine:
        number = item.frame.number
        if item.frame.time_ns is None:
            yield Lack(0, f"packet {number} has no time stamp")
            return
        if item.frame.time_ns < previous:
            yield Lack(number, f"time runs backwards at packet {number}")
            return
        previous = item.frame.time_ns
        if item.frame.cut and not _header_is_whole(item):
            yield Lack(
                number, f"the TCP header of packet {number} is cut; capture more octets of each"
            )
            return
        if item.tcp.flags & SYN:
            mine_out = item.source == sender
            if item.tcp.payload:
                yield Lack(0, f"packet {number} carries data with its SYN")
            if initial.setdefault(mine_out, item.tcp.seq) != item.tcp.seq:
                yield Lack(
                    number, f"another connection on the same ports begins at packet {number}"
                )
                return
    if mine:
        yield from _path_mtu_messages(frames, mine)


def _header_is_whole(item: _Segment) -> bool:
    missing = item.frame.original_length - len(item.frame.data)
    return len(item.octets) - missing >= len(item.octets) - len(item.tcp.payload)


def _seen_twice(mine: list[_Segment], sender: Endpoint) -> bool:
    """Whether most of the sender's data occurs twice, apart from what a router changes."""
    copies = Counter(
        item.octets[2:8] + item.octets[9:10] + item.octets[12:]
        for item in mine
        if item.source == sender and item.tcp.payload
    )
    total = copies.total()
    return total >= 2 and sum(n for n in copies.values() if n > 1) > total / 2


def _path_mtu_messages(frames: tuple[Frame, ...], mine: list[_Segment]) -> Iterator[Lack]:
    """A message "fragmentation needed" makes a sender repeat what was not lost (RFC 1191)."""
    hosts = {mine[0].octets[12:16], mine[0].octets[16:20]}
    for frame in frames:
        octets = ipv4_packet(frame) or b""
        at = (octets[0] & 15) * 4 if octets else 0
        about = octets[at + 8 : at + 28]
        if len(about) < 20 or octets[9] != _ICMP or octets[at] != _UNREACHABLE:
            continue
        if {about[12:16], about[16:20]} == hosts:
            yield Lack(frame.number, f"packet {frame.number} reports the path's state by ICMP")
            return


def _lacks_of_the_flow(flow: Flow, events: list[Sent | Ack]) -> Iterator[Lack]:
    if not flow.handshake.sack:
        yield Lack(0, "SACK was not negotiated")
    yield from _place(flow)
    rtt = minimum_rtt(flow)
    if not events or not any(isinstance(event, Sent) for event in events):
        yield Lack(0, "the sender sent no data")
    elif rtt <= 0 or not any(isinstance(event, Ack) and event.advance for event in events):
        yield Lack(0, "no round trip was measured: nothing is acknowledged")
    elif rtt < RACES_PER_RTT * race_of(flow):
        yield Lack(
            0, f"a round trip of {rtt * 1000:.1f} ms is too short to tell what the sender knew"
        )
    highest = 0
    for event in events:
        number = event.packet.number
        if isinstance(event, Sent):
            if event.start > highest:
                yield Lack(number, f"data sent just before packet {number} was not captured")
                return
            highest = max(highest, event.end)
        elif event.beyond:
            yield Lack(number, f"packet {number} acknowledges data that was never captured")
            return
    if flow.resets:
        # What follows a reset does not belong to the connection; what precedes it is judged.
        number = flow.resets[0].number
        if events and events[-1].packet.number > number:
            yield Lack(number, f"packet {number} resets the connection")


def _place(flow: Flow) -> Iterator[Lack]:
    """The handshake tells where the capture was taken: the sender's own answer takes no time."""
    own, other = flow.handshake.iut, flow.handshake.tester
    assert own is not None and other is not None
    answer = next(
        (p for p in flow.packets
         if p.outgoing and p.time >= other.time and p.number > other.number
         and p.content is not None and p.content.flags & ACK and not p.content.flags & RST), None,
    )  # fmt: skip
    reply = next((p for p in flow.packets if not p.outgoing and p.number > own.number), None)
    if answer is None or reply is None:
        return
    took, round_trip = answer.time - other.time, reply.time - own.time
    if took > REACTION_S and took > round_trip / RACES_PER_RTT:
        yield Lack(
            0, f"it was not taken at the sender's side: the sender's answer to the handshake took "
            f"{took:.3f} s, the receiver's {round_trip:.3f} s"
        )  # fmt: skip
