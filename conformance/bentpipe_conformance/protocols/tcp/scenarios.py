"""Scenarios of the SACK-NewReno model, imposed on a TCP sender as losses and delays.

The model's window is the window that the tester offers, and its user's data ends where that window
stops moving. A segment is known by its place in the transfer and by which transmission of it this
is, so that a sender that differs from the model still meets the same losses. A premature timeout is
made by holding acknowledgments back until the first segment outstanding comes again.
"""

from __future__ import annotations

from collections import deque

from bentpipe_spec.scenario import Scenario

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scenario import Path
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection, Segment
from bentpipe_conformance.protocols.tcp.peer import Peer

TIMEOUT_S = 30.0
"""Longer than a retransmission timeout that has been backed off twice."""

AFTER_RTTS = 1.2
"""Round trips after the last acknowledgment within which its answers arrive; what comes later, a
timer has sent."""

Answer = tuple[int, list[tuple[int, int]]]
"""An acknowledgment held back: what it acknowledges, and its SACK blocks, as offsets."""


def replay(peer: Peer, scenario: Scenario) -> None:
    """Open a connection, impose a scenario on it and reset it.

    Raises:
        NotReached: the transfer does not come to its end.
    """
    window = scenario.window * SEGMENT
    connection = peer.connect(window_scale=None, window=window, syn_window=window)
    connection.grow(scenario.window)
    Replay(connection, scenario).run()
    connection.abort()


class Replay:
    """One scenario on one connection with a full window outstanding, waiting in the inbox.

    Args:
        connection: the connection; what protocols that stand on TCP call one will do.
        scenario: what is imposed.
    """

    def __init__(self, connection: Connection, scenario: Scenario) -> None:
        self._connection = connection
        self._base = connection.delivered
        self._given = connection.delivered
        self._window = scenario.window * SEGMENT
        self._edge = self._base + self._window
        self._end = self._base + scenario.offered * connection.segment
        lost = (e for e in scenario.events if e.message == "DATA" and e.fate == "lost")
        self._lost = {(event.number, event.transmission) for event in lost}
        self._path = Path(scenario)
        self._expiries = deque(expiry.after for expiry in scenario.expiries)
        self._taken = 0
        self._held_back: deque[Answer] = deque()

    def run(self) -> None:
        """Receive until all is delivered and acknowledged."""
        while self._given < self._end:
            if self._expiries and self._expiries[0] <= self._taken:
                self._expiries.popleft()
                self._await_expiry()
            elif self._held_back:
                self._give(self._held_back.popleft())
            elif self._receive(TIMEOUT_S) is None:
                raise NotReached(f"{TIMEOUT_S:.0f} s passed at {self._state()}")

    def _receive(self, within: float) -> Segment | None:
        """Take a segment off the link and hold back the answer to it; None when none comes."""
        connection = self._connection
        segment = connection.next(within)
        if segment is None or not segment.has_data:
            return segment
        place = (segment.start - self._base) // connection.segment
        transmission = connection.reception.seen.get(segment.start, 0) + 1
        if (place, transmission) in self._lost:
            connection.reception.seen[segment.start] = transmission
            return segment
        connection.hold(segment)
        answer = connection.delivered, connection.sack_blocks()
        self._path.carry("ACK", lambda: self._held_back.append(answer))
        return segment

    def _give(self, answer: Answer) -> None:
        ack, blocks = answer
        # The window never shrinks (RFC 9293 section 3.8.6), and ends where the user's data does.
        self._edge = max(self._edge, min(ack + self._window, self._end))
        offered = max(0, self._edge - ack)  # a sender may have gone beyond the edge
        self._connection.ack(ack, sack=blocks if self._connection.sack else (), window=offered)
        self._taken += 1
        self._given = max(self._given, ack)

    def _await_expiry(self) -> None:
        """Hold answers back until the first segment outstanding comes again, late."""
        connection = self._connection
        silent_from = connection.peer.now() + AFTER_RTTS * connection.peer.rtt
        deadline = silent_from + TIMEOUT_S
        while (segment := self._receive(deadline - connection.peer.now())) is not None:
            if segment.start == self._given and segment.time >= silent_from:
                return
        raise NotReached(f"no timeout at {self._state()}")

    def _state(self) -> str:
        return f"{self._given - self._base} of {self._end - self._base} octets acknowledged"
