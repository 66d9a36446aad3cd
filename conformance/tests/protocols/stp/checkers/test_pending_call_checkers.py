"""The checkers of calls that wait side by side (STP-CC)."""

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
    R,
)
from bentpipe_conformance.protocols.stp.story import (
    FAIL,
    IUT_CSN,
    IUT_TAG,
    NOTHING,
    PASS,
    TESTER_CSN,
    StpStory,
    later,
    opened,
    polled,
)


@pytest.mark.parametrize("forged", [1, 3, 4, 6])
def test_call_that_may_have_made_room_and_opens_all_the_same(forged: int) -> None:
    """An IUT may let more calls wait beside each other than it must."""
    story = StpStory(credit=256).tester(BEGIN).iut(BGAK, flags=C, after=0.001)
    for number in range(forged):
        csn = 0x3000_0000 + number * 0x10001
        story.tester(BEGIN, csn=csn, tag=csn & 0xFFFF, after=0.05)
        story.iut(BGAK, flags=C, csn=number + 7, peer_csn=csn, tag=number + 7, after=0.001)
    story.tester(BGAK, after=0.6).iut(SD, 0, data=b"x" * 100).iut(SD, 1, data=b"x" * 100)
    story.tester(USTAT, 0, elements=(0, 1), after=0.6).iut(SD, 0, data=b"x" * 100, after=0.01)
    story.tester(SDP, 0, data=b"x", after=0.1).iut(STAT, 1, after=0.001)
    for requirement in ("STP-CC-003", "STP-DT-027"):
        assert Verdict.FAIL not in later(story).verdicts(requirement)


OTHER_CSN, OTHER_IUT = TESTER_CSN + 5, IUT_CSN - 3


def waiting() -> StpStory:
    """A call that waits for confirmation."""
    return StpStory().tester(BEGIN, data=b"x").iut(BGAK, flags=C)


def beside(story: StpStory, flags: int = C, by: int = 0) -> StpStory:
    """Another call comes to the same ports."""
    csn, own = OTHER_CSN + by, OTHER_IUT - by
    story.tester(BEGIN, csn=csn, tag=csn & 0xFFFF, after=0.3)
    return story.iut(BGAK, csn=own, peer_csn=csn, tag=own & 0xFFFF, flags=flags)


def confirmed_other(story: StpStory) -> StpStory:
    return story.tester(BGAK, csn=OTHER_CSN, peer_csn=OTHER_IUT, tag=OTHER_CSN & 0xFFFF, after=0.5)


def asked_other(story: StpStory, *, answered: bool) -> StpStory:
    story.tester(POLL, 0, tag=OTHER_CSN & 0xFFFF, after=1.0)
    return story.iut(STAT, 0, tag=OTHER_IUT & 0xFFFF) if answered else story


def test_call_confirmed_after_another_came_opens_or_not() -> None:
    story = beside(waiting()).tester(BGAK, after=0.5)
    assert polled(story).verdicts("STP-CC-033") == PASS
    story = beside(waiting()).tester(BGAK, after=0.5).tester(POLL, 0, after=0.5)
    assert later(story).verdicts("STP-CC-033") == FAIL
    assert story.verdicts("STP-SEC-002") == NOTHING


def test_call_that_was_alone_says_nothing_of_others() -> None:
    assert polled(opened()).verdicts("STP-CC-033") == NOTHING


def test_call_that_came_later_is_confirmed_first() -> None:
    story = confirmed_other(beside(waiting()))
    assert asked_other(story, answered=True).verdicts("STP-CC-033") == PASS
    story = confirmed_other(beside(waiting()))
    assert later(asked_other(story, answered=False)).verdicts("STP-CC-033") == FAIL


def test_two_calls_open_side_by_side() -> None:
    story = polled(beside(waiting()).tester(BGAK, after=0.5))
    both = asked_other(confirmed_other(story), answered=True)
    assert Verdict.FAIL in both.verdicts("STP-CC-033")
    story = polled(beside(waiting()).tester(BGAK, after=0.5))
    one = asked_other(confirmed_other(story), answered=False)
    assert later(one).verdicts("STP-CC-033") == PASS


def test_call_opens_that_had_to_be_forgotten() -> None:
    def released() -> StpStory:
        story = polled(beside(waiting()).tester(BGAK, after=0.5))
        story.tester(END, 0, flags=A, reason=1, after=0.5).iut(ENDAK)
        return confirmed_other(story)

    assert Verdict.FAIL in asked_other(released(), answered=True).verdicts("STP-CC-033")
    silent = later(asked_other(released(), answered=False))
    assert Verdict.FAIL not in silent.verdicts("STP-CC-033")


def test_call_accepted_at_once_beside_one_that_waits() -> None:
    assert beside(waiting(), flags=0).verdicts("STP-CC-033") == FAIL


def test_call_that_four_others_may_have_pushed_out() -> None:
    for others, verdict in ((3, FAIL), (4, NOTHING)):
        story = waiting()
        for by in range(others):
            beside(story, by=by)
        story.tester(BGAK, after=0.5).tester(POLL, 0, after=0.5)
        assert later(story).verdicts("STP-CC-033") == verdict


def test_call_forgotten_for_another_is_not_held_against_the_bound() -> None:
    story = asked_other(confirmed_other(beside(waiting())), answered=True)
    story.tester(END, 0, flags=A, reason=1, csn=OTHER_CSN, peer_csn=OTHER_IUT,
                 tag=OTHER_CSN & 0xFFFF, after=0.5)  # fmt: skip
    story.iut(ENDAK, peer_csn=OTHER_CSN, tag=OTHER_IUT & 0xFFFF)
    story.tester(BGAK, after=0.5)
    story.iut(END, 0, flags=A | R, reason=2, seq=0, tag=IUT_TAG)
    assert later(story).verdicts("STP-SEC-002") == PASS


def test_begin_beside_a_call_that_waits_is_not_answered() -> None:
    story = waiting().tester(BEGIN, csn=OTHER_CSN, tag=OTHER_CSN & 0xFFFF, after=0.3)
    assert Verdict.FAIL in later(story).verdicts("STP-CC-012")


def test_packets_with_the_tag_of_two_calls_are_those_of_the_one_confirmed() -> None:
    story = beside(waiting(), by=(1 << 16) - 5).tester(BGAK, after=0.5)
    assert polled(story).verdicts("STP-CC-033") == PASS


def test_second_begin_comes_before_the_first_is_answered() -> None:
    tag, own = OTHER_CSN & 0xFFFF, OTHER_IUT & 0xFFFF
    story = StpStory().tester(BEGIN, data=b"x").tester(BEGIN, csn=OTHER_CSN, tag=tag, after=0.01)
    story.iut(BGAK, flags=C, after=0.01)
    story.iut(BGAK, csn=OTHER_IUT, peer_csn=OTHER_CSN, tag=own, flags=C, after=0.01)
    assert polled(story.tester(BGAK, after=0.5)).verdicts("STP-CC-033") == PASS
