"""Many connections behind one address: demultiplexing, listeners, timers, bounds.

The packet-level core: octets, peer addresses and ``now`` in, octets, peer addresses and events out.
The cost of a step depends only on the connections that have something to do.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable

from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events, TraceSink
from bentpipe_reference.stp.idle import Arrival
from bentpipe_reference.stp.memory import Memory, Share
from bentpipe_reference.stp.packets import Begin, Flags, Packet
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.states import State, Table
from bentpipe_reference.stp.tracing import note, stray_record
from bentpipe_reference.stp.variables import Address, Identity

_V = int(Flags.V)
_FIRST_EPHEMERAL, _LAST_EPHEMERAL = 49152, 65535


class NoMemoryLeft(ValueError):
    """A call of the user's own that the bound on all receivers' memory does not permit."""


class StpEndpoint:
    """An STP endpoint without sockets.

    Args:
        config: settings of all connections.
        seed: seed of CSNs, ISSs and ephemeral ports.
        parts: the classes to make it of.
        pseudo_header: the checksum's pseudo-header towards a peer, the same in both directions;
            none in UDP.
        trace: takes the protocol events of all connections, see
            :mod:`~bentpipe_reference.stp.tracing`.
        secret: key of the cookies (STP-SEC-006), made from the seed if None; a seed that anybody
            could guess makes cookies that anybody could forge.

    Attributes:
        connections: the live connections, by peer address, peer port and local port.
        ignored: malformed packets received (STP-PF-003, STP-PF-007).
    """

    def __init__(
        self,
        config: StpConfig,
        seed: int,
        *,
        parts: Parts = TRUE_PARTS,
        pseudo_header: Callable[[Address], bytes] | None = None,
        trace: TraceSink | None = None,
        secret: bytes | None = None,
    ) -> None:
        self.config = config
        self.connections: dict[tuple[Address, int, int], Connection] = {}
        self.ignored = 0
        self._random = random.Random(seed)
        self._csns = parts.csns(self._random, config.csn)
        self._memory = Memory(config.receive_memory)
        self._cookies = parts.cookies(secret or self._random.randbytes(16), config.used_cookies)
        self._parts = parts
        self._idle = parts.idle(config, self, self._cookies, self._answer)
        self._machine = parts.make_machine(
            self._idle, parts.jar(config.kept_cookies), self._numbers
        )
        self._answers: list[Packet] = []
        self._pseudo_header = pseudo_header
        self._trace = trace
        self._ports: set[int] = set()
        self._outbox: list[tuple[Address, bytes]] = []
        self._active: dict[Connection, None] = {}
        self._eventful: dict[Connection, None] = {}
        self._alarms: dict[Connection, float] = {}
        self._timers: list[tuple[float, int, Connection]] = []
        self._order = itertools.count()  # of timers set to one time

    @property
    def table(self) -> Table:
        """The state table that applies."""
        return {State.IDLE: self._idle.cells, **self._machine.table}

    # The user's side

    def listen(self, port: int) -> None:
        """Accept calls to ``port``."""
        self._ports.add(port)

    def unlisten(self, port: int) -> None:
        """Accept no more calls to ``port``; its connections continue."""
        self._ports.discard(port)

    def connect(self, peer: Address, port: int, local_port: int | None = None) -> Connection:
        """Call ``port`` of ``peer``; the BEGIN leaves with the next :meth:`transmit`.

        If the peer has given a cookie before, the BEGIN carries the first of what is written
        before.

        Raises:
            ValueError: there is a connection from ``local_port`` to there, or no port is free.
            NoMemoryLeft: none is left for what the peer may send.
        """
        if local_port is None:
            local_port = self._free_port(peer, port)
        key = Identity(peer, port, local_port)
        if key in self.connections:
            raise ValueError(f"port {local_port} already has a connection to port {port}")
        if not self._memory.has_room(self.config):
            raise NoMemoryLeft("no memory is left for another connection")
        connection = self._make(key)
        connection.state = State.OUTGOING
        self._add(connection)
        return connection

    def take_events(self) -> list[tuple[Connection, Events]]:
        """What has happened since the last call, one entry for each connection concerned.

        A driver has to call it after every step, or entries of ended connections accumulate.
        """
        if not self._eventful:
            return []
        eventful, self._eventful = self._eventful, {}
        return [(connection, connection.take_events()) for connection in eventful]

    # Packets and time

    def receive(self, octets: bytes, peer: Address, now: float) -> None:
        """Take one STP packet from ``peer`` at ``now`` seconds; nothing in it can raise."""
        pseudo = b"" if self._pseudo_header is None else self._pseudo_header(peer)
        try:
            packet = decode(octets, pseudo)
        except MalformedPacket:
            self._ignore()
            return
        self.handle(packet, peer, now)

    def handle(self, packet: Packet, peer: Address, now: float) -> None:
        """Take a decoded packet."""
        key = (peer, packet.sport, packet.dport)
        connection = self.connections.get(key)
        if connection is not None and connection.state is State.IDLE:
            # It ended since the last :meth:`transmit`, and still has something to send.
            self._settle(connection, now)
            connection = None
        if connection is not None:
            again = connection.receive(packet, now)
            self._note_answers(packet, now)
            if connection.events is not Events.NONE:
                self._eventful[connection] = None
            if not again:
                self._active[connection] = None
                return
            if connection.state is State.IDLE:
                self._settle(connection, now)
        self._idle.receive(packet, Arrival(peer, now))
        self._note_answers(packet, now, always=key not in self.connections)

    def advance(self, now: float) -> None:
        """Run every timer that is due at ``now``."""
        timers, alarms = self._timers, self._alarms
        while timers and timers[0][0] <= now:
            time, _, connection = heapq.heappop(timers)
            if alarms.get(connection) != time:
                continue
            del alarms[connection]
            if connection.next_deadline() <= now:
                connection.advance(now)
                self._active[connection] = None
            else:
                self._set_timer(connection)

    def transmit(self, now: float) -> list[tuple[Address, bytes]]:
        """The packets to send at ``now``, in order: peer addresses and octets."""
        self.advance(now)
        while self._active:
            active, self._active = self._active, {}
            for connection in active:
                if self._is_live(connection):
                    self._settle(connection, now)
        outbox, self._outbox = self._outbox, []
        return outbox

    def next_deadline(self) -> float | None:
        """When :meth:`transmit` is to be called next, None when nothing is planned.

        A time in the past means that there is something to send now.
        """
        if self._active or self._outbox:
            return 0.0
        timers, alarms = self._timers, self._alarms
        while timers and alarms.get(timers[0][2]) != timers[0][0]:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    @property
    def short_of_memory(self) -> bool:
        """Whether more than half of the receive memory is promised."""
        return 2 * self._memory.free < self.config.receive_memory

    @property
    def crowded(self) -> bool:
        """Whether more than half of the connections, or of the receive memory, is taken."""
        return 2 * len(self.connections) > self.config.max_connections or self.short_of_memory

    # What the state idle asks

    def listens(self, port: int) -> bool:
        """Whether ``port`` accepts calls."""
        return port in self._ports

    def has_room(self, begin: Begin, arrival: Arrival) -> bool:
        """Whether connections, used cookies and promised memory permit one more connection.

        One between the same addresses and ports is replaced, and makes room (STP-CC-041).
        """
        replaced = self.connections.get(Identity(arrival.peer, begin.sport, begin.dport))
        returned = 0 if replaced is None else replaced.share.octets
        return (
            len(self.connections) - (replaced is not None) < self.config.max_connections
            and self._cookies.has_room(arrival.now)
            and self._memory.has_room(self.config, returned)
        )

    def take_call(self, begin: Begin, arrival: Arrival) -> None:
        """Open a connection by a BEGIN with a good cookie."""
        peer, now = arrival
        self._cookies.use(peer, begin.cookie, voids=bool(begin.flags & _V))
        connection = self._make(Identity(peer, begin.sport, begin.dport))
        self._machine.actions.take_call(connection, begin, now)
        self._add(connection)

    # Inside

    def _numbers(self, peer: Address) -> tuple[int, int]:
        """STP-CC-010, STP-CC-011: CSN and ISS of a new connection with ``peer``."""
        iss = self._csns.iss() if self.config.iss is None else self.config.iss
        return self._csns.for_peer(peer), iss

    def _make(self, identity: Identity) -> Connection:
        connection = self._parts.make_connection(
            self.config, self._machine, identity, *self._numbers(identity.peer),
            Share(self._memory, self.config), self._trace,
        )  # fmt: skip
        connection.touched = self._touch
        return connection

    def _add(self, connection: Connection) -> None:
        self.connections[connection.identity] = connection
        self._active[connection] = None
        if connection.events:
            self._eventful[connection] = None

    def _touch(self, connection: Connection) -> None:
        if self._is_live(connection):
            self._active[connection] = None

    def _is_live(self, connection: Connection) -> bool:
        return self.connections.get(connection.identity) is connection

    def _answer(self, peer: Address, packet: Packet) -> None:
        """Send a packet that belongs to no connection."""
        self._put(peer, packet)
        if self._trace is not None:
            self._answers.append(packet)

    def _ignore(self) -> None:
        self.ignored += 1

    def _note_answers(self, packet: Packet, now: float, *, always: bool = False) -> None:
        if self._trace is not None and (always or self._answers):
            self._trace(stray_record(packet, self._answers, now))
            self._answers = []

    def _put(self, peer: Address, packet: Packet) -> None:
        pseudo = b"" if self._pseudo_header is None else self._pseudo_header(peer)
        self._outbox.append((peer, encode(packet, pseudo)))

    def _settle(self, connection: Connection, now: float) -> None:
        """Send the packets of a connection, follow its state, set its timer."""
        peer = connection.identity.peer
        for packet in connection.transmit(now):
            self._put(peer, packet)
        if connection.events:
            self._eventful[connection] = None
        if connection.state is State.IDLE:
            self._forget(connection, now)
        else:
            self._set_timer(connection)

    def _forget(self, connection: Connection, now: float) -> None:
        note(connection, "gone", now, {})
        self._alarms.pop(connection, None)
        connection.share.give_back()
        del self.connections[connection.identity]

    def _set_timer(self, connection: Connection) -> None:
        deadline = connection.next_deadline()
        set_to = self._alarms.get(connection, math.inf)
        # A deadline that moved to later needs no new entry: the old one is checked when it expires.
        if deadline >= set_to:
            return
        self._alarms[connection] = deadline
        heapq.heappush(self._timers, (deadline, next(self._order), connection))
        if len(self._timers) > 4 * len(self._alarms) + 64:
            self._timers = [item for item in self._timers if self._alarms.get(item[2]) == item[0]]
            heapq.heapify(self._timers)

    def _free_port(self, peer: Address, port: int) -> int:
        for _ in range(64):
            local = self._random.randint(_FIRST_EPHEMERAL, _LAST_EPHEMERAL)
            if Identity(peer, port, local) not in self.connections:
                return local
        raise ValueError("no local port is free")
