"""Two reference hosts on a link in virtual time, each captured at its own side."""

from __future__ import annotations

from collections.abc import Callable

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Handle, Simulation
from bentpipe_reference.common.subject import Host

from bentpipe_conformance.engine.lane import Captured


class Station:
    """One host, what it sends and hears, and its alarm.

    Attributes:
        captured: its packets, in time order; outgoing ones are the host's own.
    """

    def __init__(self, simulation: Simulation, host: Host) -> None:
        self.captured: list[Captured] = []
        self._simulation = simulation
        self._host = host
        self._alarm: Handle | None = None
        self._link: VirtualLink[bytes] | None = None

    def attach(self, link: VirtualLink[bytes]) -> None:
        """Send over ``link`` from now on."""
        self._link = link

    def hear(self, packet: bytes) -> None:
        """A packet arrives."""
        self.captured.append(Captured(self._simulation.now, "iut", False, packet))
        self.step(lambda now: self._host.receive(packet, now))

    def step(self, action: Callable[[float], object]) -> None:
        """Let something happen at the host, and send what it then sends."""
        assert self._link is not None, "the station is attached first"
        now = self._simulation.now
        action(now)
        for packet in self._host.transmit(now):
            self.captured.append(Captured(now, "iut", True, packet))
            self._link.send(packet, len(packet))
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        deadline = self._host.next_deadline()
        if deadline is not None:
            self._alarm = self._simulation.call_at(
                max(now, deadline), lambda: self.step(self._host.advance)
            )


def pair(
    simulation: Simulation, hosts: tuple[Host, Host], link: LinkProfile, seed: int
) -> tuple[Station, Station]:
    """Stations for two hosts; the first sends in the link's forward direction."""
    first, second = (Station(simulation, host) for host in hosts)
    first.attach(VirtualLink(simulation, link.forward, second.hear, seed))
    second.attach(VirtualLink(simulation, link.return_, first.hear, seed + 1))
    return first, second
