"""Sending and receiving."""

from __future__ import annotations

from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.toy.connection import Connection


@connected("TOY-DAT-001")
def test_open_acknowledgments(connection: Connection) -> None:
    """Data flows as it is acknowledged."""
    connection.receive(3000)


@connected("TOY-DAT-001", "TOY-TIM-001")
def test_open_acknowledgment_withheld(connection: Connection) -> None:
    """Without acknowledgment, the packet is sent again and no other."""
    for _ in range(2):
        connection.await_arrival(lambda arrival: arrival.has_data, "DATA")
    connection.receive(1000)


@connected("TOY-DAT-002", to="discard")
def test_open_duplicate(connection: Connection) -> None:
    """A duplicate is acknowledged as well."""
    connection.deliver(pattern(0, 100))
    connection.repeat(pattern(0, 100))
    connection.wait(2 * connection.rtt)
