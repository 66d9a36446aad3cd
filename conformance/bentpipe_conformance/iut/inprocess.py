"""The in-process adapter: the reference behind a simulated link.

The only place of this room that sees the reference's protocol code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Handle, Simulation
from bentpipe_reference.tcp.config import VARIANTS, EndpointConfig
from bentpipe_reference.tcp.host import TcpHost

from bentpipe_conformance.engine.encapsulation import DEFAULT_UDP_PORT
from bentpipe_conformance.engine.lane import SIMULATION_ERROR_S, Captured, LaneError, OpenRequest
from bentpipe_conformance.engine.suite import Suite

IUT_ADDRESS = "10.77.0.2"
TESTER_ADDRESS = "10.78.0.1"


class Host(Protocol):
    """A reference with the standard services, as the simulation drives it."""

    def receive(self, packet: bytes, now: float) -> None:
        """Take one IPv4 packet."""
        ...

    def advance(self, now: float) -> None:
        """Let timers expire."""
        ...

    def transmit(self, now: float) -> Sequence[bytes]:
        """The IPv4 packets to send now."""
        ...

    def next_deadline(self) -> float | None:
        """When the next timer expires, None when none runs."""
        ...


class SimulatedLane:
    """A lane in virtual time; every case gets a new reference host on a new link.

    Args:
        config: configuration of the reference.
        link: the link profile.
        seed: seed of the link's random faults and of the host's initial sequence numbers.
        host: makes a host from its address, the configuration and the seed.
    """

    def __init__(
        self,
        config: Any,
        link: LinkProfile,
        seed: int = 0,
        host: Callable[[str, Any, int], Host] = TcpHost,
    ) -> None:
        self.iut_address = IUT_ADDRESS
        self.timing_error = SIMULATION_ERROR_S
        self._config = config
        self._link = link
        self._seed = seed
        self._make_host = host
        self._reset()
        self.port = SimulatedPort(self)

    def _reset(self) -> None:
        self.simulation = Simulation()
        self.inbox: deque[tuple[float, bytes]] = deque()
        self._captured: list[Captured] = []
        self._died: str | None = None
        self._timer: Handle | None = None
        self._host = self._make_host(IUT_ADDRESS, self._config, self._seed)
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


REFERENCES: Mapping[str, EndpointConfig] = {
    "rfc": EndpointConfig(variant="sack-newreno-rfc", dsack=True),
    "hk99": EndpointConfig(variant="sack-newreno-hk99", timestamps=True),
}
"""The true reference of each profile."""


def reference_lane(suite: Suite, variant: str, link: LinkProfile, seed: int) -> SimulatedLane:
    """A lane with the reference of a suite.

    Args:
        suite: the suite.
        variant: for TCP the recovery variant (a name of ``tcp.config.Variant``), for STP a profile.
        link: the link profile.
        seed: see :class:`SimulatedLane`.

    Raises:
        LaneError: there is no such variant.
    """
    if suite.name != "snr":
        return stp_lane(variant, None, link, seed)
    known = {config.variant: config for config in REFERENCES.values()}
    if variant in known:
        return SimulatedLane(known[variant], link, seed)
    chosen = next((name for name in VARIANTS if name == variant), None)
    if chosen is None:
        raise LaneError(f"the reference has no variant {variant!r}; it has {', '.join(VARIANTS)}")
    return SimulatedLane(EndpointConfig(variant=chosen), link, seed)


def stp_lane(
    profile: str, configure: Callable[[Any], Any] | None, link: LinkProfile, seed: int
) -> SimulatedLane:
    """A lane with the STP reference of a profile; ``configure`` makes a mutant of it.

    Raises:
        LaneError: there is no such profile.
    """
    if profile != "stp1":
        raise LaneError(f"the STP reference has no profile {profile!r}; it has stp1")
    # Here, so that judging TCP does not load it.
    from bentpipe_reference.stp.config import StpConfig
    from bentpipe_reference.stp.host import StpHost

    config = StpConfig(udp_port=DEFAULT_UDP_PORT)
    if configure is not None:
        config = configure(config)
    return SimulatedLane(config, link, seed, getattr(config, "host_class", StpHost))
