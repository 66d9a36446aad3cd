"""The two STP codecs of this project beside its Scapy layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bentpipe_reference.common.encapsulation import Datagram, emit_datagram, parse_datagram
from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.packets import Poll, Sd, Sdp, Stat

from bentpipe_conformance.benchmarks.codecs import COUNT, DESTINATION, SOURCE, Load
from bentpipe_conformance.benchmarks.model import Report
from bentpipe_conformance.protocols.stp import codec

DATA = 1400
"""Octets of user data in a full packet."""

_PROTOCOL = 253
_PSEUDO_HEADER = Datagram(SOURCE, DESTINATION, b"", _PROTOCOL).pseudo_header

_Packet = Sd | Sdp | Poll | Stat


def reference_codec(repeat: int) -> Report:
    """The reference's codec, the IPv4 datagram included."""
    built = packets()

    def work() -> None:
        for packet in built:
            datagram = parse_datagram(octets(packet))
            decode(datagram.payload, datagram.pseudo_header)

    return _load().compared("the reference's STP codec", repeat, work)


def tester_codec(repeat: int) -> Report:
    """The tester's codec."""
    dissected = [codec.dissect(octets(packet)) for packet in packets()]

    def work() -> None:
        for packet in dissected:
            codec.dissect(codec.build(packet))

    return _load().compared("the tester's STP codec", repeat, work)


def _load() -> Load:
    return Load(
        "packet",
        f"packets directly over IPv4: half of them SDs with {DATA} octets of data, and a sixth "
        "each SDPs with as much, POLLs, and STATs with seven list elements",
        [scapy_layers(packet) for packet in packets()],
    )


def packets() -> list[_Packet]:
    """Both directions of a transfer with losses."""
    found: list[_Packet] = []
    for i in range(COUNT // 2):
        data = bytes((i + k) & 0xFF for k in range(DATA))
        csn = 0x1234_5678
        number, listed = 70_000 + i, tuple(69_000 + 3 * k + i for k in range(7))
        found.append(Sd(40000, 9, 0x5678, 0, number, data))
        found.append(
            (
                Sdp(40000, 9, 0x5678, 0, number, i, 1000 * i, csn, data),
                Poll(40000, 9, 0x5678, 0, number + 1, i, 1000 * i, csn),
                Stat(9, 40000, 0x1234, 0, 69_000 + i, 90_000, i, 1000 * i, listed),
            )[i % 3]
        )
    return found


def octets(packet: _Packet) -> bytes:
    """A packet in its IPv4 datagram, by the reference's codec."""
    payload = encode(packet, _PSEUDO_HEADER)
    return emit_datagram(Datagram(SOURCE, DESTINATION, payload, _PROTOCOL))


def scapy_layers(packet: _Packet) -> Callable[[], Any]:
    """What makes the same packet of Scapy's layers."""
    from scapy.layers.inet import IP

    from bentpipe_conformance.protocols.stp import scapy_layer as layers

    ip: dict[str, Any] = {"src": "10.77.0.2", "dst": "10.78.0.1", "flags": "DF", "id": 0}
    stp = {"sport": packet.sport, "dport": packet.dport, "tag": packet.tag}
    stp["seq"] = packet.n_r if isinstance(packet, Stat) else packet.n_s
    if isinstance(packet, Sd):
        return lambda: IP(**ip) / layers.STP(**stp) / packet.data
    body: dict[str, Any] = {"n_ps": packet.n_ps, "timestamp": packet.timestamp}
    if isinstance(packet, Stat):
        body |= {"n_mr": packet.n_mr, "elements": list(packet.elements)}
        return lambda: IP(**ip) / layers.STP(**stp) / layers.STAT(**body)
    body["csn"] = packet.csn
    if isinstance(packet, Sdp):
        return lambda: IP(**ip) / layers.STP(**stp) / layers.SDP(**body) / packet.data
    return lambda: IP(**ip) / layers.STP(**stp) / layers.POLL(**body)
