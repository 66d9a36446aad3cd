"""What is judged of the timer where packets wait for a link rate or for credit.

The handshake takes 0.6 s, so that RTO is 1.8 s.
"""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.story import IUT
from bentpipe_conformance.protocols.rwbp.credit import build_frame
from bentpipe_conformance.protocols.rwbp.story import CLAIMS, FAIL, NOTHING, PASS, RTT, Story
from bentpipe_conformance.protocols.tcp.codec import RST

RTO = 1.8

RATED: dict[str, Any] = {**CLAIMS, "link_rate": True, "link_rate_bps": 10_000_000}
"""A packet of 1,040 octets takes 0.8 ms."""

SLOW: dict[str, Any] = {**RATED, "link_rate_bps": 4000}
"""It takes 2 s."""

GRANTED: dict[str, Any] = {**CLAIMS, "gateway": True}


@pytest.mark.parametrize(
    ("copies", "expected"), [((0, 0), PASS), ((0,), FAIL), ((0, 0, 0), {*PASS, *FAIL})]
)
def test_copies_of_a_timeout(copies: tuple[int, ...], expected: set[object]) -> None:
    story = Story(window=3).send(0, 1, 2).send(*copies, after=RTO)
    story.ack(0, after=0.1, window=8).send(3)
    assert story.verdicts("RWBP-EC-007", claims=RATED) == expected


def test_second_copy_of_what_has_arrived_meanwhile_need_not_come() -> None:
    story = Story(window=3).send(0, 1, 2).send(0, after=RTO).ack(3, after=0.1).send(3)
    assert story.verdicts("RWBP-EC-007", claims=SLOW) == NOTHING


@pytest.mark.parametrize(
    ("second", "expected"), [((0, 0.001), PASS), ((0, 0.5), FAIL), ((None, 0.5), FAIL)]
)
def test_second_copy_leaves_with_the_first(
    second: tuple[int | None, float], expected: set[object]
) -> None:
    story = Story(window=2).send(0, 1).send(0, after=RTO)
    if second[0] is not None:
        story.send(second[0], after=second[1])
    story.ack(0, window=2, after=0.5)
    assert story.verdicts("RWBP-EC-007", claims=RATED) == expected


def test_copies_behind_a_repair_that_was_lost_long_before() -> None:
    story = Story(window=3).send(0, 1, 2).ack(0, (1, 2), after=RTT).send(0).send(0, after=RTO)
    story.ack(0, (1, 2), after=0.5)
    assert story.verdicts("RWBP-EC-007", claims=RATED) == FAIL


@pytest.mark.parametrize("copies", [(0,), (0, 0), (0, 0, 0)])
def test_copies_of_what_may_have_been_taken_for_lost(copies: tuple[int, ...]) -> None:
    story = Story(window=3).send(0, 1, 2).ack(0, (1, 2), after=RTT).send(*copies)
    story.ack(0, (1, 2), after=0.1, window=8).send(3)
    assert story.verdicts("RWBP-EC-007", claims=RATED) == NOTHING


@pytest.mark.parametrize(("after", "expected"), [(RTO, PASS), (0.9, FAIL)])
def test_timeout_after_progress(after: float, expected: set[object]) -> None:
    """Segment 0 is sent again, and 2 arrives after that: then the timer begins anew."""
    story = Story(window=3).send(0, 1, 2).ack(0, (1, 2), after=RTT).send(0)
    story.ack(0, (1, 3), after=0.5).send(0, 0, after=after)
    assert story.verdicts("RWBP-TM-003", claims=RATED) == expected


def test_copies_may_have_waited_for_the_link_since_before_the_progress() -> None:
    story = Story(window=3).send(0, 1, 2).ack(0, (1, 2), after=RTT).send(0)
    story.ack(0, (1, 3), after=1.5).send(0, 0, after=0.4)
    assert story.verdicts("RWBP-TM-003", claims=SLOW) == NOTHING


@pytest.mark.parametrize(("after", "expected"), [(2 * RTO, PASS), (1.5, FAIL)])
def test_second_timeout_in_a_row(after: float, expected: set[object]) -> None:
    story = Story().send(*range(8)).send(0, 0, after=RTO).send(0, 0, after=after)
    assert story.verdicts("RWBP-TM-004", claims=RATED) == expected


def test_timeout_after_progress_is_not_the_second_in_a_row() -> None:
    story = Story(window=2).send(0, 1).send(0, 0, after=RTO).ack(1, after=RTT, window=1)
    assert story.send(1, 1, after=1.5).verdicts("RWBP-TM-004", claims=RATED) == NOTHING


@pytest.mark.parametrize(
    ("times", "expected"), [((20.0,), FAIL), ((RTO, 1.0), PASS), ((RTO, 20.0), FAIL)]
)
def test_silence_of_a_sender(times: tuple[float, ...], expected: set[object]) -> None:
    story = Story(window=2).send(0, 1)
    for after in times[:-1]:
        story.send(0, 0, after=after)
    story.ack(0, window=2, after=times[-1])
    assert story.verdicts("RWBP-EC-005", claims=RATED) == expected


def test_silence_of_a_sender_whose_connection_is_over() -> None:
    story = Story(window=2).send(0, 1).reset(after=1.0, outgoing=False, seq=100)
    story.put(False, flags=RST, seq=100, ack=0, after=4.0)
    story.put(False, flags=RST, seq=100, ack=0, after=20.0)
    assert story.verdicts("RWBP-EC-005", claims=RATED) == NOTHING


@pytest.mark.parametrize(("limit", "expected"), [(1000, FAIL), (4, NOTHING)])
def test_silence_of_a_sender_with_credit_and_without(limit: int, expected: set[object]) -> None:
    """The SYN-ACK and two segments have been passed, and one more is granted or many."""
    story = Story(open=False)
    story.packets.clear()
    story.at = 0.0
    story.tell(False, build_frame(IUT, 1, 0, limit)).syn().own_syn(after=0.001)
    story.ack(0, after=RTT, window=2).send(0, 1)
    if limit == 4:
        story.reply(0)
    for _ in range(40):
        story.tell(False, build_frame(IUT, 1, 4, limit), 0.5)
    story.ack(0, window=2)
    assert story.verdicts("RWBP-EC-005", claims=GRANTED) == expected
