"""Where an implementation meets the bed: the table ``[attach]`` of a description."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal, get_args

from bentpipe_conformance.engine.crossing import PortPlace
from bentpipe_conformance.engine.lane import CLIENT, SATELLITE_FAR, SATELLITE_NEAR, SERVER
from bentpipe_conformance.iut.table import Table

AttachKind = Literal["tun", "tap", "namespace", "between", "pair", "address", "ports", "in-process"]
KINDS: tuple[AttachKind, ...] = get_args(AttachKind)

IN_NAMESPACES: tuple[AttachKind, ...] = ("namespace", "between", "pair")
"""Programs that use the sockets of network namespaces of the bed."""

OF_BOXES: tuple[AttachKind, ...] = ("between", "pair", "ports")
"""What stands between two ends."""

TESTERS = ipaddress.IPv4Network("10.78.0.0/16")
"""Where the tester's addresses are in every bed."""

SERVERS = ipaddress.IPv4Network("10.77.0.0/16")
"""Where the tester's addresses are behind a box."""

SIDES = (CLIENT, SERVER)
SATELLITE = (SATELLITE_NEAR, SATELLITE_FAR)


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
        ports: of a box that stands between two ends, two or four.
    """

    kind: AttachKind
    interface: str = ""
    address: str = ""
    gateway: str = ""
    prefix: int = 0
    variant: str = ""
    sends_on: str = ""
    sends_to: tuple[str, int] = ("", 0)
    ports: tuple[PortPlace, ...] = ()


def read_attach(table: Table) -> Attach:
    """Read ``[attach]``.

    Raises:
        DescriptionError: it has a mistake.
    """
    kind = table.choice("kind", KINDS)
    if kind == "address":
        return _address(table)
    if kind == "ports":
        return Attach(kind, ports=_ports(table))
    if kind == "in-process":
        table.only("kind", "variant")
        return Attach(kind, variant=table.text("variant"))
    table.only("kind")
    return Attach(kind)


def _address(table: Table) -> Attach:
    table.only("kind", "interface", "address", "gateway", "sends_on", "sends_to")
    box, bed = table.address("address"), table.interface("gateway", "192.0.2.254/24")
    network = bed.network
    _check_network(table, box, bed, TESTERS)
    interface, sends_on = table.text("interface"), table.text("sends_on", "")
    second = _second_gateway(table, interface, sends_on, network)
    place = interface, str(box), str(bed.ip), network.prefixlen
    return Attach("address", *place, sends_on=sends_on, sends_to=second)


def _check_network(
    table: Table, box: ipaddress.IPv4Address, bed: ipaddress.IPv4Interface,
    *others: ipaddress.IPv4Network,
) -> None:  # fmt: skip
    """Refuse a box that cannot reach the bed, or that is where others are."""
    if bed.ip == box or box not in bed.network:
        raise table.wrong(
            f"needs a 'gateway' in one network with 'address' {box}, and "
            f"{table.text('gateway')} is not; its prefix length says how large the network is"
        )
    for other in others:
        if bed.network.overlaps(other):
            whose = "testers'" if other in (TESTERS, SERVERS) else "other port's"
            overlap = f"the network {bed.network}, which overlaps the {whose} {other}"
            raise table.wrong(f"has {overlap}; give the implementation another address")


def _ports(table: Table) -> tuple[PortPlace, ...]:
    """The ports of a single box, or of a pair with the satellite link between them."""
    table.only("kind", *SIDES, *SATELLITE)
    named = [side for side in (*SIDES, *SATELLITE) if side in table.entries]
    wanted = SIDES if len(named) == len(SIDES) else (*SIDES, *SATELLITE)
    if tuple(named) != wanted:
        tables = ", ".join(f"[attach.{side}]" for side in SIDES)
        pair = " and ".join(f"[attach.{side}]" for side in SATELLITE)
        raise table.wrong(f"needs {tables}, and for a pair of boxes {pair} besides")
    taken: dict[str, str] = {}
    networks = [TESTERS, SERVERS]
    found = []
    for side in named:
        port = table.table(side)
        port.only("interface", "address", "gateway")
        interface = port.text("interface")
        if interface in taken:
            raise port.wrong(
                f"names {interface}, as does [attach.{taken[interface]}]; each port has its own"
            )
        taken[interface] = side
        if not port.text("address", "") and not port.text("gateway", ""):
            found.append(PortPlace(side, interface))
            continue
        box, bed = port.address("address"), port.interface("gateway", "192.0.2.254/24")
        _check_network(port, box, bed, *networks)
        networks.append(bed.network)
        found.append(PortPlace(side, interface, str(box), str(bed.ip)))
    if len({bool(place.address) for place in found}) > 1:
        raise table.wrong(
            "needs 'address' and 'gateway' at every port of a box that routes, and at none of one "
            "that bridges"
        )
    return tuple(found)


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
