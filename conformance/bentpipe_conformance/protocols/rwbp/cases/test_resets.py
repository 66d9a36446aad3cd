"""RSTs at every number, and the abort of a user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import Row, connected, each
from bentpipe_conformance.protocols.rwbp.cases.exchange import (
    UNIT,
    await_fin,
    fill,
    fins,
    receive_some,
    send_some,
)
from bentpipe_conformance.protocols.rwbp.cases.steps import PAUSE_S, RECEIVES, SENDS
from bentpipe_conformance.protocols.rwbp.connection import Connection
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, RST


@dataclass(frozen=True, slots=True)
class Wrong(Row):
    """A RST that does not count: where, from the next number and the octets offered behind it."""

    where: Callable[[int, int], int] = lambda at, _: at
    data: bytes = b""


ROWS = (
    Wrong("in-the-window", "A RST one octet into the window.", ("RWBP-CX-005",),
          where=lambda at, _: at + 1),
    Wrong("in-the-middle", "A RST in the middle of the window.", ("RWBP-CX-005",),
          where=lambda at, window: at + window // 2),
    Wrong("at-the-last-octet", "A RST at the last octet of the window.", ("RWBP-CX-005",),
          where=lambda at, window: at + window - 1),
    Wrong("at-the-edge", "A RST at the right edge.", ("RWBP-CX-005",),
          where=lambda at, window: at + window),
    Wrong("behind-the-edge", "A RST far beyond the right edge.", ("RWBP-CX-005",),
          where=lambda at, window: at + 3 * window),
    Wrong("below", "A RST one octet below the window.", ("RWBP-CX-005",),
          where=lambda at, _: at - 1),
    Wrong("far-below", "A RST half the space of numbers away.", ("RWBP-CX-005",),
          where=lambda at, _: at - (1 << 31) + 10),
    Wrong("with-data", "A RST with data in the window.", ("RWBP-CX-005",),
          where=lambda at, _: at + 100, data=b"x" * 100),
)  # fmt: skip


def _drive(peer: Peer, row: Wrong) -> None:
    for service, use in (("discard", send_some), ("chargen", receive_some)):
        for flags in (RST, RST | ACK):
            connection = peer.connect(service)
            if service == "discard":
                connection.send_data(UNIT)
            connection.wait(connection.rtt + PAUSE_S)
            at = row.where(connection.acked, connection.iut_window)
            connection.send(row.data, flags=flags, at=at, sack=(), pause=connection.rtt + PAUSE_S)
            use(connection)
            connection.abort()
            connection.wait(PAUSE_S)


each(globals(), ROWS, _drive)


@connected("RWBP-CX-005", to="discard")
def test_reset_while_a_run_is_held(connection: Connection) -> None:
    """A RST stands at the end of a run, which is not the next number; then one that is."""
    connection.send_data(UNIT)
    connection.send_data(UNIT, at=3 * UNIT, pause=PAUSE_S)
    connection.send(flags=RST, at=4 * UNIT, sack=(), pause=connection.rtt + PAUSE_S)
    connection.send_data(UNIT, at=UNIT, pause=connection.rtt + PAUSE_S)
    connection.send(flags=RST, at=2 * UNIT, sack=(), pause=PAUSE_S)
    connection.send(pattern(2 * UNIT, UNIT), at=2 * UNIT, sack=(), pause=connection.rtt + PAUSE_S)


@case("RWBP-CX-005")
def test_reset_at_the_next_number(peer: Peer) -> None:
    """A RST at the next number ends a connection at rest, sending, and one half closed."""
    for service in ("discard", "chargen", "echo"):
        connection = peer.connect(service)
        if service != "discard":
            connection.send_data(UNIT)
        connection.wait(connection.rtt + PAUSE_S)
        connection.send(flags=RST, at=connection.next_offset, sack=(), pause=4.0)
        connection.send_data(UNIT, pause=PAUSE_S)


@connected("RWBP-CX-005", to="echo", window=0)
def test_reset_while_the_window_is_closed(connection: Connection) -> None:
    """The echo's window is full; a RST at the next number, which is the edge, ends it all."""
    fill(connection)
    connection.send(flags=RST, at=connection.acked, sack=(), pause=PAUSE_S)
    connection.closed = ""
    connection.ack(window=4 * UNIT, pause=connection.rtt + PAUSE_S)


@case("RWBP-CX-006", needs=("active_open", "user_aborts"))
def test_user_aborts(peer: Peer) -> None:
    """The user aborts at rest, with a window outstanding, and with a hole in what has come."""
    for port, receives in ((RECEIVES, False), (SENDS, False), (SENDS, True)):
        connection = peer.summon(port, octets=1_000_000)
        connection.answer()
        connection.wait(connection.rtt)
        if port == RECEIVES:
            connection.send_data(UNIT)
            connection.send_data(UNIT, at=3 * UNIT, pause=connection.rtt)
        elif receives:
            receive_some(connection)
        peer.have_aborted()
        connection.wait(connection.rtt + 4.0)
        connection.closed = ""
        connection.send_data(UNIT, at=UNIT, pause=connection.rtt + PAUSE_S)


@case("RWBP-CX-006", needs=("active_open", "user_aborts"))
def test_user_aborts_after_its_fin(peer: Peer) -> None:
    """The user has closed when it aborts; its FIN was acknowledged, or all but the FIN was."""
    for acknowledged in (True, False):
        connection = peer.summon(SENDS, octets=UNIT)
        connection.answer()
        connection.wait(connection.rtt)
        if acknowledged:
            await_fin(connection)
        else:
            connection.ack(connection.expect(fins).end - 1, pause=connection.rtt)
        peer.have_aborted()
        connection.wait(connection.rtt + 4.0)
