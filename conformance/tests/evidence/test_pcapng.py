"""Capture files: what is written is read back, and nothing else is believed."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
from pathlib import Path

import pytest
from bentpipe_conformance.evidence.frames import MAX_BLOCK, CaptureError, Frame
from bentpipe_conformance.evidence.pcapng import (
    LINKTYPE_RAW,
    NANO,
    read_capture,
    read_octets,
    write_pcapng,
)
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import RawPcapNgReader, RawPcapReader, RawPcapWriter, wrpcapng

BASE = 1_700_000_000 * NANO


def written(frames: list[Frame], base_ns: int = 0, name: str = "iut") -> bytes:
    file = io.BytesIO()
    write_pcapng(file, frames, name=name, base_ns=base_ns)
    return file.getvalue()


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def interface(link_type: int, options: bytes = b"", order: str = "<", snap: int = 0) -> bytes:
    return block(1, struct.pack(order + "HxxI", link_type, snap) + options, order)


def packet(data: bytes, stamp: int = 7, index: int = 0, order: str = "<") -> bytes:
    head = struct.pack(order + "5I", index, stamp >> 32, stamp & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + data + b"\0" * (-len(data) % 4), order)


FRAMES = st.lists(
    st.builds(
        Frame,
        number=st.just(0),
        time_ns=st.integers(BASE, BASE + (1 << 62)),
        data=st.binary(max_size=90),
        link_type=st.just(LINKTYPE_RAW),
        outgoing=st.sampled_from([None, True, False]),
    ),
    max_size=6,
)


@given(FRAMES)
def test_any_frames_written_and_read_are_the_same(frames: list[Frame]) -> None:
    octets = written(frames, BASE)
    expected = [
        Frame(
            number, frame.time_ns, frame.data, LINKTYPE_RAW, BASE, len(frame.data), "iut",
            frame.outgoing,
        )
        for number, frame in enumerate(frames, 1)
    ]  # fmt: skip
    assert list(read_octets(octets, "x")) == expected
    assert written(frames, BASE) == octets


def test_written_capture_read_by_scapy_agrees(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(written([Frame(1, 1_234_567_891, b"\x45abc\x00", LINKTYPE_RAW)]))
    with RawPcapNgReader(str(path)) as reader:
        ((data, meta),) = list(reader)
    assert (data, meta.linktype, meta.tsresol) == (b"\x45abc\x00", LINKTYPE_RAW, NANO)
    assert meta.tshigh << 32 | meta.tslow == 1_234_567_891


def test_scapys_pcapng_is_read(tmp_path: Path) -> None:
    from scapy.layers.inet import IP, TCP

    path = tmp_path / "s.pcapng"
    sent = IP(src="10.0.0.1", dst="10.0.0.2") / TCP() / b"hello"
    sent.time = 12.5
    wrpcapng(str(path), [sent])
    (frame,) = read_capture(path)
    assert (frame.time_ns, frame.data) == (12_500_000_000, bytes(sent))


@pytest.mark.parametrize("nano", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_classic_pcap_of_either_order_and_resolution_is_read(
    tmp_path: Path, order: str, nano: bool
) -> None:
    path = tmp_path / "c.pcap"
    with RawPcapWriter(str(path), linktype=1, endianness=order, nano=nano) as writer:
        writer.write_header(None)
        writer.write_packet(b"abc", sec=3, usec=4, caplen=3, wirelen=60)
    (frame,) = read_capture(path)
    assert frame.time_ns == 3 * NANO + (4 if nano else 4000)
    assert (frame.data, frame.link_type, frame.original_length, frame.cut) == (b"abc", 1, 60, True)
    with RawPcapReader(str(path)) as reader:
        ((scapy_data, _),) = list(reader)
    assert frame.data == scapy_data


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_kind_of_block_in_either_order_is_read(order: str) -> None:
    old = struct.pack(order + "HHIIII", 1, 0, 0, 2_000_000, 3, 3) + b"old\0"
    simple = struct.pack(order + "I", 8) + b"simp"
    flags = option(2, struct.pack(order + "I", 1), order) + option(1, b"why", order)
    sent = block(6, struct.pack(order + "5I", 0, 0, 5, 1, 1) + b"e\0\0\0" + flags, order)
    octets = (
        section(order)
        + interface(1, option(9, b"\x83", order), order, snap=4)
        + interface(101, option(2, b"eth9", order), order)
        + block(0xBAD, b"a block nobody knows", order)
        + block(2, old, order)
        + block(3, simple, order)
        + sent
    )
    first, second, third = read_octets(octets, "x")
    assert (first.data, first.time_ns, first.interface, first.link_type) == (
        b"old", 2 * NANO, "eth9", 101,
    )  # fmt: skip
    assert (second.data, second.time_ns, second.original_length) == (b"simp", None, 8)
    assert (third.time_ns, third.outgoing) == (5 * NANO // 8, False)


def test_a_second_section_forgets_the_first_ones_interfaces() -> None:
    octets = section() + interface(101) + packet(b"a") + section(">") + interface(1, order=">")
    octets += packet(b"b", order=">")
    assert [frame.link_type for frame in read_octets(octets, "x")] == [101, 1]
    with pytest.raises(CaptureError, match="interface 0, which is not described"):
        list(read_octets(section() + interface(101) + section() + packet(b"a"), "x"))


def test_time_offset_and_microseconds_are_applied() -> None:
    octets = section() + interface(101, option(14, struct.pack("<q", 1000))) + packet(b"a", 5)
    (frame,) = read_octets(octets, "x")
    assert (frame.time_ns, frame.base_ns) == (1000 * NANO + 5000, 1000 * NANO)


@pytest.mark.long
@pytest.mark.parametrize("classic", [True, False])
def test_every_truncation_gives_a_clean_prefix_or_one_sentence(
    classic: bool, tmp_path: Path
) -> None:
    bodies = [b"first", b"second packet", b"3"]
    if classic:
        octets = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
        octets += b"".join(struct.pack("<IIII", 1, 2, len(b), len(b)) + b for b in bodies)
    else:
        frames = [Frame(0, n, body, LINKTYPE_RAW, outgoing=True) for n, body in enumerate(bodies)]
        octets = written(frames)
    path = tmp_path / "cut"
    errors = 0
    for end in range(len(octets)):
        path.write_bytes(octets[:end])
        try:
            kept = read_capture(path)
        except CaptureError as error:
            kept = error.partial
            errors += 1
            message = str(error)
            assert message.startswith(str(path))
            assert message.endswith(".")
            assert end < 4 or f"is truncated after packet {len(kept)}: " in message
        assert [frame.data for frame in kept] == bodies[: len(kept)]
    assert errors > len(octets) - 8


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"", "is empty"),
        (b"\x1f\x8b\x08\x00", "gunzip"),
        (b"PK\x03\x04....", "begins with 50 4b 03 04"),
        (section() + interface(101) + struct.pack("<II", 6, 0xFFFFFFFC) + b"x" * 50, "announces"),
        (section() + interface(101) + struct.pack("<II", 6, 8) + b"x" * 50, "impossible"),
        (section() + interface(101) + struct.pack("<II", 6, 13) + b"x" * 50, "impossible"),
        (section() + struct.pack("<II", 77, 0xFFFFFFFC) + b"x" * 50, "truncated"),
        (section()[:8] + b"\0" * 40, "byte-order magic"),
        (section()[:4] + struct.pack("<II", 16, 0x1A2B3C4D), "header of 16 octets"),
        (section() + packet(b"a"), "interface 0"),
        (section() + block(1, b"abcd"), "too short"),
        (section() + interface(101) + block(6, b"abcd"), "too short for its header"),
        (section() + interface(101, struct.pack("<HH", 9, 400)), "option 9 reaches"),
        (section() + interface(101) + packet(b"a" * 8)[:-4] + b"\0\0\0\0", "at its end"),
        (
            section() + interface(101) + block(6, struct.pack("<5I", 0, 0, 0, 4000, 4000)),
            "claims 4000 octets, its block holds 0",
        ),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 9, 4, 0, 0, 0, 1), "pcap version 9"),
        (
            struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0, 1)
            + struct.pack("<IIII", 0, 0, 0xFFFFFFFF, 1),
            "announces 4294967295",
        ),
    ],
)
def test_hostile_file_is_refused_in_one_sentence(octets: bytes, why: str) -> None:
    with pytest.raises(CaptureError, match=why) as caught:
        list(read_octets(octets, "evil.pcapng"))
    assert str(caught.value).startswith("evil.pcapng ")
    assert "\n" not in str(caught.value)


def test_huge_announced_length_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.pcapng"
    head = struct.pack("<II", 6, MAX_BLOCK - 4)
    path.write_bytes(section() + interface(101) + head + b"x" * 100)
    tracemalloc.start()
    try:
        with pytest.raises(CaptureError, match="truncated after packet 0"):
            read_capture(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


@given(st.binary(max_size=200))
def test_arbitrary_octets_after_a_good_start_never_escape_the_error(noise: bytes) -> None:
    octets = section() + interface(101) + packet(b"good") + noise
    frames: list[Frame] = []
    with contextlib.suppress(CaptureError):
        frames.extend(read_octets(octets, "x"))
    assert frames[0].data == b"good"


@given(st.data())
def test_one_flipped_octet_never_escapes_the_error(data: st.DataObject) -> None:
    octets = bytearray(written([Frame(0, n, b"abcdef", 101, outgoing=True) for n in range(3)], 0))
    at = data.draw(st.integers(0, len(octets) - 1))
    octets[at] ^= data.draw(st.integers(1, 255))
    try:
        frames = list(read_octets(bytes(octets), "x"))
    except CaptureError:
        return
    assert len(frames) <= 3


def test_missing_file_and_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be opened: No such file"):
        read_capture(tmp_path / "none")
    with pytest.raises(CaptureError, match="cannot be opened: Is a directory"):
        read_capture(tmp_path)


def test_time_before_the_base_is_not_written() -> None:
    with pytest.raises(CaptureError, match="packet 4 has no time"):
        written([Frame(4, BASE - 1, b"", LINKTYPE_RAW)], BASE)
