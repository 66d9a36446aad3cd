"""What connections share on their way out: scheduler, IP queue, link rate, credit (section 9)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.credit import Credit
from bentpipe_reference.rwbp.scheduler import DeficitRoundRobin, Entry, Flow, RoundRobin
from bentpipe_reference.tcp import parts as tcp
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_ENDS = attrgetter("destination", "dport", "sport")
_NOT_PURE = int(Flags.SYN | Flags.FIN | Flags.RST)


def _is_pure(packet: Segment) -> bool:
    """Whether it is a pure acknowledgment."""
    return not packet.payload and not packet.flags & _NOT_PURE


class IpQueue:
    """Packets that leave in order, as fast as link rate and credit permit (section 9.3).

    Args:
        places: IPQ.
        rate_bit_s: the link rate, None for no bound.
        credit: the account with the gateway, None without one.

    Attributes:
        longest: most packets that it ever held.
    """

    def __init__(self, places: int, rate_bit_s: float | None, credit: Credit | None) -> None:
        self.longest = 0
        self._places = places
        self._rate = rate_bit_s
        self._credit = credit
        self._packets: deque[Segment] = deque()
        self._free_at = 0.0
        self._waits_for_link = False

    def __len__(self) -> int:
        return len(self._packets)

    def has_room(self) -> bool:
        """Whether it takes a packet with data or FIN (RWBP-FC-004)."""
        return len(self._packets) < self._places

    def put(self, packet: Segment) -> None:
        """Take a packet; one without data and FIN even if there is no room (RWBP-SC-004)."""
        if len(self._packets) >= self._places and _is_pure(packet):
            self._supersede(packet)
        self._packets.append(packet)
        if len(self._packets) > self.longest:
            self.longest = len(self._packets)

    def _supersede(self, packet: Segment) -> None:
        """Remove what an acknowledgment replaces (RWBP-SC-005)."""
        ends = _ENDS(packet)
        kept = [other for other in self._packets if not (_is_pure(other) and _ENDS(other) == ends)]
        self._packets = deque(kept)

    def next_to_leave(self, now: float) -> Segment | None:
        """The packet that leaves now, None when none may."""
        self._waits_for_link = bool(self._packets) and now < self._free_at
        if not self._packets or self._waits_for_link:
            return None
        credit = self._credit
        if credit is not None:
            if not credit.may_pass(now):
                return None
            credit.on_pass(now)
        packet = self._packets.popleft()
        if self._rate is not None:
            self._free_at = now + 8 * packet.packet_octets / self._rate
        return packet

    def next_deadline(self) -> float | None:
        """When the link is free for the next packet, None when none waits for that."""
        return self._free_at if self._waits_for_link else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkParts(tcp.Parts):
    """The classes that an uplink is composed of.

    Attributes:
        round_robin: the scheduler by packets.
        drr: the scheduler by octets.
        queue: the IP queue.
        credit: the account with the gateway.
    """

    round_robin: type[RoundRobin] = RoundRobin
    drr: type[DeficitRoundRobin] = DeficitRoundRobin
    queue: type[IpQueue] = IpQueue
    credit: type[Credit] = Credit


class Connection(Flow, Protocol):
    """What takes turns, and has segments that wait for none.

    Attributes:
        entry: its place in the ring, None before its first segment.
    """

    entry: Entry | None

    def transmit_unscheduled(self, now: float, /) -> list[Segment]:
        """What waits for no turn (RWBP-SC-004)."""


class Uplink:
    """The scheduler and the IP queue of one interface.

    Args:
        config: settings of the interface.
        parts: the classes that it is composed of.

    Attributes:
        credit: the account with the gateway, None without one.
        queue: the IP queue.
        scheduler: the ring.
    """

    def __init__(self, config: RwbpConfig, parts: UplinkParts) -> None:
        self.credit = None if config.gateway is None else parts.credit()
        self.queue = parts.queue(config.ip_queue, config.link_rate_bit_s, self.credit)
        self.scheduler = (
            parts.drr(config.quantum) if config.scheduler == "drr" else parts.round_robin()
        )

    def send(self, now: float) -> list[Segment]:
        """Let the scheduler fill the queue, and the queue empty, as far as they can now."""
        queue, scheduler = self.queue, self.scheduler
        leaving: list[Segment] = []
        idle = False
        while True:
            while not idle and queue.has_room():
                packet = scheduler.take(now)
                idle = packet is None
                if packet is not None:
                    queue.put(packet)
            first = queue.next_to_leave(now)
            if first is None:
                return leaving
            leaving.append(first)

    def collect(self, connection: Connection, now: float) -> list[Segment]:
        """Something has happened to a connection: what leaves now.

        Data goes before acknowledgments, so that it may take their place.
        """
        if connection.entry is None:
            connection.entry = self.scheduler.add(connection)
        self.scheduler.wake(connection.entry)
        leaving = self.send(now)
        for segment in connection.transmit_unscheduled(now):
            self.queue.put(segment)
        self.scheduler.wake(connection.entry)
        return leaving + self.send(now)

    def remove(self, connection: Connection) -> None:
        """A connection leaves the ring."""
        if connection.entry is not None:
            self.scheduler.remove(connection.entry)
