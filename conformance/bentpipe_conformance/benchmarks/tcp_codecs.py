"""The two TCP codecs of this project beside Scapy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bentpipe_reference.common.address import address_text
from bentpipe_reference.tcp.wire import Segment, emit_packet, parse_packet

from bentpipe_conformance.benchmarks.codecs import COUNT, DESTINATION, SOURCE, Load
from bentpipe_conformance.benchmarks.model import Report
from bentpipe_conformance.protocols.tcp import codec


def reference_codec(repeat: int) -> Report:
    """The reference's codec."""
    segments = [parse_packet(packet) for packet in packets()]

    def work() -> None:
        for segment in segments:
            parse_packet(emit_packet(segment))

    return _load().compared("the reference's codec", repeat, work)


def tester_codec(repeat: int) -> Report:
    """The tester's codec."""
    segments = [codec.dissect(packet) for packet in packets()]

    def work() -> None:
        for segment in segments:
            codec.dissect(codec.build(segment))

    return _load().compared("the tester's codec", repeat, work)


def _load() -> Load:
    return Load(
        "segment",
        "segments, half of them with 1460 octets of data, half bare acknowledgments with "
        "timestamps and three SACK blocks",
        [scapy_layers(parse_packet(packet)) for packet in packets()],
    )


def packets() -> list[bytes]:
    """Data segments and acknowledgments of a transfer in recovery."""
    found = []
    for i in range(COUNT // 2):
        data = Segment(SOURCE, DESTINATION, 40000, 9, 1460 * i, 77, 0x10, 4096, 0)
        data.payload = bytes((i + k) & 0xFF for k in range(1460))
        found.append(emit_packet(data))
        ack = Segment(DESTINATION, SOURCE, 9, 40000, 77, 1460 * i, 0x10, 61440 - i, 0)
        ack.timestamps = 100_000 + i, 90_000 + i
        left = 1460 * (i + 2)
        ack.sack_blocks = tuple((left + 5840 * k, left + 5840 * k + 2920) for k in range(3))
        found.append(emit_packet(ack))
    return found


def scapy_layers(segment: Segment) -> Callable[[], Any]:
    """What makes the same segment of Scapy's layers."""
    from scapy.layers.inet import IP, TCP

    options: list[tuple[str, object]] = []
    if segment.timestamps is not None:
        options += [("NOP", None), ("NOP", None), ("Timestamp", segment.timestamps)]
    if segment.sack_blocks:
        edges = tuple(edge for block in segment.sack_blocks for edge in block)
        options += [("NOP", None), ("NOP", None), ("SAck", edges)]
    ip = {"src": address_text(segment.source), "dst": address_text(segment.destination)}
    tcp = {name: getattr(segment, name) for name in ("sport", "dport", "seq", "ack", "flags")}
    tcp |= {"window": segment.window, "options": options}
    return lambda: IP(**ip) / TCP(**tcp) / segment.payload
