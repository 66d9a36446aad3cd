"""The checkers of STP-CC: how connections are released."""

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
    A,
    R,
)
from bentpipe_conformance.protocols.stp.story import (
    CLAIMS,
    COOKIES,
    FAIL,
    NOTHING,
    PASS,
    TESTER_CSN,
    StpStory,
    later,
    opened,
    polled,
)


def finished(*lost: int) -> StpStory:
    """SDs 0 to 2 of the tester, the last with FIN, some of which do not arrive."""
    story = opened()
    for number in range(3):
        if number not in lost:
            story.tester(SD, number, data=b"x", flags=FIN if number == 2 else 0, after=0.01)
    return story


def test_service_closes_after_and_before_all_data() -> None:
    assert finished().iut(SDP, 0, flags=FIN, after=0.01).verdicts("STP-CC-004") == PASS
    assert finished(1).iut(SDP, 0, flags=FIN, after=0.01).verdicts("STP-CC-004") == FAIL
    assert finished(2).iut(SDP, 0, flags=FIN, after=0.01).verdicts("STP-CC-004") == FAIL


def test_echo_closes_after_and_before_all_data() -> None:
    whole = finished().iut(SDP, 0, data=b"xxx", flags=FIN, after=0.01)
    assert whole.of_service(7).verdicts("STP-CC-004") == PASS
    short = finished().iut(SDP, 0, data=b"xx", flags=FIN, after=0.01)
    assert short.of_service(7).verdicts("STP-CC-004") == FAIL


@pytest.mark.parametrize(("n_r", "verdict"), [(1, PASS), (0, FAIL)])
def test_fin_of_a_begin_without_data(n_r: int, verdict: set[Verdict]) -> None:
    story = StpStory().asked().tester(BEGIN, flags=FIN, after=1.0).iut(BGAK, n_r, after=0.01)
    assert story.verdicts("STP-CC-004") == verdict


def test_own_stream_after_the_peers_fin() -> None:
    assert later(finished().iut(SDP, 0, data=b"x")).verdicts("STP-CC-023") == PASS
    assert later(finished()).verdicts("STP-CC-023") == NOTHING  # it may not have the FIN
    deaf = later(finished().iut(STAT, 3, after=0.01))
    assert deaf.verdicts("STP-CC-023") == NOTHING  # the service does not close
    assert deaf.verdicts("STP-DT-030") == FAIL
    assert deaf.of_service(7).verdicts("STP-CC-023") == FAIL
    assert finished().iut(END, 3, after=0.01).verdicts("STP-CC-023") == FAIL
    assert finished().tester(END, flags=A, reason=1, after=0.5).verdicts("STP-CC-023") == NOTHING


@pytest.mark.parametrize(("rtt", "verdict"), [(0.6, FAIL), (4.0, NOTHING)])
def test_own_stream_may_wait_for_a_silence_after_the_peers_fin(
    rtt: float, verdict: set[Verdict]
) -> None:
    story = opened().iut(SDP, 0, data=b"x", n_ps=1, after=0.01)
    story.tester(STAT, 1, n_ps=1, after=rtt).iut(SDP, 1, data=b"x", n_ps=2)
    story.tester(STAT, 1, n_ps=1, after=0.1)
    story.tester(SD, 0, flags=FIN, after=0.1).iut(STAT, 1, after=0.01)
    assert story.tester(END, 0, after=7.0).verdicts("STP-CC-023") == verdict


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [((7.0,), NOTHING), ((7.0, 7.0), NOTHING), ((20.0,), FAIL), ((20.0, 1.0), FAIL)],
)
def test_silence_after_the_peers_fin_lasts_as_long_as_late_answers_have_made_it(
    gaps: tuple[float, ...], verdict: set[Verdict]
) -> None:
    """Behind the FIN come answers of POLLs that are 4 s old, and repetitions of the last."""
    story = opened().iut(SDP, 0, data=b"x", n_ps=1, after=0.01)
    story.iut(POLL, 1, n_ps=2, after=1.0).iut(POLL, 1, n_ps=3, after=2.0)
    story.tester(STAT, 0, n_ps=0, after=1.0)
    story.tester(SD, 0, flags=FIN, after=0.01).iut(STAT, 1, after=0.01)
    for n_ps in (1, 2, 3):
        story.tester(STAT, 0, n_ps=n_ps, after=0.01)
    for gap in gaps[:-1]:
        story.tester(STAT, 0, n_ps=3, after=gap)
    assert story.tester(END, 0, after=gaps[-1]).verdicts("STP-CC-023") == verdict


def test_fin_below_what_is_held_does_not_end_the_peers_stream() -> None:
    early = later(opened().tester(SD, 1, data=b"x").tester(SD, 0, flags=FIN, after=0.01))
    assert early.of_service(9).verdicts("STP-CC-004") == NOTHING
    early = opened().tester(SD, 1, data=b"x").tester(SD, 0, flags=FIN, after=0.01)
    assert later(early).verdicts("STP-CC-023") == NOTHING


def test_fin_of_a_second_copy_does_not_end_the_peers_stream() -> None:
    story = StpStory().called().tester(SD, 0, data=b"x", after=0.1)
    story = story.tester(SD, 0, data=b"x", flags=FIN, after=0.1)
    story = story.tester(SD, 1, data=b"x", flags=FIN, after=0.1)
    story = story.iut(SDP, 0, flags=FIN, after=0.01).tester(STAT, 1, after=0.6)
    assert story.iut(END, 2).verdicts("STP-CC-025") == PASS


def test_fin_beyond_the_credit_does_not_end_the_peers_stream() -> None:
    story = opened().tester(SD, 4000, data=b"x", flags=FIN, after=1.0)
    story = story.tester(SDP, 0, flags=FIN, n_ps=1, after=1.0).iut(STAT, 1, n_ps=1)
    assert story.iut(SDP, 0, flags=FIN, after=0.01).verdicts("STP-CC-004") == PASS


def test_sd_after_the_fin() -> None:
    ended = finished().iut(SDP, 0, flags=FIN, after=0.01)
    assert later(ended).verdicts("STP-CC-024") == PASS
    ended = finished().iut(SDP, 0, flags=FIN, after=0.01).iut(SD, 1, after=0.01)
    assert ended.verdicts("STP-CC-024") == FAIL


def complete(rtt: float = 0.6) -> StpStory:
    return finished().iut(SDP, 0, flags=FIN, after=0.01).tester(STAT, 1, after=rtt)


def caller_complete() -> StpStory:
    story = StpStory().called().tester(SD, 0, data=b"x", flags=FIN, after=0.1)
    return story.iut(SDP, 0, flags=FIN, after=0.01).tester(STAT, 1, after=0.6)


@pytest.mark.parametrize(
    ("number", "reason", "after", "verdict"),
    [
        (1, 0, 0.09, PASS),
        (1, 0, 0.11, PASS | FAIL),  # right, but late
        (0, 0, 0.0, PASS | FAIL),
        (1, 6, 0.0, PASS | FAIL),
        (None, 0, 0.0, FAIL),
    ],
)
def test_complete_caller(
    number: int | None, reason: int, after: float, verdict: set[Verdict]
) -> None:
    story = caller_complete()
    if number is not None:
        story.iut(END, number, reason=reason, after=after)
    assert later(story).verdicts("STP-CC-025") == verdict
    assert later(story).verdicts("STP-CC-031") == NOTHING


def test_complete_caller_whose_peer_releases_at_once_need_not_release() -> None:
    story = caller_complete().tester(END, 1, after=0.05).iut(ENDAK)
    assert later(story).verdicts("STP-CC-025") == NOTHING


def test_end_before_both_streams_are_through() -> None:
    for lacking in (opened().iut(SDP, 0, flags=FIN).tester(STAT, 1, after=0.6), finished(1)):
        assert lacking.iut(END, 3, after=0.1).verdicts("STP-CC-025") == FAIL
    early = finished().iut(SDP, 0, flags=FIN).iut(END, 3, after=0.5).tester(STAT, 1, after=0.1)
    assert early.verdicts("STP-CC-025") == FAIL


@pytest.mark.parametrize(
    ("rtt", "after", "verdict"),
    [
        (0.6, 0.0, FAIL),
        (0.6, 0.9, FAIL),
        (0.6, 1.0, FAIL),  # 0.6 s and four deviations of 0.3 s
        (0.6, 2.0, PASS),
        (0.6, 3.0, FAIL),
        (0.6, None, FAIL),
        (3.0, 1.0, FAIL),
        (3.0, 9.0, PASS),
    ],
)
def test_complete_and_called_without_an_end_of_the_caller(
    rtt: float, after: float | None, verdict: object
) -> None:
    story = complete(rtt)
    if after is not None:
        story.iut(END, 3, after=after)
    assert later(story).verdicts("STP-CC-031") == verdict
    assert later(story).verdicts("STP-CC-025") == (NOTHING if after is None else PASS)


def test_complete_and_called_over_a_long_path_waits_longer() -> None:
    story = opened().tester(SD, 0, data=b"x", flags=FIN).iut(SDP, 0, flags=FIN)
    story.tester(STAT, 1, after=3.0)
    assert story.iut(END, 1, after=3.5).verdicts("STP-CC-031") == FAIL
    vbdc = {**CLAIMS, "path_class": "vbdc"}
    assert complete().iut(END, 3, after=2.0).verdicts("STP-CC-031", claims=vbdc) == FAIL
    assert complete().iut(END, 3, after=3.0).verdicts("STP-CC-031", claims=vbdc) == PASS


def test_complete_and_called_is_released_by_its_caller() -> None:
    story = complete().tester(END, 1, after=0.5).iut(ENDAK)
    assert later(story).verdicts("STP-CC-031") == PASS
    story = complete().tester(END, 1).iut(ENDAK)
    assert later(story).verdicts("STP-CC-031") == NOTHING
    crossed = complete().iut(END, 3, after=0.01).tester(END, 1).iut(ENDAK)
    assert later(crossed).verdicts("STP-CC-031") == FAIL


def test_side_that_is_not_complete_need_not_release() -> None:
    story = finished(1).iut(SDP, 0, flags=FIN, after=0.01).tester(STAT, 1, after=0.6)
    assert later(story).verdicts("STP-CC-025") == NOTHING
    assert later(story).verdicts("STP-CC-031") == NOTHING


def test_stream_whose_end_is_not_sure_says_nothing_of_the_release() -> None:
    story = opened().tester(SD, 0, data=b"x", flags=FIN).tester(SD, 1, data=b"y", after=0.01)
    story.iut(SDP, 0, flags=FIN, after=0.01).tester(STAT, 1, after=0.6)
    assert later(story).verdicts("STP-CC-031") == NOTHING


def test_premature_end() -> None:
    story = polled(opened()).tester(END, 0, after=1.0)
    assert later(story.iut(ENDAK, after=0.01)).verdicts("STP-CC-027") == PASS
    story = polled(opened()).tester(END, 0, after=1.0)
    assert later(story).verdicts("STP-CC-027") == FAIL
    story = polled(opened()).tester(END, 0, after=1.0).iut(ENDAK, after=0.01)
    assert story.iut(SD, 0, data=b"x", after=1.0).verdicts("STP-CC-027") == FAIL
    assert later(complete().tester(END, 1)).verdicts("STP-CC-027") == NOTHING


@pytest.mark.parametrize(("answers", "verdict"), [(True, PASS), (False, FAIL)])
def test_end_that_covers_the_fin_before_the_peers_is_delivered(
    answers: bool, verdict: set[Verdict]
) -> None:
    """The peer's FIN is held behind a gap; the IUT's has been acknowledged."""
    story = StpStory().called().tester(SD, 1, data=b"x", flags=FIN, after=0.1)
    story.iut(SDP, 0, flags=FIN, after=0.01).tester(STAT, 1, after=0.6).tester(END, 1, after=1.0)
    if answers:
        story.iut(ENDAK, after=0.01)
    assert later(story).verdicts("STP-CC-027") == verdict


def test_packets_after_the_end() -> None:
    ended = complete().iut(END, 3).tester(POLL, 3, after=0.5)
    assert later(ended).verdicts("STP-CC-028") == PASS
    ended = complete().iut(END, 3).tester(POLL, 3, after=0.5).iut(STAT, 3, after=0.01)
    assert ended.verdicts("STP-CC-028") == FAIL
    ended = complete().iut(END, 3).tester(BGAK, after=0.5).iut(BGAK, 3, after=0.01)
    assert ended.verdicts("STP-CC-028") >= FAIL
    ended = complete().iut(END, 3).tester(POLL, 3, after=0.95).iut(END, 3, after=0.05)
    assert later(ended).verdicts("STP-CC-028") == PASS


@pytest.mark.parametrize(
    ("opens", "refuses", "wrong", "refused"),
    [(False, True, False, PASS), (False, False, False, FAIL),
     (True, True, True, NOTHING), (True, False, False, NOTHING)],
)  # fmt: skip
def test_begin_with_the_csn_of_a_bgak_behind_the_abort_of_a_call(
    opens: bool, refuses: bool, wrong: bool, refused: set[Verdict]
) -> None:
    """A BGAK that comes in state 4 is discarded: the peer's CSN is still unknown (section 9)."""
    known: dict[str, int] = {} if opens else {"seq": 0, "peer_csn": 0}
    end = {"flags": A, "reason": 1, **known}
    story = StpStory().iut(BEGIN, cookie=None)
    if opens:
        story.tester(BGAK, after=0.6).iut(END, **end, after=0.3)
    else:
        story.iut(END, **end, after=0.3).tester(BGAK, after=0.3)
    story.tester(BEGIN, cookie=None, after=0.3)
    if refuses:
        story.iut(BGREJ, after=0.01)
    story.iut(END, **end, after=0.7 if opens else 0.4)
    assert (Verdict.FAIL in later(story).verdicts("STP-CC-028")) == wrong
    assert later(story).verdicts("STP-CC-019") == refused


def test_packets_behind_an_end_that_is_not_repeated() -> None:
    """The connection is gone, as the missing repetition has shown: what answers them is right."""
    ended = complete().iut(END, 3).tester(BGAK, after=2.0)
    ended.iut(END, flags=A | R, reason=2, peer_csn=TESTER_CSN, tag=0, seq=0, after=0.01)
    ended.tester(END, csn=7, flags=A, reason=1, after=0.5).iut(ENDAK, peer_csn=7, after=0.01)
    for requirement in ("STP-CC-028", "STP-CC-021"):
        assert Verdict.FAIL not in later(ended).verdicts(requirement)
    assert later(ended).verdicts("STP-CC-026") == FAIL


@pytest.mark.parametrize(("repeats", "verdict"), [(True, PASS), (False, FAIL)])
def test_begin_that_opens_nothing_while_an_endak_is_awaited(
    repeats: bool, verdict: set[Verdict]
) -> None:
    """An END that it keeps from being repeated is no failure of the timer."""
    story = complete().iut(END, 3).tester(BEGIN, csn=TESTER_CSN + 1, cookie=None, after=0.5)
    story.iut(BGREJ, reason=6, peer_csn=TESTER_CSN + 1, cookie=COOKIES[3], after=0.01)
    if repeats:
        story.iut(END, 3, after=0.49)
    story.tester(POLL, 3, after=1.5)
    assert story.verdicts("STP-CC-041") == verdict
    assert story.verdicts("STP-CC-026") == (PASS if repeats else NOTHING)


def test_sd_that_overtakes_the_bgak_for_its_begin_is_not_out_of_the_blue() -> None:
    story = StpStory().asked().tester(BEGIN, after=0.6).tester(SD, 0, data=b"x")
    story.iut(BGAK, 1, after=0.01).tester(END, 0, flags=A, reason=1, after=1.0).iut(ENDAK)
    assert later(story).verdicts("STP-CC-020") == NOTHING


def test_credit_announced_after_a_packet_to_discard_is_no_answer_to_it() -> None:
    story = polled(opened()).tester(SD, 0, tag=1, data=b"x", after=1.0)
    story.iut(STAT, 0, n_ps=0, timestamp=0, after=0.01)
    assert later(story).verdicts("STP-CC-001") == PASS
