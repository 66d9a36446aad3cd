"""The standard services above TOY: echo, discard and chargen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from bentpipe_reference.common.services import CHARGEN, DISCARD, ECHO, Discard, Echo
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.toy.connection import Connection


class Service(Protocol):
    """An application on one connection, run after every event."""

    def run(self, connection: Connection, /) -> None:
        """Read, write and close as the service does."""


class Chargen:
    """Sends the pattern without end; closes when the peer has closed."""

    def __init__(self) -> None:
        self._offset = 0

    def run(self, connection: Connection) -> None:
        """See :class:`Service`."""
        connection.read()
        if connection.peer_has_closed:
            connection.close()
        self._offset += connection.write(pattern(self._offset, connection.write_room))


SERVICES: Mapping[int, Callable[[], Service]] = {ECHO: Echo, DISCARD: Discard, CHARGEN: Chargen}
"""What listens on which port."""
