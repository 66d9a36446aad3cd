"""The tester's STP codec: what it keeps of odd packets, and anything a wire can carry."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.protocols.stp import codec as wire
from bentpipe_conformance.protocols.stp.codec import (
    Stp,
    build,
    build_datagram,
    dissect,
)
from hypothesis import given, settings
from hypothesis import strategies as st

word = st.integers(0, 2**32 - 1)
number = st.integers(0, 2**24 - 1)
short = st.integers(0, 2**16 - 1)
nibble = st.integers(0, 15)
octet = st.integers(0, 255)
data = st.binary(max_size=40)
COOKIE = b"12345678"
# The option field and the values of MaxSD and Cookie in it.
OPTIONS = {
    b"": (None, None),
    b"\x01\x04\x05\x78": (1400, None),
    b"\0\x09\x03x\x01\x04\x02\x00": (512, None),
    b"\x02\x0a" + COOKIE + b"\0\0": (None, COOKIE),
    b"\x02\x22" + 4 * COOKIE + b"\0\x01\x04\x05\x78\0": (1400, 4 * COOKIE),
}


@st.composite
def packets(draw: st.DrawFn) -> Stp:
    """Any packet of a used type, reserved bits included."""
    kind = draw(st.sampled_from(sorted(wire.NAMES)))
    elements = draw(st.lists(number, max_size=5))
    fields: dict[int, dict[str, st.SearchStrategy[object]]] = {
        wire.BEGIN: {"n_mr": number, "csn": word, "data": data},
        wire.BGAK: {"n_mr": number, "csn": word, "peer_csn": word, "n_r": number},
        wire.END: {"reason": octet, "csn": word, "peer_csn": word},
        wire.ENDAK: {"peer_csn": word},
        wire.BGREJ: {"reason": octet, "peer_csn": word},
        wire.SD: {"data": data},
        wire.SDP: {"n_ps": number, "timestamp": word, "csn": word, "data": data},
        wire.POLL: {"n_ps": number, "timestamp": word, "csn": word},
        wire.STAT: {
            "n_mr": number, "n_ps": number, "timestamp": word, "elements": st.just(tuple(elements)),
        },
        wire.USTAT: {"n_mr": number, "elements": st.tuples(number, number)},
    }  # fmt: skip
    body = {name: draw(strategy) for name, strategy in fields[kind].items()}
    if kind in (wire.BEGIN, wire.BGAK, wire.BGREJ):
        body["options"] = draw(st.sampled_from(list(OPTIONS)))
        body["max_sd"], body["cookie"] = OPTIONS[body["options"]]  # type: ignore[index]
    if kind == wire.BEGIN:
        body["version"] = wire.VERSION
    reserved: dict[int, list[st.SearchStrategy[int]]] = {
        wire.BGAK: [nibble, octet],
        wire.END: [number],
        wire.BGREJ: [nibble, short],
        wire.SDP: [octet],
        wire.POLL: [octet],
        wire.STAT: [octet] * (2 + len(elements)),
        wire.USTAT: [octet] * 3,
    }
    bits = tuple(draw(strategy) for strategy in reserved.get(kind, ()))
    protocol = draw(st.sampled_from([17, 253, 254]))
    ports = (draw(short), draw(short)) if protocol == 17 else (0, 0)
    return Stp(
        "10.78.3.1", "10.78.3.2", draw(short), draw(short), kind, draw(nibble), draw(number),
        draw(short), protocol=protocol, udp_sport=ports[0], udp_dport=ports[1],
        dont_fragment=draw(st.booleans()), reserved=bits if any(bits) else (), **body,  # type: ignore[arg-type]
    )  # fmt: skip


@given(packets())
@settings(max_examples=400, derandomize=True, deadline=None)
def test_built_packet_is_dissected_unchanged(packet: Stp) -> None:
    octets = build(packet)
    seen = dissect(octets)
    assert seen == packet
    assert seen.wellformed and seen.udp_checksum_ok
    assert build(seen) == octets
    assert build_datagram(seen, seen.octets) == octets


@given(packets(), st.data())
@settings(max_examples=300, derandomize=True, deadline=None)
def test_flipped_bit_behind_the_ip_header_breaks_a_checksum(
    packet: Stp, more: st.DataObject
) -> None:
    octets = bytearray(build(packet))
    bit = more.draw(st.integers(20 * 8, len(octets) * 8 - 1))
    octets[bit // 8] ^= 1 << bit % 8
    try:
        seen = dissect(bytes(octets))
    except MalformedPacket:
        return
    assert not seen.udp_checksum_ok if packet.protocol == 17 else not seen.checksum_ok
    # UDP's header is not part of the packet, so that there only UDP's own checksum notices.
    if packet.protocol == 17 and bit >= 28 * 8:
        assert not seen.checksum_ok


@given(st.binary(max_size=90) | packets().map(build).flatmap(
    lambda packet: st.integers(0, len(packet)).map(lambda cut: packet[:cut])
), st.integers(0, 90), octet)  # fmt: skip
@settings(max_examples=400, derandomize=True, deadline=None)
def test_any_octets_are_dissected_or_refused(octets: bytes, at: int, value: int) -> None:
    changed = bytearray(octets)
    if at < len(changed):
        changed[at] = value
    for candidate in (octets, bytes(changed)):
        try:
            seen = dissect(candidate)
        except MalformedPacket:
            continue
        assert len(seen.octets) <= len(candidate) - 20
        assert seen.type in wire.NAMES or seen.fault


@given(packets(), st.integers(0, 80))
@settings(max_examples=300, derandomize=True, deadline=None)
def test_cut_packet_has_a_fault_or_less_data(packet: Stp, size: int) -> None:
    whole = dissect(build(packet))
    cut = whole.octets[:size]
    datagram = build_datagram(packet, cut, rechecked=True)
    if len(cut) < 12:
        with pytest.raises(MalformedPacket, match="common header"):
            dissect(datagram)
        return
    seen = dissect(datagram)
    assert seen.checksum_ok
    assert seen.octets[:8] == whole.octets[:8] and seen.octets[10:] == cut[10:]
    if not seen.fault and cut != whole.octets:
        assert packet.data.startswith(seen.data)
        assert packet.elements[: len(seen.elements)] == seen.elements
        assert len(seen.data) < len(packet.data) or len(seen.elements) < len(packet.elements)


POLL = Stp("10.0.0.1", "10.0.0.2", 1, 2, wire.POLL, seq=5, n_ps=6, timestamp=7, csn=8, udp_sport=9)
BEGIN = Stp("10.0.0.1", "10.0.0.2", 1, 2, wire.BEGIN, n_mr=4, csn=5, options=bytes(4))


def refused(template: Stp, change: bytes, at: int) -> str:
    octets = bytearray(wire.octets_of(template))
    octets[at : at + len(change)] = change
    seen = dissect(build_datagram(template, bytes(octets), rechecked=True))
    assert seen.checksum_ok and not seen.wellformed
    return seen.fault


def test_faults_name_what_is_wrong() -> None:
    assert refused(POLL, b"x", 24) == "25 octets are too many for POLL, which has 24"
    assert refused(POLL, b"\x05", 4) == "type 5 is not used"
    assert "optlen says 24 octets, the packet has 21" in refused(
        dataclasses.replace(BEGIN, options=b"", data=b"x"), b"\x21", 12
    )
    assert "option does not fit" in refused(BEGIN, b"\x09\x00", 20)
    assert "option does not fit" in refused(BEGIN, b"\x09\x05", 20)
    assert "option does not fit" in refused(BEGIN, b"\x00\x00\x00\x09", 20)
    stat = dataclasses.replace(POLL, type=wire.STAT, n_mr=1)
    assert "whole list element" in refused(stat, b"xyz", 24)
    bgak = dataclasses.replace(BEGIN, type=wire.BGAK, options=b"")
    assert refused(bgak, b"xyz", 28) == "3 octets behind the options of BGAK"
    bgrej = dataclasses.replace(BEGIN, type=wire.BGREJ)
    assert refused(bgrej, b"xyz", 24) == "3 octets behind the options of BGREJ"
    assert "option does not fit" in refused(bgrej, b"\x02\x05", 20)


def test_first_option_of_a_kind_with_an_allowed_length_counts() -> None:
    options = b"\x01\x03\x05\x01\x04\x02\x00\x00\x01\x04\x05\x78"
    assert dissect(build(dataclasses.replace(BEGIN, options=options))).max_sd == 512
    short, long = b"\x02\x09" + bytes(7), b"\x02\x23" + bytes(33)
    for ignored in (short, long):
        options = ignored + b"\x02\x0a" + COOKIE
        options += bytes(-len(options) % 4)
        assert dissect(build(dataclasses.replace(BEGIN, options=options))).cookie == COOKIE
    options = b"\x02\x0a" + COOKIE + b"\x02\x0a" + bytes(8)
    assert dissect(build(dataclasses.replace(BEGIN, options=options))).cookie == COOKIE


@pytest.mark.parametrize("kind", [wire.BEGIN, wire.BGAK, wire.BGREJ])
@pytest.mark.parametrize("size", [8, 9, 31, 32])
def test_option_field_is_made_of_maxsd_and_cookie(kind: int, size: int) -> None:
    cookie = bytes(range(size))
    packet = dataclasses.replace(BEGIN, type=kind, options=b"", max_sd=1400, cookie=cookie)
    seen = dissect(build(packet))
    assert (seen.max_sd, seen.cookie, seen.wellformed) == (1400, cookie, True)


@pytest.mark.parametrize("version", [0, 1, 3, 15])
def test_only_the_first_octets_of_a_begin_of_another_version_are_read(version: int) -> None:
    octets = bytearray(wire.octets_of(dataclasses.replace(BEGIN, options=b"\x09\x0c" + bytes(10))))
    octets[12], octets[21] = version << 4 | 15, 99
    seen = dissect(build_datagram(BEGIN, bytes(octets), rechecked=True))
    assert seen.wellformed and (seen.version, seen.n_mr, seen.csn) == (version, 4, 5)
    assert (seen.options, seen.data) == (b"", bytes(octets[20:]))


def test_reserved_flags_are_those_not_named_for_the_type() -> None:
    for kind, named in {
        wire.BEGIN: 3, wire.BGAK: 0, wire.END: 12, wire.SD: 1, wire.SDP: 1, wire.POLL: 0,
        wire.STAT: 0, wire.USTAT: 0, wire.ENDAK: 0, wire.BGREJ: 0,
    }.items():  # fmt: skip
        packet = dataclasses.replace(POLL, type=kind, flags=15)
        assert packet.reserved_flags == 15 - named
    assert dataclasses.replace(POLL, flags=12).flag_names == "A+R"


def test_absent_udp_checksum_is_noticed() -> None:
    octets = bytearray(build(POLL))
    octets[26:28] = bytes(2)
    seen = dissect(bytes(octets))
    assert not seen.udp_checksum_ok and seen.wellformed


@pytest.mark.parametrize("place", range(20))
def test_flipped_bit_of_the_ip_header_is_noticed(place: int) -> None:
    octets = bytearray(build(POLL))
    octets[place] ^= 1
    try:
        seen = dissect(bytes(octets))
    except MalformedPacket:
        return
    assert not seen.ip_checksum_ok
    assert dissect(build(POLL)).ip_checksum_ok


def test_wrong_udp_checksum_damages_the_packet() -> None:
    octets = bytearray(build(POLL))
    octets[27] ^= 1
    seen = dissect(bytes(octets))
    assert seen.checksum_ok and seen.damaged and not seen.wellformed


def test_field_out_of_range_is_refused() -> None:
    changes: list[dict[str, Any]] = [
        {"n_ps": 2**24}, {"n_ps": -1}, {"seq": 2**24}, {"flags": 16}, {"type": 5},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(ValueError, match=r"range|24 bits|not used"):
            build(dataclasses.replace(POLL, **change))
    with pytest.raises(ValueError, match="whole words"):
        build(dataclasses.replace(BEGIN, options=b"\0"))
