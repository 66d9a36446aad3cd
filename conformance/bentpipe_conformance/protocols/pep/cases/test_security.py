"""Security considerations (PEP-SEC, section 12)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.steps import (
    HOP,
    established,
    quiet,
    run_until_got,
    unreachable,
)
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, PSH, RST, SYN, Tcp, build

FAR = (1 << 20, 1 << 28, 1 << 31)
"""Distances of guesses that lie outside each window."""

GUESSES = {
    SYN: (-100, 0, 1000, FAR[0], FAR[2]), SYN | ACK: (1000,), RST: (1, 1000, FAR[0]),
    ACK | PSH: (FAR[0], FAR[1]),
}  # fmt: skip
"""What may be guessed, by its flags: distances from the number that is the next one."""

LONG_QUIET_S = 660.0


def _open(peer: Peer) -> Through:
    through = established(peer, 3000)
    peer.wait(1.0)
    return through


def _sides(through: Through) -> tuple[tuple[End, str], ...]:
    return ((through.client, CLIENT), (through.server, SERVER))


def _guess(peer: Peer, side: str, made: Tcp, distance: int) -> None:
    """A segment arrives whose number lies at a distance from the right one."""
    peer.send(side, build(replace(made, seq=(made.seq + distance) % MODULUS)))
    peer.wait(0.3)


def _go_on(peer: Peer, through: Through) -> None:
    """Both ends send, whether anything arrives or not."""
    peer.wait(2.0)
    for end, _ in _sides(through):
        end.write(peer.octets(3000))
    run_until_got(peer, through, 6000, 25.0)
    quiet(peer)


@case("PEP-SEC-001")
def test_established_guessed_reset(peer: Peer) -> None:
    """RSTs arrive whose numbers lie within the window, or outside."""
    through = _open(peer)
    for end, side in _sides(through):
        for distance in (1, 1000, *FAR):
            _guess(peer, side, end.next_segment(b"", RST), distance)
    _go_on(peer, through)


@case("PEP-SEC-002")
def test_established_guessed_syn(peer: Peer) -> None:
    """SYNs arrive on an open connection."""
    through = _open(peer)
    for end, side in _sides(through):
        for distance in (0, 1000, *FAR):
            _guess(peer, side, replace(end.next_segment(b"", SYN), mss=1460), distance)
    _go_on(peer, through)


def _after(peer: Peer, seconds: float) -> None:
    """Connections that have been quiet get one guess each, from either side."""
    guesses = [(way, flags, distance) for way in (0, 1)
               for flags, distances in GUESSES.items() for distance in distances]  # fmt: skip
    found = [(peer.connect(), *guess) for guess in guesses]
    for through, *_ in found:
        for end, _ in _sides(through):
            end.write(peer.octets(3000))
    peer.run(lambda: all(it.server.acked == it.client.acked == 3000 for it, *_ in found), 25.0)
    peer.wait(seconds)
    for through, way, flags, distance in found:
        end, side = _sides(through)[way]
        made = end.next_segment(peer.octets(300) if flags == ACK | PSH else b"", flags)
        if flags & SYN:
            made = replace(made, mss=1460, tsval=None, tsecr=None)
        peer.send(side, build(replace(made, seq=(made.seq + distance) % MODULUS)))
        peer.wait(0.1)
    peer.wait(2.0)
    for through, *_ in found:
        for end, _ in _sides(through):
            end.write(peer.octets(500))
    peer.run(
        lambda: all(len(end.got) >= 3500 for it, *_ in found for end in (it.client, it.server)),
        25.0,
    )
    quiet(peer)


@case("PEP-SEC-001", "PEP-SEC-002", "PEP-SEC-003")
def test_quiet_guesses_after_5_seconds(peer: Peer) -> None:
    """Guesses of each kind arrive on connections that have been quiet for 5 s."""
    _after(peer, 5.0)


@case("PEP-SEC-001", "PEP-SEC-002", "PEP-SEC-003")
def test_quiet_guesses_after_40_seconds(peer: Peer) -> None:
    """Guesses of each kind arrive on connections that have been quiet for 40 s."""
    _after(peer, 40.0)


@case("PEP-SEC-001", "PEP-SEC-002", "PEP-SEC-003", lasts=LONG_QUIET_S)
def test_quiet_guesses_after_11_minutes(peer: Peer) -> None:
    """Guesses of each kind arrive on connections that have been quiet for 11 minutes."""
    _after(peer, LONG_QUIET_S)


@case("PEP-SEC-003")
def test_established_guessed_data(peer: Peer) -> None:
    """Octets arrive from outside the window, or acknowledge what was never sent."""
    through = _open(peer)
    for end, side in _sides(through):
        for distance in FAR:
            made = end.next_segment(peer.octets(300), ACK | PSH)
            _guess(peer, side, made, distance)
            if distance < 1 << 30:  # what lies further ahead may be taken for old
                peer.send(side, build(replace(made, ack=(made.ack + distance) % MODULUS)))
                peer.wait(0.3)
    _go_on(peer, through)


@case("PEP-SEC-004")
def test_established_guessed_message(peer: Peer) -> None:
    """ICMP messages quote numbers that are not outstanding."""
    through = _open(peer)
    for end, side in _sides(through):
        for code, mtu in ((1, 0), (2, 0), (3, 0), (4, 600)):
            for distance in (0, *FAR):
                seq = (end.next_segment(b"").ack + distance) % MODULUS
                here, there = end.local, end.remote
                quoted = Tcp(there[0], here[0], there[1], here[1], seq, 0, ACK, 100, b"x" * 1400)
                peer.send(side, unreachable(build(quoted), HOP, there[0], code, mtu))
                peer.wait(0.1)
    for end, _ in _sides(through):
        end.write(peer.octets(30_000))
    _go_on(peer, through)


@case("PEP-SEC-004")
def test_established_message_about_what_was_acknowledged(peer: Peer) -> None:
    """ICMP messages quote numbers that were outstanding once, and are no more."""
    through = _open(peer)
    for end, side in _sides(through):
        old = next(it for it in end.seen if it.payload)
        for code, mtu in ((2, 0), (3, 0), (4, 600)):
            peer.send(side, unreachable(build(old), HOP, old.src, code, mtu))
            peer.wait(0.1)
    for end, _ in _sides(through):
        end.write(peer.octets(30_000))
    _go_on(peer, through)


@case("PEP-SEC-007")
def test_established_malformed_packets(peer: Peer) -> None:
    """Packets arrive that cannot be."""
    through = _open(peer)
    for end, side in _sides(through):
        whole = build(end.next_segment(peer.octets(40), ACK))
        offset, options = bytearray(whole), bytearray(whole)
        offset[32] = 0xF0
        short = bytearray(whole[:30])
        short[2:4] = (30).to_bytes(2, "big")
        options[40:42] = bytes((8, 1))
        for flags in (0, 0x3F, SYN | RST, SYN | 1):
            made = end.next_segment(b"", ACK)
            peer.send(side, build(replace(made, flags=flags, seq=(made.seq + (1 << 29)) % MODULUS)))
        endless = build(end.next_segment(b"", ACK), bytes((254, 1, 0, 0)))
        peer.send(side, endless)
        for packet in (offset, options, short, whole[:19], b"\x45", b"\x60" + whole[1:]):
            peer.send(side, bytes(packet))
        peer.wait(0.5)
    _go_on(peer, through)
