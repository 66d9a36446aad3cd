"""ICMP messages about segments: what quotes none of them says nothing."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from bentpipe_conformance.engine.codec import build_ipv4
from bentpipe_conformance.engine.trace import Packet
from bentpipe_conformance.protocols.pep.codec import reports
from bentpipe_conformance.protocols.tcp.codec import Tcp, build
from bentpipe_reference.common.checksum import internet_checksum

BOX, SERVER = bytes((192, 0, 2, 1)), bytes((198, 51, 100, 2))
SEGMENT = build(Tcp("198.51.100.2", "192.0.2.1", 80, 47000, 5, 6, 0x10, 1000, b"data"))


def message(quoted: bytes, *, checksum: int | None = None) -> bytes:
    octets = bytearray(struct.pack("!BBHHH", 3, 4, 0, 0, 1400) + quoted)
    octets[2:4] = (internet_checksum(octets) if checksum is None else checksum).to_bytes(2, "big")
    return build_ipv4(SERVER, BOX, 1, bytes(octets))


def told(packet: bytes) -> list[tuple[Any, ...]]:
    captured: Packet[Any] = Packet(1, 0.0, "iut", False, None, packet)
    return [(item.ends, item.seq, item.mtu) for item in reports([captured])]


def test_message_that_quotes_a_segment_is_read() -> None:
    assert told(message(SEGMENT[:28])) == [(("198.51.100.2", 80, "192.0.2.1", 47000), 5, 1400)]


@pytest.mark.parametrize(
    "packet",
    [
        message(b"\x05" + SEGMENT[1:28]),
        message(b"\x41" + SEGMENT[1:28]),
        message(SEGMENT[:6] + b"\x00\x08" + SEGMENT[8:28]),
        message(SEGMENT[:28], checksum=1),
        message(SEGMENT[:28])[:6] + b"\x20\x00" + message(SEGMENT[:28])[8:],
        message(SEGMENT[:27]),
    ],
    ids=["not-ipv4", "short-header", "later-fragment", "checksum", "fragment", "too-little"],
)
def test_message_that_quotes_no_segment_says_nothing(packet: bytes) -> None:
    assert told(packet) == []
