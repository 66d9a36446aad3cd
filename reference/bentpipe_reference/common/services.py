"""The standard services of a host under test: their ports, and what they do on any stream."""

from __future__ import annotations

from typing import Any, Protocol

ECHO, DISCARD, CHARGEN = 7, 9, 19


class Stream(Protocol):
    """One connection as its user sees it; ``now`` is the time, for a protocol that asks for it."""

    @property
    def readable(self) -> int:
        """Octets that :meth:`read` would return now."""

    @property
    def write_room(self) -> int:
        """Octets that :meth:`write` would take now."""

    @property
    def peer_has_closed(self) -> bool:
        """Whether the peer's stream has ended."""

    def read(self, octets: int | None = None) -> bytes:
        """Received octets in order, at most ``octets``; empty when there are none."""

    def write(self, data: bytes, *now: Any, **_: Any) -> int:
        """Queue octets to send; return how many were taken."""

    def close(self, *now: Any, **_: Any) -> None:
        """End our stream after everything queued."""


class Echo:
    """Sends back what it receives (RFC 862); reads only as fast as it can write."""

    def run(self, connection: Stream, *now: float) -> None:
        """Do what there is to do after something has happened on the connection."""
        while connection.readable and connection.write_room:
            connection.write(connection.read(connection.write_room), *now)
        if connection.peer_has_closed and not connection.readable:
            connection.close(*now)


class Discard:
    """Reads and forgets (RFC 863)."""

    def run(self, connection: Stream, *now: float) -> None:
        """Do what there is to do after something has happened on the connection."""
        connection.read()
        if connection.peer_has_closed:
            connection.close(*now)
