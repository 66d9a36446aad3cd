"""The checkers of the timer on traces written by hand.

The handshake takes 0.599 s, so that SRTT is 0.599 s, RTTVAR 0.2995 s and RTO 1.797 s.
"""

from __future__ import annotations

import pytest
from bentpipe_conformance.protocols.rwbp.story import CLAIMS, FAIL, NOTHING, PASS, RTT, Story

RTO = 1.797

ONE_PLACE = {**CLAIMS, "gateway": True, "ip_queue": 1}
"""A packet enters the IP queue when the one before it has left."""


@pytest.mark.parametrize(
    ("after", "expected"), [(RTO, PASS), (RTO + 0.04, PASS), (1.5, FAIL), (2.0, FAIL)]
)
def test_first_timeout(after: float, expected: set[object]) -> None:
    story = Story().send(*range(8)).send(0, 0, after=after).ack(8, after=RTT)
    assert story.verdicts("RWBP-TM-001") == expected


@pytest.mark.parametrize(
    ("after", "expected"), [(1.0, PASS), (3.0, PASS), (2.4, FAIL), (1.3, FAIL), (4.8, FAIL)]
)
def test_first_timeout_after_a_syn_ack_that_was_sent_twice(
    after: float, expected: set[object]
) -> None:
    """It took 0.8 s to be answered, of which there is no sample: RTO is 3 s, or 1 s still.

    Whether a SYN-ACK that the caller's SYN has called for "had to be repeated" may be disputed.
    """
    story = Story(open=False).syn(after=0.5).own_syn(after=0.001).ack(0, after=0.8)
    story.send(0).send(0, 0, after=after).ack(1, after=RTT)
    assert story.verdicts("RWBP-TM-001") == expected


@pytest.mark.parametrize(("karn", "expected"), [(True, PASS), (False, FAIL)])
def test_timeout_after_an_acknowledgment_of_a_copy(karn: bool, expected: set[object]) -> None:
    """The copies are acknowledged after 3.3 s: a sample of 1.5 s must not be taken."""
    story = Story().send(0, 1).send(0, 0, after=RTO).ack(1, after=1.5, window=1)
    rto = RTO if karn else 0.7 + 4 * (0.75 * 0.2995 + 0.25 * 0.9)
    story.send(1, 1, after=rto).ack(2, after=RTT)
    assert story.verdicts("RWBP-TM-002") == expected


@pytest.mark.parametrize(("restarted", "expected"), [(True, PASS), (False, FAIL)])
def test_timeout_after_progress(restarted: bool, expected: set[object]) -> None:
    """Segment 0 is missing, 1 and 2 are reported 0.3 s apart; the timer counts from the latter."""
    story = Story(window=3).send(0, 1, 2).ack(0, (1, 2), after=0.599).send(0)
    story.ack(0, (1, 3), after=0.3)
    # SRTT 0.636, RTTVAR 0.299; the third segment was sampled after 0.899 s.
    rto = 0.599 + 0.125 * 0.3 + 4 * (0.75 * 0.75 * 0.2995 + 0.25 * 0.3)
    story.send(0, 0, after=rto if restarted else rto - 0.3).ack(3, after=RTT)
    assert story.verdicts("RWBP-TM-003") == expected


@pytest.mark.parametrize(
    ("late", "started", "computed"), [(0.9, FAIL, NOTHING), (0.5, NOTHING, FAIL)]
)
def test_late_timeout(late: float, started: set[object], computed: set[object]) -> None:
    """An acknowledgment that told nothing came after 0.9 s; the timer counts from it, or not."""
    story = Story().send(*range(8)).ack(0, after=0.9)
    story.send(0, 0, after=RTO + late - 0.9).ack(8, after=RTT)
    assert story.verdicts("RWBP-TM-003") & FAIL == started
    assert story.verdicts("RWBP-TM-001") & FAIL == computed


@pytest.mark.parametrize(("second", "expected"), [(2 * RTO, PASS), (RTO, FAIL), (4 * RTO, FAIL)])
def test_second_timeout(second: float, expected: set[object]) -> None:
    story = Story().send(*range(8)).send(0, 0, after=RTO).send(0, 0, after=second)
    assert story.ack(8, after=RTT).verdicts("RWBP-TM-004") == expected


@pytest.mark.parametrize(("third", "expected"), [(RTO, PASS), (2 * RTO, {*FAIL})])
def test_timeout_after_progress_after_a_timeout(third: float, expected: set[object]) -> None:
    story = Story(window=2).send(0, 1).send(0, 0, after=RTO).ack(1, after=RTT, window=1)
    assert story.send(1, 1, after=third).ack(2, after=RTT).verdicts("RWBP-TM-004") == expected


def test_first_timeout_alone_is_no_back_off() -> None:
    assert Story().send(0).send(0, 0, after=RTO).verdicts("RWBP-TM-004") == NOTHING


def _silence(*times: float) -> Story:
    story = Story().send(*range(8))
    for after in times:
        story.send(0, 0, after=after)
    return story


def test_persistence() -> None:
    story = _silence(*(RTO * 2**count for count in range(6)))
    assert story.verdicts("RWBP-TM-006") == PASS
    assert story.reset(after=1.0).verdicts("RWBP-TM-006") == PASS


def test_given_up_early() -> None:
    story = _silence(*(RTO * 2**count for count in range(4)))
    assert story.reset(after=1.0).verdicts("RWBP-TM-006") == FAIL


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ((0, 1, 2, 3, 4), PASS),
        ((0, 1, 0, 0, 2, 0, 3, 4), FAIL),
        # Two copies may have been due before the losses were told.
        ((0, 1, 0, 0, 2, 3, 4), NOTHING),
        # A timer that expires when nothing waits any more makes copies.
        ((0, 1, 2, 3, 4, 0, 0, 0), PASS),
    ],
)
def test_copies_while_a_repair_waits_for_the_link(
    again: tuple[int, ...], expected: set[object]
) -> None:
    story = Story().send(*range(6)).ack(0, (5, 6), after=RTT)
    story.send(again[0], after=12.0)
    for index in again[1:]:
        story.send(index, after=0.01)
    assert story.verdicts("RWBP-TM-005", claims=ONE_PLACE) == expected
    assert story.verdicts("RWBP-TM-005") == NOTHING


def test_copies_of_what_is_taken_for_lost_again_while_a_repair_waits() -> None:
    """A later segment arrives meanwhile, so that more copies are due."""
    story = Story().send(*range(5)).ack(0, (4, 5), after=RTT, window=10)
    story.send(0, after=12.0).send(1, 0, 0, 5, after=0.01).ack(0, (4, 6), after=RTT)
    story.send(0, 2, 3, after=0.01)
    assert story.verdicts("RWBP-TM-005", claims=ONE_PLACE) & FAIL == NOTHING


def test_copies_when_the_order_may_count_as_broken() -> None:
    story = Story().send(*range(6)).ack(0, (1, 2), after=RTT).send(0, after=0.1).ack(2, after=0.1)
    story.ack(2, (5, 6), after=0.1).send(2, after=12.0)
    for index in (3, 2, 2, 2, 4):
        story.send(index, after=0.01)
    assert story.verdicts("RWBP-TM-005", claims=ONE_PLACE) & FAIL == NOTHING
