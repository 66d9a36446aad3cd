"""Users of connections that the host opens."""

from __future__ import annotations

from bentpipe_reference.common.stream import PatternSource
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.services import Chargen
from bentpipe_reference.tcp.states import SENDS_DATA


class BoundedChargen(Chargen):
    """Sends so many octets of the test pattern and closes; reads on until the peer's FIN."""

    def __init__(self, octets: int) -> None:
        super().__init__()
        self._source = PatternSource(octets)

    def run(self, connection: Connection, now: float) -> None:
        """See :class:`Service`."""
        super().run(connection, now)
        if connection.state in SENDS_DATA and not connection.sender.fin_queued:
            connection.close(now)
