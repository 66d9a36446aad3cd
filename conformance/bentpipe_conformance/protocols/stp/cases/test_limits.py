"""STP-CC: answers to many packets at once, and cookies that a BEGIN does not use up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, call_again, half_released, over
from bentpipe_conformance.protocols.stp.codec import BEGIN, END, POLL, A
from bentpipe_conformance.protocols.stp.crafting import craft, wrong_checksum
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD
from bentpipe_conformance.protocols.stp.peer import Peer

AT_ONCE = 10
"""Answers of a kind that must not be refused in one second (STP-CC-019, STP-CC-020)."""

APART_S = 0.04
"""Seconds between packets of which ten arrive in half a second."""

REFILLED_S = 1.6
"""Seconds after which a limit of ten a second has been forgotten."""


def _empty(peer: Peer) -> None:
    peer.begin("discard")


def _stray(kind: int) -> Callable[[Peer], None]:
    def send(peer: Peer) -> None:
        connection = peer.prepare("discard")
        connection.peer_csn = peer.random.getrandbits(32)
        connection.send(kind, odd=True, **({"n_ps": 1} if kind == POLL else {}))

    return send


def _version(peer: Peer) -> None:
    peer.prepare("discard").begin(version=3)


def _port(peer: Peer) -> None:
    peer.begin(UNUSED_PORT)


@dataclass(frozen=True, slots=True)
class Many(Row):
    """Ten packets of each kind arrive in a second, in turn."""

    kinds: tuple[Callable[[Peer], None], ...] = ()


KINDS: Mapping[str, tuple[str, tuple[str, ...], tuple[Callable[[Peer], None], ...]]] = {
    "polls": ("Ten POLLs of no connection.", ("STP-CC-020",), (_stray(POLL),)),
    "ends": ("Ten ENDs of no connection.", ("STP-CC-020", "STP-CC-022"), (_stray(END),)),
    "versions": ("Ten BEGINs of another version.", ("STP-CC-019",), (_version,)),
    "ports-and-polls": ("Ten BEGINs to a port where nobody listens, and ten POLLs.",
                        ("STP-CC-019", "STP-CC-020"), (_port, _stray(POLL))),
    "callers-and-versions": ("Ten BEGINs without a cookie, and ten of another version.",
                             ("STP-CC-019", "STP-CC-036"), (_empty, _version)),
    "callers-and-polls": ("Ten BEGINs without a cookie, and ten POLLs.",
                          ("STP-CC-020", "STP-CC-036"), (_empty, _stray(POLL))),
}  # fmt: skip


def _rows() -> Iterator[Many]:
    for name, (purpose, rules, kinds) in KINDS.items():
        yield Many(f"idle-many-{name}", purpose, rules, (), None, kinds)


def _drive(peer: Peer, row: Many) -> None:
    for _ in range(2):
        for _ in range(AT_ONCE):
            for send in row.kinds:
                send(peer)
                peer.wait(APART_S)
        peer.wait(REFILLED_S)
    peer.wait(2 * peer.rtt)


each(globals(), _rows(), _drive)


@case("STP-CC-038")
def test_idle_many_used_cookies(peer: Peer) -> None:
    """What draws an END because its cookie has been used is not limited, nor are POLLs by it."""
    used = over(peer)
    for _ in range(2 * AT_ONCE + 2):
        peer.begin("discard", data=b"again", cookie=used.cookie)
        peer.wait(APART_S)
    peer.wait(2 * peer.rtt + PAUSE_S)


def _of_version(peer: Peer, cookie: bytes) -> None:
    peer.prepare("discard", cookie=cookie).begin(b"data", version=3)


def _to_no_listener(peer: Peer, cookie: bytes) -> None:
    peer.begin(UNUSED_PORT, data=b"data", cookie=cookie, voiding=True)


def _too_large(peer: Peer, cookie: bytes) -> None:
    known = peer.connect("discard", cookie=peer.fresh_cookie())
    known.abort()
    peer.wait(PAUSE_S)
    with suppress(OSError):
        most = max(known.peer_max_sd or 0, LEAST_MAX_SD)
        peer.begin("discard", data=bytes(most + 1), cookie=cookie, max_sd=None)


def _broken(peer: Peer, cookie: bytes) -> None:
    connection = peer.prepare("discard", cookie=cookie)
    peer.send(wrong_checksum(craft(connection.compose(BEGIN, data=b"data")), 0))


def _repeated(peer: Peer, cookie: bytes) -> None:
    """A repetition of another BEGIN that carries it."""
    connection = peer.connect("discard", cookie=peer.fresh_cookie())
    connection.begin(b"", cookie=cookie)
    peer.wait(PAUSE_S)
    connection.abort()


def _while_releasing(peer: Peer, cookie: bytes) -> None:
    """A BEGIN of the connection whose END awaits its ENDAK."""
    connection = half_released(peer)
    connection.begin(b"", cookie=cookie)
    peer.wait(PAUSE_S)
    connection.end(flags=A, reason=1)


NOT_USED: Mapping[str, Callable[[Peer, bytes], None]] = {
    "of-another-version": _of_version, "to-a-port-where-nobody-listens": _to_no_listener,
    "that-is-too-large": _too_large, "that-is-broken": _broken, "that-is-a-repetition": _repeated,
    "while-an-endak-is-awaited": _while_releasing,
}  # fmt: skip
"""BEGINs that open nothing, and so do not use their cookie."""


@dataclass(frozen=True, slots=True)
class Spared(Row):
    """A BEGIN that opens nothing, and a call with the same cookie."""

    send: Callable[[Peer, bytes], None] = _of_version


def _spare(peer: Peer, row: Spared) -> None:
    cookie = peer.fresh_cookie()
    row.send(peer, cookie)
    peer.wait(2 * peer.rtt + PAUSE_S)
    peer.connect("discard", cookie=cookie, data=b"once").abort()
    peer.wait(PAUSE_S)


each(globals(), (
    Spared(f"idle-cookie-of-a-begin-{name}", f"A cookie is good after a BEGIN {name} carried it.",
           ("STP-CC-012", "STP-CC-035"), (), None, send)
    for name, send in NOT_USED.items()
), _spare)  # fmt: skip


@case("STP-CC-035", "STP-CC-012")
def test_idle_v_flag_of_another_address(peer: Peer) -> None:
    """Over UDP a V flag voids the cookies of its own port's address only."""
    own = peer.udp_port
    cookie = peer.fresh_cookie()
    peer.udp_port = own + 1
    other = peer.connect("discard", cookie=peer.fresh_cookie(), voiding=True)
    other.abort()
    peer.wait(PAUSE_S)
    peer.udp_port = own
    peer.connect("discard", cookie=cookie, data=b"still good").abort()
    peer.wait(2 * peer.rtt)


OFFSETS: Mapping[str, int] = {"just-older": -1, "newer-by-half": (1 << 31) - 1, "older": -(1 << 30)}
"""By how much the CSN of a later call differs; it counts for nothing (STP-CC-041)."""


@case("STP-CC-041", "STP-CC-012")
def test_ready_later_calls_with_any_csn(peer: Peer) -> None:
    """A good cookie replaces the connection whatever the CSN of its BEGIN, newer or older."""
    for by in OFFSETS.values():
        connection = peer.connect("discard")
        connection.ask()
        again = call_again(peer, connection, csn=(connection.csn + by) % (1 << 32))
        again.abort()
        peer.wait(PAUSE_S)
