"""Steps that the cases share."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.tcp.connection import Connection

PATIENCE_S = 70.0
"""Longer than any timer of the specification."""

PAUSE_S = 0.3
"""Longer than the acknowledgment timer."""

SENDS, RECEIVES = 9, 19
"""Ports of the tester: to the first the implementation sends, from the second it receives."""


def lose_first(connection: Connection, lost: int = 1) -> None:
    """Wait for a round, the first segments of which are lost.

    Raises:
        NotReached: the round has no others.
    """
    if connection.await_round() <= lost:
        raise NotReached(f"there were no more than {lost} segments in a round")
    for _ in range(lost):
        connection.inbox.popleft()


def make_room(connection: Connection, pause: float | None = None) -> None:
    """Acknowledge what has arrived; wait until what then leaves has come, and for a ``pause``."""
    for segment in list(connection.inbox):
        if segment.has_data:
            connection.hold(segment)
    connection.inbox.clear()
    connection.ack(pause=0.0 if pause is None else connection.rtt + pause)


def lose_until(connection: Connection, times: int) -> None:
    """Lose everything until the first segment outstanding has left ``times`` times more.

    Raises:
        NotReached: the timeouts did not come.
    """
    first = connection.delivered
    for count in range(times):
        connection.expect(
            lambda segment: segment.start == first, within=PATIENCE_S,
            what=f"copy {count + 1} of offset {first}",
        )  # fmt: skip


def receive_octets(connection: Connection, octets: int, **how: Any) -> None:
    """Be an ordinary receiver until so many octets are delivered, see :meth:`Connection.serve`."""
    connection.serve(lambda: connection.delivered >= octets, **how)


def await_silence(connection: Connection) -> None:
    """Have something arrive after a pause, so that the captures show what was not answered."""
    connection.wait(PAUSE_S)
    connection.ack()
    connection.wait(connection.rtt + PAUSE_S)
