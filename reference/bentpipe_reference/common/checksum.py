"""The Internet checksum (RFC 1071)."""

from __future__ import annotations


def ones_complement_residue(data: bytes) -> int:
    """The one's complement sum of the 16-bit words of ``data``, with 0xFFFF folded onto 0.

    65536 leaves the remainder 1 modulo 65535, so a whole buffer read as one number has the same
    residue as the sum of its words. Read as little-endian, which is faster, and pads an odd
    buffer, it is the residue with its octets swapped (RFC 1071 section 2 (B)).
    """
    return (int.from_bytes(data, "little") % 0xFFFF << 8) % 0xFFFF


def checksum_field(residue: int) -> int:
    """The field that makes a sum with this ``residue`` verify.

    For an all-zero buffer that would be 0xFFFF; no IPv4 or TCP checksum covers one, since both
    include a non-zero protocol number.
    """
    return -residue % 0xFFFF


def internet_checksum(data: bytes) -> int:
    """The checksum of ``data``: 0 when ``data`` holds a valid one, 0xFFFF for all zeros."""
    if residue := ones_complement_residue(data):
        return 0xFFFF - residue
    return 0 if any(data) else 0xFFFF
