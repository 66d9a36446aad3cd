"""What a box remembers: of one event until the next, and of one connection in another."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.steps import (
    SHORT,
    both_ways,
    close,
    established,
    narrow,
    quiet,
    run_until_got,
    signed,
)
from bentpipe_conformance.protocols.pep.end import Offer
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, Tcp

TIMES = 14
"""Timeouts, each answered: one more than a connection outlives in a row."""

OTHERS = 3
"""Third octet of the addresses of other clients."""

SILENT_S = 400.0
"""Seconds in which a box has given up a caller that does not complete its handshake."""


@case("PEP-RE-017", "PEP-LR-004")
def test_established_timeouts_that_are_answered(peer: Peer) -> None:
    """Each of many segments to an end is lost once, and all its repetitions arrive."""
    through = established(peer)
    for receiver, sender in ((through.server, through.client), (through.client, through.server)):
        lost: set[int] = set()

        def reaches(tcp: Tcp, lost: set[int] = lost) -> bool:
            known = not tcp.payload or tcp.seq in lost
            lost.add(tcp.seq)
            return known

        receiver.reached_by = reaches
        for _ in range(TIMES):
            wanted = len(receiver.got) + 100
            sender.write(peer.octets(100))
            peer.run(lambda it=receiver, most=wanted: len(it.got) >= most, 20.0)  # type: ignore[misc]
        receiver.reached_by = lambda _: True
    both_ways(peer, through, 2000)
    quiet(peer)


@case("PEP-RE-016")
def test_closed_fin_repeated_for_long(peer: Peer) -> None:
    """The end that has closed last repeats its FIN every 25 s, as if nothing had reached it."""
    through = established(peer)
    close(peer, through.client, through.server)
    for _ in range(4):
        peer.wait(25.0)
        through.server.segment(FIN | ACK, len(through.server.written))
    quiet(peer)


@case("PEP-RE-008", needs=("opening=late",), lasts=SILENT_S)
def test_opening_client_never_completes(peer: Peer) -> None:
    """A client whose SYN the server has answered says no more, until the box gives it up."""
    port, _ = peer.listen()
    peer.call(port).vanish()
    quiet(peer, SILENT_S)


@case("PEP-OP-013", "PEP-RE-017")
def test_opening_server_greets_before_the_handshake_ends(peer: Peer) -> None:
    """A server says little at once, and the client's last segment of the handshake is late."""
    for octets in (1, 100, 1448):
        port, _ = peer.listen(welcome=lambda end, few=octets: end.write(peer.octets(few)))  # type: ignore[misc]
        client = peer.call(port)
        client.reached_by = lambda _: False
        peer.wait(3.0 * peer.rtt + 0.3)
        client.reached_by = lambda _: True
        quiet(peer, 12.0)


@case("PEP-LR-001", "PEP-RE-017", "PEP-TR-009")
def test_established_clocks_wrap(peer: Peer) -> None:
    """The clocks of both ends' timestamps begin anew in the midst of a connection."""
    offer = Offer(wraps_s=3.0)
    through = peer.connect(offer, offer)
    for _ in range(4):
        both_ways(peer, through, 3000)
        peer.wait(1.5)
    quiet(peer)


@case("PEP-OP-010")
def test_opening_call_beside_one_that_waits(peer: Peer) -> None:
    """A server does not answer, and is called at another port when the first call is 8 s old."""
    peer.call(peer.listen("nothing")[0])
    peer.wait(8.0)
    peer.call(peer.listen("nothing")[0])
    peer.wait(12.0)


@case("PEP-TR-013")
def test_closed_ports_used_again_by_a_signed_call(peer: Peer) -> None:
    """A connection whose ends sign by MD5 has the ports of one that ended a minute ago."""
    through = established(peer)
    close(peer, through.client, through.server)
    peer.wait(70.0)
    through.client.vanish()
    through.server.vanish()
    signed(peer, through.client.local, through.client.remote)


@case("PEP-PC-007")
def test_closed_packets_were_too_big(peer: Peer) -> None:
    """Packets were too big for one side; other connections of the same hosts follow."""
    for back in (False, True):
        through = established(peer)
        end = through.client if back else through.server
        narrow(peer, end, CLIENT if back else SERVER, 600)
        for one in (through.client, through.server):
            one.write(peer.octets(SHORT))
        run_until_got(peer, through, 2000 + SHORT, 60.0)
        end.reached_by = lambda _: True
        both_ways(peer, peer.connect(), SHORT)
    quiet(peer)


@case("PEP-SEC-005", needs=("opening=early",))
def test_opening_port_refused_again(peer: Peer) -> None:
    """A port refuses at once, 40 s later, and 40 s after that."""
    port, _ = peer.listen("refuse")
    for _ in range(3):
        peer.call(port)
        peer.wait(40.0)


@case("PEP-SEC-005", needs=("opening=early",))
def test_opening_port_refused_to_another(peer: Peer) -> None:
    """A port refuses one client; the others and this one ask again, for 50 s, also by turns."""
    others = [f"10.78.{OTHERS}.{number}" for number in (1, 2)]
    for first in (peer.address, others[0]):
        port, _ = peer.listen("refuse")
        own = peer.own_port()
        peer.call(port, own_port=own, address=first)
        for seconds, address in (5.0, others[1]), (5.0, peer.address), (38.0, others[0]):
            peer.wait(seconds)
            peer.call(port, own_port=own + (address == first), address=address)
        quiet(peer)
