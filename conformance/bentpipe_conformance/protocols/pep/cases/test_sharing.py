"""What connections share: buffers, and places in the table (PEP-FI, PEP-RX)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    SHORT,
    both_ways,
    flood,
    quiet,
)
from bentpipe_conformance.protocols.pep.peer import Peer

STALLED, OTHERS = 10, 2
USUAL_ROOM, LARGEST_ROOM = 200_000, 524_288
"""Octets of a buffer that is not declared, and of the largest that is filled."""


@case("PEP-FI-001", "PEP-FI-002", "PEP-FI-006")
def test_many_receivers_stop_beside_others(peer: Peer) -> None:
    """Servers and clients read nothing, as many as the box serves but for two; these go on."""
    before = peer.connect()
    much = min(peer.buffer or USUAL_ROOM, LARGEST_ROOM) + SHORT
    many = min(STALLED, peer.connections - OTHERS) if peer.connections else STALLED
    for number in range(many):
        if number % 2:
            through = peer.connect(client=DEAF)
            receiver, sender = through.client, through.server
        else:
            through = peer.connect(server=DEAF)
            receiver, sender = through.server, through.client
        receiver.stop()
        sender.write(peer.octets(much))
    peer.wait(15.0)
    octets = peer.octets(SHORT)
    for end in (before.client, before.server):
        end.write(octets)
    port, _ = peer.listen(welcome=lambda end: end.write(octets))
    client = peer.call(port)
    client.write(octets)
    peer.run(lambda: len(client.got) >= SHORT, 40.0)
    quiet(peer, 12.0)


@case("PEP-RX-001", "PEP-RX-002")
def test_flood_of_syns_that_are_answered(peer: Peer) -> None:
    """Clients that do not exist call a server that answers."""
    through = peer.connect()
    both_ways(peer, through, 2000)
    port, _ = peer.listen()
    flood(peer, through, port, network=2, rest=20.0, within=60.0)
