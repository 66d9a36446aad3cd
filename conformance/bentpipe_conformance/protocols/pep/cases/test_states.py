"""Packets that change nothing, of each kind in each state (PEP-SEC-001 to -003, PEP-RE-017)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.states import BOTH, HOLE, STATES, bring
from bentpipe_conformance.protocols.pep.cases.steps import quiet
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, Tcp, build

FAR = (1 << 20, 1 << 28, 1 << 31)
"""Distances that lie outside each window."""

APART_S = 0.15
BETWEEN_S = 1.5
"""Seconds between two packets, and between kinds of them, so that each answer has its cause."""


def _at(made: Tcp, distance: int) -> Tcp:
    return replace(made, seq=(made.seq + distance) % MODULUS)


def _resets(peer: Peer, it: End) -> Iterator[Tcp]:
    """Beside the next number: in the window, at its edges, at those of what is held, outside."""
    made = it.next_segment(b"", RST)
    window = it.edge - len(it.written)
    for distance in (1, HOLE, 4 * HOLE, window - 1, window, window + 1, *FAR):
        if distance > 0:
            yield _at(made, distance)
            yield replace(_at(made, distance), flags=RST | ACK, ack=it.next_segment(b"").ack)
    if it.acked:
        yield _at(made, -1 - it.closing)
    del peer


def _calls(peer: Peer, it: End) -> Iterator[Tcp]:
    """SYNs and their answers: the first ones again, with octets, and others."""
    made = it.next_segment(b"", ACK)
    first = replace(made, seq=it.iss, mss=1460, tsval=None, tsecr=None)
    for flags in (SYN, SYN | ACK):
        for seq in (it.iss, made.seq, made.seq + 1000, made.seq + FAR[0], made.seq + FAR[2]):
            yield replace(first, flags=flags, seq=seq % MODULUS)
    yield replace(first, flags=SYN, seq=made.seq, payload=peer.octets(50))


def _octets(peer: Peer, it: End) -> Iterator[Tcp]:
    """Octets, acknowledgments and FINs that are old, come too far, or acknowledge the unsent."""
    made = it.next_segment(b"", ACK)
    window = it.edge - len(it.written)
    octets = peer.octets(60)
    old, unsent = (it.irs + 1) % MODULUS, (made.ack + 5000) % MODULUS
    yield replace(made, ack=old)
    yield replace(made, ack=unsent)
    yield _at(made, -1)
    for distance in (window + 2, *FAR[:2]):
        yield replace(_at(made, distance), payload=octets, flags=ACK | PSH)
        yield replace(_at(made, distance), flags=ACK | FIN)
    if it.acked > len(octets):
        again = replace(made, seq=(it.iss + 1) % MODULUS)
        yield replace(again, payload=bytes(it.written[: len(octets)]))
        yield replace(again, flags=ACK | FIN)
    if it.closing:
        yield replace(made, payload=octets, flags=ACK | PSH)
        return
    yield replace(made, payload=octets, ack=unsent)
    yield replace(made, flags=ACK | FIN, ack=unsent)
    yield replace(made, flags=FIN, ack=0)
    yield replace(made, flags=0, ack=0, payload=octets)


KINDS = (_resets, _calls, _octets)


def _try(peer: Peer, side: str, it: End, other: End) -> None:
    """Everything of each kind, until something has ended the connection."""
    for kind in KINDS:
        for made in list(kind(peer, it)):
            peer.send(side, build(made))
            peer.wait(APART_S)
            if it.was_reset or other.was_reset:
                return
        peer.wait(BETWEEN_S)


def _go_on(peer: Peer, *ends: End) -> None:
    """The ends read, say what they had to say, and end."""
    if any(end.was_reset for end in ends):
        peer.wait(5.0)
        return
    for end in ends:
        end.go_on()
        if not end.closing:
            end.write(peer.octets(3000))
            end.close()
    peer.run(lambda: all(end.is_over for end in ends), 40.0)
    peer.wait(1.0)


def _each_state(peer: Peer, side: str) -> None:
    for state in (*STATES, *BOTH):
        it, other, missing = bring(peer, side, state)
        _try(peer, side, it, other)
        if missing:
            it.write(missing)
        _go_on(peer, it, other)
    quiet(peer, 40.0)


@case("PEP-SEC-001", "PEP-SEC-002", "PEP-SEC-003", "PEP-RE-017")
def test_established_client_sends_what_changes_nothing(peer: Peer) -> None:
    """Guesses, copies and what comes too far arrive from the client's side, in each state."""
    _each_state(peer, CLIENT)


@case("PEP-SEC-001", "PEP-SEC-002", "PEP-SEC-003", "PEP-RE-017")
def test_established_server_sends_what_changes_nothing(peer: Peer) -> None:
    """Guesses, copies and what comes too far arrive from the server's side, in each state."""
    _each_state(peer, SERVER)


@case("PEP-SEC-001", "PEP-RE-017")
def test_opening_answers_that_are_none(peer: Peer) -> None:
    """RSTs and SYN-ACKs arrive from the server's address that do not answer the box's SYN."""
    port, listener = peer.listen("nothing")
    client = peer.call(port)
    peer.until(lambda: bool(listener.syns), "a SYN at the server")
    syn = listener.syns[0]
    made = Tcp(syn.dst, syn.src, syn.dport, syn.sport, 12345, 0, RST, 0, b"")
    for flags, ack in (
        (RST, 0), (RST | ACK, syn.seq), (RST | ACK, syn.seq + 1000), (RST | ACK, syn.seq + FAR[2]),
        (SYN | ACK, syn.seq), (SYN | ACK, syn.seq + 1000), (ACK, syn.seq + 1000),
    ):  # fmt: skip
        peer.send(SERVER, build(replace(made, flags=flags, ack=ack % MODULUS)))
        peer.wait(APART_S)
    listener.answer = "accept"
    peer.run(lambda: client.was_reset or bool(listener.ends), 20.0)
    if listener.ends:
        _go_on(peer, client, listener.ends[-1])
    quiet(peer, 40.0)


@case("PEP-SEC-001", "PEP-RE-017")
def test_opening_guessed_resets_before_the_handshake_ends(peer: Peer) -> None:
    """RSTs with other numbers arrive from the client before its last segment of the handshake."""
    port, listener = peer.listen()
    client = peer.call(port)
    client.reached_by = lambda _: False
    peer.wait(2 * peer.rtt + 0.3)
    made = replace(client.next_segment(b"", RST), seq=(client.iss + 1) % MODULUS)
    for distance in (1, HOLE, 1000, *FAR):
        peer.send(CLIENT, build(_at(made, distance)))
        peer.wait(APART_S)
    client.reached_by = lambda _: True
    peer.run(lambda: client.established and bool(listener.ends), 20.0)
    if listener.ends:
        _go_on(peer, client, listener.ends[-1])
    quiet(peer, 40.0)
