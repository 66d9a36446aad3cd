"""Where an implementation meets the bed: the table ``[attach]`` of a description."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal, get_args

from bentpipe_conformance.iut.table import Table

AttachKind = Literal["tun", "tap", "namespace", "between", "address", "in-process"]
KINDS: tuple[AttachKind, ...] = get_args(AttachKind)

TESTERS = ipaddress.IPv4Network("10.78.0.0/16")
"""Where the tester's addresses are in every bed."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Where the implementation meets the bed.

    Attributes:
        kind: how; ``docs/howto/own-stack.rst`` explains each.
        interface: of the host, in front of an ``address``.
        address: the implementation's IPv4 address.
        gateway, prefix: the bed's address on its network, and the network's prefix length.
        variant: of an ``in-process`` reference.
        sends_on: the second interface, where it sends through a port of its own.
        sends_to: the bed's address and prefix length there.
    """

    kind: AttachKind
    interface: str = ""
    address: str = ""
    gateway: str = ""
    prefix: int = 0
    variant: str = ""
    sends_on: str = ""
    sends_to: tuple[str, int] = ("", 0)


def read_attach(table: Table) -> Attach:
    """Read ``[attach]``.

    Raises:
        DescriptionError: it has a mistake.
    """
    kind = table.choice("kind", KINDS)
    if kind == "address":
        return _address(table)
    if kind == "in-process":
        table.only("kind", "variant")
        return Attach(kind, variant=table.text("variant"))
    table.only("kind")
    return Attach(kind)


def _address(table: Table) -> Attach:
    table.only("kind", "interface", "address", "gateway", "sends_on", "sends_to")
    box, bed = table.address("address"), table.interface("gateway", "192.0.2.254/24")
    network = bed.network
    if bed.ip == box or box not in network:
        raise table.wrong(
            f"needs a 'gateway' in one network with 'address' {box}, and "
            f"{table.text('gateway')} is not; its prefix length says how large the network is"
        )
    if network.overlaps(TESTERS):
        overlap = f"the network {network}, which overlaps the testers' {TESTERS}"
        raise table.wrong(f"has {overlap}; give the implementation another address")
    interface, sends_on = table.text("interface"), table.text("sends_on", "")
    second = _second_gateway(table, interface, sends_on, network)
    place = interface, str(box), str(bed.ip), network.prefixlen
    return Attach("address", *place, sends_on=sends_on, sends_to=second)


def _second_gateway(
    table: Table, interface: str, sends_on: str, first: ipaddress.IPv4Network
) -> tuple[str, int]:
    """The bed's address where the implementation sends, if that is a port of its own."""
    if bool(sends_on) != bool(table.text("sends_to", "")):
        raise table.wrong("needs 'sends_on' and 'sends_to' together")
    if not sends_on:
        return "", 0
    bed = table.interface("sends_to", "198.51.100.254/24")
    if sends_on == interface:
        raise table.wrong(f"names {interface} twice; leave 'sends_on' and 'sends_to' out")
    for other in (first, TESTERS):
        if bed.network.overlaps(other):
            wanted = "a network of its own for 'sends_to'"
            raise table.wrong(f"needs {wanted}, and {bed.network} overlaps {other}")
    return str(bed.ip), bed.network.prefixlen
