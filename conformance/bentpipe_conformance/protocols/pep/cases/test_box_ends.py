"""The box as an end of TCP on each side by itself (PEP-LR, section 8)."""

from __future__ import annotations

from collections.abc import Collection

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.pep.cases.steps import established, losing, quiet
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK

MUCH = 90_000
HELD = 250_000
"""Octets: what the box holds of them when the end goes on fills more than a congestion window."""

ONE, SOME = (12,), (14, 28, 29, 31)
"""Which of the segments with new octets get lost."""

AWAY_S = 0.2
"""Seconds from the box to an end: so that the box has something under way."""

# Windows of whole segments: a short one may be all that a sender has, and would show no window.
FULL = Offer(buffer=45 * 1448, away_s=AWAY_S)
PLAIN = Offer(buffer=44 * 1460, sack=False, timestamps=False, away_s=AWAY_S)


def _each_way(through: Through) -> tuple[tuple[End, End], tuple[End, End]]:
    """Sender and receiver."""
    return (through.client, through.server), (through.server, through.client)


def _lossy(peer: Peer, offer: Offer, lost: Collection[int]) -> None:
    """An end that has not read for a while goes on, and loses some of what the box then sends."""
    for way in (0, 1):
        sender, receiver = _each_way(peer.connect(offer, offer))[way]
        receiver.stop()
        sender.write(peer.octets(HELD))
        peer.wait(5.0)
        receiver.reached_by = losing(lost)
        receiver.go_on()
        peer.run(lambda it=receiver: len(it.got) >= HELD, 40.0)  # type: ignore[misc]
        quiet(peer, 2.0)


@case("PEP-LR-001", "PEP-LR-003", "PEP-LR-008")
def test_established_segments_lost(peer: Peer) -> None:
    """One segment to an end is lost, or some of those that follow each other closely."""
    for lost in (ONE, SOME):
        _lossy(peer, FULL, lost)


@case("PEP-LR-001", "PEP-LR-003")
def test_established_segments_lost_plain(peer: Peer) -> None:
    """The same with ends that have neither SACK nor timestamps."""
    for lost in (ONE, SOME):
        _lossy(peer, PLAIN, lost)


@case("PEP-LR-003", "PEP-LR-004")
def test_established_nothing_reaches_an_end(peer: Peer) -> None:
    """In the midst of a stream nothing reaches the receiver for 8 s, twice."""
    for offer in (FULL, PLAIN):
        for way in (0, 1):
            sender, receiver = _each_way(peer.connect(offer, offer))[way]
            for _ in range(2):
                half, wanted = len(receiver.got) + MUCH // 2, len(receiver.got) + MUCH
                sender.write(peer.octets(MUCH))
                peer.run(lambda it=receiver, most=half: len(it.got) >= most, 20.0)  # type: ignore[misc]
                receiver.reached_by = lambda _: False
                peer.wait(8.0)
                receiver.reached_by = lambda _: True
                peer.run(lambda it=receiver, most=wanted: len(it.got) >= most, 40.0)  # type: ignore[misc]
                if sender.was_reset:
                    raise NotReached("the connection was reset")
            quiet(peer, 2.0)


@case("PEP-LR-008")
def test_quiet_keep_alives(peer: Peer) -> None:
    """Each end asks whether the other is there: by the last octet again, and without it."""
    through = established(peer)
    for end, _ in _each_way(through):
        for octets in (bytes(end.written[-1:]), b"") * 2:
            end.segment(ACK, len(end.written) - 1, octets)
            peer.wait(3.0)
    quiet(peer, 3.0)


@case("PEP-LR-006")
def test_established_two_full_segments(peer: Peer) -> None:
    """Each end sends two full segments now and then, with timestamps and without."""
    for offer in (Offer(), Offer(timestamps=False)):
        through = peer.connect(offer, offer)
        for end, _ in _each_way(through) * 3:
            end.write(peer.octets(2 * end.full))
            peer.wait(1.0)
    quiet(peer, 2.0)


@case("PEP-LR-004")
def test_opening_client_is_silent(peer: Peer) -> None:
    """A client that has sent a SYN says no more."""
    port, _ = peer.listen()
    peer.call(port).vanish()
    quiet(peer, 20.0)
