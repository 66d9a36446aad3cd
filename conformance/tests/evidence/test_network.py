"""Link types, and captures the suite did not make."""

from __future__ import annotations

import pytest
from bentpipe_conformance.evidence.frames import Frame
from bentpipe_conformance.evidence.network import ip_packet, ipv4_packet, sent_here
from bentpipe_conformance.protocols.tcp.codec import Tcp, build

PACKET = build(Tcp("10.0.0.1", "10.0.0.2", 19, 4000, 1, 1, 0x10, 100, b"x" * 10))
BACK = build(Tcp("10.0.0.2", "10.0.0.1", 4000, 19, 1, 11, 0x10, 100, b""))
ETHERNET = b"\0" * 12 + b"\x08\x00"


def frame(link_type: int, data: bytes, original: int = -1) -> Frame:
    return Frame(1, 0, data, link_type, original_length=original)


@pytest.mark.parametrize(
    ("link_type", "data"),
    [
        (101, PACKET),
        (12, PACKET),
        (14, PACKET),
        (228, PACKET),
        (1, ETHERNET + PACKET + b"\0" * 8),
        (1, b"\0" * 12 + b"\x81\x00\x00\x05\x08\x00" + PACKET),
        (1, b"\0" * 12 + b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00" + PACKET),
        (113, b"\0" * 14 + b"\x08\x00" + PACKET),
        (276, b"\x08\x00" + b"\0" * 18 + PACKET),
        (0, b"\x02\0\0\0" + PACKET),
        (0, b"\0\0\0\x02" + PACKET),
        (108, b"\0\0\0\x02" + PACKET),
        (9, b"\xff\x03\x00\x21" + PACKET),
        (9, b"\x21" + PACKET),
        (50, b"\x0f\x00\x00\x21" + PACKET),
        (51, b"\x11\0\0\x01\0\x34\x00\x21" + PACKET),
        (1, b"\0" * 12 + b"\x88\x64" + b"\x11\0\0\x01\0\x34\x00\x21" + PACKET),
        (113, b"\0" * 14 + b"\x81\x00\x00\x05\x08\x00" + PACKET),
        (276, b"\x81\x00" + b"\0" * 18 + b"\x00\x05\x08\x00" + PACKET),
    ],
)
def test_known_link_type_gives_its_packet(link_type: int, data: bytes) -> None:
    assert ipv4_packet(frame(link_type, data)) == PACKET


@pytest.mark.parametrize(
    ("link_type", "data"),
    [
        (101, b"\x60" + PACKET[1:]),
        (101, b"\x45" * 10),
        (1, b"\0" * 12 + b"\x86\xdd\x60" + PACKET[1:]),
        (1, b"\0" * 13),
        (1, b"\0" * 12 + b"\x81\x00" * 3),
        (113, b"\0" * 16),
        (276, b"\0" * 40),
        (0, b"\x1f\0\0\0" + PACKET),
        (105, PACKET),
    ],
)
def test_frame_without_ipv4_gives_none(link_type: int, data: bytes) -> None:
    assert ipv4_packet(frame(link_type, data)) is None


def test_cut_packet_keeps_its_length() -> None:
    packet = ipv4_packet(frame(101, PACKET[:44], len(PACKET)))
    assert packet is not None
    assert len(packet) == len(PACKET)
    assert packet[:44] == PACKET[:44]


IPV6 = b"\x60\0\0\0" + (30).to_bytes(2, "big") + b"\x06\x40" + b"\x20" * 32 + PACKET[20:]


@pytest.mark.parametrize(
    ("link_type", "data"),
    [
        (101, IPV6),
        (229, IPV6),
        (1, b"\0" * 12 + b"\x86\xdd" + IPV6 + b"\0" * 6),
        (0, b"\x1e\0\0\0" + IPV6),
        (0, b"\0\0\0\x1c" + IPV6),
        (9, b"\xff\x03\x00\x57" + IPV6),
    ],
)
def test_frame_with_ipv6_gives_its_packet(link_type: int, data: bytes) -> None:
    assert ip_packet(frame(link_type, data)) == (IPV6, len(IPV6))
    assert ipv4_packet(frame(link_type, data)) is None


def test_length_of_zero_left_by_offload_is_that_of_the_frame() -> None:
    offloaded = PACKET[:2] + b"\0\0" + PACKET[4:]
    assert ip_packet(frame(1, ETHERNET + offloaded)) == (offloaded, len(PACKET))
    assert ip_packet(frame(1, ETHERNET + offloaded[:40], 14 + 70_000)) == (offloaded[:40], 70_000)


@pytest.mark.parametrize(
    ("link_type", "data", "sent"),
    [
        (113, b"\0\x04" + b"\0" * 14, True),
        (113, b"\0\0" + b"\0" * 14, False),
        (276, b"\x08\0" + b"\0" * 8 + b"\x04" + b"\0" * 9, True),
        (1, ETHERNET, None),
    ],
)
def test_cooked_frame_says_who_sent_it(link_type: int, data: bytes, sent: bool | None) -> None:
    assert sent_here(frame(link_type, data)) is sent
