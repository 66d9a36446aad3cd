"""The codec against itself, against Scapy, and against noise."""

from __future__ import annotations

import time
import warnings
from typing import Any

import pytest
from bentpipe_reference.common.address import address_number, address_text
from bentpipe_reference.tcp.wire import (
    Segment,
    WireError,
    emit_packet,
    parse_packet,
)
from hypothesis import given, settings
from hypothesis import strategies as st

with warnings.catch_warnings():
    # Scapy's import uses ciphers that cryptography has moved.
    warnings.filterwarnings("ignore", message=".*has been moved to cryptography.*")
    from scapy.layers.inet import IP, TCP

word, half = st.integers(0, 0xFFFFFFFF), st.integers(0, 0xFFFF)
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "mss": st.none() | half,
    "window_scale": st.none() | st.integers(0, 255),
    "sack_permitted": st.booleans(),
    "timestamps": st.none() | st.tuples(word, word),
}
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "source": word,
    "destination": word,
    "sport": half,
    "dport": half,
    "seq": word,
    "ack": word,
    "flags": st.integers(0, 0x1FF),
    "window": half,
    "urgent": half,
    "payload": st.binary(max_size=200),
}
blocks = st.lists(st.tuples(word, word), max_size=4).map(tuple)
foreign = st.tuples(st.sampled_from([6, 200, 253, 254]), st.binary(max_size=6))


@st.composite
def segments(draw: Any, **more: st.SearchStrategy[Any]) -> Segment:
    """Segments of plausible and implausible fields whose options fit the header."""
    segment = Segment(**{name: draw(values) for name, values in (FIELDS | more).items()})
    room = 40
    for name, size in (("timestamps", 10), ("mss", 4), ("window_scale", 3), ("sack_permitted", 2)):
        value = draw(OPTIONS[name])
        if value not in (None, False) and size <= room:
            setattr(segment, name, value)
            room -= size
    segment.sack_blocks = draw(blocks)[: max(0, (room - 2) // 8)]
    room -= 2 + 8 * len(segment.sack_blocks) if segment.sack_blocks else 0
    option = draw(st.none() | foreign)
    if option is not None and 2 + len(option[1]) <= room:
        segment.unknown = (option,)
    return segment


@given(segments())
def test_segment_when_emitted_and_parsed_is_the_same(segment: Segment) -> None:
    assert parse_packet(emit_packet(segment)) == segment


@given(segments())
@settings(max_examples=60)
def test_segment_when_dissected_by_scapy_is_the_same(segment: Segment) -> None:
    layer = IP(emit_packet(segment))
    tcp = layer[TCP]
    assert (layer.src, layer.dst) == (
        address_text(segment.source),
        address_text(segment.destination),
    )
    assert (tcp.sport, tcp.dport, tcp.seq, tcp.ack) == (
        segment.sport, segment.dport, segment.seq, segment.ack
    )  # fmt: skip
    assert (int(tcp.flags), tcp.window, tcp.urgptr) == (
        segment.flags, segment.window, segment.urgent
    )  # fmt: skip
    assert bytes(tcp.payload) == segment.payload
    options = {name: value for name, value in tcp.options if name not in ("NOP", "EOL")}
    assert options.get("MSS") == segment.mss
    assert options.get("WScale") == segment.window_scale
    assert ("SAckOK" in options) is segment.sack_permitted
    assert options.get("Timestamp") == segment.timestamps
    edges = tuple(edge for block in segment.sack_blocks for edge in block)
    assert options.get("SAck", ()) == edges


@given(segments())
@settings(max_examples=60)
def test_checksums_are_the_ones_scapy_computes(segment: Segment) -> None:
    packet = emit_packet(segment)
    layer = IP(packet)
    ip_sum, tcp_sum = layer.chksum, layer[TCP].chksum
    del layer.chksum, layer[TCP].chksum
    again = IP(bytes(layer))
    assert (again.chksum, again[TCP].chksum) == (ip_sum, tcp_sum)


@given(segments())
@settings(max_examples=60)
def test_packet_built_by_scapy_parses_to_its_fields(segment: Segment) -> None:
    options: list[Any] = []
    if segment.mss is not None:
        options.append(("MSS", segment.mss))
    if segment.timestamps is not None:
        options.append(("Timestamp", segment.timestamps))
    if segment.sack_blocks:
        options.append(("SAck", tuple(edge for block in segment.sack_blocks for edge in block)))
    built = bytes(
        IP(src=address_text(segment.source), dst=address_text(segment.destination))
        / TCP(
            sport=segment.sport, dport=segment.dport, seq=segment.seq, ack=segment.ack,
            flags=segment.flags, window=segment.window, urgptr=segment.urgent, options=options,
        )
        / segment.payload
    )  # fmt: skip
    parsed = parse_packet(built)
    segment.window_scale, segment.sack_permitted, segment.unknown = None, False, ()
    assert parsed == segment


@given(st.binary(max_size=120))
@settings(max_examples=300)
def test_noise_parses_or_raises_wire_error(data: bytes) -> None:
    try:
        segment = parse_packet(data)
    except WireError:
        return
    assert parse_packet(emit_packet(segment)) == segment


@given(st.binary(max_size=40), st.binary(max_size=8))
@settings(max_examples=300)
def test_any_option_list_parses_or_raises_and_survives_a_round_trip(
    raw: bytes, payload: bytes
) -> None:
    """Valid headers around arbitrary option octets, so that the noise gets past the checksums."""
    options = raw + b"\0" * (-len(raw) % 4)
    plain = IP(src="10.0.0.1", dst="10.0.0.2") / TCP(
        dataofs=5 + len(options) // 4, sport=1, dport=2
    )
    packet = bytearray(bytes(plain / (options + payload)))
    layer = IP(bytes(packet))
    del layer.chksum
    try:
        segment = parse_packet(bytes(packet))
    except WireError as error:
        assert "option" in str(error)  # noqa: PT017 (the list may also be sound)
        return
    assert segment.payload == payload
    assert parse_packet(emit_packet(segment)) == segment


@given(segments(), st.data())
@settings(max_examples=150)
def test_packet_with_one_bit_wrong_is_never_taken_for_another(
    segment: Segment, data: st.DataObject
) -> None:
    packet = bytearray(emit_packet(segment))
    bit = data.draw(st.integers(0, 8 * len(packet) - 1))
    packet[bit // 8] ^= 1 << bit % 8
    with pytest.raises(WireError):
        parse_packet(bytes(packet))


def test_packet_when_truncated_anywhere_raises() -> None:
    packet = emit_packet(Segment(1, 2, 3, 4, payload=b"abc", timestamps=(1, 2)))
    for size in range(len(packet)):
        with pytest.raises(WireError):
            parse_packet(packet[:size])
    assert parse_packet(packet + b"padding").payload == b"abc"


@pytest.mark.parametrize(
    "segment",
    [
        Segment(1, 2, 70_000, 4),
        Segment(1, 2, 3, 4, seq=-1),
        Segment(1, 2, 3, 4, payload=bytes(65_600)),
        Segment(1, 2, 3, 4, timestamps=(1, 2), sack_blocks=((1, 2),) * 4),
        Segment(1, 2, 3, 4, mss=1 << 16),
        Segment(1 << 32, 2, 3, 4),
    ],
)
def test_segment_without_an_encoding_raises(segment: Segment) -> None:
    with pytest.raises(WireError):
        emit_packet(segment)


def test_option_kept_raw_when_repeated_or_of_odd_length() -> None:
    segment = Segment(1, 2, 3, 4, mss=1460, unknown=((2, b"\1\2"), (8, b"\1"), (5, b"123")))
    assert parse_packet(emit_packet(segment)) == segment


def test_codec_is_twenty_times_as_fast_as_scapy() -> None:
    segment = Segment(
        address_number("10.77.0.2"), address_number("10.78.0.2"), 19, 4000, 1, 2, 0x10, 500,
        payload=bytes(1448), timestamps=(5, 6),
    )  # fmt: skip

    def ours() -> None:
        parse_packet(emit_packet(segment))

    def scapy() -> None:
        built = IP(src="10.77.0.2", dst="10.78.0.2") / TCP(
            sport=19,
            dport=4000,
            seq=1,
            ack=2,
            flags="A",
            window=500,
            options=[("Timestamp", (5, 6))],
        )
        IP(bytes(built / segment.payload))[TCP].options  # noqa: B018

    def cost(action: Any, rounds: int) -> float:
        best = float("inf")
        for _ in range(3):
            begun = time.process_time()
            for _ in range(rounds):
                action()
            best = min(best, (time.process_time() - begun) / rounds)
        return best

    assert cost(scapy, 60) / cost(ours, 1500) >= 20
