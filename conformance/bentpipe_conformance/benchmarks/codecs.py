"""Build and dissect rates: the two codecs of this project beside Scapy, on the same segments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from statistics import median

from bentpipe_reference.common.address import address_text
from bentpipe_reference.tcp.wire import Segment, emit_packet, parse_packet

from bentpipe_conformance.benchmarks.model import Figure, Report, at_least, cpu_seconds
from bentpipe_conformance.protocols.tcp import codec as wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scapy.layers.inet import IP, TCP
    from scapy.packet import Raw

SEGMENTS = 200
TARGET = 20
_ROUNDS = 20
"""Passes of a fast codec over the segments for each pass of Scapy, against the clock's grain."""


def reference_codec(repeat: int) -> Report:
    """The reference's codec."""
    segments = [parse_packet(packet) for packet in _packets()]

    def work() -> None:
        for segment in segments:
            parse_packet(emit_packet(segment))

    return _compared("the reference's codec", repeat, work)


def tester_codec(repeat: int) -> Report:
    """The tester's codec."""
    segments = [wire.dissect(packet) for packet in _packets()]

    def work() -> None:
        for segment in segments:
            wire.dissect(wire.build(segment))

    return _compared("the tester's codec", repeat, work)


def _compared(name: str, repeat: int, work: Callable[[], None]) -> Report:
    fields = [_scapy_fields(parse_packet(packet)) for packet in _packets()]

    def scapy() -> None:
        for ip, tcp, payload in fields:
            IP(bytes(IP(**ip) / TCP(**tcp) / Raw(payload)))

    return compare(
        f"{name} and Scapy build and dissect the same {SEGMENTS} segments, half of them with 1460 "
        "octets of data, half bare acknowledgments with timestamps and three SACK blocks",
        "segment", SEGMENTS, repeat, work, scapy,
    )  # fmt: skip


def compare(
    measured: str,
    unit: str,
    count: int,
    repeat: int,
    ours: Callable[[], None],
    theirs: Callable[[], None],
) -> Report:
    """Two ways to build and dissect the same ``count`` units, in turns.

    Args:
        measured: what they do.
        unit: what a unit is called.
        count: units in one call of ``ours`` or ``theirs``.
        repeat: how often both are measured.
        ours: our codec.
        theirs: Scapy.
    """

    def many() -> None:
        for _ in range(_ROUNDS):
            ours()

    our_seconds, their_seconds, ratios = [], [], []
    for _ in range(repeat):
        mine = cpu_seconds(many) / (_ROUNDS * count)
        other = cpu_seconds(theirs) / count
        our_seconds.append(mine)
        their_seconds.append(other)
        ratios.append(other / mine)
    return Report(
        f"{measured}; CPU time, in turns",
        (
            at_least("times Scapy's rate", median(ratios), TARGET),
            Figure(f"microseconds per {unit}", 1e6 * median(our_seconds)),
            Figure(f"microseconds per {unit} in Scapy", 1e6 * median(their_seconds)),
        ),
    )


def _packets() -> list[bytes]:
    """Data segments and acknowledgments of a transfer in recovery."""
    source, destination = 0x0A4D0002, 0x0A4E0001
    packets = []
    for i in range(SEGMENTS // 2):
        data = Segment(source, destination, 40000, 9, 1460 * i, 77, 0x10, 4096, 0)
        data.payload = bytes((i + k) & 0xFF for k in range(1460))
        packets.append(emit_packet(data))
        ack = Segment(destination, source, 9, 40000, 77, 1460 * i, 0x10, 61440 - i, 0)
        ack.timestamps = 100_000 + i, 90_000 + i
        left = 1460 * (i + 2)
        ack.sack_blocks = tuple((left + 5840 * k, left + 5840 * k + 2920) for k in range(3))
        packets.append(emit_packet(ack))
    return packets


def _scapy_fields(segment: Segment) -> tuple[dict[str, object], dict[str, object], bytes]:
    options: list[tuple[str, object]] = []
    if segment.timestamps is not None:
        options += [("NOP", None), ("NOP", None), ("Timestamp", segment.timestamps)]
    if segment.sack_blocks:
        edges = tuple(edge for block in segment.sack_blocks for edge in block)
        options += [("NOP", None), ("NOP", None), ("SAck", edges)]
    ip: dict[str, object] = {
        "src": address_text(segment.source),
        "dst": address_text(segment.destination),
    }
    tcp: dict[str, object] = {
        "sport": segment.sport,
        "dport": segment.dport,
        "seq": segment.seq,
        "ack": segment.ack,
        "flags": segment.flags,
        "window": segment.window,
        "options": options,
    }
    return ip, tcp, segment.payload
