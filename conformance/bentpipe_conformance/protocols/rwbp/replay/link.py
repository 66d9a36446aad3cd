"""What passes at one address of the implementation: its connections share a way out (section 9)."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from bentpipe_conformance.protocols.rwbp.credit import CreditFrame, read_frame
from bentpipe_conformance.protocols.rwbp.replay import Packet

_PROTOCOL_AT, _TCP = 9, 6
_SOURCE, _DESTINATION = slice(12, 16), slice(16, 20)
_SYN_OR_RST = 0x06


class _Connection(Protocol):
    """What a link needs to know of a connection."""

    packets: list[Packet]

    @property
    def iut(self) -> tuple[str, int]: ...


Connection = TypeVar("Connection", bound=_Connection)


@dataclass(frozen=True, slots=True)
class Told:
    """A credit frame, or what looks like one, that has reached the implementation."""

    packet: Packet
    frame: CreditFrame


@dataclass(frozen=True, slots=True)
class Passed(Generic[Connection]):
    """A packet of protocol 6 that has left the IP queue.

    Attributes:
        packet: the packet.
        flow: whose it is; None where it cannot be dissected.
        with_data: whether it has data or FIN, so that the scheduler has given it a turn.
    """

    packet: Packet
    flow: Connection | None
    with_data: bool


@dataclass(slots=True, eq=False)
class Link(Generic[Connection]):
    """One address of the implementation.

    Attributes:
        address: the address.
        flows: the connections there.
        told: what the gateway has said, or what somebody else has said in its name.
        passed: what has left.
        answers: what has left for the gateway, or is no TCP packet.
        began, ended: when the trace does.
    """

    address: str
    flows: list[Connection] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    passed: list[Passed[Connection]] = field(default_factory=list)
    answers: list[Packet] = field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0


def read_links(
    packets: Iterable[Packet], flows: Iterable[Connection]
) -> dict[str, Link[Connection]]:
    """The links by address, of the packets at the implementation's side."""
    links: dict[bytes, Link[Connection]] = {}
    owner: dict[int, Connection] = {}
    for flow in flows:
        address = flow.iut[0]
        links.setdefault(socket.inet_aton(address), Link(address)).flows.append(flow)
        owner.update((id(packet), flow) for packet in flow.packets)
    for packet in packets:
        data = packet.data
        link = links.get(data[_SOURCE if packet.outgoing else _DESTINATION])
        if link is None:
            continue
        link.ended = packet.time
        tcp = packet.content
        if not packet.outgoing:
            frame = None if tcp is not None else read_frame(data)
            if frame is not None:
                link.told.append(Told(packet, frame))
        elif data[_PROTOCOL_AT] == _TCP:
            with_data = tcp is not None and tcp.length > 0 and not tcp.flags & _SYN_OR_RST
            link.passed.append(Passed(packet, owner.get(id(packet)), with_data))
        else:
            link.answers.append(packet)
    return {link.address: link for link in links.values()}


def entries(link: Link[Connection], places: int) -> dict[int, float]:
    """Times before which packets with data or FIN did not enter the IP queue, by packet number.

    They enter it while it holds fewer than ``places`` (section 9.3), and it keeps the order.
    """
    passed = link.passed
    times = [-math.inf] * places + [item.packet.time for item in passed]
    return {item.packet.number: time for item, time in zip(passed, times, strict=False)}
