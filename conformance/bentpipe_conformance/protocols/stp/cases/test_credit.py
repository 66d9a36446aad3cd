"""STP-DT: credit (section 6.5), given by the tester and by the implementation."""

from __future__ import annotations

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.stp.cases.steps import (
    BATCH,
    CREDIT,
    PAUSE_S,
    connected,
    go_on,
    holding,
)
from bentpipe_conformance.protocols.stp.codec import POLL, SD, SDP, STAT, USTAT
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, MAX_CREDIT
from bentpipe_conformance.protocols.stp.reception import Reception

MOST_SDS = 6000
"""Credit that a script is ready to use up."""

BIT_BY_BIT = (8, 120, 40)
"""SDs by which a window opens."""

FEW, PART = 5, 16
"""SDs that are delivered at once without opening a window by 16, and just as many (STP-DT-024)."""

QUIET_S = 1.5
"""Seconds without a packet after which a window has opened as far as it can."""

GIVEN_S = 5.0
"""Seconds in which a sender with data and room has surely used new credit."""

BATCH_S = 10.0
"""Seconds that a batch of the largest SDs takes at 50 kb/s."""

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


@connected("STP-DT-030", to="chargen", credit=1)
def test_ready_begin_gives_less_than_the_least_credit(connection: Connection) -> None:
    """A BEGIN that permits one SD permits four all the same (section 3.3)."""
    go_on(connection, 2 * connection.rtt + GIVEN_S)
    connection.serve(lambda: connection.reception.vr_r >= 8, credit=8)


@connected("STP-DT-029", "STP-DT-003", to="chargen", credit=4)
def test_ready_stats_give_the_most_credit(connection: Connection) -> None:
    """N(MR) is 2^23 above N(R), with a list and without one: no credit is larger (STP-DT-005)."""
    connection.receive(3, losing=[3], credit=None)
    go_on(connection, connection.rtt + PAUSE_S, answering=False)
    for elements in ((3, 4), ()):
        connection.send(
            STAT, seq=connection.theirs(3), n_mr=connection.theirs(3 + MAX_CREDIT),
            elements=connection.their_list(elements),
        )  # fmt: skip
        go_on(connection, 2 * connection.rtt + GIVEN_S, answering=False)


@connected("STP-DT-029", to="chargen", credit=4)
def test_ready_closed_window_opens_to_the_most(connection: Connection) -> None:
    """A report gives 2^23 SDs at once, the most that there is, a little less above VT(MS)."""
    connection.receive(3, losing=[3], credit=None)
    connection.stat(n_mr=connection.reception.vr_r + MAX_CREDIT, elements=())
    go_on(connection, 2 * connection.rtt + GIVEN_S, answering=False)


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


@connected("STP-DT-025", "STP-PL-007", to="chargen", credit=4)
def test_ready_window_closes_after_silences(connection: Connection) -> None:
    """The report that closes the window ends a doubling, as any other does."""
    connection.receive(4, credit=4)
    for arrival in connection.arrivals(PROBED_S):
        if arrival.has_data:
            connection.hold(arrival)
        if arrival.polls:
            connection.remember(arrival)
    connection.stat(elements=(), n_ps=0, timestamp=0)
    go_on(connection, PROBED_S)
    connection.receive(12, credit=4)


def _echoed_at_the_edge(connection: Connection) -> Reception:
    """Four SDs have come back, which is all the credit there is."""
    reception = connection.reception
    for _ in range(4):
        connection.sd(50, poll=True)
    connection.serve(lambda: len(reception.stream) >= 200, credit=None)
    connection.stat(elements=())
    return reception


@connected("STP-DT-011", "STP-DT-025", to="echo", credit=4)
def test_ready_stream_ends_without_credit(connection: Connection) -> None:
    """All credit is used when the stream ends: an empty SD with the FIN flag needs it as well.

    It waits for credit like data, and is asked for it, ever more rarely.
    """
    reception = _echoed_at_the_edge(connection)
    connection.sd(b"", fin=True, poll=True)
    go_on(connection, connection.rtt + PROBED_S)
    reception.vr_mr += 1
    connection.stat(elements=())
    connection.serve(lambda: reception.ended, credit=None)
    connection.release()


@connected("STP-DT-025", to="echo", credit=4)
def test_ready_data_comes_without_credit(connection: Connection) -> None:
    """Without data the lack of credit is no reason to ask; once there is some, it is."""
    reception = _echoed_at_the_edge(connection)
    go_on(connection, PROBED_S)
    connection.sds(2)
    go_on(connection, 2 * PROBED_S)
    reception.vr_mr += 8
    connection.stat(elements=())
    connection.serve(lambda: len(reception.stream) >= 400, credit=8)
    connection.deliver()


@connected("STP-DT-029", "STP-DT-011", to="chargen", credit=4)
def test_ready_window_reopens_by_announcements(connection: Connection) -> None:
    """Credit comes in STATs that answer no POLL; the first one is lost, and a POLL finds it."""
    connection.receive(4, credit=None)
    for more in (4, 1, 8):
        go_on(connection, connection.rtt + PAUSE_S)
        edge = connection.reception.vr_mr + more
        connection.stat(n_mr=edge, elements=(), n_ps=0, timestamp=0)
        connection.receive(edge, credit=None)
    connection.reception.vr_mr += 4
    connection.receive(connection.reception.vr_mr, credit=None)


@holding("STP-DT-029", losing=[7])
def test_ready_ustat_gives_credit(connection: Connection, base: int) -> None:
    """A USTAT reports the only SD in flight missing, and permits more."""
    connection.stat(n_r=base + 7, elements=())
    connection.wait(PAUSE_S)
    connection.reception.vr_mr += 4
    connection.ustat(base + 7, base + 8)
    go_on(connection, connection.rtt + GIVEN_S, answering=False)
    connection.receive(base + 16, credit=8)


@holding("STP-DT-011")
def test_ready_stat_permits_less_than_it_acknowledges(connection: Connection, base: int) -> None:
    """N(MR) below N(R) is no credit, and no credit of nearly all numbers either."""
    for less in (1, 4, CREDIT):
        connection.stat(
            n_r=base + CREDIT, n_mr=base + CREDIT - less, elements=(), n_ps=0, timestamp=0
        )
        go_on(connection, PAUSE_S)
    go_on(connection, connection.rtt + GIVEN_S)
    connection.stat(n_mr=base + CREDIT + 4, elements=(), n_ps=0, timestamp=0)
    connection.receive(base + 2 * CREDIT, credit=CREDIT)


@connected("STP-DT-007", to="chargen", credit=256)
def test_ready_stat_repeats_less_credit(connection: Connection) -> None:
    """N(MR) falls from one STAT to the next, below N(R) at last: what was permitted stays so."""
    connection.receive(12, credit=256)
    go_on(connection, 2 * connection.rtt, answering=False)
    least = connection.highest
    for _ in range(3):
        connection.send(
            STAT, seq=connection.theirs(connection.highest), n_mr=connection.theirs(least),
            elements=(),
        )  # fmt: skip
        go_on(connection, connection.rtt + GIVEN_S, answering=False)


@connected("STP-DT-002", "STP-DT-008")
def test_ready_poll_exactly_at_the_credit(connection: Connection) -> None:
    """A POLL may raise VR(H) up to VR(MR), and no further."""
    connection.sds(2, octets=8)
    connection.ask()
    edge = connection.vt_ms
    for n_s in (edge + 1, edge - 1, edge, edge + 1):
        connection.ask(seq=connection.ours(n_s))


@connected("STP-DT-020")
def test_ready_last_sd_of_the_credit(connection: Connection) -> None:
    """The last SD that the credit permits is taken, and the one behind it is not."""
    connection.sds(2, octets=8)
    connection.ask()
    if connection.vt_ms > MOST_SDS:
        raise NotReached(f"a credit of {connection.vt_ms} SDs is more than a script can use up")
    last = connection.vt_ms - 1
    connection.sds(last - connection.vt_s, octets=8, skip=range(connection.vt_s, last))
    connection.sd(8)
    connection.wait(PAUSE_S)
    connection.ask()
    connection.send(SD, seq=connection.ours(last + 1), data=b"one too many")
    connection.wait(PAUSE_S)
    connection.ask()
    connection.deliver()


@connected("STP-DT-020")
def test_ready_sd_beyond_the_announced_credit(connection: Connection) -> None:
    """There is room again, but the tester has not been told: the SD is not taken."""
    connection.sds(2)
    connection.ask()
    for ahead in (0, 1):
        connection.sds(3)
        connection.wait(PAUSE_S)
        number = connection.ours(connection.vt_ms + ahead)
        connection.send(SD, seq=number, data=b"too early")
        connection.wait(PAUSE_S)
        connection.ask()
    connection.deliver()


@connected("STP-DT-008", to="echo")
def test_ready_polls_far_beyond_the_fin(connection: Connection) -> None:
    """Nothing can follow the FIN: a POLL that says so raises nothing."""
    connection.sds(3, octets=50, skip=[1])
    connection.sd(b"the end", fin=True)
    connection.ask(seq=connection.ours(connection.vt_s + 3))
    connection.ask(seq=connection.ours(connection.vt_s + 1))
    connection.ask()
    connection.deliver()
    connection.release()


@connected("STP-DT-008")
def test_ready_polls_with_another_csn(connection: Connection) -> None:
    """POLLs and SDPs of nobody, or without a number, are not answered, and change nothing."""
    connection.sds(3, skip=[1])
    connection.ask()
    for csn in (0, connection.csn ^ 1 << 16, connection.csn ^ 1 << 31):
        connection.send(
            POLL, csn=csn, n_ps=500 + connection.vt_ps, seq=connection.ours(connection.vt_s + 2)
        )
        connection.wait(PAUSE_S)
        connection.ask()
    connection.sd(poll=True, csn=connection.csn ^ 1 << 20)
    connection.wait(PAUSE_S)
    connection.ask()
    connection.send(POLL, n_ps=0)
    connection.send(SDP, n_ps=0, data=b"of a POLL that nobody sends")
    connection.wait(PAUSE_S)
    connection.ask()
    connection.deliver()


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


@connected("STP-DT-024", "STP-DT-020", to="echo", credit=4)
def test_ready_echo_is_held_up(connection: Connection) -> None:
    """An echo that may not send does not read: it closes its window, and opens it bit by bit."""
    size = min(connection.max_sd or LEAST_MAX_SD, connection.peer_max_sd or LEAST_MAX_SD)
    _use_up(connection, size)
    connection.send(SD, seq=connection.ours(connection.vt_ms), data=b"one too many")
    connection.wait(PAUSE_S)
    connection.ask()
    for more in BIT_BY_BIT:
        _take_back(connection, more)
        connection.discard(QUIET_S)
        connection.ask()
        _use_up(connection, size)
    octets = sum(len(data) for data, _ in connection.sent.values())
    connection.reception.vr_mr += BATCH
    connection.stat(elements=())
    connection.serve(lambda: len(connection.reception.stream) >= octets, credit=BATCH)
    for _ in range(2):  # now it reads all that there is
        octets += len(connection.sd(size, poll=True).data)
        connection.serve(lambda most=octets: len(connection.reception.stream) >= most, credit=BATCH)  # type: ignore[misc]
    connection.release()


@connected("STP-CC-022", "STP-DT-020", to="echo", credit=4, aborted=False)
def test_ready_abort_of_an_echo_that_is_held_up(connection: Connection) -> None:
    """The peer aborts while an echo has more than it may send: the connection is gone at once."""
    size = min(connection.max_sd or LEAST_MAX_SD, connection.peer_max_sd or LEAST_MAX_SD)
    _use_up(connection, size)
    connection.abort()
    connection.wait(PAUSE_S)
    connection.poll()
    connection.wait(2 * connection.rtt + PAUSE_S)


def _use_up(connection: Connection, size: int) -> None:
    """Send what the credit permits until it rises no more."""
    while connection.vt_s < connection.vt_ms:
        if connection.vt_s > MOST_SDS:
            raise NotReached(f"the credit still rises after {connection.vt_s} SDs")
        connection.sds(min(BATCH, connection.vt_ms - connection.vt_s), octets=size)
        connection.ask(within=connection.peer.patience + BATCH_S)
        # On a slow path this takes more than a minute: a peer that says nothing would be given up.
        connection.stat(elements=(), n_ps=0, timestamp=0)


def _take_back(connection: Connection, sds: int) -> None:
    """Permit, and receive, a few SDs of the echo."""
    reception = connection.reception
    last = reception.vr_mr + sds
    while reception.vr_r < last:
        reception.vr_mr = min(last, reception.vr_r + BATCH)
        connection.stat(n_mr=reception.vr_mr)
        edge = reception.vr_mr
        connection.serve(lambda edge=edge: reception.vr_r >= edge, credit=None)  # type: ignore[misc]


@connected("STP-DT-024")
def test_ready_credit_is_used_up_again_and_again(connection: Connection) -> None:
    """What has been read makes room for as much again: no credit is the last one."""
    for _ in range(3):
        if connection.vt_ms - connection.vt_s > MOST_SDS:
            raise NotReached(f"a credit of {connection.vt_ms} SDs is more than a script can use up")
        while connection.vt_s < connection.vt_ms:
            connection.sds(min(BATCH, connection.vt_ms - connection.vt_s), octets=8)
            connection.wait(2 * PAUSE_S)  # the thinnest link takes them meanwhile
        connection.ask()
        connection.wait(2 * GIVEN_S)
        connection.ask()


@connected("STP-DT-024")
def test_ready_window_filled_above_a_gap(connection: Connection) -> None:
    """The missing SD of a full window arrives: the receiver says at once that it is open again."""
    _fill_above_a_gap(connection)
    _fill_the_gap(connection)


@connected("STP-DT-024")
def test_ready_window_opens_by_a_few(connection: Connection) -> None:
    """A full window with two gaps: only when both are filled there is much to announce."""
    _fill_above_a_gap(connection, 2 + FEW)
    connection.sd(number=2)
    connection.discard(QUIET_S)
    connection.sd(number=2 + FEW)
    connection.discard(QUIET_S)
    connection.ask()
    connection.deliver()


@connected("STP-DT-024")
def test_ready_window_opened_by_a_stat(connection: Connection) -> None:
    """A STAT shows the few SDs by which a full window has opened: what follows is no news."""
    _fill_above_a_gap(connection, 2 + FEW)
    connection.sd(number=2)
    connection.discard(QUIET_S)
    connection.ask()
    connection.sd(number=2 + FEW)
    connection.discard(QUIET_S)
    connection.ask()
    connection.deliver()


@connected("STP-DT-024")
def test_ready_window_opens_by_a_part(connection: Connection) -> None:
    """The first of two gaps in a full window is filled, and just as much opens as counts."""
    _fill_above_a_gap(connection, 2 + min(PART, connection.vt_ms // 2))
    connection.sd(number=2)
    connection.discard(QUIET_S)
    connection.ask()
    connection.deliver()


def _fill_above_a_gap(connection: Connection, *others: int) -> None:
    """Lose SD 2, and others, and send everything that the credit permits above it."""
    connection.sds(2, octets=8)
    stat = connection.ask()
    if connection.vt_ms > MOST_SDS:
        raise NotReached(f"a credit of {connection.vt_ms} SDs is more than a script can use up")
    while connection.vt_s < connection.vt_ms:
        count = min(BATCH, connection.vt_ms - connection.vt_s)
        connection.sds(count, octets=8, skip=[2, *others])
        stat = connection.ask()
    if connection.vt_s < connection.vt_ms or stat.elements[-1:] != (connection.vt_s,):
        raise NotReached("the window is not full")


def _fill_the_gap(connection: Connection) -> None:
    """Send SD 2, and everything that is then missing."""
    connection.sd(number=2)
    connection.discard(2 * connection.rtt + 2.0)
    connection.ask()
    connection.deliver()


@connected("STP-DT-024")
def test_ready_window_closed_by_a_ustat(connection: Connection) -> None:
    """The last SD of a credit comes first: the report that shows no credit any more is a USTAT."""
    first = _close_by_a_ustat(connection)
    _fill_in(connection, first)
    connection.ask()
    connection.deliver()


@connected("STP-DT-024")
def test_ready_window_opens_below_the_fin(connection: Connection) -> None:
    """The last SD of a credit ends the stream: what then opens is of no use, nor announced."""
    first = _close_by_a_ustat(connection, fin=True)
    _fill_in(connection, first)
    connection.deliver()
    connection.release()


def _close_by_a_ustat(connection: Connection, *, fin: bool = False) -> int:
    """Lose all SDs of a credit but the last; return the first one that is missing."""
    connection.sds(2, octets=8)
    connection.wait(PAUSE_S)
    connection.ask()  # by now all that was read is permitted again
    first, last = connection.vt_s, connection.vt_ms - 1
    connection.sd(8, number=last, fin=fin)
    connection.expect(USTAT)
    if connection.vt_ms > last + 1:
        raise NotReached(f"the USTAT permits {connection.vt_ms - last - 1} SDs more")
    return first


def _fill_in(connection: Connection, first: int) -> None:
    """Send what was lost, as far as it goes at once, and no POLL that would be answered."""
    for number in range(first, min(first + BATCH, connection.vt_s - 1)):
        connection.sd(8, number=number)
    connection.discard(QUIET_S)
