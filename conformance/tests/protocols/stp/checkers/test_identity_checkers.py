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
    R,
)
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS
from bentpipe_conformance.protocols.stp.story import (
    FAIL,
    IUT_CSN,
    NOTHING,
    PASS,
    TESTER_CSN,
    StpStory,
    later,
    opened,
    polled,
)


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


@pytest.mark.parametrize(("reason", "expected"), [(1, PASS), (3, FAIL)])
def test_user_who_aborts_a_call_soon_after_a_packet(reason: int, expected: set[Verdict]) -> None:
    story = StpStory().iut(BEGIN).tester(SD, 0, data=b"x", after=0.5)
    story.iut(END, flags=A, reason=reason, peer_csn=0, after=0.05)
    assert later(story).verdicts("STP-CC-001") == expected


@pytest.mark.parametrize(
    ("flags", "csn", "peer_csn"),
    [
        (A, TESTER_CSN, 1),
        (A, TESTER_CSN ^ 1 << 16, IUT_CSN),
        (0, TESTER_CSN, 0),
        (A | R, 0, 0),
        (A | R, TESTER_CSN ^ 1 << 31, IUT_CSN),
    ],
)
def test_end_that_is_not_valid(flags: int, csn: int, peer_csn: int) -> None:
    fields = {"flags": flags, "reason": 1, "csn": csn, "peer_csn": peer_csn}
    story = polled(opened()).tester(END, **fields, after=1.0)
    assert later(story).verdicts("STP-CC-021") == PASS
    story = polled(opened()).tester(END, **fields, after=1.0)
    assert story.iut(ENDAK, peer_csn=csn, after=0.01).verdicts("STP-CC-021") == FAIL


@pytest.mark.parametrize(
    ("flags", "csn", "peer_csn"),
    [
        (A, TESTER_CSN, IUT_CSN),
        (A, TESTER_CSN, 0),
        (0, TESTER_CSN, IUT_CSN),
        (A | R, 0, IUT_CSN),
        (A | R, TESTER_CSN, IUT_CSN),
    ],
)
def test_end_that_is_valid(flags: int, csn: int, peer_csn: int) -> None:
    fields = {"flags": flags, "reason": 1, "csn": csn, "peer_csn": peer_csn}
    story = polled(opened()).tester(END, **fields, after=1.0)
    acknowledged = not flags & R
    if acknowledged:  # otherwise STP-CC-022 judges it
        assert later(story).verdicts("STP-CC-021") == NOTHING
        story.iut(ENDAK, peer_csn=csn, after=0.01)
    assert later(story).verdicts("STP-CC-021") == PASS
    story = polled(opened()).tester(END, **fields, after=1.0)
    if acknowledged:
        story.iut(ENDAK, peer_csn=csn, after=0.01)
    assert later(story.iut(POLL, 0, after=1.0)).verdicts("STP-CC-021") == FAIL


# No connection


def out_of_the_blue(kind: int, **answer: int) -> StpStory:
    story = StpStory().tester(kind, peer_csn=99) if kind == BGAK else StpStory().tester(kind)
    if answer:
        story.iut(END, **{"flags": A | R, "reason": 2, "seq": 0, **answer}, after=0.01)
    return later(story)


def test_packets_without_a_connection() -> None:
    blank = {"csn": 0, "peer_csn": TESTER_CSN, "tag": 0}
    for kind in (SDP, POLL):
        assert out_of_the_blue(kind, **blank).verdicts("STP-CC-020") == PASS
        assert out_of_the_blue(kind, **{**blank, "tag": 5}).verdicts("STP-CC-020") == FAIL
        tag_only = {**blank, "peer_csn": TESTER_CSN & 0xFFFF}
        assert out_of_the_blue(kind, **tag_only).verdicts("STP-CC-020") == FAIL
        assert out_of_the_blue(kind).verdicts("STP-CC-020") == FAIL
    named = {"csn": 99, "peer_csn": TESTER_CSN, "tag": 99}
    assert out_of_the_blue(BGAK, **named).verdicts("STP-CC-020") == PASS
    assert out_of_the_blue(BGAK, **blank).verdicts("STP-CC-020") == FAIL
    for kind in (SD, STAT, ENDAK, BGREJ):
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


def test_csn_older_than_one_before() -> None:
    for step, verdict in ((1, PASS), (-1, FAIL), (0, FAIL)):
        story = StpStory().iut(BEGIN, csn=IUT_CSN - 5).tester(BGREJ, peer_csn=IUT_CSN - 5)
        story.iut(BEGIN, csn=IUT_CSN - 5 + step, seq=9, after=1.0)
        if step:
            assert story.verdicts("STP-CC-010") == verdict


@pytest.mark.parametrize(("step", "verdict"), [(1, PASS), (-1, FAIL)])
def test_csn_of_a_connection_that_is_accepted_after_a_call(
    step: int, verdict: set[Verdict]
) -> None:
    csn = (IUT_CSN - step) % CSN_MODULUS
    story = StpStory().iut(BEGIN, csn=csn).tester(BGREJ, peer_csn=csn)
    assert later(story.opened()).verdicts("STP-CC-010") == verdict
