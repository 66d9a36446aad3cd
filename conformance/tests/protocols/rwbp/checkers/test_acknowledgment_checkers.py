"""The checkers of acknowledgments on traces written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.rwbp.story import FAIL, NOTHING, PASS, RTT, SIZE, Story
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN


def _discard(**settings: int) -> Story:
    return Story(service=9, **settings)  # type: ignore[arg-type]


def test_eight_segments() -> None:
    story = _discard().arrive(*range(8)).reply(8)
    assert story.verdicts("RWBP-AK-001") == PASS
    assert story.verdicts("RWBP-AK-004") == PASS
    assert story.verdicts("RWBP-AK-002") == NOTHING


def test_eight_segments_acknowledged_late() -> None:
    story = _discard().arrive(*range(8)).reply(8, after=0.08)
    assert story.verdicts("RWBP-AK-001") == FAIL


def test_interval_of_the_peer() -> None:
    story = _discard(interval=3).arrive(0, 1, 2).reply(3)
    assert story.verdicts("RWBP-AK-001") == PASS
    story = _discard(interval=3).arrive(*range(12)).reply(12)
    assert story.verdicts("RWBP-AK-001") == {*PASS, *FAIL}


@pytest.mark.parametrize(("after", "expected"), [(0.09, PASS), (0.05, FAIL), (0.2, FAIL)])
def test_tail(after: float, expected: set[object]) -> None:
    story = _discard().arrive(0, 1, after=0.1).reply(2, after=after)
    assert story.ack(0, after=0.5).verdicts("RWBP-AK-002") == expected


def test_timer_expires_as_a_segment_arrives() -> None:
    """The acknowledgment of the first left before the second was processed; another follows."""
    story = Story(service=9, timing_error=0.001).arrive(0, after=0.1).arrive(1, after=0.0995)
    story.reply(1, after=0.0005).arrive(2, after=0.02).reply(3, after=0.08).ack(0, after=0.5)
    for name in ("RWBP-AK-002", "RWBP-AK-004"):
        assert story.verdicts(name) == PASS, name


@pytest.mark.parametrize("seq", [99, 150, 98, 90_000])
def test_another_syn_in_syn_received(seq: int) -> None:
    """It may be acknowledged as every SYN may (RFC 9293 section 3.10.7.4); once."""
    story = Story(open=False, service=9)
    story.put(False, flags=SYN, seq=seq, ack=0, after=RTT, mss=SIZE).reply(0, after=0.001)
    assert story.verdicts("RWBP-AK-004") == PASS
    assert story.reply(0, after=0.001).verdicts("RWBP-AK-004") == {*PASS, *FAIL}


def test_every_second_segment_acknowledged() -> None:
    story = _discard().arrive(0, 1).reply(2)
    assert story.verdicts("RWBP-AK-004") == FAIL
    assert story.verdicts("RWBP-AK-002") == set(), "a segment called it forth, and no timer"


@pytest.mark.parametrize(("window", "expected"), [(2, PASS), (1, FAIL | PASS)])
def test_update_behind_a_retransmission(window: int, expected: set[Verdict]) -> None:
    """A retransmission that names the window first replaces no update (RWBP-AK-008)."""
    story = Story(interval=64).send(*range(8)).arrive(*range(10)).reply(10, seq=8500, window=10)
    for index in range(10, 20):
        story.arrive(index, after=0.005)
    story.said = 20 * SIZE
    story.send(0, window=window).reply(20, seq=8500, window=window)
    assert story.verdicts("RWBP-AK-004") == expected


def _holes(*replies: tuple[tuple[int, int], ...]) -> Story:
    """Segments 1, 3, 5, 7, 9 and 11 arrive, each answered."""
    story = _discard()
    for index, blocks in enumerate(replies):
        story.arrive(2 * index + 1, after=0.01).reply(0, *blocks)
    return story


RUNS = ((1, 2), (3, 4), (5, 6), (7, 8), (9, 10))
FIVE = (
    RUNS[:1],
    (RUNS[1], RUNS[0]),
    (RUNS[2], RUNS[1], RUNS[0]),
    (RUNS[3], RUNS[2], RUNS[1], RUNS[0]),
    (RUNS[4], RUNS[3], RUNS[1], RUNS[2]),
)


def test_five_holes() -> None:
    story = _holes(*FIVE)
    for name in ("RWBP-AK-003", "RWBP-AK-005", "RWBP-AK-006", "RWBP-AK-007", "RWBP-AK-004"):
        assert story.verdicts(name) == PASS, name


@pytest.mark.parametrize(("silent", "accused"), [(1.0, True), (300.0, False)])
def test_octet_below_the_window_meets_a_call_that_may_have_been_given_up(
    silent: float, accused: bool
) -> None:
    story = Story(service=9)
    story.packets.pop()
    story.put(False, flags=ACK, seq=99, payload=b"x", after=silent)
    story.put(True, flags=RST, seq=500).arrive(0, after=0.6).put(True, flags=RST, seq=500)
    assert (not story.verdicts("RWBP-AK-003").isdisjoint(FAIL)) == accused


def test_holes_without_an_answer() -> None:
    story = _holes(*FIVE[:2]).arrive(5, 7, after=0.01).ack(0, after=0.2)
    assert story.verdicts("RWBP-AK-003") == {*PASS, *FAIL}


def test_three_blocks_of_four() -> None:
    assert _holes(*FIVE[:3], FIVE[3][:3]).verdicts("RWBP-AK-005") == {*PASS, *FAIL}


def test_blocks_in_ascending_order() -> None:
    assert _holes(FIVE[0], RUNS[:2]).verdicts("RWBP-AK-006") == FAIL


def test_rotation_that_does_not_go_on() -> None:
    story = _holes(*FIVE[:4], (RUNS[4], RUNS[3], RUNS[0], RUNS[1]))
    assert story.verdicts("RWBP-AK-006") == {*PASS, *FAIL}


@pytest.mark.parametrize("block", [(1, 3), (0, 1), (2, 3)])
def test_block_that_is_no_run(block: tuple[int, int]) -> None:
    assert _holes((block,)).verdicts("RWBP-AK-007") == FAIL


def test_duplicate_in_the_first_block() -> None:
    story = _holes(*FIVE[:2]).arrive(1, after=0.01)
    assert story.reply(0, RUNS[0], RUNS[1]).verdicts("RWBP-AK-007") == PASS
    story = _holes(*FIVE[:2]).arrive(1, after=0.01).reply(0, RUNS[0], RUNS[0], RUNS[1])
    assert story.verdicts("RWBP-AK-007") == {*PASS, *FAIL}


def test_echo_acknowledges() -> None:
    story = Story(service=7).arrive(0).send(0, ack=100 + SIZE)
    assert story.verdicts("RWBP-AK-008") == PASS
    assert Story(service=7).arrive(0).send(0, ack=100).verdicts("RWBP-AK-008") == FAIL


def test_data_in_place_of_blocks() -> None:
    story = Story(service=7).arrive(0).send(0, ack=100 + SIZE).arrive(2, after=0.01)
    story.send_octets(1000, 10).ack(1, after=0.3)
    assert story.verdicts("RWBP-AK-008") == {*PASS, *FAIL}


def test_reported_run_is_kept() -> None:
    story = _holes(*FIVE[:1]).arrive(0, after=0.1).reply(2)
    assert story.verdicts("RWBP-EC-008") == PASS


def test_reported_run_is_discarded() -> None:
    story = _holes(*FIVE[:1]).arrive(0, after=0.1).reply(1)
    assert story.verdicts("RWBP-EC-008") == FAIL
    story = _holes(*FIVE[:1]).arrive(3, after=0.1).reply(0, (3, 4))
    assert story.verdicts("RWBP-EC-008") == FAIL


@pytest.mark.parametrize(
    ("after", "fields", "expected"),
    [
        (0.9, {"seq": 99}, PASS),
        (0.9, {"ack": 99_000}, PASS),
        (0.999_000_1, {"ack": 99_000}, PASS),  # a second after the reminder, as clocks round
        (1.1, {"seq": 99}, FAIL | PASS),
        (0.9, {"seq": 99, "payload": bytes(1)}, FAIL | PASS),
    ],
)
def test_reminder_within_a_second_of_another_may_be_left_out(
    after: float, fields: dict[str, Any], expected: set[Verdict]
) -> None:
    story = Story(service=9).ack(0, seq=99, after=1.0).reply(0, after=0.001)
    story.ack(0, after=after, **fields).ack(0, after=1.5)
    assert story.verdicts("RWBP-AK-003") == expected
    assert story.verdicts("RWBP-EC-015") == NOTHING
    assert story.verdicts("RWBP-AK-004") == PASS


def test_reminder_that_is_not_left_out_is_called_for() -> None:
    story = Story(service=9)
    for _ in range(3):
        story.ack(0, ack=99_000, after=0.2).reply(0, after=0.001)
    story.ack(0, after=1.0)
    assert story.verdicts("RWBP-EC-015") == story.verdicts("RWBP-AK-004") == PASS


def _crossed() -> Story:
    """SYNs cross, and both sides answer them; nothing has to answer the last SYN-ACK."""
    story = Story(calls=True, open=False, port=9).syn(after=0.1, crossing=True)
    return story.own_syn(flags=SYN | ACK, ack=100, window=8 * SIZE).syn(after=0.3)


def test_syns_cross_and_are_answered() -> None:
    """The tester's SYN opens nothing yet, and its SYN-ACK may be acknowledged or not."""
    silent = _crossed().arrive(1, after=0.2).reply(0, (1, 2)).ack(0, after=0.5)
    spoken = _crossed().reply(0).arrive(1, after=0.2).reply(0, (1, 2)).ack(0, after=0.5)
    for story in silent, spoken:
        assert story.verdicts("RWBP-AK-003") == PASS
        assert not story.verdicts("RWBP-AK-004") & FAIL


def test_syns_cross_and_the_next_answer_comes_again() -> None:
    story = _crossed().syn(after=0.001)
    assert story.reply(0).ack(0, after=0.5).verdicts("RWBP-AK-003") == PASS


def test_syns_cross_and_disorder_is_not_acknowledged() -> None:
    story = _crossed().arrive(1, after=0.2).ack(0, after=0.5)
    assert story.verdicts("RWBP-AK-003") == FAIL


@pytest.mark.parametrize(("flags", "expected"), [(SYN | ACK, PASS), (SYN, PASS), (0, FAIL)])
def test_syn_within_the_window_in_syn_received(flags: int, expected: set[Verdict]) -> None:
    """It is acknowledged at once and otherwise ignored, whether it has an ACK or not."""
    story = Story(open=False)
    if flags:
        story.put(False, flags=flags, seq=100, ack=499, after=0.1)
    assert story.reply(0, after=0.001).ack(0, after=0.5).verdicts("RWBP-AK-004") == expected
