"""The largest window that RFC 5681 permits, on traces written by hand."""

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
    duplicates,
)

PLAIN = {**CLAIMS, "byte_counting": "no"}


def _timed_out(flight: int = 8) -> Story:
    """A flight is lost; after a timeout one acknowledgment covers it."""
    story = Story(sack=False, service=7).send(*range(flight)).ack(0, after=0.1)
    return story.send(0, after=2.0).ack(flight, after=RTT)


@pytest.mark.parametrize(("burst", "expected"), [(3, PASS), (8, FAIL)])
def test_small_window_idle_then_burst(burst: int, expected: set[Verdict]) -> None:
    story = _timed_out().send(*range(8, 8 + burst), after=60.0).ack(9, after=RTT)
    assert story.verdicts("SNR-SS-004", claims=PLAIN) == expected


@pytest.mark.parametrize(("added", "expected"), [(1, PASS), (3, FAIL)])
def test_slow_start_after_timeout_ended_growth(added: int, expected: set[Verdict]) -> None:
    story = _timed_out(8).send(8, 9)
    sent, acked = 10, 8
    for _ in range(2):
        for _ in range(sent - acked):
            acked += 1
            story.ack(acked, after=0.01)
            story.send(*range(sent, acked + 4))
            sent = max(sent, acked + 4)
    story.ack(acked + 1, after=RTT).send(*range(sent, sent + 1 + added))
    assert story.verdicts("SNR-CA-002", claims=PLAIN) == expected


def test_one_of_two_copies_reported_leaves_the_window_reduced() -> None:
    story = Story().send(*range(20)).ack(0, after=RTT)
    for top in range(2, 5):
        story.ack(0, (1, top), after=0.01)
    story.send(0)
    for top in range(5, 20):
        story.ack(0, *((1, 4), (5, top + 1)), after=0.01)
    story.send(4).ack(20, (0, 1), after=RTT)
    story.send(*range(20, 30))
    assert story.verdicts("SNR-FR-009", claims=PLAIN) == PASS
    assert story.send(*range(30, 36)).verdicts("SNR-FR-009", claims=PLAIN) == FAIL


def test_duplicates_right_after_recovery_begin_another() -> None:
    story = Story(sack=False).send(*range(16)).ack(0, after=RTT)
    duplicates(story, 0, 2).send(0)
    duplicates(story, 0, 12).send(16, 17, 18, 19, 20)
    story.ack(17, after=RTT)
    duplicates(story, 17, 3).ack(17, after=1.0)
    assert story.verdicts("SNR-FR-002", claims=PLAIN) == FAIL
    racked = {**PLAIN, "rack": True}
    assert story.verdicts("SNR-FR-002", claims=racked) == NOTHING


def test_timeout_soon_after_a_report_is_no_fast_recovery() -> None:
    story = Story().send(*range(6)).ack(0, (1, 2), after=2.0)
    story.ack(0, (1, 3), after=0.01).send(0, after=0.1)
    story.ack(6, after=RTT).send(*range(6, 11))
    assert story.verdicts("SNR-FR-009", claims=PLAIN) == NOTHING


@pytest.mark.parametrize(("window", "expected"), [(16000, PASS), (None, FAIL)])
def test_what_a_window_that_opens_with_a_report_lets_out_is_halved_as_well(
    window: int | None, expected: set[Verdict]
) -> None:
    """Eight segments left on a report, sixteen are outstanding when the recovery begins."""
    story = Story(window=8000).send(*range(8)).ack(0, (1, 2), after=RTT, window=window)
    story.send(*range(8, 16)).ack(0, (1, 3), after=0.01, window=window)
    story.ack(0, (1, 4), after=0.01, window=window).send(0)
    story.ack(16, after=RTT, window=window).send(*range(16, 24))
    assert story.verdicts("SNR-FR-009", claims=PLAIN) == expected


@pytest.mark.parametrize(("segments", "expected"), [(1, PASS), (2, PASS | FAIL)])
def test_duplicate_when_what_earlier_duplicates_let_out_is_still_outstanding(
    segments: int, expected: set[Verdict]
) -> None:
    story = duplicates(Story(sack=False).send(*range(16)).ack(0, after=RTT), 0, 2).send(0)
    story.ack(16, after=RTT).send(*range(16, 24))
    duplicates(story, 16, 1).send(24)
    duplicates(story, 16, 1).send(25).ack(18, after=RTT).send(26, 27)
    duplicates(story, 18, 1).send(28)
    duplicates(story, 18, 1).send(29).ack(19, after=0.01)
    duplicates(story, 19, 1).send(*range(30, 30 + segments))
    story.ack(30, after=RTT)
    assert story.verdicts("SNR-FR-009", claims=PLAIN) == expected
