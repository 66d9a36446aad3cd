"""The impairments of a script, on any lane: the tester's port is their end of the link.

What the link does is done where the tester sends and before it looks at what arrives, so that it
needs nothing of the bed (see decision 007). The captures at the implementation's side therefore
show what really reached and left it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from bentpipe_conformance.engine.lane import Captured, Lane, OpenRequest, Port
from bentpipe_conformance.engine.peer import NotReached

from bentpipe_fuzz.campaign.script import Impairment, Way

UNLIMITED = 1 << 60
"""Packets of a conversation that may be as long as it likes."""

_Held = tuple[float, int, Way, bytes]


class Enough(NotReached):
    """A conversation has had its packets; the tester falls silent."""


class ImpairedPort:
    """A port behind which packets are lost, late, doubled or damaged.

    Args:
        port: the lane's.
        link: what happens.
        most: packets, of both directions, after which nothing is sent or received any more until
            :meth:`relieve`.

    Attributes:
        now: see :class:`Port`.
    """

    def __init__(self, port: Port, link: Sequence[Impairment], most: int = UNLIMITED) -> None:
        self._port = port
        self.now = port.now
        self._link = list(link)
        self._left = most
        self._began = port.now()
        self._offered: dict[Way, int] = {"to-iut": 0, "to-tester": 0}
        self._free: dict[int, float] = {}
        self._held: list[_Held] = []
        self._order = 0

    @property
    def spent(self) -> bool:
        """Whether the conversation has had its packets."""
        return self._left <= 0

    @property
    def elapsed(self) -> float:
        """Seconds since the conversation began."""
        return self.now() - self._began

    def relieve(self) -> None:
        """There may be any number of packets from now on."""
        self._left = UNLIMITED

    def heal(self) -> None:
        """Nothing happens to packets from now on; those on their way arrive."""
        self._link.clear()

    def send(self, packet: bytes) -> None:
        """See :class:`Port`."""
        self._count()
        if not self._link:
            self._port.send(packet)
            return
        for late, octets in self._fates("to-iut", packet):
            if late > 0:
                self._hold(self.now() + late, "to-iut", octets)
            else:
                self._port.send(octets)

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """See :class:`Port`.

        Raises:
            Enough: there were too many packets.
        """
        self._count()
        while True:
            due = self._held[0][0] if self._held else deadline
            item = self._port.receive(min(due, deadline))
            if item is not None:
                if not (self._link or self._held):
                    return item
                time, packet = item
                for late, octets in self._fates("to-tester", packet):
                    self._hold(time + late, "to-tester", octets)
            elif not self._held or due > deadline:
                return None
            if self._held and self._held[0][0] <= self.now():
                due, _, way, octets = heapq.heappop(self._held)
                if way == "to-tester":
                    return due, octets
                self._port.send(octets)

    def _count(self) -> None:
        if self._left <= 0:
            raise Enough("the conversation has had its packets")
        self._left -= 1

    def _hold(self, until: float, way: Way, octets: bytes) -> None:
        self._order += 1
        heapq.heappush(self._held, (until, self._order, way, octets))

    def _fates(self, way: Way, packet: bytes) -> list[tuple[float, bytes]]:
        """The copies of a packet that arrive, each with the seconds that it takes longer."""
        self._offered[way] += 1
        now = self.now() - self._began
        late, octets, copies = 0.0, packet, []
        for number, item in enumerate(self._link):
            if item.way != way or not item.covers(self._offered[way], now):
                continue
            if item.kind == "lose" or (item.kind == "flip" and way == "to-tester"):
                return []  # the tester discards what is damaged
            if item.kind == "delay":
                late += item.value
            elif item.kind == "copy":
                copies.append(item.value)
            elif item.kind == "flip":
                octets = flipped(octets, int(item.value))
            else:
                start = max(now, self._free.get(number, 0.0))
                self._free[number] = start + 8 * len(packet) / item.value
                late += self._free[number] - now
        return [(late + extra, octets) for extra in (0.0, *copies)]


class ImpairedLane:
    """A lane whose port is an :class:`ImpairedPort`; everything else is the lane's own."""

    def __init__(self, lane: Lane, link: Sequence[Impairment], most: int = UNLIMITED) -> None:
        self._lane = lane
        self._link = link
        self._most = most
        self.iut_address = lane.iut_address
        self.timing_error = lane.timing_error
        self.port = ImpairedPort(lane.port, link, most)

    def begin(self) -> str:
        """See :class:`Lane`."""
        address = self._lane.begin()
        self.port = ImpairedPort(self._lane.port, self._link, self._most)
        return address

    def open(self, request: OpenRequest) -> None:
        """See :class:`Lane`."""
        self._lane.open(request)

    def abort(self) -> None:
        """See :class:`Lane`."""
        self._lane.abort()

    def end(self) -> list[Captured]:
        """See :class:`Lane`."""
        return self._lane.end()

    def iut_alive(self) -> str | None:
        """See :class:`Lane`."""
        return self._lane.iut_alive()

    def close(self) -> None:
        """See :class:`Lane`."""
        self._lane.close()


_IP_HEADER = 20


def flipped(packet: bytes, bit: int) -> bytes:
    """A packet with one bit changed behind its IPv4 header, counted from its end."""
    octets = bytearray(packet)
    behind = len(octets) - _IP_HEADER
    if behind > 0:
        octets[-1 - bit // 8 % behind] ^= 1 << bit % 8
    return bytes(octets)
