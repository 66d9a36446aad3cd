"""The checkers of calling, and of a known caller's proof of its address (STP-CC)."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    END,
    ENDAK,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    A,
    C,
)
from bentpipe_conformance.protocols.stp.story import FAIL, NOTHING, PASS, StpStory, later, opened

BOTH = PASS | FAIL


@pytest.mark.parametrize(("highest", "verdict"), [(3, PASS), (4, FAIL)])
def test_early_sds(highest: int, verdict: set[Verdict]) -> None:
    story = StpStory().iut(BEGIN, data=b"0")
    for number in range(1, highest + 1):
        story.iut(SD, number, data=b"x", after=0.01)
    assert story.tester(BGAK, 1, after=0.6).verdicts("STP-CC-002") == verdict


def test_sds_after_the_bgak_are_not_early() -> None:
    story = StpStory().called().iut(SD, 0, data=b"x").iut(SD, 4, data=b"x")
    assert story.verdicts("STP-CC-002") == PASS


def test_begin_repeated_as_it_was_or_with_other_data() -> None:
    story = StpStory().iut(BEGIN, data=b"x").iut(BEGIN, data=b"x", after=1.0)
    assert story.verdicts("STP-CC-014") == PASS
    assert story.iut(BEGIN, data=b"y", after=2.0).verdicts("STP-CC-014") == PASS | FAIL


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ((1.0, 2.0, 4.0, 8.0), PASS),
        ((1.0, 1.0), PASS | FAIL),
        ((2.0,), FAIL),
        ((1.0, 2.0, 4.0, 8.0, 16.0), PASS | FAIL),
        ((), FAIL),
    ],
)
def test_times_of_unanswered_begins_and_ends(gaps: tuple[float, ...], verdict: object) -> None:
    call = StpStory().iut(BEGIN)
    release = opened().iut(END, 0, flags=A, reason=1, after=1.0)
    for gap in gaps:
        call.iut(BEGIN, after=gap)
        release.iut(END, 0, flags=A, reason=1, after=gap)
    wait = 1.0 * 2 ** len(gaps)
    if len(gaps) >= 4 or not gaps:
        call, release = (item.tester(USTAT, 0, elements=(1, 2), after=3 * wait)
                         for item in (call, release))  # fmt: skip
    assert call.verdicts("STP-CC-016") == verdict
    assert release.verdicts("STP-CC-026") == verdict


def test_begin_and_end_answered_are_not_sent_again() -> None:
    story = StpStory().called()
    assert story.verdicts("STP-CC-016") == NOTHING
    assert later(story).verdicts("STP-CC-016") == PASS
    story = opened().iut(END, 0, flags=A, reason=1).tester(ENDAK, after=0.6)
    assert story.verdicts("STP-CC-026") == NOTHING
    assert later(story).verdicts("STP-CC-026") == PASS


def test_begin_and_end_repeated_after_their_answer() -> None:
    story = StpStory().called().iut(BEGIN, after=0.4)
    assert later(story).verdicts("STP-CC-016") == FAIL
    story = opened().iut(END, flags=A, reason=1).tester(ENDAK, after=0.6)
    story.iut(END, flags=A, reason=1, after=0.4)
    assert later(story).verdicts("STP-CC-026") == FAIL


def test_endak_of_another_connection_ends_no_release() -> None:
    story = opened().iut(END, flags=A, reason=1).tester(ENDAK, peer_csn=5, after=0.6)
    assert later(story).verdicts("STP-CC-026") == PASS | FAIL
    story = opened().iut(END, flags=A, reason=1).tester(ENDAK, peer_csn=5, after=0.6)
    assert later(story.iut(END, flags=A, reason=1, after=0.4)).verdicts("STP-CC-026") >= PASS


def test_caller_polls_until_it_is_heard() -> None:
    story = StpStory().called().iut(POLL, 0, after=0.2).tester(STAT, 0, after=0.6)
    assert later(story).verdicts("STP-CC-030") == PASS
    assert later(StpStory().called()).verdicts("STP-CC-030") == FAIL
    story = StpStory().called().iut(POLL, 0, after=0.2).tester(ENDAK, after=9.0)
    assert story.verdicts("STP-CC-030") == PASS | FAIL


def test_caller_that_the_peer_polls_has_been_heard() -> None:
    story = StpStory().called().tester(SDP, 0, data=b"x", after=0.1).iut(STAT, 1)
    assert later(story).verdicts("STP-CC-030") == NOTHING


# A known caller's proof of its address


def trusted(*waits: float) -> StpStory:
    """The implementation calls, is not asked, and asks itself after so many seconds each."""
    story = StpStory().called().iut(POLL, 0, after=0.2).tester(STAT, 0, after=0.6)
    for wait in waits:
        story.iut(BGAK, flags=C, after=wait)
    return story


def answered(story: StpStory) -> StpStory:
    return story.tester(BGAK, after=0.6)


@pytest.mark.parametrize(
    ("waits", "verdict"),
    [((1.0, 2.0, 4.0), PASS), ((1.0, 1.0), BOTH), ((0.5,), FAIL), ((3.0,), FAIL),
     ((1.0, 2.0, 8.0), BOTH)],
)  # fmt: skip
def test_questions_of_a_caller_accepted_at_once(
    waits: tuple[float, ...], verdict: set[Verdict]
) -> None:
    assert trusted(*waits).verdicts("STP-CC-032") == verdict


def test_caller_accepted_at_once_never_asks() -> None:
    assert later(trusted()).verdicts("STP-CC-032") == FAIL
    assert later(trusted(1.0)).verdicts("STP-CC-032") == BOTH


def test_question_answered_and_another_one() -> None:
    assert later(answered(trusted(1.0))).verdicts("STP-CC-032") == PASS
    again = answered(trusted(1.0)).iut(BGAK, flags=C, after=1.0)
    assert Verdict.FAIL in later(again).verdicts("STP-CC-032")


def test_bgak_for_the_second_begin_answers_no_question() -> None:
    twice = StpStory().iut(BEGIN).iut(BEGIN, after=1.0).tester(BGAK, after=0.2)
    once = answered(twice.iut(BGAK, flags=C, after=1.0))
    assert later(once).verdicts("STP-CC-032") == BOTH
    again = answered(once.iut(BGAK, flags=C, after=1.0))
    again.packets = [packet for packet in again.packets if packet.time <= again.at]
    assert again.verdicts("STP-CC-032") == PASS


def test_copy_of_the_first_answer_answers_no_question() -> None:
    doubled = trusted().tester(BGAK, after=0.3)
    assert later(doubled).verdicts("STP-CC-032") == FAIL


def test_packets_of_the_peer_start_the_wait_for_a_question_anew() -> None:
    story = trusted(0.9)
    del story.packets[-1]
    story.tester(SD, 0).iut(BGAK, flags=C, after=1.0)
    assert answered(story).verdicts("STP-CC-032") == PASS
    forged = trusted(0.9)
    del forged.packets[-1]
    forged.tester(SD, 0, tag=1).iut(BGAK, flags=C, after=1.0)
    assert forged.verdicts("STP-CC-032") == FAIL


def test_question_that_crosses_a_packet_of_the_peer() -> None:
    story = trusted().tester(SD, 0, after=0.99).iut(BGAK, flags=C, after=0.01)
    assert later(answered(story)).verdicts("STP-CC-032") == PASS


def test_caller_that_was_asked_need_not_ask() -> None:
    asked = StpStory().iut(BEGIN).tester(BGAK, flags=C, after=0.6).iut(BGAK)
    asked.iut(POLL, 0, after=0.2).tester(STAT, 0, after=0.6)
    assert later(asked).verdicts("STP-CC-032") == NOTHING


@pytest.mark.parametrize(("wait", "verdict"), [(30.0, PASS), (10.0, FAIL), (None, FAIL)])
def test_questions_in_vain_for_a_minute(wait: float | None, verdict: set[Verdict]) -> None:
    story = trusted(1.0, 2.0, 4.0, 8.0, 16.0)
    if wait is None:
        story.iut(BGAK, flags=C, after=32.0).iut(BGAK, flags=C, after=64.0)
    else:
        story.iut(END, 0, flags=A, reason=7, after=wait)
    assert story.verdicts("STP-PL-008") == verdict
