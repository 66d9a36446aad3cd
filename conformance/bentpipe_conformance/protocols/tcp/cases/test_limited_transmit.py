"""Limited transmit: what the first two duplicates may send."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import DISTANT_S, fill_window, take_round
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.peer import Peer


@connected("SNR-LT-001", "SNR-LT-002", rtt=DISTANT_S, sack=False)
def test_established_first_two_duplicates(connection: Connection) -> None:
    """The first two duplicates send one new segment each, or none, as the profile says.

    Without SACK, one segment of a window is lost.
    """
    connection.receive(40, losing=[16])


@connected("SNR-LT-001", "SNR-LT-002", rtt=DISTANT_S)
def test_established_first_two_duplicates_with_sack(connection: Connection) -> None:
    """The same with SACK, where each duplicate reports a newly held segment."""
    connection.receive(40, losing=[16])


@case("SNR-LT-003")
def test_established_duplicates_with_a_full_window(peer: Peer) -> None:
    """With the receiver's window full, the first duplicates send nothing.

    Without SACK, the tester offers eight segments; the first is lost when all are outstanding.
    """
    connection, (lost, *rest) = fill_window(peer, 8)
    for _ in rest[:2]:
        connection.ack(lost.start)
    take_round(connection, 0.5)
    take_round(connection)


@connected("SNR-LT-004", profiles=("rfc",))
def test_established_duplicates_without_sack_information(connection: Connection) -> None:
    """With SACK, the first duplicates send nothing unless they report newly held data.

    They follow after a pause in which a user whose queue has run empty writes more.
    """
    connection.grow(8)
    first, *_ = connection.collect(0)
    connection.ack(first.end, sack=[])
    connection.wait(min(0.15, connection.rtt / 2))
    for _ in range(2):
        connection.ack(first.end, sack=[])
    take_round(connection, bare=True)
    take_round(connection)
