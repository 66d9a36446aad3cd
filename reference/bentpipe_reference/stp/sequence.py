"""Packet numbers modulo 2**24 and connection sequence numbers modulo 2**32 (STP/1 section 2).

Numbers half the modulus apart are in no order: neither is below the other.
"""

from __future__ import annotations

from bentpipe_reference.common.serial import SerialSpace

TAG_MASK = 0xFFFF
"""A tag is the low 16 bits of the sender's CSN (section 4)."""

_PACKETS = SerialSpace(24)
_CONNECTIONS = SerialSpace(32)
PACKET_MASK = _PACKETS.mask
PACKET_HALF = _PACKETS.half
CSN_MASK = _CONNECTIONS.mask
CSN_HALF = _CONNECTIONS.half
unwrap = _PACKETS.unwrap
below = _PACKETS.before


def newer(left: int, right: int) -> bool:
    """Whether the connection sequence number ``left`` is newer than ``right``."""
    return _CONNECTIONS.before(right, left)


POLLS = PACKET_MASK
"""Poll numbers: 0 is none of them, and 1 follows the highest (STP-PL-006)."""


def wrap_poll(number: int) -> int:
    """The field N(PS) of the POLL numbered ``number``, from 1 on and without end."""
    return (number - 1) % POLLS + 1


def unwrap_poll(field: int, near: int) -> int:
    """The number of a POLL with the field N(PS) ``field``, which is not 0, nearest to ``near``."""
    return near + (field - near + PACKET_HALF) % POLLS - PACKET_HALF
