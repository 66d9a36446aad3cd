"""STP's codecs: the judge's, the reference's, and the project's layers for Scapy.

What they read is compared as the reference's packets, or as ``fields`` of the vectors.
"""

from __future__ import annotations

import ipaddress
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from bentpipe_conformance.engine.codec import MalformedPacket as Undissected
from bentpipe_conformance.protocols.stp import codec as wire
from bentpipe_conformance.protocols.stp.codec import Stp
from bentpipe_reference.common.encapsulation import (
    Datagram,
    emit_datagram,
    parse_datagram,
    pseudo_header,
)
from bentpipe_reference.stp import packets as stp
from bentpipe_reference.stp.codec import MalformedPacket, decode
from bentpipe_reference.stp.packets import VERSION, Flags, Packet

from bentpipe_fuzz.inputs.harness import Harness, Reading, scapy_payload

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from bentpipe_conformance.protocols.stp import scapy_layer as layers
    from scapy.layers.inet import IP, in4_chksum
    from scapy.layers.inet6 import IPv6
    from scapy.packet import Raw

Fields = dict[str, Any] | None
"""The form of the vectors; None for a packet that must be discarded."""

UDP = 17


@dataclass(frozen=True)
class Path:
    """What carries a packet: addresses are text."""

    carrier: str
    source: str = "192.0.2.1"
    destination: str = "198.51.100.2"
    protocol: int = 0


# -- the reference


def read_by_reference(packet: bytes) -> Reading:
    """What the reference reads of an IPv4 datagram."""
    try:
        datagram = parse_datagram(packet)
        return decode(datagram.payload, datagram.pseudo_header)
    except MalformedPacket:
        return None


def reference_pseudo_header(path: Path) -> bytes:
    """What the checksum covers besides the packet."""
    if path.carrier == "udp":
        return b""
    source, destination = (
        ipaddress.ip_address(text).packed for text in (path.source, path.destination)
    )
    return pseudo_header(source, destination, path.protocol)


def fields_of(packet: Packet) -> dict[str, Any]:
    """A packet as the vectors write it."""
    fields = {name: getattr(packet, name) for name in packet.__dataclass_fields__ if name != "type"}
    fields["type"] = packet.type.name
    fields["flags"] = names_of(packet.flags)
    if "data" in fields:
        fields["data"] = fields["data"].hex()
    if "options" in fields:
        fields["cookie"] = fields["cookie"] and fields["cookie"].hex()
        fields["options"] = [[kind, value.hex()] for kind, value in fields["options"]]
    if "elements" in fields:
        fields["elements"] = list(fields["elements"])
    return fields


def names_of(flags: int) -> list[str | None]:
    """The names of flags."""
    return [flag.name for flag in Flags if flags & flag]


def packet_with(fields: Mapping[str, Any]) -> Packet:
    """The packet that has fields as the vectors write them."""
    given = dict(fields)
    kind = CLASSES[given.pop("type")]
    given["flags"] = sum(Flags[name] for name in given["flags"])
    if "data" in given:
        given["data"] = bytes.fromhex(given["data"])
    if "options" in given:
        given["cookie"] = given["cookie"] and bytes.fromhex(given["cookie"])
        given["options"] = tuple((kind, bytes.fromhex(value)) for kind, value in given["options"])
    if "elements" in given:
        given["elements"] = tuple(given["elements"])
    return kind(**given)


CLASSES: dict[str, Callable[..., Packet]] = {
    "BEGIN": stp.Begin, "BGAK": stp.Bgak, "END": stp.End, "ENDAK": stp.Endak, "BGREJ": stp.Bgrej,
    "SD": stp.Sd, "SDP": stp.Sdp, "POLL": stp.Poll, "STAT": stp.Stat, "USTAT": stp.Ustat,
}  # fmt: skip

# -- the judge


def read_by_tester(packet: bytes) -> Reading:
    """What the judge reads of an IPv4 datagram, None where a receiver has to discard it."""
    try:
        seen = wire.dissect(packet)
    except Undissected:
        return None
    return packet_of(seen) if seen.ip_checksum_ok else None


def packet_of(seen: Stp) -> Packet | None:
    """The packet that the judge has read, None for one that must be discarded."""
    if not seen.wellformed:
        return None
    flags = seen.flags & ~seen.reserved_flags
    kind, rest = _READ[seen.type]
    return kind(seen.sport, seen.dport, seen.tag, flags, *rest(seen))


_BEGUN = attrgetter("seq", "n_mr", "csn", "version")


def _begin(seen: Stp) -> tuple[Any, ...]:
    if seen.version != VERSION:  # only 20 octets are read (STP-PF-003)
        return _BEGUN(seen)
    return *_BEGUN(seen), seen.max_sd, seen.cookie, seen.data, other_options(seen.options)


def _opening(*names: str) -> Callable[[Stp], tuple[Any, ...]]:
    fields = attrgetter(*names, "max_sd", "cookie")
    return lambda seen: (*fields(seen), other_options(seen.options))


_READ: dict[int, tuple[Callable[..., Packet], Callable[[Stp], tuple[Any, ...]]]] = {
    wire.BEGIN: (stp.Begin, _begin),
    wire.BGAK: (stp.Bgak, _opening("seq", "n_mr", "csn", "peer_csn", "n_r")),
    wire.BGREJ: (stp.Bgrej, _opening("reason", "peer_csn")),
    wire.END: (stp.End, attrgetter("seq", "reason", "csn", "peer_csn")),
    wire.ENDAK: (stp.Endak, lambda seen: (seen.peer_csn,)),
    wire.SD: (stp.Sd, attrgetter("seq", "data")),
    wire.SDP: (stp.Sdp, attrgetter("seq", "n_ps", "timestamp", "csn", "data")),
    wire.POLL: (stp.Poll, attrgetter("seq", "n_ps", "timestamp", "csn")),
    wire.STAT: (stp.Stat, attrgetter("seq", "n_mr", "n_ps", "timestamp", "elements")),
    wire.USTAT: (stp.Ustat, attrgetter("seq", "n_mr", "elements")),
}
"""Of each type its packet, and the fields behind the flags."""


def other_options(field: bytes) -> tuple[tuple[int, bytes], ...]:
    """The options of a field without the MaxSD and the cookie that count."""
    found: list[tuple[int, bytes]] = []
    known: set[int] = set()
    while field:
        if field[0] == 0:
            field = field[1:]
            continue
        option, field = field[: field[1]], field[field[1] :]
        kind, size = option[0], len(option)
        counts = (kind == 1 and size == 4) or (kind == 2 and 10 <= size <= 34)
        if counts and kind not in known:
            known.add(kind)
            continue
        found.append((kind, option[2:]))
    return tuple(found)


# -- Scapy

SEQUENCE = {
    "BEGIN": "iss", "BGAK": "iss", "END": "n_r", "SD": "n_s", "SDP": "n_s", "POLL": "n_s",
    "STAT": "n_r", "USTAT": "n_r",
}  # fmt: skip
"""What the field of the common header is called in a type's fields."""

BODY = {
    "BEGIN": ["n_mr", "csn", "version"],
    "BGAK": ["n_mr", "csn", "peer_csn", "n_r"],
    "END": ["reason", "csn", "peer_csn"],
    "ENDAK": ["peer_csn"],
    "BGREJ": ["reason", "peer_csn"],
    "SD": [],
    "SDP": ["n_ps", "timestamp", "csn"],
    "POLL": ["n_ps", "timestamp", "csn"],
    "STAT": ["n_mr", "n_ps", "timestamp"],
    "USTAT": ["n_mr"],
}
OPENING = "BEGIN", "BGAK", "BGREJ"
"""The types with options."""

NAMED = {"BEGIN": 3, "END": 12, "SD": 1, "SDP": 1}
"""The flags that a type has."""


def is_foreign(fields: Mapping[str, Any]) -> bool:
    """A BEGIN of another version, of which only 20 octets are read (STP-PF-003)."""
    return bool(fields["type"] == "BEGIN" and fields["version"] != VERSION)


def read_layers(packet: bytes) -> Reading:
    """What Scapy's layers read of an IPv4 datagram."""
    found = scapy_payload(packet)
    if found is None or found[0].proto not in (UDP, 253, 254):
        return None
    ip = found[0]
    octets = packet[ip.ihl * 4 : ip.len]
    if ip.proto != UDP:
        fields = read_by_scapy(octets, Path("ipv4", ip.src, ip.dst, ip.proto))
    else:
        size = int.from_bytes(octets[4:6], "big")
        if not 8 <= size <= len(octets):
            return None
        if octets[6:8] != bytes(2) and in4_chksum(UDP, ip, octets[:size]):
            return None
        fields = read_by_scapy(octets[8:size], Path("udp"))
    return fields and packet_with(fields)


def scapy_layer(octets: bytes, path: Path) -> Any:
    """The STP layer that Scapy finds in the octets, on what carries them."""
    if path.carrier == "udp":
        return layers.STP(octets)
    if path.carrier == "ipv4":
        source, destination = map(_number, (path.source, path.destination))
        return IP(emit_datagram(Datagram(source, destination, octets, path.protocol))).payload
    below = IPv6(src=path.source, dst=path.destination, nh=path.protocol)
    return IPv6(bytes(below / Raw(octets)))[layers.STP]


def _number(address: str) -> int:
    return int(ipaddress.IPv4Address(address))


def read_by_scapy(octets: bytes, path: Path) -> Fields:
    """What Scapy's layers read of an STP packet.

    Raises:
        AssertionError: what they have read does not make the same octets again.
    """
    if len(octets) < 12:
        return None
    seen = scapy_layer(octets, path)
    if seen.malformed:
        return None
    field = seen.chksum
    seen.chksum = None
    rebuilt = bytes(seen)
    assert rebuilt[:8] + rebuilt[10:] == octets[:8] + octets[10:]
    # One's complement has two zeros.
    if (int.from_bytes(rebuilt[8:10], "big") - field) % 0xFFFF:
        return None
    name, body = layers.TYPES[seen.type], seen.payload
    fields: dict[str, Any] = {
        "type": name, "sport": seen.sport, "dport": seen.dport, "tag": seen.tag,
        "flags": names_of(int(seen.flags) & NAMED.get(name, 0)),
    }  # fmt: skip
    if name in SEQUENCE:
        fields[SEQUENCE[name]] = seen.seq
    fields.update({key: getattr(body, key) for key in BODY[name]})
    if name in OPENING:
        _read_scapy_options(body, fields)
    if name == "SD":
        fields["data"] = bytes(body).hex()
    elif name in ("BEGIN", "SDP"):
        fields["data"] = "" if is_foreign(fields) else bytes(body.payload).hex()
    elif name == "STAT":
        fields["elements"] = [element & 0xFFFFFF for element in body.elements]
    elif name == "USTAT":
        fields["elements"] = [body.element_1, body.element_2]
    return fields


def _read_scapy_options(body: Any, fields: dict[str, Any]) -> None:
    fields["max_sd"], fields["cookie"], fields["options"] = None, None, []
    for option in body.options:
        if isinstance(option, layers.STPMaxSD):
            if fields["max_sd"] is None:
                fields["max_sd"] = option.max_sd
            else:
                fields["options"].append([1, option.max_sd.to_bytes(2, "big").hex()])
        elif isinstance(option, layers.STPCookie):
            if fields["cookie"] is None:
                fields["cookie"] = option.cookie.hex()
            else:
                fields["options"].append([2, option.cookie.hex()])
        elif isinstance(option, layers.STPOption):
            fields["options"].append([option.kind, option.value.hex()])


HARNESS = Harness(read_by_tester, read_by_reference, read_layers)
