"""STP-CC: the IUT's user aborts its call, in every situation (section 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, send_each
from bentpipe_conformance.protocols.stp.codec import BEGIN, END, ENDAK, A
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW, Peer

OVER_S = 105.0
"""Seconds in which the five transmissions of an END are over on every path, and it is gone."""

Stage = Callable[[Peer], Connection]
"""Brings a call of the IUT into the situation in which its user aborts it."""


@dataclass(frozen=True, slots=True)
class Abort(Row):
    """A user aborts; ``before`` brings the situation about, ``after`` says what the peer does."""

    before: Stage = lambda peer: peer.summon("send")
    after: Callable[[Peer, Connection], object] = lambda _peer, _connection: None


def _begun(peer: Peer) -> Connection:
    """The first BEGIN has been sent, without a cookie."""
    return peer.summon("send", anew=False)


def _begun_with_data(peer: Peer) -> Connection:
    """A BEGIN with a cookie and data has been sent, and SDs behind it."""
    connection = peer.summon("send")
    peer.wait(PAUSE_S)
    return connection


def _repeated(peer: Peer) -> Connection:
    """The BEGIN has been sent three times."""
    connection = peer.summon("send", anew=False)
    for within in (8.0, 16.0):
        connection.expect(BEGIN, within=within, what="a repeated BEGIN")
    return connection


def _opened(peer: Peer) -> Connection:
    """The BGAK has just arrived, and nothing else."""
    connection = peer.summon("receive")
    connection.bgak()
    peer.wait(peer.rtt + PAUSE_S)
    return connection


def _sending(peer: Peer) -> Connection:
    """The IUT has SDs in flight, and has taken some."""
    connection = peer.summon("send")
    connection.bgak()
    connection.receive(10)
    connection.sds(3)
    connection.ask()
    return connection


def _gap(peer: Peer) -> Connection:
    """An SD of the tester is missing, and those above it are held."""
    connection = peer.summon("receive")
    connection.bgak()
    connection.sds(6, skip=[3])
    connection.ask()
    return connection


def _half_closed(peer: Peer) -> Connection:
    """The tester's stream has ended, the IUT's goes on."""
    connection = _sending(peer)
    connection.sd(b"the end", fin=True, poll=True)
    peer.wait(peer.rtt + PAUSE_S)
    return connection


def _nobody_answers(peer: Peer, connection: Connection) -> None:
    peer.wait(OVER_S)
    connection.poll()
    peer.wait(peer.rtt + PAUSE_S)


def _late_answer(peer: Peer, connection: Connection) -> None:
    """Strays arrive, then an ENDAK of somebody else, and at last the right one."""
    peer.wait(PAUSE_S)
    send_each(connection, "SD SDP POLL STAT USTAT", 0.37)
    connection.bgak()
    peer.wait(PAUSE_S)
    connection.send(ENDAK, peer_csn=((connection.peer_csn or 0) + 1) % CSN_MODULUS)
    peer.wait(PAUSE_S)
    connection.reject(CALL_ANEW)
    connection.wait(5.0)
    connection.send(ENDAK)
    peer.wait(2 * peer.rtt + 9.0)


def _crossing(peer: Peer, connection: Connection) -> None:
    """The tester aborts too."""
    peer.wait(PAUSE_S)
    connection.end(flags=A, reason=1)
    peer.wait(2 * peer.rtt + 4.0)


def _call_again(peer: Peer, connection: Connection) -> None:
    """The END is answered, and the user calls again."""
    connection.send(ENDAK)
    peer.wait(peer.rtt + PAUSE_S)
    again = peer.summon("send", anew=False)
    if again.begun.cookie is None:
        again.reject(CALL_ANEW)
        again = peer.await_anew(again)
    again.bgak()
    again.receive(4)
    again.abort()


def _drive(peer: Peer, row: Abort) -> None:
    connection = row.before(peer)
    connection.polite = False
    connection.inbox.clear()
    peer.have_aborted()
    if not peer.pump_until(
        lambda: any(at.kind == END for at in connection.inbox), 2 * peer.rtt + PAUSE_S
    ):
        raise NotReached("STP-CC-045: its user aborted, but no END came")
    row.after(peer, connection)


BEFORE: Mapping[str, tuple[Stage, tuple[str, ...]]] = {
    "calling": (_begun, ()),
    "calling-with-data": (_begun_with_data, ()),
    "calling-again": (_repeated, ("STP-CC-016",)),
    "ready-at-once": (_opened, ()),
    "ready-and-sending": (_sending, ()),
    "ready-with-a-gap": (_gap, ()),
    "ready-and-half-closed": (_half_closed, ()),
}

AFTER: Mapping[str, Callable[[Peer, Connection], object]] = {
    "nobody-answers": _nobody_answers,
    "answered-late": _late_answer,
    "crossed": _crossing,
    "called-again": _call_again,
}

TARGETS: Mapping[str, tuple[str, ...]] = {
    "nobody-answers": ("STP-CC-026",),
    "answered-late": ("STP-CC-026",),
    "crossed": ("STP-CC-022",),
    "called-again": ("STP-CC-039",),
}

NAMES: Mapping[str, str] = {
    "nobody-answers": "nobody answers its END",
    "answered-late": "strays come before the ENDAK",
    "crossed": "the peer aborts too",
    "called-again": "the user calls again",
}


def _rows() -> Iterator[Abort]:
    for before, (stage, rules) in BEFORE.items():
        for after, then in AFTER.items():
            yield Abort(
                f"{before}-and-aborted-{after}",
                f"{(stage.__doc__ or '').rstrip('.')}; the user aborts, and {NAMES[after]}.",
                ("STP-CC-028", "STP-CC-045", *rules, *TARGETS[after]),
                ("active_open", "user_aborts"), None, stage, then,
            )  # fmt: skip


each(globals(), _rows(), _drive)
