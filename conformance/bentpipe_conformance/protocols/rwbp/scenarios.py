"""Scenarios of RWBP's models, imposed on a sender as losses, silence and small windows.

Those of ``rwbp-recovery`` are imposed as TCP's are (:mod:`..tcp.scenarios`); a sender of RWBP has
no congestion window, so that the model's window is outstanding at once. Those of ``rwbp-flow`` say
which packets of two connections are lost, counted over both; which of them has its turn is the
sender's affair, so that they are imposed in the order in which they arrive.
"""

from __future__ import annotations

from bentpipe_spec.scenario import Scenario

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scenario import Act, Path
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection, Segment
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.scenarios import TIMEOUT_S, Replay

CONNECTIONS = 2
"""Of the model ``rwbp-flow``."""


def replay_recovery(peer: Peer, scenario: Scenario) -> None:
    """Open a connection, impose a scenario of ``rwbp-recovery`` on it and reset it.

    Raises:
        NotReached: the transfer does not come to its end.
    """
    window = scenario.window * SEGMENT
    connection = peer.connect(window=window, syn_window=window)
    Replay(connection, scenario).run()
    connection.abort()


def replay_flow(peer: Peer, scenario: Scenario) -> None:
    """Open two connections, impose a scenario of ``rwbp-flow`` on them and reset them.

    Raises:
        NotReached: a transfer does not come to its end.
    """
    window = scenario.window * SEGMENT
    connections = [peer.connect(window=window, syn_window=window) for _ in range(CONNECTIONS)]
    ends = [c.delivered + scenario.offered * c.segment for c in connections]
    path = Path(scenario)

    def pending() -> bool:
        return any(c.delivered < end for c, end in zip(connections, ends, strict=True))

    while pending():
        if not peer.pump_until(lambda: any(c.inbox for c in connections), TIMEOUT_S):
            raise NotReached(f"{scenario.name}: {TIMEOUT_S:.0f} s passed without a segment")
        first = min((c for c in connections if c.inbox), key=lambda c: c.inbox[0].time)
        segment = first.inbox.popleft()
        if segment.has_data:
            end = ends[connections.index(first)]
            path.carry("DATA", _taking(first, segment, window, end))
    for connection in connections:
        connection.abort()


def _taking(connection: Connection, segment: Segment, window: int, end: int) -> Act:
    def act() -> None:
        connection.hold(segment)
        connection.ack(window=max(0, min(window, end - connection.delivered)))

    return act
