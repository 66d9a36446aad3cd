"""Links that carry smaller packets, on either side and more than once (PEP-PC-005, -007)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.pep.cases.steps import HOP, established, quiet, unreachable
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import Tcp, build

NARROWER = (1200, 900, 700)
PIECE = 30_000
"""Octets that are sent on each path; more than a first window."""

SMALL = ((600, 0), (500, 500), (300, 300))
"""What a path carries, and what messages name: none, or less than hosts like to believe."""
FEW = 4000
ADAPTED_S = 140.0
"""Seconds in which any box has found a size that fits, or none."""

_TOO_BIG = 4
_FLAGS, _DONT_FRAGMENT = 6, 0x40
"""Of an IPv4 header (RFC 791)."""
_LESS_THAN_ANY_LINK = 40
"""RFC 791: every link carries 68 octets."""


class Narrow:
    """A path to an end; of each packet that does not fit a message tells.

    Args:
        peer: the tester.
        end: to which the path leads.
        side: of that end.

    Attributes:
        mtu: octets that fit; what may be cut in fragments fits always.
        named: what messages name in its place, as old routers do; None for itself.
        silent: whether nothing reaches the end, although messages tell.
    """

    def __init__(self, peer: Peer, end: End, side: str) -> None:
        self.mtu = 1500
        self.named: int | None = None
        self.silent = False
        self._peer, self._side, self._end = peer, side, end
        end.reached_by = self._reaches

    def _reaches(self, tcp: Tcp) -> bool:
        packet = build(tcp)
        if len(packet) > self.mtu and self._end.carrier[_FLAGS] & _DONT_FRAGMENT:
            named = self.mtu if self.named is None else self.named
            message = unreachable(packet, HOP, tcp.src, _TOO_BIG, named)
            self._peer.send(self._side, message)
            return False
        return not self.silent


def _ways(peer: Peer) -> list[tuple[End, End, Narrow]]:
    """Sender, receiver and the path to the latter, of a connection for each way."""
    up, down = established(peer), established(peer)
    return [
        (up.client, up.server, Narrow(peer, up.server, SERVER)),
        (down.server, down.client, Narrow(peer, down.client, CLIENT)),
    ]


def _get(peer: Peer, sender: End, receiver: End, wanted: int) -> None:
    peer.run(lambda: len(receiver.got) >= wanted or sender.was_reset, 60.0)
    if sender.was_reset:
        raise NotReached("the connection was reset")


@case("PEP-PC-005", "PEP-PC-007")
def test_packets_to_the_server_become_too_big_again_and_again(peer: Peer) -> None:
    """The path to the server carries less and less, and each time a message tells so."""
    _narrower(peer, 0)


@case("PEP-PC-005", "PEP-PC-007")
def test_packets_to_the_client_become_too_big_again_and_again(peer: Peer) -> None:
    """The same for the path to the client."""
    _narrower(peer, 1)


def _narrower(peer: Peer, way: int) -> None:
    """One way to a case: hosts remember by address what a path carries (RFC 1191 section 5)."""
    sender, receiver, path = _ways(peer)[way]
    receiver.write(peer.octets(PIECE))
    for mtu in NARROWER:
        path.mtu = mtu
        sender.write(peer.octets(PIECE))
        _get(peer, sender, receiver, len(sender.written))
        receiver.write(peer.octets(PIECE))
    quiet(peer)


@case("PEP-PC-005")
def test_packets_become_too_big_while_nothing_arrives(peer: Peer) -> None:
    """A path that carries nothing for 6 s carries smaller packets then; a message has told so."""
    for sender, receiver, path in _ways(peer):
        path.silent = True
        sender.write(peer.octets(PIECE))
        peer.wait(1.0)
        path.mtu = NARROWER[0]
        peer.wait(5.0)
        path.silent = False
        _get(peer, sender, receiver, len(sender.written))
        quiet(peer, 4.0)


@case("PEP-PC-005")
def test_established_message_names_less_than_any_link_carries(peer: Peer) -> None:
    """A message about outstanding octets names an MTU of 40, or none; all packets fit."""
    for sender, receiver, _ in _ways(peer):
        for mtu in (_LESS_THAN_ANY_LINK, 0):
            receiver.acknowledging = False
            sender.write(peer.octets(3000))
            _get(peer, sender, receiver, len(sender.written))
            first = next(it for it in reversed(receiver.seen) if it.payload)
            side = SERVER if receiver.local[0] == peer.server else CLIENT
            peer.send(side, unreachable(build(first), HOP, first.src, _TOO_BIG, mtu))
            peer.wait(0.2)
            receiver.acknowledging = True
            receiver.acknowledge()
            peer.wait(3.0)
            sender.write(peer.octets(100))
            _get(peer, sender, receiver, len(sender.written))
        quiet(peer)


@case("PEP-PC-005")
def test_packets_become_too_big_for_small_links(peer: Peer) -> None:
    """Paths carry 600, 500 and 300 octets; messages name that, or nothing as old routers do."""
    pairs = [(way, small) for small in SMALL for way in _ways(peer)]
    for (sender, _, path), (mtu, named) in pairs:
        path.mtu, path.named = mtu, named
        sender.write(peer.octets(FEW))
    receivers = [(sender, receiver) for (sender, receiver, _), _ in pairs]
    peer.run(lambda: all(len(it.got) >= len(sender.written) for sender, it in receivers), ADAPTED_S)
    quiet(peer)
