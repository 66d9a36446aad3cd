"""The checkers of ENDs that abort, of ENDs with R flag, and of odd options."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ, END, ENDAK, SD, SDP, A, R
from bentpipe_conformance.protocols.stp.story import (
    FAIL,
    IUT_CSN,
    NOTHING,
    PASS,
    StpStory,
    later,
    opened,
    polled,
)

OWN = {"peer_csn": 0, "seq": 0, "flags": A, "reason": 7}
"""Fields of the END of a call that nobody has answered."""


def unanswered(begins: int = 5) -> StpStory:
    """A call whose BEGIN has been sent so often."""
    story = StpStory().iut(BEGIN, cookie=None)
    for place in range(begins - 1):
        story.iut(BEGIN, cookie=None, after=2.0**place)
    return story


def silent(story: StpStory) -> StpStory:
    """Nothing happens for so long that a call must have been given up."""
    story.at += 20.0
    return later(story)


@pytest.mark.parametrize(
    ("after", "fields", "verdict"),
    [
        (16.0, {}, PASS),
        (14.0, {}, FAIL),
        (19.0, {}, FAIL),
        (16.0, {"reason": 1}, FAIL),
        (14.0, {"reason": 1}, NOTHING),  # the user ended it
        (15.96, {"reason": 1}, NOTHING),
        (16.0, {"flags": 0}, FAIL),
    ],
)
def test_call_that_nobody_answers_ends_by_an_abort(
    after: float, fields: dict[str, int], verdict: set[Verdict]
) -> None:
    story = unanswered().iut(END, after=after, **{**OWN, **fields})
    assert story.verdicts("STP-CC-044") == verdict


def test_call_that_is_given_up_silently_or_was_answered() -> None:
    assert silent(unanswered()).verdicts("STP-CC-044") == FAIL
    assert silent(unanswered().tester(BGREJ, after=1.0)).verdicts("STP-CC-044") == NOTHING
    assert silent(unanswered(4)).verdicts("STP-CC-044") == NOTHING


@pytest.mark.parametrize(
    ("fields", "verdict"), [({}, PASS), ({"peer_csn": 9}, FAIL), ({"seq": 9}, FAIL)]
)
def test_abort_of_a_call_names_nothing(fields: dict[str, int], verdict: set[Verdict]) -> None:
    story = unanswered().iut(END, after=16.0, **{**OWN, **fields})
    assert story.verdicts("STP-CC-045") == verdict


def test_abort_of_a_connection_says_what_has_arrived() -> None:
    def story(number: int, **fields: int) -> StpStory:
        taken = opened().tester(SD, 0, data=b"x", after=0.1)
        return taken.iut(END, number, flags=A, reason=7, after=1.0, **fields)

    assert story(1).verdicts("STP-CC-045") == PASS
    assert story(0).verdicts("STP-CC-045") == FAIL
    assert story(2).verdicts("STP-CC-045") == FAIL
    assert story(1, peer_csn=0).verdicts("STP-CC-045") == FAIL


def test_end_with_r_flag_answered_and_not() -> None:
    def disowned() -> StpStory:
        return polled(opened()).tester(END, flags=A | R, reason=2, seq=0, after=1.0)

    assert later(disowned()).verdicts("STP-CC-046") == PASS
    assert later(disowned().iut(ENDAK, after=0.01)).verdicts("STP-CC-046") == FAIL


@pytest.mark.parametrize("options", [bytes((1, 6, 5, 120, 5, 120, 0, 0)), bytes((1, 4, 2, 88))])
def test_begin_with_odd_options(options: bytes) -> None:
    def begun() -> StpStory:
        cookie = StpStory().asked()
        given = bytes((1, 4, 5, 120, 2, 18)) + bytes(cookie_of()) + bytes(2)
        return cookie.tester(BEGIN, options=options + given, after=1.0)

    first = 600 if len(options) == 4 else 1400
    assert begun().iut(BGAK, after=0.01).verdicts("STP-PF-018") == PASS
    assert later(begun()).verdicts("STP-PF-018") == FAIL
    large = begun().iut(BGAK, after=0.01).iut(SDP, 0, data=bytes(first + 1))
    assert large.verdicts("STP-PF-018") >= FAIL


@pytest.mark.parametrize(("number", "verdict"), [(0, NOTHING), (1, FAIL)])
def test_bgak_with_odd_options_that_lowers_max_sd(number: int, verdict: set[Verdict]) -> None:
    """An early SD is sent again as it was; a new one keeps to the MaxSD that counts."""
    story = StpStory().iut(BEGIN, csn=IUT_CSN - 1, seq=7, cookie=None)
    story.tester(BGREJ, reason=6, peer_csn=IUT_CSN - 1, after=0.6).iut(BEGIN)
    story.iut(SD, 0, data=bytes(1000)).tester(
        BGAK, 0, options=bytes((1, 4, 2, 0, 1, 4, 5, 120)), cookie=None, after=0.6
    )
    assert story.iut(SDP, number, data=bytes(1000)).verdicts("STP-PF-018") == verdict


def cookie_of() -> bytes:
    """The cookie that the tester has been given."""
    asked = StpStory().asked()
    return next(p.content.cookie for p in asked.trace().packets if p.content.cookie)
