"""Calls that the client does not help, or the server refuses late (PEP-OP, section 5)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.pep.cases.steps import quiet
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import SYN


def _calls_once(peer: Peer, port: int) -> End:
    """A client that does not repeat its SYN."""
    client = peer.draft(port)
    client.segment(SYN, -1)
    return client


@case("PEP-OP-006", "PEP-OP-010")
def test_opening_server_is_silent_and_client_waits(peer: Peer) -> None:
    """The server does not answer for a while, and the client sends one SYN only."""
    port, _ = peer.listen("nothing")
    _calls_once(peer, port)
    peer.wait(18.0)


@case("PEP-OP-005", needs=("opening=late",))
def test_opening_server_refuses_late(peer: Peer) -> None:
    """The server refuses the connection when it is called again."""
    _refuses_late(peer)


@case("PEP-OP-008", needs=("opening=early",))
def test_opening_server_refuses_late_what_is_open(peer: Peer) -> None:
    """The server refuses a connection that the client has already, when it is called again."""
    _refuses_late(peer)


def _refuses_late(peer: Peer) -> None:
    port, listener = peer.listen("nothing")
    client = _calls_once(peer, port)
    peer.until(lambda: bool(listener.syns), "a SYN at the server")
    if client.established:
        client.write(peer.octets(500))
    listener.answer = "refuse"
    peer.until(lambda: len(listener.syns) > 1, "another SYN at the server", 30.0)
    quiet(peer)
