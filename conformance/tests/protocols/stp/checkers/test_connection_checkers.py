"""The checkers of STP-CC."""

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
    USTAT,
    A,
    C,
    R,
)
from bentpipe_conformance.protocols.stp.numbers import MODULUS
from bentpipe_conformance.protocols.stp.story import (
    IUT_CSN,
    IUT_ISS,
    TESTER_CSN,
    StpStory,
    between,
    later,
    polled,
)

PASS, FAIL, NOTHING = {Verdict.PASS}, {Verdict.FAIL}, set[Verdict]()
BOTH = PASS | FAIL
IUT_TAG = IUT_CSN & 0xFFFF


def opened() -> StpStory:
    return StpStory().opened()


def to_service(story: StpStory, service: int) -> StpStory:
    story.packets = [between(captured, service=service) for captured in story.packets]
    return story


def calls(*numbers: tuple[int, int, int], flags: int = C, n_r: int = 0) -> StpStory:
    """Calls from one address after the other, each with the tester's CSN, the IUT's and its ISS."""
    whole = StpStory()
    for place, (tester, iut, iss) in enumerate(numbers):
        last = place == len(numbers) - 1
        call = StpStory(at=whole.at + 1.0).tester(BEGIN, csn=tester, data=b"x")
        call.iut(BGAK, n_r if last else 0, csn=iut, peer_csn=tester, seq=iss,
                 tag=iut & 0xFFFF, flags=flags if last else C)  # fmt: skip
        if not last:
            call.tester(BGAK, csn=tester, peer_csn=iut, n_r=iss, tag=tester & 0xFFFF, after=0.6)
        whole.packets += [between(captured, port=50000 + place) for captured in call.packets]
        whole.at = call.at
    return whole


# Calling


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


def test_credit_of_begin_and_bgak() -> None:
    assert opened().verdicts("STP-CC-029") == PASS
    assert StpStory(credit=3).opened().verdicts("STP-CC-029") == FAIL
    assert StpStory().iut(BEGIN, n_mr=3).verdicts("STP-CC-029") == FAIL


# Being called


def test_data_of_a_stranger_before_its_confirmation() -> None:
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, 0, flags=C)
    assert story.tester(BGAK, after=0.6).verdicts("STP-CC-003") == PASS
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, 1, flags=C)
    assert story.tester(BGAK, after=0.6).verdicts("STP-CC-003") == FAIL
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, 0, flags=C).iut(SD, 0, data=b"x")
    assert to_service(story, 7).verdicts("STP-CC-003") == FAIL


def test_stat_before_the_confirmation_and_after_it() -> None:
    story = StpStory().tester(BEGIN).iut(BGAK, 0, flags=C).tester(SDP, 0, data=b"x", after=0.1)
    assert story.iut(STAT, 1, after=0.01).verdicts("STP-CC-003") == FAIL
    assert polled(opened()).verdicts("STP-CC-003") == NOTHING


def test_poll_while_confirmation_is_awaited() -> None:
    story = StpStory().tester(BEGIN).iut(BGAK, flags=C).tester(POLL, 0, after=0.5)
    assert later(story).verdicts("STP-CC-003") == FAIL
    story = StpStory().tester(BEGIN).iut(BGAK, flags=C).tester(POLL, 0, after=0.5)
    assert later(story.iut(BGAK, flags=C, after=0.01)).verdicts("STP-CC-003") == PASS


def test_begin_accepted_at_once_with_an_older_csn_than_one_confirmed() -> None:
    older = calls((100, 5, 1), (90, 6, 2), flags=0, n_r=1)
    assert older.verdicts("STP-CC-003") == PASS | FAIL
    assert calls((100, 5, 1), (110, 6, 2), flags=0, n_r=1).verdicts("STP-CC-003") == PASS
    # What it knew before the trace cannot be seen.
    assert calls((100, 5, 1), flags=0, n_r=1).verdicts("STP-CC-003") == NOTHING


HALF = 1 << 31


@pytest.mark.parametrize(("flags", "n_r", "verdict"), [(0, 1, PASS), (C, 0, FAIL), (0, 0, FAIL)])
def test_caller_that_is_sure_to_be_known(flags: int, n_r: int, verdict: set[Verdict]) -> None:
    story = calls((100, 5, 1), (HALF, 6, 2), (HALF + 1, 7, 3), flags=flags, n_r=n_r)
    assert story.verdicts("STP-CC-013") == verdict


def test_caller_that_may_be_known_with_a_newer_number_says_nothing() -> None:
    assert calls((100, 5, 1), (101, 6, 2)).verdicts("STP-CC-013") == NOTHING


def test_begin_to_a_service_unanswered_refused_and_answered() -> None:
    assert opened().verdicts("STP-CC-012") == PASS
    assert later(StpStory().tester(BEGIN)).verdicts("STP-CC-012") == FAIL
    assert StpStory().tester(BEGIN).iut(BGREJ, reason=3).verdicts("STP-CC-012") == FAIL
    late = StpStory().tester(BEGIN).iut(BGAK, flags=C, after=0.3)
    assert later(late).verdicts("STP-CC-012") == FAIL


def test_begin_that_meets_a_connection_from_before_the_trace_says_nothing() -> None:
    story = StpStory().tester(BEGIN).iut(BGAK, flags=C, peer_csn=77)
    assert later(story).verdicts("STP-CC-012") == NOTHING


def test_begin_in_state_3_and_in_state_4() -> None:
    pending = StpStory().tester(BEGIN).iut(BGAK, flags=C)
    other = pending.tester(BEGIN, csn=TESTER_CSN - 9, after=1.0)
    assert later(other).verdicts("STP-CC-012") == PASS | FAIL
    ended = opened().iut(END, flags=A, reason=1).tester(BEGIN, csn=TESTER_CSN - 9, after=0.5)
    assert later(ended).verdicts("STP-CC-012") == PASS


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [({}, PASS), ({"seq": IUT_ISS - 9}, FAIL), ({"number": 0}, FAIL)],
)
def test_begin_repeated_to_an_open_connection(fields: dict[str, int], verdict: object) -> None:
    story = polled_with_data().tester(BEGIN, data=b"x", after=1.0)
    story.iut(BGAK, fields.pop("number", 2), after=0.01, **fields)
    assert story.verdicts("STP-CC-015") == verdict


def polled_with_data() -> StpStory:
    story = StpStory().opened(data=b"x").tester(SDP, 1, data=b"y", after=0.5)
    return story.iut(STAT, 2, after=0.01)


def test_begin_repeated_without_an_answer() -> None:
    story = polled_with_data().tester(BEGIN, data=b"x", after=1.0)
    assert later(story).verdicts("STP-CC-015") == FAIL
    story = StpStory().tester(BEGIN).iut(BGAK, flags=C).tester(BEGIN, after=1.0)
    assert story.iut(BGAK, flags=0, after=0.01).verdicts("STP-CC-015") == FAIL


@pytest.mark.parametrize(
    ("fields", "reason", "verdict"),
    [({"version": 2}, 4, PASS), ({"version": 2}, 3, FAIL), ({"version": 2}, None, FAIL)],
)
def test_begin_of_another_version(
    fields: dict[str, int], reason: int | None, verdict: object
) -> None:
    story = StpStory().tester(BEGIN, **fields)
    if reason is not None:
        story.iut(BGREJ, reason=reason, after=0.01)
    assert later(story).verdicts("STP-CC-019") == verdict


def test_begin_to_a_port_where_nobody_listens() -> None:
    refused = to_service(StpStory().tester(BEGIN).iut(BGREJ, reason=3), 47)
    assert refused.verdicts("STP-CC-019") == PASS
    assert later(to_service(StpStory().tester(BEGIN), 47)).verdicts("STP-CC-019") == FAIL


def test_eleven_begins_in_a_second_may_be_refused_an_answer() -> None:
    story = StpStory()
    for place in range(12):
        one = StpStory(at=story.at).tester(BEGIN, version=2, after=0.05)
        story.packets += [between(one.packets[0], port=50000 + place)]
        story.at = one.at
    assert len([f for f in later(story).findings("STP-CC-019") if f.verdict is Verdict.FAIL]) == 10


# Which connection


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


def test_csns_that_rise_and_fall() -> None:
    top = (1 << 32) - 1
    assert calls((1, top, 1), (2, 5, 2)).verdicts("STP-CC-010") == PASS
    assert calls((1, 5, 1), (2, top, 2)).verdicts("STP-CC-010") == FAIL
    assert calls((1, 5, 1), (2, 5, 2)).verdicts("STP-CC-010") == FAIL


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ([n * 7919 * 401 % MODULUS * 5 % MODULUS for n in (3, 11, 4, 29, 7, 16, 5, 23)], PASS),
        ([1000] * 8, FAIL),
        ([n * 64000 % MODULUS for n in range(8)], FAIL),
        ([(n * n * 1000 - 2000) % MODULUS for n in range(8)], FAIL),
        ([5, 5, 5], NOTHING),
    ],
)
def test_isss(numbers: list[int], verdict: object) -> None:
    story = calls(*((n + 1, n + 1, iss) for n, iss in enumerate(numbers)))
    assert story.verdicts("STP-CC-011") == verdict


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
