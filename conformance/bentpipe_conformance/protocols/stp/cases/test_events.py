"""Two events within a round trip: loss, close, credit and silence, in every pair that can meet.

Each row is an ordinary transfer but for two things that happen to it at once. The checkers of all
requirements judge it; a row names those that are sure to have an occasion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.arrival import Answer, Arrival, at_once, withholding
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, WARM_UP
from bentpipe_conformance.protocols.stp.codec import FIN
from bentpipe_conformance.protocols.stp.peer import Peer

TOTAL = 60
"""SDs of a stream after which nothing more is asked of it."""


@dataclass(frozen=True, slots=True)
class Events(Row):
    """Two events; ``happen`` brings them about on a connection of its own."""

    happen: Callable[[Peer], object] = lambda _: None


def _stream(
    losing: Mapping[int, int], *, answer: Answer = at_once, credit: int = 256, gaps: bool = True
) -> Callable[[Peer], None]:
    """SDs of a stream of the IUT are lost, counted from :data:`WARM_UP`, each so many times."""

    def happen(peer: Peer) -> None:
        connection = peer.connect("chargen", credit=credit)
        connection.receive(WARM_UP, credit=credit)
        lost = {WARM_UP + number: times for number, times in losing.items()}
        connection.receive(
            TOTAL, losing=lost, answer=_later(connection.polls, answer), credit=credit,
            report_gaps=gaps,
        )  # fmt: skip
        connection.abort()

    return happen


def _later(polls: int, answer: Answer) -> Answer:
    """The same rule, counted from a POLL on."""
    return lambda poll, before: answer(poll, before - polls)


def _closing(
    losing: Iterable[int] = (), fins: int = 0, *, ours: Iterable[int] = (), gaps: bool = True
) -> Callable[[Peer], None]:
    """The tester sends to the echo service and closes; either side loses SDs, the IUT its FIN.

    ``losing`` and ``ours`` count SDs of the IUT and of the tester, ``fins`` how often the SD with
    the IUT's FIN is lost.
    """
    numbers = frozenset(losing)

    def lost(sd: Arrival, before: int) -> bool:
        if sd.packet.flags & FIN:
            return before < fins
        return not before and sd.number in numbers

    def happen(peer: Peer) -> None:
        connection = peer.connect("echo")
        connection.sds(8, skip=ours)
        connection.sd(b"", fin=True, poll=True)
        done = lambda: connection.reception.ended  # noqa: E731
        if ours:
            connection.wait(PAUSE_S)
            connection.deliver()
        connection.serve(done, losing=lost, report_gaps=gaps)
        connection.release()
        peer.wait(PAUSE_S)

    return happen


SENT = ("STP-DT-003", "STP-DT-027")
CLOSED = ("STP-CC-004", "STP-CC-022")

ROWS = (
    Events("loss-of-the-fin", "The SD with the FIN is lost.", CLOSED, happen=_closing(fins=1)),
    Events("loss-of-the-fin-twice", "The SD with the FIN is lost twice.", CLOSED,
           happen=_closing(fins=2)),
    Events("loss-of-data-and-of-the-fin", "Data in the middle and the FIN are lost.", CLOSED,
           happen=_closing([3], 1)),
    Events("loss-of-the-last-data-and-of-the-fin", "The last data and the FIN are lost.", CLOSED,
           happen=_closing([6, 7], 1)),
    Events("loss-both-ways-and-close", "Data of both directions and the FIN are lost.", CLOSED,
           happen=_closing([2], 1, ours=(1, 4))),
    Events("hole-below-the-fin-of-the-tester", "The tester's FIN arrives above a hole of two SDs.",
           CLOSED, happen=_closing(ours=(6, 7))),
    Events("loss-of-a-retransmission", "An SD and its retransmission are lost.", SENT,
           happen=_stream({3: 2})),
    Events("loss-of-a-retransmission-and-of-another", "A retransmission and a later SD are lost.",
           SENT, happen=_stream({3: 2, 9: 1})),
    Events("loss-of-a-run", "A run of five SDs is lost.", SENT,
           happen=_stream(dict.fromkeys(range(3, 8), 1))),
    Events("loss-of-two-runs-without-ustats", "Two runs are lost and only STATs tell.", SENT,
           happen=_stream({3: 1, 4: 1, 8: 1, 9: 1}, gaps=False)),
    Events("loss-of-an-sd-and-of-its-report", "An SD and the next two answers are lost.", SENT,
           happen=_stream({4: 1}, answer=withholding([0, 1]), gaps=False)),
    Events("loss-while-the-credit-is-used-up", "SDs are lost with a credit of eight.",
           ("STP-DT-027",),  # on a short path USTATs alone may tell of them
           happen=_stream({2: 1, 7: 1}, credit=8)),
    Events("loss-of-the-last-of-the-credit", "The last SD that the credit permits is lost twice.",
           SENT, happen=_stream({7: 2}, credit=8)),
)  # fmt: skip


def _happen(peer: Peer, row: Events) -> None:
    row.happen(peer)


each(globals(), ROWS, _happen)
