"""TCP segments as Scapy packets: the same octets as the codec's, and expressions to be pasted."""

from __future__ import annotations

import pytest
from bentpipe_conformance.protocols.tcp import codec
from bentpipe_conformance.protocols.tcp.codec import ACK, PSH, SYN, Tcp, dissect
from bentpipe_conformance.protocols.tcp.crafting import (
    FALSE_CHECKSUMS,
    craft,
    dissection,
    layers,
    wrong_checksum,
)

ENDS = "10.0.0.1", "10.0.0.2", 40001, 9
SEGMENTS = (
    Tcp(*ENDS, 3, 0, SYN, 9, b"", mss=1460, window_scale=7, sack_permitted=True, tsval=1, tsecr=0),
    Tcp(*ENDS, 3, 4, ACK | PSH, 9, b"abc", tsval=1, tsecr=2, sack=((5, 9), (12, 1 << 31))),
    Tcp(*ENDS, (1 << 32) - 1, 4, ACK, 0, b""),
)  # fmt: skip


def evaluated(expression: str) -> bytes:
    scapy = layers()
    return bytes(eval(expression, {"IP": scapy.IP, "TCP": scapy.TCP, "Raw": scapy.Raw}))


@pytest.mark.parametrize("segment", SEGMENTS)
def test_crafted_segment_has_the_octets_of_the_codec(segment: Tcp) -> None:
    crafted = craft(segment)
    assert bytes(crafted) == codec.build(segment)
    assert evaluated(crafted.command()) == bytes(crafted)


@pytest.mark.parametrize("length", [0, 1, 3, 255])
def test_option_of_an_impossible_length_stays_in_the_header(length: int) -> None:
    crafted = craft(SEGMENTS[1], raw=bytes((200, length, 7)))
    seen = dissect(bytes(crafted))
    assert seen.payload == b"abc" and seen.checksum_ok and seen.tsval == 1
    assert seen.options_ok is (length == 3)
    assert evaluated(crafted.command()) == bytes(crafted)


def test_wrong_checksum_is_wrong_and_nothing_else_changes() -> None:
    seen = dissect(bytes(wrong_checksum(craft(SEGMENTS[1]))))
    assert not seen.checksum_ok and seen.payload == b"abc"


@pytest.mark.parametrize("segment", SEGMENTS)
def test_checksum_that_looks_right_is_wrong(segment: Tcp) -> None:
    damaged = [bytes(wrong_checksum(craft(segment), false)) for false in FALSE_CHECKSUMS]
    assert len(set(damaged)) == len(FALSE_CHECKSUMS)
    assert not any(dissect(octets).checksum_ok for octets in damaged)
    # Each is what it says it is: none, and the pseudo-header's sum that an interface completes.
    assert damaged[0][36:38] == bytes(2)
    addresses = sum(int.from_bytes(damaged[3][at : at + 2]) for at in (12, 14, 16, 18))
    assert (addresses + 6 + len(damaged[3]) - 20) % 0xFFFF == int.from_bytes(damaged[3][36:38])


def test_dissection_names_the_layers() -> None:
    assert "###[ TCP ]###" in dissection(codec.build(SEGMENTS[0]))
