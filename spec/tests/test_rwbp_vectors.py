"""The vectors of RWBP/1: made here, and read by means that anyone can check by hand.

``python spec/tests/test_rwbp_vectors.py`` prints what ``vectors.json`` has to be.
"""

from __future__ import annotations

import ipaddress
import json
import struct
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from bentpipe_spec.document import specification
from bentpipe_spec.protocols import read_text
from bentpipe_spec.registry import load_requirements
from bentpipe_spec.vectors import PacketVector, datagram_vectors, packet_vectors

CALLER, CALLED, GATEWAY = "192.0.2.1", "192.0.2.9", "192.0.2.254"
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
FLAGS = {"FIN": FIN, "SYN": SYN, "RST": RST, "PSH": PSH, "ACK": ACK}
MSS, PERMITTED = "020405b4", "0402"
OPTION = "fd0a 52574250 10 08 05b4"
"""Version 1, interval 8, unit 1,460."""

ABOUT = [
    "Test vectors of RWBP/1: segments and credit frames in 'packets', whole IPv4 datagrams in "
    "'datagrams'. spec/tests/test_rwbp_vectors.py makes them.",
    "octets: hexadecimal, in words of 32 bits; the payload of the IP datagram, from the first "
    "octet of the TCP or UDP header.",
    "over: what the checksum covers beside the packet: the pseudo-header of these addresses and "
    "this protocol. Protocol 6 is a segment, 17 a credit frame in its UDP datagram.",
    "fields: what the octets mean; options are [kind, value] of all but padding, values and data "
    "are hexadecimal. rwbp is the RWBP option that counts, None when there is none; offers says "
    "whether the segment can offer or agree to RWBP: a SYN with such an option and SACK-Permitted.",
    "malformed: the packet is discarded, and why: 'length', 'options' or 'checksum' of a segment; "
    "'frame' of a credit frame that is not valid by section 9.4, the gateway being 192.0.2.254.",
    "packet, of a datagram: the name of the packet vector that it carries. udp_ports: its source "
    "and destination port.",
]


# -- making -----------------------------------------------------------------------------------


def total(octets: bytes) -> int:
    """The sum of RFC 1071."""
    octets += bytes(len(octets) % 2)
    summed: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while summed > 0xFFFF:
        summed = (summed & 0xFFFF) + (summed >> 16)
    return summed


def pseudo_header(source: str, destination: str, protocol: int, octets: bytes) -> bytes:
    ends = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    return ends + struct.pack("!BBH", 0, protocol, len(octets))


def words(octets: bytes) -> str:
    return " ".join(octets[at : at + 4].hex() for at in range(0, len(octets), 4))


def segment(
    flags: int,
    options: str = "",
    *,
    seq: int = 1000,
    ack: int = 0,
    window: int = 65535,
    data: bytes = b"",
    offset: int | None = None,
    spoil: int = 0,
    back: bool = False,
) -> tuple[str, str, int, bytes]:
    """A segment between the two endpoints, with its checksum, and the ends it has."""
    raw = bytes.fromhex(options.replace(" ", ""))
    raw += bytes(-len(raw) % 4)
    ports = (9, 40000) if back else (40000, 9)
    words_of_header = (20 + len(raw)) // 4 if offset is None else offset
    head = struct.pack("!HHIIBBHHH", *ports, seq, ack, words_of_header << 4, flags, window, 0, 0)
    octets = head + raw + data
    ends = (CALLED, CALLER) if back else (CALLER, CALLED)
    field = 0xFFFF - total(pseudo_header(*ends, 6, octets) + octets) ^ spoil
    return (*ends, 6, octets[:16] + field.to_bytes(2, "big") + octets[18:])


def offer(option: str) -> tuple[str, str, int, bytes]:
    """A SYN with MSS, SACK-Permitted and ``option``."""
    return segment(SYN, f"{MSS} {PERMITTED} {option}")


def credit(
    epoch: int = 7,
    arrived: int = 20,
    limit: int = 83,
    *,
    first: int = 0x11,
    class_: int = 0,
    port: int = 1021,
    source: str = GATEWAY,
    length: int = 12,
    spoil: int = 0,
    without_checksum: bool = False,
) -> tuple[str, str, int, bytes]:
    """A credit frame to the caller in its UDP datagram."""
    frame = struct.pack("!BBHII", first, class_, epoch, arrived, limit)
    frame = (frame + bytes(length))[:length]
    octets = struct.pack("!HHHH", 1021, port, 8 + len(frame), 0) + frame
    field = 0xFFFF - total(pseudo_header(source, CALLER, 17, octets) + octets) ^ spoil
    if without_checksum:
        field = 0
    return source, CALLER, 17, octets[:6] + field.to_bytes(2, "big") + octets[8:]


SYN_OF_CALLER = f"{MSS} {PERMITTED} {OPTION}"
BLOCK = ["00000bb9 0000116d", "00001721 00001cd5", "00002289 0000283d", "00002df1 000033a5"]

SEGMENTS: dict[str, tuple[tuple[str, ...], tuple[str, str, int, bytes]]] = {
    "syn": (("section 4.1", "RWBP-NG-002"), segment(SYN, SYN_OF_CALLER)),
    "syn-ack": (
        ("section 4.1", "RWBP-NG-003"),
        segment(SYN | ACK, SYN_OF_CALLER, seq=5000, ack=1001, back=True),
    ),
    "syn-with-scale-and-timestamps": (
        ("section 4.2",),
        offer(f"080a 00000001 00000000 01 030303 {OPTION}"),
    ),
    "syn-option-before-others": (
        ("section 4.1",),
        segment(SYN, f"{OPTION} 0101 {MSS} {PERMITTED}"),
    ),
    "syn-interval-1": (("RWBP-NG-002",), offer("fd0a 52574250 10 01 05b4")),
    "syn-interval-255": (
        ("RWBP-NG-002",), offer("fd0a 52574250 10 ff 05b4"),
    ),
    "syn-smallest-unit": (
        ("RWBP-NG-002",), segment(SYN, f"02040030 {PERMITTED} fd0a 52574250 10 08 0030"),
    ),
    "syn-largest-unit": (
        ("RWBP-NG-002",), segment(SYN, f"0204ffff {PERMITTED} fd0a 52574250 10 08 ffff"),
    ),
    "syn-mss-lowered-on-the-way": (
        ("section 4.1", "RWBP-WF-006"), segment(SYN, f"02040218 {PERMITTED} {OPTION}"),
    ),
    "syn-reserved-bits": (
        ("section 2", "section 4.1"), offer("fd0a 52574250 1f 08 05b4"),
    ),
    "syn-after-another-experiment": (
        ("RFC 6994", "RWBP-NG-006"), offer(f"fd04 f989 {OPTION}"),
    ),
    "syn-void-option-first": (
        ("RWBP-NG-006",),
        offer(f"fd0a 52574250 20 08 05b4 {OPTION}"),
    ),
    "syn-two-options": (
        ("RWBP-NG-006",),
        offer(f"{OPTION} fd0a 52574250 10 04 0218"),
    ),
    "syn-without-sack-permitted": (("RWBP-NG-003",), segment(SYN, f"{MSS} {OPTION}")),
    "syn-plain": (("RWBP-NG-008",), offer("01 030307")),
    "syn-void-version-0": (
        ("RWBP-NG-006",), offer("fd0a 52574250 00 08 05b4"),
    ),
    "syn-void-version-2": (
        ("RWBP-NG-006",), offer("fd0a 52574250 20 08 05b4"),
    ),
    "syn-void-interval-0": (
        ("RWBP-NG-006",), offer("fd0a 52574250 10 00 05b4"),
    ),
    "syn-void-unit-0": (
        ("RWBP-NG-006",), offer("fd0a 52574250 10 08 0000"),
    ),
    "syn-void-unit-47": (
        ("RWBP-NG-006",), offer("fd0a 52574250 10 08 002f"),
    ),
    "syn-void-length-6": (("RWBP-NG-006",), offer("fd06 52574250")),
    "syn-void-length-9": (
        ("RWBP-NG-006",), offer("fd09 52574250 10 08 05"),
    ),
    "syn-void-length-11": (
        ("RWBP-NG-006",), offer("fd0b 52574250 10 08 05b4 00"),
    ),
    "syn-other-exid": (
        ("section 4.1",), offer("fd0a 52574251 10 08 05b4"),
    ),
    "syn-other-kind": (
        ("section 4.1",), offer("fe0a 52574250 10 08 05b4"),
    ),
    "syn-sixteen-bits-of-exid": (
        ("section 4.1",), offer("fd04 5257"),
    ),
    "syn-option-after-the-end": (
        ("section 5.1",), offer(f"00 00 {OPTION}"),
    ),
    "ack": (("section 6.1", "RWBP-WN-001"), segment(ACK, seq=1001, ack=5001, window=200)),
    "ack-closed-window": (("section 6.1",), segment(ACK, seq=1001, ack=5001, window=0)),
    "ack-one-block": (
        ("section 7.2", "RWBP-AK-005"),
        segment(ACK, f"0101 050a {BLOCK[0]}", seq=1001, ack=1541, window=199),
    ),
    "ack-four-blocks": (
        ("section 7.2", "RWBP-AK-005"),
        segment(ACK, f"0101 0522 {' '.join(BLOCK)}", seq=1001, ack=1541, window=199),
    ),
    "data": (
        ("section 5.3", "RWBP-WF-003"),
        segment(ACK | PSH, seq=1001, ack=5001, window=200, data=b"backpressure"),
    ),
    "data-with-fin": (
        ("RWBP-WF-008",),
        segment(ACK | PSH | FIN, seq=1001, ack=5001, window=200, data=b"backpressure"),
    ),
    "fin": (("RWBP-WF-008",), segment(ACK | FIN, seq=1013, ack=5001, window=200)),
    "probe": (("section 6.3", "RWBP-WN-009"), segment(ACK, seq=1000, ack=5001, window=200)),
    "reset": (("RWBP-CX-006",), segment(RST | ACK, seq=1013, ack=5001, window=200)),
    "ack-with-rwbp-option": (
        ("RWBP-NG-007",), segment(ACK, f"0101 {OPTION}", seq=1001, ack=5001, window=200),
    ),
}  # fmt: skip
MALFORMED: dict[str, tuple[tuple[str, ...], str, tuple[str, str, int, bytes]]] = {
    "syn-offset-4": (("section 5.1",), "length", segment(SYN, offset=4)),
    "syn-offset-beyond-the-end": (
        ("section 5.1",), "length", segment(SYN, SYN_OF_CALLER, offset=11),
    ),
    "syn-option-of-length-0": (
        ("section 5.1",), "options", segment(SYN, f"{MSS} fd00 52574250 10080000"),
    ),
    "syn-option-of-length-1": (
        ("section 5.1",), "options", segment(SYN, f"{MSS} fd01 52574250 10080000"),
    ),
    "syn-option-beyond-the-header": (
        ("section 5.1",), "options", offer("fd0b 52574250 1008"),
    ),
    "syn-kind-without-length": (("section 5.1",), "options", segment(SYN, f"{MSS} 010101 fd")),
    "syn-wrong-checksum": (("RWBP-WF-001",), "checksum", segment(SYN, SYN_OF_CALLER, spoil=1)),
}  # fmt: skip
FRAMES: dict[str, tuple[tuple[str, ...], tuple[str, str, int, bytes]]] = {
    "credit-at-first": (("section 9.4", "RWBP-LC-010"), credit(1, 0, 75)),
    "credit": (("section 9.4", "RWBP-LC-010"), credit()),
    "credit-none": (("section 9.4",), credit(7, 83, 83)),
    "credit-wrapping": (("section 9.4", "RWBP-LC-003"), credit(7, 2**32 - 5, 70)),
    "credit-last-epoch": (("RWBP-LC-004",), credit(0xFFFF, 0, 75)),
}
INVALID: dict[str, tuple[tuple[str, ...], tuple[str, str, int, bytes]]] = {
    "credit-version-2": (("RWBP-LC-001",), credit(first=0x21)),
    "credit-type-2": (("RWBP-LC-001",), credit(first=0x12)),
    "credit-class-1": (("RWBP-LC-001",), credit(class_=1)),
    "credit-short": (("RWBP-LC-001",), credit(length=11)),
    "credit-long": (("RWBP-LC-001",), credit(length=13)),
    "credit-other-port": (("RWBP-LC-001",), credit(port=1022)),
    "credit-not-from-the-gateway": (("RWBP-LC-001",), credit(source="192.0.2.253")),
    "credit-without-checksum": (("RWBP-LC-001",), credit(without_checksum=True)),
    "credit-wrong-checksum": (("RWBP-LC-001",), credit(spoil=1)),
    "credit-limit-below-arrived": (("RWBP-LC-001",), credit(7, 84, 83)),
    "credit-limit-half-the-space-ahead": (("RWBP-LC-001",), credit(7, 20, 20 + 2**31)),
}


def entries() -> Iterator[dict[str, Any]]:
    rows = [(name, source, "", made) for name, (source, made) in {**SEGMENTS, **FRAMES}.items()]
    rows += [(name, source, why, made) for name, (source, why, made) in MALFORMED.items()]
    rows += [(name, source, "frame", made) for name, (source, made) in INVALID.items()]
    for name, provenance, malformed, (source, destination, protocol, octets) in rows:
        over = {"carrier": "ipv4", "source": source, "destination": destination}
        entry = {
            "name": name,
            "provenance": list(provenance),
            "over": {**over, "protocol": protocol},
            "octets": words(octets),
        }
        known = {"malformed": malformed} if malformed else {"fields": read(octets, protocol)}
        yield {**entry, **known}


def datagrams() -> Iterator[dict[str, Any]]:
    for name in ("syn", "ack-four-blocks", "credit"):
        provenance, (source, destination, protocol, body) = {**SEGMENTS, **FRAMES}[name]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0)
        head += ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
        head = head[:10] + (0xFFFF - total(head)).to_bytes(2, "big") + head[12:]
        entry = {
            "name": f"{name}-in-ipv4",
            "provenance": list(provenance),
            "octets": words(head + body),
            "packet": name,
        }
        yield {**entry, "udp_ports": [1021, 1021]} if protocol == 17 else entry


def document() -> str:
    made = {"about": ABOUT, "packets": list(entries()), "datagrams": list(datagrams())}
    return json.dumps(made, indent=1) + "\n"


# -- reading ----------------------------------------------------------------------------------


def number(octets: bytes, at: int, size: int) -> int:
    value = 0
    for octet in octets[at : at + size]:
        value = 256 * value + octet
    return value


def walk(raw: bytes) -> list[tuple[int, bytes]] | None:
    """The options without padding, None when the list cannot be walked (section 5.1)."""
    options = []
    while raw and raw[0] != 0:
        if raw[0] == 1:
            raw = raw[1:]
            continue
        if len(raw) < 2 or raw[1] < 2 or raw[1] > len(raw):
            return None
        options.append((raw[0], raw[2 : raw[1]]))
        raw = raw[raw[1] :]
    return options


def counting(options: list[tuple[int, bytes]]) -> dict[str, int] | None:
    """The RWBP option that counts (section 4.1)."""
    for kind, value in options:
        if kind == 253 and value[:4] == b"RWBP" and len(value) == 8:
            version, interval, unit = value[4] // 16, value[5], number(value, 6, 2)
            if version == 1 and interval and unit >= 48:
                return {"interval": interval, "unit": unit}
    return None


def read(octets: bytes, protocol: int) -> dict[str, Any]:
    """The fields of a packet that is not malformed."""
    if protocol == 17:
        places = (("epoch", 10, 2), ("arrived", 12, 4), ("limit", 16, 4))
        return {"type": "CREDIT", **{name: number(octets, at, size) for name, at, size in places}}
    options = walk(octets[20 : octets[12] // 16 * 4])
    assert options is not None
    flags = [name for name, bit in FLAGS.items() if octets[13] & bit]
    option = counting(options) if "SYN" in flags else None
    return {
        "type": "SEGMENT",
        "sport": number(octets, 0, 2),
        "dport": number(octets, 2, 2),
        "seq": number(octets, 4, 4),
        "ack": number(octets, 8, 4),
        "flags": flags,
        "window": number(octets, 14, 2),
        "options": [[kind, value.hex()] for kind, value in options],
        "rwbp": option,
        "offers": option is not None and (4, b"") in options,
        "data": octets[octets[12] // 16 * 4 :].hex(),
    }


def fault(vector: PacketVector) -> str:
    """What is malformed, by sections 5.1 and 9.4."""
    octets = vector.octets
    pseudo = pseudo_header(vector.source, vector.destination, vector.protocol, octets)
    intact = total(pseudo + octets) == 0xFFFF
    if vector.protocol == 17:
        valid = (
            intact
            and octets[6:8] != bytes(2)
            and vector.source == GATEWAY
            and number(octets, 2, 2) == 1021
            and len(octets) == 20
            and octets[8:10] == b"\x11\x00"
            and (number(octets, 16, 4) - number(octets, 12, 4)) % 2**32 < 2**31
        )
        return "" if valid else "frame"
    if not intact:
        return "checksum"
    header = octets[12] // 16 * 4
    if not 20 <= header <= len(octets):
        return "length"
    return "options" if walk(octets[20:header]) is None else ""


every = pytest.mark.parametrize(
    "vector", packet_vectors("rwbp").values(), ids=lambda vector: vector.name
)


def test_the_file_is_what_this_module_makes() -> None:
    assert read_text("rwbp", "vectors.json", "set of vectors") == document()


@every
def test_vector_has_the_fault_it_names_or_the_fields(vector: PacketVector) -> None:
    assert fault(vector) == vector.malformed
    if not vector.malformed:
        assert read(vector.octets, vector.protocol) == vector.fields


@every
def test_vector_cites_what_exists_and_stands_in_the_text(vector: PacketVector) -> None:
    known = set(load_requirements())
    for source in vector.provenance:
        assert source.startswith(("section ", "RFC ")) or source in known
    assert words(vector.octets) in " ".join(specification("rwbp").split())


def test_options_differ_where_their_names_say_so() -> None:
    fields = {name: vector.fields for name, vector in packet_vectors("rwbp").items()}
    void = [name for name in fields if "void" in name and name != "syn-void-option-first"]
    assert len(void) == 8
    for name in void:
        found = fields[name]
        assert found is not None and not found["offers"], name
    offered = {"interval": 8, "unit": 1460}
    for name in ("syn", "syn-ack", "syn-reserved-bits", "syn-void-option-first", "syn-two-options"):
        found = fields[name]
        assert found is not None and found["offers"] and found["rwbp"] == offered, name
    lonely = fields["syn-without-sack-permitted"]
    assert lonely is not None and lonely["rwbp"] == offered and not lonely["offers"]


def test_datagrams_carry_the_packets_they_name() -> None:
    for vector in datagram_vectors("rwbp").values():
        octets = vector.octets
        assert total(octets[:20]) == 0xFFFF and len(octets) == number(octets, 2, 2)
        packet = packet_vectors("rwbp")[vector.packet]
        assert octets[20:] == packet.octets and octets[9] == packet.protocol


if __name__ == "__main__":
    sys.stdout.write(document())
