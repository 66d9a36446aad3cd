"""Which connections a crowded server gives up: those of peers that are idle, or drip.

Only when more than half of its connections, or of its receive memory, is taken, a server ends those
that have carried the least, with reason 5 (STP-SEC-007). A connection stays as long as it carries
`LEAST` octets of user data, in both directions together, in every `SPAN_S` seconds; and when nobody
else wants its place, however idle it is.
"""

from __future__ import annotations

from collections.abc import Callable

from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.packets import Reason

LEAST = 1024
"""Octets of user data that keep a connection for another span."""
SPAN_S = 60.0
EVERY_S = 10.0
"""Seconds between two looks, while the server is crowded."""

Wake = Callable[[float, Callable[[], None]], object]
"""Calls a function at a time."""


class Shedding:
    """Looks after the connections of one endpoint.

    Args:
        endpoint: whose.
        clock: seconds.
        call_at: calls a function at a time of this clock.
    """

    def __init__(self, endpoint: StpEndpoint, clock: Callable[[], float], call_at: Wake) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._call_at = call_at
        self._looking = False
        self._since: dict[Connection, tuple[float, int]] = {}

    def accepted(self) -> None:
        """A connection was accepted: begin to look if there are many by now."""
        if not self._looking and self._endpoint.crowded:
            self._look()

    def _look(self) -> None:
        """Note who has carried something, end who has not, and look again later."""
        now = self._clock()
        open_now = [item for item in self._endpoint.connections.values() if not item.is_over]
        since = {}
        for connection in open_now:
            octets = carried(connection)
            began, before = self._since.get(connection, (now, octets))
            since[connection] = (began, before) if octets - before < LEAST else (now, octets)
        self._since = since
        stalled = [item for item in open_now if now - since[item][0] >= SPAN_S]
        # Those that are ended keep their place until their peers agree.
        most = self._endpoint.config.max_connections // 2
        ended = max(len(open_now) - most, int(self._endpoint.short_of_memory))
        for connection in sorted(stalled, key=lambda item: since[item][0])[:ended]:
            connection.abort(now, Reason.RESOURCES)
        self._looking = self._endpoint.crowded
        if self._looking:
            self._call_at(now + EVERY_S, self._look)


def carried(connection: Connection) -> int:
    """Octets of user data that a connection has carried, both ways."""
    receiver = connection.receiver
    return connection.acknowledged_octets + (0 if receiver is None else receiver.delivered)
