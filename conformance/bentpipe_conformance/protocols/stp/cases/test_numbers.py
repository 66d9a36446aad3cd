"""STP-CC: the CSNs of connections that either side opens, one after the other (section 5.1).

An endpoint chooses a CSN for its own calls and for those it accepts; each has to be newer than all
before, whoever called. A row is an order of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, over
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW, Peer


def _accepted(peer: Peer) -> None:
    connection = peer.summon("send", anew=False)
    connection.bgak()
    connection.receive(2)
    connection.abort()


def _anew(peer: Peer) -> None:
    connection = peer.summon("send", anew=False)
    connection.reject(CALL_ANEW)
    connection = peer.await_anew(connection)
    connection.bgak()
    connection.receive(2)
    connection.abort()


def _refused(peer: Peer) -> None:
    peer.summon("send", anew=False).reject(3, cookie=None)


CALLS: Mapping[str, Callable[[Peer], object]] = {
    "the tester": over,
    "the IUT": _accepted,
    "the IUT anew": _anew,
    "the IUT in vain": _refused,
}
"""Who calls, and what becomes of it."""


@dataclass(frozen=True, slots=True)
class Order(Row):
    """Calls in an order.

    Attributes:
        calls: keys of :data:`CALLS`.
    """

    calls: tuple[str, ...] = ()


def _drive(peer: Peer, row: Order) -> None:
    for who in row.calls:
        CALLS[who](peer)
        peer.wait(peer.rtt + PAUSE_S)


ORDERS: Mapping[str, tuple[str, ...]] = {
    "by-turns": ("the tester", "the IUT", "the tester", "the IUT", "the IUT", "the tester"),
    "beside-calls-anew": ("the IUT anew", "the tester", "the tester", "the IUT anew"),
    "beside-calls-in-vain": ("the tester", "the IUT in vain", "the tester", "the IUT in vain"),
}


def _rows() -> Iterator[Order]:
    for name, calls in ORDERS.items():
        yield Order(
            f"idle-both-call-{name}",
            f"Each CSN is newer than all before: {', then '.join(calls)} calls.",
            ("STP-CC-010",), ("active_open",), None, calls,
        )  # fmt: skip


each(globals(), _rows(), _drive)
