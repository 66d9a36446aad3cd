"""STP-DT: credit (section 6.6), given by the tester and by the implementation."""

from __future__ import annotations

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, connected, go_on
from bentpipe_conformance.protocols.stp.codec import SD
from bentpipe_conformance.protocols.stp.connection import Connection

BURST, BETWEEN_S = 40, 0.03
"""SDs of a few octets that are sent at once, and the time the link needs for them."""

MOST_SDS = 6000
"""Credit that a script is ready to use up."""

PROBED_S = 8.0
"""Seconds in which a closed window is probed four times over a geostationary link."""

PROBED_LONG_S = 70.0
"""Seconds in which it is probed at the longest interval, twice at least."""


@connected("STP-DT-011", to="chargen", credit=6)
def test_ready_credit_rises_by_few(connection: Connection) -> None:
    """A sender with more to send stops where its credit ends."""
    connection.receive(6, credit=None)
    for more in (1, 5, 2):
        edge = connection.reception.vr_mr + more
        connection.stat(n_mr=edge)
        connection.receive(edge, credit=None)
    go_on(connection, connection.rtt + PAUSE_S)


@connected("STP-DT-011", to="chargen", credit=4)
def test_ready_begin_gives_the_least_credit(connection: Connection) -> None:
    """The credit of the BEGIN holds until a report gives more."""
    go_on(connection, 2 * connection.rtt + PAUSE_S, answering=False)
    connection.receive(8, credit=4)


@connected("STP-DT-025", to="chargen", credit=4)
def test_ready_window_stays_closed(connection: Connection) -> None:
    """Everything is acknowledged and there is no credit: the sender asks, ever more rarely."""
    connection.receive(4, credit=None)
    go_on(connection, PROBED_S + 2 * connection.rtt)
    connection.receive(8, credit=4)


@connected("STP-DT-025", to="chargen", credit=4)
def test_ready_window_stays_closed_for_long(connection: Connection) -> None:
    """The time between the POLLs stops growing well before the peer would be given up."""
    connection.receive(4, credit=None)
    go_on(connection, PROBED_LONG_S + 2 * connection.rtt)
    connection.receive(8, credit=4)


@connected("STP-DT-008", "STP-DT-020")
def test_ready_sds_and_polls_beyond_the_credit(connection: Connection) -> None:
    """What the credit does not permit leaves no trace; the POLL is answered all the same."""
    connection.sds(3)
    connection.ask()
    for beyond in (0, 7):
        number = connection.ours(connection.vt_ms + beyond)
        connection.send(SD, seq=number, data=b"never to be taken in")
        connection.wait(PAUSE_S)
        connection.ask()
    for beyond in (1, 40, 1 << 22):
        connection.ask(seq=connection.ours(connection.vt_ms + beyond))
    connection.sds(2)
    connection.deliver()


@connected("STP-DT-021", "STP-DT-022")
def test_ready_held_sds_take_room(connection: Connection) -> None:
    """While a gap is open, SDs above it fill the buffer, and no credit is taken back."""
    connection.sds(3)
    connection.ask()
    for _ in range(3):
        first = connection.vt_s
        connection.sds(12, octets=1000, skip=[first, first + 5])
        connection.ask()
    connection.deliver()


@connected("STP-DT-024")
def test_ready_window_filled_above_a_gap(connection: Connection) -> None:
    """The missing SD of a full window arrives: the receiver says at once that it is open again."""
    _fill_above_a_gap(connection)
    _fill_the_gap(connection)


@connected("STP-DT-024")
def test_ready_window_full_forged_poll(connection: Connection) -> None:
    """Before the window opens again, POLLs come that nobody can have sent."""
    _fill_above_a_gap(connection)
    for beyond in (3, 1 << 22, -(1 << 22)):
        number = connection.ours(connection.vt_ms + beyond)
        connection.poll(repeat=True, seq=number, n_ps=connection.vt_ps + 1000 + beyond % 7)
        connection.wait(PAUSE_S)
    connection.inbox.clear()
    _fill_the_gap(connection)


def _fill_above_a_gap(connection: Connection) -> None:
    """Lose SD 2 and send everything that the credit permits above it."""
    connection.sds(2, octets=8)
    connection.ask()
    if connection.vt_ms > MOST_SDS:
        raise NotReached(f"a credit of {connection.vt_ms} SDs is more than a script can use up")
    while connection.vt_s < connection.vt_ms:
        count = min(BURST, connection.vt_ms - connection.vt_s)
        connection.sds(count, octets=8, skip=[2])
        connection.peer.wait(BETWEEN_S)
    connection.peer.wait(PAUSE_S)
    connection.inbox.clear()
    stat = connection.ask()
    if connection.vt_s < connection.vt_ms or stat.elements[-1:] != (connection.vt_s,):
        raise NotReached("the window is not full")


def _fill_the_gap(connection: Connection) -> None:
    """Send SD 2, and everything that is then missing."""
    connection.sd(number=2)
    connection.discard(2 * connection.rtt + 2.0)
    connection.ask()
    connection.deliver()
