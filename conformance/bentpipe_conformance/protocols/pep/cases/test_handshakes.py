"""Handshakes that are odd and right, and ports in common (PEP-OP, section 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import SERVER
from bentpipe_conformance.protocols.pep.cases.steps import both_ways, quiet
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.mishap import DOWN, Mishap
from bentpipe_conformance.protocols.pep.peer import Listener, Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN, Tcp

NO_ROOM = Offer(buffer=0)
ROOM = 20_000
LONG_S = 100.0
REPEATED = 30


def _finish(peer: Peer, *ends: End) -> None:
    """The ends say what they had to say, and end."""
    for end in ends:
        end.write(peer.octets(2000))
        end.close()
    peer.run(lambda: all(end.is_over for end in ends), 40.0)


@case("PEP-RE-017")
def test_opening_server_has_no_room(peer: Peer) -> None:
    """The server answers with a closed window, which it opens after 4 s."""
    _without_room(peer, 1)


@case("PEP-RE-017")
def test_opening_client_has_no_room(peer: Peer) -> None:
    """The client's handshake closes its window, which it opens after 4 s."""
    _without_room(peer, 0)


def _without_room(peer: Peer, which: int) -> None:
    offers = [Offer(), Offer()]
    offers[which] = NO_ROOM
    through = peer.connect(*offers)
    ends = through.client, through.server
    for end in ends:
        end.write(peer.octets(5000))
    peer.wait(4.0)
    ends[which].offer = replace(NO_ROOM, buffer=ROOM)
    ends[which].go_on()
    peer.run(lambda: all(len(end.got) >= 5000 for end in ends), 70.0)
    _finish(peer, *ends)
    quiet(peer)


@case("PEP-FB-006", "PEP-FB-010")
def test_opening_no_room_for_long(peer: Peer) -> None:
    """Servers and clients have no room from their handshake on, and answer probes for 100 s.

    One octet waits for them, or many; nobody, the receiver or the sender has ended its stream.
    """
    found = []
    for which, octets, ended in product((0, 1), (1, ROOM), (None, 0, 1)):
        offers = [Offer(), Offer()]
        offers[which] = NO_ROOM
        through = peer.connect(*offers)
        ends = through.client, through.server
        ends[1 - which].write(peer.octets(octets))
        if ended is not None:
            ends[ended].close()
        found.append((ends[which], octets))
    peer.wait(LONG_S)
    for end, _ in found:
        end.offer = replace(NO_ROOM, buffer=ROOM)
        end.go_on()
    peer.run(lambda: all(len(end.got) >= octets for end, octets in found), 70.0)
    quiet(peer)


@case("PEP-OP-012", "PEP-TR-001", "PEP-RE-017")
def test_opening_octets_on_the_answer(peer: Peer) -> None:
    """The server's answer carries octets, which the box may take or leave unacknowledged."""
    port, listener = peer.listen()
    peer.mishaps = [Mishap(port, SERVER, DOWN, "SYN", "lost", {"up": 1, "down": 1})]

    def answers_again(end: End) -> None:
        octets = peer.octets(300)
        end.written += octets
        end.segment(SYN | ACK, -1, octets)

    listener.welcome = answers_again
    through = peer.opened(peer.call(port), listener)
    peer.mishaps = []
    both_ways(peer, through, 1000)
    _finish(peer, through.client, through.server)
    quiet(peer)


@case("PEP-RE-006", needs=("opening=late",))
def test_opening_client_refuses_the_answer(peer: Peer) -> None:
    """The client answers the SYN-ACK with a RST, as a host does that has gone on meanwhile."""
    port, listener = peer.listen()
    client = peer.call(port)
    client.reached_by = lambda _: False
    peer.run(lambda: bool(listener.ends), 4.0)
    client.reached_by = _resets(client)
    peer.run(lambda: not client.alive, 8.0)
    quiet(peer)


def _resets(client: End) -> Callable[[Tcp], bool]:
    def reaches(tcp: Tcp) -> bool:
        if client.alive and tcp.flags & (SYN | ACK) == SYN | ACK:
            client.established = True
            client.reset()
        return False

    return reaches


@case("PEP-OP-003", "PEP-RE-017")
def test_opening_syn_repeated_many_times(peer: Peer) -> None:
    """A client's SYN arrives thirty times, while its server does not answer and when it has."""
    port, listener = peer.listen("nothing")
    client = peer.call(port)
    for _ in range(REPEATED // 2):
        client.segment(SYN, -1)
        peer.wait(0.1)
    listener.answer = "accept"
    for _ in range(REPEATED // 2):
        client.segment(SYN, -1)
        peer.wait(0.1)
    through = peer.opened(client, listener)
    both_ways(peer, through, 2000)
    _finish(peer, client, through.server)
    quiet(peer)


@case("PEP-TR-001", "PEP-TR-003", "PEP-RE-017")
def test_established_ports_in_common(peer: Peer) -> None:
    """Connections share the client's port, or the server's; one of each kind is reset, or ends."""
    found = [*_of_one_client_port(peer, 4), *_of_one_server_port(peer, 4)]
    for through in found:
        both_ways(peer, through, 1000)
    for through in found[::4]:
        through.client.reset()
    for through in found[1::4]:
        through.server.reset()
    for through in found[2::4]:
        _finish(peer, through.client, through.server)
    for through in found[3::4]:
        both_ways(peer, through, 3000)
        _finish(peer, through.client, through.server)
    quiet(peer)


def _of_one_client_port(peer: Peer, count: int) -> list[Through]:
    own = peer.new_port()
    return [peer.connect(own_port=own) for _ in range(count)]


def _of_one_server_port(peer: Peer, count: int) -> list[Through]:
    port, listener = peer.listen()
    return [_opened(peer, peer.call(port), listener) for _ in range(count)]


def _opened(peer: Peer, client: End, listener: Listener) -> Through:
    made = len(listener.ends)
    peer.until(
        lambda: client.established and len(listener.ends) > made
        and listener.ends[-1].established,
        "a connection to a port that others have, too",
    )  # fmt: skip
    return Through(client, listener.ends[-1])
