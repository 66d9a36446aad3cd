"""The checkers of limited transmit on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import (
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    RTT,
    SIZE,
    Story,
    duplicates,
    window_limited_flight,
)


def test_first_two_duplicates_send_something_or_nothing() -> None:
    each = window_limited_flight().ack(2, after=0.01).send(16).ack(2, after=0.01).send(17)
    together = window_limited_flight().ack(2, after=0.01).ack(2, after=0.01).send(16, 17)
    nothing = duplicates(window_limited_flight(), 2).send(2).ack(16, after=RTT).send(16)
    assert each.verdicts("SNR-LT-001") == together.verdicts("SNR-LT-001") == PASS
    assert nothing.verdicts("SNR-LT-001") == FAIL


def test_second_duplicate_reports_enough_for_a_recovery() -> None:
    story = window_limited_flight(sack=True).ack(2, (3, 4), after=0.01)
    story.ack(2, (5, 7), (3, 4), after=0.01)
    assert story.send(16).verdicts("SNR-LT-001") == PASS
    story = window_limited_flight(sack=True).ack(2, (3, 4), after=0.01)
    story.ack(2, (5, 7), (3, 4), after=0.01).send(2)
    assert story.ack(16, after=RTT).send(16).verdicts("SNR-LT-001") == NOTHING


@pytest.mark.parametrize(("known", "expected"), [(True, NOTHING), (False, FAIL)])
def test_first_two_duplicates_that_report_what_is_known(
    known: bool, expected: set[Verdict]
) -> None:
    """A receiver reports what it does not hold, and that again later (seed 15240018)."""
    story = Story().send(*range(16)).ack(1, after=RTT).send(16, 17)
    story.ack(2, *([(5, 9)] if known else []), after=0.1).send(18, 19)
    story.ack(3, after=0.1).send(20, 21)
    story.ack(3, (5, 7), after=0.01).ack(3, (5, 8), after=0.01).ack(3, (5, 10), after=0.01).send(3)
    assert story.ack(22, after=RTT).send(22).verdicts("SNR-LT-001") == expected


def test_first_two_duplicates_while_less_than_a_segment_waits() -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(16, after=RTT)
    assert story.send_octets(16 * SIZE, SIZE // 2).verdicts("SNR-LT-001") == NOTHING


@pytest.mark.parametrize(("given", "expected"), [(16.5, NOTHING), (17, FAIL)])
def test_first_two_duplicates_while_an_echo_has_less_than_a_segment(
    given: float, expected: set[Verdict]
) -> None:
    """More comes later, and then a full segment leaves."""
    story = Story(sack=False, service=7)
    story.ack(0, data=bytes(int(given * SIZE))).send(*range(12), after=0.001)
    story.ack(1, after=RTT).send(12, 13).ack(2, after=0.01).send(14, 15)
    duplicates(story, 2).ack(2, data=bytes(2 * SIZE), after=0.1).ack(16, after=RTT)
    assert story.send(16).verdicts("SNR-LT-001") == expected


def test_first_two_duplicates_of_a_sender_whose_buffer_may_be_full() -> None:
    story = Story(sack=False).send(*range(12)).ack(1, after=RTT).send(12).ack(2, after=0.01)
    duplicates(story.send(13), 2).ack(14, after=RTT).send(14, 15)
    assert story.verdicts("SNR-LT-001") == NOTHING
    story.send(*range(16, 27)).ack(27, after=RTT)
    assert story.verdicts("SNR-LT-001") == FAIL


@pytest.mark.parametrize(("push", "expected"), [(True, NOTHING), (False, FAIL)])
def test_first_two_duplicates_of_a_sender_that_had_run_out(
    push: bool, expected: set[Verdict]
) -> None:
    """Of nine acknowledged three are replaced, and no more waited (encounter 811806)."""
    story = Story(sack=False).send(*range(20)).ack(1, after=RTT).send(20).ack(10, after=0.01)
    story = duplicates(story.send(21, 22, 23, push=push), 10).send(10).ack(24, after=RTT)
    assert story.send(24).verdicts("SNR-LT-001") == expected


def test_first_two_duplicates_send_too_much() -> None:
    within = window_limited_flight().ack(2, after=0.01).send(16).ack(2, after=0.01).send(17)
    beyond = window_limited_flight().ack(2, after=0.01).send(16, 17).ack(2, after=0.01).send(18, 19)
    assert within.verdicts("SNR-LT-002") == PASS
    assert within.verdicts("SNR-LT-002", "hk99") == FAIL
    assert Verdict.FAIL in beyond.verdicts("SNR-LT-002")


@pytest.mark.parametrize(("push", "expected"), [(True, PASS), (False, FAIL)])
def test_first_two_duplicates_of_a_sender_that_hands_over_three_at_once(
    push: bool, expected: set[Verdict]
) -> None:
    """The acknowledgment before has let two threes out, so that two more may have waited."""
    story = Story(sack=False).send(*range(10)).ack(1, after=RTT).send(10).ack(2, after=0.01)
    story.send(11).ack(8, after=0.01).send(12, 13, 14, push=push).send(15, 16, 17, push=push)
    story.ack(8, after=0.01).send(18, 19, 20).ack(8, after=0.01).send(21)
    assert story.verdicts("SNR-LT-002") == expected


def test_first_duplicates_of_a_sender_with_slack_prove_nothing() -> None:
    story = Story(sack=False).send(*range(8)).ack(1, after=RTT).ack(2, after=0.01)
    assert story.ack(2, after=0.01).send(*range(8, 16)).verdicts("SNR-LT-002") == NOTHING


def test_full_window_and_the_firstduplicates() -> None:
    def full() -> Story:
        return Story(sack=False, window=10 * SIZE).send(*range(10)).ack(0, after=RTT)

    assert full().verdicts("SNR-LT-003") == PASS
    assert full().send(10).verdicts("SNR-LT-003") == FAIL


def test_first_duplicates_that_report_nothing() -> None:
    story = window_limited_flight(sack=True).ack(2, after=0.01)
    assert story.verdicts("SNR-LT-004") == PASS
    assert story.send(16).verdicts("SNR-LT-004") == FAIL


def pushed_flight() -> Story:
    """A sender that sets PSH on every second segment, whatever waits behind it."""
    story = Story().send(0, 1, push=True).send(2, 3, push=True).ack(1, after=RTT)
    return story.send(4, 5, push=True).ack(2).send(6, 7, push=True)


def test_first_duplicate_after_a_pause_of_a_user_that_always_sends() -> None:
    assert pushed_flight().ack(2, after=0.01).verdicts("SNR-LT-004") == NOTHING
    late = pushed_flight().ack(2, after=0.15)
    assert late.verdicts("SNR-LT-004") == PASS
    assert late.send(8).verdicts("SNR-LT-004") == FAIL


@pytest.mark.parametrize(("control", "expected"), [("hybla", NOTHING), ("reno", FAIL)])
def test_first_duplicate_completes_a_burst_of_a_fast_slow_start(
    control: str, expected: set[Verdict]
) -> None:
    """Twice what was acknowledged has left, which is all for slow start as RFC 5681 has it."""
    story = Story().send(*range(8)).ack(2, after=RTT).send(*range(8, 12), push=True)
    story.ack(4, after=0.1).send(*range(12, 16), push=True).ack(4, after=0.2).send(16)
    claims = {**CLAIMS, "congestion_control": control}
    assert story.verdicts("SNR-LT-004", claims=claims) == expected


@pytest.mark.parametrize(("again", "expected"), [((12,), NOTHING), ((12, 13), FAIL)])
def test_first_duplicate_after_less_has_left_than_was_acknowledged(
    again: tuple[int, ...], expected: set[Verdict]
) -> None:
    """The window had room for it, and the sender put it off (encounter 3102492)."""
    story = Story().send(*range(8)).ack(2, after=RTT).send(8, 9).ack(3, after=0.1).send(10)
    story.ack(5, after=0.1).send(11).ack(5, after=0.001).send(*again)
    assert story.verdicts("SNR-LT-004") == expected


@pytest.mark.parametrize(("push", "expected"), [(False, FAIL), (True, NOTHING)])
def test_first_duplicate_while_a_user_writes_little(push: bool, expected: set[Verdict]) -> None:
    story = Story(service=4321).send(*range(6), push=push).ack(1, after=RTT).send(6, push=push)
    story.ack(2, after=0.01).send(7, push=push).ack(2, after=0.01).send(8, push=push)
    assert story.verdicts("SNR-LT-004") == expected


@pytest.mark.parametrize(("push", "expected"), [(True, NOTHING), (False, FAIL)])
def test_first_two_duplicates_behind_a_buffer_that_grows_with_the_window(
    push: bool, expected: set[Verdict]
) -> None:
    story = Story(sack=False).send(*range(12)).ack(1, after=RTT).send(12, 13, push=push)
    story.ack(2, after=0.01).send(14, 15, push=push)
    duplicates(story, 2, 2).send(2).ack(16, after=RTT).send(16)
    assert story.verdicts("SNR-LT-001") == expected
