"""What users do on the connections of two reference hosts, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.states import State

from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.selftest.pair import Station

TICK_S = 0.5
"""How often a user looks at its connection when nothing happens on it."""

_CHARGEN = STANDARD_SERVICES["chargen"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a user.

    Attributes:
        at: when it begins, seconds.
        port: the service it calls.
        octets: how many it sends.
        at_once: the most it writes between two looks at the connection.
        reading: the most it reads between two looks.
        ends_at: when it closes at the latest, seconds.
        aborts: whether it then aborts instead.
    """

    at: float
    port: int
    octets: int
    at_once: int
    reading: int
    ends_at: float
    aborts: bool


def draw_calls(numbers: random.Random, until: float) -> list[Call]:
    """Up to three calls of one host."""
    calls = []
    for _ in range(numbers.choice((0, 1, 1, 2, 3))):
        at = numbers.uniform(0.0, until / 3)
        port = numbers.choice(tuple(STANDARD_SERVICES.values()))
        longest = 8.0 if port == _CHARGEN else until
        calls.append(
            Call(
                at,
                port,
                octets=numbers.choice((0, 1, 300, 5000, 60_000, 250_000)),
                at_once=numbers.choice((1, 300, 20_000, 1 << 20)),
                reading=numbers.choice((2000, 1 << 20)),
                ends_at=at + numbers.uniform(0.2, longest),
                aborts=numbers.random() < 0.15,
            )
        )
    return calls


class StpUser:
    """A user of an STP connection."""

    def __init__(self, call: Call, simulation: Simulation) -> None:
        self._call = call
        self._simulation = simulation
        self._left = call.octets

    def run(self, connection: Connection) -> None:
        """Read, write, and end as the call says."""
        call, now = self._call, self._simulation.now
        connection.read(call.reading)
        if connection.is_over or connection.has_closed:
            return
        if now >= call.ends_at and call.aborts:
            connection.abort(now)
            return
        if self._left and connection.write_room:
            self._left -= connection.write(bytes(min(self._left, call.at_once)))
        if (not self._left and call.port != _CHARGEN) or now >= call.ends_at:
            connection.close()


class TcpUser:
    """A user of a TCP connection."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._left = call.octets

    def run(self, endpoint: Endpoint, now: float) -> None:
        """Read, write, and end as the call says."""
        call = self._call
        endpoint.read(call.reading)
        if endpoint.state not in (State.ESTABLISHED, State.CLOSE_WAIT):
            return
        if now >= call.ends_at and call.aborts:
            endpoint.abort("the user has had enough", now)
            return
        if self._left and endpoint.write_room:
            self._left -= endpoint.write(bytes(min(self._left, call.at_once)), now)
        if (not self._left and call.port != _CHARGEN) or now >= call.ends_at:
            endpoint.close(now)


Caller = Callable[[Simulation, Station, Any, str, Call], None]
"""Makes a host call another, by its address, at its time."""


def stp_caller(
    simulation: Simulation, station: Station, host: StpHost, remote: str, call: Call
) -> None:
    """Let an STP host call."""

    def begin(_: float) -> None:
        user = StpUser(call, simulation)
        connection = host.connect(remote, call.port, user)

        def look(_: float) -> None:
            user.run(connection)
            if not connection.is_over:
                simulation.call_at(simulation.now + TICK_S, lambda: station.step(look))

        look(simulation.now)

    simulation.call_at(call.at, lambda: station.step(begin))


def tcp_caller(
    simulation: Simulation, station: Station, host: TcpHost, remote: str, call: Call
) -> None:
    """Let a TCP host call; its user looks at the connection when something happens on it."""

    def begin(now: float) -> None:
        host.connect(remote, call.port, TcpUser(call), now)

    simulation.call_at(call.at, lambda: station.step(begin))
