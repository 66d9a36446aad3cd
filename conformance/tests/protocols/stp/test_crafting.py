"""STP packets as Scapy packets: the same octets as the codec's, and expressions to be pasted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.faults import (
    FORBIDDEN,
    RESERVED,
    foreign_tag,
    reserved,
)
from bentpipe_conformance.protocols.stp.codec import Stp, dissect
from bentpipe_conformance.protocols.stp.crafting import craft, dissection, layers

CARRIERS: tuple[dict[str, Any], ...] = (
    {"protocol": 17, "udp_sport": 7, "udp_dport": 8}, {"protocol": 253}, {"protocol": 254},
)  # fmt: skip
OPTIONS = (
    b"", bytes((1, 4, 2, 0)), bytes((1, 8, 5, 0)), bytes((9, 1, 0, 0)), bytes((0, 0, 0, 2)),
    bytes((0xAA, 4, 1, 2, 0xAB, 2, 0, 0)),
)  # fmt: skip


def right(kind: int, carrier: dict[str, Any], **fields: Any) -> Stp:
    numbers = {
        "seq": 7, "tag": 77, "csn": 77, "peer_csn": 78, "n_mr": 4, "n_r": 5, "n_ps": 6,
        "timestamp": 99, "reason": 3,
    }  # fmt: skip
    if kind in (codec.STAT, codec.USTAT):
        fields = {"elements": (1, 2), **fields}
    if kind in (codec.BEGIN, codec.SD, codec.SDP):
        fields = {"data": b"hello", **fields}
    return Stp("10.0.0.1", "10.0.0.2", 1, 2, kind, **carrier, **{**numbers, **fields})


def evaluated(expression: str) -> bytes:
    scapy = layers()
    names = {**vars(scapy.stp), "IP": scapy.IP, "UDP": scapy.UDP, "Raw": scapy.Raw}
    return bytes(eval(expression, names))


@pytest.mark.parametrize(("kind", "carrier"), [*itertools.product(codec.NAMES, CARRIERS)])
def test_crafted_packet_has_the_octets_of_the_codec(kind: int, carrier: dict[str, Any]) -> None:
    packet = right(kind, carrier)
    lists = OPTIONS if kind in (codec.BEGIN, codec.BGAK, codec.BGREJ) else (b"",)
    for spoiled in (packet, reserved(packet), foreign_tag(packet)):
        for options in lists:
            changed = right(kind, carrier, options=options, flags=spoiled.flags, tag=spoiled.tag)
            crafted = craft(changed)
            assert bytes(crafted) == codec.build(changed)
            assert evaluated(crafted.command()) == bytes(crafted)


@pytest.mark.parametrize(("kind", "carrier"), [*itertools.product(codec.NAMES, CARRIERS)])
def test_spoiled_packet_is_to_be_discarded(kind: int, carrier: dict[str, Any]) -> None:
    found = [broken for spoil in FORBIDDEN.values() for broken in spoil(right(kind, carrier))]
    assert len(found) >= 3
    for broken in found:
        octets = bytes(broken)
        assert evaluated(broken.command()) == octets
        try:
            seen = dissect(octets)
        except MalformedPacket:
            continue  # too short for the common header
        assert not seen.wellformed and bool(seen.fault) is not seen.damaged


def test_reserved_bits_are_all_set_and_change_nothing_else() -> None:
    for kind in codec.NAMES:
        packet = right(kind, CARRIERS[0])
        seen, before = dissect(codec.build(reserved(packet))), dissect(codec.build(packet))
        assert seen.wellformed and bool(seen.reserved) is (kind in RESERVED)
        assert (seen.seq, seen.data, seen.elements) == (before.seq, before.data, before.elements)


def test_dissection_names_the_layers_of_any_udp_port() -> None:
    shown = dissection(codec.build(right(codec.USTAT, CARRIERS[0])))
    assert "###[ STP USTAT ]###" in shown and "element_2" in shown
