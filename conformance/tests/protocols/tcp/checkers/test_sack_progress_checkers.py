"""The checkers of the progress of a recovery with SACK on traces written by hand."""

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
    flight,
    three_reports,
)


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
    assert _new_data_after_recovery(octets=SIZE // 2).verdicts("SNR-SAK-010") == NOTHING


def test_second_hole_waiting_for_the_first_fails() -> None:
    story = Story().send(*range(16)).ack(0, (1, 4), after=RTT).send(0)
    for top in range(6, 17):
        story.ack(0, (1, 4), (5, top), after=0.01)
    story.ack(4, (5, 16), after=RTT - 0.1).send(4)
    assert story.verdicts("SNR-SAK-007") == FAIL


def _after_a_pause() -> Story:
    """Sixteen segments, from 4 on, that a pacing timer may have held back for a second."""
    return Story().send(*range(4)).ack(4, after=RTT).send(*range(4, 20), after=0.6)


@pytest.mark.parametrize(("pacing", "expected"), [(True, NOTHING), (False, FAIL)])
def test_recovery_shorter_than_a_pacing_timer_has_paused(
    pacing: bool, expected: set[Verdict]
) -> None:
    """What waits for the timer are the second hole, and new data."""
    claims = {**CLAIMS, "pacing": pacing}
    story = _after_a_pause().ack(4, (5, 8), after=0.1).send(4)
    for top in range(10, 21):
        story.ack(4, (5, 8), (9, top), after=0.01)
    story.ack(8, (9, 20), after=0.4).send(8)
    assert story.verdicts("SNR-SAK-007", claims=claims) == expected
    story = _after_a_pause().ack(6, after=0.1)
    for top in range(8, 21):
        story.ack(6, (7, top), after=0.01)
        if top == 10:
            story.send(6)
    story.ack(20, after=0.4).send(20)
    assert story.verdicts("SNR-SAK-010", claims=claims) == expected


def test_second_hole_before_the_first_is_acknowledged_passes() -> None:
    story = Story().send(*range(16)).ack(0, (1, 4), after=RTT).send(0)
    for top in range(6, 17):
        story.ack(0, (1, 4), (5, top), after=0.01)
    assert story.send(4).ack(4, (5, 16), after=RTT - 0.1).verdicts("SNR-SAK-007") == PASS


def test_single_report_of_six_unanswered_fails() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (3, 9), after=0.05)
    story.ack(2, (3, 9), after=2.0)
    assert story.verdicts("SNR-SAK-015") == FAIL


@pytest.mark.parametrize(
    ("short", "held", "expected"),
    [(500, 3, FAIL), (1, 3, FAIL), (0, 3, NOTHING), (500, 2, NOTHING), (1000, 3, FAIL)],
)
def test_single_report_of_two_full_segments_and_a_short_one(
    short: int, held: int, expected: set[Verdict]
) -> None:
    """RFC 6675 section 4: more than two segments' octets; a FIN may be one number of them."""
    story = Story(service=7).send(0, 1, 2).send_octets(3 * SIZE, short, push=True, fin=True)
    block = 1, 3 + (short + 1) / SIZE
    story.ack(0, block if held > 2 else (1, 3), after=RTT).ack(0, block, after=2.0)
    assert story.verdicts("SNR-SAK-015") == expected
    assert story.send(0).ack(0, after=1.0).verdicts("SNR-SAK-006").isdisjoint(FAIL)


def test_single_report_of_octets_that_are_no_three_segments() -> None:
    story = Story(service=7).send(0, 1).send_octets(2 * SIZE, 1000).send_octets(3 * SIZE, 1000)
    story.ack(0, (1, 3 + 1 / SIZE), after=RTT).ack(0, (1, 3 + 1 / SIZE), after=2.0)
    assert story.verdicts("SNR-SAK-015") == NOTHING


def test_single_report_of_six_answered_passes() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (3, 9), after=0.05).send(2)
    assert story.verdicts("SNR-SAK-015") == PASS


@pytest.mark.parametrize(
    ("pacing", "late", "expected"), [(True, 0.7, PASS), (True, 1.1, FAIL), (False, 0.7, FAIL)]
)
def test_single_report_of_six_answered_when_a_pacing_timer_lets_it(
    pacing: bool, late: float, expected: set[Verdict]
) -> None:
    """The user bounds the rate: what left before paused for 0.8 s (encounter 3101745)."""
    story = Story().send(*range(4)).ack(4, after=0.2).send(*range(4, 12), after=0.6)
    story.ack(5, after=0.2).ack(5, (6, 12), after=0.01).send(5, after=late).ack(12, after=0.2)
    assert story.verdicts("SNR-SAK-015", claims={**CLAIMS, "pacing": pacing}) == expected


@pytest.mark.parametrize(("held", "expected"), [(((11, 13),), NOTHING), ((), FAIL)])
def test_single_report_after_a_recovery_that_left_a_hole(
    held: tuple[tuple[int, int], ...], expected: set[Verdict]
) -> None:
    """The next one may have begun at its end: what is missing had been repaired (820307)."""
    story = three_reports().send(2, 10, 11, 12).ack(2, (3, 10), (11, 13), after=RTT).send(10)
    story.send(*range(13, 20)).ack(10 if held else 13, *held, after=RTT).ack(13, after=RTT)
    story.ack(13, (14, 19), after=0.1).ack(13, (14, 19), after=2.0)
    assert story.verdicts("SNR-SAK-015") - PASS == expected


def test_single_report_on_a_reordering_path_is_not_judged() -> None:
    story = Story().send(*range(10)).ack(1, after=RTT).ack(1, (2, 3), after=0.01).ack(3, after=0.01)
    story.ack(3, (4, 9), after=0.05).ack(3, (4, 9), after=2.0)
    assert story.verdicts("SNR-SAK-015") == NOTHING


def test_single_report_unanswered_before_a_reset_is_not_judged() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (3, 9), after=0.05)
    story.reset(after=0.001).ack(2, (3, 9), after=2.0)
    assert story.verdicts("SNR-SAK-015") == NOTHING


@pytest.mark.parametrize(("seq", "expected"), [(None, FAIL), (10_000_000, NOTHING)])
def test_blocks_of_a_segment_beyond_the_window_ask_for_no_retransmission(
    seq: int | None, expected: set[Verdict]
) -> None:
    story = flight(12, sack=True).ack(1, (2, 3), after=RTT)
    story.ack(1, (2, 4), after=0.01).ack(1, (2, 5), after=0.01).send(1)
    story.ack(1, (2, 5), (7, 12), after=0.1, seq=seq).ack(1, (2, 6), after=0.4)
    assert story.verdicts("SNR-SAK-008", "hk99") == expected


@pytest.mark.parametrize(("data", "expected"), [(b"", FAIL), (b"x", NOTHING)])
def test_second_hole_shown_by_the_last_report_before_the_peers_data(
    data: bytes, expected: set[Verdict]
) -> None:
    story = Story().send(*range(20)).ack(0, (1, 4), after=RTT).send(0)
    for top in range(5, 13):
        story.ack(0, (1, top), after=0.01)
    story.ack(0, (1, 12), (13, 17), after=0.01)
    for top in (18, 19, 20):
        story.ack(0, (1, 12), (13, 17 if data else top), after=0.01, data=data)
    story.ack(12, (13, 20), after=RTT - 0.2).send(12)
    assert story.verdicts("SNR-SAK-007") == expected


@pytest.mark.parametrize(("reset", "expected"), [(False, FAIL), (True, NOTHING)])
def test_hole_left_alone_in_a_recovery_that_a_reset_cut_short(
    reset: bool, expected: set[Verdict]
) -> None:
    story = flight(12, sack=True).ack(1, (2, 3), after=RTT)
    story.ack(1, (2, 4), after=0.01).ack(1, (2, 5), after=0.01).send(1)
    if reset:
        story.reset(after=0.001)
    story.ack(1, (2, 5), (7, 12), after=0.1).ack(1, (2, 6), after=0.4)
    assert story.verdicts("SNR-SAK-008", "hk99") == expected
