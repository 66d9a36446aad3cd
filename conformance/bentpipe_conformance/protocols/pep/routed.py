"""What a router may change of a packet, and what it may not (RFC 1812 sections 4.2.2, 5.2, 5.3)."""

from __future__ import annotations

from bentpipe_reference.common.checksum import ones_complement_residue

from bentpipe_conformance.engine.codec import CE, ECN

_TOS, _TTL, _CHECKSUM = 1, 8, 10
_FIXED = 20

FIELDS = (
    ("the version and header length", 0, 1), ("the type of service", 1, 2),
    ("the total length", 2, 4), ("the identification", 4, 6),
    ("the flags and fragment offset", 6, 8), ("the protocol", 9, 10), ("the addresses", 12, 20),
)  # fmt: skip
"""Of an IPv4 header, by the octets that hold them; not the time to live and the checksum."""


def altered(before: bytes, after: bytes) -> str:
    """What of a packet was altered that no router alters; empty for nothing.

    A router marks congestion where ECN permits (RFC 3168), and lowers the time to live.
    """
    for name, start, end in FIELDS:
        if before[start:end] != after[start:end] and not (start == _TOS and _marked(before, after)):
            return name
    if after[_TTL] > before[_TTL]:
        return "the time to live, which has grown"
    size = (before[0] & 15) * 4
    if ones_complement_residue(after[:size]):
        return "the checksum of the header, which is wrong"
    if before[_FIXED:size] != after[_FIXED:size]:
        return "the options"
    return "" if before[size:] == after[size:] else "the payload"


def _marked(before: bytes, after: bytes) -> bool:
    return bool(before[_TOS] & ECN) and after[_TOS] == before[_TOS] | CE
