"""Connections in state 3; several may be pending between the same addresses and ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.packets import Packet
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Identity


class PendingCalls:
    """Calls pending confirmation, the oldest first (STP-CC-033, STP-SEC-002).

    Args:
        bound: how many there may be.
        bound_beside: how many of them between the same addresses and ports.
    """

    def __init__(self, bound: int, bound_beside: int) -> None:
        self._bound = bound
        self._bound_beside = bound_beside
        self._all: dict[Connection, None] = {}
        self._pairs: dict[Identity, list[Connection]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._all)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._all

    @property
    def beside(self) -> int:
        """Those that are not the only one, or the newest, between their addresses and ports."""
        return len(self._all) - len(self._pairs)

    def between(self, identity: Identity) -> Sequence[Connection]:
        """Those between the same addresses and ports."""
        return self._pairs.get(identity, ())

    def owner(self, identity: Identity, packet: Packet) -> Connection | None:
        """Section 5.2: the newest call to which a packet belongs."""
        # One that has expired stays here until the endpoint has settled it.
        for call in reversed(self.between(identity)):
            if call.state is State.INCOMING and call.machine.guards.owns(call, packet):
                return call
        return None

    def in_the_way(self, identity: Identity) -> Connection | None:
        """STP-SEC-002: the call that has to give way to a new one, None if there is room."""
        beside = self.between(identity)
        if len(beside) >= self._bound_beside:
            return beside[0]
        return next(iter(self._all)) if len(self._all) >= self._bound else None

    def add(self, connection: Connection) -> None:
        """Add a pending call."""
        self._all[connection] = None
        self._pairs.setdefault(connection.identity, []).append(connection)

    def discard(self, connection: Connection) -> None:
        """Remove a call if it is pending."""
        if connection not in self._all:
            return
        del self._all[connection]
        beside = self._pairs[connection.identity]
        beside.remove(connection)
        if not beside:
            del self._pairs[connection.identity]
