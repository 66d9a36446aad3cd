"""A reference host at one end of a virtual link, captured there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Handle, Simulation, cancel
from bentpipe_reference.common.subject import Host

from bentpipe_conformance.engine.lane import Captured


class Station:
    """One host, what it sends and receives, and its alarm.

    The alarm is set anew after every step, even to the same time: simultaneous events happen in
    the order they were planned, so an alarm kept as it was would change the packets.

    Args:
        simulation: the clock.
        host: the host.
        latency_s: what passes before each packet that the host has made is on its way, seconds.

    Attributes:
        captured: its packets, in time order; outgoing ones are the host's own.
    """

    def __init__(self, simulation: Simulation, host: Host, latency_s: float = 0.0) -> None:
        self.captured: list[Captured] = []
        self._simulation = simulation
        self._host = host
        self._latency_s = latency_s
        self._alarm: Handle | None = None
        self._link: VirtualLink[bytes] | None = None

    def attach(self, link: VirtualLink[bytes]) -> None:
        """Send over ``link`` from now on."""
        self._link = link

    def receive(self, packet: bytes) -> None:
        """A packet arrives."""
        self.captured.append(Captured(self._simulation.now, "iut", False, packet))
        self.step(partial(self._host.receive, packet))

    def step(self, action: Callable[[float], object]) -> None:
        """Let something happen at the host, then send what it has to send."""
        assert self._link is not None, "the station is attached first"
        now = self._simulation.now
        action(now)
        leaving = self._host.transmit(now)
        deadline = self._host.next_deadline()
        for packet in leaving:
            if self._latency_s:
                self._simulation.call_at(now + self._latency_s, partial(self._emit, packet))
            else:
                self._emit(packet)
        if self._alarm is not None:
            cancel(self._alarm)
            self._alarm = None
        if deadline is not None:
            self._alarm = self._simulation.call_at(deadline, partial(self.step, self._host.advance))

    def _emit(self, packet: bytes) -> None:
        assert self._link is not None, "the station is attached first"
        self.captured.append(Captured(self._simulation.now, "iut", True, packet))
        self._link.send(packet, len(packet))
