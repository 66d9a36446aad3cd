"""The tester's own codec of credit frames, against the vectors of the specification."""

from __future__ import annotations

import json
import socket
from importlib.resources import files
from typing import Any

import pytest
from bentpipe_conformance.engine.codec import UDP, build_ipv4
from bentpipe_conformance.protocols.rwbp.credit import below, build_frame, newer, read_frame

GATEWAY = "192.0.2.254"
VECTORS = json.loads((files("bentpipe_spec") / "rwbp" / "vectors.json").read_text())
FRAMES = [each for each in VECTORS["packets"] if each["name"].startswith("credit")]


@pytest.mark.parametrize("vector", FRAMES, ids=lambda vector: vector["name"])
def test_frame_of_the_vectors_is_valid_or_not(vector: dict[str, Any]) -> None:
    over = vector["over"]
    src, dst = (socket.inet_aton(over[end]) for end in ("source", "destination"))
    frame = read_frame(build_ipv4(src, dst, UDP, bytes.fromhex(vector["octets"])), GATEWAY)
    assert frame is not None
    fields = vector.get("fields")
    assert bool(frame.flaw) is (fields is None)
    if fields is not None:
        assert frame.epoch == fields["epoch"]
        assert (frame.arrived, frame.limit) == (fields["arrived"], fields["limit"])


def test_packet_without_udp_is_no_frame() -> None:
    packet = build_frame("10.77.0.2", 1, 2, 3)
    assert read_frame(packet) is not None
    assert read_frame(packet[:9] + b"\x06" + packet[10:]) is None
    assert read_frame(packet[:19]) is None


def test_numbers_half_the_space_apart_are_not_ordered() -> None:
    assert newer(1, 0xFFFF) and newer(0x7FFF, 0)
    assert not newer(0x8000, 0) and not newer(5, 5)
    assert below(0xFFFFFFFF, 0) and not below(0, 1 << 31) and not below(7, 7)


def test_frame_with_a_damaged_ip_header_is_not_valid() -> None:
    packet = build_frame("192.0.2.9", 1, 2, 3)
    damaged = packet[:1] + b"\x28" + packet[2:]
    frame = read_frame(damaged)
    assert frame is not None and frame.flaw == "its IP header is damaged"
