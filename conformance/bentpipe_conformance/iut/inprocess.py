"""The in-process adapter: the reference behind a simulated link.

The reference's protocol code is found by the protocol's name; see
``bentpipe_reference.common.subject``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.subject import Host, Subject, subject_of

from bentpipe_conformance.engine.lane import (
    LARGEST_PACKET,
    SIMULATION_ERROR_S,
    Captured,
    LaneError,
    OpenRequest,
)  # fmt: skip
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.iut.between import BetweenLane
from bentpipe_conformance.iut.station import Station
from bentpipe_conformance.iut.watched import Watch

IUT_ADDRESS = "10.77.0.2"
TESTER_ADDRESS = "10.78.0.1"


class _MortalStation(Station):
    """A station that survives its host: a crash of the implementation is a finding."""

    def __init__(self, simulation: Simulation, host: Host, latency_s: float) -> None:
        super().__init__(simulation, host, latency_s)
        self.watch = Watch()

    def step(self, action: Callable[[float], object]) -> None:
        """Let something happen at the host, unless it has ended."""
        self.watch.step(self._simulation.now, partial(super().step, action))


class SimulatedLane:
    """A lane in virtual time; every case gets a new reference host on a new link.

    Args:
        make: makes a host from its address, the setup and the seed.
        setup: what the host is made from, see :class:`Subject`.
        link: the link profile.
        seed: seed of the link's random faults and of the host's initial sequence numbers.
        latency_s: see :class:`Station`.
    """

    def __init__(
        self, make: Callable[[str, Any, int], Host], setup: Any, link: LinkProfile, seed: int = 0,
        latency_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.iut_address = IUT_ADDRESS
        self.timing_error = SIMULATION_ERROR_S
        self._make = make
        self._setup = setup
        self._link = link
        self._seed = seed
        self._latency_s = latency_s
        self._varied = 0
        self.port = SimulatedPort()
        self._simulation = Simulation()
        self.begin()

    def vary(self, number: int) -> None:
        """Give the hosts of the next cases other initial sequence numbers, the same for a number.

        Numbers that are always the same never wrap where others would.
        """
        self._varied = number

    def begin(self) -> str:
        """Start a case on a new host."""
        self._simulation.abandon()
        self._simulation = simulation = Simulation()
        self._host = self._make(IUT_ADDRESS, self._setup, self._seed + self._varied)
        self._station = _MortalStation(simulation, self._host, self._latency_s)
        station, link = self._station, self._link
        towards_iut = VirtualLink(simulation, link.return_, station.receive, self._seed + 1)
        self.port.begin(simulation, station.captured, towards_iut)
        station.attach(VirtualLink(simulation, link.forward, self.port.deliver, self._seed))
        return TESTER_ADDRESS

    def end(self) -> list[Captured]:
        """What was captured, in time order."""
        return self._station.captured

    def iut_alive(self) -> str | None:
        """None, or the exception that ended the host."""
        return self._station.watch.died

    @property
    def host(self) -> Host:
        """The host of the case, for whoever measures it."""
        return self._host

    def close(self) -> None:
        """Nothing outside this object to take down."""

    def open(self, request: OpenRequest) -> None:
        """Have the host open a connection."""
        opener = getattr(self._host, "open", None)
        if opener is None:
            raise LaneError("the reference of this suite cannot be made to open a connection")
        self._station.step(
            lambda now: opener(
                request.tester, request.port, request.service, now, request.udp_port, request.octets
            )
        )

    def abort(self) -> None:
        """Have the host's user abort what it was made to open."""
        aborter = getattr(self._host, "abort", None)
        if aborter is None:
            raise LaneError("the user of this suite's reference cannot be made to abort")
        self._station.step(aborter)


class SimulatedPort:
    """The tester's port, the same one in all cases: waiting steps the event queue."""

    def begin(
        self, simulation: Simulation, captured: list[Captured], link: VirtualLink[bytes]
    ) -> None:
        """Start a case.

        Args:
            simulation: the clock.
            captured: where what passes here is recorded.
            link: the link towards the implementation.
        """
        self._simulation = simulation
        self._captured = captured
        self._link = link
        self._inbox: deque[tuple[float, bytes]] = deque()

    def now(self) -> float:
        """Virtual seconds since the case began."""
        return self._simulation.now

    def send(self, packet: bytes) -> None:
        """Put a packet on the link.

        Raises:
            LaneError: it is too large for a test bed, where the case could not be judged.
        """
        if len(packet) > LARGEST_PACKET:
            raise LaneError(
                f"a packet of {len(packet)} octets is sent, of {LARGEST_PACKET} at most"
            )
        self._captured.append(Captured(self._simulation.now, "peer", False, packet))
        self._link.send(packet, len(packet))

    def deliver(self, packet: bytes) -> None:
        """A packet leaves the link."""
        now = self._simulation.now
        self._captured.append(Captured(now, "peer", True, packet))
        self._inbox.append((now, packet))

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """Step the simulation until a packet arrives or ``deadline`` passes."""
        inbox, simulation = self._inbox, self._simulation
        while not inbox:
            if not simulation.step(deadline):
                simulation.run_until(deadline)
                return None
        return inbox.popleft()


def lane_of(
    subject: Subject, setup: Any, link: LinkProfile, seed: int = 0, latency_s: float = 0.0
) -> SimulatedLane | BetweenLane:
    """A lane with a reference as it is set up."""
    if subject.boxes is not None:
        return BetweenLane(subject.boxes, setup, link, seed)
    return SimulatedLane(subject.make, setup, link, seed, latency_s)


def simulated_lane(
    suite: Suite, variant: str, link: LinkProfile, seed: int = 0
) -> SimulatedLane | BetweenLane:
    """A lane with the true reference of a suite.

    Args:
        suite: the suite.
        variant: which of its setups, by profile or by the ``variant`` of a description.
        link: the link profile.
        seed: see :class:`SimulatedLane`.

    Raises:
        LaneError: there is no such variant.
    """
    subject = subject_of(suite.folder)
    known = {**subject.variants, **subject.setups}
    if variant not in known:
        raise LaneError(f"the reference has no variant {variant!r}; it has {', '.join(known)}")
    return lane_of(subject, known[variant], link, seed)
