"""STP-DT: an echo that is given more than it can return at once (section 11).

The tester takes little until nothing more can be sent to the IUT, so that its buffers are full in
both directions; then its stream ends, and it takes all. A row is a way in which the end comes.
"""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.steps import BATCH, PAUSE_S
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT
from bentpipe_conformance.protocols.stp.peer import Peer

MOST = 600
"""SDs after which an IUT that still takes more is left at that."""

SPARED = 2
"""SDs of the IUT's credit that are left for the end of the stream."""

RETURNED_S = 120.0
"""Seconds in which everything is surely returned."""


@dataclass(frozen=True, slots=True)
class Ending(Row):
    """How the stream ends.

    Attributes:
        data: of the SD with the FIN flag.
        late: whether the SD before it comes only after it.
        credit: SDs permitted at a time from then on.
    """

    data: bytes = b""
    late: bool = False
    credit: int = 256


def _fill(connection: Connection) -> None:
    """Send as much as the IUT takes while it can return next to nothing."""
    octets = connection.peer_max_sd or 0
    while connection.vt_s < MOST:
        room = connection.vt_ms - connection.vt_s - SPARED
        if room <= 0:
            return
        connection.sds(min(room, BATCH), octets=octets)
        connection.poll()
        connection.serve(lambda: connection.vt_a >= connection.vt_s, credit=None)


def _drive(peer: Peer, row: Ending) -> None:
    connection = peer.connect("echo", credit=EARLY_CREDIT)
    _fill(connection)
    late = connection.vt_s
    connection.sds(1, skip=[late] if row.late else ())
    connection.sd(row.data, fin=True, poll=True)
    connection.wait(2 * peer.rtt + PAUSE_S)
    if row.late:
        connection.sd(number=late)
    reception = connection.reception
    connection.stat(n_mr=reception.vr_r + row.credit)
    connection.serve(lambda: reception.ended, credit=row.credit, within=RETURNED_S)
    connection.release()


_RULES = ("STP-DT-030", "STP-CC-004", "STP-CC-023")


def _row(name: str, how: str, data: bytes, *, late: bool = False, credit: int = 256) -> Ending:
    purpose = f"The stream to an echo with full buffers ends {how}."
    return Ending(f"ready-full-echo-{name}", purpose, _RULES, (), None, data, late, credit)


_ROWS = (
    _row("ended-by-an-empty-sd", "by an empty SD", b""),
    _row("ended-by-data", "by an SD with data", b"the end"),
    _row("ended-before-its-data", "before the SD below it has come", b"the end", late=True),
    _row("taken-slowly", "by an SD with data, and is taken slowly", b"the end", credit=16),
)


each(globals(), _ROWS, _drive)
