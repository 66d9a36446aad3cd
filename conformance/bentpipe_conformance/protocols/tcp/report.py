"""Reporting TCP: what a ladder says of a segment, and the time-sequence plot of octets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bentpipe_conformance.engine.scene import Mark, Scene, choose_scene
from bentpipe_conformance.engine.suite import Reporter
from bentpipe_conformance.protocols.tcp.crafting import dissection
from bentpipe_conformance.protocols.tcp.replay import Packet, Trace
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Reply, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow, read_flows
from bentpipe_conformance.report.ladder import span, thousands

LEGEND = (
    ("new", "new data"),
    ("again", "retransmission"),
    ("ack", "acknowledged, duplicates ticked"),
    ("sack", "SACK blocks"),
    ("window", "window edge"),
    ("lost", "lost on the link"),
    ("mark", "evidence"),
)


def _plain(packet: Packet) -> tuple[str, tuple[str, ...]]:
    """Describe a packet outside any connection, or not seen at the IUT's side."""
    if packet.content is None:
        return f"not TCP over IP, {len(packet.data)} octets", ()
    tcp = packet.content
    names = {"S": "SYN", "F": "FIN", "R": "RST", "A": "ack"}
    flags = "+".join(names[letter] for letter in tcp.flag_names if letter in names)
    size = f" · {tcp.size} octets of data" if tcp.size else ""
    return f"{flags or 'no flags'}{size}", () if tcp.checksum_ok else ("wrong checksum",)


def _describe(trace: Trace) -> dict[int, tuple[str, tuple[str, ...]]]:
    what: dict[int, list[str]] = {}
    notes: dict[int, list[str]] = {}
    for flow in read_flows(trace):
        for packet in flow.packets:
            what[packet.number] = _opening(packet)
            notes[packet.number] = []
        for event in flow.events:
            number = event.packet.number
            texts, remarks = _event(event)
            what[number] += texts
            notes[number] += remarks
    return {
        number: (" · ".join(texts) or "no flags", tuple(notes[number]))
        for number, texts in what.items()
    }


def _opening(packet: Packet) -> list[str]:
    tcp = packet.content
    assert tcp is not None
    special = [name for name in ("SYN", "FIN", "RST") if name[0] in tcp.flag_names]
    texts = ["+".join(special)] if special else []
    if "S" in tcp.flag_names:
        options = {
            f"MSS {tcp.mss}": tcp.mss is not None,
            "SACK permitted": tcp.sack_permitted,
            f"window scale {tcp.window_scale}": tcp.window_scale is not None,
            "timestamps": tcp.tsval is not None,
            f"window {thousands(tcp.window)}": True,
        }
        texts += [text for text, there in options.items() if there]
    return texts


def _event(event: Sent | Ack | Arrival | Reply) -> tuple[list[str], list[str]]:
    notes: dict[str, object] = {}
    match event:
        case Sent():
            texts = _data(event)
            notes = {f"transmission {event.transmission}": event.retransmission}
        case Arrival():
            texts = _data(event)
            notes = {"out of order": event.out_of_order, "duplicate data": event.duplicate}
            notes["not acceptable"] = not event.acceptable
        case Ack():
            blocks = (*((event.dsack,) if event.dsack else ()), *event.blocks)
            texts = _ack(event.ack, event.window, (*blocks, *event.invalid_blocks))
            notes = {f"duplicate {event.duplicates}": event.duplicate, "ancient": event.ancient}
            notes |= {"acknowledges what was not sent": event.beyond, "D-SACK": event.dsack}
            notes["invalid SACK block"] = event.invalid_blocks
        case Reply():
            texts = [] if event.payload else _ack(event.ack, event.window, event.blocks)
    return texts, [note for note, there in notes.items() if there]


def _data(event: Sent | Arrival) -> list[str]:
    tcp = event.packet.content
    return [f"data {span(event.start, event.end)}"] if tcp and tcp.size else []


def _ack(ack: int, window: int, blocks: Sequence[tuple[int, int]]) -> list[str]:
    texts = [f"ack {thousands(ack)}"]
    if blocks:
        texts.append("SACK " + ", ".join(span(*block) for block in blocks))
    return [*texts, f"window {thousands(window)}"]


def flagged(packets: Iterable[Packet]) -> tuple[tuple[int, float, str], ...]:
    """The packets of a scene with SYN, FIN or RST: number, time and first letters."""
    return tuple(
        (packet.number, packet.time, letters)
        for packet in packets
        if packet.content
        and (letters := "".join(c for c in packet.content.flag_names if c in "SFR"))
    )


def make_scene(flow: Flow) -> Scene:
    """Draw the direction of ``flow`` that carries more data."""
    others = flagged(flow.packets)
    sent = sum(item.payload for item in flow.sent)
    arrived = sum(item.end - item.start for item in flow.arrivals)
    if sent >= arrived:
        data = [
            Mark(item.packet.number, item.time, item.start, item.end, item.retransmission)
            for item in flow.sent
        ]
        acks = [
            Mark(
                item.packet.number, item.time, item.ack, item.ack, duplicate=item.duplicate,
                blocks=item.blocks + item.invalid_blocks + ((item.dsack,) if item.dsack else ()),
                edge=item.window_edge,
            )
            for item in flow.acks
        ]  # fmt: skip
        return Scene(True, tuple(data), tuple(acks), others)
    highest = 0
    data = []
    for arrival in flow.arrivals:
        number = arrival.packet.number
        again = arrival.start < highest
        data.append(Mark(number, arrival.time, arrival.start, arrival.end, again))
        highest = max(highest, arrival.end)
    acks = []
    for reply in flow.replies:
        repeated = bool(acks) and not reply.payload and acks[-1].end == reply.ack
        acks.append(
            Mark(
                reply.packet.number, reply.time, reply.ack, reply.ack, duplicate=repeated,
                blocks=reply.blocks, edge=reply.window_edge,
            )
        )  # fmt: skip
    return Scene(False, tuple(data), tuple(acks), others)


REPORTER = Reporter(
    describe=_describe,
    plain=_plain,
    scene=lambda trace, wanted: choose_scene(read_flows(trace), wanted, make_scene),
    legend=LEGEND,
    unit="octet offset",
    counting="offsets count octets of data in one direction from 0",
    layers=dissection,
)
