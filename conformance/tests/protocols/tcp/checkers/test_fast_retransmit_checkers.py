"""The checkers of entering fast retransmit on traces written by hand."""

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
    UNCLEAR,
    Story,
    duplicates,
    window_limited_flight,
)
from bentpipe_conformance.selftest.strangers import judging


def test_two_duplicates_then_a_retransmission() -> None:
    assert duplicates(window_limited_flight(), 2, 2).send(2).verdicts("SNR-FR-001") == PASS | FAIL
    assert duplicates(window_limited_flight(), 2, 3).send(2).verdicts("SNR-FR-001") == PASS


def test_two_duplicates_in_a_small_flight_may_be_early_retransmit() -> None:
    story = Story(sack=False).send(0, 1, 2).ack(0, after=RTT).ack(0, after=0.01).send(0)
    claims = {**CLAIMS, "early_retransmit": True}
    assert story.verdicts("SNR-FR-001", claims=claims) == NOTHING
    assert story.verdicts("SNR-FR-001") >= FAIL
    assert story.verdicts("SNR-FR-001", "hk99") >= FAIL


def test_timeout_soon_after_a_duplicate_is_no_early_retransmission() -> None:
    story = window_limited_flight().ack(2, after=1.2).send(2, after=0.008)
    assert Verdict.FAIL not in story.verdicts("SNR-FR-001")


@pytest.mark.parametrize(("instead", "accused"), [((), True), ((("whole_packets", 2),), False)])
def test_third_report_that_ends_inside_a_packet_of_two_segments(
    instead: tuple[tuple[str, int], ...], accused: bool
) -> None:
    """The report of a part of such a packet gets lost; the fourth retransmits (3116555)."""
    story = window_limited_flight(sack=True).ack(2, (3, 4), after=RTT).ack(2, (3, 5), after=0.01)
    story.ack(2, (3, 6), after=0.01).ack(2, (3, 7), after=0.4).send(2)
    found = judging(story.trace(), CLAIMS)("SNR-FR-002", instead, frozenset())
    assert (Verdict.FAIL in {finding.verdict for finding in found}) == accused


def test_third_duplicate_answered_or_not() -> None:
    assert duplicates(window_limited_flight(), 2).send(2).verdicts("SNR-FR-002") == PASS
    assert duplicates(window_limited_flight(), 2).send(16, after=0.1).verdicts("SNR-FR-002") == FAIL
    assert duplicates(window_limited_flight(), 2).send(3, 2).verdicts("SNR-FR-002") == FAIL


def test_third_duplicate_in_the_instant_of_the_repair_before() -> None:
    story = duplicates(window_limited_flight(), 2).send(2, 16).ack(15, after=RTT).send(15, 17)
    duplicates_at_once = story.ack(17).send(18, 19, 20).ack(18).ack(18).ack(18).ack(18)
    assert duplicates_at_once.send(18).verdicts("SNR-FR-002", "hk99") == PASS


def test_third_duplicate_after_a_reset() -> None:
    story = window_limited_flight().ack(2, after=0.01).ack(2, after=0.01).reset().ack(2, after=0.01)
    assert story.ack(2, after=RTT).verdicts("SNR-FR-002") == NOTHING


def test_third_duplicate_of_which_one_reports_a_duplicate_segment() -> None:
    story = Story().send(*range(8)).ack(2, after=RTT).ack(2, (1, 2), after=0.01)
    story.ack(2, (3, 4), after=0.01).ack(2, (3, 5), after=0.01).ack(2, (3, 6), after=0.1).send(2)
    assert story.verdicts("SNR-FR-002", "hk99") == NOTHING


@pytest.mark.parametrize(("pacing", "expected"), [(False, FAIL), (True, PASS), (None, UNCLEAR)])
def test_third_duplicate_answered_later(pacing: bool | None, expected: set[Verdict]) -> None:
    claims = {**CLAIMS, "pacing": pacing}
    if pacing is None:
        del claims["pacing"]
    story = duplicates(window_limited_flight(), 2).send(2, after=0.06)
    assert story.verdicts("SNR-FR-002", claims=claims) == expected


@pytest.mark.parametrize(("after", "expected"), [(0.05, FAIL), (0.004, NOTHING)])
def test_third_duplicate_whose_segment_is_acknowledged_soon(
    after: float, expected: set[Verdict]
) -> None:
    story = duplicates(window_limited_flight(), 2).ack(6, after=after).send(16, after=0.001)
    assert story.verdicts("SNR-FR-002", claims={**CLAIMS, "pacing": False}) == expected
    paced = duplicates(window_limited_flight(), 2).ack(6, after=after).send(16, after=0.001)
    assert paced.verdicts("SNR-FR-002", claims={**CLAIMS, "pacing": True}) == NOTHING


def test_third_duplicate_after_seen_reordering_is_not_held_against_the_sender() -> None:
    story = duplicates(window_limited_flight(), 2, 2).ack(5, after=0.01).send(16, 17)
    duplicates(story, 5).ack(5, after=0.2)
    assert story.verdicts("SNR-FR-002") == NOTHING
    assert story.verdicts("SNR-FR-002", "hk99") == FAIL


def test_third_duplicate_without_sack_information_counts_in_the_paper_only() -> None:
    story = duplicates(window_limited_flight(sack=True), 2).ack(2, after=0.2)
    assert story.verdicts("SNR-FR-002") == NOTHING
    assert story.verdicts("SNR-FR-002", "hk99") == FAIL


def test_one_held_segment_is_no_evidence() -> None:
    story = window_limited_flight(sack=True)
    assert story.ack(2, (3, 4), after=0.01).send(2).verdicts("SNR-FR-003") == FAIL


def test_one_distant_held_segment_is_no_evidence() -> None:
    story = window_limited_flight(sack=True).ack(2, (5, 6), after=0.01).send(2)
    assert story.verdicts("SNR-FR-003", "hk99") == FAIL
    assert story.verdicts("SNR-FR-003") == FAIL


def test_acknowledgment_that_moves_and_reports_is_evidence_too() -> None:
    story = Story().send(*range(20)).ack(2, (3, 4), after=RTT).ack(2, (3, 5), after=0.01)
    story.ack(2, (3, 6), after=0.01).send(2)
    assert story.verdicts("SNR-FR-003") == PASS
    assert story.verdicts("SNR-FR-003", "hk99") == PASS | FAIL


def test_third_duplicate_sends_new_data_before_the_retransmission() -> None:
    story = duplicates(window_limited_flight(), 2).send(16, 2)
    assert story.verdicts("SNR-FR-002") == FAIL


def test_one_held_segment_sent_much_later_is_evidence_in_time() -> None:
    story = Story().send(*range(6)).send(*range(6, 12), after=0.3).ack(2, after=RTT)
    story.ack(2, (6, 7), after=0.01).send(2)
    assert story.verdicts("SNR-FR-003", claims={**CLAIMS, "rack": True}) == NOTHING
    assert story.verdicts("SNR-FR-003") == FAIL


def test_window_updates_betweenduplicates() -> None:
    story = window_limited_flight()
    for step in (1, 2, 3):
        story.ack(2, after=0.01, window=60000 + step * 1000)
    assert story.verdicts("SNR-FR-004") == PASS
    assert story.send(2).verdicts("SNR-FR-004") == FAIL


def test_segments_with_data_betweenduplicates() -> None:
    story = window_limited_flight()
    for _ in range(3):
        story.ack(2, after=0.01, data=b"bentpipe")
    assert story.verdicts("SNR-FR-005") == PASS
    assert story.send(2).verdicts("SNR-FR-005") == FAIL


def test_second_retransmission_within_a_round_trip() -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(2, after=0.01)
    assert story.verdicts("SNR-FR-006") == PASS
    assert Verdict.FAIL in story.send(2).verdicts("SNR-FR-006")


def _paced_repair(late: float, *again: int) -> Story:
    """A repair that leaves so late that more duplicates have come, one of them just before it."""
    story = duplicates(window_limited_flight(), 2).ack(2, after=late).send(2, after=0.001)
    return story.ack(2, after=0.01).send(*again)


def test_retransmission_put_off_by_pacing_then_another() -> None:
    claims = {**CLAIMS, "pacing": True}
    assert _paced_repair(0.03).verdicts("SNR-FR-006", claims=claims) == PASS
    assert Verdict.FAIL in _paced_repair(0.03, 2).verdicts("SNR-FR-006", claims=claims)


def test_retransmission_after_more_than_a_round_trip_may_be_timed() -> None:
    assert _paced_repair(0.9, 2).verdicts("SNR-FR-006") == NOTHING


def _paced_repairs(*again: int) -> Story:
    """Two losses whose repairs leave one by one, the second when nothing has just arrived."""
    story = window_limited_flight(sack=True)
    for top in (7, 8, 9):
        story.ack(2, (3, 5), (6, top), after=0.01)
    return story.send(2).send(5, after=0.03).ack(2, (3, 5), (6, 10), after=0.03).send(*again)


def test_second_repair_put_off_by_pacing_then_another() -> None:
    assert _paced_repairs().verdicts("SNR-FR-006") == PASS
    assert Verdict.FAIL in _paced_repairs(2, 5).verdicts("SNR-FR-006")


def test_second_retransmission_a_round_trip_later() -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(2, after=RTT).send(2)
    assert Verdict.FAIL not in story.verdicts("SNR-FR-006")
    assert Verdict.FAIL in story.verdicts("SNR-FR-006", "hk99")


def test_rescue_retransmission_with_sack() -> None:
    story = window_limited_flight(sack=True)
    for top in (4, 5, 6):
        story.ack(2, (3, top), after=0.01)
    story.send(2).ack(2, (3, 7), after=0.01).send(2)
    assert Verdict.FAIL not in story.verdicts("SNR-FR-006")
    assert Verdict.FAIL in story.verdicts("SNR-FR-006", "hk99")


def test_duplicates_three_in_all_but_not_in_a_row() -> None:
    story = duplicates(window_limited_flight(), 2, 2).ack(4, after=0.01).ack(4, after=0.01)
    assert story.verdicts("SNR-FR-007") == PASS
    assert story.send(4).verdicts("SNR-FR-007") == FAIL


def test_bare_repetitions_with_sack() -> None:
    story = duplicates(window_limited_flight(sack=True), 2)
    assert story.verdicts("SNR-FR-008") == PASS
    assert story.send(2).verdicts("SNR-FR-008") == FAIL


@pytest.mark.parametrize(("again", "expected"), [((), PASS | FAIL), ((3,), PASS)])
def test_third_duplicate_at_what_a_timeout_may_have_recorded(
    again: tuple[int, ...], expected: set[Verdict]
) -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(3, after=RTT).send(3, 16)
    story.at += 0.014
    story.send(*again).ack(17, after=RTT).send(*range(17, 23))
    assert duplicates(story, 17).ack(17, after=0.5).verdicts("SNR-FR-002", "hk99") == expected


@pytest.mark.parametrize(("again", "expected"), [((), FAIL), ((5,), NOTHING)])
def test_recovery_that_begins_while_a_timeout_is_repaired_goes_on_beyond_it(
    again: tuple[int, ...], expected: set[Verdict]
) -> None:
    story = Story().send(*range(10)).send(0, after=2.0).ack(5, after=RTT).send(5, 10)
    story.ack(5, (6, 7), after=0.01).ack(5, (6, 8), after=0.01).ack(5, (6, 9), after=0.01)
    story.send(*again).send(11, 12).ack(10, after=RTT).ack(10, (11, 12), after=0.01).send(10)
    assert story.verdicts("SNR-FR-003", "hk99") == expected


@pytest.mark.parametrize(("sends", "expected"), [(False, PASS), (True, FAIL)])
def test_window_update_in_recovery(sends: bool, expected: set[Verdict]) -> None:
    story = duplicates(Story(sack=False).send(*range(12)).ack(2, after=RTT), 2).send(2)
    for number in range(12, 20):
        story.ack(2, after=0.01)
        if number > 15:
            story.send(number)
    story.ack(2, after=0.01, window=50000)
    if sends:
        story.send(20)
    assert story.verdicts("SNR-FR-004", claims={**CLAIMS, "byte_counting": "no"}) == expected


@pytest.mark.parametrize(("probed", "expected"), [(True, NOTHING), (False, FAIL)])
def test_repair_in_a_recovery_that_begins_with_what_a_window_probe_carried(
    probed: bool, expected: set[Verdict]
) -> None:
    story = Story().send(0, 1, 2, 3).ack(4, after=RTT, window=0 if probed else 7 * SIZE)
    if probed:
        story.send_octets(4 * SIZE, 1, after=1.8).ack(4, after=RTT, window=7 * SIZE)
    story.send(4, 5, 6, 7, 8, 9, 10)
    if probed:
        for top in (6, 7, 8):
            story.ack(4, (5, top), after=RTT / 3, window=7 * SIZE)
        story.send(4)
    # No new data may leave: RFC 6675's rule 3 repeats what may be missing.
    story.ack(8, (9, 10), after=RTT, window=3 * SIZE).ack(8, (9, 11), after=0.01, window=3 * SIZE)
    assert story.send(8).verdicts("SNR-FR-003") - PASS == expected


@pytest.mark.parametrize(("rtt", "expected"), [(1.2, NOTHING), (0.6, FAIL)])
def test_timeout_of_hardly_more_than_a_round_trip_that_meets_a_report(
    rtt: float, expected: set[Verdict]
) -> None:
    story = Story(rtt=rtt).send(*range(8)).ack(2, after=rtt).send(8, 9)
    story.ack(2, (8, 9), after=1.02 * rtt).send(2)
    assert story.verdicts("SNR-FR-003") - PASS == expected


@pytest.mark.parametrize(("measured", "accused"), [(0, False), (1, True)])
def test_timeout_of_less_than_a_round_trip_that_nothing_has_measured(
    measured: int, accused: bool
) -> None:
    story = Story(sack=False, rtt=3.6)
    if measured:
        story.send(0).ack(measured, after=3.6)
    story.send(*range(measured, measured + 6)).ack(measured, after=2.9)
    story.send(measured, after=0.001)
    assert accused == (Verdict.FAIL in story.verdicts("SNR-FR-001"))


@pytest.mark.parametrize(("after", "expected"), [(0.31, PASS), (0.05, PASS | FAIL)])
def test_repair_that_waited_since_a_reordering_timer_expired(
    after: float, expected: set[Verdict]
) -> None:
    """The second report lets it out; by time, the first had shown the loss 0.15 s after it."""
    story = Story().send(*range(12)).ack(2, after=RTT).send(12, 13)
    story.ack(2, (3, 4), after=0.01).ack(2, (3, 5), after=after).send(2)
    assert story.verdicts("SNR-FR-003", claims={**CLAIMS, "rack": True}) == expected


@pytest.mark.parametrize(("stamps", "accused"), [(True, False), (False, True)])
def test_reordering_window_of_a_round_trip_that_timestamps_measure_shorter(
    stamps: bool, accused: bool
) -> None:
    """A fifth of 2.5 ms is 0.5 ms, and of what a clock of milliseconds may show, 0.3 ms."""
    story = Story(rtt=0.0035, stamps=stamps).send(*range(3)).ack(3, after=0.0025)
    for index in range(3, 10):
        story.send(index, after=0.0004)
    found = story.ack(4, after=0.0005).ack(4, (5, 6), after=0.0004).send(4)
    verdicts = found.verdicts("SNR-FR-003", claims={**CLAIMS, "rack": True})
    assert (Verdict.FAIL in verdicts) == accused


@pytest.mark.parametrize(("reported", "accused"), [(0.2, False), (0.55, True)])
def test_reordering_window_of_a_round_trip_that_only_a_report_has_shown(
    reported: float, accused: bool
) -> None:
    """All that is acknowledged took longer: a segment left before the queue was long."""
    story = Story().send(*range(4)).ack(1, after=RTT).send(4).ack(1, (4, 5), after=reported)
    story.ack(5, after=0.4).send(5).send(*range(6, 13), after=0.05).ack(5, (6, 7), after=RTT)
    found = story.send(5).verdicts("SNR-FR-003", claims={**CLAIMS, "rack": True})
    assert (Verdict.FAIL in found) == accused


@pytest.mark.parametrize(
    ("pacing", "late", "accused"), [(True, 0.9, False), (True, 1.1, True), (False, 0.7, True)]
)
def test_fast_retransmit_that_pacing_puts_off_for_a_little_longer_than_it_has_been_seen_to_pause(
    pacing: bool, late: float, accused: bool
) -> None:
    """The user bounds the rate: 0.8 s for four segments (encounter 3101689); eight take longer."""
    story = Story(sack=False).send(*range(4)).ack(4, after=0.2).send(*range(4, 12), after=0.6)
    story = duplicates(story.ack(5, after=0.2), 5).send(5, after=late).ack(12, after=0.2)
    found = story.verdicts("SNR-FR-002", claims={**CLAIMS, "pacing": pacing})
    assert (Verdict.FAIL in found) == accused


@pytest.mark.parametrize(
    ("pacing", "late", "accused"), [(True, 0.4, False), (True, 0.65, True), (False, 0.4, True)]
)
def test_fast_retransmit_that_pacing_puts_off_for_longer_than_the_shortest_round_trip(
    pacing: bool, late: float, accused: bool
) -> None:
    """A window is spread over a smoothed round trip; the longest one took 0.6 s."""
    story = Story(sack=False).send(*range(4)).ack(2, after=0.2).send(*range(4, 12))
    story = duplicates(story, 2).send(2, after=late).ack(12, after=0.2)
    found = story.verdicts("SNR-FR-002", claims={**CLAIMS, "pacing": pacing})
    assert (Verdict.FAIL in found) == accused
