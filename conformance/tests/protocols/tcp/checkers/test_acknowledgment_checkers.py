"""The checkers of robust acknowledgment processing on traces written by hand."""

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
)


def test_old_acknowledgment_with_a_larger_window() -> None:
    story = Story(window=10 * SIZE).send(*range(10)).ack(4, after=RTT).send(*range(10, 14))
    story.ack(1, after=0.05, window=60000)
    assert story.verdicts("SNR-ACK-001") == PASS
    assert story.send(14).verdicts("SNR-ACK-001") == FAIL


@pytest.mark.parametrize(("fin", "expected"), [(True, NOTHING), (False, FAIL)])
def test_acknowledgment_of_unsent_data_in_last_ack(fin: bool, expected: set[Verdict]) -> None:
    story = Story().send(0, 1).ack(2, after=RTT, fin=fin)
    story.send_octets(2 * SIZE, 0, fin=True, after=0.01).ack(30, after=0.3).ack(2, after=0.3)
    assert story.verdicts("SNR-ACK-003") == expected


@pytest.mark.parametrize(("fin", "expected"), [(True, NOTHING), (False, FAIL)])
def test_acknowledgment_of_unsent_data_in_time_wait(fin: bool, expected: set[Verdict]) -> None:
    story = Story().send(0, 1).send_octets(2 * SIZE, 0, fin=True, after=0.01)
    both = 2 + 1.5 / SIZE  # the FIN as well
    story.ack(both, after=RTT).ack(both, after=0.01, fin=fin)
    story.send_octets(2 * SIZE + 1, 0, after=0.001).ack(30, after=0.3).ack(both, after=0.3)
    assert story.verdicts("SNR-ACK-003") == expected


@pytest.mark.parametrize(("beyond", "expected"), [(2**31 + 21, NOTHING), (2**30, FAIL)])
def test_acknowledgment_half_the_space_away(beyond: int, expected: set[Verdict]) -> None:
    """It is beyond what was sent, and below what is unacknowledged (seed 15290020)."""
    story = Story().ack(0, after=RTT, seq=200).send(0, 1).ack(beyond / SIZE, after=RTT)
    assert story.ack(2, after=0.3).verdicts("SNR-ACK-003") == expected


@pytest.mark.parametrize(("reset", "expected"), [(True, NOTHING), (False, FAIL)])
def test_acknowledgment_of_unsent_data_behind_a_reset(reset: bool, expected: set[Verdict]) -> None:
    """Data beyond the window, of which nothing is taken, leaves no doubt which octet is next."""
    story = Story().send(0, 1).ack(2, after=RTT).send_octets(2 * SIZE, 0, after=0.001)
    story.ack(2, after=0.1, seq=100 + story.window + 1, data=b"x")
    if reset:
        story.reset(after=0.1, outgoing=False, seq=100)
    assert story.ack(30, after=0.1).ack(2, after=0.3).verdicts("SNR-ACK-003") == expected


def test_acknowledgment_of_unsent_data_behind_a_reset_and_data_behind_a_fin() -> None:
    """Of the data nothing is taken either (seed 15240010)."""
    story = Story().send(0, 1).send_octets(2 * SIZE, 0, fin=True).ack(1, after=RTT, fin=True)
    story.send_octets(2 * SIZE + 1, 0).ack(1, after=0.1, seq=5000, data=b"x")
    story.reset(after=0.1, outgoing=False, seq=101).ack(30, after=0.1).ack(2, after=0.3)
    assert story.verdicts("SNR-ACK-003") == NOTHING


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


def test_stretch_acknowledgments_amid_segments_that_a_pacing_timer_lets_out() -> None:
    """Each fourth leaves with an acknowledgment, the others by themselves (encounter 3105952)."""
    story = Story(window=65535).send(*range(20))
    for index in range(1, 5):
        following = 16 + 4 * index
        story.ack(4 * index, after=RTT / 4).send(following)
        for number in range(following + 1, following + 4):
            story.send(number, after=RTT / 4)
    assert story.verdicts("SNR-ACK-006") == PASS


def test_stretch_acknowledgment_of_data_that_reports_have_replaced() -> None:
    """What it covers was held, and each report let a segment out (encounter 790898)."""
    story = Story(window=65535).send(*range(20))
    following = 20
    for index in range(4):
        for held in range(2, 6):
            story.ack(5 * index, (5 * index + 1, 5 * index + held), after=RTT / 5).send(following)
            following += 1
        story.ack(5 * index + 5, after=RTT / 5).send(following)
        following += 1
    assert story.verdicts("SNR-ACK-006") == NOTHING


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


@pytest.mark.parametrize(("after", "expected"), [(0.01, PASS), (0.3, FAIL)])
def test_acknowledged_data_sent_again(after: float, expected: set[Verdict]) -> None:
    story = Story(sack=False).send(0, 1, 2).ack(2, after=RTT).send(1, after=after)
    assert story.verdicts("SNR-ACK-009") == expected


@pytest.mark.parametrize(("octets", "expected"), [(1, PASS), (SIZE, FAIL)])
def test_probe_after_an_old_acknowledgment_that_offers_room(
    octets: int, expected: set[Verdict]
) -> None:
    story = Story(sack=False, window=4 * SIZE).send(*range(4)).ack(4, after=RTT, window=0)
    story.send_octets(4 * SIZE, 1, after=1.5).ack(4, after=RTT, window=0).ack(2, after=0.1)
    story.send_octets(4 * SIZE, octets, after=3.0).ack(4, after=RTT, window=0)
    verdicts = story.verdicts("SNR-ACK-001")
    assert verdicts >= expected
    assert bool(FAIL & verdicts) == (expected == FAIL)


@pytest.mark.parametrize(("finds", "expected"), [(True, NOTHING), (False, FAIL)])
def test_duplicates_amid_segments_that_the_path_has_shown_to_be_too_long(
    finds: bool, expected: set[Verdict]
) -> None:
    """All of them leave again, and more, in smaller ones (encounter 3108874)."""
    story = duplicates(Story(sack=False).send(*range(10)).ack(2, after=RTT), 2, 3)
    for start in range(2 * SIZE, 30 * SIZE, 500):
        story.send_octets(start, 500)
    claims = {**CLAIMS, "finds_segment_size": finds}
    assert duplicates(story, 2, 8).verdicts("SNR-ACK-007", claims=claims) == expected


@pytest.mark.parametrize(("push", "expected"), [(True, PASS), (False, FAIL)])
def test_data_written_little_by_little_behind_a_duplicate_storm(
    push: bool, expected: set[Verdict]
) -> None:
    story = _storm(())
    for octet in range(10_000, 10_060, 2):
        story.send_octets(octet, 2, after=0.0005, push=push)
    assert story.verdicts("SNR-ACK-007") == expected


@pytest.mark.parametrize(
    ("push", "quiet", "expected"),
    [
        pytest.param(True, 0.0, PASS, id="written since, at once"),
        pytest.param(False, 0.0, FAIL, id="waiting before the first duplicate"),
        pytest.param(True, 0.05, FAIL, id="waiting since an earlier duplicate"),
    ],
)
def test_duplicate_lets_a_burst_out(push: bool, quiet: float, expected: set[Verdict]) -> None:
    # Hybla, whose window no longer binds: its user, once the buffer has room, writes 36 segments.
    story = Story().send(*range(10), push=push).ack(1, after=RTT)
    story.ack(1, after=0.001).ack(1, after=0.001).send(10).ack(1, after=0.001 + quiet)
    story.send(*range(11, 46))
    for _ in range(3):
        story.ack(1, after=0.001)
    assert story.verdicts("SNR-ACK-007") == expected
