"""How wrong a recorded time may be, measured on the recorded packets themselves.

Every packet is captured on both sides of the link, and the link is a FIFO of known rate and
delay, so its transit time can be calculated. What a packet took beyond that is the lateness of the
bed itself: the error bar of every time in the trace.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.engine.trace import Packet, Trace

# A copy held longer than this beyond its calculated transit is another packet with equal octets.
_IMPLAUSIBLE_S = 30.0


def lateness(trace: Trace[Any], link: LinkProfile) -> float:
    """The largest deviation from a calculated transit time, in seconds; 0.0 without packets.

    The transit time of a link that reorders on purpose cannot be calculated; it gives 0.0.
    """
    worst = 0.0
    for outgoing, direction in ((True, link.forward), (False, link.return_)):
        if direction.reorder_probability:
            continue
        entered = trace.at("iut" if outgoing else "peer")
        left = trace.at("peer" if outgoing else "iut")
        transmitter_free = 0.0
        for packet, end in _transits(entered, left, outgoing):
            rate = direction.rate_bit_s
            serialisation = len(packet.data) * 8 / rate if rate else 0.0
            transmitter_free = max(packet.time, transmitter_free) + serialisation
            deviation = abs(end - transmitter_free - direction.delay_s)
            if deviation < _IMPLAUSIBLE_S:
                worst = max(worst, deviation)
    return worst


def _transits(
    entered: Sequence[Packet[Any]], left: Sequence[Packet[Any]], outgoing: bool
) -> list[tuple[Packet[Any], float]]:
    """Packets seen on both sides, each with the time at which it left the link.

    Where equal octets entered more often than they left, it is unknown which copy was lost, so
    none of them is used. A packet that the link dropped never reached its transmitter, so it does
    not delay what follows.
    """
    exits: dict[bytes, deque[float]] = defaultdict(deque)
    for packet in left:
        if packet.outgoing == outgoing:
            exits[_identity(packet)].append(packet.time)
    entries = [(packet, _identity(packet)) for packet in entered if packet.outgoing == outgoing]
    copies = Counter(identity for _, identity in entries)
    whole = {identity for identity, count in copies.items() if count == len(exits[identity])}
    return [
        (packet, exits[identity].popleft()) for packet, identity in entries if identity in whole
    ]


def _identity(packet: Packet[Any]) -> bytes:
    """What the satellite's router leaves unchanged: all but TTL and header checksum."""
    data = packet.data
    return data[2:8] + data[9:10] + data[12:]
