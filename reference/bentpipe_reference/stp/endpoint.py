"""Many connections behind one address: demultiplexing, listeners, timers, bounds.

The packet-level core: octets, peer addresses and ``now`` in, octets, peer addresses and events out.
The cost of a step depends only on the connections that have something to do.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable

from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.csn import PeerCache
from bentpipe_reference.stp.events import Events, TraceSink
from bentpipe_reference.stp.idle import Arrival
from bentpipe_reference.stp.packets import Begin, Packet
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.states import State, Table
from bentpipe_reference.stp.tracing import note, stray_record
from bentpipe_reference.stp.variables import Address, Identity

_FIRST_EPHEMERAL, _LAST_EPHEMERAL = 49152, 65535


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

    Attributes:
        connections: the live connections, by peer address, peer port and local port; the newest
            where several await confirmation (STP-CC-033).
        ignored: malformed packets received (STP-PF-003, STP-PF-007).
        dropped_pending: connections that made room for another one while pending.
    """

    def __init__(
        self,
        config: StpConfig,
        seed: int,
        *,
        parts: Parts = TRUE_PARTS,
        pseudo_header: Callable[[Address], bytes] | None = None,
        trace: TraceSink | None = None,
    ) -> None:
        self.config = config
        self.connections: dict[Identity, Connection] = {}
        self.ignored = 0
        self.dropped_pending = 0
        self._random = random.Random(seed)
        self._csns = parts.csns(self._random, config.csn)
        self._peers = PeerCache(config.peers_remembered)
        self._parts = parts
        self._idle = parts.idle(config, self, self._answer)
        self._machine = parts.make_machine(self._idle)
        self._answers: list[Packet] = []
        self._pseudo_header = pseudo_header
        self._trace = trace
        self._ports: set[int] = set()
        self._outbox: list[tuple[Address, bytes]] = []
        self._active: dict[Connection, None] = {}
        self._eventful: dict[Connection, None] = {}
        self._pending = parts.pending(config.max_pending, config.max_pending_beside)
        self._unproven: dict[Connection, None] = {}
        self._alarms: dict[Connection, float] = {}
        self._timers: list[tuple[float, int, Connection]] = []
        self._timers_set = 0

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

        The BEGIN carries up to 512 octets of what is written before.

        Raises:
            ValueError: there is a connection from ``local_port`` to there, or no port is free.
        """
        if local_port is None:
            local_port = self._free_port(peer, port)
        key = Identity(peer, port, local_port)
        if key in self.connections:
            raise ValueError(f"port {local_port} already has a connection to port {port}")
        connection = self._make(key)
        connection.state = State.OUTGOING
        self._add(connection)
        return connection

    def take_events(self) -> list[tuple[Connection, Events]]:
        """What has happened since the last call, one entry for each connection concerned.

        A driver has to call it after every step, or entries of ended connections accumulate.
        """
        eventful, self._eventful = self._eventful, {}
        return [(connection, connection.take_events()) for connection in eventful]

    # Packets and time

    def receive(self, octets: bytes, peer: Address, now: float) -> None:
        """Take one STP packet from ``peer`` at ``now`` seconds; nothing in it can raise."""
        pseudo = b"" if self._pseudo_header is None else self._pseudo_header(peer)
        try:
            packet = decode(octets, pseudo)
        except MalformedPacket:
            self.ignored += 1
            return
        self.handle(packet, len(octets), peer, now)

    def handle(self, packet: Packet, octets: int, peer: Address, now: float) -> None:
        """Take a decoded packet of ``octets``."""
        key = Identity(peer, packet.sport, packet.dport)
        connection = self.connections.get(key)
        while connection is not None and connection.state is State.IDLE:
            # It ended since the last :meth:`transmit`, and still has something to send.
            self._settle(connection, now)
            connection = self.connections.get(key)
        if connection is not None:
            received = octets
            if connection.state is State.INCOMING:
                owner = self._pending.owner(connection.identity, packet)
                # STP-SEC-001: a packet that belongs to none adds to no budget.
                received = 0 if owner is None else octets
                connection = owner or connection
            again = connection.receive(packet, received, now)
            self._note_answers(packet, now)
            if connection.events:
                self._eventful[connection] = None
            if connection.state is State.READY and not connection.remembered:
                self._opened(connection, now)
            if not again:
                self._active[connection] = None
                return
            self._settle(connection, now)
        self._idle.receive(packet, Arrival(peer, octets, now))
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

    # What the state idle asks

    def listens(self, port: int) -> bool:
        """Whether ``port`` accepts calls."""
        return port in self._ports

    def is_known(self, peer: Address, begin: Begin, now: float) -> bool:
        """STP-CC-003, beside no other call (STP-CC-033).

        While many connections are unproven, no peer counts as known (STP-SEC-001).
        """
        pending = Identity(peer, begin.sport, begin.dport) in self.connections
        if pending or len(self._unproven) >= self.config.max_unproven:
            return False
        return self._peers.knows_older(peer, begin.csn, now)

    def has_room(self, *, confirmed: bool) -> bool:
        """Whether the bound on connections permits one more; pending ones replace each other."""
        if confirmed:
            return len(self.connections) < self.config.max_connections
        others = len(self.connections) + self._pending.beside - len(self._pending)
        return others < self.config.max_connections

    def take_call(self, begin: Begin, arrival: Arrival, *, confirmed: bool) -> None:
        """Make a connection from a BEGIN; the oldest pending one gives way (STP-SEC-002)."""
        peer, octets, now = arrival
        key = Identity(peer, begin.sport, begin.dport)
        connection = self._make(key)
        if not confirmed:
            oldest = self._pending.in_the_way(connection.identity)
            if oldest is not None:
                self.dropped_pending += 1
                self._drop(oldest, now)
            self._pending.add(connection)
        self._unproven[connection] = None
        self._machine.actions.take_call(connection, begin, octets, now, confirmed=confirmed)
        self._add(connection)
        if confirmed:
            self._opened(connection, now)

    # Inside

    def _make(self, identity: Identity) -> Connection:
        iss = self._csns.iss() if self.config.iss is None else self.config.iss
        csn = self._csns.for_peer(identity.peer)
        connection = self._parts.make_connection(
            self.config, self._machine, identity, csn, iss, self._trace
        )
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
        found = self.connections.get(connection.identity)
        return found is connection or connection in self._pending

    def _answer(self, peer: Address, packet: Packet) -> None:
        """Send a packet that belongs to no connection."""
        self._put(peer, packet)
        if self._trace is not None:
            self._answers.append(packet)

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
        state = connection.state
        if state is not State.INCOMING:
            self._pending.discard(connection)
            if connection.proven:
                self._unproven.pop(connection, None)
        if connection.events:
            self._eventful[connection] = None
        if state is State.IDLE:
            self._forget(connection, now)
        else:
            self._set_timer(connection)

    def _opened(self, connection: Connection, now: float) -> None:
        """STP-CC-003: from now on, older BEGINs of this peer need confirmation."""
        assert connection.peer_csn is not None
        connection.remembered = True
        self._peers.confirmed(connection.identity.peer, connection.peer_csn, now)
        self._pending.discard(connection)
        for other in tuple(self._pending.between(connection.identity)):
            self._drop(other, now)
        self.connections[connection.identity] = connection

    def _drop(self, pending: Connection, now: float) -> None:
        """Send what a pending connection still has to send, and forget it."""
        self._settle(pending, now)
        if pending in self._pending:
            self._forget(pending, now)

    def _forget(self, connection: Connection, now: float) -> None:
        key = connection.identity
        note(connection, "gone", now, {})
        self._alarms.pop(connection, None)
        self._pending.discard(connection)
        self._unproven.pop(connection, None)
        if self.connections.get(key) is connection:
            del self.connections[key]
            for other in self._pending.between(key)[-1:]:
                self.connections[key] = other
        if connection.remembered:
            self._peers.ended(key.peer, now)

    def _set_timer(self, connection: Connection) -> None:
        deadline = connection.next_deadline()
        set_to = self._alarms.get(connection, math.inf)
        # A deadline that moved to later needs no new entry: the old one is checked when it expires.
        if deadline >= set_to:
            return
        self._alarms[connection] = deadline
        self._timers_set += 1
        heapq.heappush(self._timers, (deadline, self._timers_set, connection))
        if len(self._timers) > 4 * len(self._alarms) + 64:
            self._timers = [item for item in self._timers if self._alarms.get(item[2]) == item[0]]
            heapq.heapify(self._timers)

    def _free_port(self, peer: Address, port: int) -> int:
        for _ in range(64):
            local = self._random.randint(_FIRST_EPHEMERAL, _LAST_EPHEMERAL)
            if Identity(peer, port, local) not in self.connections:
                return local
        raise ValueError("no local port is free")
