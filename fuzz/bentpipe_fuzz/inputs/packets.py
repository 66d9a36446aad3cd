"""Packets for codecs: those of a corpus with some words changed, most with right checksums.

A word is 16 bits. A sum follows its change (RFC 1624), so that a packet costs microseconds; one in
sixteen is changed as `shaped.changed` does it, in its lengths and in IP's header, too, and one in
sixty-four is octets that nobody wrote.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from bentpipe_fuzz.inputs.shaped import ICMP, TCP, UDP, changed

RAW_IP = 101
"""The link type of packets that begin with IP's header."""

CHECKSUM_AT = {TCP: 16, UDP: 16, ICMP: 2}
"""Where the checksum is behind the IP header; of UDP that of STP, whose sum makes UDP's right too.
In what is carried by IP itself it is STP's, at 8."""

EDGES = (0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 0x0100, 0x0204, 0x0303, 0x0402, 0x050A, 0x080A)
"""Words at a boundary, and such as begin an option."""

REACHED = 32
"""Words behind the IP header that are changed: headers and options."""


def packets(corpus: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """IPv4 packets without end, of a corpus of such."""
    draw = random.Random(seed)
    bits = draw.getrandbits
    bases = [_base(packet) for packet in corpus]
    count = len(bases)
    while True:
        choice = bits(64)
        choice, number = divmod(choice, count)
        packet, check, places = bases[number]
        way = choice & 63
        if way == 0:
            yield draw.randbytes(draw.randrange(120))
            continue
        if way <= 4 or not places:
            yield changed(packet, RAW_IP, draw)
            continue
        found = bytearray(packet)
        moved, choice = 0, choice >> 6
        for _ in range(1 + (choice & 3)):
            choice >>= 2
            at = places[choice % len(places)]
            choice >>= 5
            word = EDGES[choice % len(EDGES)] if choice & 16 else bits(16)
            moved += word - (found[at] << 8 | found[at + 1])
            found[at], found[at + 1] = word >> 8, word & 255
        if way < 58:
            value = ((found[check] << 8 | found[check + 1]) - moved) % 0xFFFF
            found[check], found[check + 1] = value >> 8, value & 255
        yield bytes(found)


def _base(packet: bytes) -> tuple[bytes, int, tuple[int, ...]]:
    """A packet, where its checksum is, and where its words are that may change."""
    start = (packet[0] & 15) * 4 if packet else 0
    if not packet or packet[0] >> 4 != 4 or not 20 <= start <= len(packet):
        return packet, 0, ()
    check = start + CHECKSUM_AT.get(packet[9], 8)
    first = start + 8 if packet[9] == UDP else start
    if check + 2 > len(packet):
        return packet, 0, ()
    last = min(len(packet) - 1, start + 2 * REACHED)
    return packet, check, tuple(at for at in range(first, last, 2) if at != check)
