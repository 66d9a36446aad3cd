"""The layers for Scapy, against the tester's own codec."""

from __future__ import annotations

from bentpipe_conformance.protocols.rwbp.codec import option_octets
from bentpipe_conformance.protocols.rwbp.credit import build_frame
from bentpipe_conformance.protocols.rwbp.scapy_layer import RWBPCredit, RWBPOption
from scapy.layers.inet import IP, TCP


def test_option_in_a_syn() -> None:
    option = RWBPOption(version=2, reserved=3, interval=64, unit=536)
    packet = IP() / TCP(flags="S", options=[(253, bytes(option))])
    octets = option_octets(64, 536, version=2, reserved=3)
    assert octets in bytes(packet)
    assert RWBPOption(octets[2:]).fields == option.fields | {"exid": 0x52574250}


def test_credit_frame_is_dissected_and_built() -> None:
    octets = build_frame("10.77.0.3", 7, 20, 83)
    frame = IP(octets)[RWBPCredit]
    assert (frame.version, frame.type, frame.queue) == (1, 1, 0)
    assert (frame.epoch, frame.arrived, frame.limit) == (7, 20, 83)
    assert bytes(RWBPCredit(epoch=7, arrived=20, limit=83)) == octets[28:]
