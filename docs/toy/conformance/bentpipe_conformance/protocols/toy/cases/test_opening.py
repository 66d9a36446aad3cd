"""Opening a connection."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.toy.connection import Connection
from bentpipe_conformance.protocols.toy.peer import Peer


@case("TOY-CON-001")
def test_idle_open(peer: Peer) -> None:
    """An OPEN for a service is answered."""
    peer.connect("discard")


@connected("TOY-CON-001", to="discard")
def test_open_repeated_open(connection: Connection) -> None:
    """A repeated OPEN, whose ACCEPT was lost, is answered again."""
    connection.open()
    connection.wait(2 * connection.rtt)
