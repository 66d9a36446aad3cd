"""STP-CC: every way in which a call ends before it is answered, and what it means for the next one.

One row for each END that arrives in state 2, valid or not, alone on its call (section 5.5); one for
each way in which a call with a cookie ends in state 2, before another call (STP-CC-039).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, go_on
from bentpipe_conformance.protocols.stp.codec import ENDAK, A, R
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW, Peer

REPEATED_S = 5.0
"""Seconds in which an unanswered BEGIN is repeated on every path."""

GIVEN_UP_S = 105.0
"""Seconds in which a call that nobody answers is given up on every path."""

BEHIND = 4
"""SDs that a caller sends before the BGAK, the BEGIN's data included."""


@dataclass(frozen=True, slots=True)
class Ending(Row):
    """A row; ``happen`` plays it."""

    happen: Callable[[Peer], object] = lambda _: None


def _arrives(raw: Callable[[Connection], dict[str, Any]]) -> Callable[[Peer], None]:
    def happen(peer: Peer) -> None:
        connection = peer.summon("send")
        connection.polite = False
        peer.wait(PAUSE_S)
        connection.end(**{"seq": 0, **raw(connection)})
        peer.wait(REPEATED_S)
        connection.bgak()
        peer.wait(2 * peer.rtt + PAUSE_S)
        connection.abort()

    return happen


def _other(csn: int | None) -> int:
    return ((csn or 0) + (1 << 31)) % CSN_MODULUS


ENDS: Mapping[str, tuple[str, Callable[[Connection], dict[str, Any]]]] = {
    "abort": ("An abort that names the caller.", lambda _: {"flags": A, "reason": 1}),
    "abort-of-nobody": ("An abort of CSN 0 that names the caller.",
                        lambda _: {"flags": A, "reason": 1, "csn": 0, "tag": 0}),
    "release": ("An END without A flag that names the caller.", lambda _: {}),
    "denial": ("An END of a peer that knows no connection.",
               lambda _: {"flags": A | R, "reason": 2, "csn": 0, "tag": 0}),
    "abort-of-another-call": ("An abort that names another CSN.",
                              lambda it: {"flags": A, "peer_csn": _other(it.peer_csn)}),
    "abort-that-names-nobody": ("An abort that names CSN 0.",
                                lambda _: {"flags": A, "reason": 1, "peer_csn": 0}),
    "release-that-names-nobody": ("An END that names CSN 0.", lambda _: {"peer_csn": 0}),
    "denial-with-a-csn": ("An END with R flag and a CSN, which the caller cannot know.",
                          lambda _: {"flags": A | R, "reason": 2}),
    "denial-of-another-call": ("An END with R flag that names another CSN.",
                               lambda it: {"flags": A | R, "csn": 0,
                                           "peer_csn": _other(it.peer_csn)}),
}  # fmt: skip
"""ENDs by name; the first four are valid in state 2 (section 5.5)."""

VALID = 4


def _refused(_: Peer, call: Connection) -> None:
    call.reject(3, cookie=None)


def _refused_without_cookie(_: Peer, call: Connection) -> None:
    call.reject(CALL_ANEW, cookie=None)


def _aborted_by_the_peer(_: Peer, call: Connection) -> None:
    call.end(flags=A, reason=1, seq=0)


def _released(_: Peer, call: Connection) -> None:
    call.end(seq=0)


def _denied(_: Peer, call: Connection) -> None:
    call.end(flags=A | R, reason=2, csn=0, tag=0, seq=0)


def _nobody_answers(peer: Peer, call: Connection) -> None:
    peer.pump_until(lambda: bool(call.closed), GIVEN_UP_S)
    call.send(ENDAK)


def _aborted_by_its_user(peer: Peer, call: Connection) -> None:
    peer.have_aborted()
    peer.pump_until(lambda: bool(call.closed), peer.patience)
    call.send(ENDAK)


WAYS: Mapping[str, Callable[[Peer, Connection], None]] = {
    "refused": _refused, "refused-without-a-cookie": _refused_without_cookie,
    "aborted-by-the-peer": _aborted_by_the_peer, "released": _released, "denied": _denied,
    "unanswered": _nobody_answers, "aborted-by-its-user": _aborted_by_its_user,
}  # fmt: skip
"""How a call can end in state 2."""


def _call_fails(way: Callable[[Peer, Connection], None]) -> Callable[[Peer], None]:
    def happen(peer: Peer) -> None:
        for _ in range(2):  # the second opens without V flag, and leaves a cookie
            first = peer.summon("send")
            first.bgak()
            first.receive(2)
            first.abort()
            peer.wait(PAUSE_S)
        failing = peer.summon("send")
        failing.polite = False
        way(peer, failing)
        failing.closed = failing.closed or "the tester ended it"
        peer.wait(peer.rtt + PAUSE_S)
        for _ in range(2):
            again = peer.summon("send")
            again.bgak()
            again.receive(2)
            again.abort()
            peer.wait(PAUSE_S)

    return happen


def _bgak_covers(sds: int) -> Callable[[Peer], None]:
    """The BGAK covers so many of four early SDs."""

    def happen(peer: Peer) -> None:
        connection = peer.summon("send")
        peer.pump_until(lambda: connection.highest >= BEHIND, peer.patience)
        peer.wait(PAUSE_S)
        reception = connection.reception
        for arrival in list(connection.inbox):
            if arrival.has_data and arrival.number < sds:
                connection.hold(arrival)
        connection.inbox.clear()
        connection.bgak(n_r=connection.theirs(min(sds, reception.vr_r)))
        go_on(connection, 2 * peer.rtt + PAUSE_S)
        connection.abort()

    return happen


def _rows() -> Iterator[Ending]:
    needs = ("active_open",)
    for count, (name, (purpose, raw)) in enumerate(ENDS.items()):
        rules = ("STP-CC-021", "STP-CC-022" if count < VALID - 1 else "STP-CC-016")
        yield Ending(f"calling-{name}", purpose, rules, needs, None, _arrives(raw))
    for name, way in WAYS.items():
        mine = (*needs, "user_aborts") if way is _aborted_by_its_user else needs
        yield Ending(
            f"calling-after-a-call-{name}",
            f"A call is {name.replace('-', ' ')}, and another made.",
            ("STP-CC-039",), mine, None, _call_fails(way),
        )  # fmt: skip
    for sds in range(1, BEHIND + 1):
        yield Ending(
            f"calling-bgak-covers-{sds}-of-{BEHIND}", f"The BGAK covers {sds} of {BEHIND} SDs.",
            ("STP-CC-042",) if sds < BEHIND else ("STP-CC-002",), needs, None, _bgak_covers(sds),
        )  # fmt: skip


def _drive(peer: Peer, row: Ending) -> None:
    row.happen(peer)


each(globals(), _rows(), _drive)
