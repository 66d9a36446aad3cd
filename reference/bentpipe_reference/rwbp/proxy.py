"""A proxy between TCP and RWBP: relays octets, and holds up whoever is too fast (section 9.1).

It takes and gives segments. Addresses stay what they are: to the source the proxy is the user, and
to the user the source. What is called on one side it calls on the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from bentpipe_reference.common.agenda import Agenda
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import CreditFrame
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.uplink import Uplink
from bentpipe_reference.tcp import parts as tcp
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_ACK, _SYN, _RST = int(Flags.ACK), int(Flags.SYN), int(Flags.RST)
_OPENING = State.SYN_SENT, State.SYN_RECEIVED


class End:
    """One of the two connections of a relay.

    Attributes:
        connection: the connection.
        relay: what it belongs to.
    """

    __slots__ = ("connection", "relay")

    def __init__(self, connection: Connection, relay: Relay) -> None:
        self.connection = connection
        self.relay = relay


class SatelliteEnd(End):
    """The one that takes turns; a turn may start a timer while nothing else happens to it.

    Attributes:
        entry: its place in the ring.
    """

    __slots__ = ("_plan", "entry")

    connection: RwbpConnection

    def __init__(
        self, connection: RwbpConnection, relay: Relay, uplink: Uplink, plan: Callable[[End], None]
    ) -> None:
        super().__init__(connection, relay)
        self.entry = uplink.scheduler.add(self)
        self._plan = plan

    def can_send(self) -> bool:
        """See :class:`bentpipe_reference.rwbp.scheduler.Flow`."""
        return self.connection.can_send()

    def next_octets(self) -> int:
        """See :class:`bentpipe_reference.rwbp.scheduler.Flow`."""
        return self.connection.next_octets()

    def serve(self, now: float) -> Segment:
        """See :class:`bentpipe_reference.rwbp.scheduler.Flow`."""
        sender = self.connection.sender
        running = sender.rto_deadline
        segment = self.connection.serve(now)
        if sender.rto_deadline != running:
            self._plan(self)
        return segment


class Relay:
    """Two connections, one of them for the other.

    Attributes:
        ground: that of the terrestrial side.
        satellite: that of the satellite's side.
    """

    ground: End
    satellite: SatelliteEnd

    def is_over(self) -> bool:
        """Whether both connections have ended."""
        ends = self.ground, self.satellite
        return all(end.connection.state is State.CLOSED for end in ends)

    def step(self, now: float) -> None:
        """Move what there is and there is room for, and relay ends and failures."""
        ground, satellite = self.ground.connection, self.satellite.connection
        self._move(ground, satellite, now)
        self._move(satellite, ground, now)

    def _move(self, source: Connection, sink: Connection, now: float) -> None:
        """From one to the other: RWBP-FC-002 for octets, RWBP-FC-009 for the end."""
        if source.failure is not None:
            if sink.state is not State.CLOSED:
                sink.abort("the connection that it relays has failed", now)
            return
        if sink.state is State.CLOSED:
            return
        while (ready := source.readable) and (room := sink.write_room):
            sink.write(source.read(min(ready, room)), now)
        if source.peer_has_closed and not source.readable and sink.state not in _OPENING:
            sink.close(now)


class Proxy:
    """A node with a terrestrial side and a satellite's side.

    Args:
        ground: TCP's setup.
        satellite: RWBP's setup, and that of the uplink.
        seed: seed of the initial sequence numbers.
        most_relays: relays at once; a SYN beyond them is ignored.

    Attributes:
        uplink: the scheduler and the IP queue of the satellite's side.
        relays: how many there are.
    """

    def __init__(
        self, ground: tcp.Setup, satellite: Setup, seed: int, *, most_relays: int = 10_000
    ) -> None:
        self.uplink = Uplink(satellite.config, satellite.parts)
        self.relays = 0
        self._setups: tuple[tcp.Setup, Setup] = ground, satellite
        self._most_relays = most_relays
        self._numbers = random.Random(seed)
        self._ends: tuple[dict[Addresses, End], dict[Addresses, End]] = {}, {}
        self._ground_out: list[Segment] = []
        self._satellite_out: list[Segment] = []
        self._agenda: Agenda[End] = Agenda()

    def receive_ground(self, segment: Segment, now: float) -> None:
        """A segment arrives from the terrestrial side."""
        self._receive(0, segment, now)

    def receive_satellite(self, segment: Segment, now: float) -> None:
        """A segment arrives from the satellite."""
        self._receive(1, segment, now)

    def receive_credit(self, frame: CreditFrame, now: float) -> None:
        """A valid frame arrives from the gateway."""
        if self.uplink.credit is not None:
            self.uplink.credit.on_frame(frame, now)
            self._leave(now)

    def transmit_ground(self) -> list[Segment]:
        """What leaves by the terrestrial side."""
        out, self._ground_out = self._ground_out, []
        return out

    def transmit_satellite(self) -> list[Segment]:
        """What leaves by the satellite's side."""
        out, self._satellite_out = self._satellite_out, []
        return out

    def next_deadline(self) -> float | None:
        """When :meth:`advance` must be called next, None when no timer runs."""
        return earliest(self._agenda.next_deadline(), self.uplink.queue.next_deadline())

    def advance(self, now: float) -> None:
        """Run every timer that is due."""
        for end in self._agenda.due(now):
            due = end.connection.next_deadline()
            if due is not None and due <= now:
                end.connection.advance(now)
                self._settle(end.relay, now)
            else:
                self._plan(end)
        self._leave(now)

    # -- relays -------------------------------------------------------------------------------

    def _receive(self, side: int, segment: Segment, now: float) -> None:
        ends = Addresses(segment.destination, segment.dport, segment.source, segment.sport)
        end = self._ends[side].get(ends)
        if end is not None:
            end.connection.receive(segment, now)
            self._settle(end.relay, now)
        elif segment.flags & (_SYN | _ACK | _RST) == _SYN:
            if self.relays < self._most_relays:
                self._call(side, ends, segment, now)
        elif (refusal := self._setups[side].parts.refuse(segment)) is not None:
            self._send(side, refusal, now)

    def _call(self, side: int, ends: Addresses, syn: Segment, now: float) -> None:
        """Accept on one side, and call on the other."""
        relay = Relay()
        ours = ends if side == 0 else ends.swapped()
        relay.ground = End(self._make(self._setups[0], ours), relay)
        connection = self._make(self._setups[1], ours.swapped())
        assert isinstance(connection, RwbpConnection)
        relay.satellite = SatelliteEnd(connection, relay, self.uplink, self._plan)
        self._ends[0][ours], self._ends[1][ours.swapped()] = relay.ground, relay.satellite
        self.relays += 1
        both = (relay.ground.connection, connection)
        both[side].accept(syn, now)
        both[1 - side].open(now)
        self._settle(relay, now)

    def _make(self, setup: tcp.Setup | Setup, ends: Addresses) -> Connection:
        return setup.parts.connection(
            setup.config, ends, self._numbers.getrandbits(32), setup.parts,
            timestamp_offset=self._numbers.getrandbits(32),
        )  # fmt: skip

    def _settle(self, relay: Relay, now: float) -> None:
        """Relay, and collect what both connections send."""
        relay.step(now)
        uplink, satellite = self.uplink, relay.satellite
        if uplink.scheduler.wake(satellite.entry):
            self._leave(now)
        at_once = satellite.connection.transmit_unscheduled(now)
        for segment in at_once:
            uplink.queue.put(segment)
        if uplink.scheduler.wake(satellite.entry) or at_once:
            self._leave(now)
        self._ground_out += relay.ground.connection.transmit(now)
        if relay.is_over():
            self._forget(relay)
        else:
            self._plan(relay.ground)
            self._plan(satellite)

    def _forget(self, relay: Relay) -> None:
        self.relays -= 1
        for end, ends in zip((relay.ground, relay.satellite), self._ends, strict=True):
            self._agenda.cancel(end)
            del ends[end.connection.addresses]
        self.uplink.scheduler.remove(relay.satellite.entry)

    def _send(self, side: int, segment: Segment, now: float) -> None:
        """Send what belongs to no connection."""
        if side == 0:
            self._ground_out.append(segment)
        elif self.uplink.queue.has_room():
            self.uplink.queue.put(segment)
            self._leave(now)

    def _leave(self, now: float) -> None:
        self._satellite_out += self.uplink.send(now)

    def _plan(self, end: End) -> None:
        """Look at a connection when its next timer is due."""
        self._agenda.plan(end, end.connection.next_deadline())
