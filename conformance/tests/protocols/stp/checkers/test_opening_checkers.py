"""The checkers of being called, and of the numbers chosen for calls (STP-CC)."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    POLL,
    SD,
    SDP,
    STAT,
    A,
    C,
)
from bentpipe_conformance.protocols.stp.numbers import MODULUS
from bentpipe_conformance.protocols.stp.story import (
    FAIL,
    IUT_ISS,
    NOTHING,
    PASS,
    TESTER_CSN,
    StpStory,
    between,
    later,
    opened,
    polled,
)


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


def test_credit_of_begin_and_bgak() -> None:
    assert opened().verdicts("STP-CC-029") == PASS
    assert StpStory(credit=3).opened().verdicts("STP-CC-029") == FAIL
    assert StpStory().iut(BEGIN, n_mr=3).verdicts("STP-CC-029") == FAIL


def test_data_of_a_stranger_before_its_confirmation() -> None:
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, 0, flags=C)
    assert story.tester(BGAK, after=0.6).verdicts("STP-CC-003") == PASS
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, 1, flags=C)
    assert story.tester(BGAK, after=0.6).verdicts("STP-CC-003") == FAIL
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, 0, flags=C).iut(SD, 0, data=b"x")
    assert story.of_service(7).verdicts("STP-CC-003") == FAIL


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
    refused = StpStory().tester(BEGIN).iut(BGREJ, reason=3).of_service(47)
    assert refused.verdicts("STP-CC-019") == PASS
    assert later(StpStory().tester(BEGIN).of_service(47)).verdicts("STP-CC-019") == FAIL


def test_eleven_begins_in_a_second_may_be_refused_an_answer() -> None:
    story = StpStory()
    for place in range(12):
        one = StpStory(at=story.at).tester(BEGIN, version=2, after=0.05)
        story.packets += [between(one.packets[0], port=50000 + place)]
        story.at = one.at
    assert len([f for f in later(story).findings("STP-CC-019") if f.verdict is Verdict.FAIL]) == 10


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


@pytest.mark.parametrize("n_r", [1, -1])
def test_confirmation_of_what_was_not_sent(n_r: int) -> None:
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, flags=C).tester(BGAK, n_r, after=0.5)
    taken = later(story.of_service(7).iut(SD, 0, data=b"x", after=0.01))
    assert Verdict.FAIL in taken.of_service(7).verdicts("STP-CC-003")
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, flags=C).tester(BGAK, n_r, after=0.5)
    assert later(story.tester(BGAK, after=0.5)).verdicts("STP-CC-003") == PASS
