"""When a packet seen at one side of the link was seen at the other, or that it was lost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.lane import SERVER
from bentpipe_conformance.engine.trace import Packet, Trace

_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class Transit:
    """Both sides of the link put together.

    Attributes:
        known: whether there was a capture at the tester's side at all.
        at_peer: frame number in ``iut.pcapng`` -> seconds at the tester's side.
        lost_forward: frame numbers in ``iut.pcapng`` that left the implementation and never
            reached the tester, although there was time for it before the captures ended.
        lost_return: packets the tester sent that never reached the implementation, likewise.
    """

    known: bool
    at_peer: dict[int, float]
    lost_forward: frozenset[int]
    lost_return: tuple[Packet[Any], ...]


def match(trace: Trace[Any]) -> Transit:
    """Pair the packets of the two capture points.

    A router changes TTL and header checksum only. Equal packets (a retransmission can equal its
    original) are distinguished by the link's smallest delay: an arrival belongs to the latest equal
    departure at least that long before it. Of a box only what passes its server's side crosses the
    link.
    """
    near = [packet for packet in trace.at("iut") if packet.side in ("", SERVER)]
    far = trace.at("peer")
    if not far:
        return Transit(False, {}, frozenset(), ())
    end = max(packet.time for packet in trace.packets)
    forward = _pair([p for p in near if p.outgoing], [p for p in far if p.outgoing])
    back = _pair([p for p in far if not p.outgoing], [p for p in near if not p.outgoing])
    at_peer = {sent.number: arrived.time for sent, arrived in forward if arrived is not None}
    at_peer |= {arrived.number: sent.time for sent, arrived in back if arrived is not None}
    lost_forward = frozenset(sent.number for sent in _lost(forward, end))
    return Transit(True, at_peer, lost_forward, tuple(_lost(back, end)))


def _lost(pairs: list[tuple[Packet[Any], Packet[Any] | None]], end: float) -> list[Packet[Any]]:
    """What never arrived, without what may still have been under way at the end."""
    longest = max((arrived.time - sent.time for sent, arrived in pairs if arrived), default=0.0)
    return [sent for sent, arrived in pairs if arrived is None and sent.time + longest < end]


def _alike(packets: list[Packet[Any]]) -> dict[bytes, list[Packet[Any]]]:
    """The packets by what a router does not change."""
    found: dict[bytes, list[Packet[Any]]] = defaultdict(list)
    for packet in packets:
        found[packet.data[:8] + packet.data[9:10] + packet.data[12:]].append(packet)
    return found


def _pair(
    departures: list[Packet[Any]], arrivals: list[Packet[Any]]
) -> list[tuple[Packet[Any], Packet[Any] | None]]:
    waiting, coming = _alike(departures), _alike(arrivals)
    delays = [
        coming[key][0].time - sent[0].time
        for key, sent in waiting.items()
        if len(sent) == len(coming.get(key, ())) == 1
    ]
    shortest = min((delay for delay in delays if delay >= 0), default=0.0)
    partner: dict[int, Packet[Any]] = {}
    for key, sent in waiting.items():
        early: list[Packet[Any]] = []
        departures_left = iter(sent)
        upcoming = next(departures_left, None)
        for arrived in coming.get(key, ()):
            limit = arrived.time - shortest + _ROUNDING_S
            while upcoming is not None and upcoming.time <= limit:
                early.append(upcoming)
                upcoming = next(departures_left, None)
            if early:
                partner[early.pop().number] = arrived
    return [(packet, partner.get(packet.number)) for packet in departures]
