"""STP-DT: the implementation as a sender (sections 6.1, 6.4 and 6.5)."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.stp.arrival import Arrival
from bentpipe_conformance.protocols.stp.cases.steps import (
    CREDIT,
    FAR_S,
    NEAR_S,
    PAUSE_S,
    connected,
    go_on,
    holding,
)
from bentpipe_conformance.protocols.stp.codec import FIN, POLL, SD, SDP, STAT, USTAT
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, MODULUS
from bentpipe_conformance.protocols.stp.peer import Peer

LONG_S = 300.0
"""Seconds in which a stream of many losses and few answers arrives."""

LITTLE_OCTETS = 40
"""Octets that fit where an SD of MaxSD octets does not."""

NEGLECT_S = 6.0
"""Seconds after which a sender with nothing in flight has surely neglected what is missing."""


@connected(
    "STP-DT-003", "STP-DT-009", "STP-DT-014", "STP-DT-015", "STP-DT-016", "STP-DT-027",
    "STP-DT-030", to="chargen", credit=48, rtt=NEAR_S,
)  # fmt: skip
def test_ready_stream_with_losses(connection: Connection) -> None:
    """Gaps reported by USTATs, and by a STAT where the last SD of all was lost."""
    connection.receive(64, losing=[5, 14, 15, 16, 30, 47], credit=48)


@connected("STP-DT-003", "STP-DT-006", "STP-DT-027", to="chargen", credit=256, rtt=NEAR_S)
def test_ready_list_is_cut(connection: Connection) -> None:
    """Every other SD of a large window is missing: the list fills one STAT, and goes on."""
    connection.receive(100, credit=256)
    gaps = range(connection.highest + 4, connection.highest + 90, 2)
    connection.receive(gaps[-1] + 20, losing=gaps, report_gaps=False, credit=256)


@holding("STP-DT-014", "STP-DT-003", "STP-DT-023", losing=[2, 3], rtt=FAR_S)
def test_ready_stat_overtakes_ustats(connection: Connection, base: int) -> None:
    """USTATs come when a STAT has reported their gap, and when it has been closed."""
    for after in (0.05, 3 * connection.rtt):
        connection.ustat(base + 2, base + 4, after=after)
    connection.stat()
    connection.receive(base + 32, credit=8)
    go_on(connection, 3 * connection.rtt)


@connected("STP-DT-010", "STP-DT-003", "STP-DT-015", to="chargen", credit=12)
def test_ready_same_sd_lost_three_times(connection: Connection) -> None:
    """An SD that is lost again and again is sent again and again."""
    connection.receive(
        24, losing={6: 3, 11: 3}, credit=12, within=8 * connection.rtt + 2 * NEGLECT_S
    )


@holding("STP-DT-003", "STP-DT-014", losing=[2, 3])
def test_ready_reports_name_what_is_under_way(connection: Connection, base: int) -> None:
    """A gap that has just been repaired is reported once more, by USTAT and by STAT."""
    connection.ustat(base + 2, base + 4)
    connection.expect(SD, lambda sd: sd.number == base + 2, what="a retransmission")
    for _ in range(2):
        connection.ustat(base + 2, base + 4)
        connection.wait(PAUSE_S)
    connection.stat()
    go_on(connection, connection.rtt + 2 * PAUSE_S, answering=False)
    connection.receive(base + 16, credit=8)


@holding("STP-DT-003", losing=[3])
def test_ready_stat_reports_one_sd_and_everything_else_arrived(
    connection: Connection, base: int
) -> None:
    """With nothing else in flight, what a STAT reports missing is sent again."""
    connection.stat()
    connection.serve(
        lambda: connection.reception.vr_r >= base + 8, credit=None, within=NEGLECT_S
    )  # fmt: skip


@holding("STP-DT-014", losing=[7])
def test_ready_ustat_reports_the_only_sd_in_flight(connection: Connection, base: int) -> None:
    """With nothing else in flight, what a USTAT reports missing is sent again."""
    connection.stat(n_r=base + 7, elements=())
    connection.wait(PAUSE_S)
    connection.ustat(base + 7, base + 8)
    connection.expect(
        SD, lambda sd: sd.number == base + 7, within=NEGLECT_S, what="a retransmission"
    )
    connection.receive(base + 16, credit=8)


def _report_run_of_which_some_went_again(
    connection: Connection, base: int, places: Iterable[int]
) -> None:
    """The next three SDs are lost; some of them go again for a USTAT, and one reports them all.

    A STAT that answers the POLL before them then says that what went again has arrived, and asks
    for nothing.
    """
    run = range(base + CREDIT, base + CREDIT + 3)
    answered, timestamp = connection.last_poll
    connection.stat(n_mr=run.stop)
    go_on(connection, connection.rtt + PAUSE_S, answering=False)
    for place in places:
        connection.ustat(run[place], run[place] + 1)
    again = [
        arrival for arrival in connection.arrivals(connection.rtt + PAUSE_S) if arrival.has_data
    ]
    connection.ustat(run.start, run.stop)
    connection.wait(PAUSE_S)
    for arrival in again:
        connection.hold(arrival)
    connection.reception.vr_h = run.stop
    connection.stat(n_ps=answered, timestamp=timestamp)
    go_on(connection, NEGLECT_S, answering=False)
    connection.receive(run.stop + CREDIT, credit=CREDIT, within=2 * NEGLECT_S)


@holding("STP-DT-014")
def test_ready_ustat_over_a_run_whose_first_went_again(connection: Connection, base: int) -> None:
    """The rest of the run has been sent once, and goes again."""
    _report_run_of_which_some_went_again(connection, base, [0])


@holding("STP-DT-014")
def test_ready_ustat_over_a_run_whose_last_went_again(connection: Connection, base: int) -> None:
    """The beginning of the run has been sent once, and goes again."""
    _report_run_of_which_some_went_again(connection, base, [2])


@holding("STP-DT-014")
def test_ready_ustat_over_a_run_whose_ends_went_again(connection: Connection, base: int) -> None:
    """What lies between them has been sent once, and goes again."""
    _report_run_of_which_some_went_again(connection, base, [0, 2])


@holding("STP-DT-006", losing=[2, 6])
def test_ready_stat_says_nothing_of_the_last_sds(connection: Connection, base: int) -> None:
    """SDs above the bound of a STAT are not taken for received."""
    connection.stat(elements=(base + 2, base + 3, base + 4))
    connection.receive(base + 8, credit=8, within=2 * NEGLECT_S)


@holding("STP-DT-004", "STP-DT-027", losing=[6, 7])
def test_ready_polls_are_lost(connection: Connection, base: int) -> None:
    """With nothing new to send and its POLL unanswered, the sender asks by timer."""
    for _ in range(2):
        connection.expect(POLL, within=NEGLECT_S, what="a POLL by timer")
    connection.receive(base + 16, credit=8)


@holding("STP-DT-023", losing=[2])
def test_ready_invalid_stats_arrive(connection: Connection, base: int) -> None:
    """STATs with impossible numbers and lists neither retransmit nor give credit."""
    end = base + 8
    gap = (base + 2, base + 3)
    n_ps, edge = connection.last_poll[0], base + 16
    for n_r, elements, n_mr, number in (
        (base + 2, (*gap, end), edge, n_ps + 1),
        (base + 2, (base + 2,), edge, n_ps),
        (base + 2, (base + 2, base + 2), edge, n_ps),
        (base + 2, (base + 2, base + 5, base + 4), edge, n_ps),
        (base, (base - 1, base + 3, end), edge, n_ps),
        (base + 2, (*gap, end + 2), edge, n_ps),
        (base + 2, (*gap, end), base + 4, n_ps),
        (end + 1, (), edge, n_ps),
        (base - 1, (), edge, n_ps),
        (base + 2, (*gap, end), edge, n_ps + 1000),
        (base + 2, (*gap, end), edge, 0),
    ):
        connection.send(
            STAT, seq=connection.theirs(n_r), elements=connection.their_list(elements),
            n_mr=connection.theirs(n_mr), n_ps=number % MODULUS,
        )  # fmt: skip
        go_on(connection, 2 * PAUSE_S, answering=False)
    connection.receive(base + 16, credit=8, within=2 * NEGLECT_S)


@connected("STP-DT-007", to="chargen", credit=4)
def test_ready_stat_answers_the_last_poll_of_all(connection: Connection) -> None:
    """Before any STAT, one with the poll number 2^24 - 1 answers no POLL, not even one before."""
    for arrival in connection.arrivals(connection.rtt + 2 * PAUSE_S):
        if arrival.polls:
            connection.remember(arrival)
    more = connection.theirs(connection.highest + 8)
    for n_r in (0, connection.highest):
        connection.send(
            STAT, seq=connection.theirs(n_r), elements=(), n_mr=more, n_ps=MODULUS - 1
        )  # fmt: skip
        go_on(connection, connection.rtt + PAUSE_S, answering=False)
    connection.receive(8, credit=4, within=3 * NEGLECT_S)


@holding("STP-DT-023", "STP-DT-003", losing=[2])
def test_ready_invalid_stat_answers_the_later_poll(connection: Connection, base: int) -> None:
    """A valid STAT then answers the POLL before, and counts as if the other had not come."""
    answered, timestamp = connection.last_poll
    later = connection.expect(POLL, within=NEGLECT_S, what="a POLL by timer")
    connection.send(
        STAT, seq=connection.theirs(base + 2), elements=connection.their_list((base + 2, base + 2)),
        n_mr=connection.theirs(base + 8), n_ps=later.packet.n_ps,
    )  # fmt: skip
    connection.wait(PAUSE_S)
    connection.stat(n_ps=answered, timestamp=timestamp)
    go_on(connection, 2 * NEGLECT_S, answering=False)
    connection.receive(base + 16, credit=8, within=2 * NEGLECT_S)


@holding("STP-DT-023", losing=[2])
def test_ready_invalid_ustats_arrive(connection: Connection, base: int) -> None:
    """USTATs with impossible numbers and runs neither retransmit nor give credit."""
    more = connection.theirs(connection.reception.vr_mr + 8)
    for n_r, first, second in (
        (base + 2, base + 3, base + 2),
        (base + 2, base + 2, base + 2),
        (base + 2, base + 1, base + 3),
        (base - 1, base + 2, base + 3),
        (base + 9, base + 9, base + 10),
        (base + 2, base + 2, base + 10),
    ):
        elements = connection.their_list((first, second))
        connection.send(USTAT, n_mr=more, seq=connection.theirs(n_r), elements=elements)
        go_on(connection, 2 * PAUSE_S, answering=False)
    connection.receive(base + 16, credit=8, within=2 * NEGLECT_S)


@case("STP-DT-016", "STP-PL-006", "STP-DT-015", "STP-DT-003")
def test_ready_two_streams_at_once(peer: Peer) -> None:
    """Each of two connections has numbers, window and timers of its own; both lose SDs."""
    both = [peer.connect("chargen", credit=24) for _ in range(2)]
    for turn in range(4):
        for connection in both:
            first = connection.reception.vr_r
            connection.receive(first + 14, losing={first + 3 + turn, first + 6}, credit=24)
    for connection in both:
        connection.abort()


@connected("STP-DT-012", "STP-DT-015", "STP-CC-023", to="echo")
def test_ready_echo_loses_both_ways(connection: Connection) -> None:
    """Both directions lose SDs at once; the peer closes its own meanwhile, below a gap."""
    connection.sds(16, octets=700, skip=[2, 3, 9])
    connection.poll()
    connection.discard(connection.rtt / 2)
    connection.sds(2, octets=700)
    connection.sd(b"the end", fin=True, poll=True)
    for number in (3, 9, 2):
        connection.sd(number=number, poll=number == 2)

    def loses(sd: Arrival, before: int) -> bool:
        return before < (2 if sd.packet.flags & FIN else sd.number % 4 == 1)

    connection.serve(lambda: connection.reception.ended, losing=loses, report_gaps=False)
    connection.release()


@connected("STP-DT-012", to="echo")
def test_ready_echo_of_empty_sds(connection: Connection) -> None:
    """SDs without data and without FIN flag take their numbers, and deliver nothing."""
    connection.sd(b"")
    connection.sds(2)
    for number in (connection.vt_s + 1, connection.vt_s):
        connection.sd(b"" if number % 2 else 100, number=number)
    connection.sd(b"")
    connection.deliver()
    connection.sds(1)
    connection.release()


@connected("STP-DT-009", to="echo", credit=64)
def test_ready_little_data_comes_while_large_sds_wait(connection: Connection) -> None:
    """The window has room for a small new SD, but none for what awaits retransmission.

    It was an odd number of SMSS before it was halved, so that half of one is left.
    """
    size = min(connection.max_sd or LEAST_MAX_SD, connection.peer_max_sd or LEAST_MAX_SD)
    connection.sds(4, octets=size)
    _take_in(connection, 4, size, lost=(1, 2))
    connection.stat(n_r=1, elements=())
    connection.sds(2, octets=size)
    _take_in(connection, 6, size, lost=())
    connection.stat(n_r=1, elements=(1, 3, 5))
    go_on(connection, connection.rtt / 2 + PAUSE_S / 2, answering=False)
    for _ in range(2):
        connection.sd(LITTLE_OCTETS)
        go_on(connection, connection.rtt / 2 + PAUSE_S, answering=False)
    octets = sum(len(data) for data, _ in connection.sent.values())
    connection.stat()
    connection.serve(lambda: len(connection.reception.stream) >= octets)


def _take_in(connection: Connection, sds: int, size: int, lost: tuple[int, ...]) -> None:
    """Take in what the echo has sent so far, but what is lost, up to the POLL behind it.

    Raises:
        NotReached: it cuts the stream otherwise, or does not poll.
    """
    asked = 0
    while asked < sds:
        arrival = connection.expect((SD, SDP, POLL), what=f"{sds} SDs and a POLL behind them")
        if arrival.has_data and len(arrival.packet.data) != size:
            raise NotReached("the echo cuts its stream otherwise")
        if arrival.has_data and arrival.number not in lost:
            connection.hold(arrival)
        if arrival.polls:
            connection.remember(arrival)
            connection.reception.polled(arrival.number_polled)
            asked = arrival.number_polled


@connected("STP-DT-003", "STP-DT-027", to="chargen", credit=16)
def test_ready_reports_are_lost(connection: Connection) -> None:
    """USTATs and most STATs are lost on their way: the STATs that come tell of it all."""
    connection.receive(
        60, losing=[*range(9, 12), 25, 26, *range(40, 48)], report_gaps=False, credit=16,
        answer=lambda _poll, before: () if before % 2 else (0.0,), within=LONG_S,
    )  # fmt: skip
