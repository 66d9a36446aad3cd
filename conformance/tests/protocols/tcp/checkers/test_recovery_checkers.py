"""The fast retransmit, limited transmit and NewReno checkers on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import CLAIMS, RTT, SIZE, Story

PASS, FAIL, UNCLEAR = {Verdict.PASS}, {Verdict.FAIL}, {Verdict.INCONCLUSIVE}


def _flight(segments: int = 12, *, sack: bool = False, una: int = 2) -> Story:
    """A flight of which the first ``una`` segments have been acknowledged, each clocking one."""
    story = Story(sack=sack).send(*range(segments)).ack(1, after=RTT).send(segments, segments + 1)
    for index in range(2, una + 1):
        new = segments + 2 * index - 2
        story.ack(index, after=0.01).send(new, new + 1)
    return story


def _duplicates(story: Story, segment: int, count: int = 3) -> Story:
    for _ in range(count):
        story.ack(segment, after=0.01)
    return story


# -- entering fast retransmit


def test_two_duplicates_then_a_retransmission() -> None:
    assert _duplicates(_flight(), 2, 2).send(2).verdicts("SNR-FR-001") == {
        Verdict.PASS,
        Verdict.FAIL,
    }
    assert _duplicates(_flight(), 2, 3).send(2).verdicts("SNR-FR-001") == PASS


def test_two_duplicates_in_a_small_flight_may_be_early_retransmit() -> None:
    story = Story(sack=False).send(0, 1, 2).ack(0, after=RTT).ack(0, after=0.01).send(0)
    assert story.verdicts("SNR-FR-001") == set()
    assert story.verdicts("SNR-FR-001", "hk99") >= FAIL


def test_timeout_soon_after_a_duplicate_is_no_early_retransmission() -> None:
    story = _flight().ack(2, after=1.2).send(2, after=0.008)
    assert Verdict.FAIL not in story.verdicts("SNR-FR-001")


def test_third_duplicate_answered_or_not() -> None:
    assert _duplicates(_flight(), 2).send(2).verdicts("SNR-FR-002") == PASS
    assert _duplicates(_flight(), 2).send(16, after=0.1).verdicts("SNR-FR-002") == FAIL
    assert _duplicates(_flight(), 2).send(3, 2).verdicts("SNR-FR-002") == FAIL


def test_third_duplicate_after_a_reset() -> None:
    story = _flight().ack(2, after=0.01).ack(2, after=0.01).reset().ack(2, after=0.01)
    assert story.ack(2, after=RTT).verdicts("SNR-FR-002") == set()


def test_third_duplicate_of_which_one_reports_a_duplicate_segment() -> None:
    story = Story().send(*range(8)).ack(2, after=RTT).ack(2, (1, 2), after=0.01)
    story.ack(2, (3, 4), after=0.01).ack(2, (3, 5), after=0.01).ack(2, (3, 6), after=0.1).send(2)
    assert story.verdicts("SNR-FR-002", "hk99") == set()


@pytest.mark.parametrize(("pacing", "expected"), [(False, FAIL), (True, PASS), (None, UNCLEAR)])
def test_third_duplicate_answered_later(pacing: bool | None, expected: set[Verdict]) -> None:
    claims = {**CLAIMS, "pacing": pacing}
    if pacing is None:
        del claims["pacing"]
    story = _duplicates(_flight(), 2).send(2, after=0.06)
    assert story.verdicts("SNR-FR-002", claims=claims) == expected


@pytest.mark.parametrize(("after", "expected"), [(0.05, FAIL), (0.004, set())])
def test_third_duplicate_whose_segment_is_acknowledged_soon(
    after: float, expected: set[Verdict]
) -> None:
    story = _duplicates(_flight(), 2).ack(6, after=after).send(16, after=0.001)
    assert story.verdicts("SNR-FR-002", claims={**CLAIMS, "pacing": False}) == expected
    paced = _duplicates(_flight(), 2).ack(6, after=after).send(16, after=0.001)
    assert paced.verdicts("SNR-FR-002", claims={**CLAIMS, "pacing": True}) == set()


def test_third_duplicate_after_seen_reordering_is_not_held_against_the_sender() -> None:
    story = _duplicates(_flight(), 2, 2).ack(5, after=0.01).send(16, 17)
    _duplicates(story, 5).ack(5, after=0.2)
    assert story.verdicts("SNR-FR-002") == set()
    assert story.verdicts("SNR-FR-002", "hk99") == FAIL


def test_third_duplicate_without_sack_information_counts_in_the_paper_only() -> None:
    story = _duplicates(_flight(sack=True), 2).ack(2, after=0.2)
    assert story.verdicts("SNR-FR-002") == set()
    assert story.verdicts("SNR-FR-002", "hk99") == FAIL


def test_one_held_segment_is_no_evidence() -> None:
    story = _flight(sack=True)
    assert story.ack(2, (3, 4), after=0.01).send(2).verdicts("SNR-FR-003") == FAIL


def test_one_distant_held_segment_is_evidence_for_the_paper() -> None:
    story = _flight(sack=True).ack(2, (5, 6), after=0.01).send(2)
    assert story.verdicts("SNR-FR-003", "hk99") == set()
    assert story.verdicts("SNR-FR-003") == FAIL


def test_one_held_segment_sent_much_later_is_evidence_in_time() -> None:
    story = Story().send(*range(6)).send(*range(6, 12), after=0.3).ack(2, after=RTT)
    story.ack(2, (6, 7), after=0.01).send(2)
    assert story.verdicts("SNR-FR-003") == set()


def test_window_updates_between_duplicates() -> None:
    story = _flight()
    for step in (1, 2, 3):
        story.ack(2, after=0.01, window=60000 + step * 1000)
    assert story.verdicts("SNR-FR-004") == PASS
    assert story.send(2).verdicts("SNR-FR-004") == FAIL


def test_segments_with_data_between_duplicates() -> None:
    story = _flight()
    for _ in range(3):
        story.ack(2, after=0.01, data=b"bentpipe")
    assert story.verdicts("SNR-FR-005") == PASS
    assert story.send(2).verdicts("SNR-FR-005") == FAIL


def test_second_retransmission_within_a_round_trip() -> None:
    story = _duplicates(_flight(), 2).send(2).ack(2, after=0.01)
    assert story.verdicts("SNR-FR-006") == PASS
    assert Verdict.FAIL in story.send(2).verdicts("SNR-FR-006")


def test_second_retransmission_a_round_trip_later() -> None:
    story = _duplicates(_flight(), 2).send(2).ack(2, after=RTT).send(2)
    assert Verdict.FAIL not in story.verdicts("SNR-FR-006")
    assert Verdict.FAIL in story.verdicts("SNR-FR-006", "hk99")


def test_rescue_retransmission_with_sack() -> None:
    story = _flight(sack=True)
    for top in (4, 5, 6):
        story.ack(2, (3, top), after=0.01)
    story.send(2).ack(2, (3, 7), after=0.01).send(2)
    assert Verdict.FAIL not in story.verdicts("SNR-FR-006")
    assert Verdict.FAIL in story.verdicts("SNR-FR-006", "hk99")


def test_duplicates_three_in_all_but_not_in_a_row() -> None:
    story = _duplicates(_flight(), 2, 2).ack(4, after=0.01).ack(4, after=0.01)
    assert story.verdicts("SNR-FR-007") == PASS
    assert story.send(4).verdicts("SNR-FR-007") == FAIL


def test_bare_repetitions_with_sack() -> None:
    story = _duplicates(_flight(sack=True), 2)
    assert story.verdicts("SNR-FR-008") == PASS
    assert story.send(2).verdicts("SNR-FR-008") == FAIL


# -- limited transmit


def test_first_two_duplicates_send_something_or_nothing() -> None:
    each = _flight().ack(2, after=0.01).send(16).ack(2, after=0.01).send(17)
    together = _flight().ack(2, after=0.01).ack(2, after=0.01).send(16, 17)
    nothing = _duplicates(_flight(), 2).send(2).ack(16, after=RTT).send(16)
    assert each.verdicts("SNR-LT-001") == together.verdicts("SNR-LT-001") == PASS
    assert nothing.verdicts("SNR-LT-001") == FAIL


def test_first_two_duplicates_while_less_than_a_segment_waits() -> None:
    story = _duplicates(_flight(), 2).send(2).ack(16, after=RTT)
    assert story.send_octets(16 * SIZE, SIZE // 2).verdicts("SNR-LT-001") == set()


def test_first_two_duplicates_send_too_much() -> None:
    within = _flight().ack(2, after=0.01).send(16).ack(2, after=0.01).send(17)
    beyond = _flight().ack(2, after=0.01).send(16, 17).ack(2, after=0.01).send(18, 19)
    assert within.verdicts("SNR-LT-002") == PASS
    assert within.verdicts("SNR-LT-002", "hk99") == FAIL
    assert Verdict.FAIL in beyond.verdicts("SNR-LT-002")


def test_first_duplicates_of_a_sender_with_slack_prove_nothing() -> None:
    story = Story(sack=False).send(*range(8)).ack(1, after=RTT).ack(2, after=0.01)
    assert story.ack(2, after=0.01).send(*range(8, 16)).verdicts("SNR-LT-002") == set()


def test_full_window_and_the_first_duplicates() -> None:
    def full() -> Story:
        return Story(sack=False, window=10 * SIZE).send(*range(10)).ack(0, after=RTT)

    assert full().verdicts("SNR-LT-003") == PASS
    assert full().send(10).verdicts("SNR-LT-003") == FAIL


def test_first_duplicates_that_report_nothing() -> None:
    story = _flight(sack=True).ack(2, after=0.01)
    assert story.verdicts("SNR-LT-004") == PASS
    assert story.send(16).verdicts("SNR-LT-004") == FAIL


@pytest.mark.parametrize(("push", "expected"), [(False, FAIL), (True, set())])
def test_first_duplicate_while_a_user_writes_little(push: bool, expected: set[Verdict]) -> None:
    story = Story(service=4321).send(*range(6), push=push).ack(1, after=RTT).send(6, push=push)
    story.ack(2, after=0.01).send(7, push=push).ack(2, after=0.01).send(8, push=push)
    assert story.verdicts("SNR-LT-004") == expected


# -- during recovery


def test_partial_acknowledgment_answered_or_not() -> None:
    story = _duplicates(_flight(), 2).send(2).ack(5, after=RTT)
    assert story.send(5).verdicts("SNR-REC-001") == PASS
    paced = _duplicates(_flight(), 2).send(2).ack(5, after=RTT).ack(5, after=0.01).send(5)
    assert paced.ack(5, after=0.01).ack(5, after=0.01).verdicts("SNR-REC-001") == PASS
    assert paced.verdicts("SNR-REC-001", "hk99") == PASS
    reno = _duplicates(_duplicates(_flight(), 2).send(2).ack(5, after=RTT).send(16), 5).send(5)
    assert reno.verdicts("SNR-REC-001") == FAIL
    assert reno.verdicts("SNR-REC-001", "hk99") == FAIL


def test_partial_acknowledgment_by_late_data() -> None:
    story = _duplicates(_flight(), 2).send(2).ack(5, after=0.05).send(16)
    assert story.verdicts("SNR-REC-001") == set()
    assert story.verdicts("SNR-REC-001", "hk99") == FAIL


def _timed_out(jump: int) -> Story:
    """A flight lost whole; after the timeout an acknowledgment jumps, and the next is repeated."""
    story = Story(sack=False).send(*range(20)).send(0, after=2.0).ack(1, after=RTT).send(1, 2)
    story.ack(3, after=RTT).send(*range(3, 7)).ack(3 + jump, after=RTT).send(3 + jump)
    return _duplicates(story.ack(3 + jump, after=RTT), 3 + jump, 2)


def test_duplicates_below_recover_after_a_timeout() -> None:
    assert _timed_out(6).verdicts("SNR-REC-003") == PASS
    assert _timed_out(6).send(9).verdicts("SNR-REC-003") == FAIL


def test_duplicates_below_recover_where_the_heuristic_permits_an_entry() -> None:
    assert _timed_out(4).send(7).verdicts("SNR-REC-003") == set()


def _at_recover(*, third: float = 0.01) -> Story:
    story = _duplicates(_flight(), 2).send(2)
    story.ack(2, after=0.01).send(16, 17).ack(16, after=RTT).send(18)
    return story.ack(16, after=0.01).ack(16, after=0.01).ack(16, after=third)


def test_duplicates_exactly_at_recover() -> None:
    assert _at_recover().verdicts("SNR-REC-004") == PASS
    assert _at_recover().verdicts("SNR-REC-004", "hk99") == FAIL
    assert _at_recover().send(16).verdicts("SNR-REC-004") == FAIL
    assert _at_recover().send(16).verdicts("SNR-REC-004", "hk99") == PASS
    assert _at_recover(third=1.2).send(16).verdicts("SNR-REC-004", "hk99") == set()


def test_two_retransmissions_for_one_acknowledgment() -> None:
    story = _flight(sack=True)
    for top in (4, 5, 6):
        story.ack(2, (3, top), after=0.01)
    story.send(2).ack(2, (3, 6), (8, 12), after=0.01).send(6, 7)
    assert story.verdicts("SNR-REC-007", "hk99") == FAIL
    assert story.verdicts("SNR-REC-007") == set()


def test_burst_on_one_duplicate() -> None:
    story = _duplicates(_flight(), 2).send(2).ack(2, after=0.01)
    assert story.send(*range(16, 19)).verdicts("SNR-REC-007") == PASS
    assert story.send(19).verdicts("SNR-REC-007") == FAIL


def test_burst_behind_duplicates_the_bed_cannot_tell_apart() -> None:
    story = _duplicates(_flight(), 2).send(2)
    for _ in range(4):
        story.ack(2, after=0.0001)
    story.send(*range(16, 20))
    assert story.verdicts("SNR-REC-007") == FAIL
    story.timing_error = 0.01
    assert story.verdicts("SNR-REC-007") == {Verdict.INCONCLUSIVE}


def test_lost_retransmission_repaired_or_forgotten() -> None:
    def lost() -> Story:
        return _duplicates(_flight(), 2).send(2)

    assert lost().send(2, after=1.5).verdicts("SNR-REC-008") == PASS
    assert lost().ack(2, after=20.0).verdicts("SNR-REC-008") == set()
    assert lost().ack(2, after=40.0).verdicts("SNR-REC-008") == FAIL


def test_new_data_beyond_the_window_during_recovery() -> None:
    def full() -> Story:
        story = Story(sack=False, window=10 * SIZE).send(*range(10)).ack(0, after=RTT)
        return _duplicates(story, 0, 2).send(0).ack(0, after=0.01)

    assert full().verdicts("SNR-REC-009") == PASS
    assert Verdict.FAIL in full().send(10).verdicts("SNR-REC-009")


def test_timeout_soon_after_a_partial_acknowledgment() -> None:
    story = _duplicates(_flight(), 2).send(2).ack(5, after=RTT).send(5)
    assert story.send(5, after=0.3).verdicts("SNR-REC-010") == FAIL
    story = _duplicates(_flight(), 2).send(2).ack(5, after=RTT).send(5)
    assert story.ack(8, after=RTT).send(8).verdicts("SNR-REC-010") == PASS


# -- the window


def _recovered(flight: int, outstanding: int, released: int) -> Story:
    """One loss in a flight; what was outstanding when it ended, and what its end released."""
    story = Story(sack=False).send(*range(flight)).ack(0, after=RTT)
    _duplicates(story, 0, 2).send(0)
    new = flight
    for index in range(outstanding):
        story.ack(0, after=0.01).send(new + index)
    story.ack(flight, after=RTT)
    last = flight + outstanding
    return story.send(*range(last, last + released)) if released else story


@pytest.mark.parametrize(("outstanding", "released", "expected"), [(9, 1, PASS), (9, 9, FAIL)])
def test_flight_after_recovery(outstanding: int, released: int, expected: set[Verdict]) -> None:
    story = _recovered(20, outstanding, released)
    assert story.verdicts("SNR-FR-009", "hk99") == expected
    assert story.verdicts("SNR-REC-005", "hk99") == expected


def test_exit_with_nothing_outstanding_releases_one_segment_in_the_paper() -> None:
    assert _recovered(20, 0, 1).verdicts("SNR-REC-005", "hk99") == PASS
    assert _recovered(20, 0, 6).verdicts("SNR-REC-005", "hk99") == FAIL
    assert _recovered(20, 0, 6).verdicts("SNR-REC-005") == PASS


def test_cubic_may_keep_more() -> None:
    story = _recovered(30, 21, 2)
    assert story.verdicts("SNR-FR-009") == FAIL
    assert story.verdicts("SNR-FR-009", claims={**CLAIMS, "congestion_control": "cubic"}) == PASS
    assert story.verdicts("SNR-FR-009", claims={**CLAIMS, "congestion_control": "bbr"}) == set()


def test_new_data_during_recovery_beyond_inflation() -> None:
    story = Story(sack=False).send(*range(20)).ack(0, after=RTT)
    _duplicates(story, 0, 2).send(0)
    _duplicates(story, 0, 5)
    assert story.verdicts("SNR-REC-006") == PASS
    assert story.send(*range(20, 31)).verdicts("SNR-REC-006") == FAIL


def _grown(*flights: int, after: float = RTT) -> Story:
    """Two losses in a flight of 24; afterwards the flight of each round trip."""
    story = Story(sack=False).send(*range(24)).ack(0, after=RTT)
    _duplicates(story, 0, 2).send(0).ack(5, after=RTT).send(5)
    una, top = 24, 24
    story.ack(una, after=RTT)
    for flight in flights:
        story.send(*range(top, una + flight))
        una, top = top, una + flight
        story.ack(una, after=after)
    return story


def test_growth_after_one_reduction_and_after_several() -> None:
    assert _grown(2, 4, 8, 12, 13).verdicts("SNR-REC-002") == PASS
    assert _grown(*[3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7]).verdicts("SNR-REC-002") == FAIL
    assert _grown(3, 4, 5).verdicts("SNR-REC-002") == set()


def test_flight_before_the_end_of_recovery_at_the_same_instant() -> None:
    story = Story(sack=False).send(*range(12)).ack(0, after=RTT)
    _duplicates(story, 0, 2).send(0)
    for _ in range(9):
        story.ack(0, after=RTT / 10)
    story.send(*range(12, 18), after=RTT / 10).ack(12).send(18)
    assert story.verdicts("SNR-FR-009") == PASS


def test_new_data_of_a_user_beside_a_retransmission() -> None:
    def story(*, push: bool) -> Story:
        told = Story(service=4321).send(*range(12), push=push).ack(2, after=RTT)
        for top in (4, 5, 6):
            told.ack(2, (3, top), after=0.01)
        told.send(2).ack(2, (3, 6), (7, 8), after=0.01).ack(2, (3, 6), (7, 12), after=0.01)
        return told.send(6, 12, push=push)

    assert story(push=False).verdicts("SNR-REC-007", "hk99") >= FAIL
    assert story(push=False).verdicts("SNR-SAK-008", "hk99") >= FAIL
    for requirement in ("SNR-REC-007", "SNR-SAK-008"):
        assert Verdict.FAIL not in story(push=True).verdicts(requirement, "hk99")


def test_growth_in_round_trips_that_take_longer_than_the_smallest() -> None:
    assert _grown(2, 4, 8, 12, 13, after=3 * RTT).verdicts("SNR-REC-002") == PASS


def test_window_after_a_timeout_that_met_an_arrival_without_news() -> None:
    story = Story().send(*range(4)).ack(1, (2, 3), after=RTT).ack(1, (2, 3), data=b"x", after=1.2)
    story.send(1, after=0.018).ack(4, after=RTT).send(4, 5, 6)
    assert story.verdicts("SNR-REC-005", "hk99") == set()
