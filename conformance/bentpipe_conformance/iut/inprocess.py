"""The in-process adapter: the reference behind a simulated link.

The reference's protocol code is found by the protocol's name; see
``bentpipe_reference.common.subject``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Handle, Simulation
from bentpipe_reference.common.subject import Host, subject_of

from bentpipe_conformance.engine.lane import SIMULATION_ERROR_S, Captured, LaneError, OpenRequest
from bentpipe_conformance.engine.suite import Suite

IUT_ADDRESS = "10.77.0.2"
TESTER_ADDRESS = "10.78.0.1"


class SimulatedLane:
    """A lane in virtual time; every case gets a new reference host on a new link.

    Args:
        make: makes a host from its address, the setup and the seed.
        setup: what the host is made from, see :class:`Subject`.
        link: the link profile.
        seed: seed of the link's random faults and of the host's initial sequence numbers.
    """

    def __init__(
        self,
        make: Callable[[str, Any, int], Host],
        setup: Any,
        link: LinkProfile,
        seed: int = 0,
    ) -> None:
        self.iut_address = IUT_ADDRESS
        self.timing_error = SIMULATION_ERROR_S
        self._setup = setup
        self._link = link
        self._seed = seed
        self._make = make
        self._reset()
        self.port = SimulatedPort(self)

    def _reset(self) -> None:
        self.simulation = Simulation()
        self.inbox: deque[tuple[float, bytes]] = deque()
        self._captured: list[Captured] = []
        self._died: str | None = None
        self._timer: Handle | None = None
        self._host = self._make(IUT_ADDRESS, self._setup, self._seed)
        self._forward: VirtualLink[bytes] = VirtualLink(
            self.simulation, self._link.forward, self._to_tester, self._seed
        )
        self._return: VirtualLink[bytes] = VirtualLink(
            self.simulation, self._link.return_, self._to_iut, self._seed + 1
        )

    def begin(self) -> str:
        """Start a case on a new host."""
        self._reset()
        return TESTER_ADDRESS

    def end(self) -> list[Captured]:
        """What was captured, in time order."""
        return self._captured

    def iut_alive(self) -> str | None:
        """None, or the exception that ended the host."""
        return self._died

    def close(self) -> None:
        """Nothing outside this object to take down."""

    def to_link(self, packet: bytes) -> None:
        """A packet from the tester enters the link."""
        self._capture("peer", False, packet)
        self._return.send(packet, len(packet))

    def _capture(self, point: Any, outgoing: bool, packet: bytes) -> None:
        self._captured.append(Captured(self.simulation.now, point, outgoing, packet))

    def _to_tester(self, packet: bytes) -> None:
        self._capture("peer", True, packet)
        self.inbox.append((self.simulation.now, packet))

    def _to_iut(self, packet: bytes) -> None:
        self._capture("iut", False, packet)
        self._drive(lambda now: self._host.receive(packet, now))

    def open(self, request: OpenRequest) -> None:
        """Have the host open a connection."""
        opener = getattr(self._host, "open", None)
        if opener is None:
            raise LaneError("the reference of this suite cannot be made to open a connection")
        self._drive(
            lambda now: opener(request.tester, request.port, request.service, now, request.udp_port)
        )

    def _drive(self, step: Callable[[float], object]) -> None:
        """Let the host take a step, then carry what it sends."""
        if self._died is not None:
            return
        now = self.simulation.now
        try:
            step(now)
            leaving = self._host.transmit(now)
            deadline = self._host.next_deadline()
        except Exception as error:  # an implementation that crashes is a finding, not our end
            self._died = f"{type(error).__name__}: {error}"
            return
        for item in leaving:
            self._capture("iut", True, item)
            self._forward.send(item, len(item))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            self._timer = self.simulation.call_at(deadline, lambda: self._drive(self._host.advance))


class SimulatedPort:
    """The tester's port: waiting steps the event queue."""

    def __init__(self, lane: SimulatedLane) -> None:
        self._lane = lane

    def now(self) -> float:
        """Virtual seconds since the case began."""
        return self._lane.simulation.now

    def send(self, packet: bytes) -> None:
        """Put a packet on the link."""
        self._lane.to_link(packet)

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """Step the simulation until a packet arrives or ``deadline`` passes."""
        lane = self._lane
        simulation = lane.simulation
        while not lane.inbox:
            following = simulation.next_time()
            if following is None or following > deadline:
                simulation.run_until(deadline)
                break
            simulation.step()
        return lane.inbox.popleft() if lane.inbox else None


def simulated_lane(suite: Suite, variant: str, link: LinkProfile, seed: int = 0) -> SimulatedLane:
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
    return SimulatedLane(subject.make, known[variant], link, seed)
