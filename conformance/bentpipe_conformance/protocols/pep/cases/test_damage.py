"""Segments with errors, and segments that are odd and right (PEP-RE-015, PEP-LR, PEP-TR-012)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.damage import ODD, ODD_IN_SYN, WRONG, Change
from bentpipe_conformance.protocols.pep.cases.steps import both_ways, established, quiet
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH, RST, SYN, Tcp, build


def _sides(through: Through) -> tuple[tuple[End, str], tuple[End, str]]:
    return (through.client, CLIENT), (through.server, SERVER)


@case("PEP-RE-015")
def test_established_segments_with_any_error(peer: Peer) -> None:
    """Octets, a FIN and a RST arrive on either side with each kind of wrong checksum."""
    through = established(peer)
    for end, side in _sides(through):
        for change in WRONG.values():
            for flags, octets in ((ACK | PSH, 200), (FIN | ACK, 0), (RST, 0), (RST | ACK, 0)):
                right = build(end.next_segment(peer.octets(octets), flags))
                peer.send(side, change(right))
            peer.wait(0.2)
    peer.wait(1.0)
    both_ways(peer, through, 2000)
    quiet(peer, 4.0)


@case("PEP-RE-015")
def test_opening_segments_with_any_error(peer: Peer) -> None:
    """SYNs arrive with each kind of wrong checksum, and SYN-ACKs; the right ones do not."""
    for change in WRONG.values():
        port, _ = peer.listen()
        client = peer.draft(port)
        made: list[Tcp] = []
        client.segment(SYN, -1, changed=partial(_kept, made))
        peer.send(CLIENT, change(build(made[0])))
        client.vanish()
    peer.wait(2.0)
    for change in WRONG.values():
        port, listener = peer.listen("nothing")
        peer.call(port)
        peer.run(lambda it=listener: bool(it.syns), 5.0)  # type: ignore[misc]
        if listener.syns:
            syn = listener.syns[0]
            flags = SYN | ACK
            answer = Tcp(
                syn.dst, syn.src, syn.dport, syn.sport, 7000, syn.seq + 1 & 0xFFFFFFFF, flags, 9000,
                b"",
            )  # fmt: skip
            peer.send(SERVER, change(build(replace(answer, mss=1460))))
    peer.wait(2.5)


def _kept(made: list[Tcp], tcp: Tcp) -> None:
    made.append(tcp)


@case("PEP-LR-001", "PEP-TR-012")
def test_established_odd_segments(peer: Peer) -> None:
    """Octets arrive on either side in segments that have what nobody needs to understand."""
    through = established(peer)
    for end, side in _sides(through):
        for change in ODD.values():
            _said(peer, end, side, change)
    both_ways(peer, through, 2000)
    quiet(peer, 4.0)


def _said(peer: Peer, end: End, side: str, change: Change) -> None:
    """An end sends octets in a segment that is changed; if need be it repeats them unchanged."""
    octets = peer.octets(150)
    packet = build(end.next_segment(octets, ACK | PSH))
    end.skip(octets)
    peer.send(side, change(packet))
    peer.wait(0.7)


@case("PEP-LR-001", "PEP-TR-012")
def test_opening_odd_syns(peer: Peer) -> None:
    """Clients call with SYNs that have what nobody needs to understand."""
    for change in ODD_IN_SYN.values():
        port, listener = peer.listen()
        client = peer.draft(port)
        made: list[Tcp] = []
        client.segment(SYN, -1, changed=partial(_kept, made))
        peer.send(CLIENT, change(build(replace(made[0], tsval=None, tsecr=None))))
        through = peer.opened(client, listener)
        both_ways(peer, through, 500)
    quiet(peer, 4.0)
