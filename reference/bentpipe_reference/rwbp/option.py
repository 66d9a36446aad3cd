"""The RWBP option of SYN and SYN-ACK (section 4.1), in segments as TCP's codec knows them."""

from __future__ import annotations

import struct

from bentpipe_reference.common.record import record
from bentpipe_reference.rwbp.config import SMALLEST_UNIT
from bentpipe_reference.tcp.wire.segment import Flags, Segment

KIND = 253
"""For experiments (RFC 4727, RFC 6994)."""

EXPERIMENT = 0x52574250
"""The ExID, the letters R, W, B, P."""

VERSION = 1

_DATA = struct.Struct("!IBBH")


@record
class RwbpOption:
    """An option that counts.

    Attributes:
        interval: N that the peer of its sender is asked to use.
        unit: octets for which one in the window field of its sender stands.
    """

    interval: int
    unit: int

    def emit(self) -> tuple[int, bytes]:
        """Its kind and data."""
        return KIND, _DATA.pack(EXPERIMENT, VERSION << 4, self.interval, self.unit)


def counting_option(segment: Segment) -> RwbpOption | None:
    """The first RWBP option of a SYN or SYN-ACK that is not void, None when there is none."""
    if not segment.flags & Flags.SYN:
        return None
    for kind, data in segment.unknown:
        if kind != KIND or len(data) != _DATA.size:
            continue
        experiment, version, interval, unit = _DATA.unpack(data)
        if experiment == EXPERIMENT and is_valid(version >> 4, interval, unit):
            return RwbpOption(interval, unit)
    return None


def is_valid(version: int, interval: int, unit: int) -> bool:
    """Whether an option of the right length with these fields is not void."""
    return version == VERSION and interval > 0 and unit >= SMALLEST_UNIT
