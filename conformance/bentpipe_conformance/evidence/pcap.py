"""Classic pcap files (the format of tcpdump), read only."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from bentpipe_conformance.engine.lane import NANO
from bentpipe_conformance.evidence.frames import Frame, Source

MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""First four octets -> byte order and nanoseconds per unit of the sub-second field."""


def read_pcap(source: Source, magic: bytes) -> Iterator[Frame]:
    """Frames of a classic pcap file whose ``magic`` has been taken from ``source`` already.

    Raises:
        CaptureError: the file is truncated, damaged or of an unknown version.
    """
    order, unit = MAGICS[magic]
    header = source.take(20)
    major, _, _, _, _, network = struct.unpack(order + "HHiIII", header)
    if major != 2:
        raise source.damaged(f"pcap version {major} is unknown")
    record = struct.Struct(order + "IIII")
    while head := source.header(record.size):
        seconds, fraction, captured, original = record.unpack(head)
        data = source.take(captured)
        source.frames += 1
        # The upper bits of the network field describe frame check sequences, not the type.
        time_ns, link_type = seconds * NANO + fraction * unit, network & 0xFFFF
        yield Frame(source.frames, time_ns, data, link_type, original_length=original)
