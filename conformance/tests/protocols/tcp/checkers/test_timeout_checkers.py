"""The checkers of the retransmission timer on traces written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.story import CLAIMS, RTT, Story

PASS, FAIL = {Verdict.PASS}, {Verdict.FAIL}


def _flight(segments: int = 8, *, sack: bool = False) -> Story:
    """A flight with its first segment acknowledged after a round trip."""
    return Story(sack=sack).send(*range(segments)).ack(1, after=RTT).send(segments)


# -- when the timer expires


def test_round_trip_of_a_caller_ends_with_the_syn_ack() -> None:
    called = Story(calls=True).send(0).ack(0, after=0.8).send(0, after=0.2)
    assert called.verdicts("SNR-RTO-001") == PASS
    called = Story(calls=True).send(0).ack(0, after=0.2).send(0, after=0.2)
    assert called.verdicts("SNR-RTO-001") == FAIL


def test_retransmission_before_and_after_a_round_trip() -> None:
    assert Story(sack=False).send(0).send(0, after=0.4).verdicts("SNR-RTO-001") == FAIL
    assert Story(sack=False).send(0).send(0, after=0.9).verdicts("SNR-RTO-001") == PASS


@pytest.mark.parametrize(("partial", "expected"), [((2,), FAIL), ((2, 4), set())])
def test_timeout_soon_after_a_partial_acknowledgment_but_the_first(
    partial: tuple[int, ...], expected: set[Verdict]
) -> None:
    story = Story(sack=False).send(*range(10)).ack(0, after=RTT)
    for _ in range(3):
        story.ack(0, after=0.01)
    story.send(0)
    for number in partial:
        story.ack(number, after=RTT).send(number)
    story.send(partial[-1], after=0.3)
    assert story.verdicts("SNR-RTO-001") == story.verdicts("SNR-RTO-002") == expected


def test_tail_probe_soon_after_the_tail_was_sent() -> None:
    story = Story().send(0, 1).send(2, after=0.5).send(2, after=0.3)
    assert story.verdicts("SNR-RTO-001") == set()
    without = Story(sack=False).send(0, 1).send(2, after=0.5).send(2, after=0.3)
    assert without.verdicts("SNR-RTO-001") == FAIL


def test_timed_retransmission_of_what_sack_reports_missing() -> None:
    story = Story().send(0, 1, 2, 3).ack(0, (1, 4), after=RTT).send(0, after=0.15)
    assert story.verdicts("SNR-RTO-001") == set()
    assert story.verdicts("SNR-RTO-002") == set()


def test_first_timeout_below_a_second() -> None:
    assert _flight().send(1, after=0.9).verdicts("SNR-RTO-002") == FAIL
    assert _flight().send(1, after=1.1).verdicts("SNR-RTO-002") == PASS


def test_interval_of_two_timeouts_shows_a_short_one() -> None:
    story = _flight(sack=True).send(9, after=0.8).send(1, after=0.8).send(1, after=1.6)
    assert story.verdicts("SNR-RTO-002") == {Verdict.PASS, Verdict.FAIL}


@pytest.mark.parametrize(("first", "expected"), [(0.5, FAIL), (1.0, PASS), (3.0, PASS)])
def test_syn_ack_repeated_for_the_first_time(first: float, expected: set[Verdict]) -> None:
    story = Story(syn_acks=(0.001, 0.001 + first))
    assert story.verdicts("SNR-RTO-003") == expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((0.0, 1.0, 3.0, 7.0), PASS),
        ((0.0, 1.06, 3.14, 7.22), PASS),
        ((0.0, 1.0, 2.0), FAIL),
        ((0.0, 1.0, 6.0), FAIL),
        ((0.0, 1.0), set()),
    ],
)
def test_syn_ack_repeated(times: tuple[float, ...], expected: set[Verdict]) -> None:
    assert Story(syn_acks=times).verdicts("SNR-RTO-004") == expected


@pytest.mark.parametrize(("waited", "expected"), [(1.0, FAIL), (3.0, PASS), (6.0, PASS)])
def test_first_data_lost_after_a_repeated_syn_ack(waited: float, expected: set[Verdict]) -> None:
    story = Story(sack=False, syn_acks=(0.0, 1.0, 3.0)).send(0, 1).send(0, after=waited)
    assert story.verdicts("SNR-RTO-005") == expected
    assert Story(sack=False).send(0, 1).send(0, after=waited).verdicts("SNR-RTO-005") == set()


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ((1.0, 2.0, 4.0), PASS),
        ((1.0, 2.0, 2.0), FAIL),
        ((1.0, 2.0, 3.0), FAIL),
        ((1.0, 2.0, 12.0), FAIL),
        ((1.0, 40.0, 60.0), PASS),
        ((1.0, 40.0, 50.0), FAIL),
        ((1.0, 2.0), set()),
    ],
)
def test_timeouts_in_a_row(intervals: tuple[float, ...], expected: set[Verdict]) -> None:
    story = _flight()
    for interval in intervals:
        story.send(1, after=interval)
    assert story.verdicts("SNR-RTO-006") == expected


def test_tail_probe_is_no_part_of_the_back_off() -> None:
    story = Story().send(0).send(0, after=1.2).send(0, after=1.8)
    assert story.send(0, after=3.6).verdicts("SNR-RTO-006") == set()
    assert story.send(0, after=7.2).verdicts("SNR-RTO-006") == PASS


def test_acknowledgment_restarts_the_timer_or_not() -> None:
    story = Story(sack=False).send(0, 1, 2).ack(1, after=0.9)
    assert story.send(1, after=0.2).verdicts("SNR-RTO-010") == FAIL
    story = Story(sack=False).send(0, 1, 2).ack(1, after=0.9)
    assert story.send(1, after=1.1).verdicts("SNR-RTO-010") == PASS


def test_paced_retransmission_is_no_proof_of_a_timer() -> None:
    story = Story(sack=False).send(0, 1, 2).ack(1, after=0.9).send(1, after=0.2)
    assert story.verdicts("SNR-RTO-010", claims={**CLAIMS, "pacing": True}) == set()


def test_silence_with_data_outstanding() -> None:
    assert Story().send(0).ack(0, after=30).verdicts("SNR-RTO-011") == FAIL
    assert Story().send(0).ack(0, after=10).verdicts("SNR-RTO-011") == set()
    assert Story().send(0).send(0, after=2).ack(1, after=RTT).verdicts("SNR-RTO-011") == PASS


@pytest.mark.parametrize(("echoed", "expected"), [(7003, FAIL), (7001, PASS)])
def test_silence_after_an_echo_measured_the_first_transmission(
    echoed: int, expected: set[Verdict]
) -> None:
    data = bytes(100)
    story = Receipt(timestamps=True).reply(0, payload=data, tsval=7001)
    story.reply(0, payload=data, tsval=7002, after=2).reply(0, payload=data, tsval=7003, after=4)
    story.data(0, 0, ack=100, tsecr=echoed, after=0.1).reply(0, seq=100, payload=data, tsval=8000)
    assert story.data(0, 0, ack=100, after=30).verdicts("SNR-RTO-011") >= expected
    assert (Verdict.FAIL in story.verdicts("SNR-RTO-011")) == (expected == FAIL)


def test_silence_with_a_closed_window() -> None:
    story = Story().send(0).ack(0, after=RTT, window=0).ack(0, after=30)
    assert story.verdicts("SNR-RTO-011") == set()


@pytest.mark.parametrize(("waited", "expected"), [(1.5, FAIL), (6.0, FAIL), (7.2, PASS)])
def test_timeout_after_an_ambiguous_acknowledgment(waited: float, expected: set[Verdict]) -> None:
    story = _flight().send(1, after=1.8).send(1, after=3.6).ack(2, after=RTT).send(2, 3)
    assert story.send(2, after=waited).verdicts("SNR-RTO-013") == expected


def test_acknowledgment_of_new_data_ends_the_back_off() -> None:
    story = _flight().send(1, after=1.8).send(1, after=3.6).ack(9, after=RTT).send(9, 10)
    assert story.send(9, after=1.5).verdicts("SNR-RTO-013") == set()


def test_reset_before_and_after_a_hundred_seconds() -> None:
    story = _flight().send(1, after=2).send(1, after=4)
    assert story.reset(after=8).verdicts("SNR-RTO-014") == FAIL
    story = _flight().send(1, after=40).send(1, after=80)
    assert story.reset(after=60).verdicts("SNR-RTO-014") == PASS


@pytest.mark.parametrize("whose", [{"service": 4321}, {"calls": True}])
def test_reset_of_a_user_is_no_giving_up(whose: dict[str, Any]) -> None:
    story = Story(**whose).send(0, 1).ack(1, after=RTT).send(1, after=2).send(1, after=4)
    assert story.reset(after=8).verdicts("SNR-RTO-014") == set()


def test_reset_by_the_tester_is_no_giving_up() -> None:
    story = _flight().send(1, after=2).reset(after=1, outgoing=False).reset(after=RTT)
    assert story.verdicts("SNR-RTO-014") == set()


# -- what a timeout sends


def test_timeout_sends_one_segment_or_two() -> None:
    assert _flight().send(1, after=2).ack(2, after=RTT).verdicts("SNR-RTO-007") == PASS
    assert _flight().send(1, 2, after=2).verdicts("SNR-RTO-007") == FAIL


@pytest.mark.parametrize(("service", "expected"), [(19, FAIL), (4321, PASS)])
def test_user_writes_little_when_the_timer_expires(service: int, expected: set[Verdict]) -> None:
    story = Story(service=service).send_octets(0, 9, push=True).ack(0.009, after=RTT)
    story.send_octets(9, 9, push=True).send_octets(18, 9, push=True)
    story.send_octets(9, 9, after=1.8).send_octets(9, 9, after=3.6)
    story.send_octets(27, 9, push=True)
    assert story.ack(0.036, after=RTT).verdicts("SNR-RTO-007") == expected


def test_second_timeout_repeats_the_same_segment() -> None:
    story = _flight().send(1, after=2).send(1, after=4).ack(2, after=RTT)
    assert story.verdicts("SNR-RTO-007") == PASS


def test_timer_repeats_another_than_the_earliest() -> None:
    assert _flight().send(1, after=2).verdicts("SNR-RTO-008") == PASS
    assert _flight().send(3, after=2).verdicts("SNR-RTO-008") == FAIL
    assert _flight().send(8, after=2).verdicts("SNR-RTO-008") == FAIL
    assert _flight(sack=True).send(8, after=2).verdicts("SNR-RTO-008") == set()


def test_window_after_a_timeout_and_an_acknowledgment_in_what_is_dropped() -> None:
    story = _flight().send(1, after=2).ack(9, seq=99_000_000, data=b"x", after=RTT).send(9, 10, 11)
    assert Verdict.FAIL not in story.verdicts("SNR-RTO-009")


def test_window_after_a_timeout() -> None:
    story = _flight().send(1, after=2).ack(2, after=RTT).send(2, 3)
    assert story.verdicts("SNR-RTO-009") == PASS
    story = _flight().send(1, after=2).ack(2, after=RTT).send(2, 3, 4, 5)
    assert story.verdicts("SNR-RTO-009") == FAIL


def test_window_after_a_spurious_timeout() -> None:
    story = _flight().send(1, after=2).ack(4, after=0.05).send(9, 10, 11, 12, 13, 14)
    assert story.verdicts("SNR-RTO-009") == set()


def test_stretch_acknowledgment_after_a_timeout_in_both_profiles() -> None:
    story = _flight(12).send(1, after=2).ack(2, after=RTT).send(2, 3).ack(4, after=RTT)
    story.send(4, 5, 6, 7)
    assert story.verdicts("SNR-RTO-009") == PASS
    assert story.send(8).verdicts("SNR-RTO-009", "hk99") == FAIL


def test_acknowledgment_after_a_timeout_answered_or_not() -> None:
    story = _flight().send(1, after=2).ack(2, after=RTT)
    assert story.send(2, 3).verdicts("SNR-RTO-012") == PASS
    story = _flight().send(1, after=2).ack(2, after=RTT)
    assert story.send(2, after=4).verdicts("SNR-RTO-012") == FAIL
