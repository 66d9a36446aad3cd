"""STP-PL: polling (sections 7.1 and 7.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import cycle

from bentpipe_conformance.protocols.stp.arrival import Arrival, withholding
from bentpipe_conformance.protocols.stp.cases.steps import (
    FAR_S,
    NEAR_S,
    PAUSE_S,
    VERY_FAR_S,
    connected,
    go_on,
)
from bentpipe_conformance.protocols.stp.codec import (
    FIN,
    POLL,
    SDP,
    STAT,
)
from bentpipe_conformance.protocols.stp.connection import Connection

LARGE = 320
"""SDs after which the window of a stream over the GEO link has long been large."""

SILENT_S = 9.0
"""Seconds in which a silent peer is polled several times on any path of these tests."""

RARELY_S, RARE_REPORTS = 25.0, 3
"""Seconds between reports of a peer that is slow, and how many of them: more than a minute."""

KEPT_ALIVE_S = 600.0
"""Seconds after which an idle endpoint polls, unless it declares another time (section 8)."""

ALL_FROM_HERE = range(6, 10_000)
"""POLLs that a silent peer leaves unanswered."""

BEHIND_S, MORE_S = 0.022, 0.0045
"""Seconds after a POLL until a STAT arrives that left before it, more than packets may take inside
an implementation; and until another one follows."""

APART_S = 5.0
"""Seconds between what a peer sends that never reports."""

SLOW_S, SLOW_FOR_S, QUICK_FOR_S = 5.0, 32.0, 16.0
"""Seconds by which answers are late, how long they are, and how long they are quick again."""

ANNOUNCED_S = 0.4
"""Seconds between STATs that answer no POLL, so that a sender whose POLLs are answered late neither
stops nor falls silent."""

LATER_S = 0.6
"""Seconds by which a path becomes longer at once."""

GIVEN_UP_S = 75.0
"""Seconds after which a silent peer must have been given up."""


@connected(
    "STP-PL-001", "STP-PL-002", "STP-PL-005", "STP-PL-006", to="chargen", credit=1024, rtt=NEAR_S
)  # fmt: skip
def test_ready_long_stream(connection: Connection) -> None:
    """POLLs leave about three times in a round trip, and ride on SDs."""
    connection.receive(LARGE, credit=1024)


@connected("STP-PL-003", "STP-PL-006", to="chargen", credit=256, rtt=NEAR_S)
def test_ready_first_bursts_of_a_stream(connection: Connection) -> None:
    """Where the window ends a burst, its last SD asks for a STAT."""
    connection.receive(10)


@connected("STP-PL-003", to="chargen", credit=256, rtt=NEAR_S)
def test_ready_losses_have_made_the_window_small(connection: Connection) -> None:
    """Once losses have halved the window several times, each burst ends with a POLL again."""
    connection.receive(84, losing=[14, 46, 60])


@connected("STP-PL-003", "STP-PL-006", to="chargen", credit=6, rtt=NEAR_S)
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


@connected("STP-PL-007", "STP-CG-007", to="chargen", credit=64)
def test_ready_silences_come_and_go(connection: Connection) -> None:
    """A report ends the doubling, whether it is a STAT or a USTAT."""
    connection.receive(16, credit=64)
    connection.stat()
    go_on(connection, SILENT_S, answering=False)
    vr_r = connection.reception.vr_r
    connection.ustat(vr_r, vr_r + 1)
    go_on(connection, SILENT_S, answering=False)
    connection.stat(elements=(vr_r, connection.highest))
    go_on(connection, SILENT_S, answering=False)
    connection.receive(vr_r + 8, credit=64)


@connected("STP-PL-001", "STP-PL-002", to="chargen", credit=64, rtt=NEAR_S)
def test_ready_polls_and_stats_are_lost(connection: Connection) -> None:
    """Some POLLs have no answer, and some no STAT in time: the stream goes on."""
    lost = {3, 4, 9, 10, 11, 15}
    connection.receive(60, answer=withholding(lost), report_gaps=False, losing=[20, 40], credit=64)


@connected("STP-PL-009", "STP-PL-001", "STP-PL-007", to="chargen", credit=8, rtt=NEAR_S)
def test_ready_path_becomes_longer(connection: Connection) -> None:
    """The round trip takes longer from some STAT on; soon after, there are no answers any more."""
    connection.receive(24, credit=8)
    for answers in (1, 3, 6):
        last = connection.polls + answers
        connection.serve(
            lambda last=last: connection.polls > last,  # type: ignore[misc]
            answer=lambda _poll, _before: (LATER_S,), credit=8,
        )  # fmt: skip
        go_on(connection, SILENT_S, answering=False)
        connection.stat(elements=(), n_ps=0, timestamp=0)
    connection.receive(connection.reception.vr_r + 8, credit=8)


@connected("STP-PL-007", "STP-PL-002", to="chargen", credit=4)
def test_ready_first_round_trip_seems_very_short(connection: Connection) -> None:
    """A STAT arrives right behind the POLL that it answers: all times have their least values.

    When Timer_SILENCE sends that POLL is known; its timestamp goes on as the ones before.
    """
    asked = connection.peer.now()
    rtt = connection.ask().time - asked
    first, second = (
        connection.expect((POLL, SDP), within=SILENT_S, what="a POLL without an answer")
        for _ in range(2)
    )
    n_ps = (second.packet.n_ps or 0) + 1
    old, last = first.packet.timestamp or 0, second.packet.timestamp or 0
    waited = second.time - first.time
    connection.reception.polled(second.number_polled)
    edge = connection.reception.vr_mr
    behind = second.time + 2 * waited + BEHIND_S - rtt - connection.peer.now()
    timestamp = (3 * last - 2 * old) % (1 << 32)
    connection.stat(
        n_r=edge, n_mr=edge + 2, elements=(), n_ps=n_ps, timestamp=timestamp, after=behind
    )
    connection.stat(
        n_r=edge, n_mr=edge + 4, elements=(), n_ps=0, timestamp=0, after=behind + MORE_S
    )
    go_on(connection, 2 * waited + SILENT_S, answering=False)
    connection.stat(n_r=edge, elements=())
    connection.abort()


@connected("STP-PL-009", "STP-PL-001", to="chargen", credit=16)
def test_ready_path_becomes_shorter(connection: Connection) -> None:
    """The round trip takes longer for some STATs, and then less again."""
    connection.receive(24, credit=16)
    for answers in (4, 8):
        for delay in (2 * LATER_S, 0.0):
            last = connection.polls + answers
            connection.serve(
                lambda last=last: connection.polls > last,  # type: ignore[misc]
                answer=lambda _poll, _before, delay=delay: (delay,), credit=16,  # type: ignore[misc]
            )  # fmt: skip
        go_on(connection, SILENT_S, answering=False)
        connection.stat(elements=(), n_ps=0, timestamp=0)
    connection.receive(connection.reception.vr_r + 8, credit=16)


@connected("STP-PL-007", "STP-PL-001", "STP-PL-008", to="chargen", credit=4, rtt=VERY_FAR_S)
def test_ready_path_is_very_long(connection: Connection) -> None:
    """The poll interval is bounded; the silence time exceeds the bound of its doubling."""
    connection.receive(16, credit=8)
    go_on(connection, 2 * VERY_FAR_S, answering=False)
    connection.stat()
    connection.receive(connection.reception.vr_r + 8, credit=8)
    go_on(connection, 7 * VERY_FAR_S, answering=False)


@connected("STP-PL-008", "STP-DT-023", to="chargen", credit=64, aborted=False)
def test_ready_peer_sends_nothing_but_invalid_reports(connection: Connection) -> None:
    """Reports that are discarded are no answers: the peer is given up, and asked till then."""
    connection.receive(24, credit=64)
    deadline = connection.peer.now() + GIVEN_UP_S
    while connection.peer.now() < deadline and not connection.closed:
        go_on(connection, PAUSE_S * 10, answering=False)
        n_ps = connection.last_poll[0] + 1000
        connection.send(STAT, n_ps=n_ps, seq=connection.theirs(connection.highest), elements=())


@connected("STP-PL-008", "STP-PL-007", to="chargen", credit=8, aborted=False)
def test_ready_peer_sends_everything_but_reports(connection: Connection) -> None:
    """SDs, POLLs and BEGINs of the peer are no answers: it is given up, and asked till then."""
    connection.receive(8, credit=8)
    deadline = connection.peer.now() + GIVEN_UP_S
    sends: tuple[Callable[[], object], ...] = connection.sd, connection.poll, connection.begin
    for send in cycle(sends):
        if connection.peer.now() >= deadline or connection.closed:
            break
        send()
        go_on(connection, APART_S, answering=False)


@connected("STP-PL-001", "STP-PL-009", to="chargen", credit=256, rtt=FAR_S)
def test_ready_stats_become_quick_amid_a_stream(connection: Connection) -> None:
    """While answers come late the poll interval grows, and shrinks with each quick one then.

    Timer_POLL, which runs at that moment, is to follow; silence shows what has been measured.
    """
    connection.receive(40, losing=[9, 22], credit=256)  # its window stays small
    _answer(connection, SLOW_FOR_S, SLOW_S)
    _answer(connection, QUICK_FOR_S, 0.0)
    for seconds in (2 * connection.rtt, 2 * connection.rtt, SILENT_S):  # the last one with all sent
        connection.stat(elements=(), n_ps=0, timestamp=0)
        go_on(connection, seconds, answering=False)


def _answer(connection: Connection, seconds: float, late: float) -> None:
    """Take everything in, and answer each POLL some seconds late, by what has arrived till then."""
    peer, reception = connection.peer, connection.reception
    asked: deque[tuple[float, Arrival]] = deque()
    until, announced = peer.now() + seconds, peer.now()
    while peer.now() < until and not connection.closed:
        arrival = connection.next(ANNOUNCED_S / 8)
        if arrival is not None and arrival.has_data:
            connection.hold(arrival)
            reception.vr_mr = max(reception.vr_mr, reception.vr_r + 256)
        if arrival is not None and arrival.polls:
            asked.append((peer.now() + late, arrival))
        if asked and asked[0][0] <= peer.now():
            connection.answer(asked.popleft()[1])
        elif late and peer.now() >= announced + ANNOUNCED_S:
            connection.stat(elements=(), n_ps=0, timestamp=0)
            announced = peer.now()


@connected("STP-PL-008", "STP-PL-007", to="chargen", credit=8)
def test_ready_peer_sends_ustats_only(connection: Connection) -> None:
    """A USTAT is an answer: the peer is not given up."""
    connection.receive(8, credit=8)
    vr_r = connection.reception.vr_r
    for _ in range(RARE_REPORTS):
        go_on(connection, RARELY_S, answering=False)
        connection.ustat(vr_r, vr_r + 1)
    connection.stat()
    connection.receive(vr_r + 8, credit=8)


@connected("STP-PL-008", "STP-PL-007", to="chargen", credit=8)
def test_ready_peer_announces_only(connection: Connection) -> None:
    """A STAT that answers no POLL is an answer as well: the peer is not given up."""
    connection.receive(8, credit=8)
    for _ in range(RARE_REPORTS):
        go_on(connection, RARELY_S, answering=False)
        connection.stat(elements=(), n_ps=0, timestamp=0)
    connection.stat()
    connection.receive(connection.reception.vr_r + 8, credit=8)


@connected("STP-PL-008", to="chargen", credit=8)
def test_ready_peer_answers_rarely(connection: Connection) -> None:
    """A peer that reports once in a while, that something is missing, is not given up."""
    connection.receive(8, credit=8)
    for _ in range(RARE_REPORTS):
        go_on(connection, RARELY_S, answering=False)
        connection.answer(connection.expect(POLL, within=RARELY_S, what="a POLL by timer"))
    connection.receive(connection.reception.vr_r + 8, credit=8)


@connected("STP-PL-008", to="chargen", credit=4)
def test_ready_peer_answers_without_credit(connection: Connection) -> None:
    """A peer that has no room for more than a minute, and says so, is not given up."""
    connection.receive(4, credit=None)
    go_on(connection, RARE_REPORTS * RARELY_S)
    connection.receive(8, credit=4)


@connected("STP-PL-004", "STP-PL-003", "STP-DT-003", "STP-DT-015", to="echo")
def test_ready_fin_is_lost(connection: Connection) -> None:
    """The SD with the FIN flag is lost twice: it goes again with the flag, and asks for a STAT."""
    connection.sds(3, octets=200)
    connection.sd(b"the end", fin=True, poll=True)

    def loses(sd: Arrival, before: int) -> bool:
        return bool(sd.packet.flags & FIN) and before < 2

    connection.serve(lambda: connection.reception.ended, losing=loses)
    connection.release()


@connected("STP-PL-003", to="echo")
def test_ready_echo_of_single_sds(connection: Connection) -> None:
    """A user that writes little: each SD is the last one for a while, and asks for a STAT."""
    stream = connection.reception.stream
    octets = 0
    for _ in range(5):
        octets += len(connection.sd(60, poll=True).data)
        connection.serve(lambda most=octets: len(stream) >= most)  # type: ignore[misc]
        connection.discard(3 * PAUSE_S)


@connected("STP-PL-010", to="echo")
def test_ready_nothing_is_ever_said(connection: Connection) -> None:
    """A connection on which nothing has passed but BEGIN and BGAK is asked about as well."""
    long = KEPT_ALIVE_S + connection.peer.patience
    connection.answer(connection.expect(POLL, within=long, what="a POLL"))
    connection.discard(connection.rtt + 5.0)


@connected("STP-PL-010", to="echo")
def test_ready_nothing_to_do(connection: Connection) -> None:
    """Once everything is acknowledged, no POLL leaves until the peer may have gone."""
    connection.sds(3, octets=200)
    connection.deliver()
    connection.serve(lambda: len(connection.reception.stream) >= 600)
    connection.stat()
    connection.discard(connection.rtt + PAUSE_S)
    connection.inbox.clear()
    for _ in range(2):
        long = KEPT_ALIVE_S + connection.peer.patience
        connection.answer(connection.expect(POLL, within=long, what="a POLL"))
        connection.discard(connection.rtt + 5.0)


@connected("STP-PL-007", "STP-PL-008", "STP-PL-010", to="echo", aborted=False)
def test_ready_keep_alive_is_not_answered(connection: Connection) -> None:
    """The POLL of an idle connection is lost, and the next ones: each is repeated, ever later.

    A later one is answered; when the next keep-alive is due the peer is silent, and given up.
    """
    long = KEPT_ALIVE_S + connection.peer.patience
    for _ in range(2):
        connection.remember(connection.expect(POLL, within=long, what="a POLL"))
        go_on(connection, SILENT_S, answering=False)
        connection.stat()
    connection.expect(POLL, within=long, what="a POLL")
    connection.discard(GIVEN_UP_S)


@connected("STP-PL-001", to="echo")
def test_ready_first_measurement_shortens_the_interval(connection: Connection) -> None:
    """An SD leaves before the first round trip is measured: its POLL does not wait as long."""
    connection.sd(60)
    poll = connection.expect(POLL, within=SILENT_S, what="a POLL")
    connection.sd(60)
    connection.remember(poll)
    connection.reception.polled(poll.number_polled)
    connection.stat(n_r=1, elements=(), after=0.1)
    go_on(connection, SILENT_S, answering=False)
    connection.stat(n_r=2, elements=())
