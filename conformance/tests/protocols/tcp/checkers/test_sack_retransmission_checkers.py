"""The checkers of retransmissions with SACK, reneging included, on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import (
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    RTT,
    Story,
    three_reports,
)
from bentpipe_conformance.selftest.strangers import judging

WHOLE_PACKETS = (("whole_packets", 2),)
"""Reports of a part of a larger packet get lost (see the deviations of Linux)."""

REST_OF_BLOCK = (*WHOLE_PACKETS, ("rest_of_block", True))
"""Likewise reports that begin or end inside such a packet."""


def test_hole_retransmitted_is_missing() -> None:
    story = three_reports().send(2)
    for requirement in ("SNR-SAK-001", "SNR-SAK-004", "SNR-SAK-006", "SNR-SAK-009"):
        assert story.verdicts(requirement) == PASS
    assert story.verdicts("SNR-SAK-005", "hk99") == PASS


def test_held_segment_retransmitted_fails() -> None:
    assert three_reports().send(2).send(3, after=0.01).verdicts("SNR-SAK-001") == PASS | FAIL


@pytest.mark.parametrize(
    ("again", "instead", "expected"),
    [(5, (), PASS | FAIL), (5, WHOLE_PACKETS, PASS), (12, WHOLE_PACKETS, PASS | FAIL)],
)
def test_held_segment_retransmitted_that_left_together_with_a_missing_one(
    again: int, instead: tuple[tuple[str, object], ...], expected: set[Verdict]
) -> None:
    """Linux loses the report of a part of a queued packet of seven segments (3101848)."""
    story = Story().send(0, 1).send(*range(2, 9), push=True).send(*range(9, 16), push=True)
    story.ack(2, after=RTT).ack(2, (3, 9), after=0.01).ack(2, (3, 12), after=0.01)
    story.ack(2, (3, 16), after=0.01).send(2).send(again, after=0.01)
    found = judging(story.trace(), CLAIMS)("SNR-SAK-001", instead, frozenset())
    assert {finding.verdict for finding in found} == expected


@pytest.mark.parametrize(
    ("again", "instead", "expected"),
    [
        (11, WHOLE_PACKETS, PASS | FAIL),
        (11, REST_OF_BLOCK, PASS),
        (5, REST_OF_BLOCK, PASS | FAIL),
        (14, REST_OF_BLOCK, PASS | FAIL),
    ],
)
def test_held_segment_retransmitted_of_a_packet_reported_part_by_part(
    again: int, instead: tuple[tuple[str, object], ...], expected: set[Verdict]
) -> None:
    """A report that ends inside a queued packet is lost like one that begins there (3113789)."""
    story = Story().send(0, 1).send(2, after=0.01).send(*range(3, 9), after=0.01)
    story.send(*range(9, 18), after=0.01).ack(2, after=RTT).ack(2, (3, 9), after=0.01)
    story.ack(2, (3, 12), after=0.01).ack(2, (3, 18), after=0.01).send(2).send(again, after=0.01)
    found = judging(story.trace(), CLAIMS)("SNR-SAK-001", instead, frozenset())
    assert {finding.verdict for finding in found} == expected


@pytest.mark.parametrize(("instead", "accused"), [(WHOLE_PACKETS, True), (REST_OF_BLOCK, False)])
def test_held_segment_first_reported_above_what_the_receiver_threw_away(
    instead: tuple[tuple[str, object], ...], accused: bool
) -> None:
    """What was reported held is one packet, inside of which the next block begins (3118102)."""
    story = Story()
    for segment in range(14):
        story.send(segment, after=0.001)
    story.ack(2, after=RTT).ack(2, (3, 9), after=0.01).ack(2, (6, 10), after=0.01)
    story.ack(2, (6, 14), after=0.01).send(2).send(9, after=0.01)
    found = judging(story.trace(), CLAIMS)("SNR-SAK-001", instead, frozenset())
    assert (Verdict.FAIL in {finding.verdict for finding in found}) == accused


def test_held_segment_retransmitted_in_a_race_is_not_judged() -> None:
    story = three_reports().send(2).ack(2, (3, 7), after=0.01).send(6)
    assert story.verdicts("SNR-SAK-001") == PASS


def test_held_segment_retransmitted_after_reneging_is_no_failure() -> None:
    story = three_reports().send(2).ack(3, after=RTT).send(3, after=1.0).send(4, after=0.01)
    assert Verdict.FAIL not in story.verdicts("SNR-SAK-001")
    assert story.verdicts("SNR-SAK-011") == PASS


def test_held_segment_retransmitted_after_timeout_without_news_is_no_failure() -> None:
    story = three_reports().send(2, after=3.0).ack(3, (9, 10), after=RTT).send(3, 4)
    assert Verdict.FAIL not in story.verdicts("SNR-SAK-001")
    assert Verdict.FAIL not in story.verdicts("SNR-SAK-002")


def test_held_segment_retransmitted_after_timeout_despite_news_fails() -> None:
    story = Story().send(*range(10)).ack(1, after=RTT)
    story.send(1, after=3.0).ack(2, (4, 10), after=RTT).send(2, 3).ack(4, (4, 10), after=RTT)
    assert Verdict.FAIL not in story.verdicts("SNR-SAK-002")
    story = Story().send(*range(10)).ack(1, after=RTT)
    story.send(1, after=3.0).ack(2, (4, 10), after=RTT).send(2).ack(3, (4, 10), after=RTT).send(4)
    assert Verdict.FAIL in story.verdicts("SNR-SAK-002")


def test_reneged_data_never_retransmitted_fails() -> None:
    story = three_reports().send(2).ack(3, after=RTT).ack(3, after=30.0)
    assert story.verdicts("SNR-SAK-011") == FAIL


def test_timeout_before_the_first_round_trip_that_meets_an_arrival() -> None:
    story = Story(syn_acks=(0.0, 1.0)).send(0).ack(0, after=1.0, data=b"x").send(0)
    assert story.ack(1, after=2.0).verdicts("SNR-SAK-005", "hk99") == NOTHING


@pytest.mark.parametrize(
    ("data", "waited", "expected"),
    [(b"x", 1.4, NOTHING), (b"", 1.7, NOTHING), (b"", 1.4, FAIL)],
)
def test_timeout_that_meets_an_arrival(data: bytes, waited: float, expected: set[Verdict]) -> None:
    story = Story().send(*range(8)).ack(4, (5, 6), after=RTT).ack(4, (5, 6), after=0.01)
    story.ack(4, (5, 6), after=waited * RTT, data=data).send(4).ack(8, after=RTT)
    assert story.verdicts("SNR-SAK-005", "hk99") == expected


def test_higher_hole_first_fails() -> None:
    story = Story().send(*range(12)).ack(1, after=RTT)
    story.ack(1, (2, 4), (5, 7), after=0.01).ack(1, (2, 4), (5, 9), after=0.01)
    assert story.send(4).verdicts("SNR-SAK-003") == FAIL


def test_lower_hole_first_passes() -> None:
    story = Story().send(*range(12)).ack(1, after=RTT)
    story.ack(1, (2, 4), (5, 7), after=0.01).ack(1, (2, 4), (5, 9), after=0.01)
    assert story.send(1).send(4, after=0.01).verdicts("SNR-SAK-003") == PASS


def test_segment_above_all_reports_retransmitted_fails() -> None:
    assert Verdict.FAIL in three_reports().send(2).send(7, after=0.01).verdicts("SNR-SAK-004")


def test_end_of_the_flight_retransmitted_once_is_a_rescue() -> None:
    assert three_reports().send(2).send(9, after=0.01).verdicts("SNR-SAK-004") == PASS


def test_later_retransmission_delivered_is_evidence() -> None:
    story = three_reports().send(2).ack(6, after=RTT).send(6, after=0.01)
    assert story.verdicts("SNR-SAK-004") == PASS


@pytest.mark.parametrize(("instead", "expected"), [((), PASS | FAIL), (WHOLE_PACKETS, PASS)])
def test_segment_that_leaves_again_as_held_data_did_later_and_is_acknowledged(
    instead: tuple[tuple[str, int], ...], expected: set[Verdict]
) -> None:
    """Who has lost the report of segment 3 takes its acknowledgment for news (780211)."""
    story = three_reports().send(2, 10, 11, 12).send(3, after=0.01).ack(7, after=RTT).send(10)
    judge_with = judging(story.trace(), {**CLAIMS, "rack": True})
    found = judge_with("SNR-SAK-004", instead, frozenset())
    assert {finding.verdict for finding in found} == expected


def _two_buffers() -> Story:
    """Two buffers of three kilo-octets in small segments, of which the first is acknowledged."""
    story = Story()
    for at in range(0, 6000, 1000):
        story.send_octets(at, 980, push=at == 2000).send_octets(at + 980, 20, push=at == 2000)
    return story.ack(1, after=RTT)


@pytest.mark.parametrize(
    ("longer", "start", "expected"),
    [(False, 3000, FAIL), (True, 3000, NOTHING), (True, 4000, FAIL), (True, 2000, FAIL)],
)
def test_probe_of_the_first_segment_of_the_last_buffer(
    longer: bool, start: int, expected: set[Verdict]
) -> None:
    """Segments have become longer meanwhile, and Linux does not find the last (3101040)."""
    story = _two_buffers().send_octets(start, 1000 if longer else 980, after=1.5 * RTT)
    story.ack(1, (start / 1000, start / 1000 + 0.98), after=RTT).send(1)
    judge_with = judging(story.trace(), {**CLAIMS, "rack": True, "tlp": True})
    found = judge_with("SNR-SAK-003", (("probes_first_of_last", longer),), frozenset())
    assert {finding.verdict for finding in found} == expected


@pytest.mark.parametrize(("start", "accused"), [(5000, False), (4000, True)])
def test_probe_of_a_part_of_the_last_segment_once_segments_are_shorter(
    start: int, accused: bool
) -> None:
    """The MTU that was found has been given up since (3122546)."""
    story = Story().send(*range(6)).ack(1, after=RTT).send_octets(start, 800, after=1.5 * RTT)
    story.ack(1, (start / 1000, start / 1000 + 0.8), after=RTT).send(1)
    assert (Verdict.FAIL in story.verdicts("SNR-SAK-003")) == accused


@pytest.mark.parametrize("grown", [False, True])
def test_timer_repeats_the_first_segment_of_the_last_buffer(grown: bool) -> None:
    """The same probe, after a silence that only a timer ends (3117640)."""
    story = _two_buffers().send_octets(3000, 1000, after=3 * RTT).ack(1, (3, 4), after=RTT)
    judge_with = judging(story.send(1).trace(), {**CLAIMS, "rack": True, "tlp": True})
    found = judge_with("SNR-RTO-008", (("probes_first_of_last", grown),), frozenset())
    assert (Verdict.FAIL in {finding.verdict for finding in found}) != grown


def test_first_report_starts_recovery_fails() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (3, 4), after=0.01).send(2)
    assert story.verdicts("SNR-SAK-006") == FAIL


def test_first_report_of_an_old_segment_starts_recovery_passes() -> None:
    story = Story().send(*range(5)).send(*range(5, 10), after=0.3).ack(2, after=RTT)
    story.ack(2, (5, 6), after=0.1).send(2)
    assert story.verdicts("SNR-SAK-006", claims={**CLAIMS, "rack": True}) == PASS
    assert story.verdicts("SNR-SAK-006") == FAIL


def test_second_retransmission_within_a_round_trip_fails() -> None:
    story = three_reports().send(2).ack(2, (3, 8), after=0.1).send(2)
    assert Verdict.FAIL in story.verdicts("SNR-SAK-009")
    assert Verdict.FAIL in story.verdicts("SNR-SAK-009", "hk99")


def _rescued() -> Story:
    """Segment 7, the last, is repaired by a rescue retransmission; then one above it arrives."""
    story = Story().send(*range(8)).ack(2, after=RTT)
    for top in (4, 5, 6):
        story.ack(2, (3, top), after=0.01)
    story.send(2, 7, 8, 9).ack(2, (3, 7), after=0.01)
    return story.ack(2, (8, 9), (3, 7), after=0.01).send(7)


def test_second_retransmission_after_a_rescue() -> None:
    assert _rescued().verdicts("SNR-SAK-009") == PASS
    assert Verdict.FAIL in _rescued().verdicts("SNR-SAK-009", "hk99")
    again = _rescued().ack(2, (8, 9), (3, 7), after=0.01).send(7)
    assert Verdict.FAIL in again.verdicts("SNR-SAK-009")


def _rescued_in_two_recoveries() -> Story:
    """Segment 12, the last, is rescued in two recoveries; then one above it arrives."""
    story = Story().send(*range(8)).ack(2, after=RTT)
    for top in (4, 5, 6):
        story.ack(2, (3, top), after=0.01)
    story.send(2, 8, 9, 10, 11, 12, 12).ack(8, after=RTT)
    for top in (10, 11, 12):
        story.ack(8, (9, top), after=0.01)
    story.send(8, 12, 13, 14)
    return story.ack(8, (13, 14), (9, 12), after=RTT).send(12)


def test_second_retransmission_after_rescues_in_two_recoveries() -> None:
    assert _rescued_in_two_recoveries().verdicts("SNR-SAK-009") == PASS
    again = _rescued_in_two_recoveries().ack(8, (13, 14), (9, 12), after=0.01).send(12)
    assert Verdict.FAIL in again.verdicts("SNR-SAK-009")


def test_second_retransmission_of_a_higher_hole_after_a_round_trip_needs_rack() -> None:
    story = Story().send(*range(14)).ack(1, after=RTT).ack(1, (2, 5), (6, 9), after=0.01)
    story.send(1, 5).ack(1, (2, 5), (6, 14), after=0.1).ack(5, (6, 14), after=RTT - 0.1).send(5)
    assert story.verdicts("SNR-SAK-009") == PASS
    assert Verdict.FAIL in story.verdicts("SNR-SAK-009", "hk99")


@pytest.mark.parametrize(("expires", "expected"), [(True, NOTHING), (False, FAIL)])
def test_segment_that_leaves_again_once_the_timer_of_another_has_expired(
    expires: bool, expected: set[Verdict]
) -> None:
    """The timer of segment 1 started when it left, and progress since has not restarted it."""
    story = Story().send(0).send(1, after=0.1).ack(1, after=0.5).send(2, 3, 4)
    if expires:
        story.send(1, after=0.3)
    story.ack(1, (2, 3), after=0.3).send(3)
    assert story.verdicts("SNR-SAK-004") == expected


@pytest.mark.parametrize(("late", "expected"), [(0.005, NOTHING), (0.0, PASS | FAIL)])
def test_segment_that_leaves_again_once_the_timer_of_another_may_have_met_a_report(
    late: float, expected: set[Verdict]
) -> None:
    """What leaves 5 ms after a report may be a timer's, what leaves at once answers it."""
    story = Story().send(0).send(1, after=0.02).send(2, after=0.35).ack(1, after=RTT - 0.37)
    story.send(3, 4).ack(1, (2, 3), after=0.37).send(1, after=late).send(3, after=late)
    assert story.verdicts("SNR-SAK-004") == expected


@pytest.mark.parametrize(("error", "accused"), [(1e-6, False), (0.001, True)])
def test_answer_that_takes_as_long_as_the_bed_may_be_late_is_no_timers(
    error: float, accused: bool
) -> None:
    """After a timeout all leaves again, 4 ms after the report of what is held."""
    story = Story(timing_error=error).send(*range(10)).ack(1, after=RTT)
    story.send(1, after=3.0).ack(2, (4, 10), after=RTT).send(2, after=0.004)
    story.ack(3, (4, 10), after=RTT).send(3, after=0.004).send(4, after=0.012)
    assert (Verdict.FAIL in story.verdicts("SNR-SAK-002")) == accused
