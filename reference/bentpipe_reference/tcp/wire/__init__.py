"""IPv4 and TCP packets as typed records."""

from bentpipe_reference.tcp.wire.codec import WireError, emit_packet, parse_packet
from bentpipe_reference.tcp.wire.segment import Flags, Segment, address_number, address_text

__all__ = [
    "Flags",
    "Segment",
    "WireError",
    "address_number",
    "address_text",
    "emit_packet",
    "parse_packet",
]
