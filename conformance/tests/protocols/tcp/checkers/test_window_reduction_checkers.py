"""The checkers of the reduction of the window on traces written by hand."""

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
    flight,
    window_limited_flight,
)


def _recovered(first: int, outstanding: int, released: int) -> Story:
    """One loss in a flight; what was outstanding when it ended, and what its end released."""
    story = Story(sack=False).send(*range(first)).ack(0, after=RTT)
    duplicates(story, 0, 2).send(0)
    new = first
    for index in range(outstanding):
        story.ack(0, after=0.01).send(new + index)
    story.ack(first, after=RTT)
    last = first + outstanding
    return story.send(*range(last, last + released)) if released else story


@pytest.mark.parametrize(("outstanding", "released", "expected"), [(9, 1, PASS), (9, 9, FAIL)])
def test_flight_after_recovery(outstanding: int, released: int, expected: set[Verdict]) -> None:
    story = _recovered(20, outstanding, released)
    assert story.verdicts("SNR-FR-009", "hk99") == expected
    assert story.verdicts("SNR-REC-005", "hk99") == expected


@pytest.mark.parametrize(
    ("outstanding", "ack", "accused"), [(9, 11, False), (9, 11.5, True), (11, 11, True)]
)
def test_limited_transmit_soon_after_an_end_that_released_nothing(
    outstanding: int, ack: float, accused: bool
) -> None:
    """It sends two segments beyond a window that has grown again (RFC 3042)."""
    story = _recovered(10, outstanding, 0).ack(11, after=RTT / 2).ack(ack, after=0.01)
    story.send(10 + outstanding)
    assert (Verdict.FAIL in story.verdicts("SNR-FR-009")) == accused


def test_exit_with_nothing_outstanding_releases_one_segment_in_the_paper() -> None:
    assert _recovered(20, 0, 1).verdicts("SNR-REC-005", "hk99") == PASS
    assert _recovered(20, 0, 6).verdicts("SNR-REC-005", "hk99") == FAIL
    assert _recovered(20, 0, 6).verdicts("SNR-REC-005") == PASS


def test_cubic_may_keep_more() -> None:
    story = _recovered(30, 21, 2)
    assert story.verdicts("SNR-FR-009") == FAIL
    assert story.verdicts("SNR-FR-009", claims={**CLAIMS, "congestion_control": "cubic"}) == PASS
    assert story.verdicts("SNR-FR-009", claims={**CLAIMS, "congestion_control": "bbr"}) == NOTHING


def test_new_data_during_recovery_beyond_inflation() -> None:
    story = Story(sack=False).send(*range(20)).ack(0, after=RTT)
    duplicates(story, 0, 2).send(0)
    duplicates(story, 0, 5)
    assert story.verdicts("SNR-REC-006") == PASS
    assert story.send(*range(20, 31)).verdicts("SNR-REC-006") == FAIL


@pytest.mark.parametrize(("again", "expected"), [(True, NOTHING), (False, FAIL)])
def test_new_data_in_a_recovery_that_may_have_begun_within_the_repair_of_a_timeout(
    again: bool, expected: set[Verdict]
) -> None:
    story = Story().send(*range(12)).ack(2, after=RTT).send(2, after=2.0)
    for top, following in ((3, (3, 4)), (5, (5, 6, 7)), (8, (8, 9, 10, 11, 12, 13))):
        story.ack(top, after=RTT).send(*following)
    for _ in range(3):
        story.ack(9, (10, 12), (13, 14), after=0.01)
    if again:
        story.send(9)
    # The end of what the timeout repairs; 12 is not eligible (HK99 rule 5), and new data leaves.
    story.ack(12, (13, 14), after=RTT).send(14, 15, 16)
    for top in (15, 16, 17):
        story.ack(12, (13, top), after=RTT / 3)
    story.send(12).ack(12, (13, 17)).send(*range(17, 22))
    assert story.verdicts("SNR-REC-006", "hk99") == expected


@pytest.mark.parametrize(("waited", "expected"), [(None, FAIL), (1.5, NOTHING)])
def test_new_data_behind_a_timeout_that_met_a_duplicate(
    waited: float | None, expected: set[Verdict]
) -> None:
    story = duplicates(window_limited_flight(), 2).send(2)
    if waited is not None:
        story.ack(2, after=waited).send(2)
    story.ack(14, after=RTT).send(14, 16, 17, 18, 19)
    assert story.verdicts("SNR-REC-011") == expected


def _grown(*flights: int, after: float = RTT) -> Story:
    """Two losses in a flight of 24; afterwards the flight of each round trip."""
    story = Story(sack=False).send(*range(24)).ack(0, after=RTT)
    duplicates(story, 0, 2).send(0).ack(5, after=RTT).send(5)
    return _flights(story.ack(24, after=RTT), 24, *flights, after=after)


def _flights(story: Story, una: int, *flights: int, after: float = RTT) -> Story:
    """So many segments outstanding in each round trip, of which all are acknowledged."""
    top = una
    for outstanding in flights:
        story.send(*range(top, una + outstanding))
        una, top = top, una + outstanding
        story.ack(una, after=after)
    return story


@pytest.mark.parametrize(("pacing", "expected"), [(False, FAIL), (True, NOTHING)])
def test_flight_after_recovery_that_pacing_may_keep_small(
    pacing: bool, expected: set[Verdict]
) -> None:
    """At a rate of the user's what is in flight tells of no window (3118042)."""
    story = _grown(3, 4)
    for at in range(31, 71):
        story.send(at, after=0.002).ack(at - 3, after=RTT / 5)
    assert story.verdicts("SNR-REC-002", claims={**CLAIMS, "pacing": pacing}) == expected


def test_growth_after_one_reduction_and_after_several() -> None:
    assert _grown(2, 4, 8, 12, 13).verdicts("SNR-REC-002") == PASS
    assert _grown(*[3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7]).verdicts("SNR-REC-002") == FAIL
    assert _grown(3, 4, 5).verdicts("SNR-REC-002") == NOTHING


@pytest.mark.parametrize(("flights", "expected"), [
    ((3, 6, 12, 12, 13, 13), PASS), ((3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7), FAIL),
])  # fmt: skip
def test_growth_after_a_recovery_before_which_ten_duplicates_let_data_out(
    flights: tuple[int, ...], expected: set[Verdict]
) -> None:
    story = flight(24)
    for new in range(25, 35):
        story.ack(1, after=0.01).send(new)
    story.send(1).ack(5, after=RTT).send(5)
    story = _flights(story.ack(35, after=RTT), 35, *flights)
    assert story.verdicts("SNR-REC-002") == expected


def test_flight_before_the_end_of_recovery_at_the_same_instant() -> None:
    story = Story(sack=False).send(*range(12)).ack(0, after=RTT)
    duplicates(story, 0, 2).send(0)
    for _ in range(9):
        story.ack(0, after=RTT / 10)
    story.send(*range(12, 18), after=RTT / 10).ack(12).send(18)
    assert story.verdicts("SNR-FR-009") == PASS


def test_growth_in_round_trips_that_take_longer_than_the_smallest() -> None:
    assert _grown(2, 4, 8, 12, 13, after=3 * RTT).verdicts("SNR-REC-002") == PASS


def test_window_after_a_timeout_that_met_an_arrival_without_news() -> None:
    story = Story().send(*range(4)).ack(1, (2, 3), after=RTT).ack(1, (2, 3), data=b"x", after=1.2)
    story.send(1, after=0.018).ack(4, after=RTT).send(4, 5, 6)
    assert story.verdicts("SNR-REC-005", "hk99") == NOTHING


@pytest.mark.parametrize(("waited", "expected"), [(0.59, NOTHING), (0.19, FAIL)])
def test_window_after_a_timeout_that_met_the_third_duplicate(
    waited: float, expected: set[Verdict]
) -> None:
    story = Story().send(*range(8)).ack(1, (2, 3), after=RTT).ack(1, (2, 4), after=0.4)
    story.ack(1, (2, 5), after=waited).ack(1, (2, 6), after=0.01).send(1)
    assert story.ack(8, after=RTT).send(8, 9, 10).verdicts("SNR-REC-005", "hk99") == expected


def test_new_data_in_a_recovery_that_began_late() -> None:
    """Each duplicate has told of a segment that has left the network, those before it too."""
    story = duplicates(flight(20), 1, 10).send(1)
    duplicates(story, 1, 5).send(*range(21, 26))
    assert story.verdicts("SNR-REC-006") == PASS
    assert story.send(26).verdicts("SNR-REC-006") == FAIL


@pytest.mark.parametrize(("full", "expected"), [(True, NOTHING), (False, FAIL)])
def test_inflated_window_of_a_sender_whose_buffer_may_be_full(
    full: bool, expected: set[Verdict]
) -> None:
    story = Story(sack=False).send(*range(12), push=full).ack(2, after=RTT)
    story = duplicates(duplicates(story, 2).send(2), 2, 8).ack(12, after=RTT)
    assert story.verdicts("SNR-REC-014") == expected


@pytest.mark.parametrize(("unsent", "expected"), [(True, NOTHING), (False, FAIL)])
def test_inflated_window_beyond_the_receivers_which_unsent_data_seems_to_open(
    unsent: bool, expected: set[Verdict]
) -> None:
    """What acknowledges data never sent offers nothing (seed 15280018)."""
    room = 10 * SIZE if unsent else 20 * SIZE
    story = Story(sack=False, window=room).send(*range(12)).ack(2, after=RTT)
    duplicates(duplicates(story, 2).send(2), 2, 8)
    if unsent:
        story.ack(30, after=0.01)
    assert story.ack(12, after=RTT, window=20 * SIZE).verdicts("SNR-REC-014") == expected
