"""Which packets belong to which connection.

The same ports can carry one connection after the other, and packets of none. What the IUT put into
its BGAKs and BEGINs says which connections there were; CSNs and tags say to which a packet belongs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ, END, ENDAK, Stp
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay import Packet, Trace

Ends = tuple[str, int, int, int, int]
"""Tester's address, UDP port and port, and the IUT's UDP port and port."""


@dataclass
class Incarnation:
    """One connection, or packets on ports that never had one.

    Attributes:
        ends: its addresses and ports.
        tester_csn, iut_csn: None when no packet shows them.
        iut_calls: whether the IUT sent the first BEGIN.
        start: frame number of the first packet that is sure to be its own.
        packets: its packets, at the IUT's side.
        confirmed: frame number of the first packet that returned both CSNs to the IUT.
    """

    ends: Ends
    tester_csn: int | None
    iut_csn: int | None
    iut_calls: bool = False
    start: int = 0
    packets: list[Packet] = field(default_factory=list)
    confirmed: int | None = None

    def is_confirmed_by(self, packet: Packet) -> bool:
        """Whether a packet is a BGAK of the tester with both CSNs."""
        stp = packet.content
        if packet.outgoing or stp is None or stp.type != BGAK or not stp.wellformed:
            return False
        return (stp.csn, stp.peer_csn) == (self.tester_csn, self.iut_csn)


def separate(trace: Trace) -> list[Incarnation]:
    """The connections of a trace in the order of their first packets."""
    by_ends: dict[Ends, list[Packet]] = defaultdict(list)
    for packet in trace.at("iut"):
        if packet.content is not None:
            by_ends[_ends(packet, packet.content)].append(packet)
    found = [item for ends, packets in by_ends.items() for item in _incarnations(ends, packets)]
    return sorted(found, key=lambda item: item.packets[0].number)


def _ends(packet: Packet, stp: Stp) -> Ends:
    if packet.outgoing:
        return stp.dst, stp.udp_dport, stp.dport, stp.udp_sport, stp.sport
    return stp.src, stp.udp_sport, stp.sport, stp.udp_dport, stp.dport


def _incarnations(ends: Ends, packets: Sequence[Packet]) -> list[Incarnation]:
    known = _named(ends, packets)
    started: list[Incarnation] = []
    waiting = sorted(known, key=lambda item: item.start)
    before = Incarnation(ends, None, None)
    for packet in packets:
        while waiting and waiting[0].start <= packet.number:
            started.append(waiting.pop(0))
        owner = _owner(packet, started) or (started[-1] if started else before)
        owner.packets.append(packet)
        _confirm(packet, owner, started)
    return [item for item in (before, *started) if item.packets]


def _confirm(packet: Packet, owner: Incarnation, started: list[Incarnation]) -> None:
    """Of calls that wait side by side, the first one confirmed gets the ports (STP-CC-033)."""
    if owner.confirmed is not None or owner not in started or not owner.is_confirmed_by(packet):
        return
    owner.confirmed = packet.number
    if all(item is owner or (item.confirmed or 0) < owner.start for item in started):
        started.remove(owner)
        started.append(owner)


def _named(ends: Ends, packets: Sequence[Packet]) -> list[Incarnation]:
    """The connections that the IUT's own BEGINs and BGAKs name, and calls it never accepted."""
    found: dict[tuple[int | None, int | None], Incarnation] = {}
    begins: dict[int, int] = {}
    latest: dict[int, int] = {}
    calls: dict[int, int] = {}
    for packet in packets:
        stp = packet.content
        assert stp is not None
        if stp.fault or stp.csn is None:
            continue
        if stp.type == BEGIN:
            (calls if packet.outgoing else begins).setdefault(stp.csn, packet.number)
            latest[stp.csn] = packet.number
        if stp.type != BGAK:
            continue
        iut, tester = (stp.csn, stp.peer_csn) if packet.outgoing else (stp.peer_csn, stp.csn)
        assert iut is not None and tester is not None
        if not packet.outgoing and iut not in calls:
            continue
        if iut in calls and any(item.iut_csn == iut for item in found.values()):
            # A second BGAK with another CSN is an intruder on the connection that is there.
            continue
        # Earlier BEGINs met the connection that held the ports before (STP-CC-018).
        called = (latest if found else begins).get(tester)
        start = min(
            number for number in (called, calls.get(iut), packet.number) if number is not None
        )
        pair = tester, iut
        if pair not in found:
            found[pair] = Incarnation(ends, tester, iut, iut in calls, start)
    for csn, number in calls.items():
        if not any(item.iut_csn == csn for item in found.values()):
            found[None, csn] = Incarnation(ends, None, csn, True, number)
    accepted = {item.tester_csn for item in found.values()}
    for csn, number in begins.items():
        open_then = any(item.start <= number for item in found.values())
        if csn not in accepted and not open_then:
            found[csn, None] = Incarnation(ends, csn, None, False, number)
    return list(found.values())


def _owner(packet: Packet, started: Sequence[Incarnation]) -> Incarnation | None:
    """The latest connection whose CSNs or tag the packet carries."""
    stp = packet.content
    assert stp is not None
    for item in reversed(started):
        mine, other = (
            (item.iut_csn, item.tester_csn) if packet.outgoing else (item.tester_csn, item.iut_csn)
        )
        if stp.type in (BEGIN, BGAK, END) and not stp.fault:
            if stp.csn == mine:
                return item
        elif stp.type in (BGREJ, ENDAK) and not stp.fault:
            if stp.peer_csn == other:
                return item
        elif mine is not None and stp.tag == tag_of(mine):
            return item
    return None
