"""Terrestrial connections that lose nothing, as hops of a chain: TCP beyond slow start.

A connection that never loses a packet is its window, its rate and its delay: octets that have not
been taken at the far end count against the window until an acknowledgment of two segments has come
back. When a packet arrives follows from when it left; so nothing is planned but the moments
for which somebody waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.stream import pattern

HEADERS = 40
"""Octets of an IPv4 packet with a segment that has no options."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What a terrestrial connection is.

    Attributes:
        window: octets of user data.
        segment: octets of data in a packet.
        rate_bit_s: of the link, both ways.
        delay_s: of the link, one way.
    """

    window: int
    segment: int
    rate_bit_s: float
    delay_s: float


class WireHop:
    """One of the two hops below; what they have in common of :class:`.chain.Hop`.

    Args:
        simulation: the clock.
        wire: the connection.
    """

    on_room: Callable[[float], None]
    on_arrival: Callable[[float], None]
    failure: str | None = None

    def __init__(self, simulation: Simulation, wire: Wire) -> None:
        self.wire = wire
        self.started = False
        self.read_at = 0.0
        self._simulation = simulation
        self._seconds = 8 / wire.rate_bit_s
        self._free_at = 0.0
        self._unacknowledged = 0
        self._awaited = False

    def _departed(self, at: float, octets: int) -> float:
        """When a packet arrives that is handed to the link at a moment."""
        begin = self._free_at
        if begin < at:
            begin = at
        self._free_at = begin = begin + (octets + HEADERS) * self._seconds
        return begin + self.wire.delay_s

    def _await(self, time: float) -> None:
        """Somebody waits for what happens at a moment."""
        if not self._awaited:
            self._awaited = True
            self._simulation.call_at(time, self._wake)

    def _wake(self) -> None:
        raise NotImplementedError

    @property
    def read(self) -> int:
        """See :class:`.chain.Hop`."""
        return 0

    @property
    def room(self) -> int:
        """See :class:`.chain.Hop`."""
        return 0

    @property
    def readable(self) -> int:
        """See :class:`.chain.Hop`."""
        return 0

    @property
    def intact(self) -> bool:
        """See :class:`.chain.Hop`."""
        return True

    def put(self, data: bytes, now: float) -> None:
        """See :class:`.chain.Hop`."""

    def take(self, octets: int, now: float) -> bytes:  # noqa: ARG002
        """See :class:`.chain.Hop`."""
        return b""

    def call(self, now: float) -> None:
        """See :class:`.chain.Hop`; only what is sent packet by packet is called."""

    def drain(self, now: float) -> None:
        """See :class:`.chain.Hop`."""

    def attach(self, octets: int | None, now: float) -> None:
        """See :class:`.chain.Hop`."""

    def close(self, now: float) -> None:
        """See :class:`.chain.Hop`."""

    def await_room(self) -> None:
        """See :class:`.chain.Hop`."""

    def await_arrival(self) -> None:
        """See :class:`.chain.Hop`."""

    def send(self) -> None:
        """See :class:`.chain.Hop`; nothing waits."""

    def answer(self) -> None:
        """See :class:`.chain.Hop`; nothing waits."""

    def end(self, now: float) -> None:
        """See :class:`.chain.Hop`."""


class SourceHop(WireHop):
    """The first hop of a chain: a server with the test pattern; see :class:`.chain.Hop`."""

    def __init__(self, simulation: Simulation, wire: Wire) -> None:
        super().__init__(simulation, wire)
        self._flying: deque[tuple[float, int]] = deque()
        self._arrived = 0
        self._taken = 0
        self._sent = 0
        self._room = 0
        self._octets: int | None = None
        self._ends = False

    def start(self, now: float) -> None:
        """See :class:`.chain.Hop`; a handshake takes a round trip."""
        self.started = True
        self.on_arrival(now)
        self._simulation.call_after(2 * self.wire.delay_s, self._open)

    def _open(self) -> None:
        now = self._simulation.now
        self.on_room(now)
        self._acknowledged(now, self.wire.window)
        self.await_arrival()

    def attach(self, octets: int | None, now: float) -> None:  # noqa: ARG002
        """See :class:`.chain.Hop`."""
        self._octets, self._ends = octets, octets is not None

    def _acknowledged(self, at: float, octets: int) -> None:
        """The window opens at a moment, which need not have come: packets leave then."""
        self._room += octets
        segment, whole = self.wire.segment, self._octets
        while self._room >= segment:
            wanted = segment if whole is None else min(segment, whole - self._sent)
            if not wanted:
                return
            self._room -= wanted
            self._sent += wanted
            self._flying.append((self._departed(at, wanted), wanted))

    @property
    def readable(self) -> int:
        """See :class:`.chain.Hop`."""
        flying, now = self._flying, self._simulation.now
        while flying and flying[0][0] <= now:
            self._arrived += flying.popleft()[1]
        return self._arrived

    def take(self, octets: int, now: float) -> bytes:
        """See :class:`.chain.Hop`."""
        data = pattern(self._taken, octets)
        self._arrived -= octets
        self._taken += octets
        self._unacknowledged += octets
        if self._unacknowledged >= 2 * self.wire.segment or not self._flying:
            self._acknowledged(now + self.wire.delay_s, self._unacknowledged)
            self._unacknowledged = 0
        return data

    def await_arrival(self) -> None:
        """See :class:`.chain.Hop`."""
        if self._flying:
            self._await(self._flying[0][0])

    def _wake(self) -> None:
        self._awaited = False
        self.on_arrival(self._simulation.now)

    @property
    def ended(self) -> bool:
        """See :class:`.chain.Hop`."""
        return self._ends and self._taken == self._octets


class SinkHop(WireHop):
    """The last hop of a chain: a client that reads at once; see :class:`.chain.Hop`.

    Attributes:
        ended: whether nothing more is put.
    """

    def __init__(self, simulation: Simulation, wire: Wire) -> None:
        super().__init__(simulation, wire)
        self.ended = False
        self._intact = True
        self._flying: deque[tuple[float, float, int]] = deque()
        self._acknowledged: deque[tuple[float, int]] = deque()
        self._put = 0
        self._read = 0
        self._room = 0

    def start(self, now: float) -> None:
        """See :class:`.chain.Hop`; a handshake takes a round trip."""
        self.started = True
        self._simulation.call_at(now + 2 * self.wire.delay_s, self._open)

    def _open(self) -> None:
        self._room = self.wire.window
        self.on_room(self._simulation.now)

    def _advance(self) -> int:
        """Let happen what has happened by now: arrivals, and their acknowledgments.

        Returns:
            Octets that there is room for then.
        """
        flying, acknowledged, now = self._flying, self._acknowledged, self._simulation.now
        two = 2 * self.wire.segment
        while flying and flying[0][0] <= now:
            arrival, _, octets = flying.popleft()
            self.read_at = arrival
            self._read += octets
            self._unacknowledged += octets
            if self._unacknowledged >= two or not flying or flying[0][1] > arrival:
                acknowledged.append((arrival + self.wire.delay_s, self._unacknowledged))
                self._unacknowledged = 0
        while acknowledged and acknowledged[0][0] <= now:
            self._room += acknowledged.popleft()[1]
        return self._room

    room = property(_advance)

    @property
    def read(self) -> int:
        """Octets that have arrived."""
        self._advance()
        return self._read

    @property
    def intact(self) -> bool:
        """See :class:`.chain.Hop`."""
        return self._intact

    def put(self, data: bytes, now: float) -> None:
        """See :class:`.chain.Hop`."""
        octets, segment = len(data), self.wire.segment
        self._intact = self._intact and data == pattern(self._put, octets)
        self._put += octets
        self._room -= octets
        while octets > segment:
            self._flying.append((self._departed(now, segment), now, segment))
            octets -= segment
        self._flying.append((self._departed(now, octets), now, octets))

    def close(self, now: float) -> None:  # noqa: ARG002
        """See :class:`.chain.Hop`."""
        self.ended = True
        self._simulation.call_at(self._free_at + self.wire.delay_s, self._over)

    def _over(self) -> None:
        self.on_arrival(self._simulation.now)

    def await_room(self) -> None:
        """See :class:`.chain.Hop`."""
        if self._acknowledged:
            self._await(self._acknowledged[0][0])
            return
        flying, two = self._flying, 2 * self.wire.segment
        # An arrival that is not acknowledged makes no room: the one behind it is awaited.
        lone = len(flying) > 1 and flying[1][1] <= flying[0][0]
        lone = lone and self._unacknowledged + flying[0][2] < two
        self._await(flying[lone][0])

    def _wake(self) -> None:
        self._awaited = False
        if self.room > 0:
            self.on_room(self._simulation.now)
        else:
            self.await_room()
