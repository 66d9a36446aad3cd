"""STP-PL: polling (sections 7.1 and 7.2)."""

from __future__ import annotations

from bentpipe_conformance.protocols.stp.arrival import withholding
from bentpipe_conformance.protocols.stp.cases.steps import connected
from bentpipe_conformance.protocols.stp.connection import Connection

LARGE = 320
"""SDs after which the window of a stream over the GEO link has long been large."""

ALL_FROM_HERE = range(6, 10_000)
"""POLLs that a silent peer leaves unanswered."""

GIVEN_UP_S = 75.0
"""Seconds after which a silent peer must have been given up."""


@connected("STP-PL-001", "STP-PL-002", "STP-PL-005", "STP-PL-006", to="chargen", credit=1024)
def test_ready_long_stream(connection: Connection) -> None:
    """In a large window POLLs leave three times in a round trip, and ride on SDs."""
    connection.receive(LARGE, credit=1024)


@connected("STP-PL-003", "STP-PL-006", to="chargen", credit=256)
def test_ready_first_bursts_of_a_stream(connection: Connection) -> None:
    """In a small window the last SD of every burst asks for a STAT."""
    connection.receive(10)


@connected("STP-PL-003", to="chargen", credit=256)
def test_ready_losses_have_made_the_window_small(connection: Connection) -> None:
    """Once losses have halved the window several times, each burst ends with a POLL again."""
    connection.receive(84, losing=[14, 46, 60])


@connected("STP-PL-003", "STP-PL-006", to="chargen", credit=6)
def test_ready_small_credit(connection: Connection) -> None:
    """Where the credit ends a burst, its last SD asks for a STAT."""
    connection.receive(18, credit=6)


@connected("STP-PL-004", to="echo")
def test_ready_echo_ends(connection: Connection) -> None:
    """The SD with the FIN flag asks for a STAT."""
    connection.sds(3, octets=400)
    connection.release()


@connected("STP-PL-006", to="chargen", credit=64)
def test_ready_polls_among_retransmissions(connection: Connection) -> None:
    """Retransmissions are no SDPs, and POLLs beside them still name VT(S)."""
    connection.receive(60, losing={8: 2, 20: 1, 21: 1}, credit=64)


@connected("STP-PL-007", "STP-PL-008", to="chargen", credit=64, aborted=False)
def test_ready_peer_falls_silent(connection: Connection) -> None:
    """A peer that answers no more is polled more and more rarely, and given up after a minute."""
    connection.serve(
        lambda: bool(connection.closed),
        answer=withholding(ALL_FROM_HERE), report_gaps=False, credit=64,
        within=GIVEN_UP_S + 10 * connection.rtt,
    )  # fmt: skip


@connected("STP-PL-010", to="echo")
def test_ready_nothing_to_do(connection: Connection) -> None:
    """Once everything is acknowledged, no POLL leaves."""
    connection.sds(3, octets=200)
    connection.deliver()
    connection.serve(lambda: len(connection.reception.stream) >= 600)
    connection.stat()
    connection.discard(2 * connection.rtt + 12.0)
