"""Link types, and captures the suite did not make."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.evidence.frames import CaptureError, Frame
from bentpipe_conformance.evidence.network import ipv4_packet, read_foreign
from bentpipe_conformance.evidence.pcapng import write_pcapng
from bentpipe_conformance.protocols.tcp.codec import Tcp, build
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR

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


def capture(path: Path, frames: list[Frame], link_type: int = 1) -> Path:
    file = io.BytesIO()
    write_pcapng(file, frames, name="eth0", link_type=link_type)
    path.write_bytes(file.getvalue())
    return path


def test_foreign_capture_keeps_frame_numbers_and_directions(tmp_path: Path) -> None:
    frames = [
        Frame(0, 5_000_000_000, ETHERNET + PACKET, 1),
        Frame(0, 5_250_000_000, b"\0" * 12 + b"\x08\x06" + b"arp", 1),
        Frame(0, 5_500_000_000, ETHERNET + BACK, 1),
    ]
    foreign = read_foreign(capture(tmp_path / "f", frames), "10.0.0.1")
    trace = read_trace(foreign.captured, suite=SNR)
    assert [(p.number, p.time, p.outgoing, p.content is None) for p in trace.packets] == [
        (1, 0.0, True, False),
        (2, 0.25, False, True),
        (3, 0.5, False, False),
    ]
    assert foreign.notes == ()


def test_foreign_capture_with_flaws_says_so(tmp_path: Path) -> None:
    frames = [
        Frame(0, 2, ETHERNET + PACKET, 1),
        Frame(0, 1, ETHERNET + BACK[:-2], 1, original_length=54),
    ]
    path = capture(tmp_path / "f", frames)
    path.write_bytes(path.read_bytes() + b"\x06\0\0\0")
    with pytest.raises(CaptureError, match="truncated after packet 2"):
        read_foreign(path, "10.0.0.1")
    foreign = read_foreign(path, "10.0.0.1", partial=True)
    assert foreign.cut == 1
    assert [sum(word in note for note in foreign.notes) for word in (
        "truncated after packet 2", "backwards", "cut 1 packets short",
    )] == [1, 1, 1]  # fmt: skip


@pytest.mark.parametrize(
    ("frames", "link_type", "iut", "why"),
    [
        ([Frame(0, 1, PACKET, 1)], 101, "10.9.9.9", r"these hosts: 10\.0\.0\.1, 10\.0\.0\.2\."),
        ([Frame(0, 1, PACKET, 1)], 105, "10.0.0.1", "link type 105"),
        ([Frame(0, 1, b"junk", 1)], 1, "10.0.0.1", "holds no IPv4 packet"),
        ([], 1, "10.0.0.1", "holds no IPv4 packet"),
        ([Frame(0, 1, PACKET, 1)], 101, "fe80::1", "not an IPv4 address"),
    ],
)
def test_unusable_capture_is_refused(
    tmp_path: Path, frames: list[Frame], link_type: int, iut: str, why: str
) -> None:
    with pytest.raises(CaptureError, match=why):
        read_foreign(capture(tmp_path / "f", frames, link_type), iut)
