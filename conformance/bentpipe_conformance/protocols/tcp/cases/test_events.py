"""Two events within a round trip: loss, close, window and holes, in every pair that can meet.

Each row is an ordinary transfer but for two things that happen to it at once. The checkers of all
requirements judge it; a row names those that are sure to have an occasion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.tcp.cases.steps import SACK
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Segment
from bentpipe_conformance.protocols.tcp.peer import Peer

UNIT = 1000

FLIGHT = 12
"""Segments outstanding when the events happen."""

LIMIT = 16
"""Segments that the window holds where it is one of the events."""

SHORT_S = 0.3


@dataclass(frozen=True, slots=True)
class Events(Row):
    """Two events; ``happen`` brings them about on a connection of its own."""

    happen: Callable[[Peer], object] = lambda _: None


def _fins(losing: Iterable[int] = (), fins: int = 0) -> Callable[[Segment, int], bool]:
    """Lose segments of :data:`UNIT` octets by index once, and what carries the FIN some times."""
    lost = frozenset(losing)

    def rule(segment: Segment, before: int) -> bool:
        if segment.tcp.flags & FIN and before < fins:
            return True
        return not before and segment.start // UNIT in lost

    return rule


def _closing_echo(losing: Iterable[int], fins: int) -> Callable[[Peer], None]:
    """The IUT has data and then a FIN to send, and loses some of either."""

    def happen(peer: Peer) -> None:
        connection = peer.connect("echo")
        for _ in range(8):
            connection.send_data(UNIT)
        connection.send(flags=ACK | FIN)
        total = connection.next_offset
        connection.serve(lambda: connection.delivered >= total, losing=_fins(losing, fins))
        connection.wait(3.0)

    return happen


def _returned_at_once(losing: int) -> Callable[[Peer], None]:
    """The IUT has data and a FIN to send all at once: what came first arrives last."""

    def happen(peer: Peer) -> None:
        connection = peer.connect("echo")
        units = 8
        for unit in (*range(1, units), 0):
            flags = ACK | FIN if unit == units - 1 else ACK
            connection.send_data(UNIT, at=unit * UNIT, flags=flags)
        connection.next_offset = units * UNIT + 1
        connection.serve(lambda: connection.delivered > units * UNIT, losing=_fins([losing]))
        connection.wait(3.0)

    return happen


def _window(losing: Iterable[int], sizes: Iterable[int]) -> Callable[[Peer], None]:
    """Segments of a stream are lost, and each following acknowledgment offers another window."""

    def happen(peer: Peer) -> None:
        connection = peer.connect("chargen", window=LIMIT * SEGMENT, syn_window=LIMIT * SEGMENT)
        connection.grow(FLIGHT)
        segment = connection.segment
        first = connection.delivered // segment
        lost = {first + index for index in losing}
        coming = iter(sizes)
        edge = connection.delivered + LIMIT * segment

        def serve(arrival: Segment) -> None:
            nonlocal edge
            if not arrival.has_data:
                return
            index = arrival.start // segment
            if index in lost:
                lost.remove(index)
                return
            connection.hold(arrival)
            # The right edge never moves back: that would be a third event.
            edge = max(edge, connection.delivered + next(coming, LIMIT) * segment)
            connection.window = edge - connection.delivered
            connection.ack()

        connection.serve_until(lambda: connection.delivered >= (first + 60) * segment, serve)

    return happen


def _lost(losing: Callable[[int], dict[int, int]], **how: int) -> Callable[[Peer], None]:
    """Segments of a stream are lost; ``losing`` has the first one outstanding."""

    def happen(peer: Peer) -> None:
        connection = peer.connect("chargen")
        connection.grow(FLIGHT)
        first = connection.delivered // connection.segment
        connection.receive(first + 60, losing=losing(first), **how)

    return happen


def _hole_and_fin(*order: int) -> Callable[[Peer], None]:
    """The tester's data arrives in this order of units, the last of which carries the FIN."""

    def happen(peer: Peer) -> None:
        connection = peer.connect("discard")
        last = max(order)
        for unit in order:
            flags = ACK | FIN if unit == last else ACK
            connection.send_data(UNIT, at=unit * UNIT, flags=flags)
            connection.wait(SHORT_S)
        connection.next_offset = (last + 1) * UNIT + 1
        connection.serve(lambda: connection.delivered >= 1)
        connection.ack()
        connection.wait(3.0)

    return happen


def _both(theirs: Iterable[int], ours: Iterable[int]) -> Callable[[Peer], None]:
    """Data is lost in both directions of an echo at once."""

    def happen(peer: Peer) -> None:
        connection = peer.connect("echo")
        units = range(12)
        late = set(ours)
        for unit in units:
            if unit not in late:
                connection.send_data(UNIT, at=unit * UNIT)
        connection.wait(SHORT_S)
        connection.collect(SHORT_S)
        connection.ack()
        for unit in late:
            connection.send_data(UNIT, at=unit * UNIT)
            connection.wait(SHORT_S)
        connection.next_offset = len(units) * UNIT
        rule = _fins(theirs)
        connection.serve(lambda: connection.delivered >= len(units) * UNIT, losing=rule)

    return happen


def _busy_both_ways(
    losing: Callable[[int], dict[int, int]], *, sack: bool = True, octets: int = 10
) -> Callable[[Peer], None]:
    """The same while the tester sends data, on which acknowledgments and blocks ride."""

    def happen(peer: Peer) -> None:
        connection = peer.connect("chargen", sack=sack)
        connection.grow(FLIGHT)
        connection.bearing = octets
        first = connection.delivered // connection.segment
        connection.receive(first + 70, losing=losing(first))

    return happen


def _one_segment(first: int) -> dict[int, int]:
    return {first + 2: 1}


def _four_segments(first: int) -> dict[int, int]:
    return dict.fromkeys((first + 1, first + 4, first + 6, first + 9), 1)


def _twice(first: int) -> dict[int, int]:
    return {first + 1: 2, first + 5: 1}


def _a_window(first: int) -> dict[int, int]:
    return dict.fromkeys(range(first, first + 2 * FLIGHT), 1)


RETRANSMITTED = ("SNR-FR-006", "SNR-WIN-002")
CLOSED = ("SNR-CON-015", "SNR-CON-017")

ROWS = (
    Events("loss-of-the-last-data-and-close", "The last data before the FIN is lost.",
           CLOSED, happen=_closing_echo([7], 0)),
    Events("loss-of-the-fin", "The FIN is lost twice.", (*CLOSED, "SNR-CON-018"),
           happen=_closing_echo([], 2)),
    Events("loss-of-data-and-of-the-fin", "Data in the middle and the FIN are lost.",
           (*CLOSED, "SNR-CON-018"), happen=_closing_echo([3], 1)),
    Events("loss-of-the-first-data-and-close", "The first data before the FIN is lost.",
           CLOSED, happen=_closing_echo([0], 0)),
    Events("loss-shown-by-the-fin", "The third segment held above the loss carries the FIN.",
           ("SNR-FR-002",), SACK, ("rfc",), happen=_returned_at_once(2)),
    Events("loss-shown-by-a-lone-fin", "The same, if the FIN has a segment of its own.",
           CLOSED, SACK, ("rfc",), happen=_returned_at_once(4)),
    Events("loss-and-the-window-opens", "A segment is lost while the window doubles.",
           RETRANSMITTED, happen=_window([1], (16, 18, 20, 24, 32, 32, 32))),
    Events("loss-and-the-window-stands", "A segment is lost while the right edge stands still.",
           RETRANSMITTED, happen=_window([2], (0,) * 12)),
    Events("two-losses-and-the-window-stands", "Two are lost while the right edge stands still.",
           RETRANSMITTED, happen=_window([1, 6], (0,) * 12)),
    Events("two-losses-and-the-window-opens-late", "Two are lost; the second repair opens it.",
           RETRANSMITTED, happen=_window([1, 6], (0,) * 11 + (40,) * 4)),
    Events("loss-of-a-retransmission", "A segment and its retransmission are lost.",
           RETRANSMITTED, happen=_lost(lambda first: {first + 2: 2})),
    Events("loss-of-a-retransmission-and-of-another", "A retransmission and another are lost.",
           RETRANSMITTED, happen=_lost(lambda first: {first + 1: 2, first + 7: 1})),
    Events("loss-and-loss-of-what-recovery-sends", "New data sent during recovery is lost as well.",
           RETRANSMITTED, happen=_lost(lambda first: {first + 1: 1, first + 14: 1, first + 15: 1})),
    Events("loss-with-rare-acknowledgments", "One is lost while every third is acknowledged.",
           RETRANSMITTED, happen=_lost(lambda first: {first + 3: 1}, ack_every=3)),
    Events("loss-reported-on-data", "One is lost; every block is on a segment with data.",
           ("SNR-FR-002",), (*SACK, "rack=no"), ("rfc",), happen=_busy_both_ways(_one_segment)),
    Events("losses-reported-on-data", "Four are lost; every block is on a segment with data.",
           ("SNR-WIN-002",), SACK, ("rfc",), happen=_busy_both_ways(_four_segments)),
    Events("retransmission-lost-reported-on-data", "The same, and a retransmission is lost.",
           ("SNR-WIN-002",), SACK, ("rfc",), happen=_busy_both_ways(_twice)),
    Events("window-lost-acknowledged-on-data", "A window is lost while data comes.",
           ("SNR-WIN-002",), happen=_busy_both_ways(_a_window)),
    Events("losses-acknowledged-on-data", "Without SACK, four are lost while data comes.",
           ("SNR-WIN-002",), happen=_busy_both_ways(_four_segments, sack=False)),
    Events("fin-above-a-hole", "A FIN arrives above a hole, which is then filled.",
           CLOSED, happen=_hole_and_fin(0, 2, 1)),
    Events("fin-above-two-holes", "A FIN arrives above two holes, filled from above.",
           CLOSED, happen=_hole_and_fin(0, 2, 4, 3, 1)),
    Events("fin-above-a-hole-repeated", "What fills the hole below a FIN comes again.",
           CLOSED, happen=_hole_and_fin(1, 2, 0, 0)),
    Events("loss-both-ways", "Data of both directions is lost at once.",
           ("SNR-RCV-001", "SNR-RCV-002"), happen=_both([4], [5])),
    Events("losses-both-ways", "Several segments of both directions are lost at once.",
           ("SNR-RCV-001", "SNR-RCV-002"), happen=_both([2, 7], [3, 8])),
)  # fmt: skip


def _happen(peer: Peer, row: Events) -> None:
    row.happen(peer)


each(globals(), ROWS, _happen)
