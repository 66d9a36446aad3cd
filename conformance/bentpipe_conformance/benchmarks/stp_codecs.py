"""Build and dissect rates: the two STP codecs beside Scapy's layers, on the same packets."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.encapsulation import Datagram, emit_datagram, parse_datagram
from bentpipe_reference.stp.packets import Poll, Sd, Sdp, Stat

from bentpipe_conformance.benchmarks.codecs import compare
from bentpipe_conformance.benchmarks.model import Report
from bentpipe_conformance.protocols.stp import codec as wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scapy.layers.inet import IP
    from scapy.packet import Raw

    from bentpipe_conformance.protocols.stp import scapy_layer as layers

PACKETS = 200
DATA = 1400
"""Octets of user data in a full packet."""

_SOURCE, _DESTINATION = 0x0A4D0002, 0x0A4E0001
_PROTOCOL = 253

_Packet = Sd | Sdp | Poll | Stat


def reference_codec(repeat: int) -> Report:
    """The reference's codec, the IPv4 datagram included."""
    packets = _packets()
    pseudo_header = Datagram(_SOURCE, _DESTINATION, b"", _PROTOCOL).pseudo_header

    def work() -> None:
        for packet in packets:
            payload = encode(packet, pseudo_header)
            datagram = parse_datagram(
                emit_datagram(Datagram(_SOURCE, _DESTINATION, payload, _PROTOCOL))
            )
            decode(datagram.payload, datagram.pseudo_header)

    return _compared("the reference's STP codec", repeat, work)


def tester_codec(repeat: int) -> Report:
    """The tester's codec."""
    packets = [wire.dissect(_octets(packet)) for packet in _packets()]

    def work() -> None:
        for packet in packets:
            wire.dissect(wire.build(packet))

    return _compared("the tester's STP codec", repeat, work)


def _compared(name: str, repeat: int, work: Callable[[], None]) -> Report:
    fields = [_scapy_fields(packet) for packet in _packets()]

    def scapy() -> None:
        for each in fields:
            IP(bytes(_scapy_packet(each)))

    return compare(
        f"{name} and Scapy build and dissect the same {PACKETS} packets directly over IPv4: half "
        f"of them SDs with {DATA} octets of data, and a sixth each SDPs with as much, POLLs, and "
        "STATs with seven list elements",
        "packet", PACKETS, repeat, work, scapy,
    )  # fmt: skip


def _packets() -> list[_Packet]:
    """Both directions of a transfer with losses."""
    packets: list[_Packet] = []
    for i in range(PACKETS // 2):
        data = bytes((i + k) & 0xFF for k in range(DATA))
        number, listed = 70_000 + i, tuple(69_000 + 3 * k + i for k in range(7))
        packets.append(Sd(40000, 9, 0x5678, 0, number, data))
        packets.append(
            (
                Sdp(40000, 9, 0x5678, 0, number, i, 1000 * i, data),
                Poll(40000, 9, 0x5678, 0, number + 1, i, 1000 * i),
                Stat(9, 40000, 0x1234, 0, 69_000 + i, 90_000, i, 1000 * i, listed),
            )[i % 3]
        )
    return packets


def _octets(packet: _Packet) -> bytes:
    datagram = Datagram(_SOURCE, _DESTINATION, b"", _PROTOCOL)
    payload = encode(packet, datagram.pseudo_header)
    return emit_datagram(Datagram(_SOURCE, _DESTINATION, payload, _PROTOCOL))


_ScapyFields = tuple[dict[str, object], dict[str, object], type | None, dict[str, object], bytes]


def _scapy_fields(packet: _Packet) -> _ScapyFields:
    """Arguments of the IP and STP layers; the layer of the body and its arguments; the data."""
    ip: dict[str, object] = {"src": "10.77.0.2", "dst": "10.78.0.1", "flags": "DF", "id": 0}
    stp: dict[str, object] = {"sport": packet.sport, "dport": packet.dport, "tag": packet.tag}
    if isinstance(packet, Sd):
        return ip, {**stp, "seq": packet.n_s}, None, {}, packet.data
    poll: dict[str, object] = {"n_ps": packet.n_ps, "timestamp": packet.timestamp}
    if isinstance(packet, Stat):
        body = {**poll, "n_mr": packet.n_mr, "elements": list(packet.elements)}
        return ip, {**stp, "seq": packet.n_r}, layers.STPStat, body, b""
    if isinstance(packet, Sdp):
        return ip, {**stp, "seq": packet.n_s}, layers.STPSdp, poll, packet.data
    return ip, {**stp, "seq": packet.n_s}, layers.STPPoll, poll, b""


def _scapy_packet(fields: _ScapyFields) -> IP:
    ip, stp, body, arguments, data = fields
    packet = IP(**ip) / layers.STP(**stp)
    if body is not None:
        packet /= body(**arguments)
    return packet / Raw(data) if data else packet
