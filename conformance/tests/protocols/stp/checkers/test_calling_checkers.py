"""The checkers of calling (STP-CC)."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    A,
    V,
)
from bentpipe_conformance.protocols.stp.cookies import altered
from bentpipe_conformance.protocols.stp.story import (
    FAIL,
    IUT_CSN,
    IUT_ISS,
    NOTHING,
    PASS,
    TESTER_COOKIES,
    TESTER_CSN,
    StpStory,
    between,
    later,
    opened,
)

BOTH = PASS | FAIL


@pytest.mark.parametrize(("highest", "verdict"), [(3, PASS), (4, FAIL)])
def test_early_sds(highest: int, verdict: set[Verdict]) -> None:
    story = StpStory().iut(BEGIN, data=b"0")
    for number in range(1, highest + 1):
        story.iut(SD, number, data=b"x", after=0.01)
    assert story.tester(BGAK, 1, after=0.6).verdicts("STP-CC-002") == verdict


def test_early_sds_without_a_cookie() -> None:
    story = StpStory().iut(BEGIN, cookie=None).iut(SD, 0, data=b"x", after=0.01)
    assert later(story).verdicts("STP-CC-002") == FAIL


def test_sds_after_the_bgak_are_not_early() -> None:
    story = StpStory().called().iut(SD, 0, data=b"x").iut(SD, 4, data=b"x")
    assert story.verdicts("STP-CC-002") == PASS


def test_begin_without_a_cookie_that_carries_something() -> None:
    assert StpStory().iut(BEGIN, cookie=None).verdicts("STP-CC-034") == PASS
    assert StpStory().iut(BEGIN, cookie=None, data=b"x").verdicts("STP-CC-034") == FAIL
    assert StpStory().iut(BEGIN, cookie=None, flags=FIN).verdicts("STP-CC-034") == FAIL
    assert StpStory().iut(BEGIN, data=b"x", flags=FIN).verdicts("STP-CC-034") == NOTHING


def test_begin_repeated_as_it_was_or_with_other_data() -> None:
    story = StpStory().iut(BEGIN, data=b"x").iut(BEGIN, data=b"x", after=1.0)
    assert story.verdicts("STP-CC-014") == PASS
    assert story.iut(BEGIN, data=b"y", after=2.0).verdicts("STP-CC-014") == BOTH


@pytest.mark.parametrize(
    ("heeds", "again", "verdict"), [(True, True, PASS), (True, False, BOTH), (False, False, PASS)]
)
def test_data_of_a_repeated_begin_reported_by_a_ustat(
    heeds: bool, again: bool, verdict: set[Verdict]
) -> None:
    story = StpStory().iut(BEGIN, data=b"x").iut(BEGIN, data=b"x", after=1.0)
    story.tester(BGAK, 0, after=0.6).iut(POLL, 1).tester(USTAT, 0, elements=(0, 1), after=0.6)
    if again:
        story.iut(SD, 0, data=b"x", after=0.01)
    story.iut(SD, 1, data=b"y", after=9.0).tester(USTAT, 0, elements=(1, 2), after=0.6)
    if heeds:
        story.iut(SD, 1, data=b"y", after=0.01)
    assert later(story).verdicts("STP-CC-014") == verdict


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ((1.0, 2.0, 4.0, 8.0), PASS),
        ((1.0, 1.0), BOTH),
        ((2.0,), FAIL),
        ((1.0, 2.0, 4.0, 8.0, 16.0), BOTH),
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
    for story, requirement in ((call, "STP-CC-016"), (release, "STP-CC-026")):
        story.at += max(0.0, wait - 9.0)
        assert later(story).verdicts(requirement) == verdict, requirement


@pytest.mark.parametrize(
    ("answer", "fields"), [(BGAK, {}), (BGREJ, {}), (END, {"flags": A, "reason": 1})]
)
def test_begin_after_its_answer(answer: int, fields: dict[str, int]) -> None:
    story = StpStory().iut(BEGIN).tester(answer, after=0.6, **fields)
    assert later(story).verdicts("STP-CC-016") == PASS
    story = StpStory().iut(BEGIN).tester(answer, after=0.6, **fields).iut(BEGIN, after=0.4)
    assert later(story).verdicts("STP-CC-016") == FAIL
    # The one that crosses the answer may have been on its way.
    story = StpStory().iut(BEGIN).tester(answer, after=0.99, **fields).iut(BEGIN, after=0.01)
    assert Verdict.FAIL not in later(story).verdicts("STP-CC-016")


def test_begin_goes_on_after_a_refusal_of_another_call() -> None:
    story = StpStory().iut(BEGIN).tester(BGREJ, peer_csn=77, after=0.6).iut(BEGIN, after=0.4)
    assert story.verdicts("STP-CC-016") == PASS
    given_up = StpStory().iut(BEGIN).tester(BGREJ, peer_csn=77, after=0.6)
    assert later(given_up).verdicts("STP-CC-016") == FAIL
    assert later(given_up).verdicts("STP-SEC-005") == FAIL


# Calling anew


def given(story: StpStory | None = None, number: int = 0) -> StpStory:
    """The call with CSN ``IUT_CSN - 10 + number`` is given a cookie."""
    csn = IUT_CSN - 10 + number
    story = story or StpStory().iut(BEGIN, csn=csn, seq=7, cookie=None)
    cookie = TESTER_COOKIES[number]
    return story.tester(BGREJ, reason=6, peer_csn=csn, cookie=cookie, after=0.6)


def anew(story: StpStory, number: int = 1, **fields: object) -> StpStory:
    right = {"csn": IUT_CSN - 10 + number, "seq": 7 + number, "cookie": TESTER_COOKIES[number - 1]}
    return story.iut(BEGIN, after=0.01, **{**right, **fields})  # type: ignore[arg-type]


def test_caller_that_is_given_a_cookie_calls_anew() -> None:
    assert anew(given()).verdicts("STP-CC-037") == PASS
    assert later(given()).verdicts("STP-CC-037") == FAIL
    late = given().iut(BEGIN, csn=IUT_CSN - 9, seq=8, cookie=TESTER_COOKIES[0], after=0.2)
    assert late.verdicts("STP-CC-037") == FAIL
    assert anew(given(), seq=7).verdicts("STP-CC-037") == FAIL
    assert anew(given(), cookie=TESTER_COOKIES[3]).verdicts("STP-CC-037") == FAIL
    assert anew(given(), cookie=None).verdicts("STP-CC-037") == FAIL


def test_call_anew_begins_the_data_again() -> None:
    for data, verdict in ((b"the same", PASS), (b"the sa", PASS), (b"other", BOTH), (b"", BOTH)):
        story = given(anew(given(), data=b"the same"), 1)
        assert anew(story, 2, data=data).verdicts("STP-CC-037") == verdict, data


def test_refusal_without_a_cookie_is_no_reason_to_call_anew() -> None:
    story = StpStory().iut(BEGIN).tester(BGREJ, reason=6, cookie=None, after=0.6)
    assert later(story).verdicts("STP-CC-037") == PASS


@pytest.mark.parametrize(("times", "verdict"), [(5, PASS), (6, BOTH)])
def test_caller_calls_anew_five_times(times: int, verdict: object) -> None:
    story = given()
    for number in range(1, times + 1):
        anew(story, number)
        given(story, number)
    if times == 5:
        assert later(story).verdicts("STP-CC-037") == verdict
    else:
        assert story.verdicts("STP-CC-037") == verdict


def test_cookie_returned_unchanged_and_once() -> None:
    assert anew(given()).verdicts("STP-CC-039") == PASS
    assert anew(given(), cookie=altered(TESTER_COOKIES[0], 3)).verdicts("STP-CC-039") == FAIL
    assert anew(given(), cookie=TESTER_COOKIES[0][:-1]).verdicts("STP-CC-039") == FAIL
    twice = given(anew(given()), 1)
    anew(twice, 2, cookie=TESTER_COOKIES[0])
    assert twice.verdicts("STP-CC-039") == BOTH


def beside(story: StpStory, other: StpStory, service: int = 78) -> StpStory:
    """What another story tells passes at its times, between other ports."""
    story.packets += [between(packet, service=service) for packet in other.packets]
    story.packets.sort(key=lambda packet: packet.time)
    return story


def from_another_port(story: StpStory, number: int, **fields: object) -> StpStory:
    """The implementation calls from another of its ports."""
    call = anew(StpStory(at=story.at), number, **fields)
    beside(story, call, service=77).at = call.at
    return story


def two_calls_at_once(*, answered: bool = True) -> StpStory:
    """Two calls are given cookies 4 ms apart; the first is made anew after the second's BGREJ."""
    story = given()
    other = StpStory().iut(BEGIN, csn=IUT_CSN - 5, seq=70, cookie=None, after=0.004)
    other.tester(BGREJ, reason=6, peer_csn=IUT_CSN - 5, cookie=TESTER_COOKIES[5], after=0.6)
    anew(other, csn=IUT_CSN - 4, seq=71, cookie=TESTER_COOKIES[5])
    first, refusal, *again = [between(packet, service=77) for packet in other.packets]
    story.packets = [story.packets[0], first, story.packets[1], refusal]
    story.at = refusal.time
    if answered:
        anew(story)
    story.packets += again
    return story


def test_two_calls_that_are_given_cookies_at_once() -> None:
    for requirement in ("STP-CC-037", "STP-PF-017"):
        assert Verdict.FAIL not in later(two_calls_at_once()).verdicts(requirement), requirement
    unanswered = later(two_calls_at_once(answered=False)).findings("STP-CC-037")
    assert [item.sentence for item in unanswered if item.verdict is Verdict.FAIL] == [
        "a caller that was given a cookie did not call anew"
    ]


def test_call_anew_from_another_port() -> None:
    assert from_another_port(given(), 1).verdicts("STP-CC-037") == FAIL


def after_a_failure(flags: int, **fields: object) -> StpStory:
    """A connection brings a cookie, the next call fails, and a third one is made."""
    story = connected_with_v()
    failed = {"csn": IUT_CSN - 8, "seq": 9, "cookie": TESTER_COOKIES[6], **fields}
    call = StpStory(at=story.at).iut(BEGIN, **failed)  # type: ignore[arg-type]
    call.tester(BGREJ, reason=3, peer_csn=IUT_CSN - 8, after=0.6)
    beside(story, call).at = call.at + 1.0
    return from_another_port(story, 3, cookie=TESTER_COOKIES[1], flags=flags)


def test_damaged_bgak_names_no_connection() -> None:
    story = StpStory().iut(BEGIN, data=b"x")
    story.tester(BGAK, 1, csn=TESTER_CSN ^ 1 << 25, broken_checksum=True, after=0.6)
    story.tester(BGAK, 1, after=0.1).iut(SD, 1, data=b"x")
    assert later(story).verdicts("STP-CC-016").isdisjoint(FAIL)


def connected_with_v(story: StpStory | None = None) -> StpStory:
    """A call with V flag has opened, and its BGAK brought a cookie."""
    story = anew(given(story), data=b"x", flags=V, seq=IUT_ISS)
    story.tester(BGAK, 1, peer_csn=IUT_CSN - 9, after=0.6).at += 1.0
    return story


def test_cookie_from_before_a_failed_call() -> None:
    found = after_a_failure(V).findings("STP-CC-039")
    assert [item.sentence for item in found if item.verdict is Verdict.FAIL] == [
        "a call that was made after one had failed used a cookie that answers a BEGIN sent before"
    ]


def test_call_without_a_cookie_that_failed_voids_nothing() -> None:
    assert after_a_failure(0, cookie=None).verdicts("STP-CC-039") == PASS
    assert after_a_failure(V, cookie=None).verdicts("STP-CC-039") == BOTH


@pytest.mark.parametrize(("flags", "verdict"), [(V, Verdict.PASS), (0, Verdict.FAIL)])
def test_v_flag_after_a_failed_call(flags: int, verdict: Verdict) -> None:
    found = after_a_failure(flags).findings("STP-CC-039")
    after = [item.verdict for item in found if item.sentence.startswith("after a call had failed")]
    assert after == [verdict]


@pytest.mark.parametrize(("flags", "verdict"), [(0, PASS), (V, BOTH)])
def test_v_flag_once_a_call_has_opened(flags: int, verdict: object) -> None:
    story = from_another_port(connected_with_v(), 2, cookie=TESTER_COOKIES[1], flags=flags)
    assert story.verdicts("STP-CC-039") == verdict


@pytest.mark.parametrize(("before", "expected"), [(0.0, PASS), (0.5, BOTH)])
def test_v_flag_once_a_call_has_opened_that_was_made_when_another_was_aborted(
    before: float, expected: object
) -> None:
    """The user calls the moment it aborts its call, or some time before."""
    aborted = StpStory().iut(BEGIN, csn=IUT_CSN - 5, seq=70, cookie=TESTER_COOKIES[5])
    story = StpStory(at=1.0 - before).iut(BEGIN, csn=IUT_CSN - 10, seq=7, cookie=None)
    aborted.at = 1.0
    aborted.iut(END, csn=IUT_CSN - 5, peer_csn=0, flags=A, reason=1)
    beside(connected_with_v(story), aborted)
    story = from_another_port(story, 2, cookie=TESTER_COOKIES[1], flags=0)
    assert story.verdicts("STP-CC-039") == expected


@pytest.mark.parametrize(("before", "accused"), [(0.0, False), (0.5, False), (-0.5, True)])
def test_caller_calls_without_a_cookie_when_another_call_is_aborted(
    before: float, accused: bool
) -> None:
    """From the abort on the cookies that the implementation holds are worth nothing."""
    story = connected_with_v()
    other = StpStory(at=story.at).iut(BEGIN, csn=IUT_CSN - 5, seq=70, cookie=TESTER_COOKIES[5])
    other.at = story.at + 2.0 - before
    other.iut(END, csn=IUT_CSN - 5, peer_csn=0, flags=A, reason=1)
    call = StpStory(at=story.at + 2.0).iut(BEGIN, csn=IUT_CSN - 4, seq=80, cookie=None)
    beside(beside(story, other), call, service=77)
    assert (Verdict.FAIL in story.verdicts("STP-CC-040")) == accused


@pytest.mark.parametrize("flags", [0, V])
def test_v_flag_of_a_first_call_says_nothing(flags: int) -> None:
    # The endpoint may have started just before, or long ago.
    assert anew(given(), flags=flags).verdicts("STP-CC-039") == PASS


def test_v_flag_without_a_cookie() -> None:
    assert StpStory().iut(BEGIN, cookie=None, flags=V).verdicts("STP-CC-039") == FAIL


@pytest.mark.parametrize(("times", "verdict"), [(5, PASS), (3, BOTH)])
def test_call_given_up_after_so_many_begins(times: int, verdict: object) -> None:
    story = StpStory().iut(BEGIN)
    for number in range(times - 1):
        story.iut(BEGIN, after=2.0**number)
    story.iut(END, 0, flags=A, reason=7, peer_csn=0, after=2.0 ** (times - 1))
    assert story.verdicts("STP-CC-016") == verdict


def again_after_a_connection(**fields: object) -> StpStory:
    story = anew(given(), data=b"x", seq=IUT_ISS)
    story.tester(BGAK, 1, peer_csn=IUT_CSN - 9, after=0.6)
    story.at += 1.0
    return from_another_port(story, 2, **{"cookie": TESTER_COOKIES[1], **fields})


def test_caller_that_holds_a_cookie_uses_it() -> None:
    assert Verdict.FAIL not in again_after_a_connection().verdicts("STP-CC-040")
    assert Verdict.FAIL in again_after_a_connection(cookie=None).verdicts("STP-CC-040")


@pytest.mark.parametrize(("number", "holds"), [(1, True), (9, False)])
def test_caller_holds_no_cookie_of_a_bgak_that_opened_nothing(number: int, holds: bool) -> None:
    """One that acknowledges SDs which were never sent is discarded, and its cookie with it."""
    story = anew(given(), data=b"x", seq=IUT_ISS)
    story.tester(BGAK, number, peer_csn=IUT_CSN - 9, after=0.6)
    story.at += 0.3
    verdicts = from_another_port(story, 2, cookie=None).verdicts("STP-CC-040")
    assert (Verdict.FAIL in verdicts) is holds


@pytest.mark.parametrize(
    ("octets", "after", "verdict"), [(1400, 0.01, PASS), (0, 0.01, FAIL), (0, 0.5, PASS)]
)
def test_begin_with_a_cookie_and_data_behind_it(octets: int, after: float, verdict: object) -> None:
    story = anew(given(), data=bytes(octets))
    story.iut(SD, bool(octets), data=b"x", tag=(IUT_CSN - 9) & 0xFFFF, after=after)
    assert story.verdicts("STP-CC-040") == verdict


# No POLL before the BGAK


def test_poll_before_the_begin_is_answered() -> None:
    for kind in (POLL, SDP):
        story = StpStory().iut(BEGIN, data=b"x").iut(kind, 1, after=0.1)
        assert story.verdicts("STP-CC-042") == FAIL
    assert later(StpStory().iut(BEGIN, data=b"x")).verdicts("STP-CC-042") == PASS


@pytest.mark.parametrize(("after", "verdict"), [(0.01, PASS), (0.03, FAIL)])
def test_poll_after_the_bgak(after: float, verdict: object) -> None:
    story = StpStory().iut(BEGIN, data=b"x").iut(SD, 1, data=b"y").tester(BGAK, 1, after=0.6)
    assert later(story.iut(POLL, 2, after=after)).verdicts("STP-CC-042") == verdict


def test_bgak_that_acknowledges_everything_needs_no_poll() -> None:
    story = StpStory().iut(BEGIN, data=b"x").tester(BGAK, 1, after=0.6)
    assert Verdict.FAIL not in later(story).verdicts("STP-CC-042")


@pytest.mark.parametrize(("polls", "verdict"), [(True, PASS), (False, FAIL)])
def test_bgak_that_leaves_the_data_of_the_begin(polls: bool, verdict: set[Verdict]) -> None:
    story = StpStory().iut(BEGIN, data=b"x", flags=FIN).tester(BGAK, 0, after=0.6)
    if polls:
        story.iut(POLL, 1, after=0.01)
    assert later(story).verdicts("STP-CC-042") == verdict


def test_begin_to_a_port_that_calls() -> None:
    def met(reason: int | None) -> StpStory:
        story = StpStory().iut(BEGIN).tester(BEGIN, after=0.5)
        if reason is not None:
            story.iut(BGREJ, reason=reason, after=0.01)
        return later(story)

    assert met(3).verdicts("STP-CC-043") == PASS
    assert met(6).verdicts("STP-CC-043") == FAIL
    assert met(None).verdicts("STP-CC-043") == FAIL


def test_end_of_a_call_that_is_answered() -> None:
    story = StpStory().iut(BEGIN).tester(END, flags=A, reason=1, after=0.6)
    assert story.iut(ENDAK, after=0.01).verdicts("STP-CC-022") == PASS
    story = StpStory().called().iut(SD, 0).iut(POLL, 1).tester(STAT, 1, after=0.6)
    assert story.verdicts("STP-CC-022") == NOTHING
