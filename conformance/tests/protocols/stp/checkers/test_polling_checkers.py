"""The checkers of STP-PL."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    FIN,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    A,
)
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, ECHO
from bentpipe_conformance.protocols.stp.replay.round_trip import calls, measured_calls
from bentpipe_conformance.protocols.stp.story import FAIL, IUT_CSN, NOTHING, PASS, StpStory

RTT = 0.6
DATA = b"d" * 1000


def opened() -> StpStory:
    return StpStory(credit=512).opened()


def stream(interval: float, *, seconds: float = 6.0, every: float = 0.01) -> StpStory:
    """Sixty SDs in flight, an SDP every ``interval``, every POLL answered after a round trip."""
    story = opened()
    answers: list[tuple[float, int, int]] = []
    polled, n_ps, number, measured = story.at, 0, 0, False
    while story.at < seconds:
        while answers and answers[0][0] <= story.at + every:
            due, asked, arrived = answers.pop(0)
            story.tester(STAT, arrived, n_ps=asked, after=max(0.0, due - story.at))
            measured = True
        # Before the first measurement the poll interval is a second.
        rides = number == 0 or (measured and story.at + every - polled >= interval - 1e-9)
        if rides:
            n_ps += 1
            polled = story.at + every
            answers.append((polled + RTT, n_ps, number + 1))
        kind, fields = (SDP, {"n_ps": n_ps}) if rides else (SD, {})
        story.iut(kind, number, data=DATA, after=every, **fields)
        number += 1
    return story


@pytest.mark.parametrize(("interval", "verdict"), [(0.2, {Verdict.PASS}), (0.5, {Verdict.FAIL})])
def test_time_between_polls_of_a_large_window(interval: float, verdict: set[Verdict]) -> None:
    story = stream(interval)
    assert verdict <= story.verdicts("STP-PL-001")


@pytest.mark.parametrize(("interval", "verdict"), [(0.2, PASS), (0.03, FAIL)])
def test_polls_in_three_round_trips(interval: float, verdict: set[Verdict]) -> None:
    claims = {"path_class": "geo", "initial_window_sds": 4}
    story = stream(interval)
    story = story.of_service(19)
    assert verdict <= story.verdicts("STP-PL-002", claims=claims)


def burst(*kinds: int) -> StpStory:
    """A first burst whose SDs are of these types; the next one only after a STAT."""
    story = opened()
    for number, kind in enumerate(kinds):
        story.iut(kind, number, data=DATA, after=0.001)
    return story


def test_burst_ends_with_an_sdp_or_a_poll() -> None:
    story = burst(SD, SD, SDP).tester(STAT, 3, after=RTT).iut(SDP, 3, data=DATA, n_ps=2)
    assert story.of_service(CHARGEN).verdicts("STP-PL-003") == PASS
    story = burst(SD, SD).iut(POLL, 2, after=0.01).tester(STAT, 2, after=RTT)
    story = story.iut(SDP, 2, data=DATA, n_ps=2)
    assert story.of_service(CHARGEN).verdicts("STP-PL-003") == PASS


def test_burst_ends_without_a_poll() -> None:
    story = burst(SD, SD).tester(SD, 0, after=2.0)
    assert story.of_service(CHARGEN).verdicts("STP-PL-003") == FAIL


def test_burst_ends_soon_after_a_poll() -> None:
    story = burst(SDP, SD, SD).tester(STAT, 1, after=RTT).iut(SDP, 3, data=DATA, n_ps=2)
    assert story.of_service(CHARGEN).verdicts("STP-PL-003") == NOTHING


@pytest.mark.parametrize(("after", "verdict"), [(0.2, PASS), (0.5, FAIL)])
def test_poll_interval_passes_while_the_sender_has_to_stop(
    after: float, verdict: set[Verdict]
) -> None:
    story = burst(SDP).tester(STAT, 1, after=RTT).iut(SDP, 1, data=DATA, n_ps=2)
    for number in range(2, 12):
        story.iut(SD, number, data=DATA)
    story.iut(POLL, 12, n_ps=3, after=after).tester(SD, 0, after=0.1)
    assert story.of_service(CHARGEN).verdicts("STP-PL-003") >= verdict


def test_sd_acknowledged_before_needs_no_poll() -> None:
    story = opened().iut(SD, 0).tester(USTAT, 1, elements=(1, 1), after=0.1)
    assert (
        story.tester(STAT, 1, n_ps=0, after=0.1).tester(SD, 0, after=3.0).verdicts("STP-PL-001")
        == NOTHING
    )


def test_burst_cut_short_by_a_report_says_nothing() -> None:
    story = burst(SDP, SD).tester(STAT, 1, after=0.02).iut(SD, 2, data=DATA, after=0.001)
    assert story.verdicts("STP-PL-003") == NOTHING


def test_fin_polls_or_does_not() -> None:
    assert opened().iut(SDP, 0, flags=FIN).verdicts("STP-PL-004") == PASS
    silent = opened().iut(SD, 0, flags=FIN).tester(SD, 0, after=1.0)
    assert silent.verdicts("STP-PL-004") == FAIL
    late = opened().iut(SD, 0, flags=FIN).iut(POLL, 1, after=0.5).tester(SD, 0, after=1.0)
    assert late.verdicts("STP-PL-004") == FAIL


def test_poll_just_after_a_new_sd_could_have_ridden_on_it() -> None:
    story = opened().tester(SD, 0, after=0.6).iut(SD, 0, after=1.0).iut(POLL, 1, after=0.002)
    assert story.of_service(CHARGEN).verdicts("STP-PL-005") == FAIL
    story = opened().iut(SD, 0, after=1.0).tester(STAT, 1, after=0.001).iut(POLL, 1, after=0.001)
    assert story.of_service(CHARGEN).verdicts("STP-PL-005") == NOTHING
    assert opened().iut(SDP, 0).verdicts("STP-PL-005") == PASS


def test_poll_that_is_due_before_the_next_sd_may_leave_goes_alone() -> None:
    story = opened().iut(SD, 0, after=1.0).iut(POLL, 1, after=0.2).iut(SD, 1, after=0.001)
    assert story.of_service(CHARGEN).verdicts("STP-PL-005") == NOTHING


def test_poll_of_timer_silence_leaves_behind_an_sdp() -> None:
    story = opened().iut(SDP, 0).tester(STAT, 1, after=0.6).iut(SDP, 1, after=1.8)
    story = story.iut(POLL, 2, after=0.002)
    assert story.of_service(CHARGEN).verdicts("STP-PL-005") == PASS


def test_poll_just_after_an_sd_of_a_user_who_may_have_ended_says_nothing() -> None:
    story = opened().iut(SD, 0, after=1.0).iut(POLL, 1, after=0.002)
    assert story.verdicts("STP-PL-005") == NOTHING


def test_fin_of_a_begin_needs_no_poll() -> None:
    story = StpStory().iut(BEGIN, data=DATA, flags=FIN).tester(BGAK, 1, after=0.6)
    assert story.tester(SD, 0, after=1.0).verdicts("STP-PL-004") == NOTHING


@pytest.mark.parametrize(
    "story",
    [
        opened().iut(SDP, 0, n_ps=2),
        opened().iut(SDP, 0).iut(SDP, 1, n_ps=3),
        opened().iut(SD, 0).iut(POLL, 0),
        opened().iut(SD, 0).iut(SD, 1).iut(SDP, 0),
    ],
    ids=["first is two", "one left out", "N(S) below VT(S)", "SDP of an old SD"],
)
def test_poll_numbered_wrongly(story: StpStory) -> None:
    assert Verdict.FAIL in story.verdicts("STP-PL-006")


def test_polls_numbered_rightly() -> None:
    story = opened().iut(SDP, 0, n_ps=1).iut(SD, 1).iut(POLL, 2, n_ps=2)
    assert story.verdicts("STP-PL-006") == PASS


def silence(*times: float) -> StpStory:
    """An SDP that is answered, then POLLs at these seconds after the answer, never answered."""
    story = opened().iut(SDP, 0).tester(STAT, 1, after=RTT).iut(SDP, 1, n_ps=2)
    begin = story.at
    for number, time in enumerate(times, start=3):
        story.iut(POLL, 2, n_ps=number, after=begin + time - story.at)
    return story


def test_silence_met_by_ever_rarer_polls() -> None:
    story = silence(1.8, 5.4, 12.6, 27.0, 42.0).tester(SD, 0, after=1.0)
    assert story.verdicts("STP-PL-007") == PASS


def test_silence_since_a_report_that_left_an_sd_unacknowledged_without_a_poll() -> None:
    story = opened().iut(SDP, 0).tester(STAT, 1, after=RTT).iut(SD, 1).tester(STAT, 1, after=0.01)
    story.iut(SDP, 2, n_ps=2, after=0.5).iut(POLL, 3, n_ps=3, after=1.3)
    story.iut(POLL, 3, n_ps=4, after=3.6)
    assert story.tester(SD, 0, after=1.0).verdicts("STP-PL-007") == PASS


@pytest.mark.parametrize(("waited", "verdict"), [(1.79, NOTHING), (1.0, FAIL)])
def test_report_that_crosses_a_poll_of_silence(waited: float, verdict: set[Verdict]) -> None:
    story = silence().tester(STAT, 1, after=waited).iut(POLL, 2, n_ps=3, after=0.005)
    assert story.tester(STAT, 2, n_ps=3, after=0.1).verdicts("STP-PL-007") == verdict


def test_two_reports_that_cross_a_poll_of_silence() -> None:
    story = silence().tester(USTAT, 1, elements=(1, 2), after=1.79).tester(STAT, 1)
    story.iut(POLL, 2, n_ps=3, after=0.005).tester(STAT, 2, n_ps=3, after=0.1)
    assert story.verdicts("STP-PL-007") == NOTHING


def test_silence_met_by_polls_at_one_interval() -> None:
    story = silence(*(1.8 * n for n in range(1, 12))).tester(SD, 0, after=1.0)
    assert Verdict.FAIL in story.verdicts("STP-PL-007")


def test_new_data_in_a_silence_brings_polls_of_its_own() -> None:
    story = silence(1.8, 5.4, 12.6)
    story.iut(SDP, 2, n_ps=6, after=0.03).iut(SDP, 3, n_ps=7, after=0.03)
    assert Verdict.FAIL not in story.tester(SD, 0, after=1.0).verdicts("STP-PL-007")


def test_silence_met_by_nothing() -> None:
    assert silence().tester(SD, 0, after=30.0).verdicts("STP-PL-007") == FAIL


def test_probe_of_a_closed_window_lost_says_nothing() -> None:
    story = StpStory(credit=1).opened().iut(SDP, 0).tester(STAT, 1, n_mr=1, after=RTT)
    story.iut(POLL, 1, n_ps=2, after=6.4).iut(POLL, 1, n_ps=3, after=12.8)
    assert story.tester(SD, 0, after=1.0).verdicts("STP-PL-007") == NOTHING


@pytest.mark.parametrize(("wait", "accused"), [(1.8, False), (7.2, True)])
def test_ustat_ends_the_doubling(wait: float, accused: bool) -> None:
    story = silence(1.8, 5.4).tester(USTAT, 1, elements=(1, 2), after=0.5)
    story.iut(POLL, 2, n_ps=5, after=wait).iut(POLL, 2, n_ps=6, after=2 * wait)
    verdicts = story.tester(SD, 0, after=0.1).verdicts("STP-PL-007")
    assert (Verdict.FAIL in verdicts) == accused


@pytest.mark.parametrize(("seconds", "verdict"), [(60.0, PASS), (20.0, FAIL), (90.0, FAIL)])
def test_silent_peer_given_up(seconds: float, verdict: set[Verdict]) -> None:
    story = silence(1.8, 5.4, 12.6)
    story.iut(END, 0, flags=A, reason=7, after=seconds - 12.6)
    assert story.verdicts("STP-PL-008") == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(60.0, PASS), (20.0, FAIL)])
def test_peer_given_up_that_a_report_has_called_on(seconds: float, verdict: set[Verdict]) -> None:
    """The only POLL leaves with the report: after a round trip of minutes silence is as long."""
    story = StpStory().opened().iut(SDP, 0).tester(STAT, 1, after=50.0).iut(SDP, 1, n_ps=2)
    story.iut(END, 0, flags=A, reason=7, after=seconds)
    assert story.verdicts("STP-PL-008") == verdict


def test_poll_that_a_report_crosses_gives_nobody_up() -> None:
    story = opened().iut(SDP, 0).tester(STAT, 1, after=RTT).iut(SDP, 1, n_ps=2)
    assert Verdict.FAIL not in story.tester(SD, 0, after=90.0).verdicts("STP-PL-008")


def test_silent_peer_never_given_up() -> None:
    story = silence(1.8, 5.4, 12.6, 27.0, 42.0, 57.0, 72.0).tester(SD, 0, after=5.0)
    assert story.verdicts("STP-PL-008") == FAIL


@pytest.mark.parametrize(("wait", "verdict"), [(600.0, PASS), (1.0, FAIL), (700.0, FAIL)])
def test_poll_on_an_idle_connection(wait: float, verdict: set[Verdict]) -> None:
    story = opened().iut(SDP, 0).tester(STAT, 1, after=RTT)
    assert story.iut(POLL, 1, n_ps=2, after=wait).verdicts("STP-PL-010") == verdict


def test_poll_on_an_idle_connection_just_after_a_packet() -> None:
    """The timer had expired when the packet was read."""
    story = opened().iut(SDP, 0).tester(STAT, 1, after=RTT).tester(SD, 0, after=599.99)
    assert story.iut(POLL, 1, n_ps=2, after=0.01).verdicts("STP-PL-010") == PASS
    story = opened().iut(SDP, 0).tester(STAT, 1, after=RTT).tester(SD, 0, after=500.0)
    assert story.iut(POLL, 1, n_ps=2, after=0.01).verdicts("STP-PL-010") == FAIL


def test_begin_of_a_peer_that_was_called_may_put_no_poll_off() -> None:
    """It is a call, which the connection need not see; that of one that called, it does."""
    story = StpStory().called().iut(SDP, 0).tester(STAT, 1, after=RTT)
    story.tester(BEGIN, cookie=None, after=500.0).iut(BGREJ, reason=6, after=0.01)
    assert story.iut(POLL, 1, n_ps=2, after=99.99).verdicts("STP-PL-010") == PASS
    story = opened().iut(SDP, 0).tester(STAT, 1, after=RTT)
    story.tester(BEGIN, after=500.0).iut(BGAK, after=0.01)
    assert story.iut(POLL, 1, n_ps=2, after=99.99).verdicts("STP-PL-010") == FAIL


def test_silence_before_a_connection_becomes_idle_is_none_of_it() -> None:
    story = opened().iut(SDP, 0).tester(STAT, 1, after=700.0)
    assert story.of_service(CHARGEN).verdicts("STP-PL-010") == NOTHING


def test_idle_connection_that_never_asks() -> None:
    story = opened().iut(SDP, 0).tester(STAT, 1, after=RTT).tester(SD, 0, after=900.0)
    assert story.verdicts("STP-PL-010") == FAIL


def test_polls_into_a_closed_window_are_no_sign_of_idleness() -> None:
    story = StpStory(credit=4).opened().iut(STAT, 0, n_mr=64)
    for number in range(3):
        story.iut(SD, number)
    story.iut(SDP, 3).tester(STAT, 4, n_mr=4, after=RTT)
    story.iut(POLL, 4, n_ps=2, after=1.0).iut(POLL, 4, n_ps=3, after=1.0)
    assert story.verdicts("STP-PL-010") == NOTHING


def measured(*rtts: float) -> StpStory:
    """POLLs that are answered after these seconds, and one that is not, at once after them."""
    story = opened()
    for number, rtt in enumerate(rtts):
        story.iut(SDP, number, n_ps=number + 1)
        story.tester(STAT, number + 1, n_ps=number + 1, after=rtt)
    return story.iut(SDP, len(rtts), n_ps=len(rtts) + 1)


@pytest.mark.parametrize(
    ("wait", "verdict"),
    # SRTT 0.6 + 0.6 / 8 = 0.675 s; deviation 0.75 x 0.3 + 0.6 / 4 = 0.375 s: 2.175 s.
    [(2.18, PASS), (2.9, FAIL), (1.3, FAIL)],
)
def test_silence_after_two_measurements(wait: float, verdict: set[Verdict]) -> None:
    story = measured(0.6, 1.2).iut(POLL, 3, n_ps=4, after=wait)
    assert story.verdicts("STP-PL-009") == verdict


def test_silence_that_no_measurement_explains_is_none_of_smoothing() -> None:
    story = measured(0.6, 1.2).iut(POLL, 3, n_ps=4, after=12.0)
    assert story.verdicts("STP-PL-009") == NOTHING
    assert story.tester(SD, 0, after=0.1).verdicts("STP-PL-007") == FAIL


@pytest.mark.parametrize(("wait", "verdict"), [(1.8, PASS), (6.0, FAIL)])
def test_echo_has_data_and_no_credit(wait: float, verdict: set[Verdict]) -> None:
    story = StpStory(credit=4).opened().iut(STAT, 0, n_mr=64)
    for number in range(4):
        story.tester(SD, number, data=b"x").iut(SDP, number, data=b"x", n_ps=number + 1)
    story.tester(STAT, 4, n_ps=4, n_mr=4, after=RTT).tester(SD, 4, data=b"x", after=2.0)
    story.iut(POLL, 4, n_ps=5, after=wait).iut(POLL, 4, n_ps=6, after=2 * wait)
    story.tester(SD, 4, data=b"x", after=0.1)
    assert story.of_service(ECHO).verdicts("STP-DT-025") == verdict


@pytest.mark.parametrize(("wait", "verdict"), [(1.8, PASS), (6.0, FAIL)])
def test_echo_has_the_end_of_its_stream_and_no_credit(wait: float, verdict: set[Verdict]) -> None:
    story = StpStory(credit=4).opened().iut(STAT, 0, n_mr=64)
    for number in range(4):
        story.tester(SD, number, data=b"x").iut(SDP, number, data=b"x", n_ps=number + 1)
    story.tester(STAT, 4, n_ps=4, n_mr=4, after=RTT)
    story.tester(SDP, 4, flags=FIN, n_ps=9, after=2.0).iut(STAT, 5, n_ps=9, n_mr=64)
    story.iut(POLL, 4, n_ps=5, after=wait).iut(POLL, 4, n_ps=6, after=2 * wait)
    story.tester(SD, 4, flags=FIN, after=0.1)
    assert story.of_service(ECHO).verdicts("STP-DT-025") == verdict


def test_end_of_the_stream_that_had_credit_is_not_probed_for() -> None:
    story = StpStory(credit=4).opened()
    for number in range(3):
        story.tester(SD, number, data=b"x").iut(SDP, number, data=b"x", n_ps=number + 1)
    story.tester(SD, 3, flags=FIN).iut(SDP, 3, flags=FIN, n_ps=4)
    story.tester(STAT, 4, n_ps=4, n_mr=4, after=RTT).tester(SD, 3, flags=FIN, after=20.0)
    assert story.of_service(ECHO).verdicts("STP-DT-025") == NOTHING


def test_bgak_to_be_discarded_answers_no_begin() -> None:
    """It acknowledges SDs that were never sent; what answers then has two BEGINs to answer."""
    story = StpStory().iut(BEGIN, csn=IUT_CSN - 1, seq=7, cookie=None)
    story.tester(BGREJ, reason=6, peer_csn=IUT_CSN - 1, after=RTT).iut(BEGIN)
    story.tester(BGAK, 9, after=RTT).iut(BEGIN, after=0.4).tester(BGAK, 0, after=1.6)
    flow = story.flow()
    assert [(at.stp.type, len(asked)) for asked, at in calls(flow)] == [(BGREJ, 1), (BGAK, 2)]
    assert [at.stp.type for _, at in measured_calls(flow)] == [BGREJ]


def test_stat_to_be_discarded_measures_nothing() -> None:
    story = opened().iut(SDP, 0, data=DATA, n_ps=1)
    for number in range(1, 5):
        story.iut(SD, number, data=DATA)
    story.tester(USTAT, 3, elements=(3, 4), after=0.3).iut(SD, 3, data=DATA)
    story.tester(STAT, 1, n_ps=1, after=0.15).iut(POLL, 5, n_ps=2, after=0.5)
    assert not {Verdict.FAIL} & story.verdicts("STP-PL-001")


@pytest.mark.parametrize(("idle", "expected"), [((15.0, 1.0, 2.0, 4.0, 8.0), NOTHING), ((), FAIL)])
def test_silence_that_began_with_polls_of_an_idle_connection(
    idle: tuple[float, ...], expected: set[Verdict]
) -> None:
    """Timer_SILENCE runs since the first of them, for twice as long each time."""
    story = opened()
    for number, wait in enumerate(idle):
        story.iut(POLL, 0, n_ps=number + 1, after=wait)
    story.iut(SDP, 0, n_ps=len(idle) + 1, after=8.0).iut(POLL, 1, n_ps=len(idle) + 2, after=7.0)
    assert story.tester(SD, 0, after=0.1).verdicts("STP-PL-007") == expected


def test_poll_that_meets_the_report_of_a_closed_window_is_no_probe() -> None:
    story = StpStory(credit=4).opened().iut(STAT, 0, n_mr=64)
    for number in range(4):
        story.tester(SD, number, data=b"x").iut(SDP, number, data=b"x", n_ps=number + 1)
    story.tester(STAT, 4, n_ps=4, n_mr=4, after=RTT).tester(SD, 4, data=b"x")
    story.iut(POLL, 4, n_ps=5, after=0.001).tester(STAT, 4, n_ps=5, n_mr=4, after=RTT)
    story.iut(POLL, 4, n_ps=6, after=1.0).tester(SD, 4, data=b"x", after=0.1)
    assert Verdict.FAIL not in story.of_service(ECHO).verdicts("STP-DT-025")


def test_sdp_that_may_have_met_a_report_starts_the_timer_all_the_same() -> None:
    story = silence().tester(STAT, 2, n_ps=1, after=1.79).iut(SDP, 2, n_ps=3, after=0.1)
    story.iut(SD, 3).iut(POLL, 4, n_ps=4, after=0.2).iut(POLL, 4, n_ps=5, after=1.6)
    story.iut(POLL, 4, n_ps=6, after=3.6).tester(SD, 0, after=0.1)
    assert Verdict.FAIL not in story.verdicts("STP-PL-007")


@pytest.mark.parametrize(("reported", "accused"), [(4, False), (1, True)])
def test_retransmission_that_meets_the_report_of_its_arrival_needs_no_poll(
    reported: int, accused: bool
) -> None:
    story = burst(SD, SD, SD, SDP).tester(USTAT, 1, elements=(1, 2), after=RTT)
    elements = () if reported == 4 else (1, 2, 4)
    story.tester(STAT, reported, elements=elements, after=0.003).iut(SD, 1, data=DATA, after=0.002)
    story = story.tester(SD, 0, after=2.0).of_service(CHARGEN)
    assert accused == (Verdict.FAIL in story.verdicts("STP-PL-003"))
