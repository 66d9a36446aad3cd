"""Steps that the cases share."""

from __future__ import annotations

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection, Segment
from bentpipe_conformance.protocols.tcp.peer import Peer

PAUSE_S = 0.8
"""Longer than any delayed acknowledgment."""

TIMEOUT_S = 30.0
"""Patience for a first retransmission timeout."""

DISTANT_S = 0.04
"""A round trip on which a loss shows by the segments above it sooner than by time, a quarter of a
round trip (RFC 8985 section 6.2), and that is too long for a sender to put segments off."""

SACK = ("sack_sender",)
"""What an implementation needs to use the tester's SACK blocks."""


PLAIN = ("congestion_control=reno", "rack=no", "tlp=no", "prr=no", "frto=no")
"""What an implementation has to answer so that its window is known from packets."""


def take_round(connection: Connection, round_trips: float = 1.2, *, bare: bool = False) -> None:
    """Take in what arrives for a while and acknowledge it; ``bare`` without SACK blocks."""
    connection.collect(round_trips * connection.rtt)
    connection.ack(sack=() if bare else None)


def fill_window(peer: Peer, segments: int) -> tuple[Connection, list[Segment]]:
    """A connection without SACK whose offered window has been used up, and what is in it."""
    connection = peer.connect(sack=False, window_scale=None, window=segments * SEGMENT)
    connection.grow(segments)
    return connection, connection.collect(0)


def lose_second(connection: Connection, pause: float) -> None:
    """Lose the second of the segments under way and report the six after it, ``pause`` s apart.

    What spreads a sender's segments has let all of them out by then. On the clock of a link it is a
    matter of chance whether it does so before an acknowledgment comes or just after that.
    """
    under_way = [item for item in connection.arrivals(1.2 * connection.rtt) if item.has_data]
    for segment in under_way[:1]:
        connection.take(segment)
    connection.wait(connection.rtt / 4)
    for segment in under_way[2:8]:
        connection.hold(segment)
        connection.ack(pause=pause)


def await_again(
    connection: Connection, start: int, what: str, within: float | None = None
) -> Segment:
    """The next segment at an offset; everything else that arrives is lost.

    Raises:
        NotReached: it did not come in time.
    """
    return connection.expect(lambda segment: segment.start == start, within=within, what=what)


def await_retransmissions(
    connection: Connection, lost: int, times: int, *, within: float = TIMEOUT_S, seen: bool = False
) -> Segment:
    """Lose everything until offset ``lost`` has arrived ``times`` times more; return the last.

    With ``seen`` a copy that the last acknowledgment clocked out is not counted.

    Raises:
        NotReached: the timeouts did not come in time.
    """
    if seen:
        connection.discard(1.5 * connection.rtt)
    for count in range(times):
        what = f"retransmission {count + 1} of offset {lost}"
        segment = await_again(connection, lost, what, within * 2**count)
    return segment


def show_silence(connection: Connection, reason: str) -> NotReached:
    """Have something arrive, so that the captures show how long the silence was."""
    connection.ack()
    connection.wait(connection.rtt)
    return NotReached(reason)
