"""The three STP codecs, written apart from each other, on vectors and on any packet.

They are the reference's, the tester's and the Scapy layers. Each reads octets into the form that
the vectors use for ``fields``, or into None for a packet that must be discarded.

``make fuzz-stp`` runs the campaign with a million packets instead of a thousand.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import socket
import struct
import warnings
from typing import Any

import pytest
from bentpipe_conformance.engine import codec
from bentpipe_conformance.protocols.stp import codec as wire
from bentpipe_fuzz.stp.codecs import (
    BODY,
    OPENING,
    SEQUENCE,
    Fields,
    Path,
    fields_of,
    is_foreign,
    packet_of,
    read_by_scapy,
    reference_pseudo_header,
)
from bentpipe_fuzz.stp.strategies import BATCH, hostile_packets, packets, quick_batches
from bentpipe_reference.common.encapsulation import (
    Datagram,
    emit_datagram,
    parse_datagram,
)
from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.packets import VERSION, Flags, Packet, Type
from bentpipe_spec.vectors import DatagramVector, PacketVector, datagram_vectors, packet_vectors
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from bentpipe_conformance.protocols.stp import scapy_layer as layers
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.packet import Raw

PORTS = 47000, 47001

asked = int(os.environ.get("BENTPIPE_STP_PACKETS", "0"))
FIRST_SEED = int(os.environ.get("BENTPIPE_STP_SEED", "1"))
ROUND = 20_000 if asked else 1_000
"""Packets for each seed: Hypothesis remembers what it has tried, so its memory grows with them."""

ROUNDS = max(1, -(-asked // ROUND))


OVER_UDP = Path("udp")
PATHS = [OVER_UDP, Path("ipv4", protocol=253), Path("ipv4", protocol=254)]
V6 = Path("ipv6", "2001:db8::1", "2001:db8::2", 253)
WAYS = [OVER_UDP, *PATHS] * 3 + [V6]


def path_of(vector: PacketVector) -> Path:
    if vector.carrier == "udp":
        return OVER_UDP
    return Path(vector.carrier, vector.source, vector.destination, vector.protocol)


# The reference.


def read_by_reference(octets: bytes, path: Path) -> Fields:
    try:
        return fields_of(decode(octets, reference_pseudo_header(path)))
    except MalformedPacket:
        return None


# The tester.


def option_field(fields: dict[str, Any]) -> bytes:
    field = b"" if fields["max_sd"] is None else struct.pack("!BBH", 1, 4, fields["max_sd"])
    if fields["cookie"] is not None:
        cookie = bytes.fromhex(fields["cookie"])
        field += bytes([2, 2 + len(cookie)]) + cookie
    for kind, value in fields["options"]:
        field += bytes([kind, 2 + len(value) // 2]) + bytes.fromhex(value)
    return field + bytes(-len(field) % 4)


def on_tester_path(path: Path, kind: int = wire.SD) -> wire.Stp:
    protocol = path.protocol or 17
    ports = PORTS if protocol == 17 else (0, 0)
    return wire.Stp(
        path.source, path.destination, 0, 0, kind,
        protocol=protocol, udp_sport=ports[0], udp_dport=ports[1],
    )  # fmt: skip


def read_by_tester(octets: bytes, path: Path) -> Fields:
    datagram = wire.build_datagram(on_tester_path(path), octets)
    try:
        seen = wire.dissect(datagram)
    except codec.MalformedPacket:
        return None
    assert seen.octets == octets
    assert seen.udp_checksum_ok
    foreign = seen.name == "BEGIN" and seen.version != VERSION
    assert seen.fault or foreign or wire.octets_of(seen)[10:] == octets[10:]
    packet = packet_of(seen)
    return packet and fields_of(packet)


def built_by_tester(fields: dict[str, Any], path: Path) -> bytes:
    name = fields["type"]
    packet = dataclasses.replace(
        on_tester_path(path, Type[name]),
        sport=fields["sport"], dport=fields["dport"], tag=fields["tag"],
        flags=bits_of(fields["flags"]),
        seq=fields[SEQUENCE[name]] if name in SEQUENCE else 0,
        data=bytes.fromhex(fields.get("data", "")),
        elements=tuple(fields.get("elements", ())),
        options=option_field(fields) if "options" in fields else b"",
        **{body: fields[body] for body in BODY[name]},
    )  # fmt: skip
    return wire.octets_of(packet)


def bits_of(names: list[str]) -> int:
    return sum(Flags[name] for name in names)


# Scapy.


def scapy_options(fields: dict[str, Any]) -> list[Any]:
    options = []
    if fields["max_sd"] is not None:
        options.append(layers.STPMaxSD(max_sd=fields["max_sd"]))
    if fields["cookie"] is not None:
        options.append(layers.STPCookie(cookie=bytes.fromhex(fields["cookie"])))
    for kind, value in fields["options"]:
        options.append(layers.STPOption(kind=kind, value=bytes.fromhex(value)))
    return options


def built_by_scapy(fields: dict[str, Any], path: Path) -> bytes:
    name = fields["type"]
    packet = layers.STP(
        sport=fields["sport"], dport=fields["dport"], tag=fields["tag"],
        flags=bits_of(fields["flags"]), type=Type[name].value,
        seq=fields[SEQUENCE[name]] if name in SEQUENCE else 0,
    )  # fmt: skip
    if name != "SD":
        body = {key: fields[key] for key in BODY[name]}
        if name == "STAT":
            body["elements"] = fields["elements"]
        elif name == "USTAT":
            body["element_1"], body["element_2"] = fields["elements"]
        elif name in OPENING:
            body["options"] = scapy_options(fields)
        # What add_payload joins need not be copied, as an operand of / is.
        packet.add_payload(getattr(layers, name.upper())(**body))
    if fields.get("data"):
        packet.add_payload(Raw(bytes.fromhex(fields["data"])))
    if path.carrier == "udp":
        return bytes(packet)
    addresses = {"src": path.source, "dst": path.destination}
    if path.carrier == "ipv4":
        below = IP(**addresses, proto=path.protocol)
    else:
        below = IPv6(**addresses, nh=path.protocol)
    below.add_payload(packet)
    return bytes(below)[40 if path.carrier == "ipv6" else 20 :]


# What holds.


def rechecked(octets: bytes, path: Path) -> bytes:
    """The octets with the checksum that makes them right, if they have room for one."""
    if len(octets) < 12 or path.carrier == "ipv6":
        return octets
    datagram = wire.build_datagram(on_tester_path(path), octets, rechecked=True)
    return datagram[-len(octets) :]


def agree_on_octets(octets: bytes, path: Path) -> Fields:
    fields = read_by_reference(octets, path)
    assert read_by_scapy(octets, path) == fields
    # The tester judges IPv4 only.
    if path.carrier != "ipv6":
        assert read_by_tester(octets, path) == fields
    return fields


def agree_on_packet(packet: Packet, path: Path) -> None:
    octets = encode(packet, reference_pseudo_header(path))
    fields = fields_of(packet)
    assert agree_on_octets(octets, path) == fields
    assert built_by_scapy(fields, path) == octets
    if path.carrier != "ipv6":
        assert built_by_tester(fields, path) == octets


@pytest.mark.parametrize("vector", packet_vectors("stp").values(), ids=lambda vector: vector.name)
def test_codecs_read_every_vector_as_it_says(vector: PacketVector) -> None:
    assert agree_on_octets(vector.octets, path_of(vector)) == vector.fields


NOT_DETERMINED = {
    "endak-sequence-not-zero", "bgrej-sequence-not-zero", "checksum-is-zero-sent-as-all-ones",
    "begin-cookie-before-max-sd", "bgrej-padding-only", "bgrej-padding-60-octets",
}  # fmt: skip


def is_canonical(vector: PacketVector) -> bool:
    """Whether the fields determine the octets: nothing reserved, options in the usual layout."""
    return (
        vector.fields is not None
        and "option-" not in vector.name
        and not any(requirement == "STP-PF-001" for requirement, _ in vector.defects)
        and not is_foreign(dict(vector.fields))
        and vector.name not in NOT_DETERMINED
    )


CANONICAL = [vector for vector in packet_vectors("stp").values() if is_canonical(vector)]


@pytest.mark.parametrize("vector", CANONICAL, ids=lambda vector: vector.name)
def test_codecs_build_the_octets_of_a_vector_from_its_fields(vector: PacketVector) -> None:
    path = path_of(vector)
    assert vector.fields is not None
    packet = decode(vector.octets, reference_pseudo_header(path))
    assert encode(packet, reference_pseudo_header(path)) == vector.octets
    assert built_by_scapy(dict(vector.fields), path) == vector.octets
    if vector.carrier != "ipv6":
        assert built_by_tester(dict(vector.fields), path) == vector.octets


@pytest.mark.parametrize("vector", datagram_vectors("stp").values(), ids=lambda vector: vector.name)
def test_codecs_read_every_datagram_as_it_says(vector: DatagramVector) -> None:
    if vector.malformed:
        with pytest.raises(MalformedPacket):
            parse_datagram(vector.octets)
        try:
            assert not wire.dissect(vector.octets).udp_checksum_ok
        except codec.MalformedPacket as error:
            assert vector.malformed in str(error)  # noqa: PT017
        return
    packet = packet_vectors("stp")[vector.packet]
    parsed = parse_datagram(vector.octets)
    assert parsed.payload == packet.octets
    assert parsed.pseudo_header == reference_pseudo_header(path_of(packet))
    assert (parsed.udp_sport, parsed.udp_dport) == (vector.udp_ports or (0, 0))
    assert vector.octets.startswith(emit_datagram(parsed))
    seen = wire.dissect(vector.octets)
    assert seen.octets == packet.octets and seen.wellformed and seen.udp_checksum_ok
    assert (seen.udp_sport, seen.udp_dport) == (vector.udp_ports or (0, 0))
    assert vector.octets.startswith(wire.build(seen))


def test_datagrams_dissect_in_scapy_once_the_port_is_bound() -> None:
    layers.bind_udp(PORTS[1])
    try:
        for vector in datagram_vectors("stp").values():
            if not vector.malformed:
                seen = IP(vector.octets)
                assert isinstance(seen.payload.payload if UDP in seen else seen.payload, layers.STP)
                assert not seen[layers.STP].malformed
    finally:
        layers.unbind_udp(PORTS[1])
    assert layers.STP not in IP(datagram_vectors("stp")["sd-in-udp"].octets)


campaign = settings(
    deadline=None, database=None, derandomize=False,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def test_codecs_build_and_read_any_packet_alike() -> None:
    @seed(FIRST_SEED)
    @settings(campaign, max_examples=300)
    @given(packets, st.sampled_from(WAYS))
    def alike(packet: Packet, path: Path) -> None:
        agree_on_packet(packet, path)

    alike()


@pytest.mark.parametrize("number", range(FIRST_SEED, FIRST_SEED + ROUNDS))
def test_codecs_build_and_read_many_packets_alike(number: int) -> None:
    print(f"seed {number}, {ROUND} packets")
    done = [0]

    @seed(number)
    @settings(campaign, max_examples=ROUND // BATCH)
    @given(quick_batches)
    def alike(batch: list[Packet]) -> None:
        for packet, path in zip(batch, itertools.cycle(WAYS)):
            agree_on_packet(packet, path)
            done[0] += 1

    alike()
    assert done[0] >= ROUND


def test_codecs_agree_on_damaged_packets() -> None:
    @seed(FIRST_SEED)
    @settings(campaign, max_examples=300)
    @given(hostile_packets, st.sampled_from(PATHS))
    def alike(octets: bytes, path: Path) -> None:
        agree_on_octets(octets, path)
        agree_on_octets(rechecked(octets, path), path)

    alike()


@pytest.mark.parametrize("protocol", [17, 253, 254])
def test_datagrams_of_reference_and_tester_are_the_same(protocol: int) -> None:
    source, destination = (
        int.from_bytes(socket.inet_aton(text), "big")
        for text in (OVER_UDP.source, OVER_UDP.destination)
    )
    ports = PORTS if protocol == 17 else (0, 0)
    path = OVER_UDP if protocol == 17 else Path("ipv4", protocol=protocol)
    below = IP(src=path.source, dst=path.destination, id=0, flags="DF", proto=protocol)
    if protocol == 17:
        below /= UDP(sport=PORTS[0], dport=PORTS[1])
    payloads = [b"", b"x", bytes(range(256)), bytes(1400)]
    if protocol == 17:
        # Two octets that make the checksum zero, which UDP sends as all ones.
        field = emit_datagram(Datagram(source, destination, bytes(2), 17, *ports))[26:28]
        payloads.append(field)
    for payload in payloads:
        octets = emit_datagram(Datagram(source, destination, payload, protocol, *ports))
        assert octets == wire.build_datagram(on_tester_path(path), payload)
        assert octets == bytes(below / Raw(payload))
    if protocol == 17:
        assert octets[26:28] == b"\xff\xff"
