"""STP-DT-005: numbers go from 2^24 - 1 on to 0.

The tester chooses its ISS, so that the implementation as a receiver crosses the wrap at once. As a
sender it draws its ISS itself: only a stream that happens to begin shortly before the wrap crosses
it, and then every checker judges it like any other.
"""

from __future__ import annotations

from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, connected
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import MODULUS


@connected("STP-DT-005", to="echo", iss=MODULUS - 5)
def test_ready_stream_crosses_the_wrap(connection: Connection) -> None:
    """SDs on both sides of the wrap arrive in order."""
    for _ in range(4):
        connection.sds(3)
        connection.ask()
    connection.release()


@connected("STP-DT-005", iss=MODULUS - 5)
def test_ready_gaps_across_the_wrap(connection: Connection) -> None:
    """A run that is missing begins below the wrap and ends above it."""
    connection.sds(12, skip=[1, 4, 5, 6, 9])
    connection.wait(PAUSE_S)
    connection.ask()
    for number in (5, 4, 9, 5):
        connection.sd(number=number)
        connection.ask()
    connection.deliver()


@connected("STP-DT-005", iss=MODULUS - 1, data=b"the last number")
def test_idle_begin_with_the_last_number(connection: Connection) -> None:
    """The data of the BEGIN has the number 2^24 - 1, and the first SD the number 0."""
    connection.sds(3)
    connection.deliver()


@connected("STP-DT-005", iss=MODULUS - 40)
def test_ready_credit_ends_beyond_the_wrap(connection: Connection) -> None:
    """What is beyond a credit that ends above the wrap is not taken for something old."""
    connection.sds(4)
    connection.ask()
    connection.poll(seq=connection.ours(connection.vt_ms + 10))
    connection.wait(PAUSE_S)
    for first in range(4, 60, 14):
        connection.sds(14, skip=[first + 2])
        connection.wait(PAUSE_S)
    connection.ask()
    connection.deliver()


@connected("STP-DT-005", iss=MODULUS - 150)
def test_ready_wrap_comes_late(connection: Connection) -> None:
    """Numbers wrap in the middle of a stream, with a gap on either side."""
    for first in range(0, 200, 20):
        connection.sds(20, octets=40, skip=[first + 9, first + 10])
        connection.wait(0.1)
        connection.deliver()
