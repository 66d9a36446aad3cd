"""The STP vectors, read by means that anyone can check by hand: tables of offsets, a naive sum."""

from __future__ import annotations

import ipaddress
import itertools
import json
from typing import Any

import pytest
from bentpipe_spec.protocols import SpecificationError
from bentpipe_spec.registry import load_requirements
from bentpipe_spec.vectors import (
    PacketVector,
    _named,
    _packet,
    datagram_vectors,
    packet_vectors,
)

# Type code, shortest length, and (field, first octet, octets) of section 3; a number of three
# octets leaves out the reserved octet before it.
LAYOUT: dict[str, tuple[int, int, list[tuple[str, int, int]]]] = {
    "BEGIN": (1, 20, [("iss", 5, 3), ("n_mr", 13, 3), ("csn", 16, 4)]),
    "BGAK": (2, 28, [
        ("iss", 5, 3), ("n_mr", 13, 3), ("csn", 16, 4), ("peer_csn", 20, 4), ("n_r", 25, 3),
    ]),
    "END": (3, 24, [("n_r", 5, 3), ("reason", 12, 1), ("csn", 16, 4), ("peer_csn", 20, 4)]),
    "ENDAK": (4, 16, [("peer_csn", 12, 4)]),
    "BGREJ": (7, 20, [("reason", 12, 1), ("peer_csn", 16, 4)]),
    "SD": (8, 12, [("n_s", 5, 3)]),
    "SDP": (9, 24, [("n_s", 5, 3), ("n_ps", 13, 3), ("timestamp", 16, 4), ("csn", 20, 4)]),
    "POLL": (10, 24, [("n_s", 5, 3), ("n_ps", 13, 3), ("timestamp", 16, 4), ("csn", 20, 4)]),
    "STAT": (11, 24, [("n_r", 5, 3), ("n_mr", 13, 3), ("n_ps", 17, 3), ("timestamp", 20, 4)]),
    "USTAT": (12, 24, [("n_r", 5, 3), ("n_mr", 13, 3)]),
}  # fmt: skip
FLAGS = {"BEGIN": {"FIN": 1, "V": 2}, "END": {"A": 4, "R": 8}, "SD": {"FIN": 1}, "SDP": {"FIN": 1}}
OPTLEN_AT = {"BEGIN": 12, "BGAK": 12, "BGREJ": 13}
NAMES = {code: name for name, (code, _, _) in LAYOUT.items()}

every_packet = pytest.mark.parametrize(
    "vector", packet_vectors("stp").values(), ids=lambda vector: vector.name
)


def naive_sum(octets: bytes) -> int:
    """RFC 1071, word by word."""
    total = 0
    for at in range(0, len(octets), 2):
        total += octets[at] * 256 + (octets[at + 1] if at + 1 < len(octets) else 0)
        if total > 0xFFFF:
            total -= 0xFFFF
    return total


def pseudo_header(vector: PacketVector) -> bytes:
    if vector.carrier == "udp":
        return b""
    addresses = b"".join(
        ipaddress.ip_address(text).packed for text in (vector.source, vector.destination)
    )
    length = len(vector.octets)
    if vector.carrier == "ipv4":
        return addresses + bytes([0, vector.protocol, length // 256, length % 256])
    return addresses + length.to_bytes(4, "big") + bytes([0, 0, 0, vector.protocol])


def number(octets: bytes, at: int, size: int) -> int:
    value = 0
    for octet in octets[at : at + size]:
        value = 256 * value + octet
    return value


def split_options(field: bytes) -> list[bytes] | None:
    """The options without padding, None when one does not fit."""
    options = []
    while field:
        if field[0] == 0:
            field = field[1:]
            continue
        if len(field) < 2 or field[1] < 2 or field[1] > len(field):
            return None
        options.append(field[: field[1]])
        field = field[field[1] :]
    return options


def is_foreign(octets: bytes) -> bool:
    """A BEGIN of another version, of which the first 20 octets count (STP-PF-003)."""
    return octets[4] % 16 == 1 and octets[12] // 16 != 2


def fault(octets: bytes) -> str:
    """What is malformed apart from the checksum, by section 3.1 and 3.3."""
    if len(octets) < 12:
        return "length"
    name = NAMES.get(octets[4] % 16)
    if name is None:
        return "type"
    least = LAYOUT[name][1]
    if len(octets) < least:
        return "length"
    if is_foreign(octets):
        return ""
    if name in OPTLEN_AT:
        end = least + octets[OPTLEN_AT[name]] % 16 * 4
        if end == least and name != "BEGIN":
            return "length" if len(octets) > end else ""
        if end > len(octets) or split_options(octets[least:end]) is None:
            return "options"
        return "length" if name != "BEGIN" and len(octets) > end else ""
    if name == "STAT":
        return "length" if len(octets) % 4 else ""
    return "length" if name not in ("SD", "SDP") and len(octets) > least else ""


def read_fields(octets: bytes) -> dict[str, Any]:
    """The fields of a packet that is not malformed."""
    name = NAMES[octets[4] % 16]
    _, least, places = LAYOUT[name]
    fields: dict[str, Any] = {
        "type": name,
        "sport": number(octets, 0, 2),
        "dport": number(octets, 2, 2),
        "tag": number(octets, 10, 2),
        "flags": [flag for flag, bit in FLAGS.get(name, {}).items() if octets[4] // 16 & bit],
    }
    fields.update({field: number(octets, at, size) for field, at, size in places})
    end = least
    if name in OPTLEN_AT:
        end += 0 if is_foreign(octets) else octets[OPTLEN_AT[name]] % 16 * 4
        options = split_options(octets[least:end])
        assert options is not None
        sizes = [option for option in options if option[0] == 1 and len(option) == 4]
        cookies = [option for option in options if option[0] == 2 and 10 <= len(option) <= 34]
        fields["max_sd"] = number(sizes[0], 2, 2) if sizes else None
        fields["cookie"] = cookies[0][2:].hex() if cookies else None
        for counting in sizes[:1] + cookies[:1]:
            options.remove(counting)
        fields["options"] = [[option[0], option[2:].hex()] for option in options]
    if name == "BEGIN":
        fields["version"] = octets[12] // 16
    if name in ("BEGIN", "SD", "SDP"):
        fields["data"] = "" if is_foreign(octets) else octets[end:].hex()
    if name == "STAT":
        fields["elements"] = [number(octets, at + 1, 3) for at in range(24, len(octets), 4)]
    if name == "USTAT":
        fields["elements"] = [number(octets, 17, 3), number(octets, 21, 3)]
    return fields


def below(left: int, right: int) -> bool:
    return 1 <= (right - left) % 2**24 <= 2**23 - 1


def broken_requirements(octets: bytes, fields: dict[str, Any]) -> set[str]:
    """The requirements of section 3 that a decoding packet breaks for all to see."""
    broken = set()
    name = fields["type"]
    used_bits = bytearray(len(octets))
    used_bits[:12] = b"\xff" * 12
    used_bits[4] = 15 | 16 * sum(FLAGS.get(name, {}).values())
    for _, at, size in LAYOUT[name][2]:
        used_bits[at : at + size] = b"\xff" * size
    if name in ("STAT", "USTAT"):
        for at in range(24 if name == "STAT" else 16, len(octets), 4):
            used_bits[at + 1 : at + 4] = b"\xff" * 3
    elif name in OPTLEN_AT:
        used_bits[OPTLEN_AT[name]] = 0xFF if name == "BEGIN" else 0x0F
        used_bits[LAYOUT[name][1] :] = b"\xff" * (len(octets) - LAYOUT[name][1])
    elif name in ("SD", "SDP"):
        used_bits[LAYOUT[name][1] :] = b"\xff" * (len(octets) - LAYOUT[name][1])
    if any(octet & ~used for octet, used in zip(octets, used_bits, strict=True)):
        broken.add("STP-PF-001")
    gives_cookie = name == "BGAK" or (name == "BGREJ" and fields["reason"] == 6)
    if gives_cookie or (name == "BEGIN" and not is_foreign(octets)):
        if fields["max_sd"] is None or fields["max_sd"] < 512:
            broken.add("STP-PF-010")
        if gives_cookie and fields["cookie"] is None:
            broken.add("STP-PF-017")
    if name == "BGREJ" and fields["tag"]:
        broken.add("STP-PF-005")
    if name in ("STAT", "USTAT") and fields["elements"]:
        listed = fields["elements"]
        rising = all(below(*pair) for pair in itertools.pairwise(listed))
        inside = not below(listed[0], fields["n_r"]) and not below(fields["n_mr"], listed[-1])
        if len(listed) < 2 or not rising or not inside:
            broken.add("STP-PF-011" if name == "STAT" else "STP-PF-013")
    return broken


@every_packet
def test_vector_has_exactly_the_fault_it_names(vector: PacketVector) -> None:
    intact = len(vector.octets) < 12 or naive_sum(pseudo_header(vector) + vector.octets) == 0xFFFF
    assert intact == (vector.malformed != "checksum")
    assert fault(vector.octets) == ("" if vector.malformed == "checksum" else vector.malformed)


@every_packet
def test_vector_has_its_fields_where_section_3_puts_them(vector: PacketVector) -> None:
    if vector.fields is None:
        assert vector.malformed in ("length", "type", "options", "checksum")
        assert not vector.defects
        return
    fields = read_fields(vector.octets)
    assert fields == vector.fields
    found = {requirement for requirement, _ in vector.defects}
    assert found == broken_requirements(vector.octets, fields)


def test_checksum_field_is_the_complement_except_where_rfc_1071_allows_two() -> None:
    both = []
    for vector in packet_vectors("stp").values():
        if vector.malformed or len(vector.octets) < 12:
            continue
        octets = vector.octets[:8] + bytes(2) + vector.octets[10:]
        field = 0xFFFF - naive_sum(pseudo_header(vector) + octets)
        if field != number(vector.octets, 8, 2):
            both.append(vector.name)
    assert both == ["checksum-is-zero-sent-as-all-ones"]


def test_vectors_cover_every_type_flag_carrier_and_fault() -> None:
    vectors = packet_vectors("stp").values()
    decoded = [vector for vector in vectors if vector.fields is not None]
    for name, (_, least, _) in LAYOUT.items():
        of_type = [vector for vector in decoded if vector.fields["type"] == name]
        assert {vector.carrier for vector in of_type} == {"udp", "ipv4", "ipv6"}
        seen = {flag for vector in of_type for flag in vector.fields["flags"]}
        assert seen == set(FLAGS.get(name, {}))
        short = {
            len(vector.octets)
            for vector in vectors
            if vector.malformed == "length" and vector.name.startswith(f"{name.lower()}-cut")
        }
        assert short >= set(range(12, least))
    assert {code for code in range(16) if code not in NAMES} == {
        vector.octets[4] % 16 for vector in vectors if vector.malformed == "type"
    }
    assert {vector.protocol for vector in vectors} == {0, 253, 254}
    assert len(vectors) > 300


def test_provenance_names_sections_and_existing_requirements() -> None:
    known = set(load_requirements())
    for vector in [*packet_vectors("stp").values(), *datagram_vectors("stp").values()]:
        assert vector.provenance
        for source in vector.provenance:
            assert source.startswith(("section ", "RFC ")) or source in known
    for vector in packet_vectors("stp").values():
        assert {requirement for requirement, _ in vector.defects} <= known


def test_datagrams_carry_the_packets_they_name() -> None:
    for vector in datagram_vectors("stp").values():
        octets = vector.octets
        assert octets[0] == 0x45 and naive_sum(octets[:20]) == 0xFFFF
        body = octets[20 : number(octets, 2, 2)]
        if octets[9] == 17:
            pseudo = octets[12:20] + bytes([0, 17]) + body[4:6]
            assert number(body, 4, 2) == len(body)
            assert (naive_sum(pseudo + body) == 0xFFFF) == (vector.malformed != "UDP checksum")
            assert vector.malformed or vector.udp_ports == (number(body, 0, 2), number(body, 2, 2))
            body = body[8:]
        if vector.malformed:
            assert vector.malformed == "UDP checksum" or octets[9] not in (17, 253, 254)
            continue
        packet = packet_vectors("stp")[vector.packet]
        assert body == packet.octets
        assert octets[9] == (packet.protocol or 17)
        if packet.carrier == "ipv4":
            assert octets[12:16] == ipaddress.ip_address(packet.source).packed
            assert octets[16:20] == ipaddress.ip_address(packet.destination).packed


def test_vectors_that_contradict_themselves_are_refused() -> None:
    entry = json.loads('{"name": "a", "provenance": [], "over": {"carrier": "udp"}, "octets": ""}')
    with pytest.raises(SpecificationError, match="either fields or malformed"):
        _packet(entry)
    vector = _packet({**entry, "malformed": "length"})
    with pytest.raises(SpecificationError, match="two vectors 'a'"):
        _named([vector, vector])
