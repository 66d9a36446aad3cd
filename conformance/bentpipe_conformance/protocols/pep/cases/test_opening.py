"""Opening (PEP-OP, section 5)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import SERVER
from bentpipe_conformance.protocols.pep.cases.steps import (
    SHORT,
    both_ways,
    close,
    quiet,
    transfer,
    unreachable,
)
from bentpipe_conformance.protocols.pep.end import Offer
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import SYN, build

REASONS = (*range(4), *range(5, 16))
"""Codes of "destination unreachable" (RFC 792, RFC 1122, RFC 1812) but of what is too big."""


@case(
    "PEP-OP-001", "PEP-OP-004", "PEP-TR-001", "PEP-TR-002", "PEP-TR-003", "PEP-TR-009",
    "PEP-RE-003", "PEP-RE-004", "PEP-LR-006", "PEP-LR-007", "PEP-FB-003",
)  # fmt: skip
def test_closed_client_calls(peer: Peer) -> None:
    """A connection opens, carries octets both ways and ends."""
    through = peer.connect()
    both_ways(peer, through)
    close(peer, through.client, through.server)
    quiet(peer)


@case("PEP-OP-002", needs=("opening=early",))
def test_closed_client_calls_early(peer: Peer) -> None:
    """The client is answered at once."""
    both_ways(peer, peer.connect())


@case("PEP-OP-001")
def test_closed_server_is_slow(peer: Peer) -> None:
    """The server answers after 5 s."""
    port, listener = peer.listen("nothing")
    client = peer.call(port)
    peer.wait(5.0)
    listener.answer = "accept"
    through = peer.opened(client, listener)
    both_ways(peer, through)


@case("PEP-OP-003")
def test_opening_syn_repeated(peer: Peer) -> None:
    """The client repeats its SYN while the server does not answer, and later."""
    port, listener = peer.listen("nothing")
    client = peer.call(port)
    for _ in range(3):
        peer.wait(0.7)
        client.segment(SYN, -1)
    listener.answer = "accept"
    through = peer.opened(client, listener)
    client.segment(SYN, -1)
    both_ways(peer, through)


@case("PEP-OP-005", needs=("opening=late",))
def test_opening_server_refuses(peer: Peer) -> None:
    """The server refuses the connection."""
    port, _ = peer.listen("refuse")
    peer.call(port)
    quiet(peer)


@case("PEP-OP-008", needs=("opening=early",))
def test_opening_server_refuses_what_is_open(peer: Peer) -> None:
    """The server refuses a connection that the client has already."""
    port, _ = peer.listen("refuse")
    client = peer.call(port)
    client.write(peer.octets(500))
    quiet(peer)


@case("PEP-OP-006", "PEP-OP-010")
def test_opening_server_is_silent(peer: Peer) -> None:
    """The server does not answer for a while."""
    port, _ = peer.listen("nothing")
    peer.call(port)
    peer.wait(18.0)


@case("PEP-OP-007")
def test_opening_server_unreachable(peer: Peer) -> None:
    """An ICMP message says that the server cannot be reached."""
    port, listener = peer.listen("nothing")
    peer.call(port)
    peer.until(lambda: bool(listener.syns), "a SYN at the server")
    message = unreachable(build(listener.syns[0]), "10.77.255.1", peer.address, 1)
    peer.send(SERVER, message)
    quiet(peer, 12.0)


@case("PEP-OP-007")
def test_opening_server_unreachable_for_each_reason(peer: Peer) -> None:
    """ICMP messages with each code but that of a packet that is too big answer a call each."""
    for code in REASONS:
        port, listener = peer.listen("nothing")
        peer.call(port)
        peer.until(lambda it=listener: bool(it.syns), "a SYN at the server")  # type: ignore[misc]
        message = unreachable(build(listener.syns[0]), "10.77.255.1", peer.address, code)
        peer.send(SERVER, message)
    quiet(peer, 12.0)


@case("PEP-OP-009", needs=("opening=early",))
def test_opening_octets_before_the_server_answers(peer: Peer) -> None:
    """The client sends before the server has answered."""
    port, listener = peer.listen("nothing")
    client = peer.call(port)
    peer.until(lambda: client.established, "an early answer")
    client.write(peer.octets(3000))
    peer.wait(2.0)
    listener.answer = "accept"
    through = peer.opened(client, listener)
    peer.until(lambda: len(through.server.got) >= 3000, "the octets at the server", 30.0)
    both_ways(peer, through)


@case("PEP-OP-011")
def test_opening_client_gives_up(peer: Peer) -> None:
    """The client resets before the server has answered."""
    port, listener = peer.listen("nothing")
    client = peer.call(port)
    peer.until(lambda: bool(listener.syns), "a SYN at the server")
    client.reset()
    peer.wait(3.0)
    listener.answer = "accept"
    # A SYN that the box has sent before may still be answered.
    peer.answer(listener, listener.syns[-1])
    quiet(peer, 10.0)


@case("PEP-OP-012")
def test_opening_octets_on_the_syn(peer: Peer) -> None:
    """The client's SYN carries octets."""
    port, listener = peer.listen()
    client = peer.draft(port)
    octets = peer.octets(400)
    client.written += octets
    client.segment(SYN, -1, octets)
    client.due = peer.now() + 1.0
    through = peer.opened(client, listener)
    peer.until(lambda: len(through.server.got) >= 400, "the octets at the server", 30.0)
    both_ways(peer, through)
    quiet(peer)


@case("PEP-OP-013")
def test_opening_server_speaks_first(peer: Peer) -> None:
    """The server sends as soon as the connection is open for it."""
    octets = peer.octets(2000)
    port, _ = peer.listen(welcome=lambda end: end.write(octets))
    client = peer.call(port)
    peer.run(lambda: len(client.got) >= 2000, peer.patience)
    quiet(peer)


@case("PEP-SEC-005", needs=("opening=early",))
def test_opening_port_refused_before(peer: Peer) -> None:
    """Another client calls a port that has been refused."""
    port, _ = peer.listen("refuse")
    peer.call(port)
    peer.wait(5.0)
    peer.call(port)
    quiet(peer, 5.0)


@case("PEP-TR-011")
def test_opening_syn_without_options(peer: Peer) -> None:
    """The client's SYN has no option, and then only some."""
    bare = Offer(mss=None, scale=None, sack=False, timestamps=False)
    both_ways(peer, peer.connect(bare))
    for missing in ({"scale": None}, {"sack": False}, {"timestamps": False}):
        transfer_of(peer, Offer(**missing))


def transfer_of(peer: Peer, offer: Offer) -> None:
    """One connection of a client with an offer."""
    through = peer.connect(offer)
    transfer(peer, through.client, through.server, SHORT // 10)


@case("PEP-SEC-008", "PEP-FB-011")
def test_opening_one_after_another(peer: Peer) -> None:
    """Five connections open one after another."""
    for _ in range(5):
        through = peer.connect()
        transfer(peer, through.client, through.server, 1000)
