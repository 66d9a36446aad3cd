"""The STP codec: what it reads and writes, and what it refuses."""

from __future__ import annotations

import dataclasses

import pytest
from bentpipe_reference.common.encapsulation import (
    Datagram,
    emit_datagram,
    parse_datagram,
    pseudo_header,
)
from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Packet,
    Poll,
    Sd,
    Sdp,
    Stat,
    Ustat,
)
from bentpipe_reference.stp.sequence import below, newer, unwrap
from hypothesis import given, settings
from hypothesis import strategies as st

V4 = pseudo_header(bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
V6 = pseudo_header(bytes(15) + b"\x01", bytes(15) + b"\x02", 254)

ONE_OF_EACH: list[Packet] = [
    Begin(1, 2, 3, 1, 4, 5, 6, max_sd=1400, cookie=b"8 octets", data=b"hello",
          options=((9, b"x"),)),
    Bgak(1, 2, 3, 0, 4, 5, 6, 7, 8, max_sd=512, cookie=bytes(range(32))),
    Bgrej(1, 2, 0, 0, 3, 7),
    Bgrej(1, 2, 0, 0, 6, 7, 1400, b"sixteen octets__", ((9, b""),)),
    End(1, 2, 3, 12, 4, 1, 6, 7),
    Endak(1, 2, 3, 0, 7),
    Sd(1, 2, 3, 1, 4, b"hello"),
    Sdp(1, 2, 3, 0, 4, 5, 6, 7, b"hello"),
    Poll(1, 2, 3, 0, 4, 5, 6, 7),
    Stat(1, 2, 3, 0, 4, 5, 6, 7, (8, 9, 10)),
    Ustat(1, 2, 3, 0, 4, 5, (6, 7)),
]  # fmt: skip


def naive_sum(octets: bytes) -> int:
    """RFC 1071 section 4.1, word by word."""
    total = 0
    padded = octets + bytes(len(octets) % 2)
    for at in range(0, len(padded), 2):
        total += padded[at] << 8 | padded[at + 1]
        total = (total & 0xFFFF) + (total >> 16)
    return total


def rechecked(octets: bytearray) -> bytes:
    octets[8:10] = bytes(2)
    octets[8:10] = (0xFFFF - naive_sum(bytes(octets))).to_bytes(2, "big")
    return bytes(octets)


@pytest.mark.parametrize("packet", ONE_OF_EACH, ids=lambda packet: packet.type.name)
def test_octets_of_a_packet_cut_anywhere_are_refused_or_shorter_data(packet: Packet) -> None:
    octets = encode(packet)
    for size in range(len(octets)):
        cut = octets[:size]
        if size >= 12:
            cut = rechecked(bytearray(cut))
        try:
            shorter = decode(cut)
        except MalformedPacket:
            continue
        assert isinstance(shorter, Begin | Sd | Sdp | Stat)
        if isinstance(shorter, Stat):
            assert isinstance(packet, Stat)
            assert packet.elements[: len(shorter.elements)] == shorter.elements
            assert len(shorter.elements) < len(packet.elements)
        else:
            assert isinstance(packet, Begin | Sd | Sdp)
            assert shorter == dataclasses.replace(packet, data=shorter.data)
            assert packet.data.startswith(shorter.data)
            assert len(shorter.data) < len(packet.data)


@pytest.mark.parametrize("packet", ONE_OF_EACH, ids=lambda packet: packet.type.name)
def test_flipped_bit_breaks_the_checksum(packet: Packet) -> None:
    octets = encode(packet, V4)
    for bit in range(8 * len(octets)):
        damaged = bytearray(octets)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(MalformedPacket, match="wrong checksum"):
            decode(bytes(damaged), V4)


@pytest.mark.parametrize("packet", ONE_OF_EACH, ids=lambda packet: packet.type.name)
def test_addresses_count_directly_over_ip(packet: Packet) -> None:
    with pytest.raises(MalformedPacket, match="wrong checksum"):
        decode(encode(packet, V4))
    with pytest.raises(MalformedPacket, match="wrong checksum"):
        decode(encode(packet, V6), V4)


def test_reserved_flags_and_fields_do_not_show() -> None:
    stat = Stat(1, 2, 3, 0, 4, 5, 6, 7, (8, 9))
    octets = bytearray(encode(stat))
    octets[4] |= 0xF0
    for reserved in (12, 16, 24, 28):
        octets[reserved] = 0xFF
    assert decode(rechecked(octets)) == stat


def test_flags_of_another_type_do_not_show() -> None:
    for packet in ONE_OF_EACH:
        octets = bytearray(encode(packet))
        octets[4] |= 0xF0
        named = {"BEGIN": 3, "END": 12, "SD": 1, "SDP": 1}.get(packet.type.name, 0)
        assert decode(rechecked(octets)).flags == named


@pytest.mark.parametrize(
    "changed",
    [
        {"n_r": 1 << 24}, {"n_r": -1}, {"n_mr": 1 << 24}, {"n_ps": -1}, {"timestamp": 1 << 32},
        {"elements": (1, 1 << 24)}, {"elements": (1, -1)}, {"flags": 16},
        {"sport": 65536}, {"tag": -1},
    ],
    ids=str,
)  # fmt: skip
def test_field_out_of_range_is_refused(changed: dict[str, object]) -> None:
    stat = Stat(1, 2, 3, 0, 4, 5, 6, 7, (8, 9))
    with pytest.raises(MalformedPacket):
        encode(dataclasses.replace(stat, **changed))  # type: ignore[arg-type]


def test_options_that_do_not_fit_are_refused() -> None:
    begin = Begin(1, 2, 3, 0, 4, 5, 6, options=tuple((9, bytes(10)) for _ in range(6)))
    with pytest.raises(MalformedPacket, match="do not fit"):
        encode(begin)
    with pytest.raises(MalformedPacket, match="padding"):
        encode(dataclasses.replace(begin, options=((0, b""),)))


@pytest.mark.parametrize("size", [0, 7, 33])
def test_cookie_of_a_wrong_length_is_refused_or_ignored(size: int) -> None:
    begin = Begin(1, 2, 3, 0, 4, 5, 6, max_sd=1400)
    with pytest.raises(MalformedPacket, match="a cookie cannot have"):
        encode(dataclasses.replace(begin, cookie=bytes(size)))
    odd = dataclasses.replace(begin, options=((2, bytes(size)), (2, b"8 octets"), (2, b"8 others")))
    read = decode(encode(odd))
    assert isinstance(read, Begin) and read.cookie == b"8 octets"
    assert read.options == ((2, bytes(size)), (2, b"8 others"))


@pytest.mark.parametrize("packet", ONE_OF_EACH, ids=lambda packet: packet.type.name)
def test_packet_is_decoded_as_it_was_encoded(packet: Packet) -> None:
    for pseudo in (b"", V4, V6):
        assert decode(encode(packet, pseudo), pseudo) == packet


@pytest.mark.parametrize("version", [0, 1, 3, 15])
def test_begin_of_another_version_is_read_up_to_its_csn_only(version: int) -> None:
    ours = Begin(1, 2, 3, 1, 4, 5, 6)
    for optlen, rest in ((0, b""), (15, b""), (1, b"\x01\x01\0\0"), (2, b"\x02\xff")):
        octets = bytearray(encode(ours) + rest)
        octets[12] = version << 4 | optlen
        assert decode(rechecked(octets)) == dataclasses.replace(ours, version=version)
        octets[12] = 2 << 4 | optlen
        if optlen:
            with pytest.raises(MalformedPacket):
                decode(rechecked(octets))


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.binary(max_size=60),
    st.sampled_from([17, 253, 254]), st.integers(0, 65535),
)  # fmt: skip
@settings(max_examples=200, derandomize=True, deadline=None)
def test_emitted_datagram_is_parsed_unchanged(
    source: int, destination: int, payload: bytes, protocol: int, port: int
) -> None:
    ports = (port, 65535 - port) if protocol == 17 else (0, 0)
    datagram = Datagram(source, destination, payload, protocol, *ports)
    octets = emit_datagram(datagram)
    assert parse_datagram(octets) == datagram
    assert parse_datagram(octets + b"padding of a short frame") == datagram
    assert naive_sum(octets[:20]) == 0xFFFF
    if protocol == 17:
        pseudo = octets[12:20] + bytes((0, 17)) + octets[24:26]
        assert octets[26:28] != bytes(2)
        assert naive_sum(pseudo + octets[20:]) == 0xFFFF


@given(st.binary(max_size=60), st.integers(20, 60), st.data())
@settings(max_examples=300, derandomize=True, deadline=None)
def test_damaged_datagram_is_parsed_or_refused(
    octets: bytes, size: int, more: st.DataObject
) -> None:
    whole = bytearray(emit_datagram(Datagram(1, 2, octets, 17, 3, 4)))
    whole[more.draw(st.integers(0, len(whole) - 1))] ^= more.draw(st.integers(1, 255))
    for candidate in (octets, bytes(whole), bytes(whole[:size])):
        try:
            parsed = parse_datagram(candidate)
        except MalformedPacket:
            continue
        assert len(parsed.payload) <= len(candidate) - 20


def test_datagram_without_udp_checksum_is_parsed() -> None:
    octets = bytearray(emit_datagram(Datagram(1, 2, b"data", 17, 3, 4)))
    octets[26:28] = bytes(2)
    assert parse_datagram(bytes(octets)).payload == b"data"
    octets[26:28] = b"\x12\x34"
    with pytest.raises(MalformedPacket, match="wrong UDP checksum"):
        parse_datagram(bytes(octets))


def test_pseudo_header_of_a_datagram_is_that_of_its_addresses() -> None:
    datagram = Datagram(0x0A000001, 0x0A000002, b"", 253)
    assert datagram.pseudo_header == V4
    assert Datagram(1, 2, b"").pseudo_header == b""
    with pytest.raises(ValueError, match="not of one family"):
        pseudo_header(bytes(4), bytes(16))


def test_packet_numbers_compare_across_the_wrap() -> None:
    last = 2**24 - 1
    assert below(last, 0) and not below(0, last)
    assert below(0, 2**23 - 1)
    # Half the modulus apart: in no order, either way.
    assert not below(0, 2**23) and not below(2**23, 0)
    assert not below(5, 5)
    assert unwrap(3, 2**24 - 2) == 2**24 + 3
    assert unwrap(2**24 - 1, 2**24 + 1) == 2**24 - 1


def test_connection_sequence_numbers_compare_across_the_wrap() -> None:
    assert newer(0, 2**32 - 1) and not newer(2**32 - 1, 0)
    assert not newer(7, 7)
    assert not newer(2**31, 0) and not newer(0, 2**31)
