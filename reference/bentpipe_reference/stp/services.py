"""The standard services above STP: echo, discard and chargen (STP/1 section 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from bentpipe_reference.common.services import CHARGEN, DISCARD, ECHO, Discard
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.stp.connection import Connection


class Service(Protocol):
    """An application on one connection, run after every event."""

    def run(self, connection: Connection) -> None:
        """Read, write and close as the service does."""


class Echo:
    """Returns what it receives, reading as fast as it can write; closes after the FIN."""

    def run(self, connection: Connection) -> None:
        """See :class:`Service`."""
        while connection.readable and connection.write_room:
            connection.write(connection.read(connection.write_room))
        if connection.readable and not connection.is_over:
            connection.ask_for_room()
        elif connection.peer_has_closed:
            connection.close()


class Chargen:
    """Sends the pattern of section 11 without end; closes after the peer's FIN.

    Args:
        octets: after which it closes as well, None for never.
    """

    def __init__(self, octets: int | None = None) -> None:
        self._octets = octets
        self._offset: int | None = None

    def run(self, connection: Connection) -> None:
        """See :class:`Service`."""
        connection.read()
        if connection.peer_has_closed:
            connection.close()
        elif self._offset is None and not connection.is_over:
            self._offset = 0
            connection.attach(partial(self._next, connection))

    def _next(self, connection: Connection, octets: int) -> bytes:
        offset = self._offset or 0
        if self._octets is not None and offset + octets >= self._octets:
            octets = self._octets - offset
            connection.close()
        self._offset = offset + octets
        return pattern(offset, octets)


SERVICES: Mapping[int, Callable[[], Service]] = {ECHO: Echo, DISCARD: Discard, CHARGEN: Chargen}
"""What listens on which port."""

NAMED: Mapping[str, Callable[[], Service]] = {"echo": Echo, "discard": Discard, "chargen": Chargen}
"""The same by name."""
