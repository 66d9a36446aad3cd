"""Scenarios of the model StpData, imposed on a sender and on a receiver of STP.

A scenario says which transmissions of SDs, POLLs, STATs and USTATs are lost, delayed or doubled.
The tester does that to its own packets before it sends them and to the implementation's after they
have arrived, so that the link has no part in it. The POLL of an SDP counts as a POLL. What the user
offers is bounded by the credit, which is never below the early credit of four SDs.
"""

from __future__ import annotations

from bentpipe_spec.scenario import Scenario

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scenario import Act, Path
from bentpipe_conformance.protocols.stp.arrival import Arrival
from bentpipe_conformance.protocols.stp.codec import POLL, STAT, USTAT, build
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT
from bentpipe_conformance.protocols.stp.peer import Peer

WITHIN_S = 30.0
"""Seconds; longer than a transfer takes in which a few POLLs are lost."""

LATE_S = 3.0
"""Seconds after which a delayed packet arrives at the latest."""

ROUNDS = 12
"""The most POLLs that the tester sends until everything has arrived."""


def replay_on_sender(peer: Peer, scenario: Scenario) -> None:
    """Impose a scenario on a stream of the IUT.

    Raises:
        NotReached: it does not come to its end.
    """
    window = max(scenario.window, EARLY_CREDIT)
    total = window + scenario.offered
    connection = peer.connect("chargen", credit=window)
    reception = connection.reception
    path = Path(scenario)
    deadline = peer.now() + WITHIN_S + 20 * peer.rtt
    while reception.vr_r < total or connection.polls == 0:
        arrival = connection.next(min(LATE_S, deadline - peer.now()))
        if peer.now() >= deadline or connection.closed:
            raise NotReached(f"{scenario.name}: {reception.vr_r} of {total} SDs were delivered")
        if arrival is None:
            path.release()
            continue
        if arrival.polls and not connection.highest:
            # Before any data may leave, the tester's address has to be proven (STP-SEC-001).
            connection.answer(arrival)
            continue
        if arrival.has_data:
            path.carry("SD", _taking(connection, path, arrival, total, window))
        if arrival.polls:
            path.carry("POLL", _answering(connection, path, arrival))
    path.release()
    connection.abort()


def _taking(connection: Connection, path: Path, sd: Arrival, total: int, window: int) -> Act:
    reception = connection.reception

    def act() -> None:
        gap = connection.hold(sd)
        reception.vr_mr = max(reception.vr_mr, min(reception.vr_r + window, total))
        if gap is not None:
            ustat = connection.compose(USTAT, elements=connection.their_list(gap))
            path.carry("USTAT", lambda: connection.peer.send(build(ustat)))

    return act


def _answering(connection: Connection, path: Path, poll: Arrival) -> Act:
    def act() -> None:
        connection.reception.polled(poll.number_polled)
        connection.remember(poll)
        stat = connection.compose(STAT)
        path.carry("STAT", lambda: connection.peer.send(build(stat)))

    return act


def replay_on_receiver(peer: Peer, scenario: Scenario) -> None:
    """Impose a scenario on a stream to the IUT.

    Raises:
        NotReached: it does not come to its end.
    """
    connection = peer.connect("discard")
    _Sending(connection, scenario).run()
    connection.abort()


class _Sending:
    """A plain sender: all that the window permits, then a POLL and what its STAT asks for."""

    def __init__(self, connection: Connection, scenario: Scenario) -> None:
        self._connection = connection
        self._path = Path(scenario)
        self._scenario = scenario
        self._acknowledged = 0
        self._missing: set[int] = set()

    def run(self) -> None:
        connection, offered = self._connection, self._scenario.offered
        for _ in range(ROUNDS):
            for number in sorted(self._missing):
                self._send(number)
            self._missing.clear()
            edge = min(offered, self._acknowledged + self._scenario.window)
            for number in range(connection.vt_s, edge):
                self._send(number)
            self._ask()
            if self._acknowledged >= offered:
                return
        raise NotReached(
            f"{self._scenario.name}: {self._acknowledged} of {offered} SDs were acknowledged"
        )

    def _send(self, number: int) -> None:
        connection = self._connection
        if number == connection.vt_s:
            connection.sds(1, skip=[number])
        self._path.carry("SD", lambda: _again(connection, number))

    def _ask(self) -> None:
        """Send a POLL and take in the reports that are not lost until all is quiet."""
        connection, peer = self._connection, self._connection.peer
        connection.vt_ps += 1
        poll = connection.compose(POLL)
        self._path.carry("POLL", lambda: peer.send(build(poll)))
        deadline = peer.now() + peer.rtt + LATE_S / 6
        while (arrival := connection.next(deadline - peer.now())) is not None:
            if arrival.kind in (STAT, USTAT):
                name = "STAT" if arrival.kind == STAT else "USTAT"
                self._path.carry(name, self._reading(arrival))
        self._path.release()

    def _reading(self, report: Arrival) -> Act:
        def act() -> None:
            self._acknowledged = max(self._acknowledged, report.number)
            listed = report.elements
            for first, second in zip(listed[::2], listed[1::2], strict=False):
                self._missing |= set(range(max(first, self._acknowledged), second))
            self._missing = {n for n in self._missing if n >= self._acknowledged}

        return act


def _again(connection: Connection, number: int) -> None:
    connection.sd(number=number)
