"""STP-CC: every packet in every state, row by row of the state table (section 9).

Valid, invalid and inopportune behaviour, as ITU's suites have it. The cases follow the rows of
``states.toml``; a row has a stimulus in :data:`STIMULI` or a reason in :data:`OUT_OF_REACH`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bentpipe_spec.document import Row, state_table

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.steps import half_released, over, send_foreign_begin
from bentpipe_conformance.protocols.stp.codec import A, R
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW, Peer

PAUSE_S = 0.37
"""Seconds between two stimuli, so that an answer has one cause only; not a fraction of Timer_CC."""

IDLE = "idle"
CALLING = "outgoing connection pending"
READY = "data transfer ready"
RELEASING = "outgoing disconnection pending"

Bring = Callable[[Peer], Connection]
"""Makes a connection that the IUT has in some state."""

Stimulus = Callable[[Peer, Connection], object]
"""Sends what a row is about on a connection that the IUT has in the row's state."""


def _sends(kind: int, **raw: Any) -> Stimulus:
    return lambda _, connection: connection.send(kind, odd=True, **raw)


def _other(csn: int | None, by: int) -> int:
    return ((csn or 0) + by) % CSN_MODULUS


def _bgak(theirs: int = 0, **raw: Any) -> Stimulus:
    """A BGAK whose CSN of the recipient differs from the IUT's by ``theirs``."""
    return _with_peer(codec.BGAK, theirs, **raw)


def _with_peer(kind: int, theirs: int, **raw: Any) -> Stimulus:
    """A packet whose CSN of the recipient differs from the IUT's by ``theirs``."""
    return lambda _, connection: connection.send(
        kind, peer_csn=_other(connection.peer_csn, theirs), **raw
    )


def _end(theirs: int = 0, flags: int = 0, **raw: Any) -> Stimulus:
    """An END whose CSN of the recipient differs from the IUT's by ``theirs``."""
    reason = 1 if flags == A else 2 if flags else 0
    return _with_peer(codec.END, theirs, flags=flags, reason=reason, **raw)


def _foreign_begin(**raw: Any) -> Stimulus:
    return lambda peer, connection: send_foreign_begin(peer, connection, **raw)


def _used_cookie(peer: Peer, _: Connection) -> None:
    """The BEGIN of a connection that has ended comes again."""
    over(peer).begin()


def _too_much(peer: Peer, _: Connection) -> None:
    """A BEGIN with more data than the IUT accepts, without options so that it fits the MTU."""
    known = peer.connect("discard")
    peer.begin("discard", data=bytes((known.peer_max_sd or 512) + 1), max_sd=None)
    known.abort()


def _call_anew(peer: Peer, connection: Connection) -> None:
    """The caller is given a cookie; its call anew is aborted."""
    connection.reject(CALL_ANEW)
    anew = peer.await_anew(connection)
    anew.end(flags=A, reason=1)
    anew.closed = "the tester aborted it"


def _completing_end(_: Peer, connection: Connection) -> None:
    """Both streams end, and only the END acknowledges the IUT's FIN."""
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: connection.reception.ended, answer=lambda _poll, _nth: ())
    connection.end()


def _later_call(peer: Peer, connection: Connection) -> None:
    """The peer calls again from the same ports."""
    again = peer.call("discard", source_port=connection.source_port)
    again.await_answer("BGAK")
    again.abort()


_STATES = (IDLE, CALLING, READY, RELEASING)

_ALIKE: Mapping[tuple[str, str], Stimulus] = {
    ("SD", ""): _sends(codec.SD, data=b"data"),
    ("SDP", ""): _sends(codec.SDP, data=b"data", n_ps=1),
    ("POLL", ""): _sends(codec.POLL, n_ps=1),
    ("STAT", ""): _sends(codec.STAT),
    ("USTAT", ""): _sends(codec.USTAT, elements=(1, 2)),
    ("BEGIN", "version other than 2"): _foreign_begin(version=1),
    ("BEGIN", "would open in state 1"): _later_call,
    ("BEGIN", "peer's CSN"): lambda _, connection: connection.begin(),
    ("BEGIN", "peer's CSN, and the peer called"): lambda _, connection: connection.begin(),
    ("BEGIN", ""): _foreign_begin(data=b"of nobody"),
    ("BGAK", ""): _bgak(),
    ("BGREJ", ""): _with_peer(codec.BGREJ, 0),
    ("END", "not valid"): _end(1),
    ("END", "R flag"): _end(flags=A | R, csn=0),
    ("END", ""): _end(),
    ("ENDAK", ""): _with_peer(codec.ENDAK, 1),
}
"""By packet and condition, for the states that do not say otherwise below."""

STIMULI: Mapping[tuple[str, str, str], Stimulus] = {
    **{(state, *row): stimulus for state in _STATES for row, stimulus in _ALIKE.items()},
    (IDLE, "BEGIN", "more data than MaxSD"): _too_much,
    (IDLE, "BEGIN", "nobody listens"): lambda peer, _: peer.begin(UNUSED_PORT),
    (IDLE, "BEGIN", "cookie used"): _used_cookie,
    (IDLE, "BEGIN", "cookie missing or not good"): _foreign_begin(data=b"of a stranger"),
    (IDLE, "BEGIN", ""): lambda peer, _: peer.connect("discard", data=b"data").abort(),
    (CALLING, "BGAK", "CSN of the recipient not own"): _bgak(theirs=1),
    (CALLING, "BGAK", "N(R) below ISS or above VT(S)"): (
        lambda _, connection: connection.bgak(n_r=_other(connection.peer_iss, 99) % (1 << 24))
    ),
    (CALLING, "BGREJ", "CSN of the recipient not own"): _with_peer(codec.BGREJ, 1),
    (CALLING, "BGREJ", "reason 6, with a cookie, not the sixth"): _call_anew,
    (CALLING, "END", ""): _end(flags=A),
    (READY, "END", "A flag"): _end(flags=A),
    (READY, "END", "N(R) above own FIN, peer's FIN delivered"): _completing_end,
    (READY, "SDP", "N(PS) 0, or CSN not the peer's"): (
        lambda _, connection: connection.send(
            codec.SDP, csn=_other(connection.csn, 1 << 31), n_ps=1, data=b"forged"
        )
    ),
    (READY, "POLL", "N(PS) 0, or CSN not the peer's"): (
        lambda _, connection: connection.poll(csn=_other(connection.csn, 1 << 16))
    ),
    (READY, "STAT", "invalid (STP-DT-023) or old (STP-DT-007)"): (
        lambda _, connection: connection.stat(n_r=connection.highest + 99)
    ),
    (READY, "STAT", ""): lambda _, connection: connection.stat(n_ps=0, timestamp=0),
    (READY, "USTAT", "invalid (STP-DT-023)"): _sends(codec.USTAT, elements=(2, 1)),
    (RELEASING, "ENDAK", "own CSN as recipient"): _with_peer(codec.ENDAK, 0),
}
"""By state, packet and condition of a row."""

OUT_OF_REACH: Mapping[tuple[str, str, str], str] = {
    (IDLE, "BEGIN", "no resources"): "how much an implementation can hold is its own choice",
}
"""Rows that no script can reach, and why."""


_REPLACED = ("would open in state 1", "reason 6, with a cookie, not the sixth")
"""Conditions of rows after which the connection is another one, in the same state."""


def drive(peer: Peer, state: str, bring: Bring) -> None:
    """Send the stimulus of each row of a state, bringing the IUT into the state as often as needed.

    Args:
        peer: the tester.
        state: name of the state.
        bring: makes a connection that the IUT has in that state.
    """
    connection: Connection | None = None
    for row in state_table("stp"):
        if row.state != state or (state, row.packet, row.when) in OUT_OF_REACH:
            continue
        if connection is None:
            connection = bring(peer)
            peer.wait(PAUSE_S)
        STIMULI[row.state, row.packet, row.when](peer, connection)
        peer.wait(PAUSE_S)
        if row.next != state or state == IDLE or row.when in _REPLACED:
            _show(connection, row)
            _leave(connection, state)
            connection = None
    if connection is not None:
        _leave(connection, state)
    peer.wait(2 * peer.rtt + PAUSE_S)


def _show(connection: Connection, row: Row) -> None:
    """Have the IUT show the state that a row has led to: by its answer to a POLL, or by a timer."""
    wait = connection.peer.wait
    if row.next == IDLE and row.state != IDLE:
        connection.poll()
        # Nothing is repeated any more.
        wait({CALLING: 4.5, RELEASING: 2.2}.get(row.state, PAUSE_S))
    elif row.state == CALLING:
        wait(1.5)


def _leave(connection: Connection, state: str) -> None:
    """End what a row has left open, unless the state is idle."""
    if state != IDLE:
        connection.end(flags=A, reason=1)
        connection.closed = connection.closed or "the tester aborted it"
        connection.peer.wait(PAUSE_S)


def _impolite(connection: Connection) -> Connection:
    connection.polite = False
    return connection


def bring_idle(peer: Peer) -> Connection:
    """A connection of the tester's own imagination."""
    connection = _impolite(peer.prepare("discard"))
    connection.peer_csn = peer.random.getrandbits(32)
    return connection


def bring_calling(peer: Peer) -> Connection:
    """A call of the IUT that nobody has answered."""
    return _impolite(peer.summon("receive"))


def bring_ready(peer: Peer) -> Connection:
    """An open connection."""
    connection = _impolite(peer.connect("discard"))
    connection.ask()
    return connection


@case("STP-CC-012", "STP-CC-019", "STP-CC-020", "STP-CC-022", "STP-CC-036", "STP-CC-038")
def test_idle_every_packet(peer: Peer) -> None:
    """Calls are answered or refused, strays are told so, and everything else is discarded."""
    drive(peer, IDLE, bring_idle)


@case(
    "STP-CC-001", "STP-CC-019", "STP-CC-020", "STP-CC-021", "STP-CC-022", "STP-CC-037",
    "STP-CC-043", needs=("active_open",),
)  # fmt: skip
def test_calling_every_packet(peer: Peer) -> None:
    """A caller that waits for its BGAK minds only what answers its BEGIN."""
    drive(peer, CALLING, bring_calling)


@case(
    "STP-CC-015", "STP-CC-019", "STP-CC-021", "STP-CC-022", "STP-CC-027", "STP-CC-036",
    "STP-CC-041",
)  # fmt: skip
def test_ready_every_packet(peer: Peer) -> None:
    """An open connection ends for valid ENDs and later calls only."""
    drive(peer, READY, bring_ready)


@case(
    "STP-CC-012", "STP-CC-019", "STP-CC-021", "STP-CC-022", "STP-CC-028", "STP-CC-036",
    "STP-CC-041",
)  # fmt: skip
def test_releasing_every_packet(peer: Peer) -> None:
    """Who waits for its ENDAK minds only that, ENDs, and a later call."""
    drive(peer, RELEASING, half_released)
