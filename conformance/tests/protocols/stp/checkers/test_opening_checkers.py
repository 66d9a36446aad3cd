"""The checkers of being called: which BEGINs open a connection, and what answers them (STP-CC)."""

from __future__ import annotations

from dataclasses import replace

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
    STAT,
    A,
    R,
    V,
    build,
    dissect,
)
from bentpipe_conformance.protocols.stp.cookies import altered
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.story import (
    COOKIES,
    FAIL,
    IUT_CSN,
    NOTHING,
    PASS,
    TESTER_CSN,
    TESTER_PORT,
    StpStory,
    later,
    opened,
    polled,
)

BOTH = PASS | FAIL
NEW_CSN, NEW_IUT_CSN = TESTER_CSN + 9, 3
FRESH = COOKIES[5]


def stranger(cookie: bytes | None = None, **fields: int) -> StpStory:
    """A cookie was given; a BEGIN with another one, or without, arrives."""
    return StpStory().asked().tester(BEGIN, cookie=cookie, after=1.0, **fields)


def refused(story: StpStory, cookie: bytes | None = FRESH, csn: int = TESTER_CSN) -> StpStory:
    return story.iut(BGREJ, reason=6, peer_csn=csn, cookie=cookie, after=0.01)


def disowned(story: StpStory, csn: int = TESTER_CSN, **fields: int) -> StpStory:
    """The END that answers a used cookie."""
    right = {"flags": A | R, "reason": 2, "csn": 0, "peer_csn": csn, "tag": 0, "seq": 0}
    return story.iut(END, **{**right, **fields}, after=0.01)


def with_good_cookie(data: bytes = b"") -> StpStory:
    return StpStory().asked().tester(BEGIN, data=data, after=1.0)


def test_good_cookie_answered_in_time_late_and_by_a_refusal() -> None:
    assert with_good_cookie().iut(BGAK, 0, after=0.09).verdicts("STP-CC-012") == PASS
    assert later(with_good_cookie().iut(BGAK, 0, after=0.2)).verdicts("STP-CC-012") == FAIL
    assert later(with_good_cookie()).verdicts("STP-CC-012") == FAIL
    assert refused(with_good_cookie()).verdicts("STP-CC-012") == FAIL
    full = with_good_cookie().iut(BGREJ, reason=5, after=0.01)
    assert full.verdicts("STP-CC-012") == PASS


@pytest.mark.parametrize(("n_r", "verdict"), [(0, FAIL), (1, PASS), (2, FAIL)])
def test_bgak_covers_the_data_of_the_begin(n_r: int, verdict: object) -> None:
    assert with_good_cookie(b"x").iut(BGAK, n_r, after=0.01).verdicts("STP-CC-012") == verdict
    fin = StpStory().asked().tester(BEGIN, flags=FIN, after=1.0).iut(BGAK, n_r, after=0.01)
    assert fin.verdicts("STP-CC-012") == verdict


def test_begin_with_more_data_than_max_sd_need_not_be_answered() -> None:
    assert later(with_good_cookie(bytes(1401))).verdicts("STP-CC-012") == NOTHING
    assert later(with_good_cookie(bytes(1400))).verdicts("STP-CC-012") == FAIL
    assert later(with_good_cookie(bytes(1401))).verdicts("STP-DT-028") == PASS
    answered = with_good_cookie(bytes(1401)).iut(BGAK, 0, after=0.01)
    assert later(refused(with_good_cookie(bytes(1401)))).verdicts("STP-DT-028") == FAIL
    assert later(answered).verdicts("STP-DT-028") != PASS


def test_cookie_opens_for_600_s() -> None:
    # The empty BEGIN by which a cookie was asked for has opened nothing.
    for age, found in ((599.0, 2), (600.0, 1), (601.0, 2)):
        story = StpStory().asked().tester(BEGIN, after=age).iut(BGAK, 0, after=0.01)
        assert len(story.findings("STP-CC-035")) == found, age
        assert story.verdicts("STP-CC-035") == (BOTH if age > 600 else PASS)


def test_begin_without_a_cookie_that_opens_a_connection() -> None:
    assert stranger().iut(BGAK, 0, after=0.01).verdicts("STP-CC-035") == BOTH
    assert later(refused(stranger())).verdicts("STP-CC-035") == PASS


def test_data_of_a_caller_that_was_refused_is_acted_on() -> None:
    story = refused(stranger()).tester(SD, 1, data=b"x", after=0.5)
    assert later(story).verdicts("STP-CC-035") == PASS
    story = refused(stranger()).tester(POLL, 1, after=0.5).iut(STAT, 1, after=0.01)
    assert later(story).verdicts("STP-CC-035") == BOTH


def test_copy_of_a_refused_begin_that_comes_once_a_later_one_has_opened() -> None:
    asking = {"csn": NEW_CSN, "cookie": None}
    story = StpStory().tester(BEGIN, **asking)
    story.iut(BGREJ, reason=6, peer_csn=NEW_CSN, after=0.01)
    story.tester(BEGIN, after=0.6).iut(BGAK, 0, after=0.01).iut(STAT, 0, after=0.3)
    story.tester(BEGIN, **asking, after=0.6)
    story.iut(BGREJ, reason=6, peer_csn=NEW_CSN, after=0.01)
    assert story.verdicts("STP-CC-035") == PASS


def two_cookies(flags: int) -> StpStory:
    """Of two cookies the later one opens a connection; then the earlier one comes."""
    story = StpStory().asked(COOKIES[0]).asked(COOKIES[2], port=39998)
    story.tester(BEGIN, csn=NEW_CSN, cookie=COOKIES[2], flags=flags, after=1.0)
    story.iut(BGAK, 0, csn=NEW_IUT_CSN, peer_csn=NEW_CSN, after=0.01)
    story.tester(END, csn=NEW_CSN, peer_csn=NEW_IUT_CSN, flags=A, reason=1, after=1.0)
    return story.iut(ENDAK, peer_csn=NEW_CSN, after=0.01).tester(BEGIN, after=1.0)


def test_cookie_from_before_one_with_v_flag_is_void() -> None:
    assert Verdict.FAIL in two_cookies(V).iut(BGAK, 0, after=0.01).verdicts("STP-CC-035")
    assert refused(two_cookies(V)).verdicts("STP-CC-036") == PASS
    assert two_cookies(0).iut(BGAK, 0, after=0.01).verdicts("STP-CC-035") == PASS
    assert Verdict.FAIL in refused(two_cookies(0)).verdicts("STP-CC-012")


def test_begin_without_a_good_cookie_is_given_a_fresh_one() -> None:
    assert refused(stranger()).verdicts("STP-CC-036") == PASS
    # The first finding is that of the empty BEGIN by which the story begins.
    assert later(stranger()).verdicts("STP-CC-036") == BOTH
    assert refused(stranger(), COOKIES[0]).verdicts("STP-CC-036") == BOTH
    other = stranger().iut(BGREJ, reason=3, after=0.01)
    assert other.verdicts("STP-CC-036") == BOTH
    late = stranger().iut(BGREJ, reason=6, cookie=FRESH, after=0.2)
    assert later(late).verdicts("STP-CC-036") == BOTH


@pytest.mark.parametrize(
    "cookie", [altered(COOKIES[0], 0), altered(COOKIES[0], 15), COOKIES[0][:-1], COOKIES[0] + b"x"]
)
def test_altered_cookie(cookie: bytes) -> None:
    assert stranger(cookie).iut(BGAK, 0, after=0.01).verdicts("STP-SEC-006") == FAIL
    assert later(refused(stranger(cookie))).verdicts("STP-SEC-006") == PASS
    assert refused(stranger(cookie)).verdicts("STP-CC-036") == PASS


def test_cookie_that_was_never_given_says_nothing() -> None:
    story = stranger(bytes(range(16))).iut(BGAK, 0, after=0.01)
    assert story.verdicts("STP-SEC-006") == NOTHING
    assert len(story.findings("STP-CC-035")) == 1


def elsewhere(story: StpStory) -> StpStory:
    """What was told last, from another UDP port of the tester."""
    moved = dissect(story.packets[-1].data)
    packet = build(replace(moved, udp_sport=1234))
    story.packets[-1] = replace(story.packets[-1], data=packet)
    return story


def test_cookie_of_another_address() -> None:
    story = elsewhere(with_good_cookie())
    assert later(story).verdicts("STP-SEC-006") == PASS


def used(after: float = 1.0) -> StpStory:
    """A connection has ended; its BEGIN comes again."""
    story = opened().tester(END, flags=A, reason=1, after=1.0).iut(ENDAK)
    return story.tester(BEGIN, after=after)


def test_used_cookie_draws_an_end() -> None:
    assert disowned(used()).verdicts("STP-CC-038") == PASS
    assert later(used()).verdicts("STP-CC-038") == FAIL
    assert refused(used()).verdicts("STP-CC-038") == FAIL
    assert disowned(used(), tag=5).verdicts("STP-CC-038") == FAIL
    assert disowned(used(), reason=1).verdicts("STP-CC-038") == FAIL


def test_used_cookie_is_remembered_for_900_s() -> None:
    assert refused(used(890.0)).verdicts("STP-CC-038") == FAIL
    assert refused(used(899.0)).verdicts("STP-CC-038") == NOTHING
    # Longer than that it may be remembered, but it opens nothing again.
    assert Verdict.FAIL not in refused(used(910.0)).verdicts("STP-CC-036")
    assert Verdict.FAIL not in disowned(used(910.0)).verdicts("STP-CC-036")
    opened_again = used(910.0).iut(BGAK, 0, csn=NEW_IUT_CSN, after=0.01)
    assert Verdict.FAIL in opened_again.verdicts("STP-CC-035")


def replaced(**fields: object) -> StpStory:
    """A call with the cookie of the BGAK, from the ports of a connection."""
    story = polled(opened()).tester(BEGIN, csn=NEW_CSN, cookie=COOKIES[1], after=1.0)
    if fields.get("answered", True):
        story.iut(BGAK, 0, csn=NEW_IUT_CSN, peer_csn=NEW_CSN, cookie=COOKIES[3], after=0.01)
    return story


@pytest.mark.parametrize(("ended", "verdict"), [(True, PASS), (False, FAIL)])
def test_end_of_the_connection_that_was_replaced_may_put_off_the_poll(
    ended: bool, verdict: set[Verdict]
) -> None:
    """It passes section 4, as every packet between these ports does, though it ends nothing."""
    story = replaced()
    if ended:
        story.tester(END, flags=A, reason=1, after=20.0)
    wait = 600.0 if ended else 620.0
    story.iut(POLL, csn=NEW_IUT_CSN, tag=tag_of(NEW_IUT_CSN), n_ps=1, after=wait)
    assert story.verdicts("STP-PL-010") == verdict


def test_good_cookie_replaces_the_connection() -> None:
    assert later(replaced()).verdicts("STP-CC-041") == PASS
    assert later(replaced(answered=False)).verdicts("STP-CC-041") == FAIL
    assert refused(replaced(answered=False), csn=NEW_CSN).verdicts("STP-CC-012") == BOTH
    going_on = replaced().iut(POLL, 0, n_ps=1, after=1.0)
    assert going_on.verdicts("STP-CC-041") == FAIL


def foreign(cookie: bytes | None = None) -> StpStory:
    story = polled(opened()).tester(BEGIN, csn=NEW_CSN, cookie=cookie, after=1.0)
    return refused(story, csn=NEW_CSN)


def test_begin_without_a_good_cookie_leaves_the_connection() -> None:
    assert polled(foreign(), 2).verdicts("STP-CC-041") == PASS
    ended = foreign().iut(END, flags=A, reason=1, after=0.01)
    assert later(ended).verdicts("STP-CC-041") == FAIL
    gone = foreign().tester(POLL, 0, n_ps=2, after=1.0)
    gone.iut(END, flags=A | R, reason=2, csn=0, peer_csn=TESTER_CSN, tag=0, seq=0, after=0.01)
    assert later(gone).verdicts("STP-CC-041") == FAIL


def repeated(n_r: int = 0, **fields: int) -> StpStory:
    story = polled(opened()).tester(BEGIN, after=1.0)
    return story.iut(BGAK, n_r, **fields, after=0.01)


def test_repeated_begin() -> None:
    assert repeated().verdicts("STP-CC-015") == PASS
    assert later(polled(opened()).tester(BEGIN, after=1.0)).verdicts("STP-CC-015") == FAIL
    assert repeated(csn=IUT_CSN - 1).verdicts("STP-CC-015") != PASS
    assert repeated(seq=5).verdicts("STP-CC-015") == FAIL
    assert repeated(n_mr=1234).verdicts("STP-CC-015") == FAIL
    assert refused(polled(opened()).tester(BEGIN, after=1.0)).verdicts("STP-CC-015") == FAIL


def test_repeated_begin_answered_with_a_lower_number() -> None:
    story = opened().tester(SD, 0, data=b"x", after=1.0).tester(POLL, 1).iut(STAT, 1, after=0.01)
    story.tester(BEGIN, after=1.0).iut(BGAK, 0, after=0.01)
    assert story.verdicts("STP-CC-015") == FAIL


@pytest.mark.parametrize(("reason", "verdict"), [(4, PASS), (3, FAIL)])
def test_begin_of_another_version(reason: int, verdict: object) -> None:
    for version in (1, 3):
        story = StpStory().tester(BEGIN, version=version).iut(BGREJ, reason=reason, after=0.01)
        assert story.verdicts("STP-CC-019") == verdict
    story = polled(opened()).tester(BEGIN, version=1, csn=NEW_CSN, after=1.0)
    story.iut(BGREJ, reason=reason, peer_csn=NEW_CSN, after=0.01)
    assert story.verdicts("STP-CC-019") == verdict


def test_begin_to_a_port_where_nobody_listens() -> None:
    story = StpStory().tester(BEGIN).iut(BGREJ, reason=3, after=0.01).of_service(47)
    assert story.verdicts("STP-CC-019") == PASS
    story = StpStory().tester(BEGIN).iut(BGREJ, reason=6, after=0.01).of_service(47)
    assert story.verdicts("STP-CC-019") == FAIL
    assert later(StpStory().tester(BEGIN).of_service(47)).verdicts("STP-CC-019") == FAIL


def test_eleventh_refusal_in_a_second_may_be_missing() -> None:
    story = StpStory()
    for number in range(11):
        story.tester(BEGIN, csn=NEW_CSN + number, after=0.05)
        if number < 10:
            story.iut(BGREJ, reason=3, peer_csn=NEW_CSN + number, after=0.001)
    assert later(story.of_service(47)).verdicts("STP-CC-019") == PASS


@pytest.mark.parametrize(("credit", "verdict"), [(4, PASS), (3, FAIL)])
def test_credit_of_begin_and_bgak(credit: int, verdict: set[Verdict]) -> None:
    assert StpStory(credit=credit).opened().verdicts("STP-CC-029") == verdict
    assert StpStory(credit=credit).iut(BEGIN).verdicts("STP-CC-029") == verdict
    assert TESTER_PORT
