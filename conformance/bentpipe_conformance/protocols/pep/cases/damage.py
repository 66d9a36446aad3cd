"""Packets that are wrong, or odd, in one place: tables of what is done to a right one.

A packet is IPv4 without options, and its segment begins at its 20th octet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.engine.codec import pseudo_header
from bentpipe_conformance.protocols.pep.cases.steps import summed

Change = Callable[[bytes], bytes]

_IP, _TCP = 20, 6
_OFFSET, _FLAGS, _CHECKSUM, _URGENT = _IP + 12, _IP + 13, _IP + 16, _IP + 18


def _checksum(packet: bytes) -> int:
    return int.from_bytes(packet[_CHECKSUM : _CHECKSUM + 2], "big")


def _with_checksum(packet: bytes, value: int) -> bytes:
    return packet[:_CHECKSUM] + value.to_bytes(2, "big") + packet[_CHECKSUM + 2 :]


def _flipped(at: int) -> Change:
    """One bit of the octet there is another one; from the end where ``at`` is negative."""

    def change(packet: bytes) -> bytes:
        octets = bytearray(packet)
        octets[at] ^= 1
        return bytes(octets)

    return change


def _without_pseudo_header(packet: bytes) -> bytes:
    bare = _with_checksum(packet, 0)[_IP:]
    return _with_checksum(packet, internet_checksum(bare))


def _swapped(packet: bytes) -> bytes:
    value = _checksum(packet)
    other = (value & 0xFF) << 8 | value >> 8
    return _with_checksum(packet, other if other != value else value ^ 1)


WRONG: Mapping[str, Change] = {
    "checksum zero": lambda packet: _with_checksum(packet, 0),
    "checksum all ones": lambda packet: _with_checksum(packet, 0xFFFF),
    "checksum complemented": lambda packet: _with_checksum(packet, _checksum(packet) ^ 0xFFFF),
    "checksum one more": lambda packet: _with_checksum(packet, (_checksum(packet) + 1) & 0xFFFF),
    "checksum in the other order": _swapped,
    "checksum of the segment alone": _without_pseudo_header,
    "last octet": _flipped(-1),
    "acknowledgment number": _flipped(_IP + 10),
    "window": _flipped(_IP + 14),
    "urgent pointer": _flipped(_URGENT),
}
"""What makes the checksum of a segment a wrong one; none touches ports or sequence number."""


def resummed(packet: bytes) -> bytes:
    """A packet with right checksums of both headers, and the right length."""
    whole = packet[:2] + len(packet).to_bytes(2, "big") + packet[4:]
    bare = _with_checksum(whole, 0)[_IP:]
    pseudo = pseudo_header(whole[12:16], whole[16:20], _TCP, len(bare))
    return summed(_with_checksum(whole, internet_checksum(pseudo + bare)))


def _with_options(options: bytes) -> Change:
    """These options behind those that there are."""
    padded = options + bytes(-len(options) % 4)

    def change(packet: bytes) -> bytes:
        size = (packet[_OFFSET] >> 4) * 4
        head = bytearray(packet[: _IP + size] + padded)
        head[_OFFSET] = (size + len(padded)) // 4 << 4 | head[_OFFSET] & 15
        return resummed(bytes(head) + packet[_IP + size :])

    return change


def _set(at: int, bits: int) -> Change:
    def change(packet: bytes) -> bytes:
        octets = bytearray(packet)
        octets[at] |= bits
        return resummed(bytes(octets))

    return change


_STAMP = struct.pack("!BBII", 8, 10, 1, 1)

ODD: Mapping[str, Change] = {
    "reserved bits": _set(_OFFSET, 0x0E),
    "bits of ECN": _set(_FLAGS, 0xC0),
    "urgent pointer without URG": _set(_URGENT + 1, 7),
    "options for experiments": _with_options(bytes((253, 6, 0xBE, 0xEF, 1, 2))),
    "an unknown option without octets": _with_options(bytes((200, 2))),
    "an obsolete option": _with_options(bytes((6, 6, 1, 2, 3, 4))),
    "No Operation many times": _with_options(b"\x01" * 12),
    "octets behind the end of the options": _with_options(bytes((0, 8, 9, 9))),
    "MSS": _with_options(bytes((2, 4, 0, 100))),
    "Window Scale": _with_options(bytes((3, 3, 0, 1))),
    "SACK-Permitted": _with_options(bytes((4, 2))),
    "a user timeout": _with_options(bytes((28, 4, 0x80, 1))),
}
"""What a segment may have that changes nothing; a receiver ignores it (RFC 9293 section 3.1)."""

ODD_IN_SYN: Mapping[str, Change] = {
    **{name: ODD[name] for name in (
        "reserved bits", "urgent pointer without URG", "options for experiments",
        "an unknown option without octets", "an obsolete option", "No Operation many times",
        "octets behind the end of the options", "a user timeout",
    )},
    "SACK-Permitted twice": _with_options(bytes((4, 2, 4, 2))),
    "a long option": _with_options(bytes((222, 16, *range(14)))),
}  # fmt: skip
"""The same of a SYN."""
