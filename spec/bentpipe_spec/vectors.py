"""Test vectors of wire formats; ``PROTOCOL/vectors.json`` explains its keys under ``about``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from bentpipe_spec.protocols import SpecificationError, read_text


@dataclass(frozen=True, slots=True)
class PacketVector:
    """One packet, well-formed or not.

    Attributes:
        name: unique among the packets.
        provenance: sections, requirements and RFCs it follows from.
        octets: the packet.
        carrier: ``udp``, ``ipv4`` or ``ipv6``.
        source: address of the sender as text, empty for ``udp``.
        destination: address of the receiver likewise.
        protocol: IP protocol number, 0 for ``udp``.
        fields: what it decodes to, None for a malformed one; names as in the specification,
            ``data`` and option values in hexadecimal.
        malformed: ``length``, ``type``, ``options`` or ``checksum``; empty for one that decodes.
        defects: (requirement, why) that the packet breaks although it decodes.
        unspecified: what the specification leaves open about it; empty for nothing.
    """

    name: str
    provenance: tuple[str, ...]
    octets: bytes
    carrier: str
    source: str
    destination: str
    protocol: int
    fields: Mapping[str, Any] | None
    malformed: str
    defects: tuple[tuple[str, str], ...]
    unspecified: str


@dataclass(frozen=True, slots=True)
class DatagramVector:
    """One whole IPv4 datagram.

    Attributes:
        name: unique among the datagrams.
        provenance: sections, requirements and RFCs it follows from.
        octets: from the first octet of the IPv4 header.
        packet: name of the packet vector that it carries, empty for a malformed one.
        udp_ports: source and destination port, None without UDP.
        malformed: what is wrong with it; empty for nothing.
    """

    name: str
    provenance: tuple[str, ...]
    octets: bytes
    packet: str
    udp_ports: tuple[int, int] | None
    malformed: str


_Vector = TypeVar("_Vector", PacketVector, DatagramVector)


@cache
def packet_vectors(protocol: str) -> Mapping[str, PacketVector]:
    """The packets of a protocol by name.

    Raises:
        SpecificationError: there are none, two have one name, or one neither decodes nor is
            malformed.
    """
    return _named(_packet(entry) for entry in _document(protocol)["packets"])


@cache
def datagram_vectors(protocol: str) -> Mapping[str, DatagramVector]:
    """The datagrams of a protocol by name.

    Raises:
        SpecificationError: there are none, two have one name, or one neither carries a packet nor
            is malformed.
    """
    return _named(_datagram(entry) for entry in _document(protocol)["datagrams"])


@cache
def _document(protocol: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(read_text(protocol, "vectors.json", "set of vectors"))
    return document


def _named(vectors: Iterable[_Vector]) -> Mapping[str, _Vector]:
    found: dict[str, _Vector] = {}
    for vector in vectors:
        if vector.name in found:
            raise SpecificationError(f"there are two vectors {vector.name!r}")
        found[vector.name] = vector
    return found


def _common(entry: Mapping[str, Any], content: str) -> dict[str, Any]:
    """The attributes that both kinds have, of an entry with either ``content`` or a defect."""
    if (content in entry) == ("malformed" in entry):
        raise SpecificationError(f"vector {entry['name']!r} needs either {content} or malformed")
    return {
        "name": entry["name"],
        "provenance": tuple(entry["provenance"]),
        "octets": bytes.fromhex(entry["octets"]),
        "malformed": entry.get("malformed", ""),
    }


def _packet(entry: Mapping[str, Any]) -> PacketVector:
    over = entry["over"]
    return PacketVector(
        **_common(entry, "fields"),
        carrier=over["carrier"],
        source=over.get("source", ""),
        destination=over.get("destination", ""),
        protocol=over.get("protocol", 0),
        fields=entry.get("fields"),
        defects=tuple((item["requirement"], item["why"]) for item in entry.get("defects", ())),
        unspecified=entry.get("unspecified", ""),
    )


def _datagram(entry: Mapping[str, Any]) -> DatagramVector:
    ports = entry.get("udp_ports")
    return DatagramVector(
        **_common(entry, "packet"),
        packet=entry.get("packet", ""),
        udp_ports=(ports[0], ports[1]) if ports else None,
    )
