"""The checkers of STP-SEC."""

from __future__ import annotations

import pytest
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    POLL,
    SD,
    STAT,
    A,
    R,
)
from bentpipe_conformance.protocols.stp.story import (
    FAIL,
    NOTHING,
    PASS,
    TESTER_CSN,
    StpStory,
    later,
    opened,
    polled,
)


def asked_in_vain() -> StpStory:
    return StpStory().tester(BEGIN, cookie=None).iut(BGREJ, reason=6, after=0.01)


def test_stranger_gets_one_packet_for_each_of_its_own() -> None:
    assert asked_in_vain().verdicts("STP-SEC-001") == PASS
    assert asked_in_vain().iut(BGREJ, reason=6, after=1.0).verdicts("STP-SEC-001") == FAIL
    assert asked_in_vain().iut(POLL, 0, after=1.0).verdicts("STP-SEC-001") == FAIL


def test_stranger_gets_three_times_its_octets() -> None:
    def answered(octets: int) -> StpStory:
        story = StpStory().tester(BEGIN, cookie=None, max_sd=None)
        return story.iut(BGREJ, reason=6, options=bytes(octets), after=0.01)

    assert answered(40).verdicts("STP-SEC-001") == PASS
    assert answered(44).verdicts("STP-SEC-001") == FAIL


def test_caller_with_a_cookie_may_be_sent_anything() -> None:
    story = opened().iut(SD, 0, data=bytes(900), after=0.01).iut(SD, 1, data=bytes(900))
    assert story.verdicts("STP-SEC-001") == PASS  # of the BEGIN without a cookie before


def test_polls_without_answers_after_a_packet_to_ignore() -> None:
    hostile = polled(opened()).tester(SD, 0, tag=0, after=1.0)
    deaf = hostile.tester(POLL, 0, n_ps=2, after=1.0).tester(POLL, 0, n_ps=3, after=1.0)
    assert deaf.tester(SD, 0, after=1.0).verdicts("STP-SEC-003") == FAIL
    well = polled(opened()).tester(SD, 0, tag=0, after=1.0)
    assert polled(well, 2).verdicts("STP-SEC-003") == PASS


def test_forged_end_answered_or_ignored() -> None:
    forged = opened().tester(END, 0, flags=A, peer_csn=77, after=1.0)
    assert forged.iut(ENDAK, after=0.01).verdicts("STP-SEC-005") == FAIL
    forged = opened().tester(END, 0, flags=A, peer_csn=77, after=1.0)
    assert polled(forged).verdicts("STP-SEC-005") == PASS


def test_report_ahead_of_everything_sent_that_ends_the_connection() -> None:
    story = opened().iut(SD, 0, after=0.1).iut(POLL, 1)
    story.tester(STAT, 9, n_ps=1, after=0.6).iut(END, 0, flags=A, reason=6, after=0.01)
    assert story.verdicts("STP-SEC-005") == FAIL


@pytest.mark.parametrize(("reason", "accused"), [(7, False), (6, True)])
def test_peer_given_up_just_when_a_forged_packet_comes(reason: int, accused: bool) -> None:
    """Chance has the minute end then; any other END is an answer."""
    story = opened().iut(SD, 0, after=0.1).iut(POLL, 1)
    story.tester(POLL, 0, n_ps=2, csn=TESTER_CSN ^ 1, after=59.99)
    story.iut(END, 0, flags=A, reason=reason, after=0.01)
    assert (story.verdicts("STP-SEC-005") >= FAIL) == accused


def test_end_with_both_csns_ends_a_connection_rightly() -> None:
    story = opened().tester(END, 0, flags=A, reason=1, after=1.0).iut(ENDAK, after=0.01)
    assert story.verdicts("STP-SEC-005") == NOTHING


def test_begin_of_another_connection_is_answered_but_changes_nothing() -> None:
    def forged() -> StpStory:
        return polled(opened()).tester(BEGIN, csn=TESTER_CSN + 5, cookie=None, after=1.0)

    refused = forged().iut(BGREJ, reason=6, peer_csn=TESTER_CSN + 5, after=0.01)
    assert polled(refused, 2).verdicts("STP-SEC-005") == PASS
    ended = forged().iut(END, flags=A, reason=1, after=0.01)
    assert ended.of_service(9).verdicts("STP-SEC-005") == FAIL


def test_poll_with_another_csn_is_forged() -> None:
    story = polled(opened()).tester(POLL, 0, n_ps=2, csn=TESTER_CSN ^ 1 << 16, after=1.0)
    assert polled(story, 3).verdicts("STP-SEC-005") == PASS


def test_end_without_a_connection_and_bgak_in_data_transfer() -> None:
    story = polled(opened()).tester(BGAK, csn=TESTER_CSN + 1, after=1.0)
    assert polled(story, 2).verdicts("STP-SEC-005") == PASS
    known = opened().tester(END, 0, flags=A | R, csn=0, tag=0, reason=2, after=1.0)
    assert later(known).verdicts("STP-SEC-005") == NOTHING


def test_packet_to_be_discarded_beside_a_begin_that_is_refused() -> None:
    def forged(within: float) -> StpStory:
        story = polled(opened()).tester(POLL, 0, n_ps=0, after=1.0)
        story = story.tester(BEGIN, version=0, after=within)
        return polled(story.iut(BGREJ, reason=4, peer_csn=TESTER_CSN), 2)

    assert FAIL.isdisjoint(forged(0.001).verdicts("STP-SEC-005"))
    alone = polled(opened()).tester(POLL, 0, n_ps=0, after=1.0).iut(BGREJ, reason=4)
    assert alone.verdicts("STP-SEC-005") == FAIL
