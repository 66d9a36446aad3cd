"""The checkers of when the retransmission timer expires on traces written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.story import (
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    RTT,
    SIZE,
    Story,
    duplicates,
    flight,
)


def test_round_trip_of_a_caller_ends_with_the_syn_ack() -> None:
    called = Story(calls=True).send(0).ack(0, after=0.8, window=50000).send(0, after=0.2)
    assert called.verdicts("SNR-RTO-001") == PASS
    called = Story(calls=True).send(0).ack(0, after=0.2, window=50000).send(0, after=0.2)
    assert called.verdicts("SNR-RTO-001") == FAIL


def test_retransmission_before_and_after_a_round_trip() -> None:
    assert Story(sack=False).send(0).send(0, after=0.4).verdicts("SNR-RTO-001") == FAIL
    assert Story(sack=False).send(0).send(0, after=0.9).verdicts("SNR-RTO-001") == PASS


def test_what_leaves_again_while_the_timer_runs_does_not_restart_it() -> None:
    # The window had held up what the timeout left to be repaired (RFC 6298 rules 5.1 and 5.3).
    story = Story(sack=False).send(0, 1, 2).send(0, after=1.5).ack(1, after=RTT, window=0)
    story.ack(1, after=0.8).send(1).send(1, after=0.2)
    assert story.verdicts("SNR-RTO-001") == PASS
    story.ack(3, after=RTT).send(3).send(3, after=0.3)
    assert story.verdicts("SNR-RTO-001") >= FAIL


def test_timeout_below_a_round_trip_that_losses_have_lengthened() -> None:
    # The acknowledgment of 2 measures from when it left; 60 s limit a timeout (RFC 6298 rule 2.5).
    story = Story(sack=False, syn_acks=(0.0, 1.0, 3.0)).send(0).send(0, after=3.0)
    story.ack(1, after=RTT).send(1, 2)
    for waited in (6.0, 12.0, 24.0):
        story.send(1, after=waited)
    story.ack(3, after=25.0).send(3, 4).send(3, after=60.0)
    assert Verdict.FAIL not in story.verdicts("SNR-RTO-001") | story.verdicts("SNR-RTO-010")


def test_timeout_before_what_left_behind_a_repeated_segment_measures_anything() -> None:
    story = Story(sack=False, syn_acks=(0.0, 1.0)).send(0, 1).send(0, after=3.0)
    story.ack(2, after=5.0).send(2, 3)
    assert story.send(2, after=6.0).verdicts("SNR-RTO-001") == NOTHING


@pytest.mark.parametrize(("partial", "expected"), [((2,), FAIL), ((2, 4), NOTHING)])
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


@pytest.mark.parametrize(("window", "expected"), [(0, NOTHING), (60_000, FAIL)])
def test_timeout_sooner_than_the_answer_of_a_probe(window: int, expected: set[Verdict]) -> None:
    """Probes of a closed window need not be timed, and the SYN-ACK was not."""
    story = Story(sack=False, syn_acks=(0.0, 1.0)).ack(0, window=window, after=0.1)
    story.send_octets(0, 1, after=3.0).ack(0.001, window=window, after=3.9).ack(0.001, after=0.1)
    story.send_octets(1, SIZE).send_octets(1, SIZE, after=3.0)
    assert story.verdicts("SNR-RTO-001") == expected


def test_tail_probe_soon_after_the_tail_was_sent() -> None:
    story = Story().send(0, 1).send(2, after=0.5).send(2, after=0.3)
    assert story.verdicts("SNR-RTO-001") == NOTHING
    without = Story(sack=False).send(0, 1).send(2, after=0.5).send(2, after=0.3)
    assert without.verdicts("SNR-RTO-001") == FAIL


def test_timed_retransmission_of_what_sack_reports_missing() -> None:
    story = Story().send(0, 1, 2, 3).ack(0, (1, 4), after=RTT).send(0, after=0.15)
    assert story.verdicts("SNR-RTO-001") == NOTHING
    assert story.verdicts("SNR-RTO-002") == NOTHING


@pytest.mark.parametrize(("pacing", "expected"), [(True, NOTHING), (False, FAIL)])
def test_repair_that_pacing_puts_off_for_longer_than_any_round_trip(
    pacing: bool, expected: set[Verdict]
) -> None:
    """The user bounds the rate (encounters 3002385, 3100214)."""
    story = Story(rtt=0.01).send(*range(10)).ack(8, after=0.01).ack(8, (9, 10), after=0.001)
    story.send(8, after=0.12)
    assert story.verdicts("SNR-RTO-002", claims={**CLAIMS, "pacing": pacing}) == expected


def test_first_timeout_below_a_second() -> None:
    assert flight().send(1, after=0.3).verdicts("SNR-RTO-002") == FAIL
    assert flight().send(1, after=1.1).verdicts("SNR-RTO-002") == PASS


def test_timeout_of_a_segment_with_a_timer_of_its_own() -> None:
    story = Story().send(0).send(1, after=0.9).send(2, after=0.05).ack(1, after=0.05)
    assert story.send(1, after=0.91).verdicts("SNR-RTO-002") == PASS


def test_interval_of_two_timeouts_shows_a_short_one() -> None:
    story = flight(sack=True).send(9, after=0.8).send(1, after=0.8).send(1, after=1.6)
    assert story.verdicts("SNR-RTO-002") == PASS | FAIL


def test_report_between_two_timeouts_measures_and_ends_the_back_off() -> None:
    story = flight(sack=True).send(1, after=1.2).ack(1, (5, 6), after=0.6).send(1, after=1.2)
    assert story.verdicts("SNR-RTO-002") == PASS


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
        ((0.0, 1.0), NOTHING),
    ],
)
def test_syn_ack_repeated(times: tuple[float, ...], expected: set[Verdict]) -> None:
    assert Story(syn_acks=times).verdicts("SNR-RTO-004") == expected


@pytest.mark.parametrize(("waited", "expected"), [(1.0, FAIL), (3.0, PASS), (6.0, PASS)])
def test_first_data_lost_after_a_repeated_syn_ack(waited: float, expected: set[Verdict]) -> None:
    story = Story(sack=False, syn_acks=(0.0, 1.0, 3.0)).send(0, 1).send(0, after=waited)
    assert story.verdicts("SNR-RTO-005") == expected
    assert Story(sack=False).send(0, 1).send(0, after=waited).verdicts("SNR-RTO-005") == NOTHING


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ((1.0, 2.0, 4.0), PASS),
        ((1.0, 2.0, 2.0), FAIL),
        ((1.0, 2.0, 3.0), FAIL),
        ((1.0, 2.0, 12.0), FAIL),
        ((1.0, 40.0, 60.0), PASS),
        ((1.0, 40.0, 50.0), FAIL),
        ((1.0, 2.0), NOTHING),
    ],
)
def test_timeouts_in_a_row(intervals: tuple[float, ...], expected: set[Verdict]) -> None:
    story = flight()
    for interval in intervals:
        story.send(1, after=interval)
    assert story.verdicts("SNR-RTO-006") == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(0.5, 3.5, PASS), (2.5, 5.0, PASS), (0.5, 8.0, FAIL), (0.5, 2.5, FAIL)],
)
def test_arrival_between_two_timeouts_may_restart_the_timer(
    before: float, after: float, expected: set[Verdict]
) -> None:
    story = flight().send(1, after=1.0).send(1, after=2.0).ack(1, after=before)
    assert story.send(1, after=after).verdicts("SNR-RTO-006") == expected


def test_tail_probe_is_no_part_of_the_back_off() -> None:
    story = Story().send(0).send(0, after=1.2).send(0, after=1.8)
    assert story.send(0, after=3.6).verdicts("SNR-RTO-006") == NOTHING
    assert story.send(0, after=7.2).verdicts("SNR-RTO-006") == PASS


def test_acknowledgment_restarts_the_timer_or_not() -> None:
    story = Story(sack=False).send(0, 1, 2).ack(1, after=0.9)
    assert story.send(1, after=0.2).verdicts("SNR-RTO-010") == FAIL
    story = Story(sack=False).send(0, 1, 2).ack(1, after=0.9)
    assert story.send(1, after=1.1).verdicts("SNR-RTO-010") == PASS


def test_paced_retransmission_is_no_proof_of_a_timer() -> None:
    story = Story(sack=False).send(0, 1, 2).ack(1, after=0.9).send(1, after=0.2)
    assert story.verdicts("SNR-RTO-010", claims={**CLAIMS, "pacing": True}) == NOTHING


def test_silence_with_data_outstanding() -> None:
    assert Story().send(0).ack(0, after=30).verdicts("SNR-RTO-011") == FAIL
    assert Story().send(0).ack(0, after=10).verdicts("SNR-RTO-011") == NOTHING
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
    assert story.verdicts("SNR-RTO-011") == NOTHING


@pytest.mark.parametrize(("waited", "expected"), [(1.5, FAIL), (6.0, FAIL), (7.2, PASS)])
def test_timeout_after_an_ambiguous_acknowledgment(waited: float, expected: set[Verdict]) -> None:
    story = flight().send(1, after=1.8).send(1, after=3.6).ack(2, after=RTT).send(2, 3)
    assert story.send(2, after=waited).verdicts("SNR-RTO-013") == expected


@pytest.mark.parametrize(("waited", "expected"), [(4.1, PASS), (3.5, FAIL)])
def test_backed_off_timeout_of_a_timer_that_ticks_twice_a_second(
    waited: float, expected: set[Verdict]
) -> None:
    # The first one, of 1.8 s, expired on the tick after it, and so did twice as much.
    story = Story(sack=False).send(0).send(0, after=2.3).ack(1, after=RTT)
    assert story.send(1, after=0.1).send(1, after=waited).verdicts("SNR-RTO-013") == expected


@pytest.mark.parametrize(("waited", "expected"), [(2.5, FAIL), (5.3, PASS)])
def test_backed_off_timeout_that_is_counted_from_the_transmission(
    waited: float, expected: set[Verdict]
) -> None:
    # Whether the acknowledgment restarts the timer is another requirement's business (SNR-RTO-010).
    story = flight().send(1, after=1.8).send(1, after=3.6).ack(2, after=RTT).send(2, 3)
    assert story.ack(3, after=1.5).send(3, after=waited).verdicts("SNR-RTO-013") == expected


@pytest.mark.parametrize(
    ("paced", "waited", "expected"), [(True, 1.9, PASS), (True, 1.3, FAIL), (False, 1.9, FAIL)]
)
def test_back_off_of_a_timer_that_runs_since_the_next_segment_may_leave(
    paced: bool, waited: float, expected: set[Verdict]
) -> None:
    """The gap of 0.3 s between segments is added to it, and not backed off (encounter 841279)."""
    story = Story(sack=False, rtt=0.04).send(0).ack(1, after=0.04).send(1, after=0.26)
    story.send(1, after=1.3).ack(2, after=0.04).send(2, after=0.26).send(2, after=waited)
    claims = {**CLAIMS, "pacing": paced}
    assert story.verdicts("SNR-RTO-013", claims=claims) == expected


def test_back_off_forgotten_by_a_segment_that_left_long_before() -> None:
    story = flight().send(1, after=1.8).send(1, after=3.6).ack(2, after=RTT)
    assert story.send(2, after=1.5).verdicts("SNR-RTO-013") == FAIL


def test_back_off_of_a_timer_that_a_second_partial_acknowledgment_leaves_running() -> None:
    story = flight().send(1, after=1.8).send(1, after=3.6).ack(2, after=RTT).send(2, 3)
    story.ack(4, after=RTT).send(4, 5, 6, 7).ack(8, after=RTT).send(8, 9, 10, 11, 12)
    story.ack(9, after=RTT).send(13, 14)
    duplicates(story, 9).send(9).ack(10, after=RTT).send(10).ack(11, after=RTT).send(11)
    assert Verdict.FAIL not in story.send(11, after=0.5).verdicts("SNR-RTO-013")


def test_acknowledgment_of_new_data_ends_the_back_off() -> None:
    story = flight().send(1, after=1.8).send(1, after=3.6).ack(9, after=RTT).send(9, 10)
    assert story.send(9, after=1.5).verdicts("SNR-RTO-013") == NOTHING


def test_reset_before_and_after_a_hundred_seconds() -> None:
    story = flight().send(1, after=2).send(1, after=4)
    assert story.reset(after=8).verdicts("SNR-RTO-014") == FAIL
    story = flight().send(1, after=40).send(1, after=80)
    assert story.reset(after=60).verdicts("SNR-RTO-014") == PASS


def test_reset_at_a_timeout_after_many_that_were_answered() -> None:
    story = flight().send(1, after=2).ack(9, after=RTT).send(9, 10).ack(10, after=RTT)
    assert story.reset(after=2).verdicts("SNR-RTO-014") == FAIL
    story = flight().send(1, after=2).ack(9, after=RTT).send(9, 10).ack(10, after=RTT)
    assert story.reset(after=120).verdicts("SNR-RTO-014") == NOTHING


def test_reset_at_the_first_timeout_of_all() -> None:
    assert flight().reset(after=2).verdicts("SNR-RTO-014") == FAIL


@pytest.mark.parametrize(
    "story",
    [
        flight().send(1, after=2).ack(9, after=RTT).reset(after=2),  # nothing was owed
        flight().send(1, after=2).ack(3, after=RTT).reset(after=0.01),  # it may be an answer
        flight().send(1, after=2).ack(3, after=RTT, window=0).reset(after=2),  # probes had failed
    ],
)
def test_reset_with_nothing_due_is_no_giving_up(story: Story) -> None:
    assert story.verdicts("SNR-RTO-014") == NOTHING


@pytest.mark.parametrize("whose", [{"service": 4321}, {"calls": True}])
def test_reset_of_a_user_is_no_giving_up(whose: dict[str, Any]) -> None:
    story = Story(**whose).send(0, 1).ack(1, after=RTT).send(1, after=2).send(1, after=4)
    assert story.reset(after=8).verdicts("SNR-RTO-014") == NOTHING


def test_reset_by_the_tester_is_no_giving_up() -> None:
    story = flight().send(1, after=2).reset(after=1, outgoing=False).reset(after=RTT)
    assert story.verdicts("SNR-RTO-014") == NOTHING


@pytest.mark.parametrize(("repeated", "accused"), [(True, False), (False, True)])
def test_syn_ack_after_two_syns_of_which_the_first_was_dropped(
    repeated: bool, accused: bool
) -> None:
    """What follows it may answer the other one, and a repetition it is."""
    story = Story(syn_acks=(0.0, 1.0, 3.0, 7.0, 15.0)[: 5 if repeated else 1], rtt=20.0)
    story.packets.insert(0, story.packets[0])
    assert (Verdict.FAIL in story.verdicts("SNR-RTO-004")) == accused


def test_syn_ack_whose_connection_is_called_again_in_the_same_instant() -> None:
    story = Story()
    syn, syn_ack, answer = story.packets
    same = replace(syn, time=syn_ack.time)
    story.packets[1:] = [syn_ack, same, syn_ack, replace(answer, time=30.0)]
    assert story.verdicts("SNR-RTO-004") == NOTHING
    story.packets[1:] = [syn_ack, replace(answer, time=30.0)]
    assert story.verdicts("SNR-RTO-004") == FAIL


@pytest.mark.parametrize(("waited", "expected"), [(20.0, NOTHING), (70.0, FAIL)])
def test_window_closed_over_what_is_outstanding(waited: float, expected: set[Verdict]) -> None:
    story = Story(sack=False).send(0).ack(0, after=0.2, window=0).ack(0, after=waited, window=0)
    assert story.verdicts("SNR-RTO-011") == expected


def test_closed_window_probed_by_acknowledgments() -> None:
    story = Story(sack=False).send(0).ack(0, after=0.2, window=0)
    for _ in range(3):
        story.send_octets(-1, 0, after=40.0).ack(0, after=RTT, window=0)
    assert story.verdicts("SNR-RTO-011") == NOTHING


def test_timeout_of_a_sender_with_pacing_that_has_been_repeated_before() -> None:
    """What a recovery has repeated once is not put off any more; a timer repeats it again."""
    claims = {**CLAIMS, "pacing": True}
    story = Story().send(*range(4)).ack(1, after=RTT).send(3, after=0.01).send(1, after=2.0)
    assert story.verdicts("SNR-RTO-001", claims=claims) == NOTHING
    assert story.send(1, after=4.0).verdicts("SNR-RTO-001", claims=claims) == PASS
    assert story.send(1, after=0.2).verdicts("SNR-RTO-001", claims=claims) == {*PASS, *FAIL}


@pytest.mark.parametrize("seq", [5_100, 200_000])
def test_timer_that_only_the_first_partial_acknowledgment_restarts_behind_a_reset(seq: int) -> None:
    """The RST is challenged, or lies outside the window: the recovery is one all the same."""
    story = Story(sack=False).send(*range(10))
    story.reset(outgoing=False, seq=seq).send_octets(10_000, 0).ack(2, after=RTT)
    for _ in range(3):
        story.ack(2, after=0.01)
    story.send(2).ack(3, after=RTT).send(3).ack(4, after=RTT).send(4).send(4, after=1.05 - RTT)
    assert story.verdicts("SNR-RTO-001").isdisjoint(FAIL)


@pytest.mark.parametrize("used", [False, True])
def test_timeout_after_a_small_window_was_used_behind_a_probe(used: bool) -> None:
    """What the window lets out first, in place of the next probe, is no timeout."""
    story = Story(sack=False, window=SIZE).send(0).ack(1, after=RTT, window=0)
    story.send_octets(SIZE, 1, after=1.8).send_octets(SIZE, 1, after=3.6)
    story.ack(1, after=1.0, window=535)
    if used:
        story.send_octets(SIZE, 535, after=0.1)
    story.send_octets(SIZE, 535, after=6.2).send_octets(SIZE, 535, after=1.8)
    assert (Verdict.FAIL in story.verdicts("SNR-RTO-002")) == used
