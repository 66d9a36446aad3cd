"""A path that does not keep the order, and acknowledgments that are lost."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.rwbp.cases.steps import PATIENCE_S, PAUSE_S, lose_until
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, WINDOW, Connection, Segment
from bentpipe_conformance.protocols.rwbp.peer import Peer

SHORTEST_S = 0.25
"""No sample of the round-trip time is shorter: in half of one an arrival is surely processed."""


MOMENT_S = 0.08
"""Longer than a timer may be late (section 2), and shorter than half of a round trip."""

LEAST = 4
"""Segments of a round whose order can be changed as these cases want."""


def _opened(peer: Peer, **offer: Any) -> Connection:
    """A connection whose handshake yields no short sample, however short the link is."""
    connection = peer.begin(**offer)
    connection.await_answer("SYN-ACK")
    connection.wait(SHORTEST_S)
    connection.ack()
    return connection


def _round(connection: Connection) -> list[Segment]:
    """What a round brings that has not come before, acknowledged only when it is over."""
    new: dict[int, Segment] = {}
    for _ in range(4):
        connection.await_round()
        connection.wait(SHORTEST_S)
        new |= {each.start: each for each in connection.inbox if each.start >= connection.delivered}
        connection.inbox.clear()
        if len(new) >= LEAST:
            return [new[start] for start in sorted(new)]
    raise NotReached(f"four rounds brought {len(new)} new segments")


def _overtaken(connection: Connection, times: int, hole: int = 0, most: int | None = None) -> None:
    """A segment is reported missing, its repair leaves, and it arrives a moment later.

    That is less than half of the shortest round trip after the repair (section 8.5). With it come
    those behind a ``hole`` of so many segments, all or at ``most`` so many.
    """
    for _ in range(times):
        segments = _round(connection)
        connection.hold(segments[1])
        connection.ack(pause=0.05)
        connection.hold(segments[0])
        for segment in segments[2 + hole :][:most]:
            connection.hold(segment)
        connection.ack()


def _lose_first(connection: Connection) -> None:
    """One later segment tells that the first of a round is lost; the next ones come much later."""
    segments = _round(connection)
    connection.hold(segments[1])
    connection.ack(pause=PAUSE_S)
    for segment in segments[2:]:
        connection.hold(segment)
    connection.ack()
    connection.receive_more(24)


@case("RWBP-FF-002")
def test_two_segments_overtaken_and_a_loss(peer: Peer) -> None:
    """One loss, or two, turn out to be false; then a segment is lost indeed.

    One later segment tells that; the next ones come much later.
    """
    for times in (1, 2):
        connection = _opened(peer)
        _overtaken(connection, times)
        _lose_first(connection)
        connection.abort()


def _overtaken_by_three(connection: Connection) -> None:
    """Twice the first segment of a window arrives long behind three others, and then the rest."""
    for _ in range(2):
        segments = _round(connection)
        for segment in (*segments[1:4], segments[0], *segments[4:]):
            if segment is segments[0]:
                connection.wait(PAUSE_S)
            connection.hold(segment)
            connection.ack(pause=0.02)


@case("RWBP-FF-003")
def test_three_segments_overtaken(peer: Peer) -> None:
    """Three losses turn out to be false: from then on it takes three later segments."""
    connection = _opened(peer)
    _overtaken(connection, 3)
    connection.receive_more(16)
    _overtaken_by_three(connection)
    base = connection.highest // connection.segment
    connection.receive(base + 40, losing=[base + 4, base + 9])


@case("RWBP-FF-003", "RWBP-EC-002")
def test_lower_segments_tell_once_the_threshold_is_raised(peer: Peer) -> None:
    """Of a window the last segment arrives first, then two others: the lowest is lost by then."""
    connection = _opened(peer)
    _overtaken(connection, 3)
    connection.receive_more(16)
    for _ in range(2):
        segments = _round(connection)
        for segment in (segments[-1], *segments[1:3]):
            connection.hold(segment)
            connection.ack(pause=0.02)
        connection.wait(PAUSE_S)
        connection.receive_more(16)


@case("RWBP-FF-003")
def test_three_segments_overtaken_at_once(peer: Peer) -> None:
    """Three are reported missing together and arrive together: each of the losses was false."""
    connection = _opened(peer)
    segments = _round(connection)
    connection.hold(segments[3])
    connection.ack(pause=0.05)
    for segment in segments:
        connection.hold(segment)
    connection.ack()
    connection.receive_more(16)
    _overtaken_by_three(connection)
    connection.receive_more(16)


def _overtaken_by_a_second_repair(connection: Connection) -> None:
    """A segment arrives a moment after its second repair, and long after the first."""
    late, *others = _round(connection)
    for segment in others:
        connection.hold(segment)
    connection.ack(pause=0.05)
    connection.ack(window=connection.window + 2 * SEGMENT)
    new = connection.expect(lambda each: each.start > others[-1].start, what="a new segment")
    connection.wait(SHORTEST_S)
    connection.hold(new)
    connection.ack(pause=0.05)
    connection.hold(late)
    connection.ack()


@case("RWBP-FF-003")
def test_three_segments_taken_for_lost_twice(peer: Peer) -> None:
    """The later of two losses turns out to be false, which counts as any other (section 8.5)."""
    connection = _opened(peer)
    for _ in range(3):
        _overtaken_by_a_second_repair(connection)
    connection.receive_more(16)
    _overtaken_by_three(connection)
    connection.receive_more(16)


@case("RWBP-FF-003")
def test_timeout_after_the_third_false_loss(peer: Peer) -> None:
    """Everything is lost for a while; the threshold stays what it was."""
    connection = _opened(peer)
    _overtaken(connection, 3)
    connection.receive_more(16)
    _overtaken_by_three(connection)
    connection.receive_more(16)
    connection.take_round()
    lose_until(connection, 1)
    connection.receive_more(32)
    _overtaken_by_three(connection)
    connection.receive_more(16)


@case("RWBP-FF-003", "RWBP-EC-002")
def test_third_false_loss_and_a_hole(peer: Peer) -> None:
    """What is reported missing when the threshold rises is not taken for lost by that.

    One later segment arrives with the third false loss, or so many that F3 is above what F1 was;
    H has not risen (section 8.3, step 5). What arrives next takes the hole for lost.
    """
    for most in (1, None):
        connection = _opened(peer)
        _overtaken(connection, 2)
        _overtaken(connection, 1, hole=1, most=most)
        connection.wait(PAUSE_S)
        connection.receive_more(24)
        connection.abort()


def _repeated_by_timeouts(connection: Connection, *, lost: bool) -> None:
    """A segment, or its repair, arrives a moment after the second timeout has repeated it.

    When that is, the first one tells, for the second timer runs twice as long (section 8.4).
    """
    if lost:
        connection.expect(lambda each: each.start == connection.delivered)
        connection.hold(connection.expect(lambda each: each.start > connection.delivered))
        connection.wait(SHORTEST_S)
        connection.ack()
    first, again = (
        connection.expect(
            lambda segment: segment.start == connection.delivered, within=PATIENCE_S,
            what="the next segment, and its first copy",
        )
        for _ in range(2)
    )  # fmt: skip
    interval = again.time - first.time
    connection.wait(again.time + 2 * interval + MOMENT_S - connection.rtt - connection.peer.now())
    connection.inbox.clear()
    connection.hold(first)
    connection.ack()


@case("RWBP-FF-002", "RWBP-EC-002")
def test_timeouts_and_a_loss(peer: Peer) -> None:
    """Three segments that timeouts repeat arrive a moment later, which makes no loss false.

    They were never taken for lost, or so long before that a repair of them was lost as well. Then a
    segment is lost indeed, and one later segment tells.
    """
    for lost in (False, True):
        connection = _opened(peer, window=(1 + lost) * SEGMENT)
        for _ in range(3):
            _repeated_by_timeouts(connection, lost=lost)
        connection.receive_more(2)
        connection.window = WINDOW
        connection.receive_more(4)
        _lose_first(connection)
        connection.abort()


@connected("RWBP-EC-002", "RWBP-EC-010", "RWBP-EC-003")
def test_acknowledgments_of_many_runs_lost(connection: Connection) -> None:
    """Of nine runs one acknowledgment tells four; others tell the rest, from below, one by one."""
    connection.receive(16)
    segments = [segment for segment in connection.take_round() if segment.has_data]
    runs = [(segment.start, segment.end) for segment in segments[1::2]]
    for segment in segments[1::2]:
        connection.hold(segment)
    connection.ack(sack=(runs[-1], *runs[:3]), pause=0.1)
    for start in range(1, len(runs) - 4):
        connection.ack(sack=runs[start : start + 4], pause=0.05)
    connection.ack(sack=runs[-4:])
    connection.receive_more(24)
