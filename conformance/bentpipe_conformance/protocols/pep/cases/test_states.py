"""Packets that change nothing, of each kind in each state (PEP-SEC-001 to -003, PEP-RE-017)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.damage import WRONG
from bentpipe_conformance.protocols.pep.cases.states import BOTH, HOLE, STATES, bring
from bentpipe_conformance.protocols.pep.cases.steps import HOP, quiet, unreachable
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.peer import Listener, Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, Tcp, build

FAR = (1 << 20, 1 << 28, 1 << 31)
"""Distances that lie outside each window."""

AT_ONCE_S = 0.03
APART_S = 0.6
BETWEEN_S = 1.5
"""Seconds between two packets, whose answers Linux limits to two a second, and between kinds."""


Kind = Callable[[Peer, End], Iterator[bytes]]


def _built(kind: Callable[[Peer, End], Iterator[Tcp]], peer: Peer, it: End) -> Iterator[bytes]:
    yield from map(build, kind(peer, it))


def _at(made: Tcp, distance: int) -> Tcp:
    return replace(made, seq=(made.seq + distance) % MODULUS)


def _resets(peer: Peer, it: End) -> Iterator[Tcp]:
    """Beside the next number: in the window, at its edges, where what is held begins, outside."""
    made = it.next_segment(b"", RST)
    window = it.edge - len(it.written)
    for distance in (1, HOLE, window - 1, window, window + 1, *FAR):
        if distance > 0:
            yield _at(made, distance)
            yield replace(_at(made, distance), flags=RST | ACK, ack=it.next_segment(b"").ack)
    if it.acked:
        yield _at(made, -1 - it.closing)
    del peer


def _syns(it: End, flags: int) -> Iterator[Tcp]:
    """The first one again, and others."""
    made = it.next_segment(b"", ACK)
    first = replace(made, flags=flags, mss=1460, tsval=None, tsecr=None)
    for seq in (it.iss, made.seq, made.seq + 1000, made.seq + FAR[0], made.seq + FAR[2]):
        yield replace(first, seq=seq % MODULUS)


def _calls(peer: Peer, it: End) -> Iterator[Tcp]:
    """SYNs, the last one with octets."""
    for made in _syns(it, SYN):
        yield made
    yield replace(made, seq=it.next_segment(b"").seq, payload=peer.octets(50))


def _answers(peer: Peer, it: End) -> Iterator[Tcp]:
    """Answers to SYNs, which a box may pass on, so that a host refuses them."""
    yield from _syns(it, SYN | ACK)
    del peer


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


def _errors(peer: Peer, it: End) -> Iterator[bytes]:
    """What would be octets, an end or a reset, if its checksum were right."""
    for name in ("checksum zero", "last octet", "window"):
        for flags, octets in ((ACK | PSH, 90), (FIN | ACK, 0), (RST, 0), (RST | ACK, 0)):
            made = it.next_segment(peer.octets(octets), flags)
            yield WRONG[name](build(made if flags & RST or not it.closing else _at(made, -1)))


def _messages(peer: Peer, it: End) -> Iterator[bytes]:
    """That segments could not be delivered, or were too big, which are not outstanding."""
    here, there = it.local, it.remote
    sent = Tcp(there[0], here[0], there[1], here[1], 0, 0, ACK, 100, peer.octets(1400))
    expected = it.next_segment(b"").ack
    numbers = [expected + distance for distance in (0, *FAR)]
    numbers += [seen.seq for seen in it.seen if seen.payload][:1] if it.acknowledging else []
    for code, mtu in ((1, 0), (2, 0), (3, 0), (13, 0), (4, 600)):
        for number in numbers:
            about = build(replace(sent, seq=number % MODULUS))
            yield unreachable(about, HOP, there[0], code, mtu)


SEGMENTS = tuple(partial(_built, kind) for kind in (_resets, _calls, _octets, _answers))
OTHERS = (_errors, _messages)


def _try(peer: Peer, side: str, it: End, other: End, kinds: Sequence[Kind]) -> None:
    """Everything of each kind, until something has ended the connection."""
    for kind in kinds:
        for made in list(kind(peer, it)):
            peer.send(side, made)
            peer.wait(APART_S if kinds is SEGMENTS else AT_ONCE_S)
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


def _hears_again(peer: Peer, client: End, listener: Listener) -> None:
    """A client that has heard nothing completes its handshake, and both ends go on."""
    client.reached_by = lambda _: True
    peer.run(lambda: client.established and bool(listener.ends), 20.0)
    if listener.ends:
        _go_on(peer, client, listener.ends[-1])
    quiet(peer, 40.0)


def _each_state(peer: Peer, side: str, kinds: Sequence[Kind] = SEGMENTS) -> None:
    for state in (*STATES, *BOTH):
        it, other, missing = bring(peer, side, state)
        _try(peer, side, it, other, kinds)
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


@case("PEP-RE-015", "PEP-SEC-004", "PEP-RE-017")
def test_established_client_has_errors_and_messages(peer: Peer) -> None:
    """Segments with wrong checksums and guessed ICMP messages come from the client's side."""
    _each_state(peer, CLIENT, OTHERS)


@case("PEP-RE-015", "PEP-SEC-004", "PEP-RE-017")
def test_established_server_has_errors_and_messages(peer: Peer) -> None:
    """Segments with wrong checksums and guessed ICMP messages come from the server's side."""
    _each_state(peer, SERVER, OTHERS)


@case("PEP-SEC-001", needs=("ends=rfc",))
def test_established_resets_behind_what_is_held(peer: Peer) -> None:
    """Octets lie behind a hole, and RSTs behind these, which Linux takes for right on purpose."""
    for side in (CLIENT, SERVER):
        for state in STATES:
            if not state.hole:
                continue
            it, other, missing = bring(peer, side, state)
            peer.send(side, build(_at(it.next_segment(b"", RST), 4 * HOLE)))
            peer.wait(BETWEEN_S)
            it.write(missing)
            _go_on(peer, it, other)
    quiet(peer, 40.0)


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


@case("PEP-SEC-003", "PEP-RE-017")
def test_opening_guessed_octets_before_the_handshake_ends(peer: Peer) -> None:
    """Octets and FINs that acknowledge what the box has not sent come in place of the handshake."""
    for with_octets in (True, False):
        port, listener = peer.listen()
        client = peer.call(port, Offer(timestamps=False))
        client.reached_by = lambda _: False
        peer.wait(2 * peer.rtt + 0.3)
        answer = peer.random.getrandbits(32)
        made = replace(client.next_segment(b""), seq=(client.iss + 1) % MODULUS)
        for distance in (0, 1000, *FAR):
            octets = peer.octets(80) if with_octets else b""
            flags = ACK | PSH if with_octets else ACK | FIN
            guess = replace(made, flags=flags, ack=(answer + distance) % MODULUS)
            peer.send(CLIENT, build(replace(guess, payload=octets)))
            peer.wait(APART_S)
        client.reached_by = lambda _: True
        peer.run(lambda it=client, of=listener: it.established and bool(of.ends), 20.0)  # type: ignore[misc]
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
    _hears_again(peer, client, listener)


@dataclass(frozen=True, slots=True)
class Calling:
    """What has happened while the server does not answer, before RSTs are guessed.

    Attributes:
        octets: that the client has written, who sends them before the answer if that is early.
        repeats: whether its SYN has come again.
        ends: whether it has ended its stream.
    """

    octets: int = 0
    repeats: bool = False
    ends: bool = False


@case("PEP-SEC-001", "PEP-RE-017")
def test_opening_guessed_resets_while_the_server_is_silent(peer: Peer) -> None:
    """RSTs with other numbers come from the client's side until the server answers.

    The client has sent its SYN, or has sent it again, has written octets, or has ended its stream.
    """
    for state in Calling(), Calling(repeats=True), Calling(300), Calling(300, ends=True):
        port, listener = peer.listen("nothing")
        client = peer.call(port)
        peer.until(lambda it=listener: bool(it.syns), "a SYN at the server")  # type: ignore[misc]
        if state.repeats:
            client.segment(SYN, -1)
        client.write(peer.octets(state.octets))
        if state.ends:
            client.close()
        peer.wait(APART_S)
        for made in _guesses(client):
            client.due = None  # a SYN that comes again would hide that the call has been ended
            peer.send(CLIENT, build(made))
            peer.wait(APART_S)
        if not client.was_reset:
            peer.answer(listener, listener.syns[-1])
            _finish_opening(peer, client, listener.ends[-1])
    quiet(peer, 40.0)


@case("PEP-SEC-001", "PEP-RE-017", needs=("opening=late",))
def test_opening_guessed_resets_from_a_server_that_has_answered(peer: Peer) -> None:
    """RSTs with other numbers arrive from the server before the client completes its handshake."""
    port, listener = peer.listen()
    client = peer.call(port)
    client.reached_by = lambda _: False
    peer.wait(2 * peer.rtt + 0.3)
    for made in _guesses(listener.ends[-1]) if listener.ends else ():
        peer.send(SERVER, build(made))
        peer.wait(APART_S)
    _hears_again(peer, client, listener)


def _guesses(it: End) -> Iterator[Tcp]:
    """RSTs beside the next number, with and without an acknowledgment; not that of a FIN.

    Linux takes the latter for right on purpose, once the stream has ended.
    """
    made = it.next_segment(b"", RST)
    for distance in (-1 - it.closing, 1, HOLE, 1000, *FAR):
        yield _at(made, distance)
        yield replace(_at(made, distance), flags=RST | ACK, ack=it.next_segment(b"").ack)


def _finish_opening(peer: Peer, client: End, server: End) -> None:
    """Both ends may have the connection, and go on."""
    peer.run(lambda: client.was_reset or (client.established and server.established), 20.0)
    _go_on(peer, client, server)
