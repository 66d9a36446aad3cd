"""TCP's codecs against each other: the judge's, the reference's, and Scapy's layers.

The judge reads every segment, and says what is wrong with it; the reference refuses a damaged one.
What both take has to be the same.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.protocols.tcp.codec import Tcp, dissect
from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.tcp.wire import Segment, WireError, parse_packet

FLAGS = 0xFF
"""The bit above them is reserved (RFC 9293 section 3.1), and has been a flag of RFC 3540."""
EVERY = 64
"""Scapy, which takes a hundred times as long, reads one of so many."""


class Disagreement(Exception):
    """Two codecs read a packet in different ways."""


def agree(packet: bytes, *, layers: bool = False) -> bool:
    """Compare what the codecs make of a packet; whether both take it.

    Raises:
        Disagreement: they differ.
    """
    try:
        theirs: Segment | None = parse_packet(packet)
    except WireError:
        theirs = None
    try:
        ours: Tcp | None = dissect(packet)
    except MalformedPacket:
        ours = None
    if theirs is None:
        return False
    if ours is None or not (ours.checksum_ok and ours.offset_ok):
        raise Disagreement(f"the judge refuses {packet.hex()}")
    read = (ours.sport, ours.dport, ours.seq, ours.ack, ours.flags, ours.window, ours.payload)
    meant = (theirs.sport, theirs.dport, theirs.seq, theirs.ack, theirs.flags & FLAGS,
             theirs.window, theirs.payload)  # fmt: skip
    if read != meant:
        raise Disagreement(f"{read} and {meant} of {packet.hex()}")
    if layers:
        seen = _scapy()(packet)["TCP"]
        if (
            seen.sport,
            seen.dport,
            seen.seq,
            seen.ack,
            int(seen.flags) & FLAGS,
            seen.window,
        ) != read[:6]:
            raise Disagreement(f"Scapy reads {seen!r} of {packet.hex()}")
    return True


@cache
def _scapy() -> Any:
    logging.getLogger("scapy").setLevel(logging.ERROR)
    from scapy.layers.inet import IP

    return IP


def packets(seed: int) -> Iterator[bytes]:
    """Segments without end, most of them with a right checksum, many odd behind it."""
    draw = random.Random(seed)
    header = bytearray.fromhex("4500002800000000400600000a4d00020a4e0001")
    while True:
        words = draw.choice((5, 5, 6, 8, 11, 15, draw.randrange(16)))
        octets = draw.randbytes(max(0, words * 4 - 20)) + draw.randbytes(draw.choice((0, 1, 9)))
        body = bytearray(draw.randbytes(12)) + bytes((words << 4, draw.randrange(256)))
        body += draw.randbytes(2) + bytes(4) + octets
        header[2:4] = (20 + len(body)).to_bytes(2, "big")
        if draw.randrange(8):
            pseudo = bytes(header[12:20]) + bytes((0, 6)) + len(body).to_bytes(2, "big")
            body[16:18] = internet_checksum(pseudo + bytes(body)).to_bytes(2, "big")
        header[10:12] = bytes(2)
        header[10:12] = internet_checksum(bytes(header)).to_bytes(2, "big")
        yield bytes(header) + bytes(body)
