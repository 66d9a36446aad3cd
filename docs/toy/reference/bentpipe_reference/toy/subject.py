"""The TOY reference as the exam sees it."""

from __future__ import annotations

import random

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.subject import Call, Drawn, Station, Subject
from bentpipe_reference.common.users import Caller
from bentpipe_reference.toy.connection import Connection
from bentpipe_reference.toy.host import ToyHost
from bentpipe_reference.toy.setup import Setup


class User(Caller):
    """A user of a connection."""

    def __init__(self, call: Call, simulation: Simulation) -> None:
        super().__init__(call)
        self._simulation = simulation

    def run(self, connection: Connection) -> None:
        """Read, write, and end as the call says."""
        connection.read(self.call.reading)
        self.go_on(connection, self._simulation.now, connection.abort)


def _draw(numbers: random.Random, _link: LinkProfile) -> Drawn:
    timeout_ms = numbers.choice((1000, 2000, 3000))
    return Drawn(Setup(timeout_ms / 1000), {"timeout_ms": timeout_ms}, "toy1")


def _call(simulation: Simulation, station: Station, host: ToyHost, remote: str, call: Call) -> None:
    def begin(_now: float) -> None:
        host.connect(remote, call.port, User(call, simulation))

    simulation.call_at(call.at, lambda: station.step(begin))
    simulation.call_at(call.ends_at, lambda: station.step(host.advance))


SUBJECT = Subject(
    ics={"timeout_ms": 2000},
    setups={"toy1": Setup()},
    variants={},
    make=lambda address, setup, seed: setup.make(address, seed),
    draw=_draw,
    call=_call,
)
