"""What happens again and again, in one connection or in one after another (PEP-RE-017, PEP-OP-003).

A box that counts, and forgets to count back, shows at the hundredth event and not at the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.damage import WRONG
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    HOP,
    MD5,
    SHORT,
    both_ways,
    established,
    fragments,
    let_go,
    quiet,
    unreachable,
)
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Answer, Listener, Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, Tcp, build

TIMES = 70
"""Events in one connection."""
SPARE = 6
"""Connections beyond those that the box serves at once."""
USUAL_MOST, MOST = 64, 100
"""Connections one after another where it does not say how many it serves, and at most."""
AT_ONCE = 12
"""Connections that are open together, less than any box serves."""


def _side(peer: Peer, end: End) -> str:
    return SERVER if end.local[0] == peer.server else CLIENT


def _send(peer: Peer, end: End, tcp: Tcp, change: Callable[[bytes], bytes] = bytes) -> None:
    peer.send(_side(peer, end), change(build(tcp)))


# -- in one connection ---------------------------------------------------------------------------


def _in_disorder(peer: Peer, end: End, _: End) -> None:
    octets, at = peer.octets(600), len(end.written)
    end.skip(octets)
    for start in (300, 0):
        end.segment(ACK, at + start, octets[start : start + 300])


def _twice(_: Peer, end: End, __: End) -> None:
    end.segment(ACK, max(0, len(end.written) - 100), bytes(end.written[-100:]))


def _is_lost_once(peer: Peer, end: End, other: End) -> None:
    lost: set[int] = set()

    def reaches(tcp: Tcp) -> bool:
        first = bool(tcp.payload) and not lost
        lost.update((tcp.seq,) if first else ())
        return not first

    end.reached_by = reaches
    wanted = len(end.got) + 300
    other.write(peer.octets(300))
    peer.run(lambda: len(end.got) >= wanted, 8.0)
    end.reached_by = lambda _: True


def _stops(peer: Peer, end: End, other: End) -> None:
    end.stop()
    wanted = len(end.got) + 9000
    other.write(peer.octets(9000))
    peer.wait(2 * peer.rtt + 0.5)
    end.go_on()
    peer.run(lambda: len(end.got) >= wanted, 10.0)


def _asks(_: Peer, end: End, __: End) -> None:
    end.segment(ACK, len(end.written) - 1)


def _guessed_reset(peer: Peer, end: End, _: End) -> None:
    made = end.next_segment(b"", RST)
    _send(peer, end, replace(made, seq=(made.seq + 2000) % MODULUS))


def _guessed_syn(peer: Peer, end: End, _: End) -> None:
    made = end.next_segment(b"", SYN)
    _send(peer, end, replace(made, seq=(made.seq + 2000) % MODULUS, mss=1460))


def _guessed_octets(peer: Peer, end: End, _: End) -> None:
    made = end.next_segment(peer.octets(50), ACK | PSH)
    _send(peer, end, replace(made, seq=(made.seq + (1 << 28)) % MODULUS))


def _wrong(peer: Peer, end: End, _: End) -> None:
    for change in (WRONG["last octet"], WRONG["checksum zero"]):
        _send(peer, end, end.next_segment(peer.octets(50), ACK | PSH), change)


def _message(peer: Peer, end: End, _: End) -> None:
    old = next(it for it in end.seen if it.payload)
    side = _side(peer, end)
    peer.send(side, unreachable(build(old), HOP, old.src, 3))


def _fragments(peer: Peer, end: End, _: End) -> None:
    octets = peer.octets(600)
    parts = fragments(build(end.next_segment(octets, ACK | PSH)))
    end.skip(octets)
    end.due = None
    for part in parts:
        peer.send(_side(peer, end), part)


def _small(peer: Peer, end: End, _: End) -> None:
    end.write(peer.octets(3))


EVENTS: Mapping[str, Callable[[Peer, End, End], None]] = {
    "segments in disorder": _in_disorder, "octets twice": _twice, "a loss": _is_lost_once,
    "a window that closes": _stops, "keep-alives": _asks, "guessed resets": _guessed_reset,
    "guessed SYNs": _guessed_syn, "guessed octets": _guessed_octets,
    "wrong checksums": _wrong, "messages about old octets": _message,
    "segments in fragments": _fragments, "small segments": _small,
}  # fmt: skip
"""What one end sends, or what befalls it, each with time for an answer."""


@dataclass(frozen=True, slots=True)
class Often(Row):
    """Events of one kind, often in a connection, from either end."""

    events: tuple[str, ...] = ()


def _all_got(end: End, other: End) -> bool:
    return len(end.got) >= len(other.written) and len(other.got) >= len(end.written)


def _often(peer: Peer, row: Often) -> None:
    for name in row.events:
        through = peer.connect(DEAF, DEAF)
        both_ways(peer, through, 2000)
        ends = through.client, through.server
        for number in range(TIMES):
            end, other = ends[:: 1 if number % 2 else -1]
            EVENTS[name](peer, end, other)
            peer.wait(0.6)
            if end.was_reset or other.was_reset:
                break
        peer.run(partial(_all_got, *ends), 20.0)
        for end in ends:
            end.write(peer.octets(SHORT))
            end.close()
        peer.run(lambda it=ends: all(end.is_over for end in it), 60.0)  # type: ignore[misc]
    quiet(peer)


# -- in one connection after another -------------------------------------------------------------


def _called(peer: Peer, count: int, answer: Answer) -> list[tuple[End, Listener]]:
    """So many calls, each of a port of its own, as far as they open."""
    made = []
    for _ in range(count):
        port, listener = peer.listen(answer)
        made.append((peer.call(port), listener))
        peer.wait(0.02)

    def settled() -> bool:
        return all(
            it.was_reset or (it.established and bool(of.ends) and of.ends[-1].established)
            for it, of in made
        )

    peer.run(settled, peer.rtt + (peer.rtt + 2.0 if answer == "accept" else 1.0))
    return made


def _are_refused(peer: Peer, count: int) -> None:
    _called(peer, count, "refuse")
    peer.wait(1.0)


def _give_up(peer: Peer, count: int) -> None:
    """The server answers the calls when it is too late."""
    for client, listener in _called(peer, count, "nothing"):
        client.reset()
        listener.answer = "accept"
    peer.wait(peer.rtt + 6.0)


def _reset(peer: Peer, count: int, *, by_server: bool) -> None:
    for client, listener in _called(peer, count, "accept"):
        if listener.ends:
            end = listener.ends[-1] if by_server else client
            end.write(peer.octets(500))
            end.reset()
    peer.wait(peer.rtt + 1.0)


def _end(peer: Peer, count: int) -> None:
    found = _called(peer, count, "accept")
    ends = [end for client, listener in found for end in (client, *listener.ends[-1:])]
    for end in ends:
        end.write(peer.octets(300))
        end.close()
    peer.run(lambda: all(end.is_over for end in ends), 20.0)


def _are_unreachable(peer: Peer, count: int) -> None:
    ports = [peer.listen("nothing") for _ in range(count)]
    clients = [peer.call(port) for port, _ in ports]
    peer.run(lambda: all(listener.syns for _, listener in ports), peer.rtt + 2.0)
    for _, listener in ports:
        if listener.syns:
            syn = listener.syns[0]
            peer.send(SERVER, unreachable(build(syn), HOP, peer.address, 3))
    peer.wait(peer.rtt + 1.0)
    let_go(*clients)
    peer.wait(1.0)


def _are_signed(peer: Peer, count: int) -> None:
    for _ in range(count):
        ends = peer.address, peer.server, peer.own_port(), peer.new_port()
        peer.listen("nothing", port=ends[3])
        syn = Tcp(*ends, peer.random.getrandbits(32), 0, SYN, 9000, b"")
        peer.send(CLIENT, build(syn, MD5))
        peer.wait(0.05)
    peer.wait(peer.rtt + 1.0)


def _are_strangers(peer: Peer, count: int) -> None:
    for _ in range(count):
        ends = peer.address, peer.server, peer.own_port(), peer.new_port()
        for flags in (ACK | PSH, FIN | ACK):
            peer.send(CLIENT, build(Tcp(*ends, 5000, 6000, flags, 9000, peer.octets(20))))
        peer.wait(0.05)


CALLS: Mapping[str, Callable[[Peer, int], None]] = {
    "are refused": _are_refused, "are given up by the client": _give_up,
    "are reset by the client": partial(_reset, by_server=False),
    "are reset by the server": partial(_reset, by_server=True), "end": _end,
    "cannot be delivered": _are_unreachable, "are signed": _are_signed,
    "are strangers'": _are_strangers,
}  # fmt: skip
"""What becomes of calls."""


@dataclass(frozen=True, slots=True)
class Many(Row):
    """Calls of which the same becomes, more than the box serves at once."""

    calls: str = ""


def _many(peer: Peer, row: Many) -> None:
    beside = established(peer)
    left = min(peer.connections or USUAL_MOST, MOST) + SPARE
    while left > 0:
        CALLS[row.calls](peer, min(left, AT_ONCE))
        left -= AT_ONCE
    both_ways(peer, beside, 3000)
    port, _ = peer.listen()
    client = peer.call(port)
    peer.run(lambda: client.established, 35.0)
    client.write(peer.octets(SHORT))
    quiet(peer, 12.0)


def _rows() -> Iterator[Often]:
    names = list(EVENTS)
    for start in range(0, len(names), 3):
        some = tuple(names[start : start + 3])
        said = "\n".join(f"* {name}" for name in some)
        yield Often(
            f"established-often-{start // 3 + 1}",
            f"In one connection after another the same happens {TIMES} times:\n\n{said}",
            ("PEP-TR-001", "PEP-RE-017"), events=some,
        )  # fmt: skip


def _calls() -> Iterator[Many]:
    for number, name in enumerate(CALLS, 1):
        yield Many(
            f"opening-after-many-{number}", f"More calls than the box serves at once {name}.",
            ("PEP-OP-003", "PEP-RE-017"), calls=name,
        )  # fmt: skip


each(globals(), _rows(), _often)
each(globals(), _calls(), _many)
