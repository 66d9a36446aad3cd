"""The link rate: what leaves when there is more to send than it takes."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.rwbp.gateway import AMPLE
from bentpipe_conformance.protocols.rwbp.peer import Peer


@case("RWBP-LC-011", needs=("link_rate",))
def test_three_connections_at_once(peer: Peer) -> None:
    """Three connections have a window each, and acknowledgments leave beside their data."""
    peer.behind_the_link().grant(AMPLE)
    connections = [peer.connect() for _ in range(3)]
    for _ in range(3):
        for connection in connections:
            connection.send_data(100)
            connection.receive_more(8)
