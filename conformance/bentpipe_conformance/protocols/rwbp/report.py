"""Reporting RWBP: what a ladder says of a segment, and the time-sequence plot of octets."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.scene import Mark, Scene, choose_scene
from bentpipe_conformance.protocols.rwbp.credit import read_frame
from bentpipe_conformance.protocols.rwbp.replay import Packet, Trace
from bentpipe_conformance.protocols.rwbp.replay.events import Ack, Arrival, Reply, Sent, Why
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow, read_flows
from bentpipe_conformance.protocols.tcp import report as tcp_report
from bentpipe_conformance.report.ladder import span, thousands

_Row = tuple[str, tuple[str, ...]]


def _describe(trace: Trace) -> dict[int, _Row]:
    rows: dict[int, _Row] = {}
    for flow in read_flows(trace):
        for packet in flow.packets:
            rows[packet.number] = _plain(packet)
        for event in flow.events:
            text, notes = rows[event.packet.number]
            more, remarks = _event(event)
            first = "" if event.packet.content and not event.packet.content.flags & 7 else text
            rows[event.packet.number] = (
                " · ".join(filter(None, (first or _kept(text), more))), (*notes, *remarks),
            )  # fmt: skip
    return rows


def _kept(text: str) -> str:
    """What an event before has said of the packet, instead of its flags."""
    return text if text.startswith(("data", "ack ")) else ""


def _plain(packet: Packet) -> _Row:
    frame = None if packet.content is not None else read_frame(packet.data)
    if frame is not None:
        counts = f"{thousands(frame.arrived)} arrived · limit {thousands(frame.limit)}"
        flaws = (f"not valid: {frame.flaw}",) if frame.flaw else ()
        return f"credit · epoch {frame.epoch} · {counts}", flaws
    text, notes = tcp_report.REPORTER.plain(packet)
    tcp = packet.content
    if tcp is not None and tcp.rwbp:
        shown = (f"RWBP/{option.version} {option.interval}/{option.unit}" for option in tcp.rwbp)
        text = " · ".join((text, *shown, f"window {thousands(tcp.window)}"))
    return text, notes


def _event(event: Sent | Ack | Arrival | Reply) -> tuple[str, tuple[str, ...]]:
    match event:
        case Sent():
            again = event.why is not Why.NEW
            return f"data {span(event.start, event.end)}", (event.why.value,) * again
        case Arrival():
            text = f"data {span(event.start, event.end)}" if event.end > event.start else ""
            odd = {"not acceptable": not event.acceptable, "not orderly": not event.orderly}
            return text, tuple(note for note, there in odd.items() if there and text)
        case Ack():
            notes = tuple(f"lost: {span(item.start, item.end)}" for item in event.taken)
            return _ack(event.ack, event.tcp.window, (*event.blocks, *event.untrue)), notes
        case Reply():
            if not event.pure:
                return "", ()
            return _ack(event.ack, event.field, event.blocks), ("probe",) * event.probe


def _ack(ack: int, units: int, blocks: tuple[tuple[int, int], ...]) -> str:
    shown = "".join(f" · SACK {span(*block)}" for block in blocks)
    return f"ack {thousands(ack)}{shown} · window {thousands(units)} units"


def make_scene(flow: Flow) -> Scene:
    """Draw the direction of ``flow`` that carries more data."""
    if not flow.agreed:
        return tcp_report.make_scene(flow.tcp)
    outgoing = sum(item.payload for item in flow.sent) >= sum(a.payload for a in flow.arrivals)
    if outgoing:
        data = [
            Mark(s.packet.number, s.time, s.start, s.end, s.why is not Why.NEW) for s in flow.sent
        ]
        acks = [
            Mark(
                a.packet.number, a.time, a.ack, a.ack, blocks=a.blocks + a.untrue,
                edge=a.edge_after,
            )
            for a in flow.acks
        ]  # fmt: skip
    else:
        data = [
            Mark(a.packet.number, a.time, a.start, a.end, a.end <= a.expected)
            for a in flow.arrivals
            if a.payload
        ]
        acks = [
            Mark(r.packet.number, r.time, r.ack, r.ack, blocks=r.blocks, edge=r.edge)
            for r in flow.replies
        ]
    return Scene(outgoing, tuple(data), tuple(acks), tcp_report.flagged(flow.packets))


REPORTER = replace(
    tcp_report.REPORTER,
    describe=_describe,
    plain=_plain,
    scene=lambda trace, wanted: choose_scene(read_flows(trace), wanted, make_scene),
)
