"""What is done on a connection that has just been opened, so that it shows what was agreed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.protocols.rwbp.cases.steps import PAUSE_S
from bentpipe_conformance.protocols.tcp.codec import ACK, CWR, ECE, FIN, PSH, Tcp
from bentpipe_conformance.protocols.tcp.connection import Connection, Segment
from bentpipe_conformance.protocols.tcp.crafting import craft

UNIT = 500
"""Octets of a segment of the tester's."""


MOST = 40_000
"""Octets that show an ordinary transfer."""

LARGEST_FILLED = 1 << 20
"""Octets of the largest window that a case fills."""


def send_crafted(connection: Connection, segment: Tcp, reserved: int) -> None:
    """Send a SYN or SYN-ACK, with bits set behind its data offset."""
    connection.peer.send(craft(segment, raw=connection.appended, reserved=reserved))


def receive_some(connection: Connection) -> None:
    """Be an ordinary receiver for a while, which acknowledges every second segment."""
    begun = connection.delivered

    def enough() -> bool:
        octets = min(MOST, 100 * connection.segment)
        return connection.delivered >= begun + octets

    connection.serve(enough, ack_every=2)


def report_congestion(connection: Connection) -> None:
    """Acknowledge what arrives for a while with ECE, and send data that has CWR, ECE or both."""
    for flags in (ECE, ECE | CWR, CWR):
        connection.send(flags=ACK | flags)
        connection.send_data(UNIT, flags=ACK | PSH | flags)
        connection.collect(connection.rtt)
        connection.ack()


def send_some(connection: Connection, segments: int = 20) -> None:
    """Send small segments, one of which comes late and one twice."""
    first = connection.next_offset
    order = [*range(segments)]
    order[3], order[5] = order[5], order[3]
    for index in (*order, 2):
        connection.send_data(UNIT, at=first + index * UNIT)
        connection.wait(0.02)
    connection.next_offset = first + segments * UNIT
    connection.wait(connection.rtt + PAUSE_S)


def fins(segment: Segment, _: int = 0) -> bool:
    """Whether a segment has FIN."""
    return bool(segment.tcp.flags & FIN)


def await_fin(
    connection: Connection,
    lost: Callable[[Segment, int], bool] = lambda *_: False,
    **how: Any,
) -> None:
    """Be an ordinary receiver until everything up to the IUT's FIN is delivered.

    Args:
        connection: on which.
        lost: which segments are lost, given how often they have come before.
        how: see :meth:`Connection.serve`.
    """
    ends: list[int] = []

    def losing(segment: Segment, before: int) -> bool:
        if lost(segment, before):
            return True
        ends.extend([segment.end] * fins(segment))
        return False

    connection.serve(lambda: bool(ends) and connection.delivered >= ends[0], losing=losing, **how)
    connection.ack(pause=connection.rtt)


def close(connection: Connection) -> None:
    """Send FIN, and take in what comes until the IUT's FIN."""
    connection.send(flags=ACK | FIN)
    await_fin(connection)


def _await_taken(connection: Connection, sent: int) -> None:
    """Wait until all has arrived, for a slow way there has a queue that may overflow."""
    for _ in range(8):
        connection.wait(connection.rtt + PAUSE_S)
        connection.collect(0)
        if connection.acked >= sent:
            return


def fill(connection: Connection, but: int = 0) -> int:
    """Send to an echo that cannot send until its window is full, ``but`` for so many octets.

    Returns:
        The octets sent.
    """
    sent = 0
    connection.wait(connection.rtt)
    while True:
        connection.collect(0)
        room = connection.iut_edge - but - sent
        if room <= 0:
            break
        size = min(700, room)
        connection.send(pattern(sent, size), flags=ACK | PSH)
        sent += size
        if sent % 7000 == 0 or size < 700:
            _await_taken(connection, sent)
        if sent > 2 * LARGEST_FILLED:
            raise NotReached("the echo reads without end although it cannot send")
    return sent
