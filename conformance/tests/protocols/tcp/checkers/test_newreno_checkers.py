"""The checkers of the recovery phase on traces written by hand."""

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


def test_partial_acknowledgment_answered_or_not() -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(5, after=RTT)
    assert story.send(5).verdicts("SNR-REC-001") == PASS
    paced = (
        duplicates(window_limited_flight(), 2).send(2).ack(5, after=RTT).ack(5, after=0.01).send(5)
    )
    assert paced.ack(5, after=0.01).ack(5, after=0.01).verdicts("SNR-REC-001") == PASS
    assert paced.verdicts("SNR-REC-001", "hk99") == PASS
    reno = duplicates(
        duplicates(window_limited_flight(), 2).send(2).ack(5, after=RTT).send(16), 5
    ).send(5)
    assert reno.verdicts("SNR-REC-001") == FAIL
    assert reno.verdicts("SNR-REC-001", "hk99") == FAIL


@pytest.mark.parametrize(("ends", "expected"), [(False, FAIL), (True, NOTHING)])
def test_partial_acknowledgment_and_the_reset_of_a_user_before_its_third_duplicate(
    ends: bool, expected: set[Verdict]
) -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(5, after=RTT)
    if ends:
        story.reset(after=0.04)
    claims = {**CLAIMS, "prr": True}
    assert duplicates(story, 5).verdicts("SNR-REC-001", claims=claims) == expected


@pytest.mark.parametrize(("pieces", "expected"), [((1000,), FAIL), ((900, 100), NOTHING)])
def test_partial_acknowledgment_after_the_repair_of_what_the_path_refused(
    pieces: tuple[int, ...], expected: set[Verdict]
) -> None:
    """A longer segment was a try, whose loss starts no recovery (RFC 4821; encounter 3100844)."""
    story = Story(sack=False).send_octets(0, 900).send_octets(900, 1000)
    for start in range(1900, 9100, 900):
        story.send_octets(start, 900)
    duplicates(story.ack(0.9, after=RTT), 0.9)
    start = 900
    for piece in pieces:
        story.send_octets(start, piece)
        start += piece
    duplicates(story.ack(4.6, after=RTT), 4.6, 4)
    assert story.verdicts("SNR-REC-001", claims={**CLAIMS, "prr": True}) == expected


def test_partial_acknowledgment_by_late_data() -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(5, after=0.05).send(16)
    assert story.verdicts("SNR-REC-001") == NOTHING
    assert story.verdicts("SNR-REC-001", "hk99") == FAIL


def _timed_out(jump: int) -> Story:
    """A flight lost whole; after the timeout an acknowledgment jumps, and the next is repeated."""
    story = Story(sack=False).send(*range(20)).send(0, after=2.0).ack(1, after=RTT).send(1, 2)
    story.ack(3, after=RTT).send(*range(3, 7)).ack(3 + jump, after=RTT).send(3 + jump)
    return duplicates(story.ack(3 + jump, after=RTT), 3 + jump, 2)


def test_duplicates_below_recover_after_a_timeout() -> None:
    assert _timed_out(6).verdicts("SNR-REC-003") == PASS
    assert _timed_out(6).send(9).verdicts("SNR-REC-003") == FAIL


def test_duplicates_below_recover_of_a_sender_with_pacing() -> None:
    claims = {**CLAIMS, "pacing": True}
    assert _timed_out(6).send(9).verdicts("SNR-REC-003", claims=claims) == NOTHING
    for after, expected in ((0.1, FAIL), (RTT, PASS)):
        story = Story(sack=False).send(*range(20)).send(0, after=2.0).ack(1, after=RTT).send(1, 2)
        duplicates(story.ack(9, after=RTT).send(9, after=0.01), 9).send(9, after=after)
        assert story.ack(9, after=RTT).verdicts("SNR-REC-003", claims=claims) == expected


def test_duplicates_below_recover_where_the_heuristic_permits_an_entry() -> None:
    assert _timed_out(4).send(7).verdicts("SNR-REC-003") == NOTHING


def _at_recover(*, third: float = 0.01) -> Story:
    story = duplicates(window_limited_flight(), 2).send(2)
    story.ack(2, after=0.01).send(16, 17).ack(16, after=RTT).send(18)
    return story.ack(16, after=0.01).ack(16, after=0.01).ack(16, after=third)


def test_duplicates_exactly_at_recover() -> None:
    assert _at_recover().verdicts("SNR-REC-004") == PASS
    assert _at_recover().verdicts("SNR-REC-004", "hk99") == FAIL
    assert _at_recover().send(16).verdicts("SNR-REC-004") == FAIL
    assert _at_recover().send(16).verdicts("SNR-REC-004", "hk99") == PASS
    assert _at_recover(third=1.2).send(16).verdicts("SNR-REC-004", "hk99") == NOTHING


def test_two_retransmissions_for_one_acknowledgment() -> None:
    story = window_limited_flight(sack=True)
    for top in (4, 5, 6):
        story.ack(2, (3, top), after=0.01)
    story.send(2).ack(2, (3, 6), (8, 12), after=0.01).send(6, 7)
    assert story.verdicts("SNR-REC-007", "hk99") == FAIL
    assert story.verdicts("SNR-REC-007") == NOTHING


def test_burst_on_one_duplicate() -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(2, after=0.01)
    assert story.send(*range(16, 19)).verdicts("SNR-REC-007") == PASS
    assert story.send(19).verdicts("SNR-REC-007") == FAIL


@pytest.mark.parametrize(("stamps", "expected"), [(True, NOTHING), (False, FAIL)])
def test_burst_on_a_duplicate_after_the_retransmission_turned_out_unnecessary(
    stamps: bool, expected: set[Verdict]
) -> None:
    """An echo older than the retransmission ends the recovery (RFC 4015); 3120305."""
    story = Story(sack=False, stamps=stamps).send(*range(12)).ack(1, after=RTT)
    echoed = story._stamped
    duplicates(story, 1).send(1, after=0.01)
    story._stamped = echoed
    story.ack(8, after=0.01).ack(8, after=0.01)
    assert story.send(*range(12, 20)).verdicts("SNR-REC-007") == expected


def test_burst_behind_duplicates_the_bed_cannot_tell_apart() -> None:
    story = duplicates(window_limited_flight(), 2).send(2)
    for _ in range(4):
        story.ack(2, after=0.0001)
    story.send(*range(16, 20))
    assert story.verdicts("SNR-REC-007") == FAIL
    story.timing_error = 0.01
    assert story.verdicts("SNR-REC-007") == UNCLEAR


@pytest.mark.parametrize(("service", "late", "expected"), [
    (4321, 0.002, NOTHING), (4321, 0.0, FAIL), (19, 0.002, FAIL),
])  # fmt: skip
def test_burst_of_what_a_user_writes_soon_after_a_duplicate(
    service: int, late: float, expected: set[Verdict]
) -> None:
    # What waits behind the flight, whose last segment has no PSH, may be less than a segment.
    story = Story(sack=False, service=service).send(*range(9), push=True).send(9).ack(2, after=RTT)
    duplicates(story, 2).send(2).ack(2, after=0.01)
    assert story.send(*range(10, 14), after=late).verdicts("SNR-REC-007") == expected


def test_lost_retransmission_repaired_or_forgotten() -> None:
    def lost() -> Story:
        return duplicates(window_limited_flight(), 2).send(2)

    assert lost().send(2, after=1.5).verdicts("SNR-REC-008") == PASS
    assert lost().ack(2, after=20.0).verdicts("SNR-REC-008") == NOTHING
    assert lost().ack(2, after=40.0).verdicts("SNR-REC-008") == FAIL


@pytest.mark.parametrize(("silence", "expected"), [(100.0, NOTHING), (130.0, FAIL)])
def test_retransmission_not_repeated_yet_by_a_timer_that_was_backed_off(
    silence: float, expected: set[Verdict]
) -> None:
    """Timeouts of what went before left a timeout of a minute, which doubles."""
    story = Story(sack=False).send(0).ack(1, after=RTT).send(1).send(1, after=60.0)
    assert story.ack(1, after=silence).verdicts("SNR-REC-008") == expected


@pytest.mark.parametrize(("rtt", "expected"), [(RTT, FAIL), (6.0, NOTHING)])
def test_retransmission_not_repeated_yet_over_long_round_trips(
    rtt: float, expected: set[Verdict]
) -> None:
    story = Story(sack=False, rtt=rtt).send(0, 1, 2).ack(1, after=rtt).send(3)
    story = duplicates(story, 1).send(1).ack(1, after=40.0)
    assert story.verdicts("SNR-REC-008") == expected


def test_new_data_beyond_the_window_during_recovery() -> None:
    def full() -> Story:
        story = Story(sack=False, window=10 * SIZE).send(*range(10)).ack(0, after=RTT)
        return duplicates(story, 0, 2).send(0).ack(0, after=0.01)

    assert full().verdicts("SNR-REC-009") == PASS
    assert Verdict.FAIL in full().send(10).verdicts("SNR-REC-009")


def test_timeout_soon_after_a_partial_acknowledgment() -> None:
    story = duplicates(window_limited_flight(), 2).send(2).ack(5, after=RTT).send(5)
    assert story.send(5, after=0.3).verdicts("SNR-REC-010") == FAIL
    story = duplicates(window_limited_flight(), 2).send(2).ack(5, after=RTT).send(5)
    assert story.ack(8, after=RTT).send(8).verdicts("SNR-REC-010") == PASS


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


def test_going_back_after_a_timeout_soon_after_an_arrival_without_news() -> None:
    story = Story().send(*range(12)).ack(1, after=RTT).ack(1, (2, 3), (4, 5), after=0.01)
    story.ack(1, (2, 3), (4, 5), data=b"x", after=1.2).send(1, after=0.05)
    story.ack(2, (4, 5), after=RTT).send(2, 3)
    assert Verdict.FAIL not in story.verdicts("SNR-REC-007", "hk99")


@pytest.mark.parametrize(("wait", "expected"), [(0.01, FAIL), (1.5, NOTHING)])
def test_timeout_that_meets_a_duplicate_during_a_recovery(
    wait: float, expected: set[Verdict]
) -> None:
    story = window_limited_flight(sack=True).ack(2, (3, 4), after=0.01)
    story.ack(2, (3, 5), after=0.01).ack(2, (3, 6), after=0.01).send(2)
    story.ack(6, (7, 9), after=RTT).send(16).ack(6, (7, 10), after=wait).send(6)
    assert story.ack(16, after=0.01).send(16).verdicts("SNR-REC-012") == expected


@pytest.mark.parametrize(("reports", "accused"), [(3, True), (0, False)])
def test_recover_of_what_a_timeout_repairs_is_none_of_a_fast_retransmit(
    reports: int, accused: bool
) -> None:
    """In the paper a timeout records none, though it met a duplicate and seems to be no timeout."""
    story = duplicates(window_limited_flight(), 2).send(2).ack(2, after=0.01).send(16, 17, 18, 19)
    story.ack(2, after=1.0).send(2, after=0.008).ack(17, after=RTT)
    duplicates(story, 17, reports).send(17).send(17, after=3.0).ack(18, after=RTT).send(18)
    verdicts = duplicates(story, 18).send(18).verdicts("SNR-REC-003", "hk99")
    assert accused == (Verdict.FAIL in verdicts)


@pytest.mark.parametrize(("left", "expected"), [(9, NOTHING), (6, FAIL)])
def test_end_of_a_recovery_before_which_each_duplicate_let_a_segment_out(
    left: int, expected: set[Verdict]
) -> None:
    """RFC 5681 section 3.2 step 2 halves 20 segments, not the 30 that are outstanding then."""
    story = Story(sack=True).send(*range(20))
    for report in range(10):
        story.ack(0, (1, 2 + report), after=RTT if not report else 0.01).send(20 + report)
    story.send(0, after=0.01).ack(0, (1, 20), after=RTT).send(*range(30, 30 + left))
    assert story.ack(30, after=0.01).verdicts("SNR-REC-013") == expected
    assert story.send(30 + left).verdicts("SNR-REC-013") == (expected and PASS)


def test_end_of_a_recovery_with_which_the_next_begins() -> None:
    """What it lets out is the next recovery's first retransmission (RFC 8985 section 6.2)."""
    story = Story(sack=True).send(*range(20)).ack(0, (1, 4), after=RTT).send(0)
    story.ack(0, (1, 20), after=RTT).send(*range(20, 26)).ack(20, after=0.01)
    assert story.verdicts("SNR-REC-013") == FAIL
    assert story.send(20).verdicts("SNR-REC-013") == NOTHING


@pytest.mark.parametrize(("push", "expected"), [(True, NOTHING), (False, FAIL)])
def test_burst_at_a_duplicate_behind_one_that_found_the_queue_empty(
    push: bool, expected: set[Verdict]
) -> None:
    story = Story(sack=False).send(*range(9)).send(9, push=push).ack(2, after=RTT)
    duplicates(duplicates(story, 2).send(2), 2).send(*range(10, 14))
    assert story.verdicts("SNR-REC-007") == expected


@pytest.mark.parametrize(
    ("probes", "last", "expected"), [(True, 17, NOTHING), (True, 16, FAIL), (False, 17, FAIL)]
)
def test_tail_loss_probe_soon_after_the_end_of_a_recovery(
    probes: bool, last: int, expected: set[Verdict]
) -> None:
    """Its timer goes back to what left before the recovery ended (encounter 780178)."""
    story = window_limited_flight(sack=True).ack(2, (3, 4), after=0.01)
    story.ack(2, (3, 5), after=0.01).ack(2, (3, 6), after=0.01).send(2).ack(16, after=RTT)
    story.send(16, 17).send(last, after=0.014)
    assert story.verdicts("SNR-REC-012", claims={**CLAIMS, "tlp": probes}) - PASS == expected


@pytest.mark.parametrize(("start", "accused"), [(2000, False), (1000, True)])
def test_partial_acknowledgment_within_a_segment_that_leaves_whole_again(
    start: int, accused: bool
) -> None:
    story = duplicates(Story(sack=False).send(*range(16)).ack(1, after=RTT), 1).send(1)
    story.ack(2.5, after=RTT).send_octets(start, 1000)
    for _ in range(3):
        story.ack(2.5, after=0.01)
    assert (Verdict.FAIL in story.verdicts("SNR-REC-001")) == accused
