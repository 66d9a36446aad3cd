"""Reporting boxes: what a ladder says of a segment; its lanes say at which side it was."""

from __future__ import annotations

from collections.abc import Collection

from bentpipe_conformance.engine.scene import Mark, Scene, choose_scene
from bentpipe_conformance.engine.suite import Reporter
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Trace, read_flows
from bentpipe_conformance.protocols.pep.replay.leg import Packet, Segment
from bentpipe_conformance.protocols.tcp import report as tcp_report
from bentpipe_conformance.protocols.tcp.crafting import dissection
from bentpipe_conformance.report.ladder import span, thousands

_Row = tuple[str, tuple[str, ...]]


def _plain(packet: Packet) -> _Row:
    return tcp_report.REPORTER.plain(packet)


def _describe(trace: Trace) -> dict[int, _Row]:
    rows: dict[int, _Row] = {}
    for flow in read_flows(trace):
        if not isinstance(flow, Relay):
            continue
        for leg in (flow.client, *flow.calls):
            for packet in leg.packets:
                rows[packet.number] = _plain(packet)
            for segment in leg.segments:
                rows[segment.packet.number] = _segment(segment)
    return rows


def _segment(segment: Segment) -> _Row:
    texts = [name for name in ("SYN", "FIN", "RST") if name[0] in segment.tcp.flag_names]
    if segment.end > segment.start:
        texts.append(f"data {span(segment.start, segment.end)}")
    if segment.ack is not None and segment.edge is not None:
        texts.append(f"ack {thousands(segment.ack)} · permits {thousands(segment.edge)}")
    told = " · ".join(texts) or _plain(segment.packet)[0]
    return told, () if segment.counts else ("outside the connection",)


def _draw(relay: Relay) -> Scene:
    """The stream that carries more: what comes in, and what the box acknowledges."""
    stream = max(relay.streams or (relay.up,), key=lambda item: len(item.octets))
    here = [(item.segment, item) for item in stream.steps if item.inlet]
    data = [
        Mark(it.packet.number, it.time, it.start, it.end)
        for it, _ in here
        if not it.outgoing and it.end > it.start
    ]
    acks = [
        Mark(it.packet.number, it.time, it.ack, it.ack, edge=it.edge or 0)
        for it, _ in here
        if it.outgoing and it.ack is not None
    ]
    return Scene(False, tuple(data), tuple(acks), ())


def _scene(trace: Trace, wanted: Collection[int]) -> Scene | None:
    return choose_scene([it for it in read_flows(trace) if isinstance(it, Relay)], wanted, _draw)


REPORTER = Reporter(
    describe=_describe,
    plain=_plain,
    scene=_scene,
    legend=tcp_report.LEGEND,
    unit="octet offset",
    counting="offsets count octets of data in one direction from 0",
    layers=dissection,
)
