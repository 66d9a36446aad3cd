"""STP-CC: a BGAK that leaves the data of the BEGIN unacknowledged (sections 5.1 and 9).

The caller takes N(R) of the BGAK as that of a report, whatever its BEGIN has carried. A row says
how much the user sends, how often the BEGIN has come before it is answered, and how the tester then
tells that its data is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, TWICE_S, go_on
from bentpipe_conformance.protocols.stp.codec import BEGIN
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.peer import Peer
from bentpipe_conformance.protocols.stp.reception import Reception

LITTLE, MUCH = 300, 100_000
"""Octets that the BEGIN carries with the end of the stream, and that need many SDs."""

UNHEEDED_S, UNHEEDED_RTTS = 2.5, 3.5
"""Seconds and round trips after which a report that nothing hinders has not been heeded."""


def _by_stat(connection: Connection) -> None:
    """Answer the POLLs; what the BEGIN carried comes again as an SD."""
    connection.receive(1, report_gaps=False)
    go_on(connection, connection.rtt + PAUSE_S)


def _by_ustat(connection: Connection) -> None:
    """Answer no POLL; a USTAT alone reports the data of the BEGIN missing."""
    connection.wait(PAUSE_S)
    connection.ustat(0, 1)
    connection.wait(UNHEEDED_S + UNHEEDED_RTTS * connection.rtt)


@dataclass(frozen=True, slots=True)
class Acceptance(Row):
    """A BGAK with N(R) = ISS, and what follows.

    Attributes:
        tell: tells the caller that the data is missing.
        octets: how much the user sends.
        begins: for each call how often its BEGIN comes before it is answered.
    """

    tell: Callable[[Connection], None] = _by_stat
    octets: int = LITTLE
    begins: tuple[int, ...] = (1, 2)


def _drive(peer: Peer, row: Acceptance) -> None:
    for begins in row.begins:
        connection = peer.summon("send", octets=row.octets)
        for _ in range(begins - 1):
            connection.expect(BEGIN, within=TWICE_S, what="the BEGIN once more")
        # The tester has not kept what the BEGIN carried.
        connection.reception = Reception(vr_mr=connection.reception.vr_mr)
        connection.bgak()
        row.tell(connection)
        connection.abort()
        peer.wait(PAUSE_S)


def _rows() -> Iterator[Acceptance]:
    needs = ("active_open",)
    yield Acceptance(
        "calling-bgak-covers-nothing-of-a-small-stream",
        "All that the user sends was in the BEGIN: it is asked about at once, and comes again.",
        ("STP-CC-042", "STP-DT-003"), needs, None, _by_stat,
    )  # fmt: skip
    yield Acceptance(
        "calling-bgak-covers-nothing-of-a-large-stream",
        "SDs have followed the BEGIN: all is asked about at once, and its data comes again.",
        ("STP-CC-042", "STP-DT-003"), needs, None, _by_stat, MUCH,
    )  # fmt: skip
    yield Acceptance(
        "calling-begin-reported-by-a-ustat",
        "The data of a BEGIN counts as sent once, however often the BEGIN has been sent.",
        ("STP-CC-014", "STP-CC-042"), needs, None, _by_ustat,
    )  # fmt: skip


each(globals(), _rows(), _drive)
