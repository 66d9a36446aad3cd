"""The standard services of a host under test: echo, discard, chargen and daytime."""

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


DAYTIME = 13
DAYTIME_TEXT = b"Sunday, January 1, 2040 00:00:00-UTC\r\n"


class Daytime:
    """Sends a line and ends its stream at once (after RFC 867); reads on until the peer's FIN."""

    def __init__(self) -> None:
        self._said = False

    def run(self, connection: Connection, now: float) -> None:
        """See :class:`Service`."""
        connection.read()
        if connection.state is not State.SYN_RECEIVED and not self._said:
            self._said = True
            connection.write(DAYTIME_TEXT, now)
            connection.close(now)


SERVICES: dict[int, Callable[[], Service]] = {
    ECHO: Echo,
    DISCARD: Discard,
    CHARGEN: Chargen,
    DAYTIME: Daytime,
}
"""What listens on which port."""

NAMED: dict[str, Callable[[], Service]] = {"discard": Discard, "chargen": Chargen}
"""What may run on a connection that the host opens."""
