"""Endpoints, links and the packets between them, in virtual time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.stp.codec import decode
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.packets import Packet
from bentpipe_reference.stp.setup import Setup

from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp.disturbance import Disturbance, DrawnFaults, GivenFaults, Injection, apply
from bentpipe_fuzz.stp.metering import Meter, excess, too_costly, units
from bentpipe_fuzz.stp.plan import Plan

_ROUNDS_AT_ONCE = 10_000
"""Turns of a node at one moment after which it is considered not to come to rest."""

_LOOK_EVERY = 16
"""Steps of a node between two checks of the state it keeps."""

KEPT_PACKETS = 4000
"""Of the log: the last ones."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A packet in the log.

    Attributes:
        at: seconds.
        event: ``sent``, ``lost``, ``arrives``, ``damaged`` (arrives so) or ``forged``.
        source, target: names.
        octets: of the STP packet.
    """

    at: float
    event: str
    source: str
    target: str
    octets: bytes


Delivered = Callable[[str, str, Packet, float, float], None]
"""Told of an honest packet that arrives intact: source, target, packet, when sent and when."""


class Network:
    """The nodes of a run and what is between them.

    Args:
        plan: of the run.
        given: disturbances to repeat, None to draw them.

    Attributes:
        disturbances: what has disturbed the run so far.
        log: the last packets.
        on_sent: called with every honest packet, before any fault: source, target, octets.
        on_delivered: see :data:`Delivered`.
    """

    def __init__(self, plan: Plan, given: list[Disturbance] | None = None) -> None:
        self.plan = plan
        self.simulation = Simulation()
        self.simulation.now = plan.clock
        self.nodes: dict[str, Node] = {}
        self.disturbances: list[Disturbance] = []
        self.log: deque[Seen] = deque(maxlen=KEPT_PACKETS)
        self.on_sent: Callable[[str, str, bytes], None] = _ignore
        self.on_delivered: Delivered = _ignore
        self._ordinals = dict.fromkeys(plan.links, 0)
        self._faults: dict[str, DrawnFaults | GivenFaults] = {}
        for way, link in plan.links.items():
            self._faults[way] = (
                DrawnFaults(way, link, plan.faults_until, f"{plan.mode} {plan.seed}")
                if given is None
                else GivenFaults(way, given)
            )

    @property
    def now(self) -> float:
        """Seconds of the run's clock."""
        return self.simulation.now

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.simulation.now - self.plan.clock

    def at(self, elapsed: float, action: Callable[[], None]) -> None:
        """Schedule an action ``elapsed`` seconds after the beginning."""
        self.simulation.call_at(self.plan.clock + elapsed, action)

    def send(self, source: str, target: str, octets: bytes) -> None:
        """Offer an honest packet to the link."""
        way = f"{source}>{target}"
        self.log.append(Seen(self.now, "sent", source, target, octets))
        self.on_sent(source, target, octets)
        if way not in self.plan.links:
            return  # an answer to an address that does not exist
        self._ordinals[way] += 1
        faults = self._faults[way].of(self._ordinals[way], len(octets), self.elapsed)
        self.disturbances += faults
        arriving = apply(faults, octets)
        if not arriving:
            self.log.append(Seen(self.now, "lost", source, target, octets))
        for longer, copy, intact in arriving:
            arrival = self.now + self.plan.links[way].delay + longer
            deliver = partial(self._arrive, source, target, copy, intact, self.now)
            self.simulation.call_at(arrival, deliver)

    def _arrive(self, source: str, target: str, octets: bytes, intact: bool, sent: float) -> None:
        event = "arrives" if intact else "damaged"
        self.log.append(Seen(self.now, event, source, target, octets))
        if intact:
            self.on_delivered(source, target, decode(octets), sent, self.now)
        self.nodes[target].receive(octets, source)

    def inject(self, target: str, source: str, octets: bytes) -> None:
        """A forged packet arrives now."""
        self.disturbances.append(Injection(self.now, target, source, octets.hex()))
        self.forged(target, source, octets)

    def forged(self, target: str, source: str, octets: bytes) -> None:
        """The same, when it is repeated from a record."""
        self.log.append(Seen(self.now, "forged", source, target, octets))
        self.nodes[target].receive(octets, source)


def address_of(name: str) -> tuple[Any, ...]:
    """A node's address."""
    return (name, 1)


class Node:
    """An endpoint, and who uses its connections.

    Attributes:
        endpoint: present one; a restart makes another.
        metered: whether the work for every packet is counted.
        costliest: lines per unit of the costliest packet, when metered.
    """

    def __init__(
        self,
        network: Network,
        name: str,
        setup: Setup,
        user: Callable[[Connection, Events], None],
    ) -> None:
        self.name = name
        self._setup = setup
        self.metered = False
        self.costliest = 0.0
        self._network = network
        self._user = user
        self._starts = 0
        self._steps = 0
        self._ports: set[int] = set()
        self.restart()
        network.nodes[name] = self

    def restart(self) -> None:
        """Begin with an endpoint that knows nothing."""
        self._starts += 1
        seed = f"{self.name} {self._network.plan.seed} {self._starts}"
        self.endpoint = StpEndpoint(self._setup.config, seed, parts=self._setup.parts)  # type: ignore[arg-type]
        for port in self._ports:
            self.endpoint.listen(port)
        self._alarm = Alarm(self._network.simulation, self._woken(self._starts))

    def _woken(self, start: int) -> Callable[[], None]:
        def wake() -> None:
            if start == self._starts:
                self.settle()

        return wake

    def listen(self, port: int) -> None:
        """Take calls, also after a restart."""
        self._ports.add(port)
        self.endpoint.listen(port)

    def receive(self, octets: bytes, source: str) -> None:
        """A packet arrives."""
        endpoint = self.endpoint
        if not self.metered:
            self._take(octets, source)
            self.settle()
            return
        before = units(endpoint)
        with Meter() as meter:
            self._take(octets, source)
            packets = self._transmit()
        total = max(before, units(endpoint)) + len(octets) // 4
        if too_costly(meter.lines, len(packets), total):
            raise Violation(
                "STP-SEC-004",
                f"a packet of {len(octets)} octets cost {meter.lines} lines with {total} SDs, runs "
                f"and words and {len(packets)} packets in answer",
                self._network.now,
            )
        self.costliest = max(self.costliest, meter.lines / (50 + total + 10 * len(packets)))
        self._offer(packets)
        self.settle()

    def settle(self) -> None:
        """Serve the users, send what is due and set the alarm."""
        now = self._network.now
        for _ in range(_ROUNDS_AT_ONCE):
            self._offer(self._transmit())
            eventful = self.endpoint.take_events()
            for connection, events in eventful:
                self._user(connection, events)
            deadline = self.endpoint.next_deadline()
            if not eventful and (deadline is None or deadline > now):
                break
        else:
            raise Violation("STP-SEC-003", f"the endpoint {self.name} does not come to rest", now)
        self._alarm.set(deadline)
        self._steps += 1
        if self._steps % _LOOK_EVERY == 0 and (told := excess(self.endpoint)) is not None:
            raise Violation("STP-SEC-003", f"endpoint {self.name}: {told}", now)

    def _take(self, octets: bytes, source: str) -> None:
        now = self._network.now
        try:
            self.endpoint.receive(octets, address_of(source), now)
        except Exception as error:
            raise self._crash(error) from error

    def _transmit(self) -> list[tuple[Any, bytes]]:
        try:
            return self.endpoint.transmit(self._network.now)
        except Exception as error:
            raise self._crash(error) from error

    def _crash(self, error: Exception) -> Violation:
        what = f"the endpoint {self.name} raised {type(error).__name__}: {error}"
        return Violation("STP-SEC-003", what, self._network.now)

    def _offer(self, packets: list[tuple[Any, bytes]]) -> None:
        for peer, octets in packets:
            self._network.send(self.name, peer[0], octets)


def _ignore(*_: object) -> None:
    """Do nothing."""
