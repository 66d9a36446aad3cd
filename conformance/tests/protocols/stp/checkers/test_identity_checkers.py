"""The checkers of which connection a packet belongs to, if any (STP-CC)."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    POLL,
    SD,
    SDP,
    STAT,
    A,
    C,
    R,
)
from bentpipe_conformance.protocols.stp.story import (
    FAIL,
    IUT_TAG,
    NOTHING,
    PASS,
    TESTER_CSN,
    StpStory,
    later,
    opened,
    polled,
)

BOTH = PASS | FAIL


def test_packets_with_a_wrong_tag() -> None:
    story = opened().tester(POLL, 0, tag=1, after=1.0)
    assert later(story).verdicts("STP-CC-001") == PASS
    story = opened().tester(POLL, 0, tag=1, after=1.0).iut(STAT, 0, after=0.01)
    assert story.verdicts("STP-CC-001") == FAIL
    story = polled(opened().tester(SD, 0, tag=1, data=b"x", after=1.0))
    assert story.verdicts("STP-CC-001") == PASS
    story = opened().tester(SD, 0, tag=1, data=b"x", after=1.0).tester(POLL, 1, after=1.0)
    assert story.iut(STAT, 1, after=0.01).verdicts("STP-CC-001") == FAIL


def test_sd_with_a_wrong_tag_below_iss_says_nothing_of_what_is_taken() -> None:
    story = opened().tester(SD, 0, data=b"x", after=1.0).tester(SD, -5, tag=1, after=1.0)
    assert story.tester(POLL, 1, after=1.0).iut(STAT, 1, after=0.01).verdicts("STP-CC-001") == PASS


@pytest.mark.parametrize("answered", [False, True])
def test_packets_before_the_call_is_answered(answered: bool) -> None:
    story = StpStory().iut(BEGIN).tester(SD, 0, data=b"x", after=0.5)
    if answered:
        story.iut(END, flags=A | R, reason=2, csn=0, seq=0, tag=0, after=0.01)
    assert later(story).verdicts("STP-CC-001") == (FAIL if answered else PASS)


def disowned(**fields: int) -> StpStory:
    story = polled(opened()).tester(BGAK, csn=TESTER_CSN + 1, after=1.0)
    return story.iut(END, 0, **{"peer_csn": TESTER_CSN + 1, "flags": A, "reason": 2, **fields})


def test_bgak_with_a_newer_number() -> None:
    assert later(disowned()).verdicts("STP-CC-007") == PASS
    assert later(disowned(reason=1)).verdicts("STP-CC-007") == FAIL
    assert polled(disowned(), 2).verdicts("STP-CC-007") == FAIL
    story = polled(opened()).tester(BGAK, csn=TESTER_CSN + 1, after=1.0)
    assert later(story).verdicts("STP-CC-007") == FAIL
    story = polled(opened()).tester(BGAK, csn=TESTER_CSN + 1, after=1.0)
    confirmed = later(story.iut(BGAK, peer_csn=TESTER_CSN + 1, after=0.01))
    assert confirmed.verdicts("STP-CC-007") == FAIL


def test_question_answered_late_and_with_another_question() -> None:
    asked = opened().tester(BGAK, flags=C, after=1.0)
    assert asked.iut(BGAK, after=0.01).verdicts("STP-CC-017") == PASS
    asked = opened().tester(BGAK, flags=C, after=1.0)
    assert later(asked.iut(BGAK, flags=C, after=0.01)).verdicts("STP-CC-017") == FAIL
    asked = opened().tester(BGAK, flags=C, after=1.0)
    assert later(asked.iut(BGAK, after=0.5)).verdicts("STP-CC-017") == FAIL


def intruded(gap: float = 2.0) -> StpStory:
    story = polled(opened()).tester(BEGIN, csn=77, after=2.0).iut(BGAK, flags=C, after=0.01)
    return story.tester(BEGIN, csn=78, after=gap)


def test_begin_of_another_connection() -> None:
    assert intruded().iut(BGAK, flags=C, after=0.01).verdicts("STP-CC-018") == PASS
    assert later(intruded()).verdicts("STP-CC-018") == PASS | FAIL
    ended = intruded().iut(END, flags=A, reason=2, after=0.01)
    assert ended.verdicts("STP-CC-018") == PASS | FAIL
    taken = intruded().iut(BGAK, csn=3, peer_csn=78, flags=C, after=0.01)
    assert Verdict.FAIL in taken.verdicts("STP-CC-018")


def test_second_challenge_within_a_second() -> None:
    assert later(intruded(0.5)).verdicts("STP-CC-018") == PASS
    soon = intruded(0.5).iut(BGAK, flags=C, after=0.01)
    assert soon.verdicts("STP-CC-018") == PASS | FAIL


def test_begin_as_soon_as_the_connection_is_open_says_nothing() -> None:
    story = opened().tester(BEGIN, csn=77, after=0.01).iut(BGAK, flags=C, after=0.01)
    story.tester(BEGIN, csn=78, after=0.5)
    assert later(story).verdicts("STP-CC-018") == NOTHING


def test_release_soon_after_the_begin_is_repeated() -> None:
    story = StpStory().tester(BEGIN).iut(BGAK, flags=C).tester(BGAK, after=0.01)
    story.iut(END, flags=A, reason=1, after=0.01)
    assert later(story).verdicts("STP-CC-026") == FAIL


def hinted() -> StpStory:
    return polled(opened()).tester(
        END, flags=A | R, reason=2, csn=0, peer_csn=IUT_TAG, tag=0, seq=0, after=2.0
    )


def test_end_that_names_the_tag_only() -> None:
    assert hinted().iut(BGAK, flags=C, after=0.01).verdicts("STP-CC-021") == PASS
    assert later(hinted()).verdicts("STP-CC-021") == FAIL
    assert hinted().iut(ENDAK, after=0.01).verdicts("STP-CC-021") == NOTHING


def test_challenges_for_a_begin_and_an_end_share_a_limit() -> None:
    for pause, verdict in ((2.0, PASS), (0.5, BOTH)):
        story = hinted().iut(BGAK, flags=C, after=0.01)
        story.tester(BEGIN, csn=TESTER_CSN + 5, after=pause).iut(BGAK, flags=C, after=0.01)
        assert story.verdicts("STP-CC-018") == verdict
        assert story.verdicts("STP-CC-021") == PASS


def test_end_with_wrong_csns() -> None:
    story = polled(opened()).tester(END, flags=A, reason=1, peer_csn=1, after=1.0)
    assert later(story).verdicts("STP-CC-021") == PASS
    story = polled(opened()).tester(END, flags=A, reason=1, peer_csn=1, after=1.0)
    assert story.iut(ENDAK, after=0.01).verdicts("STP-CC-021") == FAIL


# No connection


def out_of_the_blue(kind: int, **answer: int) -> StpStory:
    story = StpStory().tester(kind, peer_csn=99) if kind == BGAK else StpStory().tester(kind)
    if answer:
        story.iut(END, **{"flags": A | R, "reason": 2, "seq": 0, **answer}, after=0.01)
    return later(story)


def test_packets_without_a_connection() -> None:
    blank = {"csn": 0, "peer_csn": TESTER_CSN & 0xFFFF, "tag": 0}
    for kind in (SD, SDP, POLL):
        assert out_of_the_blue(kind, **blank).verdicts("STP-CC-020") == PASS
        assert out_of_the_blue(kind, **{**blank, "tag": 5}).verdicts("STP-CC-020") == FAIL
        assert out_of_the_blue(kind).verdicts("STP-CC-020") == FAIL
    named = {"csn": 99, "peer_csn": TESTER_CSN, "tag": 99}
    assert out_of_the_blue(BGAK, **named).verdicts("STP-CC-020") == PASS
    assert out_of_the_blue(BGAK, **blank).verdicts("STP-CC-020") == FAIL
    for kind in (STAT, ENDAK, BGREJ):
        assert out_of_the_blue(kind).verdicts("STP-CC-020") == PASS
        assert out_of_the_blue(kind, **blank).verdicts("STP-CC-020") == FAIL


def test_connection_from_before_the_trace_says_nothing() -> None:
    story = StpStory().tester(SD, 0, data=b"x").iut(SD, 3, data=b"y", after=0.1)
    assert later(story).verdicts("STP-CC-020") == NOTHING


def test_poll_after_the_end_of_its_connection() -> None:
    gone = opened().tester(END, flags=A, reason=1, after=1.0).iut(ENDAK).tester(POLL, 0, after=1.0)
    assert later(gone).verdicts("STP-CC-020") == FAIL


def test_ends_and_their_acknowledgment() -> None:
    story = opened().tester(END, flags=A, reason=1, after=1.0)
    assert story.iut(ENDAK, after=0.01).verdicts("STP-CC-022") == PASS
    story = opened().tester(END, flags=A, reason=1, after=1.0)
    assert later(story).verdicts("STP-CC-022") == FAIL
    story = opened().tester(END, flags=A, reason=1, after=1.0)
    assert story.iut(ENDAK, tag=5, after=0.01).verdicts("STP-CC-022") == FAIL
    story = StpStory().tester(END, flags=A, reason=1)
    assert later(story).verdicts("STP-CC-022") == FAIL
    story = opened().tester(END, flags=A | R, reason=2, after=1.0)
    assert later(story).verdicts("STP-CC-022") == NOTHING
