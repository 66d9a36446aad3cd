"""The SACK and acknowledgment checkers on traces written by hand: both verdicts of each rule."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import RTT, SIZE, Story


def _three_reports(hole: int = 2, total: int = 10) -> Story:
    """Ten segments, one lost, three reports 10 ms apart."""
    story = Story().send(*range(total)).ack(hole, after=RTT)
    for top in range(hole + 2, hole + 5):
        story.ack(hole, (hole + 1, top), after=0.01)
    return story


PASS, FAIL = {Verdict.PASS}, {Verdict.FAIL}


def test_hole_retransmitted_is_missing() -> None:
    story = _three_reports().send(2)
    for requirement in ("SNR-SAK-001", "SNR-SAK-004", "SNR-SAK-006", "SNR-SAK-009"):
        assert story.verdicts(requirement) == PASS
    assert story.verdicts("SNR-SAK-005", "hk99") == PASS


def test_held_segment_retransmitted_fails() -> None:
    assert _three_reports().send(2).send(3, after=0.01).verdicts("SNR-SAK-001") == {
        Verdict.PASS,
        Verdict.FAIL,
    }


def test_held_segment_retransmitted_in_a_race_is_not_judged() -> None:
    story = _three_reports().send(2).ack(2, (3, 7), after=0.01).send(6)
    assert story.verdicts("SNR-SAK-001") == PASS


def test_held_segment_retransmitted_after_reneging_is_no_failure() -> None:
    story = _three_reports().send(2).ack(3, after=RTT).send(3, after=1.0).send(4, after=0.01)
    assert Verdict.FAIL not in story.verdicts("SNR-SAK-001")
    assert story.verdicts("SNR-SAK-011") == PASS


def test_held_segment_retransmitted_after_timeout_without_news_is_no_failure() -> None:
    story = _three_reports().send(2, after=3.0).ack(3, (9, 10), after=RTT).send(3, 4)
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
    story = _three_reports().send(2).ack(3, after=RTT).ack(3, after=30.0)
    assert story.verdicts("SNR-SAK-011") == FAIL


def test_timeout_before_the_first_round_trip_that_meets_an_arrival() -> None:
    story = Story(syn_acks=(0.0, 1.0)).send(0).ack(0, after=1.0, data=b"x").send(0)
    assert story.ack(1, after=2.0).verdicts("SNR-SAK-005", "hk99") == set()


def test_going_back_after_a_timeout_soon_after_an_arrival_without_news() -> None:
    story = Story().send(*range(12)).ack(1, after=RTT).ack(1, (2, 3), (4, 5), after=0.01)
    story.ack(1, (2, 3), (4, 5), data=b"x", after=1.2).send(1, after=0.05)
    story.ack(2, (4, 5), after=RTT).send(2, 3)
    assert Verdict.FAIL not in story.verdicts("SNR-REC-007", "hk99")


def test_higher_hole_first_fails() -> None:
    story = Story().send(*range(12)).ack(1, after=RTT)
    story.ack(1, (2, 4), (5, 7), after=0.01).ack(1, (2, 4), (5, 9), after=0.01)
    assert story.send(4).verdicts("SNR-SAK-003") == FAIL


def test_lower_hole_first_passes() -> None:
    story = Story().send(*range(12)).ack(1, after=RTT)
    story.ack(1, (2, 4), (5, 7), after=0.01).ack(1, (2, 4), (5, 9), after=0.01)
    assert story.send(1).send(4, after=0.01).verdicts("SNR-SAK-003") == PASS


def test_segment_above_all_reports_retransmitted_fails() -> None:
    assert Verdict.FAIL in _three_reports().send(2).send(7, after=0.01).verdicts("SNR-SAK-004")


def test_end_of_the_flight_retransmitted_once_is_a_rescue() -> None:
    assert _three_reports().send(2).send(9, after=0.01).verdicts("SNR-SAK-004") == PASS


def test_later_retransmission_delivered_is_evidence() -> None:
    story = _three_reports().send(2).ack(6, after=RTT).send(6, after=0.01)
    assert story.verdicts("SNR-SAK-004") == PASS


def test_first_report_starts_recovery_fails() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (3, 4), after=0.01).send(2)
    assert story.verdicts("SNR-SAK-006") == FAIL


def test_first_report_of_an_old_segment_starts_recovery_passes() -> None:
    story = Story().send(*range(5)).send(*range(5, 10), after=0.3).ack(2, after=RTT)
    assert story.ack(2, (5, 6), after=0.1).send(2).verdicts("SNR-SAK-006") == PASS


def test_second_retransmission_within_a_round_trip_fails() -> None:
    story = _three_reports().send(2).ack(2, (3, 8), after=0.1).send(2)
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


def _new_data_after_recovery(*, service: int = 19, octets: int = SIZE) -> Story:
    """A recovery that sends nothing new although nearly all of the window is held."""
    story = Story(service=service).send(*range(20)).ack(6, after=RTT)
    for top in range(8, 21):
        story.ack(6, (7, top), after=0.01)
        if top == 10:
            story.send(6)
    return story.ack(20, after=RTT).send_octets(20 * SIZE, octets)


def test_nothing_new_in_recovery_of_a_sender_with_data_or_less_than_a_segment() -> None:
    assert _new_data_after_recovery().verdicts("SNR-SAK-010") == FAIL
    assert _new_data_after_recovery(service=4321).verdicts("SNR-SAK-010") == FAIL
    assert _new_data_after_recovery(octets=SIZE // 2).verdicts("SNR-SAK-010") == set()


def test_second_retransmission_of_a_higher_hole_after_a_round_trip_needs_rack() -> None:
    story = Story().send(*range(14)).ack(1, after=RTT).ack(1, (2, 5), (6, 9), after=0.01)
    story.send(1, 5).ack(1, (2, 5), (6, 14), after=0.1).ack(5, (6, 14), after=RTT - 0.1).send(5)
    assert story.verdicts("SNR-SAK-009") == PASS
    assert Verdict.FAIL in story.verdicts("SNR-SAK-009", "hk99")


def test_second_hole_waiting_for_the_first_fails() -> None:
    story = Story().send(*range(16)).ack(0, (1, 4), after=RTT).send(0)
    for top in range(6, 17):
        story.ack(0, (1, 4), (5, top), after=0.01)
    story.ack(4, (5, 16), after=RTT - 0.1).send(4)
    assert story.verdicts("SNR-SAK-007") == FAIL


def test_second_hole_before_the_first_is_acknowledged_passes() -> None:
    story = Story().send(*range(16)).ack(0, (1, 4), after=RTT).send(0)
    for top in range(6, 17):
        story.ack(0, (1, 4), (5, top), after=0.01)
    assert story.send(4).ack(4, (5, 16), after=RTT - 0.1).verdicts("SNR-SAK-007") == PASS


def test_single_report_of_six_unanswered_fails() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (3, 9), after=0.05)
    story.ack(2, (3, 9), after=2.0)
    assert story.verdicts("SNR-SAK-015") == FAIL


def test_single_report_of_six_answered_passes() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (3, 9), after=0.05).send(2)
    assert story.verdicts("SNR-SAK-015") == PASS


def test_single_report_on_a_reordering_path_is_not_judged() -> None:
    story = Story().send(*range(10)).ack(1, after=RTT).ack(1, (2, 3), after=0.01).ack(3, after=0.01)
    story.ack(3, (4, 9), after=0.05).ack(3, (4, 9), after=2.0)
    assert story.verdicts("SNR-SAK-015") == set()


@pytest.mark.parametrize(
    ("requirement", "blocks"),
    [
        ("SNR-SAK-012", [(6, 5)]),
        ("SNR-SAK-012", [(6, 6)]),
        ("SNR-SAK-012", [(400, 402)]),
        ("SNR-SAK-014", [(0, 1)]),
    ],
)
def test_odd_block_answered_by_a_retransmission_fails(
    requirement: str, blocks: list[tuple[float, float]]
) -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, *blocks, after=0.05)
    assert story.verdicts(requirement) == PASS
    assert story.send(2).verdicts(requirement) == FAIL


def test_reset_right_after_an_odd_block_by_a_service_or_another_user() -> None:
    def reset(service: int) -> Story:
        story = Story(service=service).send(*range(10)).ack(2, after=RTT)
        return story.ack(2, (0, 1), after=0.05).reset()

    assert reset(19).verdicts("SNR-SAK-014") == FAIL
    assert reset(4321).verdicts("SNR-SAK-014") == PASS


def test_reset_in_answer_to_what_follows_a_reset_by_the_tester() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).reset(after=0.1, outgoing=False)
    assert story.ack(2, (0, 1), after=0.05).reset().verdicts("SNR-SAK-014") == PASS


def test_reset_in_answer_to_an_odd_block_for_a_connection_that_is_over() -> None:
    def over(segments: float) -> Story:
        story = (
            Story().send(*range(3)).ack(3, fin=True, after=RTT).send_octets(3000, 1000, fin=True)
        )
        return story.ack(segments, after=RTT).ack(segments, (2, 3), after=0.05).reset()

    assert over(4.001).verdicts("SNR-SAK-014") == PASS
    assert over(3).verdicts("SNR-SAK-014") == FAIL


def test_block_without_negotiation_answered_by_a_retransmission_fails() -> None:
    story = Story(sack=False).send(*range(10)).ack(2, after=RTT).ack(2, (3, 9), after=0.05)
    assert story.verdicts("SNR-SAK-016") == PASS
    assert story.send(2).verdicts("SNR-SAK-016") == FAIL


def test_odd_block_followed_by_long_silence_fails() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (6, 5), after=0.05).ack(2, after=60.0)
    assert Verdict.FAIL in story.verdicts("SNR-SAK-012")


def test_old_acknowledgment_with_a_larger_window() -> None:
    story = Story(window=10 * SIZE).send(*range(10)).ack(4, after=RTT).send(*range(10, 14))
    story.ack(1, after=0.05, window=60000)
    assert story.verdicts("SNR-ACK-001") == PASS
    assert story.send(14).verdicts("SNR-ACK-001") == FAIL


def test_acknowledgment_of_unsent_data() -> None:
    story = Story(window=10 * SIZE).send(*range(10)).ack(4, after=RTT).send(*range(10, 14))
    story.ack(30, after=0.05)
    silent = len(story.packets)
    story.ack(4, after=0.3)
    assert story.verdicts("SNR-ACK-002") == PASS
    assert story.verdicts("SNR-ACK-003") == FAIL
    story.packets[silent:] = []
    story.at -= 0.3
    assert story.send(30).verdicts("SNR-ACK-002") == FAIL


def test_segment_beyond_the_receive_window() -> None:
    story = Story(window=10 * SIZE).send(*range(10)).ack(4, after=RTT).send(*range(10, 14))
    story.ack(14, after=0.05, seq=1 << 30)
    assert story.verdicts("SNR-ACK-008") == PASS
    assert story.send(14, 15).verdicts("SNR-ACK-008") == FAIL


def _split(per_piece: int) -> Story:
    """Ten segments acknowledged in halves; each piece releases so many segments."""
    story = Story(window=65535).send(*range(10))
    story.at += RTT
    following = 10
    for piece in range(1, 21):
        story.ack(piece / 2, after=0.001).send(*range(following, following + per_piece))
        following += per_piece
    return story


def test_split_acknowledgments_opening_the_window_per_acknowledgment_fails() -> None:
    assert _split(1).verdicts("SNR-ACK-004") == PASS
    assert _split(3).verdicts("SNR-ACK-004") == FAIL


def _stretch(released: int) -> Story:
    story = Story(window=65535).send(*range(20))
    following = 20
    for index in range(1, 5):
        story.ack(5 * index, after=RTT).send(*range(following, following + released))
        following += released
    return story


def test_stretch_acknowledgment_released_one_segment_fails() -> None:
    assert _stretch(5).verdicts("SNR-ACK-006") == PASS
    assert _stretch(1).verdicts("SNR-ACK-006") == FAIL


def test_stretch_acknowledgments_released_too_much_fails() -> None:
    assert _stretch(7).verdicts("SNR-ACK-005") == PASS
    assert _stretch(15).verdicts("SNR-ACK-005") == FAIL


def _storm(each: tuple[int, ...]) -> Story:
    story = Story(sack=False).send(*range(10)).ack(2, after=RTT)
    for index in range(10):
        story.ack(2, after=0.001)
        if index >= 2:
            story.send(*each)
    return story


def test_duplicate_storm() -> None:
    assert _storm(()).verdicts("SNR-ACK-007") == PASS
    assert _storm((2,)).verdicts("SNR-ACK-007") == FAIL
