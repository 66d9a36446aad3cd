"""The answer to a segment that belongs to no connection."""

from __future__ import annotations

from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK

_ACK, _RST = int(Flags.ACK), int(Flags.RST)


def reset_for(segment: Segment) -> Segment | None:
    """The RST that answers it (RFC 9293 section 3.10.7.1), None for a RST, which has no answer."""
    if segment.flags & _RST:
        return None
    reset = Segment(segment.destination, segment.source, segment.dport, segment.sport)
    if segment.flags & _ACK:
        reset.seq = segment.ack
        reset.flags = _RST
    else:
        reset.ack = segment.seq + segment.sequence_length & MASK
        reset.flags = _RST | _ACK
    return reset
