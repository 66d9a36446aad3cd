"""TCP's codecs: the judge's, the reference's, and Scapy's own layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.protocols.tcp.codec import Tcp, dissect
from bentpipe_reference.tcp.wire import Segment, WireError, parse_packet

from bentpipe_fuzz.inputs.harness import Harness, Reading, scapy_payload

FLAGS = 0xFF
"""The bit above them is reserved (RFC 9293 section 3.1), and has been a flag of RFC 3540."""

LENGTHS = {2: (2,), 3: (1,), 4: (0,), 5: (8, 16, 24, 32), 8: (8,)}
"""Octets behind the length of each option that is read."""

_by_tester = attrgetter(
    "src", "dst", "sport", "dport", "seq", "ack", "flags", "window", "payload", "mss",
    "window_scale", "sack_permitted", "sack",
)  # fmt: skip
_by_reference = attrgetter(
    "sport", "dport", "seq", "ack", "flags", "window", "payload", "mss", "window_scale",
    "sack_permitted", "sack_blocks", "timestamps",
)  # fmt: skip

Fields = tuple[Any, ...]
"""Addresses, ports, numbers, flags, window, data and the values of the options that are read."""


@lru_cache(maxsize=4096)
def address(number: int) -> str:
    """An IPv4 address as people write it."""
    return ".".join(map(str, number.to_bytes(4, "big")))


def read_by_tester(packet: bytes) -> Reading:
    """What the judge reads, None where it says that something is wrong."""
    try:
        seen = dissect(packet)
    except MalformedPacket:
        return None
    right = seen.checksum_ok and seen.offset_ok and seen.options_ok
    return judged_fields(seen) if right else None


def judged_fields(seen: Tcp) -> Fields:
    """A segment of the judge's."""
    return *_by_tester(seen), None if seen.tsval is None else (seen.tsval, seen.tsecr)


def read_by_reference(packet: bytes) -> Reading:
    """What the reference reads, None with an option of a length that its kind does not have."""
    try:
        segment = parse_packet(packet)
    except WireError:
        return None
    for kind, value in segment.unknown:
        if kind in LENGTHS and len(value) not in LENGTHS[kind]:
            return None
    return reference_fields(segment)


def reference_fields(segment: Segment) -> Fields:
    """A segment of the reference's."""
    sport, dport, seq, ack, flags, *rest = _by_reference(segment)
    ends = address(segment.source), address(segment.destination)
    return *ends, sport, dport, seq, ack, flags & FLAGS, *rest


def read_by_scapy(packet: bytes) -> Reading:
    """What Scapy's layers read, None with such an option."""
    found = scapy_segment(packet)
    if found is None:
        return None
    if any(name in USUAL and not USUAL[name](value) for name, value in found[1].options):
        return None
    return scapy_fields(*found)


def scapy_segment(packet: bytes) -> tuple[Any, Any] | None:
    """Scapy's IPv4 and TCP headers, None where one of them is wrong or damaged."""
    found = scapy_payload(packet)
    if found is None or found[0].proto != 6:
        return None
    ip, tcp = found
    from scapy.layers.inet import in4_chksum

    octets = packet[ip.ihl * 4 : ip.len]
    if len(octets) < 20 or in4_chksum(6, ip, octets) or not 20 <= tcp.dataofs * 4 <= len(octets):
        return None
    return (ip, tcp) if _walkable(octets[20 : tcp.dataofs * 4]) else None


USUAL: dict[Any, Callable[[Any], bool]] = {
    "MSS": lambda value: isinstance(value, int),
    "WScale": lambda value: isinstance(value, int),
    "SAckOK": lambda value: not value,
    "SAck": lambda value: isinstance(value, tuple) and len(value) in (2, 4, 6, 8),
    "Timestamp": lambda value: isinstance(value, tuple),
}
"""Whether Scapy has read an option with the length of its kind."""


def scapy_fields(ip: Any, tcp: Any) -> Fields:
    """A segment of Scapy's; the first of each kind of option counts."""
    first: dict[Any, Any] = {}
    for name, value in tcp.options:
        if name in USUAL and USUAL[name](value):
            first.setdefault(name, value)
    edges = first.get("SAck", ())
    return (
        ip.src, ip.dst, tcp.sport, tcp.dport, tcp.seq, tcp.ack, int(tcp.flags) & FLAGS, tcp.window,
        ip.original[4 * ip.ihl + 4 * tcp.dataofs : ip.len], first.get("MSS"), first.get("WScale"),
        "SAckOK" in first, tuple(zip(edges[::2], edges[1::2], strict=True)),
        first.get("Timestamp"),
    )  # fmt: skip


def _walkable(options: bytes) -> bool:
    """Scapy goes on behind an impossible length, and cuts an option that is too long."""
    at, end = 0, len(options)
    while at < end and options[at]:
        length = 1 if options[at] == 1 else (options[at + 1] if at + 1 < end else 0)
        if length < 2 and options[at] != 1:
            return False
        at += length
    return at <= end


def undetermined(packet: bytes) -> str:
    """Why no RFC says how to read a segment, or the judge reads what no endpoint would get."""
    return left_to_interface(packet) or ("an option comes twice" if _repeats(packet) else "")


def left_to_interface(packet: bytes) -> str:
    """Why only the judge reads a packet: it judges captures, and IPv6."""
    if packet[0] >> 4 == 6:
        return "the judge reads IPv6, too"
    if packet[2:4] == bytes(2) or packet[10:12] == bytes(2):
        return "a capture of what was left to the interface"
    return ""


def _repeats(packet: bytes) -> bool:
    """Whether an option that is read comes twice, so that the first or the last of them counts."""
    start = (packet[0] & 15) * 4
    at, end = start + 20, start + (packet[start + 12] >> 4) * 4
    seen = set()
    while at + 1 < end and packet[at]:
        if packet[at] == 1:
            at += 1
            continue
        if packet[at] in seen:
            return True
        if packet[at] in LENGTHS:
            seen.add(packet[at])
        at += max(2, packet[at + 1])
    return False


HARNESS = Harness(read_by_tester, read_by_reference, read_by_scapy, undetermined)
