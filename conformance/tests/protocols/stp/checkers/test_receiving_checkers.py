"""The checkers of STP-DT, the IUT as a receiver, and of what both sides come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import FIN, POLL, SD, SDP, STAT, USTAT
from bentpipe_conformance.protocols.stp.numbers import MODULUS
from bentpipe_conformance.protocols.stp.story import FAIL, NOTHING, PASS, StpStory

ECHO, DISCARD = 7, 9


def given(*numbers: int, credit: int = 64) -> StpStory:
    """The SDs with these numbers arrive in this order; no USTAT leaves."""
    story = StpStory(credit=credit).opened()
    for number in numbers:
        story.tester(SD, number, data=b"%02d" % number, after=0.01)
    return story


def asked(
    story: StpStory, n_s: int, n_r: int, elements: Sequence[int] = (), *, n_ps: int = 1, **raw: Any
) -> StpStory:
    """A POLL and its STAT."""
    story.tester(POLL, n_s, n_ps=n_ps, after=0.3)
    return story.iut(STAT, n_r, elements=elements, n_ps=n_ps, after=0.001, **raw)


def later(story: StpStory, seconds: float = 5.0) -> StpStory:
    """The capture goes on."""
    return story.iut(POLL, 0, after=seconds)


# USTATs


def test_gap_reported_from_vr_h_on() -> None:
    story = given(0, 2).iut(USTAT, 1, elements=(1, 2)).tester(SD, 5, after=0.1)
    story.iut(USTAT, 1, elements=(3, 5))
    assert later(story).verdicts("STP-DT-001") == PASS


def test_gap_reported_from_vr_r_on() -> None:
    story = given(0, 2).iut(USTAT, 1, elements=(1, 2)).tester(SD, 5, after=0.1)
    assert Verdict.FAIL in later(story.iut(USTAT, 1, elements=(1, 5))).verdicts("STP-DT-001")


def test_gap_not_reported() -> None:
    assert later(given(0, 2)).verdicts("STP-DT-001") == FAIL
    assert later(given(0, 2), 0.5).verdicts("STP-DT-001") == NOTHING


@pytest.mark.parametrize(("after", "verdict"), [(0.005, PASS), (0.3, FAIL)])
def test_rest_of_a_gap_reported_after_it_has_been_delivered(
    after: float, verdict: set[Verdict]
) -> None:
    """The USTAT that was held back may have been composed just before."""
    story = given(0, 3, 1).tester(SD, 2, data=b"02", after=0.05)
    story.iut(USTAT, 2, elements=(2, 3), after=after)
    assert verdict <= story.verdicts("STP-DT-031")


def test_gap_reported_twice() -> None:
    story = given(0, 2).iut(USTAT, 1, elements=(1, 2)).tester(SD, 3, after=0.1)
    assert Verdict.FAIL in later(story.iut(USTAT, 1, elements=(1, 2))).verdicts("STP-DT-001")


# POLLs


def polled(bound: int) -> StpStory:
    """SDs 0 and 2, a POLL that tells of 3, and SD 4."""
    story = asked(given(0, 2).iut(USTAT, 1, elements=(1, 2)), 4, 1, (1, 2, 3, 4)[:bound])
    return story.tester(SD, 4, after=0.1)


def test_poll_raises_vr_h() -> None:
    assert later(polled(4)).verdicts("STP-DT-002") == PASS
    assert later(polled(2)).verdicts("STP-DT-002") == FAIL


def test_list_without_what_a_poll_adds_may_have_been_cut() -> None:
    """Either rule may be broken, unless a longer list shows that this one was not cut."""
    story = later(polled(3))
    assert story.verdicts("STP-DT-002") == story.verdicts("STP-PF-012") == FAIL
    story = asked(polled(3).tester(SD, 6), 7, 1, (1, 2, 3, 4, 5, 6, 7), n_ps=2)
    assert later(story).verdicts("STP-DT-002") >= FAIL
    assert story.verdicts("STP-PF-012") == NOTHING


def test_list_that_was_cut_below_what_a_poll_adds() -> None:
    story = polled(3)
    story.tester(SD, 6).tester(POLL, 9, n_ps=2, after=0.1)
    story.iut(STAT, 1, elements=(1, 2, 3), n_ps=2, after=0.001)
    assert later(story).verdicts("STP-PF-012") == FAIL
    assert len([it for it in story.findings("STP-DT-002") if it.verdict is Verdict.FAIL]) == 1


def test_gap_of_a_poll_reported_again() -> None:
    story = later(polled(4).iut(USTAT, 1, elements=(3, 4)))
    assert Verdict.FAIL in story.verdicts("STP-DT-002")
    assert Verdict.FAIL not in story.verdicts("STP-DT-001")


def test_gap_of_a_poll_reported_from_vr_r_on() -> None:
    story = later(polled(4).iut(USTAT, 1, elements=(1, 4)))
    assert Verdict.FAIL not in story.verdicts("STP-DT-002")
    assert Verdict.FAIL in story.verdicts("STP-DT-001")


@pytest.mark.parametrize(
    ("elements", "verdict"), [((), PASS), ((2, 8), FAIL), ((2, 20), FAIL)],
)  # fmt: skip
def test_poll_beyond_the_credit(elements: tuple[int, ...], verdict: set[Verdict]) -> None:
    assert asked(given(0, 1, credit=8), 20, 2, elements).verdicts("STP-DT-008") == verdict


def test_poll_that_a_credit_permits_which_was_not_announced() -> None:
    story = asked(given(0, 1, credit=8), 20, 2, (2, 20), n_mr=30)
    assert story.verdicts("STP-DT-008") == FAIL


@pytest.mark.parametrize("raw", [{"csn": 77}, {"n_ps": 0}])
@pytest.mark.parametrize(("answered", "verdict"), [(False, PASS), (True, FAIL)])
def test_poll_to_be_discarded(raw: dict[str, Any], answered: bool, verdict: set[Verdict]) -> None:
    story = given(0).tester(POLL, 1, after=0.1, **{"n_ps": 5, "timestamp": 99, **raw})
    if answered:
        story.iut(STAT, 1, n_ps=raw.get("n_ps", 5), timestamp=99, after=0.01)
    assert later(story).verdicts("STP-DT-008") == verdict


@pytest.mark.parametrize(("elements", "verdict"), [((), PASS), ((2, 4), FAIL)])
def test_poll_beyond_the_fin(elements: tuple[int, ...], verdict: set[Verdict]) -> None:
    story = given(0).tester(SD, 1, flags=FIN, after=0.1)
    assert asked(story, 4, 2, elements).verdicts("STP-DT-008") == verdict


@pytest.mark.parametrize(("delay", "verdict"), [(0.01, PASS), (0.5, FAIL)])
def test_poll_answered_in_time_or_late(delay: float, verdict: set[Verdict]) -> None:
    story = StpStory().opened().tester(POLL, 0).iut(STAT, 0, after=delay)
    assert later(story, 1.0).verdicts("STP-DT-017") == verdict


def test_poll_not_answered() -> None:
    assert later(StpStory().opened().tester(POLL, 0), 1.0).verdicts("STP-DT-017") == FAIL
    assert later(StpStory().opened().tester(SDP, 0), 1.0).verdicts("STP-DT-017") == FAIL
    wrong = StpStory().opened().tester(POLL, 0).iut(STAT, 0, timestamp=9, after=0.01)
    assert later(wrong, 1.0).verdicts("STP-DT-017") == FAIL


def test_poll_answered_within_the_timing_error_is_unclear() -> None:
    story = StpStory(timing_error=0.02).opened().tester(POLL, 0).iut(STAT, 0, after=0.105)
    assert later(story, 1.0).verdicts("STP-DT-017") == {Verdict.INCONCLUSIVE}


# What STATs say


@pytest.mark.parametrize(
    ("n_r", "elements", "truth", "bound"),
    [
        (1, (1, 2, 4, 5, 6), PASS, PASS),
        (1, (1, 2, 6), FAIL, PASS),
        (1, (1, 2, 4, 5), FAIL, FAIL),
        (1, (1, 2, 4, 5, 8), FAIL, FAIL),
        (2, (4, 5, 6), FAIL, PASS),
        (1, (), FAIL, set()),
    ],
)
def test_stat_and_the_truth(
    n_r: int, elements: tuple[int, ...], truth: set[Verdict], bound: set[Verdict]
) -> None:
    story = asked(given(0, 2, 3, 5), 6, n_r, elements)
    assert story.verdicts("STP-DT-018") == truth
    assert story.verdicts("STP-DT-006") == bound


def test_stat_made_before_the_latest_sd() -> None:
    story = given(0, 2).tester(POLL, 3, after=0.1).tester(SD, 1, after=0.001)
    assert story.iut(STAT, 1, elements=(1, 2, 3)).verdicts("STP-DT-018") == PASS


def test_list_in_two_parts() -> None:
    story = asked(given(0, 2, 4, 6), 7, 1, (1, 2, 3))
    story.iut(STAT, 1, elements=(3, 4, 5, 6, 7))
    assert story.verdicts("STP-DT-018") == PASS
    assert story.verdicts("STP-DT-006") == PASS
    assert asked(given(0, 2, 4, 6), 7, 1, (1, 2, 3)).verdicts("STP-DT-018") == NOTHING


def test_same_poll_twice_with_a_gap_mended_in_between() -> None:
    """The second STAT begins where the first one ends, and is no part of it."""
    story = asked(given(0, 2), 3, 1, (1, 2, 3)).tester(SD, 1).tester(SD, 4)
    story.tester(POLL, 5).iut(STAT, 3, elements=(3, 4, 5), after=0.001)
    assert story.verdicts("STP-DT-018") == PASS


@pytest.mark.parametrize(("n_r", "verdict"), [(2, PASS), (3, FAIL)])
def test_sd_above_the_fin(n_r: int, verdict: set[Verdict]) -> None:
    story = given(0).tester(SD, 1, flags=FIN).tester(SD, 2)
    assert asked(story, 2, n_r).verdicts("STP-DT-028") == verdict


@pytest.mark.parametrize(("elements", "verdict"), [((1, 2, 3), PASS), ((), FAIL)])
def test_fin_below_what_is_held(elements: tuple[int, ...], verdict: set[Verdict]) -> None:
    story = given(0, 2).tester(SD, 1, flags=FIN, after=0.1)
    assert asked(story, 3, 1 if elements else 3, elements).verdicts("STP-DT-028") == verdict


def test_sd_larger_than_max_sd_that_raises_vr_h_before_a_poll_does() -> None:
    story = given(0).tester(SD, 1, data=bytes(1401), after=0.1)
    story = asked(story, 1, 1, (1, 2)).tester(POLL, 3, n_ps=2, after=0.1)
    assert story.iut(STAT, 1, n_ps=2, elements=(1, 3)).verdicts("STP-DT-028") == FAIL


@pytest.mark.parametrize(("size", "n_r", "verdict"), [(1401, 1, PASS), (1401, 2, FAIL)])
def test_sd_larger_than_max_sd(size: int, n_r: int, verdict: set[Verdict]) -> None:
    story = given(0).tester(SD, 1, data=bytes(size), after=0.1)
    assert asked(story, 1, n_r).verdicts("STP-DT-028") == verdict


# SDs that have to be discarded


def test_duplicate_leaves_no_trace() -> None:
    story = asked(given(0, 2), 3, 1, (1, 2, 3)).tester(SD, 2, after=0.1)
    assert asked(story, 3, 1, (1, 2, 3), n_ps=2).verdicts("STP-DT-019") == PASS


def test_duplicate_evokes_a_ustat_or_changes_a_stat() -> None:
    story = asked(given(0, 2).iut(USTAT, 1, elements=(1, 2)), 3, 1, (1, 2, 3))
    story.tester(SD, 2, after=0.1).iut(USTAT, 1, elements=(1, 2), after=0.001)
    assert Verdict.FAIL in asked(story, 3, 1, (1, 2, 3), n_ps=2).verdicts("STP-DT-019")
    story = asked(given(0, 2), 3, 1, (1, 2, 3)).tester(SD, 2, after=0.1)
    assert asked(story, 3, 1, (1, 2, 4), n_ps=2).verdicts("STP-DT-019") == FAIL


def test_late_ustat_of_the_gap_that_the_first_copy_showed_is_no_answer_to_the_second() -> None:
    story = given(0, 2).tester(SD, 2, after=0.05).iut(USTAT, 1, elements=(1, 2), after=0.01)
    assert asked(story, 3, 1, (1, 2, 3)).verdicts("STP-DT-019") == PASS


def test_late_ustat_of_the_rest_of_a_gap_is_no_answer_to_a_copy_of_what_has_filled_it() -> None:
    story = given(0, 4, 3, 3).iut(USTAT, 1, elements=(1, 3), after=0.05)
    assert asked(story, 5, 1, (1, 3, 5)).verdicts("STP-DT-019") == PASS
    story.tester(SD, 3, after=0.1).iut(USTAT, 1, elements=(1, 3), after=0.001)
    assert Verdict.FAIL in asked(story, 5, 1, (1, 3, 5), n_ps=2).verdicts("STP-DT-019")


def test_sd_beyond_the_credit_discarded_or_taken() -> None:
    story = given(0, 1, credit=8).tester(SD, 8, after=0.1)
    assert asked(story, 2, 2).verdicts("STP-DT-020") == PASS
    story = given(0, 1, credit=8).tester(SD, 8, after=0.1)
    assert asked(story, 2, 2, (2, 8, 9)).verdicts("STP-DT-020") == FAIL
    story = given(0, 1, credit=8).tester(SD, 8, after=0.1).iut(USTAT, 2, elements=(2, 8))
    assert Verdict.FAIL in asked(story, 2, 2).verdicts("STP-DT-020")


def test_sd_beyond_the_announced_credit_taken_because_there_was_room() -> None:
    story = given(0, 1, credit=8).tester(SD, 8, after=0.1)
    assert asked(story, 2, 2, (2, 8, 9), n_mr=12).verdicts("STP-DT-020") == FAIL


def test_sd_while_more_credit_is_on_its_way_out_says_nothing() -> None:
    story = asked(given(0, 1, credit=8), 2, 2).tester(SD, 8, after=0.1)
    story.iut(STAT, 2, n_ps=1, n_mr=12, after=0.01)
    assert Verdict.FAIL not in asked(story, 2, 2, (2, 8, 9), n_ps=2, n_mr=12).verdicts("STP-DT-020")


# Never backwards


def test_credit_kept_or_taken_back() -> None:
    story = asked(given(0), 1, 1)
    assert story.verdicts("STP-DT-021") == PASS
    assert Verdict.FAIL in asked(story, 1, 1, n_mr=60, n_ps=2).verdicts("STP-DT-021")


def test_held_sd_dropped_or_kept() -> None:
    story = asked(given(0, 2), 3, 1, (1, 2, 3)).tester(SD, 1)
    assert asked(story, 3, 3, n_ps=2).verdicts("STP-DT-022") == PASS
    story = asked(given(0, 2), 3, 1, (1, 2, 3))
    assert asked(story, 3, 1, (1, 3), n_ps=2).verdicts("STP-DT-022") == FAIL


def test_old_poll_moves_vr_h_back() -> None:
    story = asked(given(0, 1, 3), 4, 2, (2, 3, 4))
    assert asked(story, 1, 2, (2, 3, 4), n_ps=2).verdicts("STP-DT-007") == PASS
    story = asked(given(0, 1, 3), 4, 2, (2, 3, 4))
    assert asked(story, 1, 2, (2, 3), n_ps=2).verdicts("STP-DT-007") == FAIL
    story = asked(given(0, 1, 3), 4, 2, (2, 3, 4))
    assert asked(story, 1, 1, (2, 3, 4), n_ps=2).verdicts("STP-DT-007") == FAIL


# Numbers


def test_sd_after_the_wrap_taken_or_not() -> None:
    """The tester's ISS is 2^24 - 3."""
    story = asked(given(0, 1, 2, 3), 4, 4)
    assert story.verdicts("STP-DT-005") == PASS
    assert asked(given(0, 1, 2, 3), 4, 3).verdicts("STP-DT-005") == FAIL
    # It may be slow, and is not wrong about the wrap.
    assert asked(given(0, 1, 2, 3), 4, 2).verdicts("STP-DT-005") == NOTHING


def test_credit_of_more_than_half_the_numbers() -> None:
    story = asked(given(0), 1, 1, n_mr=MODULUS // 2 + 2)
    assert Verdict.FAIL in story.verdicts("STP-DT-005")


# The stream


def echoed(*returned: bytes, fin: bool = True) -> StpStory:
    """The tester sends 00 01 02 and a FIN, the third SD before the second; this comes back."""
    story = given(0, 2).tester(SD, 1, data=b"01", after=0.01)
    story.tester(SD, 3, flags=FIN, after=0.01)
    for number, data in enumerate(returned):
        last = fin and number + 1 == len(returned)
        story.iut(SD, number, data=data, flags=FIN if last else 0, after=0.01)
    return story.of_service(ECHO)


def test_echo_in_order_once() -> None:
    assert echoed(b"000102").verdicts("STP-DT-012") == PASS
    assert echoed(b"00", b"01", b"02").verdicts("STP-DT-012") == PASS
    assert echoed(b"0001", fin=False).verdicts("STP-DT-012") == PASS


@pytest.mark.parametrize("returned", [b"000201", b"00010102", b"0001", b"00010203", b"01"])
def test_echo_of_something_else(returned: bytes) -> None:
    assert echoed(returned).verdicts("STP-DT-012") == FAIL


def test_stream_of_another_service_says_nothing() -> None:
    assert echoed(b"xxx").of_service(DISCARD).verdicts("STP-DT-012") == NOTHING


# The window of the IUT


def full() -> StpStory:
    """A credit of 24 is used up above a gap, and a STAT says so."""
    story = StpStory(credit=24).opened()
    for number in range(1, 24):
        story.tester(SD, number, after=0.001)
    return asked(story, 24, 0, (0, 1, 24), n_ps=3)


def announced(after: float = 0.01, **raw: Any) -> StpStory:
    """SD 0 arrives, and a STAT announces credit."""
    story = full().tester(SD, 0, after=0.6)
    return story.iut(STAT, 24, **{"n_ps": 0, "timestamp": 0, "n_mr": 48, "after": after, **raw})


def test_reopened_window_announced() -> None:
    assert announced().verdicts("STP-DT-024") == PASS
    assert announced(0.4).verdicts("STP-DT-024") == {Verdict.INCONCLUSIVE}


@pytest.mark.parametrize(
    "raw", [{"timestamp": 7}, {"elements": (24, 30)}, {"n_mr": 24}, {"n_ps": 3, "timestamp": 7}],
    ids=["timestamp", "list", "no credit", "N(PS)"],
)  # fmt: skip
def test_reopened_window_announced_otherwise(raw: dict[str, Any]) -> None:
    assert announced(**raw).verdicts("STP-DT-024") == FAIL


def used_up(n_mr: int, after: float) -> StpStory:
    """All four SDs of a credit arrive, and two STATs, some seconds apart, tell of a new one."""
    story = asked(given(0, 1, credit=4), 2, 2, n_mr=4)
    for number in (2, 3):
        story.tester(SD, number, data=b"%02d" % number, after=0.01)
    asked(story, 4, 4, n_ps=2, n_mr=4)
    return story.tester(POLL, 4, n_ps=3, after=after).iut(STAT, 4, n_ps=3, n_mr=n_mr, after=0.01)


def test_window_with_nothing_in_it_stays_closed() -> None:
    assert used_up(4, 6.0).verdicts("STP-DT-024") == FAIL


def test_window_with_nothing_in_it_is_asked_about_soon_says_nothing() -> None:
    assert used_up(4, 0.5).verdicts("STP-DT-024") == NOTHING


def test_credit_announced_though_there_was_some() -> None:
    story = asked(given(0), 1, 1).iut(STAT, 1, n_ps=0, timestamp=0, n_mr=70, after=0.5)
    assert story.verdicts("STP-DT-024") == FAIL


def test_reopened_window_announced_for_another_poll() -> None:
    story = full().tester(SD, 0, after=0.6).iut(STAT, 24, n_ps=2, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == FAIL


def test_reopened_window_not_announced() -> None:
    story = full().tester(SD, 0, after=0.6)
    story.tester(POLL, 24, n_ps=4, after=2.0).iut(STAT, 24, n_ps=4, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == FAIL


def test_poll_right_behind_the_sd_that_reopens_the_window_says_nothing() -> None:
    story = full().tester(SD, 0, after=0.6)
    story.tester(POLL, 24, n_ps=4, after=0.01).iut(STAT, 24, n_ps=4, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == NOTHING


def shown(credit: int = 5) -> StpStory:
    """Of a full window SD 5 is missing, too; a STAT shows what SD 0 has opened."""
    story = StpStory(credit=24).opened()
    for number in (1, 2, 3, 4, *range(6, 24)):
        story.tester(SD, number, after=0.001)
    asked(story, 24, 0, (0, 1, 5, 6, 24), n_ps=3).tester(SD, 0, after=0.6)
    return asked(story, 24, 5, (5, 6, 24), n_ps=4, n_mr=24 + credit)


@pytest.mark.parametrize("used", [0, 3, 5])
def test_credit_announced_though_a_stat_has_shown_some(used: int) -> None:
    """What has come of it since the STAT makes no difference."""
    story = shown()
    for number in range(24, 24 + used):
        story.tester(SD, number, after=0.01)
    story.tester(SD, 5, after=0.6)
    story.iut(STAT, 24 + used, n_ps=0, timestamp=0, n_mr=48 + used, after=0.01)
    assert Verdict.FAIL in story.verdicts("STP-DT-024")


def test_credit_announced_since_a_stat_has_shown_none_again() -> None:
    story = shown(0).tester(SD, 5, after=0.6)
    story.iut(STAT, 24, n_ps=0, timestamp=0, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == PASS


@pytest.mark.parametrize("credit", [0, 5])
def test_credit_announced_since_a_stat_may_have_shown_none(credit: int) -> None:
    """All that it permits came before it, and may have been read before it left."""
    story = shown(credit).tester(POLL, 24, n_ps=5, after=0.6)
    for number in range(24, 29):
        story.tester(SD, number, after=0.001)
    story.iut(STAT, 5, elements=(5, 6, 24), n_ps=5, n_mr=29, after=0.01)
    story.tester(SD, 5, after=0.6).iut(STAT, 29, n_ps=0, timestamp=0, n_mr=53, after=0.01)
    assert story.verdicts("STP-DT-024") == PASS


@pytest.mark.parametrize(("after", "verdict"), [(2.0, PASS), (0.01, NOTHING)])
def test_credit_not_announced_since_a_stat_has_shown_some(
    after: float, verdict: set[Verdict]
) -> None:
    story = shown().tester(SD, 5, after=0.6)
    story.tester(POLL, 24, n_ps=5, after=after).iut(STAT, 24, n_ps=5, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == verdict


def closed_by_a_ustat(fin: bool = False) -> StpStory:
    """The last SD of a credit of 24 comes first, and then the others."""
    story = StpStory(credit=24).opened()
    story.tester(SD, 23, flags=FIN if fin else 0).iut(USTAT, 0, elements=(0, 23), n_mr=24)
    for number in range(23):
        story.tester(SD, number, after=0.2 if number == 0 else 0.001)
    return story


@pytest.mark.parametrize(("fin", "verdict"), [(False, PASS), (True, FAIL)])
def test_window_closed_by_a_ustat_announced(fin: bool, verdict: set[Verdict]) -> None:
    """Nothing follows a FIN that has been received, though in sequence it was not."""
    story = closed_by_a_ustat(fin)
    story.iut(STAT, 24, n_ps=0, timestamp=0, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == verdict


@pytest.mark.parametrize(("fin", "verdict"), [(False, FAIL), (True, PASS)])
def test_window_closed_by_a_ustat_not_announced(fin: bool, verdict: set[Verdict]) -> None:
    story = closed_by_a_ustat(fin)
    story.tester(POLL, 24, n_ps=4, after=2.0).iut(STAT, 24, n_ps=4, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == verdict


def test_announcement_that_crosses_the_fin() -> None:
    """What leaves within a tenth of a second may have been decided before."""
    story = full().tester(SD, 0, after=0.6).tester(SD, 24, flags=FIN, after=0.01)
    story.iut(STAT, 24, n_ps=0, timestamp=0, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == PASS


@pytest.mark.parametrize("number", [-1, 0])
def test_window_announced_though_what_had_come_before_had_come_again_with_a_fin(
    number: int,
) -> None:
    """An SD that was received before, or lies below the first, is discarded with its FIN."""
    story = StpStory(credit=24).opened().tester(SD, 0, after=0.1)
    story.tester(SD, number, flags=FIN, after=0.1)
    for above in range(2, 24):
        story.tester(SD, above, after=0.001)
    story = asked(story, 24, 1, (1, 2, 24), n_ps=3).tester(SD, 1, after=0.6)
    story.iut(STAT, 24, n_ps=0, timestamp=0, n_mr=48, after=0.01)
    assert story.verdicts("STP-DT-024") == PASS


def test_window_that_opens_little_says_nothing() -> None:
    story = full().tester(SD, 0, after=0.6)
    story.tester(POLL, 24, n_ps=4, after=2.0).iut(STAT, 24, n_ps=4, n_mr=30, after=0.01)
    assert story.verdicts("STP-DT-024") == NOTHING
