"""STP-DT: packets that arrive late, twice, or not in their order (sections 6.2 to 6.4)."""

from __future__ import annotations

from bentpipe_conformance.protocols.stp.cases.steps import (
    NEAR_S,
    PAUSE_S,
    VERY_FAR_S,
    connected,
    go_on,
    holding,
)
from bentpipe_conformance.protocols.stp.codec import POLL, STAT
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import MODULUS

REPORTED_S = 1.5
"""Seconds after which a gap must have been reported, also by a USTAT that waits."""

BY_TIMER_S = 6.0
"""Seconds within which POLLs without answer are repeated."""


@connected("STP-DT-007", "STP-DT-017")
def test_ready_polls_arrive_late(connection: Connection) -> None:
    """POLLs that SDs have overtaken are answered, and move nothing back."""
    connection.sds(9, skip=[4])
    connection.wait(PAUSE_S)
    connection.ask()
    for n_s in (3, 0, 8):
        connection.poll(seq=connection.ours(n_s))
        connection.wait(PAUSE_S)
    connection.sd(number=1)
    connection.ask()
    connection.deliver()


@connected("STP-DT-031", "STP-DT-018")
def test_ready_gaps_are_filled_soon(connection: Connection) -> None:
    """What is missing comes soon, in part, or a POLL asks: a USTAT that waits reports the rest."""
    connection.sds(6, octets=40, skip=[1, 2, 3])
    connection.sd(number=2)
    connection.wait(REPORTED_S)
    connection.ask()
    for asks in (False, True):
        first = connection.vt_s
        connection.sds(4, octets=40, skip=[first, first + 2])
        connection.sd(number=first)
        if asks:
            connection.poll()
        connection.wait(REPORTED_S)
    connection.deliver()


@connected("STP-DT-031", "STP-PF-013")
def test_ready_gap_behind_what_a_poll_has_shown_missing(connection: Connection) -> None:
    """A gap begins where a STAT has reported SDs missing; its first SD comes soon, theirs later."""
    connection.sds(2, octets=40)
    connection.sds(2, octets=40, skip=[2, 3])
    connection.ask()
    connection.sds(3, octets=40, skip=[4, 5])
    connection.sd(number=4)
    connection.wait(REPORTED_S)
    connection.deliver()


@connected("STP-DT-031", to="echo", rtt=VERY_FAR_S, credit=64)
def test_ready_gaps_on_a_long_path(connection: Connection) -> None:
    """An eighth of the round-trip time is long: three more SDs come before it has passed, or none.

    The IUT has measured the round trip by an echo before.
    """
    connection.sd(40, poll=True)
    connection.serve(lambda: len(connection.reception.stream) >= 40)
    go_on(connection, 2 * connection.rtt)
    for more in (4, 1, 0):
        first = connection.vt_s
        connection.sds(4, octets=40, skip=range(first, first + 3))
        connection.wait(PAUSE_S / 2)
        connection.sd(number=first + 1)
        for _ in range(more):
            connection.wait(PAUSE_S / 2)
            connection.sd(40)
        connection.wait(REPORTED_S)
    connection.deliver()


@connected("STP-DT-012", to="echo")
def test_ready_echo_of_sds_in_reverse(connection: Connection) -> None:
    """SDs that arrive in reverse order come back in order."""
    for first in (0, 6):
        connection.sds(6, octets=200, skip=range(first, first + 6))
        for number in reversed(range(first, first + 6)):
            connection.sd(number=number)
        connection.discard(PAUSE_S)
    connection.deliver()
    connection.release()


@holding("STP-DT-007")
def test_ready_old_stat_gives_credit(connection: Connection, base: int) -> None:
    """A STAT that a newer one has overtaken gives no credit, whatever has come in between."""
    connection.stat()
    n_ps = (connection.last_poll[0] - 1) % MODULUS
    for announced in (False, True):
        connection.wait(PAUSE_S)
        if announced:
            connection.stat(elements=(), n_ps=0, timestamp=0)
            connection.wait(PAUSE_S)
        connection.send(STAT, n_ps=n_ps, n_mr=connection.theirs(base + 16))
        go_on(connection, 2 * connection.rtt + PAUSE_S, answering=False)
    connection.receive(base + 16, credit=8)


@holding("STP-DT-007", "STP-PL-009", losing=[2])
def test_ready_old_stat_reports_a_gap(connection: Connection, base: int) -> None:
    """A STAT that a newer one has overtaken retransmits nothing, and measures nothing."""
    for _ in range(2):
        connection.remember(connection.expect(POLL, within=BY_TIMER_S, what="a POLL by timer"))
    connection.stat(elements=())
    n_ps = (connection.last_poll[0] - 1) % MODULUS
    old = connection.their_list((base + 2, base + 3, base + 8))
    connection.send(STAT, n_ps=n_ps, elements=old, after=PAUSE_S)
    go_on(connection, connection.rtt + 3 * PAUSE_S, answering=False)
    connection.stat(elements=(), n_ps=0, timestamp=0)
    go_on(connection, BY_TIMER_S, answering=False)
    connection.receive(base + 16, credit=8)


@connected("STP-DT-003", to="chargen", credit=16, rtt=NEAR_S)
def test_ready_stats_arrive_twice(connection: Connection) -> None:
    """Every STAT arrives twice, the second time late: the stream goes on unharmed."""
    connection.receive(60, losing=[9, 25], credit=16, answer=lambda _poll, _nth: (0.0, 0.9))


@connected("STP-DT-031", to="echo", rtt=VERY_FAR_S, credit=64)
def test_ready_gaps_follow_each_other(connection: Connection) -> None:
    """A second gap opens while the USTAT of the first may wait: it postpones nothing.

    The first time an eighth of the round-trip time passes, then three more SDs arrive.
    """
    connection.sd(40, poll=True)
    connection.serve(lambda: len(connection.reception.stream) >= 40)
    go_on(connection, 2 * connection.rtt)
    connection.sds(2, octets=40, skip=[connection.vt_s])
    connection.wait(0.7 * connection.rtt / 8)
    connection.sds(2, octets=40, skip=[connection.vt_s])
    connection.wait(REPORTED_S)
    connection.sds(2, octets=40, skip=[connection.vt_s])
    for _ in range(2):
        connection.wait(PAUSE_S / 3)
        connection.sds(2, octets=40, skip=[connection.vt_s])
    connection.wait(PAUSE_S / 3)
    connection.sd(40)
    connection.wait(REPORTED_S)
    connection.deliver()
