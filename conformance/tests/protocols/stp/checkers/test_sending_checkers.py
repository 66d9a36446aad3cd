"""The checkers of STP-DT, the IUT as a sender."""

from __future__ import annotations

import tracemalloc

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
from bentpipe_conformance.protocols.stp.story import FAIL, NOTHING, PASS, StpStory

RTT = 0.6
DATA = b"d" * 400
CHARGEN = 19


def sent(count: int = 6, credit: int = 64) -> StpStory:
    """So many SDs, the last one an SDP with N(PS) 1."""
    story = StpStory(credit=credit).opened()
    for number in range(count - 1):
        story.iut(SD, number, data=DATA, after=0.01)
    return story.iut(SDP, count - 1, data=DATA, after=0.01)


def later(story: StpStory, seconds: float = 1.0) -> StpStory:
    """The capture goes on."""
    return story.tester(SD, 0, after=seconds)


def reported() -> StpStory:
    """SD 2 of 6 is reported missing by the STAT for N(PS) 1."""
    return sent().tester(STAT, 2, elements=(2, 3, 6), after=RTT)


# Retransmission on STAT and USTAT


def test_stat_older_than_its_poll_retransmitted() -> None:
    story = reported().iut(SD, 2, data=DATA, after=0.01)
    assert later(story).verdicts("STP-DT-003") == PASS


def test_stat_retransmission_still_waiting_says_nothing() -> None:
    assert later(reported(), 1.0).verdicts("STP-DT-003") == NOTHING


def test_stat_with_nothing_in_flight_never_retransmitted() -> None:
    assert later(reported(), 20.0).verdicts("STP-DT-003") == FAIL
    assert later(reported(), 20.0).verdicts("STP-DT-010") == NOTHING


def test_sd_never_retransmitted_though_a_stat_has_had_an_effect() -> None:
    story = sent().tester(STAT, 2, elements=(2, 3, 6), after=RTT).iut(SD, 2, data=DATA, after=0.01)
    story.iut(POLL, 6, n_ps=2, after=0.01)
    story.tester(STAT, 2, n_ps=2, elements=(2, 3, 6), after=RTT)
    assert Verdict.FAIL in later(story, 20.0).verdicts("STP-DT-010")


def test_retransmission_that_waits_for_a_second_stat() -> None:
    """New SDs pass SD 2, and it goes again only when another STAT has named it."""
    story = sent().tester(STAT, 2, elements=(2, 3, 6), after=RTT)
    for number in (6, 7, 8):
        story.iut(SD, number, data=DATA, after=0.2)
    story.iut(POLL, 9, n_ps=2, after=0.01)
    story.tester(STAT, 2, n_ps=2, elements=(2, 3, 9), after=RTT).iut(SD, 2, data=DATA, after=0.01)
    assert Verdict.FAIL in later(story).verdicts("STP-DT-003")
    assert Verdict.FAIL in later(story).verdicts("STP-DT-009")


def test_stat_with_something_in_flight_not_retransmitted_says_nothing() -> None:
    story = sent().iut(SD, 6, data=DATA).tester(STAT, 2, elements=(2, 3, 6), after=RTT)
    assert later(story, 20.0).verdicts("STP-DT-003") == NOTHING


@pytest.mark.parametrize(("again", "verdict"), [(True, PASS), (False, FAIL)])
def test_stat_by_which_neither_an_sd_is_sent_again_nor_the_window_reduced(
    again: bool, verdict: set[Verdict]
) -> None:
    story = StpStory(credit=64).opened()
    for number in range(3):
        story.iut(SD, number, data=bytes(1400), after=0.01)
    story.iut(SDP, 3, data=bytes(1400), after=0.01)
    story.tester(STAT, 3, elements=(3, 4), after=RTT)
    if again:
        story.iut(SD, 3, data=bytes(1400), after=0.01)
    for number in range(4, 9):
        story.iut(SD, number, data=bytes(1400), after=0.15)
    assert later(story).verdicts("STP-DT-003") == verdict
    assert later(story).verdicts("STP-CG-005") == FAIL


@pytest.mark.parametrize(("polls", "rule"), [(True, "STP-DT-003"), (False, "STP-DT-029")])
def test_stat_by_which_neither_an_sd_is_sent_again_nor_the_peer_lives(
    polls: bool, rule: str
) -> None:
    story = reported()
    if polls:  # a new minute begins
        story.iut(POLL, 6, n_ps=2, after=1.0)
    else:
        story.at += 1.0
    story.iut(END, 0, flags=A, reason=7, after=60.0 if polls else 58.4)
    assert story.verdicts(rule) == FAIL
    assert story.verdicts(*{"STP-DT-003", "STP-DT-029"} - {rule}) == NOTHING


def test_stat_of_a_poll_before_the_retransmission() -> None:
    """Two STATs name SD 2; it was sent again after the second POLL had left."""
    story = sent().iut(POLL, 6, n_ps=2, after=0.1)
    story.tester(STAT, 2, elements=(2, 3, 6), after=RTT).iut(SD, 2, data=DATA, after=0.01)
    story.tester(STAT, 2, n_ps=2, elements=(2, 3, 6), after=0.1)
    assert later(story).verdicts("STP-DT-003") == PASS
    story = sent().iut(POLL, 6, n_ps=2, after=0.1)
    story.tester(STAT, 2, elements=(2, 3, 6), after=RTT).iut(SD, 2, data=DATA, after=0.01)
    story.tester(STAT, 2, n_ps=2, elements=(2, 3, 6), after=0.1).iut(SD, 2, data=DATA, after=0.01)
    assert Verdict.FAIL in later(story).verdicts("STP-DT-003")


def test_retransmission_that_a_stat_and_a_ustat_may_have_caused_says_nothing() -> None:
    story = reported().iut(SD, 2, data=DATA, after=0.01)
    story.tester(STAT, 2, elements=(2, 3, 6), after=0.1).tester(USTAT, 2, elements=(2, 3))
    story.iut(SD, 2, data=DATA, after=0.01)
    assert Verdict.FAIL not in later(story).verdicts("STP-DT-003")
    assert Verdict.FAIL not in later(story).verdicts("STP-DT-014")


def test_ustat_retransmitted_once() -> None:
    story = sent().tester(USTAT, 2, elements=(2, 3), after=RTT).iut(SD, 2, data=DATA, after=0.01)
    assert later(story).verdicts("STP-DT-014") == PASS
    story.tester(USTAT, 2, elements=(2, 3), after=0.1)
    assert later(story).verdicts("STP-DT-014") == PASS
    story.iut(SD, 2, data=DATA, after=0.01)
    assert Verdict.FAIL not in later(story).verdicts("STP-DT-003")
    repeated = sent().tester(USTAT, 2, elements=(2, 3), after=RTT)
    repeated.iut(SD, 2, data=DATA, after=0.01).tester(USTAT, 2, elements=(2, 3), after=0.1)
    assert Verdict.FAIL in later(repeated.iut(SD, 2, data=DATA, after=0.01)).verdicts("STP-DT-014")


def test_ustat_never_retransmitted() -> None:
    story = sent().tester(USTAT, 2, elements=(2, 6), after=RTT)
    assert later(story, 20.0).verdicts("STP-DT-014") == FAIL


# Retransmission without a report


def test_sd_that_a_report_named_sent_again() -> None:
    story = reported().iut(SD, 2, data=DATA, after=0.01)
    assert later(story).verdicts("STP-DT-027") == PASS


def test_sd_that_no_report_named_sent_again() -> None:
    story = sent().iut(SD, 2, data=DATA, after=2.0)
    assert later(story).verdicts("STP-DT-027") == FAIL
    beside = sent().tester(STAT, 2, elements=(2, 3, 4), after=RTT).iut(SD, 5, data=DATA, after=0.01)
    assert later(beside).verdicts("STP-DT-027") == FAIL


def test_sd_sent_a_third_time_for_one_report() -> None:
    story = reported().iut(SD, 2, data=DATA, after=0.01).iut(SD, 2, data=DATA, after=0.5)
    assert Verdict.FAIL in later(story).verdicts("STP-DT-027")


@pytest.mark.parametrize(("after", "verdict"), [(0.05, set()), (0.5, FAIL)])
def test_sd_that_has_arrived_sent_again(after: float, verdict: set[Verdict]) -> None:
    story = sent().tester(STAT, 4, after=RTT).iut(SD, 2, data=DATA, after=after)
    assert later(story).verdicts("STP-DT-027") == verdict


def test_sd_that_has_arrived_and_that_an_overtaken_report_names_sent_again() -> None:
    story = sent().tester(STAT, 1, elements=(1, 2, 6), after=RTT).iut(SD, 1, data=DATA, after=0.01)
    story.tester(USTAT, 1, elements=(2, 3), after=0.3).iut(SD, 2, data=DATA, after=0.01)
    assert Verdict.FAIL in later(story).verdicts("STP-DT-027")


def test_sd_that_a_report_to_be_discarded_named_is_a_matter_of_that_report() -> None:
    story = sent().tester(STAT, 2, n_ps=9, elements=(2, 3, 6), after=RTT)
    story.iut(SD, 2, data=DATA, after=0.01)
    assert Verdict.FAIL not in later(story).verdicts("STP-DT-027")


# POLLs by timer


def test_unanswered_poll_repeated_by_timer() -> None:
    story = sent().tester(STAT, 5, after=RTT).iut(POLL, 6, n_ps=2, after=1.0)
    assert later(story).verdicts("STP-DT-004") == PASS


def test_unacknowledged_sd_without_polls() -> None:
    assert later(sent().tester(STAT, 5, after=RTT), 20.0).verdicts("STP-DT-004") == FAIL
    assert later(sent().tester(STAT, 6, after=RTT), 20.0).verdicts("STP-DT-004") == NOTHING


def test_polls_after_silences_become_rarer() -> None:
    story = sent().tester(STAT, 5, after=RTT)
    n_ps, wait = 1, 1.5
    for _ in range(5):
        n_ps += 1
        story.iut(POLL, 6, n_ps=n_ps, after=wait)
        wait = min(2 * wait, 15.0)
    assert later(story).verdicts("STP-DT-004") == PASS


def test_polls_after_silences_of_the_least_length() -> None:
    """With a round trip of 40 ms silences last 0.2, 0.4 and 0.8 s, but for rounding."""
    story = StpStory().opened()
    for number in range(5):
        story.iut(SD, number, data=DATA)
    story.iut(SDP, 5, data=DATA).tester(STAT, 5, after=0.04)
    for n_ps, wait in ((2, 0.19999), (3, 0.4), (4, 0.8), (5, 1.6), (6, 3.2), (7, 6.4)):
        story.iut(POLL, 6, n_ps=n_ps, after=wait)
    assert later(story).verdicts("STP-DT-004") == PASS


def test_early_poll_of_a_caller_is_repeated_by_no_timer() -> None:
    story = StpStory().iut(BEGIN).iut(SDP, 0, data=DATA, after=0.1).iut(BEGIN, after=7.0)
    story.tester(BGAK, 0, after=0.6).iut(POLL, 1, n_ps=2, after=0.1)
    assert Verdict.FAIL not in later(story).verdicts("STP-DT-004")


def test_stat_ends_a_doubled_wait() -> None:
    story = sent().tester(STAT, 4, after=RTT).iut(POLL, 6, n_ps=2, after=2.0)
    story.iut(POLL, 6, n_ps=3, after=4.0).tester(STAT, 5, n_ps=3, after=3.8)
    assert later(story.iut(POLL, 6, n_ps=4, after=0.01)).verdicts("STP-DT-004") == PASS


def test_stat_that_comes_very_late_lengthens_the_interval() -> None:
    story = sent().iut(POLL, 6, n_ps=2, after=2.0).iut(POLL, 6, n_ps=3, after=4.0)
    story.tester(STAT, 5, n_ps=2, after=5.0).iut(POLL, 6, n_ps=4, after=10.0)
    assert Verdict.FAIL not in later(story).verdicts("STP-DT-004")


@pytest.mark.parametrize(
    ("wait", "requirement", "accused"),
    [(1.5, "STP-DT-004", False), (9.0, "STP-DT-004", False), (9.0, "STP-PL-007", True),
     (20.0, "STP-DT-004", True)],
)  # fmt: skip
def test_ustat_ends_a_doubled_wait(wait: float, requirement: str, accused: bool) -> None:
    story = sent().tester(STAT, 5, after=RTT).iut(POLL, 6, n_ps=2, after=2.0)
    story.iut(POLL, 6, n_ps=3, after=4.0).tester(USTAT, 5, elements=(5, 6), after=0.5)
    story.iut(POLL, 6, n_ps=4, after=wait)
    assert (Verdict.FAIL in story.verdicts(requirement)) == accused


# The window of the peer


def closed(*waits: float, until: float = 1.0) -> StpStory:
    """All four SDs are acknowledged and there is no credit; POLLs after these seconds each."""
    story = sent(4, credit=4).tester(STAT, 4, after=RTT)
    for n_ps, wait in enumerate(waits, start=2):
        story.iut(POLL, 4, n_ps=n_ps, after=wait)
        story.tester(STAT, 4, n_ps=n_ps, after=0.05)
    return later(story, until).of_service(CHARGEN)


def test_closed_window_probed_ever_more_rarely() -> None:
    assert closed(0.2, 0.35, 0.75, 1.55).verdicts("STP-DT-025") == PASS


def test_closed_window_probed_every_fifteen_seconds_at_last() -> None:
    rising = (0.2, 0.35, 0.75, 1.55, 3.15, 6.35, 12.75)
    assert closed(*rising, 14.95, 14.95, until=5.0).verdicts("STP-DT-025") == PASS
    assert Verdict.FAIL in closed(*rising, 25.55).verdicts("STP-DT-025")
    assert Verdict.FAIL in closed(*rising, 14.95, 14.95, until=30.0).verdicts("STP-DT-025")


def test_closed_window_probed_at_one_interval() -> None:
    assert Verdict.FAIL in closed(0.2, 0.35, 0.35, 0.35, 0.35).verdicts("STP-DT-025")


def test_closed_window_not_probed() -> None:
    assert closed(until=10.0).verdicts("STP-DT-025") == FAIL
    assert closed(0.2, until=20.0).verdicts("STP-DT-025") == FAIL


def test_closed_window_of_a_service_without_data_says_nothing() -> None:
    story = sent(4, credit=4).tester(STAT, 4, after=RTT)
    assert later(story, 20.0).of_service(7).verdicts("STP-DT-025") == NOTHING


def test_credit_used_up_or_exceeded() -> None:
    assert sent(8, credit=8).verdicts("STP-DT-011") == PASS
    assert Verdict.FAIL in sent(9, credit=8).verdicts("STP-DT-011")
    raised = sent(8, credit=8).tester(STAT, 8, n_mr=9, after=RTT).iut(SD, 8, data=DATA)
    assert raised.verdicts("STP-DT-011") == PASS


# Order


def test_new_sd_while_another_awaits_retransmission() -> None:
    story = reported().iut(SD, 2, data=DATA, after=0.2).iut(SD, 6, data=DATA, after=0.01)
    assert story.verdicts("STP-DT-009") == PASS
    assert reported().iut(SD, 6, data=DATA, after=0.2).verdicts("STP-DT-009") == FAIL


def test_new_sd_while_the_report_arrives_says_nothing() -> None:
    assert reported().iut(SD, 6, data=DATA, after=0.005).verdicts("STP-DT-009") == NOTHING


def test_sd_sent_a_third_time() -> None:
    story = reported().iut(SD, 2, data=DATA, after=0.01).iut(POLL, 6, n_ps=2, after=0.1)
    story.tester(STAT, 2, n_ps=2, elements=(2, 3, 6), after=RTT)
    assert story.iut(SD, 2, data=DATA, after=0.1).verdicts("STP-DT-010") == PASS


# What SDs carry


def test_retransmission_with_other_data_or_fin() -> None:
    assert reported().iut(SD, 2, data=DATA).verdicts("STP-DT-015") == PASS
    assert reported().iut(SD, 2, data=DATA[1:]).verdicts("STP-DT-015") == FAIL
    assert reported().iut(SD, 2, data=DATA, flags=FIN).verdicts("STP-DT-015") == FAIL


def test_new_sds_in_order_and_with_a_number_left_out() -> None:
    assert sent().verdicts("STP-DT-016") == PASS
    assert Verdict.FAIL in sent().iut(SD, 7).verdicts("STP-DT-016")
    assert StpStory().opened().iut(SD, 1).verdicts("STP-DT-016") == FAIL


# Reports that have to be discarded

INVALID = {
    "falling": {"elements": (2, 4, 3)},
    "bound above N(MR)": {"elements": (2, 3, 6), "n_mr": 5},
    "bound above VT(S)": {"elements": (2, 3, 9)},
    "poll never sent": {"elements": (2, 3, 6), "n_ps": 9},
}


@pytest.mark.parametrize("fields", INVALID.values(), ids=INVALID)
def test_invalid_stat_obeyed_or_discarded(fields: dict[str, object]) -> None:
    story = sent().tester(STAT, 2, after=RTT, **fields).iut(POLL, 6, n_ps=2, after=0.5)
    assert story.verdicts("STP-DT-023") == PASS
    story = sent().tester(STAT, 2, after=RTT, **fields).iut(SD, 2, data=DATA, after=0.01)
    assert story.verdicts("STP-DT-023") == FAIL


def test_invalid_report_gives_credit_or_ends_the_connection() -> None:
    story = sent(8, credit=8).tester(STAT, 9, n_mr=20, after=RTT)
    assert story.iut(SD, 8, data=DATA, after=0.01).verdicts("STP-DT-023") == FAIL
    story = sent(8, credit=8).tester(STAT, 9, n_mr=20, after=RTT)
    assert story.iut(SD, 8, data=DATA, after=0.01).verdicts("STP-DT-011") == PASS
    story = sent(8, credit=8).tester(USTAT, 4, elements=(5, 4), after=RTT)
    assert story.iut(END, 0, flags=A, reason=6).verdicts("STP-DT-023") == FAIL


def test_peer_given_up_just_after_an_invalid_report() -> None:
    story = sent(8, credit=8).tester(USTAT, 4, elements=(5, 4), after=RTT)
    assert story.iut(END, 0, flags=A, reason=7, after=0.05).verdicts("STP-DT-023") == NOTHING


def overtaken(**fields: object) -> StpStory:
    """The STAT for N(PS) 2 comes first, and says nothing of SD 2; then that for N(PS) 1."""
    story = sent(8, credit=8).iut(POLL, 8, n_ps=2, after=0.1).tester(STAT, 2, n_ps=2, after=RTT)
    return story.tester(STAT, 2, n_ps=1, after=0.1, **fields)


def test_old_stat_discarded() -> None:
    story = overtaken(elements=(2, 3, 8)).iut(POLL, 8, n_ps=3, after=0.5)
    assert story.verdicts("STP-DT-007") == PASS


def test_old_stat_obeyed() -> None:
    story = overtaken(elements=(2, 3, 8)).iut(SD, 2, data=DATA, after=0.01)
    assert story.verdicts("STP-DT-007") == FAIL
    story = overtaken(n_mr=16).iut(SD, 8, data=DATA, after=0.01)
    assert story.verdicts("STP-DT-007") == FAIL
    assert story.verdicts("STP-DT-023") == NOTHING


# What a STAT says nothing of


def silent_of_the_rest() -> StpStory:
    """A STAT bounded at 4 reports 2 missing; SD 5 is missing as well, which is told later."""
    story = sent().tester(STAT, 2, elements=(2, 3, 4), after=RTT).iut(SD, 2, data=DATA, after=0.01)
    story.iut(POLL, 6, n_ps=2, after=0.01)
    return story.tester(STAT, 5, n_ps=2, elements=(5, 6), after=RTT)


def test_sd_above_the_bound_kept() -> None:
    assert silent_of_the_rest().iut(SD, 5, data=DATA, after=0.01).verdicts("STP-DT-006") == PASS


def test_sd_above_the_bound_taken_for_received() -> None:
    assert later(silent_of_the_rest(), 20.0).verdicts("STP-DT-006") == FAIL


@pytest.mark.parametrize("n_r", [1, 8_000_001])
def test_reports_of_millions_of_numbers_take_the_memory_of_the_sds_sent(n_r: int) -> None:
    """The IUT skips 8 million numbers, which a STAT reports missing or acknowledges."""
    far = 8_000_000
    story = StpStory().opened().iut(SD, 0).iut(SDP, far)
    story.tester(STAT, 1, after=RTT).iut(POLL, far + 1, n_ps=2)
    missing = (1, far + 1) if n_r == 1 else ()
    story.tester(STAT, n_r, n_ps=2, n_mr=far + 1, elements=missing, after=RTT)
    story.iut(SD, far, after=0.01)
    StpStory().opened().verdicts("STP-DT-006")  # loads what checkers need
    tracemalloc.start()
    try:
        verdicts = later(story).verdicts("STP-DT-006")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert verdicts == (PASS if n_r == 1 else NOTHING)
    assert peak < 1_000_000


# What a report does


@pytest.mark.parametrize(("after", "verdict"), [(0.1, PASS), (5.0, FAIL)])
@pytest.mark.parametrize("kind", [STAT, USTAT])
def test_credit_of_a_report_used_and_not_used(
    kind: int, after: float, verdict: set[Verdict]
) -> None:
    story = sent(4, credit=4).tester(STAT, 3, n_mr=4, after=RTT)
    elements = (3, 4) if kind == USTAT else ()
    story.tester(kind, 3 if elements else 4, n_mr=8, elements=elements, after=0.1)
    if elements:
        story.iut(SD, 3, data=DATA, after=0.01)
    story.iut(SD, 4, data=DATA, after=after)
    assert later(story.of_service(CHARGEN)).verdicts("STP-DT-029") == verdict


def test_credit_that_a_later_report_does_not_repeat_is_not_used() -> None:
    story = sent(4, credit=64).tester(STAT, 4, n_mr=4, after=RTT).iut(SD, 4, data=DATA, after=5.0)
    found = later(story.of_service(CHARGEN))
    assert Verdict.FAIL in found.verdicts("STP-DT-007")
    assert found.verdicts("STP-DT-029") == NOTHING


@pytest.mark.parametrize(("apart", "verdict"), [(0.01, PASS), (1.5, FAIL)])
def test_two_sds_are_missing_and_window_has_room(apart: float, verdict: set[Verdict]) -> None:
    story = sent().tester(STAT, 2, elements=(2, 4, 6), after=RTT)
    story.iut(SD, 2, data=DATA, after=0.01).iut(SD, 3, data=DATA, after=apart)
    assert later(story, 3.0).verdicts("STP-DT-009") == verdict


@pytest.mark.parametrize(("apart", "accused"), [(1.0, False), (3.0, True)])
def test_two_of_the_sds_that_have_just_left_are_missing(apart: float, accused: bool) -> None:
    """What left shortly before counts until pacing has let it pass (STP-CG-008)."""
    story = sent().tester(STAT, 6, after=RTT)
    for number in (6, 7, 8, 9):
        story.iut(SD, number, data=DATA)
    story.tester(USTAT, 6, elements=(6, 10), after=0.02).iut(SD, 6, data=DATA, after=0.001)
    story.iut(SD, 7, data=DATA, after=apart)
    assert (Verdict.FAIL in later(story, 3.0).verdicts("STP-DT-009")) == accused


@pytest.mark.parametrize(("most", "verdict"), [(512, NOTHING), (1400, FAIL)])
def test_early_sds_may_be_longer_than_smss(most: int, verdict: set[Verdict]) -> None:
    story = StpStory(max_sd=most).iut(BEGIN, csn=5, cookie=None)
    story.tester(BGREJ, reason=6, peer_csn=5, max_sd=1400, after=0.6)
    story.iut(BEGIN, data=bytes(1400))
    for number in (1, 2, 3):
        story.iut(SD, number, data=bytes(1400))
    story.tester(BGAK, 1, max_sd=most, after=RTT).iut(POLL, 4, n_ps=1)
    story.tester(STAT, 1, n_ps=1, elements=(1, 4), after=RTT)
    story.iut(SD, 1, data=bytes(1400)).iut(SD, 2, data=bytes(1400), after=1.5)
    assert later(story, 3.0).verdicts("STP-DT-009") == verdict
