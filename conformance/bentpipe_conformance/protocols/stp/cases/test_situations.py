"""STP-CC: what ends a connection, or must not, in every situation of data transfer (section 9).

One state of the table, "data transfer ready", has many situations: what has arrived and what is
missing, which streams have ended, who called and who waits for whom. A row is a situation; in each
the same packets arrive: those that must change nothing, and then one of the ENDs that are valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.steps import send_foreign_begin
from bentpipe_conformance.protocols.stp.cases.test_states import Bring
from bentpipe_conformance.protocols.stp.codec import BGAK, BGREJ, ENDAK, A, R
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS, LEAST_MAX_SD
from bentpipe_conformance.protocols.stp.peer import Peer

APART_S = 0.21
"""Seconds between two stimuli; four of them have room in the shortest release wait."""

SHOWN_S = 1.3
"""Seconds after an END in which a connection that goes on shows it."""

SILENT_S = 4.0
"""Seconds without a report in which Timer_SILENCE expires twice."""

OCTETS = 4000
"""In the stream of a caller that ends it."""


@dataclass(frozen=True, slots=True)
class Situation(Row):
    """A situation of an open connection, which ``bring`` brings about.

    Attributes:
        bring: makes a connection that the IUT has in that situation.
        calls: whether the IUT called.
    """

    bring: Bring = lambda peer: peer.connect("discard")
    calls: bool = False


def _used(peer: Peer) -> Connection:
    """SDs have followed the BEGIN, and are acknowledged."""
    connection = peer.connect("discard", data=b"first")
    connection.sds(5)
    connection.deliver()
    return connection


def gap(peer: Peer) -> Connection:
    """An SD is missing, and those above it are held."""
    connection = peer.connect("discard")
    connection.sds(6, skip=[2, 3])
    connection.ask()
    return connection


def _hold_fin(connection: Connection) -> Connection:
    """End the tester's stream; an SD is missing, and the FIN held behind it."""
    connection.sds(3, skip=[connection.vt_s + 1])
    connection.sd(b"the end", fin=True)
    connection.ask()
    return connection


def fin_held(peer: Peer) -> Connection:
    """An SD is missing, and the FIN is held behind it."""
    return _hold_fin(peer.connect("discard"))


def _sending_fin_held(peer: Peer) -> Connection:
    """The IUT has SDs in flight, and holds the tester's FIN behind a gap."""
    return _hold_fin(_sending(peer))


def _sending(peer: Peer) -> Connection:
    """The IUT has SDs in flight."""
    connection = peer.connect("chargen")
    connection.receive(6)
    return connection


def _silent(peer: Peer) -> Connection:
    """The IUT has SDs in flight, and has asked in vain."""
    connection = _sending(peer)
    peer.wait(SILENT_S)
    return connection


def _closed_window(peer: Peer) -> Connection:
    """The IUT has data, no credit, and nothing unacknowledged."""
    connection = peer.connect("chargen", credit=4)
    connection.receive(4, credit=None)
    peer.wait(APART_S)
    return connection


def _half_closed(peer: Peer) -> Connection:
    """The tester's stream has ended, the IUT's goes on as far as its credit goes."""
    connection = peer.connect("echo", credit=4)
    connection.sds(8, octets=400)
    connection.sd(b"", fin=True, poll=True)
    connection.serve(lambda: connection.vt_a >= connection.vt_s, credit=None)
    return connection


def _fin_unacknowledged(peer: Peer) -> Connection:
    """Both streams have ended, and nothing says that the IUT's FIN has arrived."""
    connection = peer.connect("discard")
    connection.sds(3)
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: connection.reception.ended, answer=lambda _poll, _nth: ())
    return connection


def _complete(peer: Peer) -> Connection:
    """The connection is complete, and the tester's END awaited."""
    connection = _fin_unacknowledged(peer)
    connection.stat(n_ps=0, timestamp=0)
    return connection


def _called(peer: Peer) -> Connection:
    """The IUT has called and sends; the tester has sent SDs too."""
    connection = peer.summon("send")
    connection.bgak()
    connection.receive(6)
    connection.sds(3)
    connection.ask()
    return connection


def _called_half_closed(peer: Peer) -> Connection:
    """The IUT has called and sends; the tester's stream has ended."""
    connection = _called(peer)
    connection.sd(b"the end", fin=True, poll=True)
    peer.wait(2 * peer.rtt + APART_S)
    return connection


def _called_receiving(peer: Peer) -> Connection:
    """The IUT has called and receives; an SD is missing."""
    connection = peer.summon("receive")
    connection.bgak()
    connection.sds(6, skip=[3])
    connection.ask()
    return connection


def called_closed(peer: Peer) -> Connection:
    """The IUT has called, and its stream is acknowledged to its end; the tester's is open."""
    connection = peer.summon("send", octets=OCTETS)
    connection.bgak()
    connection.serve(lambda: connection.reception.ended)
    connection.stat()
    return connection


def called_closed_fin_held(peer: Peer) -> Connection:
    """The IUT's stream is acknowledged to its end, and the tester's FIN held behind a gap."""
    return _hold_fin(called_closed(peer))


ENDS: Mapping[str, Callable[[Connection], dict[str, Any]]] = {
    "an abort": lambda _: {"flags": A, "reason": 1},
    "an abort of one that does not know the IUT's CSN": lambda _: {
        "flags": A, "reason": 1, "peer_csn": 0,
    },
    "a release": lambda _: {},
    "a release that acknowledges nothing": lambda connection: {"seq": connection.theirs(0)},
    "that of one that knows no connection": lambda _: {
        "flags": A | R, "reason": 2, "csn": 0, "tag": 0, "seq": 0,
    },
    "that of one that denies this connection": lambda _: {"flags": A | R, "reason": 2, "seq": 0},
}  # fmt: skip
"""The valid ENDs (section 5.5)."""


def _harmless(peer: Peer, connection: Connection, count: int, *, calls: bool) -> None:
    """Send two or three packets that must change nothing, others each time."""
    wrong = ((connection.peer_csn or 0) + 1) % CSN_MODULUS
    own = connection.peer_csn or 0
    stimuli: tuple[Callable[[], object], ...] = (
        lambda: send_foreign_begin(peer, connection, data=b"of nobody"),
        lambda: connection.send(BGAK),
        lambda: connection.send(ENDAK, peer_csn=own),
        lambda: connection.send(BGREJ, reason=3, peer_csn=own),
        lambda: connection.end(flags=A, reason=1, peer_csn=wrong),
        lambda: connection.end(flags=A | R, reason=2, peer_csn=wrong, seq=0),
        lambda: connection.begin(version=3),
        lambda: _send_too_much(peer, connection),
    )
    for place in (count, count + len(stimuli) // 2):
        stimuli[place % len(stimuli)]()
        peer.wait(APART_S)
    if not calls:
        connection.begin()
        peer.wait(APART_S)


def _send_too_much(peer: Peer, connection: Connection) -> None:
    """A BEGIN with a good cookie, of another call, and more data than the IUT accepts."""
    most = max(connection.peer_max_sd or 0, LEAST_MAX_SD)
    with suppress(OSError):
        cookie = peer.jar.take(peer.now())
        send_foreign_begin(peer, connection, cookie, data=bytes(most + 1), max_sd=None)


def _later_call(peer: Peer, connection: Connection, by: int) -> None:
    """The peer calls again from the same ports, with a CSN that is newer or older."""
    csn = (connection.csn + by) % CSN_MODULUS
    again = peer.call(connection.port, source_port=connection.source_port, csn=csn)
    again.await_answer("BGAK")
    again.ask()
    again.abort()


def _drive(peer: Peer, row: Situation) -> None:
    for by in () if row.calls else (1, -1):
        connection = row.bring(peer)
        connection.polite = False
        _later_call(peer, connection, by)
        peer.wait(APART_S)
    for count, end in enumerate(ENDS.values()):
        connection = row.bring(peer)
        connection.polite = False
        _harmless(peer, connection, count, calls=row.calls)
        connection.end(**end(connection))
        peer.wait(SHOWN_S)
        connection.poll()
        peer.wait(APART_S)
        connection.closed = connection.closed or "the tester ended it"
    peer.wait(2 * peer.rtt)


_CALLED: Mapping[str, Bring] = {
    "used": _used, "with-a-gap": gap, "sending": _sending, "unanswered": _silent,
    "without-credit": _closed_window, "half-closed": _half_closed,
    "with-a-fin-unacknowledged": _fin_unacknowledged, "complete": _complete,
    "with-a-fin-held": fin_held, "sending-with-a-fin-held": _sending_fin_held,
}  # fmt: skip

_CALLING: Mapping[str, Bring] = {
    "calling-and-sending": _called, "calling-and-half-closed": _called_half_closed,
    "calling-with-a-gap": _called_receiving, "calling-and-closed": called_closed,
    "calling-and-closed-with-a-fin-held": called_closed_fin_held,
}  # fmt: skip


def _rows() -> Iterator[Situation]:
    for calls, table in ((False, _CALLED), (True, _CALLING)):
        for name, bring in table.items():
            rules = ("STP-CC-020", "STP-CC-021", "STP-CC-022", "STP-CC-027")
            yield Situation(
                f"ready-{name}-and-ended",
                f"{(bring.__doc__ or '').rstrip('.')}; every valid END ends it, and nothing else.",
                rules if calls else ("STP-CC-015", "STP-CC-041", *rules),
                ("active_open",) if calls else (), None, bring, calls,
            )  # fmt: skip


each(globals(), _rows(), _drive)
