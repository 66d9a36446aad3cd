"""Options of SYNs, fragments and overlaps as paths make them (PEP-TR section 4, PEP-RE-015)."""

from __future__ import annotations

from socket import inet_aton

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.codec import UDP, build_ipv4, build_udp
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.steps import (
    SHORT,
    both_ways,
    established,
    fragments,
    opened_with,
    quiet,
    transfer,
    unreachable,
)
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK, PSH, build

CAPABLE = bytes((30, 12, 1, 1)) + bytes(range(8))
JOIN = bytes((30, 12, 0x10, 1)) + bytes(range(8))
PORT_UNREACHABLE = 3


@case("PEP-TR-008")
def test_opening_first_window_is_small(peer: Peer) -> None:
    """The server permits two segments in its SYN-ACK, whose window no scale multiplies.

    It acknowledges nothing for a while, so that this window is the only one that the box knows.
    """
    usual, small = Offer(scale=1), Offer(scale=7, buffer=3000)
    port, listener = peer.listen("accept", small, welcome=_acknowledges_nothing)
    client = peer.call(port, usual)
    through = peer.opened(client, listener)
    client.write(peer.octets(SHORT))
    peer.wait(5.0)
    through.server.acknowledging = True
    through.server.acknowledge()
    peer.run(lambda: len(through.server.got) >= SHORT, 60.0)
    quiet(peer)


def _acknowledges_nothing(end: End) -> None:
    end.acknowledging = False


@case("PEP-TR-014")
def test_established_multipath_is_joined(peer: Peer) -> None:
    """The client has a multipath connection, and its next SYN has MP_JOIN."""
    for option in (CAPABLE, JOIN):
        both_ways(peer, opened_with(peer, option), 2000)
    quiet(peer)


@case("PEP-TR-015")
def test_established_message_about_udp(peer: Peer) -> None:
    """Datagrams with the ports of a connection are not wanted, as an ICMP message says."""
    through = established(peer)
    client, server = through.client, through.server
    ends = {
        CLIENT: ((peer.server, client.remote[1]), (peer.address, client.local[1])),
        SERVER: ((peer.address, server.remote[1]), (peer.server, server.local[1])),
    }
    for _ in range(3):
        for side, ((source, sport), (target, dport)) in ends.items():
            src, dst = inet_aton(source), inet_aton(target)
            datagram = build_udp(src, dst, sport, dport, peer.octets(40))
            quoted = build_ipv4(src, dst, UDP, datagram)
            peer.send(side, unreachable(quoted, target, source, PORT_UNREACHABLE))
        peer.wait(1.0)
    both_ways(peer, through, 2000)
    quiet(peer)


@case("PEP-TR-016")
def test_established_fragments_in_disorder(peer: Peer) -> None:
    """Fragments of a segment arrive last first, or the first of them in the midst of the others."""
    through = established(peer)
    for order in (3, 0, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2):
        for end, side in _sides(through):
            parts = _next_in_fragments(peer, end)
            for index in order:
                peer.send(side, parts[index])
            peer.wait(4.0)
    quiet(peer)


@case("PEP-RE-015")
def test_established_fragments_with_an_error(peer: Peer) -> None:
    """A segment arrives in fragments, one of which was damaged; the right one follows."""
    through = established(peer)
    for end, side in _sides(through):
        *first, last = _next_in_fragments(peer, end)
        for part in (*first, last[:-1] + bytes((last[-1] ^ 1,))):
            peer.send(side, part)
        peer.wait(4.0)
        end.due = peer.now()
        peer.wait(4.0)
    both_ways(peer, through, 2000)
    quiet(peer)


def _sides(through: Through) -> tuple[tuple[End, str], tuple[End, str]]:
    return (through.client, CLIENT), (through.server, SERVER)


def _next_in_fragments(peer: Peer, end: End) -> list[bytes]:
    """A segment of an end in four fragments, which nobody sends again."""
    payload = peer.octets(900)
    packet = build(end.next_segment(payload, ACK | PSH))
    end.skip(payload)
    end.due = None
    return fragments(packet)


@case("PEP-TR-001")
def test_established_segments_that_overlap(peer: Peer) -> None:
    """Octets behind a gap come again in other segments, with those before them or in part."""
    spans = (
        ((400, 800), (0, 600), (600, 1200)),
        ((400, 800), (200, 600), (0, 240), (800, 1200)),
        ((400, 800), (600, 1000), (0, 400), (1000, 1200)),
        ((400, 560), (640, 800), (0, 480), (520, 1200)),
        ((800, 1200), (400, 600), (0, 1000)),
    )
    through = peer.connect()
    for sender, receiver in ((through.client, through.server), (through.server, through.client)):
        transfer(peer, sender, receiver, 1000)
        for parts in spans:
            at = len(sender.written)
            octets = peer.octets(1200)
            sender.skip(octets)
            for start, stop in parts:
                sender.segment(ACK, at + start, octets[start:stop])
                peer.wait(0.1)
            wanted = at + len(octets)
            peer.until(lambda it=receiver.got, all_=wanted: len(it) >= all_, "the octets", 30.0)  # type: ignore[misc]
    quiet(peer)
