"""The checkers of what a timeout sends and what follows it on traces written by hand."""

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
    flight,
    three_reports,
    window_limited_flight,
)


def test_timeout_sends_one_segment_or_two() -> None:
    assert flight().send(1, after=2).ack(2, after=RTT).verdicts("SNR-RTO-007") == PASS
    assert flight().send(1, 2, after=2).verdicts("SNR-RTO-007") == FAIL


@pytest.mark.parametrize(("service", "expected"), [(19, FAIL), (4321, PASS)])
def test_user_writes_little_when_the_timer_expires(service: int, expected: set[Verdict]) -> None:
    story = Story(service=service).send_octets(0, 9, push=True).ack(0.009, after=RTT)
    story.send_octets(9, 9, push=True).send_octets(18, 9, push=True)
    story.send_octets(9, 9, after=1.8).send_octets(9, 9, after=3.6)
    story.send_octets(27, 9, push=True)
    assert story.ack(0.036, after=RTT).verdicts("SNR-RTO-007") == expected


def test_second_timeout_repeats_the_same_segment() -> None:
    story = flight().send(1, after=2).send(1, after=4).ack(2, after=RTT)
    assert story.verdicts("SNR-RTO-007") == PASS


def test_timer_repeats_another_than_the_earliest() -> None:
    assert flight().send(1, after=2).verdicts("SNR-RTO-008") == PASS
    assert flight().send(3, after=2).verdicts("SNR-RTO-008") == FAIL
    assert flight().send(8, after=2).verdicts("SNR-RTO-008") == FAIL
    assert flight(sack=True).send(8, after=2).verdicts("SNR-RTO-008") == NOTHING


BLOCK = ((200, 210),)
"""A SACK block of the sender's own, which takes 12 octets from a segment."""


@pytest.mark.parametrize(
    ("start", "octets", "sack", "expected"),
    [
        (8 * SIZE, SIZE - 12, BLOCK, NOTHING),
        (8 * SIZE - 36, SIZE - 12, BLOCK, NOTHING),
        (8 * SIZE, SIZE - 12, (), FAIL),
        (8 * SIZE, SIZE - 13, BLOCK, FAIL),
        (7 * SIZE, SIZE - 12, BLOCK, FAIL),
    ],
)
def test_probe_of_the_tail_is_cut_by_options(
    start: int, octets: int, sack: tuple[tuple[int, int], ...], expected: set[Verdict]
) -> None:
    story = flight(sack=True).send_octets(start, octets, after=2, sack=sack)
    assert story.verdicts("SNR-RTO-008") == expected


@pytest.mark.parametrize(("sack", "expected"), [(BLOCK, NOTHING), ((), PASS)])
def test_lone_segment_is_probed_in_part(
    sack: tuple[tuple[int, int], ...], expected: set[Verdict]
) -> None:
    story = Story().send(0).ack(1, after=RTT).send(1)
    story.send_octets(SIZE, SIZE - 12, after=2, sack=sack)
    assert story.verdicts("SNR-RTO-008") == expected


def test_window_after_a_timeout_and_an_acknowledgment_in_what_is_dropped() -> None:
    story = flight().send(1, after=2).ack(9, seq=99_000_000, data=b"x", after=RTT).send(9, 10, 11)
    assert Verdict.FAIL not in story.verdicts("SNR-RTO-009")


def test_window_after_a_timeout() -> None:
    story = flight().send(1, after=2).ack(2, after=RTT).send(2, 3)
    assert story.verdicts("SNR-RTO-009") == PASS
    story = flight().send(1, after=2).ack(2, after=RTT).send(2, 3, 4, 5)
    assert story.verdicts("SNR-RTO-009") == FAIL


def test_window_after_a_spurious_timeout() -> None:
    story = flight().send(1, after=2).ack(4, after=0.05).send(9, 10, 11, 12, 13, 14)
    assert story.verdicts("SNR-RTO-009") == NOTHING


def test_stretch_acknowledgment_after_a_timeout_in_both_profiles() -> None:
    story = flight(12).send(1, after=2).ack(2, after=RTT).send(2, 3).ack(4, after=RTT)
    story.send(4, 5, 6, 7)
    assert story.verdicts("SNR-RTO-009") == PASS
    assert story.send(8).verdicts("SNR-RTO-009", "hk99") == FAIL


def test_acknowledgment_after_a_timeout_answered_or_not() -> None:
    story = flight().send(1, after=2).ack(2, after=RTT)
    assert story.send(2, 3).verdicts("SNR-RTO-012") == PASS
    story = flight().send(1, after=2).ack(2, after=RTT)
    assert story.send(2, after=4).verdicts("SNR-RTO-012") == FAIL


@pytest.mark.parametrize("again", [True, False])
def test_acknowledgment_amid_what_has_been_repeated(again: bool) -> None:
    """The rest of it, a FIN, had been reported before the timeout, after which no report counts."""
    text = 0.1
    octets = int(text * SIZE)
    story = Story(service=13).send_octets(0, octets).send_octets(octets, 0, fin=True)
    story.ack(0, (text, text + 1.5 / SIZE), after=RTT)
    story.send_octets(0, octets, after=2.0, fin=again)
    story.send_octets(0, octets, after=4.0, fin=again).ack(text, after=RTT)
    story.send_octets(octets, 0, after=9.0, fin=True)
    assert (Verdict.FAIL in story.verdicts("SNR-RTO-012")) != again


@pytest.mark.parametrize(("octets", "expected"), [(300, PASS), (1000, FAIL)])
def test_acknowledgment_of_less_than_a_segment_opens_the_window_by_as_much(
    octets: int, expected: set[Verdict]
) -> None:
    story = Story(sack=False).send_octets(0, octets)
    for start in range(octets, 5 * octets, octets):
        story.send_octets(start, octets, after=0.01)
    story.send_octets(0, 1000, after=2.0).ack(octets / 1000, after=RTT).ack(5, after=RTT)
    assert story.verdicts("SNR-RTO-017") == expected


@pytest.mark.parametrize(("opens", "expected"), [((2, 3, 4), PASS), ((2, 2, 2), FAIL)])
def test_slow_start_after_a_timeout_in_segments_below_the_peers_mss(
    opens: tuple[int, ...], expected: set[Verdict]
) -> None:
    story = Story(sack=False, service=7)
    for index in range(24):
        story.send_octets(index * 500, 500, push=True)
    story.send_octets(0, 500, after=2.0, push=True)
    acknowledged, following = 0, 1
    for window in opens:
        acknowledged = min(acknowledged + 2, following)
        story.ack(acknowledged / 2, after=RTT)
        for index in range(following, acknowledged + window):
            story.send_octets(index * 500, 500, push=True)
        following = acknowledged + window
    assert story.verdicts("SNR-RTO-017") >= expected
    assert (Verdict.FAIL in story.verdicts("SNR-RTO-017")) == (expected == FAIL)


@pytest.mark.parametrize(("window", "expected"), [(1100, PASS), (1400, PASS | FAIL)])
def test_window_without_room_for_a_whole_segment_behind_what_is_in_flight(
    window: int, expected: set[Verdict]
) -> None:
    story = Story(sack=False, window=2000).send_octets(0, 300)
    for start in range(300, 1800, 300):
        story.send_octets(start, 300, after=0.01)
    story.ack(0.3, after=RTT).send_octets(300, 1000, after=2.0)
    story.ack(0.6, after=RTT, window=1400).ack(0.9, after=0.14, window=window)
    story.ack(1.2, after=0.14, window=window)
    assert story.verdicts("SNR-RTO-017") == expected


@pytest.mark.parametrize(
    ("timeouts", "repaired", "expected"), [(2, True, NOTHING), (1, False, FAIL)]
)
def test_slow_start_behind_timeouts_that_end_a_recovery(
    timeouts: int, repaired: bool, expected: set[Verdict]
) -> None:
    story = window_limited_flight()
    if repaired:
        duplicates(story, 2).send(2)
        for segment in range(16, 28):
            story.ack(2, after=0.01).send(segment)
    else:
        story.send(*range(16, 28))
    for number in range(timeouts):
        story.send(2, after=2.0 * 2**number)
    following, window = 3, 1
    for acknowledged in range(3, 20):
        window = min(window + 1, 7)
        story.ack(acknowledged, after=0.1).send(*range(following, acknowledged + window))
        following = acknowledged + window
    assert story.verdicts("SNR-RTO-017") >= expected
    assert (Verdict.FAIL in story.verdicts("SNR-RTO-017")) == (expected == FAIL)


@pytest.mark.parametrize(("second", "accused"), [(True, False), (False, True)])
def test_slow_start_behind_a_timeout_within_the_repair_of_another(
    second: bool, accused: bool
) -> None:
    story = window_limited_flight().send(2, after=2.0).ack(3, after=RTT).send(3, 4)
    if second:
        story.send(3, after=4.0)
    # From here on the window grows as in congestion avoidance.
    story.ack(4, after=0.1).send(4, 5).ack(6, after=0.1).send(6, 7).ack(8, after=0.1).send(8, 9)
    story.ack(10, after=0.1).send(10, 11)
    assert (Verdict.FAIL in story.verdicts("SNR-RTO-017")) == accused


def test_slow_start_after_a_timeout_that_three_duplicates_disturb() -> None:
    story = flight(20, sack=True).send(1, after=2.0).ack(2, after=RTT).send(2, 3)
    story.ack(4, after=0.1).send(4, 5, 6, 7)
    for top in (6, 7, 8):
        story.ack(4, (5, top), after=0.01)
    # A fast recovery whose pipe is what was outstanding at the timeout.
    story.send(4).ack(8, after=0.1).ack(8, after=0.1)
    assert Verdict.FAIL not in story.verdicts("SNR-RTO-017", "hk99")


@pytest.mark.parametrize(("rack", "expected"), [(True, NOTHING), (False, FAIL)])
def test_window_after_a_timeout_of_one_who_takes_for_lost_only_what_is_old(
    rack: bool, expected: set[Verdict]
) -> None:
    """What left less than a round trip before the timeout is in flight (RFC 8985 section 6.3)."""
    story = Story().send(*range(5)).ack(4, after=RTT).send(*range(5, 13), after=0.9)
    story.send(4, after=0.2).ack(5, after=RTT).ack(5, after=3.0)
    assert story.verdicts("SNR-RTO-017", claims={**CLAIMS, "rack": rack}) == expected


@pytest.mark.parametrize(("frto", "expected"), [(True, NOTHING), (False, FAIL)])
def test_original_reported_after_a_timeout_shows_it_spurious(
    frto: bool, expected: set[Verdict]
) -> None:
    """F-RTO with SACK takes nothing for lost then (RFC 5682 section 3)."""
    story = Story().send(*range(6)).ack(3, after=RTT).send(3, after=2.0)
    story.ack(4, (5, 6), after=RTT).send(4, after=4.0)
    assert story.verdicts("SNR-RTO-012", claims={**CLAIMS, "frto": frto}) == expected


@pytest.mark.parametrize(("pacing", "expected"), [(True, NOTHING), (None, UNCLEAR), (False, FAIL)])
def test_pacing_timer_repairs_another_than_the_earliest(
    pacing: bool | None, expected: set[Verdict]
) -> None:
    """A pacing timer may wait longer than any round trip that was measured."""
    story = three_reports().send(2).ack(2, (3, 6), (7, 9), after=0.01).send(6, after=1.0)
    assert story.verdicts("SNR-RTO-008", claims={**CLAIMS, "pacing": pacing}) == expected


@pytest.mark.parametrize(("pacing", "accused"), [(True, False), (False, True)])
def test_repair_after_progress_that_a_pacing_timer_may_have_put_off(
    pacing: bool, accused: bool
) -> None:
    """It is neither a second timeout nor missing (encounter 790222)."""
    story = flight().send(1, after=2).ack(2, after=RTT).send(2, 3, after=0.95).ack(4, after=RTT)
    for requirement in ("SNR-RTO-007", "SNR-RTO-012"):
        verdicts = story.verdicts(requirement, claims={**CLAIMS, "pacing": pacing})
        assert accused == (Verdict.FAIL in verdicts)


@pytest.mark.parametrize(("again", "frto", "accused"), [
    (3, True, False), (5, True, True), (3, False, True),
])  # fmt: skip
def test_repair_behind_new_data_that_asked_whether_the_timeout_was_spurious(
    again: int, frto: bool, accused: bool
) -> None:
    """A duplicate answers, so that it was not (RFC 5682 section 2.1 step 3a)."""
    story = Story(sack=False).send(*range(10)).ack(2, after=RTT).send(10, 11)
    story.send(2, after=2.0).ack(3, after=RTT).send(12, 13)
    story.ack(3, after=0.1).send(*range(3, 3 + again))
    claims = {**CLAIMS, "frto": frto, "byte_counting": "no"}
    found = story.verdicts("SNR-RTO-009", claims=claims)
    assert (Verdict.FAIL in found) == accused
