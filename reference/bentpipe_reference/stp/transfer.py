"""A bulk transfer over STP between two endpoints on a link profile, in virtual time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.services import DISCARD
from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.common.transfer import Transferred
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.sender import Sender

PORT = DISCARD
"""The STP port of the receiving end."""

User = Callable[[Connection, Events, float], None]
"""Uses a connection after events, at a time in seconds."""


class Carrier(Protocol):
    """Takes packets to a station: a link, or a tap before one."""

    def send(self, item: tuple[Station, bytes], size: int) -> None:
        """Offer one packet of ``size`` octets, IP header included, now."""


class Station:
    """An endpoint in a simulation: octets from and to a link, timers, and its user.

    Args:
        simulation: the clock and event queue.
        endpoint: the endpoint.
        address: its address on the link.
        user: uses every connection.
    """

    def __init__(
        self, simulation: Simulation, endpoint: StpEndpoint, address: tuple[Any, ...], user: User
    ) -> None:
        self.endpoint = endpoint
        self.address = address
        self.link: Carrier | None = None
        self.far: Station | None = None
        self._simulation = simulation
        self._user = user
        self._alarm = Alarm(simulation, self.settle)
        self._overhead = endpoint.config.overhead

    def receive(self, octets: bytes) -> None:
        """A packet has arrived."""
        assert self.far is not None
        self.endpoint.receive(octets, self.far.address, self._simulation.now)
        self.settle()

    def settle(self) -> None:
        """Serve the user, send what is due and set the alarm."""
        now, endpoint = self._simulation.now, self.endpoint
        assert self.link is not None and self.far is not None
        eventful = endpoint.take_events()
        while True:
            for connection, events in eventful:
                self._user(connection, events, now)
            for _, octets in endpoint.transmit(now):
                self.link.send((self.far, octets), len(octets) + self._overhead)
            eventful = endpoint.take_events()
            deadline = endpoint.next_deadline()
            if not eventful and (deadline is None or deadline > now):
                break
        self._alarm.set(deadline)


class StpPath:
    """Two stations and the link between them.

    Args:
        profile: the link; the near station sends in its forward direction.
        config: settings of both endpoints.
        parts: the classes of both endpoints.
        near_user, far_user: use the connections of each.
        seed: seed of the link's faults and of the endpoints' numbers.
    """

    def __init__(
        self,
        profile: LinkProfile,
        config: StpConfig,
        near_user: User,
        far_user: User,
        *,
        parts: Parts = TRUE_PARTS,
        seed: int = 0,
        trace: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.simulation = Simulation()
        near = StpEndpoint(config, seed, parts=parts, trace=trace)
        far = StpEndpoint(config, seed + 1, parts=parts, trace=trace)
        self.near = Station(self.simulation, near, ("near", 1), near_user)
        self.far = Station(self.simulation, far, ("far", 1), far_user)
        self.forward = VirtualLink(self.simulation, profile.forward, _deliver, 2 * seed)
        self.return_ = VirtualLink(self.simulation, profile.return_, _deliver, 2 * seed + 1)
        self.near.link, self.near.far = self.forward, self.far
        self.far.link, self.far.far = self.return_, self.near
        self.far.endpoint.listen(PORT)

    def connect(self) -> Connection:
        """A connection from the near station to the far one; the BEGIN leaves with ``settle``."""
        return self.near.endpoint.connect(self.far.address, PORT)


def _deliver(item: tuple[Station, bytes]) -> None:
    station, octets = item
    station.receive(octets)


@dataclass(slots=True, kw_only=True)
class StpTransferResult(Transferred):
    """The result of a transfer; ``intact`` compares SHA-256 sums.

    Attributes:
        released: seconds until the sending user was told of success, or None.
        sent, retransmissions, polls: transmissions of SDs, retransmissions among them, and POLLs
            including SDPs.
    """

    released: float | None
    sent: int
    retransmissions: int
    polls: int


class _Bulk:
    """Sends the pattern and closes; the far side reads, hashes and closes."""

    def __init__(self, octets: int) -> None:
        self.octets = octets
        self.read = 0
        self.read_at = 0.0
        self.released: float | None = None
        self.failure: str | None = None
        self.sent_digest = hashlib.sha256()
        self.read_digest = hashlib.sha256()
        self._offset = 0

    def feed(self, connection: Connection, octets: int) -> bytes:
        count = min(octets, self.octets - self._offset)
        data = pattern(self._offset, count)
        self.sent_digest.update(data)
        self._offset += count
        if self._offset == self.octets:
            connection.close()
        return data

    def near(self, connection: Connection, events: Events, now: float) -> None:
        connection.read()
        if events & Events.ENDED:
            self.released = now
        self.failure = self.failure or connection.failure

    def far(self, connection: Connection, _: Events, now: float) -> None:
        data = connection.read()
        if data:
            self.read_digest.update(data)
            self.read += len(data)
            self.read_at = now
        if connection.peer_has_closed:
            connection.close()
        self.failure = self.failure or connection.failure


def stp_transfer(
    profile: LinkProfile,
    config: StpConfig,
    octets: int,
    *,
    parts: Parts = TRUE_PARTS,
    seed: int = 0,
    drops: Iterable[int] = (),
    return_drops: Iterable[int] = (),
    limit_s: float = 3600.0,
    trace: Callable[[dict[str, Any]], None] | None = None,
) -> StpTransferResult:
    """Send ``octets`` of the test pattern through ``profile``, close, and wait for the release.

    Args:
        profile: the link; data travels in its forward direction.
        config: settings of both endpoints.
        octets: length of the stream.
        parts: the classes of both endpoints.
        seed: seed of the link's faults and of the endpoints' numbers.
        drops: numbers of the forward packets to drop, the BEGIN being 1.
        return_drops: the same for the return direction, the first BGAK being 1.
        limit_s: virtual seconds after which the transfer is given up.
        trace: takes the protocol events of both endpoints.
    """
    bulk = _Bulk(octets)
    path = StpPath(profile, config, bulk.near, bulk.far, parts=parts, seed=seed, trace=trace)
    path.forward.drops.update(drops)
    path.return_.drops.update(return_drops)
    connection = path.connect()
    connection.attach(partial(bulk.feed, connection))
    path.near.settle()
    path.simulation.run_while(lambda: bulk.failure is None and bulk.released is None, limit_s)
    if bulk.failure is None and bulk.released is None:
        bulk.failure = f"not finished within {limit_s:g} s"
    sender: Sender = connection.outgoing.sender
    return StpTransferResult(
        octets=bulk.read,
        intact=bulk.read == octets and bulk.sent_digest.digest() == bulk.read_digest.digest(),
        seconds=bulk.read_at,
        released=bulk.released,
        sent=sender.serial,
        retransmissions=sender.retransmissions,
        polls=sender.vt_ps,
        forward=path.forward.counters,
        return_=path.return_.counters,
        failure=bulk.failure,
    )
