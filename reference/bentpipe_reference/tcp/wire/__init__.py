"""IPv4 and TCP packets as typed records."""

from bentpipe_reference.tcp.wire.codec import emit_packet, parse_packet
from bentpipe_reference.tcp.wire.segment import Flags, Segment, WireError

__all__ = ["Flags", "Segment", "WireError", "emit_packet", "parse_packet"]
