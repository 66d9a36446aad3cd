"""The standard services of a host under test: echo, discard and chargen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bentpipe_reference.common.services import CHARGEN, DISCARD, ECHO, Discard, Echo
from bentpipe_reference.common.stream import PatternSource
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.states import State


class Service(Protocol):
    """An application on one connection, run after everything that happens to it."""

    def run(self, connection: Connection, now: float, /) -> None:
        """Read, write and close as the service does."""


class Chargen:
    """Sends the test pattern until the peer closes (after RFC 864); forgets what it receives."""

    def __init__(self) -> None:
        self._source = PatternSource()

    def run(self, connection: Connection, now: float) -> None:
        """See :class:`Service`."""
        connection.read()
        sender = connection.sender
        if connection.state is not State.SYN_RECEIVED and sender.source is None:
            connection.attach(self._source, now)
        if connection.peer_has_closed and not sender.fin_queued:
            self._source.stop_at(sender.snd_max - sender.iss - 1)
            connection.close(now)


SERVICES: dict[int, Callable[[], Service]] = {ECHO: Echo, DISCARD: Discard, CHARGEN: Chargen}
"""What listens on which port."""
