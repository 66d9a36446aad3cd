"""Steps that the cases share.

Some hold a stream of the IUT at a point where nothing more may leave: a stream of chargen first
gets a window that is large enough, then a small credit. Once that is used, the IUT can only
retransmit and poll, so that a script knows what its reports bring about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from bentpipe_conformance.engine import scripts
from bentpipe_conformance.engine.peer import PATIENCE_S, NotReached
from bentpipe_conformance.protocols.stp.codec import BEGIN, NAMES, USTAT
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.peer import Peer, Role

PAUSE_S = 0.3
"""Seconds between two stimuli, so that an answer has one cause only."""

TWICE_S = 7.0
"""Seconds in which a BEGIN is repeated once on every path."""

CREDIT = 8
"""SDs that a script permits at a time."""

BATCH = 40
"""SDs that may be sent at once without being lost in the queue of the link."""

FAR_S = 0.6
"""Round-trip time, seconds, that a case makes of a shorter one (see ``BasePeer.retreat``) if its
situation needs a window of dozens of SDs, or answers that take longer than 0.1 s."""

NEAR_S = 0.08
"""The same where the poll interval has to be a fraction of the round-trip time, not 0.02 s."""

VERY_FAR_S = 8.0
"""The same where a third of it exceeds the longest poll interval, and half of the silence time the
bound of its doubling."""

WARM_UP = 20
"""SDs after which the sender's window permits that many."""

connected = partial(scripts.connected, to="discard", aborted=True)
"""Register a case on a connection that is opened to a service and aborted at the end."""


def fill(connection: Connection, losing: Collection[int] = ()) -> None:
    """Take in SDs until the credit is used and a POLL behind them has come, and answer nothing.

    Raises:
        NotReached: the IUT does not use its credit, or does not poll behind it.
    """
    reception = connection.reception
    deadline = connection.peer.now() + 10 * connection.peer.rtt + PATIENCE_S
    asked = 0
    while connection.highest < reception.vr_mr or asked < reception.vr_mr:
        arrival = connection.next(deadline - connection.peer.now())
        if arrival is None or connection.closed:
            raise NotReached(f"the credit up to {reception.vr_mr} was not used, and asked about")
        if arrival.has_data and arrival.number not in losing:
            connection.hold(arrival)
        if arrival.polls:
            connection.remember(arrival)
            asked = max(asked, arrival.number_polled)
    reception.polled(asked)


def holding(
    *requirements: str, losing: Collection[int] = (), rtt: float = 0.0
) -> scripts.Registration:
    """Register a case on a stream that has run a while and used up its last credit.

    It is a function of the connection and of the count of the first SD of that credit. ``losing``
    counts from there the SDs that were lost, ``rtt`` is as for :meth:`Peer.connect`.
    """

    def stage(peer: Peer) -> tuple[Connection, int]:
        connection = peer.connect("chargen", credit=CREDIT, rtt=rtt)
        reception = connection.reception
        connection.receive(WARM_UP, credit=CREDIT)
        # The last credit was given with the last SDs; take in what it permits, and give no more.
        connection.serve(
            lambda: reception.vr_r >= reception.vr_mr,
            credit=None, within=10 * peer.rtt + PATIENCE_S,
        )  # fmt: skip
        base = reception.vr_r
        connection.stat(n_mr=base + CREDIT)
        fill(connection, [base + count for count in losing])
        return connection, base

    return scripts.staged(*requirements, stage=stage, aborted=True)


def go_on(
    connection: Connection,
    seconds: float,
    *,
    answering: bool = True,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """For a while, or until ``until()``, answer POLLs or only note them; SDs are lost."""
    for arrival in connection.arrivals(seconds):
        if arrival.polls and answering:
            connection.answer(arrival)
        elif arrival.polls:
            connection.remember(arrival)
        if until():
            return


def summoned(
    *requirements: str,
    role: Role = "receive",
    anew: bool = True,
    accepted: bool = False,
    aborted: bool = True,
) -> scripts.Registration:
    """Register a case on a connection that the IUT opens.

    Its BEGIN carries a cookie of the tester's unless ``anew`` is False; it is not answered yet, or
    ``accepted`` at once.
    """

    def stage(peer: Peer) -> tuple[Connection]:
        connection = peer.summon(role, anew=anew)
        if accepted:
            connection.polite = False
            connection.bgak()
        return (connection,)

    return scripts.staged(*requirements, stage=stage, needs=("active_open",), aborted=aborted)


def types(names: str) -> list[int]:
    """Types by their names, separated by blanks."""
    return [next(kind for kind in NAMES if NAMES[kind] == name) for name in names.split()]


def send_each(connection: Connection, names: str, apart: float = PAUSE_S) -> None:
    """Send a packet of each type, with the usual values; see :func:`types`."""
    for kind in types(names):
        raw: dict[str, Any] = {"elements": (1, 2)} if kind == USTAT else {}
        connection.send(kind, odd=True, **raw)
        connection.wait(apart)


def call_again(peer: Peer, earlier: Connection, **own: Any) -> Connection:
    """Call from the ports of an earlier connection, and make sure that the call has opened."""
    connection = peer.connect("discard", source_port=earlier.source_port, **own)
    connection.ask()
    return connection


def send_foreign_begin(
    peer: Peer, connection: Connection, cookie: bytes | None = None, **raw: Any
) -> None:
    """Send a BEGIN of another incarnation of the peer from the ports of a connection."""
    csn = peer.next_csn()
    raw = {"csn": csn, "tag": tag_of(csn), "seq": peer.random.getrandbits(24), **raw}
    connection.send(BEGIN, cookie=cookie, **raw)


def over(peer: Peer, service: str = "discard") -> Connection:
    """A connection that was opened, used and aborted."""
    connection = peer.connect(service)
    connection.ask()
    connection.abort()
    peer.wait(PAUSE_S)
    return connection


def widen(connection: Connection, sds: int) -> None:
    """Send and have acknowledged what the credit permits until it permits ``sds`` at a time.

    Raises:
        NotReached: the credit does not become that large.
    """
    for _ in range(20):
        if connection.vt_ms - connection.vt_s >= sds:
            return
        connection.sds(min(max(connection.vt_ms - connection.vt_s, 0), BATCH), octets=8)
        connection.ask()
    raise NotReached(f"the credit does not rise to {sds} SDs")


def half_released(peer: Peer) -> Connection:
    """A connection that the IUT has ended, and whose END nobody answers."""
    connection = peer.connect("discard")
    connection.polite = False
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: bool(connection.closed))
    return connection
