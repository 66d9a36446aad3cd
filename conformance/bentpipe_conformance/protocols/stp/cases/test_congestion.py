"""STP-CG: congestion control and pacing (sections 7.3 and 7.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.stp.arrival import Arrival
from bentpipe_conformance.protocols.stp.cases.steps import FAR_S, connected, go_on, widen
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD
from bentpipe_conformance.protocols.stp.peer import Peer

AMPLE = 2048
"""SDs of credit that no window of these cases reaches."""

SILENT_S = 14.0
"""Seconds in which two silences pass on any path of these tests."""

FULL_S = 0.4
"""Seconds beyond a round trip in which a window that is reported nothing of is used up."""

CHATTER_S, FAR_AHEAD = 0.4, 1000
"""Seconds between the packets of a peer that reports nothing, and POLLs that were never sent."""

TURN_OCTETS = 1000
"""Octets of each SD of a dialogue."""

ONE_BY_ONE = (1,) * 30
"""SDs that go each way in each turn: a quarter of the initial window."""

LESS_THAN_HALF = (2, 2, 3, 3, 4, 4, 4, 4, 4, 4)
"""The same so that the window grows from four SMSS to nine, of which four are less than half."""

FEW_AND_SMALL, PART = (3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6), 7
"""SDs of a seventh of SMSS: by number half of a window that grows from four SMSS to twelve by their
octets, of which they never are half."""

THIN_S = 20.0
"""Seconds in which the link takes a few SDs to the implementation, however thin it is."""

CROWD, CROWD_SDS, CROWD_S, SMALL_OCTETS = 240, 40, 0.012, 8
"""Small SDs, how many of them at once, seconds in between, and the octets of each."""

MANY = 200
"""SDs of credit for a sender that takes more as arrived than it had in flight."""

FEW_OCTETS, FULL_OF_SMALL = 135, 40
"""Octets of small SDs, and how many of them nearly fill the initial window."""

NEARLY = 0.9
"""Of a round trip: what a report permits has left, and not arrived."""

APART_S = 0.01
"""Seconds between SDs whose echoes are in flight one after the other on every link."""

MUCH, LITTLE = 60, 24
"""SDs to echo at once, and how few of them a window that had grown could still swallow."""


@connected("STP-CG-001", "STP-CG-002", "STP-CG-003", "STP-CG-008", to="chargen", credit=AMPLE)
def test_ready_stream_begins(connection: Connection) -> None:
    """A stream begins with a small window, and grows by what arrives, spread over time."""
    connection.receive(120, credit=AMPLE)


@connected(
    "STP-CG-002", "STP-CG-005", "STP-CG-006", to="chargen", credit=AMPLE, rtt=FAR_S
)  # fmt: skip
def test_ready_one_loss_in_a_large_window(connection: Connection) -> None:
    """One loss halves the window; the lost SD is sent at once all the same."""
    connection.receive(280, losing=[70], credit=AMPLE)


@connected("STP-CG-005", to="chargen", credit=AMPLE)
def test_ready_several_losses_in_a_window(connection: Connection) -> None:
    """Losses of one round trip halve the window once, losses of the next once more."""
    connection.receive(220, losing=[60, 64, 70, 110, 111], credit=AMPLE)


@connected("STP-CG-005", "STP-CG-006", to="chargen", credit=AMPLE, rtt=FAR_S)
def test_ready_retransmission_is_lost(connection: Connection) -> None:
    """A retransmission that is lost was made after the reduction, so that it reduces again."""
    connection.receive(260, losing={70: 2, 71: 1}, credit=AMPLE)


@connected("STP-CG-005", "STP-DT-003", "STP-DT-014", to="chargen", credit=AMPLE)
def test_ready_many_in_a_row_are_lost(connection: Connection) -> None:
    """Runs of several missing SDs, one of them at the end of a list: each SD goes again once."""
    connection.receive(200, losing=[*range(40, 47), 60, 61, *range(90, 100)], credit=AMPLE)


@connected("STP-CG-004", to="chargen", credit=AMPLE)
def test_ready_long_after_a_loss(connection: Connection) -> None:
    """After a loss the window grows by two SMSS for each window that arrives."""
    connection.receive(260, losing=[24], credit=AMPLE)


@connected("STP-CG-003", to="chargen", credit=AMPLE, rtt=FAR_S)
def test_ready_first_sd_of_each_window_is_late(connection: Connection) -> None:
    """What a list has shown as held has arrived then, and does not once more below N(R)."""
    connection.receive(12, credit=AMPLE)
    for _ in range(3):
        _report_above_a_late_sd(connection)
    connection.receive(connection.reception.vr_r + 8, credit=AMPLE)


@connected("STP-CG-004", to="chargen", credit=AMPLE, rtt=FAR_S)
def test_ready_first_sd_of_each_window_is_late_after_a_loss(connection: Connection) -> None:
    """The same where each full window that has arrived counts."""
    connection.receive(40, losing=[24], credit=AMPLE)
    for _ in range(8):
        _report_above_a_late_sd(connection)
    connection.receive(connection.reception.vr_r + 8, credit=AMPLE)


def _report_above_a_late_sd(connection: Connection) -> None:
    """All of a window but its first SD is reported as held, and that one when it has come.

    The STATs answer the POLL before it once more, so that it is not reported as lost.
    """
    reception = connection.reception
    late = _take_in_a_window(connection, connection.rtt + FULL_S, late=reception.vr_r)
    connection.stat(n_mr=reception.vr_r + AMPLE)
    _take_in_a_window(connection, NEARLY * connection.rtt)
    for sd in late:
        connection.hold(sd)
    connection.stat(n_mr=reception.vr_r + AMPLE)


def _take_in_a_window(connection: Connection, seconds: float, late: int = -1) -> list[Arrival]:
    """Take in what arrives and answer nothing; return the arrivals of the SD that is late."""
    held_up = []
    for arrival in connection.arrivals(seconds):
        if arrival.has_data and arrival.number == late:
            held_up.append(arrival)
        elif arrival.has_data:
            connection.hold(arrival)
        if arrival.polls:
            connection.reception.polled(arrival.number_polled)
    return held_up


@connected("STP-CG-009", to="chargen", credit=AMPLE)
def test_ready_stream_at_a_maximum_rate(connection: Connection) -> None:
    """A stream that its window would let go faster, with losses on the way."""
    connection.receive(240, losing=[150, 190, 191], credit=AMPLE)


@connected("STP-CG-010", to="echo", credit=2, rtt=FAR_S)
def test_ready_much_to_send_after_a_long_dialogue(connection: Connection) -> None:
    """What went one SD at a time has not widened the window when there is much to send."""
    _have_much_echoed_after(connection, ONE_BY_ONE, TURN_OCTETS)


@connected("STP-CG-010", to="echo", credit=4, rtt=FAR_S)
def test_ready_much_to_send_after_turns_of_less_than_half(connection: Connection) -> None:
    """What went a few SDs at a time has not widened the window beyond twice as many."""
    size = connection.max_sd or LEAST_MAX_SD
    _have_much_echoed_after(connection, LESS_THAN_HALF, size, apart=APART_S)


@connected("STP-CG-010", to="echo", credit=4, rtt=FAR_S)
def test_ready_much_to_send_after_turns_of_few_small_sds(connection: Connection) -> None:
    """How much of the window is in flight is told by the octets of the SDs, not by their number."""
    size = (connection.max_sd or LEAST_MAX_SD) // PART
    _have_much_echoed_after(connection, FEW_AND_SMALL, size, apart=APART_S)


@connected("STP-CG-003", to="echo", credit=256, rtt=FAR_S)
def test_ready_much_to_send_after_small_sds(connection: Connection) -> None:
    """Small SDs that have used the window widen it by their octets, not by their number."""
    _have_much_echoed_after(connection, (FULL_OF_SMALL,), FEW_OCTETS)


def _have_much_echoed_after(
    connection: Connection, turns: Sequence[int], size: int, *, apart: float = 0.0
) -> None:
    reception = connection.reception
    octets = 0
    for count in turns:
        for _ in range(count):
            octets += len(connection.sd(size).data)
            connection.wait(apart)
        connection.poll()
        _take_in(connection, octets, credit=max(turns[0], count))
        go_on(connection, connection.rtt / 2)  # the POLL behind it as well
    connection.deliver()
    last = min(connection.vt_ms, connection.vt_s + MUCH)
    if last < connection.vt_s + LITTLE:
        raise NotReached(f"a credit of {last - connection.vt_s} SDs is too little to show a window")
    while connection.vt_s < last:
        connection.sds(min(4, last - connection.vt_s), octets=max(size, TURN_OCTETS))
        connection.poll()
        connection.serve(
            lambda: connection.vt_a >= connection.vt_s, credit=None, within=THIN_S
        )  # fmt: skip
    connection.deliver()
    reception.vr_mr += AMPLE
    connection.stat()
    connection.discard(2 * connection.rtt + 1.0)


def _take_in(connection: Connection, octets: int, credit: int) -> None:
    connection.serve(lambda: len(connection.reception.stream) >= octets, credit=credit)


@case("STP-CG-007")
def test_ready_everything_is_reported_lost_after_two_silences(peer: Peer) -> None:
    """With nothing in flight any more, one SD goes again, and no more before it is reported."""
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(40, credit=AMPLE)
    go_on(connection, SILENT_S, answering=False)
    missing = connection.reception.vr_r, connection.highest
    connection.stat(elements=missing, n_mr=connection.highest + AMPLE)
    connection.discard(peer.rtt + 0.5)
    connection.abort()


@case("STP-CG-002")
def test_ready_one_loss_is_reported_after_two_silences(peer: Peer) -> None:
    """No loss has reduced the window yet, and it is full: what is missing has to wait."""
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(40, credit=AMPLE)
    go_on(connection, SILENT_S, answering=False)
    vr_r = connection.reception.vr_r
    connection.stat(elements=(vr_r, vr_r + 1, vr_r + 2), n_mr=connection.highest)
    connection.discard(peer.rtt + 0.5)
    connection.stat(n_r=connection.highest, elements=(), n_mr=connection.highest + AMPLE)
    connection.discard(peer.rtt + 0.5)
    connection.abort()


@connected("STP-CG-002", to="echo", credit=AMPLE)
def test_ready_stream_ends_when_the_window_is_full(connection: Connection) -> None:
    """An empty SD counts as one octet, for which there is no room."""
    size = min(connection.max_sd or LEAST_MAX_SD, connection.peer_max_sd or LEAST_MAX_SD)
    connection.sds(4, octets=size)
    connection.await_credit()
    connection.sd(b"", fin=True)
    go_on(connection, connection.rtt + 0.1, answering=False)
    connection.serve(lambda: connection.reception.ended)


@case("STP-CG-004")
def test_ready_stats_return_after_two_silences(peer: Peer) -> None:
    """After two silences a STAT for one SD permits next to nothing.

    The next one reports a whole window, most of which lies above the threshold.
    """
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(24, credit=AMPLE)
    connection.stat()
    known = connection.reception.vr_r
    go_on(connection, SILENT_S, answering=False)
    first = connection.highest
    connection.stat(n_r=min(known + 1, first), elements=(), n_mr=first + AMPLE)
    connection.discard(2 * peer.rtt + 1.0)
    connection.stat(n_r=first, elements=(), n_mr=first + AMPLE)
    connection.discard(peer.rtt + 0.5)
    connection.abort()


@connected("STP-CG-007", "STP-CG-004", to="chargen", credit=AMPLE)
def test_ready_long_after_two_silences(connection: Connection) -> None:
    """After two silences slow start ends at half of the window before."""
    connection.receive(36, credit=AMPLE)
    go_on(connection, SILENT_S, answering=False)
    connection.stat()
    connection.receive(150, credit=AMPLE)


@connected("STP-CG-008", to="chargen", credit=AMPLE)
def test_ready_whole_windows_arrive_long_after_two_silences(connection: Connection) -> None:
    """Slow start has ended at the threshold, without a loss; a STAT then frees the whole window."""
    connection.receive(36, credit=AMPLE)
    go_on(connection, SILENT_S, answering=False)
    connection.stat()
    connection.receive(connection.reception.vr_r + 100, credit=AMPLE)
    for _ in range(3):
        for arrival in connection.arrivals(connection.rtt + FULL_S):
            if arrival.has_data:
                connection.hold(arrival)
            if arrival.polls:
                connection.reception.polled(arrival.number_polled)
                connection.remember(arrival)
        connection.stat(n_mr=connection.reception.vr_r + AMPLE)
    connection.receive(connection.reception.vr_r + 8, credit=AMPLE)


@case("STP-CG-007")
def test_ready_two_silences_of_a_peer_that_sends_all_but_reports(peer: Peer) -> None:
    """SDs, POLLs, BEGINs and what is to be discarded end no silence."""
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(40, credit=AMPLE)
    deadline = peer.now() + SILENT_S

    def invalid() -> None:
        n_ps = connection.last_poll[0] + FAR_AHEAD
        connection.stat(n_ps=n_ps, n_r=connection.highest, elements=())

    sends: tuple[Callable[[], object], ...] = (
        connection.sd, connection.poll, connection.begin, invalid
    )  # fmt: skip
    for send in cycle(sends):
        if peer.now() >= deadline:
            break
        send()
        go_on(connection, CHATTER_S, answering=False)
    missing = connection.reception.vr_r, connection.highest
    connection.stat(elements=missing, n_mr=connection.highest + AMPLE)
    connection.discard(peer.rtt + 0.5)
    connection.abort()


@connected("STP-DT-009", to="chargen", credit=AMPLE)
def test_ready_losses_are_reported_after_one_silence(connection: Connection) -> None:
    """One silence leaves the window as it was: what is then reported missing goes at once."""
    connection.receive(36, credit=AMPLE)
    asked = -1
    for arrival in connection.arrivals(SILENT_S):
        if arrival.polls:
            connection.remember(arrival)
            if arrival.number_polled == asked:
                break
            asked = arrival.number_polled
    vr_r = connection.reception.vr_r
    connection.stat(elements=(vr_r, vr_r + 4, connection.highest))
    connection.reception.vr_h = connection.highest
    connection.discard(2 * connection.rtt)


@connected("STP-DT-009", "STP-CG-005", to="chargen", credit=4)
def test_ready_small_window_is_lost(connection: Connection) -> None:
    """A loss leaves a window of two SMSS at least, so that two SDs go again at once."""
    for _ in range(3):
        connection.receive(connection.reception.vr_r + 8, losing=range(0, 400, 5), credit=4)
    connection.receive(connection.reception.vr_r + 4, losing=_whole_window, credit=4)


def _whole_window(sd: Arrival, before: int) -> bool:
    return sd.number % 4 < 3 and not before


@case("STP-DT-027", "STP-CG-007")
def test_ready_what_waits_is_reported_as_arrived(peer: Peer) -> None:
    """A window of one SD makes lost SDs wait; some of them are reported as arrived, then all.

    What has arrived does not go again.
    """
    for told in (1, 2, 1000):
        connection = peer.connect("chargen", credit=AMPLE)
        connection.receive(40, credit=AMPLE)
        go_on(connection, SILENT_S, answering=False)
        vr_r, highest = connection.reception.vr_r, connection.highest
        connection.stat(elements=(vr_r, highest), n_mr=highest)
        # The first is on its way; the others wait.
        connection.discard(peer.rtt / 2 + 0.02)
        connection.stat(
            n_r=min(vr_r + 1 + told, highest), n_mr=highest + MANY, elements=(), n_ps=0, timestamp=0
        )
        go_on(connection, 3 * peer.rtt + 2.0)
        connection.abort()
        peer.wait(peer.rtt)


@connected("STP-CG-009", to="echo", credit=AMPLE, max_sd=1000)
def test_ready_small_sds_at_a_maximum_rate(connection: Connection) -> None:
    """So many small SDs are echoed that most of what leaves is headers, which count as well."""
    widen(connection, CROWD)
    for _ in range(CROWD // CROWD_SDS):
        connection.sds(CROWD_SDS, octets=SMALL_OCTETS)
        connection.wait(CROWD_S)
    go_on(connection, 2 * connection.rtt + 1.0)
