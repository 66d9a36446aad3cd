"""The STP codecs on any packet and on any octets."""

from __future__ import annotations

from bentpipe_fuzz.stp.strategies import hostile_packets, packets
from bentpipe_reference.common.encapsulation import pseudo_header
from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.packets import Packet
from hypothesis import given, settings
from hypothesis import strategies as st

V4 = pseudo_header(bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
V6 = pseudo_header(bytes(15) + b"\x01", bytes(15) + b"\x02", 254)


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


@given(packets, st.sampled_from([b"", V4, V6]))
@settings(max_examples=400, derandomize=True, deadline=None)
def test_encoded_packet_is_decoded_unchanged(packet: Packet, pseudo: bytes) -> None:
    octets = encode(packet, pseudo)
    assert decode(octets, pseudo) == packet
    length = bytearray(pseudo)
    if pseudo:
        at = 10 if len(pseudo) == 12 else 34
        length[at : at + 2] = len(octets).to_bytes(2, "big")
    assert naive_sum(bytes(length) + octets) == 0xFFFF


@given(hostile_packets, st.sampled_from([b"", V4]))
@settings(max_examples=400, derandomize=True, deadline=None)
def test_any_octets_are_decoded_or_refused(octets: bytes, pseudo: bytes) -> None:
    try:
        packet = decode(octets, pseudo)
    except MalformedPacket:
        return
    assert decode(encode(packet, pseudo), pseudo) == packet


@given(hostile_packets.filter(lambda octets: len(octets) >= 12))
@settings(max_examples=400, derandomize=True, deadline=None)
def test_any_octets_with_a_right_checksum_are_decoded_or_refused(octets: bytes) -> None:
    try:
        packet = decode(rechecked(bytearray(octets)))
    except MalformedPacket as error:
        reason = str(error)
    else:
        assert decode(encode(packet)) == packet
        return
    assert "checksum" not in reason
