"""The in-process adapter of boxes: a reference between two ends, with a simulated link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Handle, Simulation, cancel
from bentpipe_reference.common.subject import Box

from bentpipe_conformance.engine.crossing import Inbox, Userless
from bentpipe_conformance.engine.lane import (
    CLIENT,
    SATELLITE_FAR,
    SATELLITE_NEAR,
    SERVER,
    SIMULATION_ERROR_S,
    Captured,
)
from bentpipe_conformance.iut.watched import Watch

CLIENT_ADDRESS, SERVER_ADDRESS = "10.78.0.1", "10.77.0.2"
"""Both are the tester's."""

Deliver = Callable[[bytes], None]


class _Stand:
    """One box, what passes its ports, and its alarm.

    Args:
        simulation: the clock.
        box: the box.
        sides: of the box's ports.
        captured: where what passes is recorded.
        watch: notices when the box dies.
    """

    def __init__(
        self, simulation: Simulation, box: Box, sides: tuple[str, str], captured: list[Captured],
        watch: Watch,
    ) -> None:  # fmt: skip
        self.leads: list[Deliver] = []
        """Where packets go that leave by each port."""
        self._simulation = simulation
        self._box = box
        self._sides = sides
        self._captured = captured
        self._watch = watch
        self._alarm: Handle | None = None

    def receive(self, port: int, packet: bytes) -> None:
        """A packet arrives."""
        self._record(port, False, packet)
        self._step(lambda now: self._box.receive(port, packet, now))

    def _step(self, action: Callable[[float], object]) -> None:
        """Let something happen at the box, then send what it has to send."""
        now = self._simulation.now
        leaving = self._watch.step(now, lambda: self._acted(action, now))
        if self._alarm is not None:
            cancel(self._alarm)
            self._alarm = None
        for port, packet in leaving or ():
            self._record(port, True, packet)
            self.leads[port](packet)
        deadline = self._box.next_deadline() if self._watch.died is None else None
        if deadline is not None:
            self._alarm = self._simulation.call_at(deadline, lambda: self._step(self._box.advance))

    def _acted(self, action: Callable[[float], object], now: float) -> Sequence[tuple[int, bytes]]:
        action(now)
        return self._box.transmit(now)

    def _record(self, port: int, outgoing: bool, packet: bytes) -> None:
        now = self._simulation.now
        self._captured.append(Captured(now, "iut", outgoing, packet, self._sides[port]))


@dataclass
class _Wire:
    """The tester's port on one side."""

    lane: BetweenLane
    side: str
    lead: Deliver

    def now(self) -> float:
        """Virtual seconds since the case began."""
        return self.lane.simulation.now

    def send(self, packet: bytes) -> None:
        """Put a packet on the wire; it arrives when everything that happens now has happened."""
        self.lane.simulation.call_after(0.0, partial(self.lead, packet))

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """Step the simulation until a packet arrives here or ``deadline`` passes."""
        return self.lane.inbox.receive_at(self.side, deadline)


class BetweenLane(Userless):
    """A lane in virtual time on which boxes stand between a client and a server.

    A pair has the satellite link in the middle, and the ends next to its boxes. A single box has
    the client next to it, and the link between itself and the server.

    Args:
        make: makes the boxes of a setup and a seed.
        setup: see :class:`~bentpipe_reference.common.subject.Subject`.
        link: the link profile; ``forward`` leads to the server.
        seed: seed of the link's random faults and of the boxes.
    """

    def __init__(
        self, make: Callable[[Any, int], Sequence[Box]], setup: Any, link: LinkProfile,
        seed: int = 0,
    ) -> None:  # fmt: skip
        self.iut_address = SERVER_ADDRESS
        self.timing_error = SIMULATION_ERROR_S
        self._make = make
        self._setup = setup
        self._link = link
        self._seed = seed
        self.begin()

    def begin(self) -> str:
        """Start a case on new boxes."""
        self.simulation = simulation = Simulation()
        self._watch = Watch()
        self._captured: list[Captured] = []
        self.inbox = Inbox(self._run)
        boxes = list(self._make(self._setup, self._seed))
        paired = len(boxes) > 1
        sides = [(CLIENT, SERVER)]
        if paired:
            sides = [(CLIENT, SATELLITE_NEAR), (SERVER, SATELLITE_FAR)]
        stands = [
            _Stand(simulation, box, names, self._captured, self._watch)
            for box, names in zip(boxes, sides, strict=True)
        ]
        near, far = stands[0], stands[-1]
        to_client, to_server = (partial(self._deliver, side) for side in (CLIENT, SERVER))
        beyond = partial(far.receive, 1) if paired else to_server
        self._ways = (
            VirtualLink(simulation, self._link.forward, beyond, self._seed),
            VirtualLink(simulation, self._link.return_, partial(near.receive, 1), self._seed + 1),
        )
        forward, back = (partial(_offer, way) for way in self._ways)
        near.leads = [to_client, forward]
        if paired:
            far.leads = [to_server, back]
        self.port = _Wire(self, CLIENT, partial(near.receive, 0))
        self.far = _Wire(self, SERVER, partial(far.receive, 0) if paired else back)
        return CLIENT_ADDRESS

    def end(self) -> list[Captured]:
        """What was captured, in time order."""
        return self._captured

    def iut_alive(self) -> str | None:
        """None, or the exception that ended a box."""
        return self._watch.died

    def close(self) -> None:
        """Nothing outside this object to take down."""

    def alter_link(self, **changes: object) -> None:
        """Change both directions of the satellite link."""
        link = self._link.altered(**changes)
        for way, direction in zip(self._ways, (link.forward, link.return_), strict=True):
            way.direction = direction

    def receive(self, deadline: float) -> tuple[float, str, bytes] | None:
        """Step the simulation until a packet arrives at either port or ``deadline`` passes."""
        return self.inbox.receive(deadline)

    def _run(self, arrived: Callable[[], bool], deadline: float) -> None:
        while not arrived():
            if not self.simulation.step(deadline):
                self.simulation.run_until(deadline)
                return

    def _deliver(self, side: str, packet: bytes) -> None:
        self.inbox.put(self.simulation.now, side, packet)


def _offer(way: VirtualLink[bytes], packet: bytes) -> None:
    way.send(packet, len(packet))
