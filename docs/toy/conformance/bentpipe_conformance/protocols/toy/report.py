"""Reporting TOY: what a ladder says of a packet. Nothing is plotted."""

from __future__ import annotations

from collections.abc import Collection

from bentpipe_conformance.engine.scene import Scene
from bentpipe_conformance.engine.suite import Reporter
from bentpipe_conformance.protocols.toy.replay import Packet, Trace


def _plain(packet: Packet) -> tuple[str, tuple[str, ...]]:
    toy = packet.content
    if toy is None:
        return f"not TOY, {len(packet.data)} octets", ()
    texts = [toy.name, *([f"bit {toy.bit}"] if toy.is_numbered else [])]
    texts += [f"{len(toy.data)} octets"] if toy.data else []
    return " · ".join(texts), () if toy.checksum_ok else ("wrong checksum",)


def _describe(trace: Trace) -> dict[int, tuple[str, tuple[str, ...]]]:
    return {packet.number: _plain(packet) for packet in trace.at("iut")}


def _scene(_trace: Trace, _wanted: Collection[int]) -> Scene | None:
    return None


REPORTER = Reporter(
    describe=_describe,
    plain=_plain,
    scene=_scene,
    legend=(),
    unit="",
    counting="one bit numbers packets",
)
