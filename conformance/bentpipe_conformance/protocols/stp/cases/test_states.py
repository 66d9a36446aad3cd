"""STP-CC: every packet in every state, row by row of the state table (section 9).

Valid, invalid and inopportune behaviour, as ITU's suites have it. The cases follow the rows of
``states.toml``; a row has a stimulus in :data:`STIMULI` or a reason in :data:`OUT_OF_REACH`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from bentpipe_spec.document import Row, state_table

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.steps import confirmed, half_released
from bentpipe_conformance.protocols.stp.codec import A, C, R
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS
from bentpipe_conformance.protocols.stp.peer import Peer

PAUSE_S = 0.37
"""Seconds between two stimuli, so that an answer has one cause only; not a fraction of Timer_CC."""

IDLE = "idle"
CALLING = "outgoing connection pending"
CALLED = "incoming connection pending"
READY = "data transfer ready"
RELEASING = "outgoing disconnection pending"

Stimulus = Callable[[Peer, Connection], object]
"""Sends what a row is about on a connection that the IUT has in the row's state."""


def _sends(kind: int, **raw: Any) -> Stimulus:
    return lambda _, connection: connection.send(kind, **raw)


def _other(csn: int | None, by: int) -> int:
    return ((csn or 0) + by) % CSN_MODULUS


def _begin(by: int = 0, **raw: Any) -> Stimulus:
    """A BEGIN whose CSN is newer than the connection's by ``by``."""
    return lambda _, connection: connection.send(codec.BEGIN, csn=_other(connection.csn, by), **raw)


def _bgak(mine: int = 0, theirs: int = 0, flags: int = 0) -> Stimulus:
    """A BGAK whose CSNs differ from the correct ones by ``mine`` and ``theirs``."""
    return lambda _, connection: connection.send(
        codec.BGAK,
        flags=flags,
        csn=_other(connection.csn, mine),
        peer_csn=_other(connection.peer_csn, theirs),
    )


def _with_peer(kind: int, theirs: int, **raw: Any) -> Stimulus:
    """A BGREJ, END or ENDAK whose CSN of the recipient differs from the IUT's by ``theirs``."""
    return lambda _, connection: connection.send(
        kind, peer_csn=_other(connection.peer_csn, theirs), **raw
    )


def _end(theirs: int = 0, flags: int = 0) -> Stimulus:
    """An END whose CSN of the recipient differs from the IUT's by ``theirs``."""
    return _with_peer(codec.END, theirs, flags=flags, reason=1 if flags == A else 2 if flags else 0)


def _known_caller(peer: Peer, _: Connection) -> None:
    """A call from an address of which an older CSN has just been confirmed."""
    confirmed(peer)
    again = peer.begin("discard", data=b"of a known caller")
    again.expect(codec.BGAK)
    again.abort()


def _completing_end(_: Peer, connection: Connection) -> None:
    """Both streams end, and only the END acknowledges the IUT's FIN."""
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: connection.reception.ended, answer=lambda _poll, _nth: ())
    connection.end()


def _later_call(peer: Peer, connection: Connection) -> None:
    """The peer calls again from the same ports."""
    again = peer.begin("discard", source_port=connection.source_port)
    again.expect(codec.BGAK)
    again.abort()


_STATES = (IDLE, CALLING, CALLED, READY, RELEASING)

_ALIKE: Mapping[tuple[str, str], Stimulus] = {
    ("SD", ""): _sends(codec.SD, data=b"data"),
    ("SDP", ""): _sends(codec.SDP, data=b"data", n_ps=1),
    ("POLL", ""): _sends(codec.POLL, n_ps=1),
    ("STAT", ""): _sends(codec.STAT),
    ("USTAT", ""): _sends(codec.USTAT, elements=(1, 2)),
    ("BEGIN", "version other than 1"): _begin(11, version=2),
    ("BGREJ", ""): _with_peer(codec.BGREJ, 0),
    ("END", ""): _end(1),
    ("ENDAK", ""): _with_peer(codec.ENDAK, 0),
}
"""By packet and condition, for the states that do not say otherwise below."""

STIMULI: Mapping[tuple[str, str, str], Stimulus] = {
    **{(state, *row): stimulus for state in _STATES for row, stimulus in _ALIKE.items()},
    (IDLE, "BEGIN", "nobody listens"): lambda peer, _: peer.begin(UNUSED_PORT),
    (IDLE, "BEGIN", "peer known and CSN newer"): _known_caller,
    (IDLE, "BEGIN", ""): _begin(),
    (IDLE, "BGAK", ""): _bgak(),
    (IDLE, "END", "R flag"): _end(flags=A | R),
    (IDLE, "END", ""): _end(),
    (CALLING, "BEGIN", ""): _begin(),
    (CALLING, "BGAK", "own CSN as recipient, C flag"): _bgak(flags=C),
    (CALLING, "BGAK", "own CSN as recipient"): _bgak(),
    (CALLING, "BGAK", ""): _bgak(theirs=1),
    (CALLING, "BGREJ", "own CSN as recipient"): _with_peer(codec.BGREJ, 0),
    (CALLING, "BGREJ", ""): _with_peer(codec.BGREJ, 1),
    (CALLING, "END", "valid (section 5.6), no R flag"): _end(flags=A),
    (CALLED, "BEGIN", "peer's CSN"): _begin(),
    (CALLED, "BEGIN", ""): _begin(-5),
    (CALLED, "BGAK", "both CSNs right"): _bgak(flags=C),
    (CALLED, "BGAK", ""): _bgak(theirs=1),
    (CALLED, "END", "valid (section 5.6), R flag"): _end(flags=A | R),
    (CALLED, "END", "valid (section 5.6)"): _end(flags=A),
    (READY, "BEGIN", "peer's CSN"): _begin(),
    (READY, "BEGIN", ""): _begin(-9),
    (READY, "BGAK", "both CSNs right, C flag"): _bgak(flags=C),
    (READY, "BGAK", "own CSN as recipient, newer CSN of the sender"): _bgak(mine=3),
    (READY, "BGAK", ""): _bgak(theirs=1),
    (READY, "END", "valid (section 5.6), R flag"): _end(flags=A | R),
    (READY, "END", "R flag, only the tag known"): lambda _, connection: connection.hint(),
    (READY, "END", "valid, A flag"): _end(flags=A),
    (READY, "END", "valid, own FIN below N(R), peer's FIN delivered"): _completing_end,
    (READY, "END", "valid"): _end(),
    (RELEASING, "BEGIN", "newer CSN than the peer's"): _later_call,
    (RELEASING, "BEGIN", ""): _begin(-5),
    (RELEASING, "BGAK", ""): _bgak(flags=C),
    (RELEASING, "END", "valid (section 5.6), R flag"): _end(flags=A | R),
    (RELEASING, "END", "valid (section 5.6)"): _end(),
    (RELEASING, "ENDAK", "own CSN as recipient"): _with_peer(codec.ENDAK, 0),
    (RELEASING, "ENDAK", ""): _with_peer(codec.ENDAK, 1),
}  # fmt: skip
"""By state, packet and condition of a row."""

OUT_OF_REACH: Mapping[tuple[str, str, str], str] = {
    (RELEASING, "BGAK", "own CSN as recipient, peer's CSN not known"): (
        "the tester cannot make a caller abort before it is answered"
    ),
    (IDLE, "BEGIN", "no resources"): "how much an implementation can hold is its own choice",
}
"""Rows that no script can reach, and why."""


def drive(peer: Peer, state: str, bring: Callable[[Peer], Connection]) -> None:
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
        if row.next != state or state == IDLE:
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


def _unused(peer: Peer) -> Connection:
    connection = _impolite(peer.prepare("discard"))
    connection.peer_csn = peer.random.getrandbits(32)
    return connection


def _unconfirmed() -> Callable[[Peer], Connection]:
    """Each call is older than the one before, so that it is challenged whatever was confirmed."""
    back = count(0, -1000)

    def bring(peer: Peer) -> Connection:
        csn = _other(peer.next_csn(), next(back))
        return _impolite(peer.connect("discard", data=b"held", confirm=False, csn=csn))

    return bring


def _open(peer: Peer) -> Connection:
    connection = _impolite(peer.connect("discard"))
    connection.ask()
    return connection


@case("STP-CC-012", "STP-CC-019", "STP-CC-020", "STP-CC-022")
def test_idle_every_packet(peer: Peer) -> None:
    """Calls are answered or refused, strays are told so, and everything else is discarded."""
    drive(peer, IDLE, _unused)


@case(
    "STP-CC-001", "STP-CC-012", "STP-CC-017", "STP-CC-019", "STP-CC-020", "STP-CC-021",
    "STP-CC-022", needs=("active_open",),
)  # fmt: skip
def test_calling_every_packet(peer: Peer) -> None:
    """A caller that waits for its BGAK minds only what answers its BEGIN."""
    drive(peer, CALLING, lambda peer: _impolite(peer.summon("receive")))


@case(
    "STP-CC-003", "STP-CC-012", "STP-CC-015", "STP-CC-017", "STP-CC-019", "STP-CC-021",
    "STP-CC-022",
)  # fmt: skip
def test_pending_every_packet(peer: Peer) -> None:
    """A call that waits for its confirmation holds early data, asks again, and minds no reports."""
    drive(peer, CALLED, _unconfirmed())


@case(
    "STP-CC-007", "STP-CC-015", "STP-CC-017", "STP-CC-018", "STP-CC-019", "STP-CC-021",
    "STP-CC-022", "STP-CC-027",
)  # fmt: skip
def test_ready_every_packet(peer: Peer) -> None:
    """An open connection ends for valid ENDs and newer numbers only."""
    drive(peer, READY, _open)


@case("STP-CC-012", "STP-CC-019", "STP-CC-021", "STP-CC-022", "STP-CC-028")
def test_releasing_every_packet(peer: Peer) -> None:
    """Who waits for its ENDAK minds only that, ENDs, and a newer call."""
    drive(peer, RELEASING, half_released)
