"""Traces of successive STP connections over the virtual link, ready for ``bentpipe trace-check``.

One client calls one server again and again, from one port. Users close or abort at random, the
server may restart and forget, old BEGINs come back, and forged ones arrive.

By hand: ``python -m bentpipe_reference.stp.sessions --calls 4 --restarts 1 > session.ndjson``.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.common.tracing import EventTrace
from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.packets import Begin, Type
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.sequence import CSN_MASK
from bentpipe_reference.stp.tracing import packet_values
from bentpipe_reference.stp.transfer import PORT, Carrier, Station, StpPath

CLIENT_PORT = 50000
_CREDIT = 32
_SD = 512
_PAUSE_S = 3.0
"""Seconds between two calls, on average; a connection takes about one."""


@dataclass(frozen=True, slots=True)
class Session:
    """What happens in a session.

    Attributes:
        calls: connections that the client opens, one after the other.
        loss: probability of loss and of reordering, in either direction; half of it of copies.
        restarts: times the server forgets everything.
        aborts: probability that a user aborts a connection, for each end.
        replays: old BEGINs that come back.
        forgeries: BEGINs that are forged.
        most: the most SDs that a user writes on a connection.
    """

    calls: int = 3
    loss: float = 0.1
    restarts: int = 0
    aborts: float = 0.2
    replays: int = 2
    forgeries: int = 1
    most: int = 6


class _Tap:
    """Remembers the BEGINs that a station sends."""

    def __init__(self, link: Carrier) -> None:
        self._link = link
        self.begins: list[bytes] = []

    def send(self, item: tuple[Station, bytes], size: int) -> None:
        if decode(item[1]).type is Type.BEGIN and item[1] not in self.begins:
            self.begins.append(item[1])
        self._link.send(item, size)


class _Play:
    """A session in progress."""

    def __init__(
        self, session: Session, config: StpConfig, server: StpConfig, parts: Parts, seed: int,
        trace: EventTrace,
    ) -> None:  # fmt: skip
        self._session, self._trace = session, trace
        self._server, self._parts = server, parts
        self._random = random.Random(seed)
        self._lives = 0
        faults = Direction(
            10_000_000, 0.1, 50, loss_probability=session.loss,
            reorder_probability=session.loss, reorder_delay_s=0.15,
            duplicate_probability=session.loss / 2,
        )  # fmt: skip
        self.path = StpPath(
            LinkProfile("session", "", "", faults, faults), config, self._use, self._use, seed=seed
        )
        self.tap = _Tap(self.path.forward)
        self.path.near.link = self.tap
        self.path.near.endpoint = StpEndpoint(
            config, seed, parts=parts, trace=partial(self._add, "client")
        )
        self._start(seed + 1)

    def _add(self, at: str, event: dict[str, Any]) -> None:
        self._trace.add({"at": at, **event})

    def _start(self, seed: int) -> None:
        """Start a server that remembers nothing."""
        sink: Callable[[dict[str, Any]], None] = partial(self._add, "server")
        self.path.far.endpoint = StpEndpoint(self._server, seed, parts=self._parts, trace=sink)
        self.path.far.endpoint.listen(PORT)
        self._lives += 1
        self._add("server", {"event": "start", "time": round(self.path.simulation.now, 9)})

    def _use(self, connection: Connection, _events: Events, _now: float) -> None:
        """Write all data at once, read what arrives, close or abort."""
        if connection.user is None:
            connection.user = pattern(0, self._random.randint(0, self._session.most * _SD))
            if self._random.random() < self._session.aborts:
                delay = self._random.uniform(0.0, 1.5)
                self.path.simulation.call_after(delay, partial(self._abort, connection))
        connection.read()
        if not connection.is_over and not connection.has_closed:
            connection.user = connection.user[connection.write(connection.user) :]
            if not connection.user:
                connection.close()

    def _abort(self, connection: Connection) -> None:
        for station in (self.path.near, self.path.far):
            alive = connection in station.endpoint.connections.values()
            if alive and not connection.is_over:
                connection.abort(self.path.simulation.now)
                station.settle()

    def call(self) -> None:
        """The client calls, as soon as its port is free."""
        near, simulation = self.path.near, self.path.simulation
        try:
            connection = near.endpoint.connect(self.path.far.address, PORT, CLIENT_PORT)
        except ValueError:
            simulation.call_after(1.0, self.call)
            return
        self._use(connection, Events.NONE, simulation.now)
        near.settle()

    def restart(self) -> None:
        """The server loses all connections."""
        self._start(1000 * self._lives + self._random.randint(0, 999))

    def replay(self) -> None:
        """An old BEGIN comes back."""
        if self.tap.begins:
            self.path.far.receive(self._random.choice(self.tap.begins))

    def forge(self) -> None:
        """A BEGIN with another CSN, near those of the client."""
        if not self.tap.begins:
            return
        last = decode(self.tap.begins[-1])
        assert isinstance(last, Begin)
        csn = last.csn + self._random.choice((-100, -1, 1, 1000)) & CSN_MASK
        forged = replace(last, csn=csn, tag=csn & 0xFFFF)
        self._add("client", {"event": "forged", **packet_values(forged)})
        self.path.far.receive(encode(forged, b""))

    def run(self, limit_s: float) -> None:
        """Play it to the end."""
        session, simulation, numbers = self._session, self.path.simulation, self._random
        span = _PAUSE_S * session.calls
        for at in range(session.calls):
            simulation.call_at(_PAUSE_S * at + numbers.uniform(0.0, _PAUSE_S / 2), self.call)
        for action, times in (
            (self.restart, session.restarts),
            (self.replay, session.replays),
            (self.forge, session.forgeries),
        ):
            for _ in range(times):
                simulation.call_at(numbers.uniform(0.3, span), action)
        simulation.run_while(lambda: True, limit_s)
        self._add("client", {"event": "stop"})


def record_session(
    session: Session,
    config: StpConfig | None = None,
    *,
    server: StpConfig | None = None,
    parts: Parts = TRUE_PARTS,
    seed: int = 0,
    limit_s: float = 150.0,
) -> EventTrace:
    """Play a session in virtual time and collect the events of both endpoints.

    The first event, ``begin``, has ``protocol`` (``stp-conn``) and ``profile`` (``stp1e2``). Every
    other one has ``at``, ``client`` or ``server``, and is one of
    :mod:`~bentpipe_reference.stp.tracing`, or ``start`` (a server that knows nothing), ``forged``
    (a packet that neither endpoint sent) or, at the end, ``stop``.

    Args:
        session: what happens.
        config: settings of both endpoints; a credit of 32 SDs if omitted.
        server: those of the server, if they differ.
        parts: the classes of both endpoints.
        seed: seed of everything random.
        limit_s: virtual seconds after which it ends.
    """
    trace = EventTrace({"event": "begin", "protocol": "stp-conn", "profile": "stp1e2"})
    settings = config or StpConfig(credit=_CREDIT)
    _Play(session, settings, server or settings, parts, seed, trace).run(limit_s)
    return trace


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the trace of one session to the standard output; 0, or 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m bentpipe_reference.stp.sessions",
        description="Record successive STP connections over a faulty virtual link.",
    )
    usual = Session()
    parser.add_argument("--calls", type=_count, default=usual.calls)
    parser.add_argument("--loss", type=_share, default=usual.loss)
    parser.add_argument("--restarts", type=_count, default=usual.restarts)
    parser.add_argument("--aborts", type=_share, default=usual.aborts)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    session = Session(given.calls, given.loss, given.restarts, given.aborts)
    sys.stdout.write(record_session(session, seed=given.seed).lines())
    return 0


def _count(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 20:
        raise ValueError(text)
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0.0 <= number <= 0.9:
        raise ValueError(text)
    return number


if __name__ == "__main__":
    sys.exit(main())
