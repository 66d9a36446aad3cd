"""The tester's codec against Scapy, and against anything a wire can carry."""

from __future__ import annotations

import warnings

import pytest
from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.protocols.tcp.codec import ACK, Tcp, build, dissect
from bentpipe_reference.common.checksum import internet_checksum
from hypothesis import given, settings
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scapy.layers.inet import IP, TCP

word = st.integers(0, 2**32 - 1)
short = st.integers(0, 2**16 - 1)
address = st.integers(1, 254).map(lambda octet: f"10.78.3.{octet}")


@st.composite
def segments(draw: st.DrawFn) -> Tcp:
    """Any segment the codec can build."""
    stamps = draw(st.none() | st.tuples(word, word))
    blocks = draw(st.lists(st.tuples(word, word), max_size=3 if stamps else 4))
    syn_options = not blocks and draw(st.booleans())
    return Tcp(
        draw(address), draw(address), draw(short), draw(short), draw(word), draw(word),
        draw(st.integers(0, 255)), draw(short), draw(st.binary(max_size=64)),
        mss=draw(short) if syn_options else None,
        window_scale=draw(st.integers(0, 255)) if syn_options else None,
        sack_permitted=syn_options,
        sack=tuple(blocks),
        tsval=stamps[0] if stamps else None,
        tsecr=stamps[1] if stamps else None,
    )  # fmt: skip


@given(segments())
@settings(max_examples=200, derandomize=True)
def test_built_segment_is_dissected_unchanged(segment: Tcp) -> None:
    assert dissect(build(segment)) == segment


@given(segments())
@settings(max_examples=100, derandomize=True, deadline=None)
def test_built_segment_reads_the_same_in_scapy(segment: Tcp) -> None:
    packet = build(segment)
    seen = IP(packet)
    tcp = seen[TCP]
    options = dict(tcp.options)
    assert (seen.src, seen.dst, tcp.sport, tcp.dport) == (
        segment.src, segment.dst, segment.sport, segment.dport,
    )  # fmt: skip
    assert (tcp.seq, tcp.ack, int(tcp.flags), tcp.window) == (
        segment.seq, segment.ack, segment.flags, segment.window,
    )  # fmt: skip
    assert bytes(tcp.payload) == segment.payload
    assert options.get("MSS") == segment.mss
    assert options.get("WScale") == segment.window_scale
    assert options.get("Timestamp") == (
        None if segment.tsval is None else (segment.tsval, segment.tsecr)
    )
    flat = tuple(edge for block in segment.sack for edge in block)
    assert options.get("SAck", ()) == flat
    # Scapy calculates both checksums anew when they are deleted.
    del seen.chksum, tcp.chksum
    assert bytes(seen) == packet


@given(st.binary(max_size=120) | segments().map(build).flatmap(
    lambda packet: st.integers(0, len(packet)).map(lambda cut: packet[:cut])
))  # fmt: skip
@settings(max_examples=300, derandomize=True)
def test_any_octets_are_dissected_or_refused(octets: bytes) -> None:
    try:
        segment = dissect(octets)
    except MalformedPacket:
        return
    assert len(segment.payload) <= len(octets) - 40


@given(segments(), st.data())
@settings(max_examples=200, derandomize=True)
def test_flipped_bit_behind_the_ip_header_breaks_the_checksum(
    segment: Tcp, data: st.DataObject
) -> None:
    packet = bytearray(build(segment))
    bit = data.draw(st.integers(20 * 8, len(packet) * 8 - 1))
    packet[bit // 8] ^= 1 << bit % 8
    try:
        damaged = dissect(bytes(packet))
    except MalformedPacket:
        return
    assert not damaged.checksum_ok


def test_checksum_of_the_rfc_1071_example() -> None:
    # RFC 1071 section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2


def test_option_of_length_zero_is_reported_not_followed() -> None:
    segment = Tcp("10.0.0.1", "10.0.0.2", 1, 2, 3, 4, 16, 5, b"", mss=1460)
    packet = bytearray(build(segment))
    packet[41] = 0
    assert dissect(bytes(packet)).options_ok is False


def test_options_that_do_not_fit_are_refused() -> None:
    blocks = tuple((n, n + 1) for n in range(5))
    with pytest.raises(ValueError, match="more than 60"):
        build(Tcp("10.0.0.1", "10.0.0.2", 1, 2, 3, 4, 16, 5, b"", sack=blocks))


STAMPED = Tcp("10.78.0.1", "10.77.0.2", 4000, 9, 1, 2, ACK, 500, b"data", tsval=3, tsecr=4)


def test_unknown_option_appended_leaves_the_segment_as_it_was() -> None:
    packet = build(STAMPED, bytes((200, 3, 7)))
    assert dissect(packet) == STAMPED
    assert len(packet) == len(build(STAMPED)) + 4
    assert internet_checksum(packet[:20]) in (0, 0xFFFF)


def test_impossible_length_appended_shows_as_a_broken_list() -> None:
    segment = dissect(build(STAMPED, bytes((200, 0))))
    assert not segment.options_ok
    assert segment.checksum_ok
    assert segment.payload == b"data"


def test_more_options_than_a_header_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 60"):
        build(STAMPED, bytes((200, 32, *range(30))))
