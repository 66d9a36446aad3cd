"""The standard services of a host under test: echo, discard and chargen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.stream import PatternSource

ECHO, DISCARD, CHARGEN = 7, 9, 19


class Service(Protocol):
    """An application on one connection, run after everything that happens to it."""

    def run(self, endpoint: Endpoint, now: float) -> None:
        """Read, write and close as the service does."""
        ...


class Echo:
    """Sends back what it receives (RFC 862); reads only as fast as it can write."""

    def run(self, endpoint: Endpoint, now: float) -> None:
        """See :class:`Service`."""
        while endpoint.readable and endpoint.write_room and not endpoint.sender.fin_queued:
            endpoint.write(endpoint.read(endpoint.write_room), now)
        if endpoint.peer_has_closed and not endpoint.readable:
            endpoint.close(now)


class Discard:
    """Reads and forgets (RFC 863)."""

    def run(self, endpoint: Endpoint, now: float) -> None:
        """See :class:`Service`."""
        endpoint.read()
        if endpoint.peer_has_closed:
            endpoint.close(now)


class Chargen:
    """Sends the test pattern until the peer closes (after RFC 864); forgets what it receives."""

    def __init__(self) -> None:
        self._source = PatternSource()

    def run(self, endpoint: Endpoint, now: float) -> None:
        """See :class:`Service`."""
        endpoint.read()
        sender = endpoint.sender
        if endpoint.state is not State.SYN_RECEIVED and sender.source is None:
            endpoint.attach(self._source, now)
        if endpoint.peer_has_closed and not sender.fin_queued:
            self._source.stop_at(sender.snd_max - sender.iss - 1)
            endpoint.close(now)


SERVICES: dict[int, Callable[[], Service]] = {ECHO: Echo, DISCARD: Discard, CHARGEN: Chargen}
"""What listens on which port."""
