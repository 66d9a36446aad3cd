"""Isolation and exhaustion (PEP-FI section 10, PEP-RX section 11)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    SHORT,
    both_ways,
    close,
    flood,
    quiet,
    settle,
    transfer,
)
from bentpipe_conformance.protocols.pep.peer import Peer, Through


@case("PEP-FI-001")
def test_one_receiver_stops_beside_others(peer: Peer) -> None:
    """One server reads nothing, and others go on."""
    before = peer.connect()
    stalled = peer.connect(server=DEAF)
    stalled.server.stop()
    stalled.client.write(peer.octets(400_000))
    peer.wait(10.0)
    octets = peer.octets(SHORT)
    for end in (before.client, before.server):
        end.write(octets)
    found = []
    for _ in range(2):
        port, listener = peer.listen(welcome=lambda end: end.write(octets))
        found.append((peer.call(port), listener))
        found[-1][0].write(octets)
    peer.run(lambda: all(len(client.got) >= SHORT for client, _ in found), 40.0)
    quiet(peer, 12.0)


@case("PEP-RX-005", "PEP-FI-005", "PEP-FI-006", needs=("connections",))
def test_as_many_as_are_served(peer: Peer) -> None:
    """As many connections as the box serves, all with octets, and then one more."""
    clients = []
    for _ in range(peer.connections):
        clients.append(peer.call(peer.listen()[0]))
        peer.wait(0.02)
    peer.wait(2 * peer.rtt + 1.0)
    for client in clients:
        client.write(peer.octets(3000))
    peer.wait(10.0)
    port, _ = peer.listen()
    more = peer.call(port)
    peer.wait(3.0)
    more.write(peer.octets(3000))
    peer.wait(35.0)


@case("PEP-RX-001", "PEP-RX-002")
def test_flood_of_syns(peer: Peer) -> None:
    """Clients that do not exist call a server that does not answer."""
    through = peer.connect()
    both_ways(peer, through, 2000)
    port, _ = peer.listen("nothing")
    through.client.write(peer.octets(100_000))
    flood(peer, through, port, network=1, rest=40.0, within=80.0)


@case("PEP-RX-006", "PEP-RX-007")
def test_closed_ports_used_again_client_first(peer: Peer) -> None:
    """The client has closed first, and calls again from its port."""
    _again(peer, client_first=True)


@case("PEP-RX-006", "PEP-RX-007")
def test_closed_ports_used_again_server_first(peer: Peer) -> None:
    """The server has closed first, and the client calls again from its port."""
    _again(peer, client_first=False)


@case("PEP-RX-006")
def test_reset_ports_used_again(peer: Peer) -> None:
    """The client resets while the box holds octets, and calls again from its port."""
    through = peer.connect(server=DEAF)
    through.server.stop()
    through.client.write(peer.octets(30_000))
    peer.wait(4.0)
    through.client.reset()
    peer.wait(1.0)
    settle(peer, through.server)
    _call_again(peer, through)


def _again(peer: Peer, *, client_first: bool) -> None:
    through = peer.connect()
    both_ways(peer, through)
    ends = (through.client, through.server)
    close(peer, *(ends if client_first else ends[::-1]))
    peer.wait(1.0)
    _call_again(peer, through)


def _call_again(peer: Peer, through: Through) -> None:
    """The client goes on to call from its port, a SYN every 20 s."""
    port = through.server.local[1]
    listener = peer.listener(port)
    made = len(listener.ends)
    client = peer.draft(port, own_port=through.client.local[1])
    client.iss = (through.client.iss + 1_000_000) % (1 << 32)
    client.call()
    peer.run(lambda: client.established and len(listener.ends) > made, 260.0)
    if not client.established or len(listener.ends) == made:
        quiet(peer, 30.0)
        raise NotReached("the ports were not used again")
    again = Through(client, listener.ends[-1])
    transfer(peer, again.client, again.server, 3000)
    transfer(peer, again.server, again.client, 3000)
    quiet(peer)
