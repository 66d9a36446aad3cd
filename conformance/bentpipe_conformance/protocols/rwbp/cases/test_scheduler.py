"""Several connections whose packets wait for one link (section 9.2)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.rwbp.cases.steps import PAUSE_S, make_room
from bentpipe_conformance.protocols.rwbp.cases.test_gateway import FEW, opened, permit, starve
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.rwbp.gateway import AMPLE, Gateway
from bentpipe_conformance.protocols.rwbp.peer import SHARE_S, Peer

NEEDS = ("gateway",)

UNDER_WAY = 24
"""Packets that are granted beyond those that have arrived."""


def serve(peer: Peer, gateway: Gateway, connections: list[Connection], packets: int) -> None:
    """Take in what arrives, make room for it, and grant credit for as much again."""
    before = gateway.arrived
    deadline = peer.now() + 60.0 + 20 * peer.rtt
    while gateway.arrived - before < packets and peer.now() < deadline:
        peer.wait(SHARE_S)
        peer.tend(connections, UNDER_WAY)


def contended(
    peer: Peer, connections: int, sizes: tuple[int, ...] = (SEGMENT,)
) -> tuple[Gateway, list[Connection]]:
    """Connections that have a window each to send, with a few packets of credit at a time."""
    gateway, made = opened(peer, 0)
    for index in range(connections):
        size = sizes[index % len(sizes)]
        made.append(peer.connect(mss=size, window=FEW * SEGMENT // size * size))
    peer.wait(peer.rtt + PAUSE_S)
    starve(peer, gateway, made)
    return gateway, made


@case("RWBP-FC-005", "RWBP-SC-001", needs=NEEDS)
def test_six_connections(peer: Peer) -> None:
    """Six windows wait; credit comes for one packet after the other, then for several."""
    gateway, connections = contended(peer, 6)
    for packets in (*(1,) * 12, 2, 4, 5):
        gateway.grant(packets, pause=0.1)
    serve(peer, gateway, connections, 60)


@case("RWBP-SC-001", "RWBP-FC-005", needs=NEEDS)
def test_some_of_five_cannot_send(peer: Peer) -> None:
    """Two of five connections have a closed window, then others: the ring passes them over."""
    gateway, connections = contended(peer, 5)
    for closed in ((1, 3), (0, 1), (4,)):
        going = [each for index, each in enumerate(connections) if index not in closed]
        for index in closed:
            connections[index].window = 0
        serve(peer, gateway, connections, 3 * FEW)
        serve(peer, gateway, going, 30)
        for index in closed:
            connections[index].window = FEW * SEGMENT
            connections[index].ack()
    serve(peer, gateway, connections, 30)


@case("RWBP-FC-005", "RWBP-SC-001", needs=NEEDS)
def test_plain_tcp_beside_rwbp(peer: Peer) -> None:
    """Two connections of plain TCP share the link with three others, and have turns as they have.

    What they may send when there is room in their windows is more than the IP queue holds.
    """
    gateway, connections = opened(peer, 3)
    plain = [peer.connect(rwbp=False, window=2 * FEW * SEGMENT) for _ in range(2)]
    for connection in plain:
        connection.receive(4 * FEW)
        connection.await_round()
    for _ in range(3):
        starve(peer, gateway, [*connections, *plain])
        for _ in range(5 * FEW):
            gateway.grant(1, pause=0.02)
        gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)
    serve(peer, gateway, [*connections, *plain], 40)


@case("RWBP-SC-001", "RWBP-FC-005", needs=NEEDS)
def test_connections_come_and_go(peer: Peer) -> None:
    """A connection is aborted, and another one opened, which comes last in the ring."""
    gateway, connections = contended(peer, 4)
    serve(peer, gateway, connections, 20)
    connections.pop(1).abort()
    serve(peer, gateway, connections, 20)
    connections.append(peer.begin(window=FEW * SEGMENT))
    serve(peer, gateway, connections, 20)
    connections[-1].establish()
    serve(peer, gateway, connections, 40)


@case("RWBP-SC-001", "RWBP-FC-005", needs=NEEDS)
def test_the_connection_served_last_goes(peer: Peer) -> None:
    """The second of five has filled the IP queue and is reset: the turn is that of the third."""
    gateway, connections = opened(peer, 0)
    for index in range(5):
        connections.append(peer.connect(window=(2 if index == 1 else 1) * FEW * SEGMENT))
    peer.wait(peer.rtt + PAUSE_S)
    gateway.restart(0, pause=PAUSE_S)
    last = connections.pop(1)
    for connection in (last, *connections):
        make_room(connection, PAUSE_S)
    last.abort()
    peer.wait(peer.rtt + PAUSE_S)
    for _ in range(3 * FEW):
        gateway.grant(1, pause=0.1)
    serve(peer, gateway, connections, 30)


@case("RWBP-SC-002", "RWBP-SC-001", needs=NEEDS)
def test_retransmissions_have_turns(peer: Peer) -> None:
    """Of two of five connections segments are lost; their repair waits behind a full queue."""
    gateway, connections = contended(peer, 5)
    for _ in range(3):
        gateway.grant(5 * FEW, pause=peer.rtt + 0.4)
        for connection in connections[:2]:
            arrived = [segment for segment in connection.inbox if segment.has_data]
            for segment in arrived[2:5:2]:
                connection.inbox.remove(segment)
        gateway.restart(0, pause=PAUSE_S)
        for connection in reversed(connections):
            make_room(connection)
            peer.wait(0.02)
        peer.wait(peer.rtt + 0.1)
        for _ in range(30):
            gateway.grant(1, pause=0.02)
    serve(peer, gateway, connections, 40)


@case("RWBP-FC-005", "RWBP-SC-001", "RWBP-WN-005", needs=NEEDS)
def test_fifteen_connections(peer: Peer) -> None:
    """Fifteen connections share the link: each has its part, whatever the others do."""
    gateway, connections = contended(peer, 15)
    serve(peer, gateway, connections, 450)


@case("RWBP-SC-003", needs=(*NEEDS, "scheduler=drr"))
def test_packets_of_unequal_size(peer: Peer) -> None:
    """Three connections have packets of 1,500, 576 and 300 octets, and windows of one size."""
    gateway, connections = contended(peer, 3, (SEGMENT, 536, 260))
    serve(peer, gateway, connections, 150)


@case("RWBP-SC-003", needs=(*NEEDS, "scheduler=drr"))
def test_nothing_is_left_of_turns_that_were_not_used(peer: Peer) -> None:
    """A connection has had room for one small packet at a time; then it shares the link."""
    gateway, _ = opened(peer, 0)
    large, small = (peer.connect(mss=size, window=16_000 // size * size) for size in (800, 260))
    peer.wait(peer.rtt + PAUSE_S)
    for _ in range(12):
        permit(small, small.segment)
        peer.wait(peer.rtt + 0.1)
    gateway.restart(0, pause=PAUSE_S)
    small.window = large.window
    for connection in (large, small):
        make_room(connection)
        peer.wait(0.1)
    peer.wait(peer.rtt + PAUSE_S)
    serve(peer, gateway, [large, small], 150)


@case("RWBP-FC-005", "RWBP-SC-001", needs=("link_rate",))
def test_link_rate_alone(peer: Peer) -> None:
    """Four connections have a window each while the link takes one packet after the other."""
    gateway, connections = opened(peer, 4)
    for _ in range(6):
        peer.wait(peer.rtt + PAUSE_S)
        for connection in connections:
            make_room(connection)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)
