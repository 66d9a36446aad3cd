"""The checkers of error control on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.protocols.rwbp.story import FAIL, NOTHING, PASS, RTT, SIZE, Story
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN


def _hole() -> Story:
    """Segments 0 to 7 of which 1 and 3 are missing when 4 has arrived; the window is full."""
    return Story().send(*range(8)).ack(1, (2, 3), (4, 5), after=RTT)


def test_lost_segments_sent_again_at_once() -> None:
    story = _hole().send(1, 3, 8)
    for name in ("RWBP-EC-002", "RWBP-EC-004", "RWBP-EC-006", "RWBP-EC-011", "RWBP-EC-014"):
        assert story.verdicts(name) == PASS, name


def test_lost_segment_not_sent_again() -> None:
    assert _hole().send(1, 8).ack(2, (4, 5), after=RTT).verdicts("RWBP-EC-002") == {*PASS, *FAIL}


def test_segment_behind_the_right_edge_sent_again() -> None:
    assert _hole().send(1, 3, 5).verdicts("RWBP-EC-002") == {*PASS, *FAIL}


def test_repaired_segment_taken_for_lost_by_what_was_sent_before() -> None:
    """The literal list of the paper: its first transmission precedes the right edge."""
    story = _hole().send(1, 3, 8).ack(1, (2, 3), (4, 6), after=0.1)
    assert story.verdicts("RWBP-EC-012") == PASS
    assert story.send(1).verdicts("RWBP-EC-002") == {*PASS, *FAIL}


def test_news_of_lower_segments_alone() -> None:
    story = _hole().send(1, 3, 8).ack(2, (4, 5), after=0.3)
    assert story.verdicts("RWBP-EC-003") == PASS
    assert story.send(3).verdicts("RWBP-EC-003") == FAIL
    assert story.verdicts("RWBP-EC-002") == {*PASS, *FAIL}


def test_new_segment_before_the_repair() -> None:
    assert _hole().send(8, 1, 3).verdicts("RWBP-EC-004") == {*PASS, *FAIL}


def test_higher_repair_before_the_lower() -> None:
    assert _hole().send(3, 1, 8).verdicts("RWBP-EC-004") == {*PASS, *FAIL}


def _timeout(after: float = 1.8) -> Story:
    """Nothing is heard of eight segments; RTT is 0.599 s, RTO 1.797 s."""
    return Story().send(*range(8)).send(0, after=after)


def test_timeout_two_copies() -> None:
    story = _timeout().send(0).ack(8, after=RTT)
    for name in ("RWBP-EC-005", "RWBP-EC-006", "RWBP-EC-007"):
        assert story.verdicts(name) == PASS, name


@pytest.mark.parametrize("more", [(), (0, 0), (0, 1), (1,)])
def test_timeout_other_than_two_copies(more: tuple[int, ...]) -> None:
    assert _timeout().send(*more).ack(8, after=RTT).verdicts("RWBP-EC-007") == FAIL


def test_no_timeout() -> None:
    story = Story().send(*range(8)).ack(0, after=5.0)
    for name in ("RWBP-EC-005", "RWBP-EC-006"):
        assert story.verdicts(name) == FAIL, name


@pytest.mark.parametrize(("late", "expected"), [(0.0, PASS), (1.5, {*PASS, *FAIL})])
def test_timeouts_after_a_syn_ack_has_opened_the_connection(
    late: float, expected: set[object]
) -> None:
    """In SYN-RECEIVED it opens as an ACK does, and is measured: RTO is 1.8 s, not 1 s."""
    story = Story(open=False).put(
        False, flags=SYN | ACK, seq=99, after=RTT - 0.001, window=8 * SIZE, mss=SIZE
    )
    story.send(*range(8)).send(0, 0, after=1.8).send(0, 0, after=3.6 + late).ack(8, after=RTT)
    assert story.verdicts("RWBP-EC-005") == expected


def test_arrived_segment_sent_again() -> None:
    story = _hole().send(1, 3, 8)
    assert story.verdicts("RWBP-EC-010") == PASS
    assert story.send(2).verdicts("RWBP-EC-010") == {*PASS, *FAIL}


def test_segment_cut_anew() -> None:
    story = _hole().send_octets(1000, 500)
    assert story.verdicts("RWBP-EC-011") == FAIL


def test_duplicate_acknowledgments_cause_a_retransmission() -> None:
    story = Story().send(*range(8)).ack(1, after=RTT).send(8)
    for _ in range(3):
        story.ack(1, after=0.01)
    assert story.verdicts("RWBP-EC-012") == PASS
    assert story.send(1).verdicts("RWBP-EC-012") == {*FAIL, *PASS}


def test_untrue_block() -> None:
    story = Story().send(*range(8)).ack(1, (20, 21), after=RTT).send(8)
    assert story.ack(2, after=0.3).verdicts("RWBP-EC-013") == PASS
    story = Story().send(*range(8)).ack(1, (20, 21), after=RTT).send(1)
    assert story.verdicts("RWBP-EC-013") == FAIL


def test_new_segments_held_back_after_a_loss() -> None:
    story = _hole().send(1, 3).ack(1, (2, 3), (4, 8), after=RTT)
    assert story.verdicts("RWBP-EC-014") == FAIL


def test_room_for_a_part_of_what_may_wait() -> None:
    """A send buffer may hold more than the 4,000 octets that it must: 1,000, not 700, wait."""
    story = Story(service=7, window=4, own={"window": 4 * SIZE})
    story.arrive(0, size=300, window=4).send_octets(0, 300)
    story.arrive(0.3, window=4).send_octets(300, 1000).arrive(1.3, window=4)
    story.send_octets(1300, 1000).arrive(2.3, window=4).send_octets(2300, 1000)
    story.arrive(3.3, window=4).ack(3.3, after=0.2)
    assert not story.verdicts("RWBP-FC-003") & FAIL
    assert not story.verdicts("RWBP-WF-007") & FAIL


@pytest.mark.parametrize("number", [20, -(1 << 30) // 1000 - 1])
def test_acknowledgment_out_of_range(number: int) -> None:
    story = Story().send(*range(8)).ack(number, after=RTT)
    assert story.ack(0, after=0.2).verdicts("RWBP-EC-015") == FAIL
    story = Story().send(*range(8)).ack(number, after=RTT).reply(0, seq=8500)
    assert story.ack(0, after=0.2).verdicts("RWBP-EC-015") == PASS


def test_acknowledgment_out_of_range_answered_just_before_the_end() -> None:
    story = Story().send(*range(8)).ack(20, after=RTT).reply(0, seq=8500, after=0.001)
    assert story.ack(8, after=0.001).verdicts("RWBP-EC-015") == PASS


def test_old_acknowledgment() -> None:
    def story() -> Story:
        return Story().send(*range(8)).ack(3, after=RTT).send(8, 9, 10).ack(2, (6, 7), after=0.1)

    assert story().send(3, 4, 5).verdicts("RWBP-EC-015") == PASS
    assert story().ack(3, after=0.2).verdicts("RWBP-EC-015") == FAIL


def test_acknowledgment_in_range() -> None:
    assert Story().send(*range(8)).ack(2, after=RTT).verdicts("RWBP-EC-015") == NOTHING
