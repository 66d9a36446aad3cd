"""RWBP's codecs: the judge's, the reference's, and the project's layers for Scapy.

A packet is a segment, whose options are compared all, or a credit frame to a proxy.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.protocols.rwbp.codec import RwbpOption, dissect
from bentpipe_conformance.protocols.rwbp.credit import PORT, read_frame
from bentpipe_reference.rwbp.credit import MalformedFrame, read_packet
from bentpipe_reference.rwbp.option import counting_option
from bentpipe_reference.tcp.wire import WireError, parse_packet

from bentpipe_fuzz.inputs.harness import Harness, Reading, scapy_payload
from bentpipe_fuzz.tcp.codecs import (
    LENGTHS,
    judged_fields,
    left_to_interface,
    reference_fields,
    scapy_fields,
    scapy_segment,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from bentpipe_conformance.protocols.rwbp.scapy_layer import RWBPCredit, RWBPOption
    from scapy.layers.inet import in4_chksum

GATEWAY = "192.0.2.1"
KIND, EXID, VERSION, SMALLEST_UNIT = 253, 0x52574250, 1, 48
UDP, SYN = 17, 2
LOWER_QUEUE = 1, 1, 0
"""Version, type and class of a credit frame."""

Options = Iterable[tuple[int, bytes]]
Counting = tuple[int, int] | None
"""Interval and unit of the RWBP option that counts in a SYN."""


def read_by_tester(packet: bytes) -> Reading:
    """What the judge reads: a segment that need not be discarded, or a valid credit frame."""
    if packet[9:10] == bytes((UDP,)):
        frame = read_frame(packet, GATEWAY)
        return None if frame is None or frame.flaw else (frame.epoch, frame.arrived, frame.limit)
    try:
        seen = dissect(packet)
    except MalformedPacket:
        return None
    if seen.malformed or not seen.checksum_ok:
        return None
    option = seen.counting if seen.flags & SYN else None
    return *judged_fields(seen), tuple(unread(seen.options)), _counting(option)


def _counting(option: RwbpOption | Any | None) -> Counting:
    return None if option is None else (option.interval, option.unit)


def unread(options: Options) -> Iterator[tuple[int, bytes]]:
    """The options without the first of each kind that is read (RWBP-WF-005)."""
    known = set()
    for kind, value in options:
        if kind not in known and len(value) in LENGTHS.get(kind, ()):
            known.add(kind)
        else:
            yield kind, value


def read_by_reference(packet: bytes) -> Reading:
    """What the reference reads, likewise."""
    if packet[9:10] == bytes((UDP,)):
        # The judge asks its capture, not the frame, to which proxy it goes.
        try:
            frame = read_packet(packet, _number(GATEWAY), int.from_bytes(packet[16:20], "big"))
        except MalformedFrame:
            return None
        return frame.epoch, frame.arrived, frame.limit
    try:
        segment = parse_packet(packet)
    except WireError:
        return None
    return *reference_fields(segment), segment.unknown, _counting(counting_option(segment))


def _number(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


def read_by_scapy(packet: bytes) -> Reading:
    """What Scapy's layers read, likewise, of other options nothing; sums are computed by Scapy."""
    if packet[9:10] == bytes((UDP,)):
        return _scapy_credit(packet)
    found = scapy_segment(packet)
    if found is None:
        return None
    syn = int(found[1].flags) & SYN
    options = (RWBPOption(value) for kind, value in found[1].options if kind == KIND
               and len(value) == 8)  # fmt: skip
    counting = next((option for option in options if syn and _counts(option)), None)
    return *scapy_fields(*found), _counting(counting)


def _counts(option: Any) -> bool:
    right = option.exid == EXID and option.version == VERSION
    return bool(right and option.interval and option.unit >= SMALLEST_UNIT)


def _scapy_credit(packet: bytes) -> Reading:
    found = scapy_payload(packet)
    if found is None or found[0].src != GATEWAY:
        return None
    ip, octets = found[0], packet[found[0].ihl * 4 : found[0].len]
    size = int.from_bytes(octets[4:6], "big")
    if size != 20 or size > len(octets) or int.from_bytes(octets[2:4], "big") != PORT:
        return None
    frame = RWBPCredit(octets[8:size])
    right = (frame.version, frame.type, frame.queue) == LOWER_QUEUE
    if not right or (frame.limit - frame.arrived) % 2**32 >= 2**31:
        return None
    if octets[6:8] == bytes(2) or in4_chksum(UDP, ip, octets[:size]):
        return None
    return frame.epoch, frame.arrived, frame.limit


def without_others(reading: Any) -> Reading:
    """A reading without the options that only codecs of their own tell apart."""
    return reading if reading is None or len(reading) == 3 else (*reading[:-2], reading[-1])


HARNESS = Harness(
    read_by_tester, read_by_reference, read_by_scapy, left_to_interface, without_others
)
