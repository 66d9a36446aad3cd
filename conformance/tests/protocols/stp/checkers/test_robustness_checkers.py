"""The checkers of STP-SEC."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    END,
    ENDAK,
    POLL,
    SD,
    STAT,
    A,
    C,
    R,
    build,
    dissect,
)
from bentpipe_conformance.protocols.stp.story import (
    FAIL,
    NOTHING,
    PASS,
    TESTER_CSN,
    StpStory,
    opened,
    polled,
)


def from_port(port: int, captured: Captured) -> Captured:
    """The same packet of a connection with another port of the tester."""
    stp = dissect(captured.data)
    end = {"dport": port} if captured.outgoing else {"sport": port}
    return replace(captured, data=build(replace(stp, **end)))


def test_known_caller_that_has_proven_nothing_gets_three_times_its_octets() -> None:
    story = StpStory().tester(BEGIN, data=b"x" * 40).iut(BGAK, 1)
    assert story.iut(SD, 0, data=b"y" * 90, after=0.01).verdicts("STP-SEC-001") == PASS
    assert story.iut(SD, 1, data=b"y" * 90, after=0.01).verdicts("STP-SEC-001") == FAIL


def test_address_proven_by_a_stat_may_be_sent_anything() -> None:
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, 1).iut(POLL, 0, after=0.01)
    story.tester(STAT, 0, after=0.6).iut(SD, 0, data=b"y" * 900, after=0.01)
    assert story.verdicts("STP-SEC-001") == PASS


def test_address_not_proven_by_a_stat_for_a_poll_never_sent() -> None:
    story = StpStory().tester(BEGIN, data=b"x").iut(BGAK, 1)
    story.tester(STAT, 0, n_ps=9, after=0.6).iut(SD, 0, data=b"y" * 900, after=0.01)
    assert story.verdicts("STP-SEC-001") == FAIL


def test_confirmation_after_the_end_of_a_pending_connection() -> None:
    late = StpStory().tester(BEGIN).iut(BGAK, flags=C).tester(BGAK, after=40.0)
    dropped = late.iut(END, 0, flags=A | R, after=0.01)
    assert dropped.verdicts("STP-SEC-002") == PASS
    late = StpStory().tester(BEGIN).iut(BGAK, flags=C).tester(BGAK, after=40.0)
    assert polled(late).verdicts("STP-SEC-002") == FAIL


def test_confirmation_in_time() -> None:
    story = StpStory().tester(BEGIN).iut(BGAK, flags=C).tester(BGAK, after=5.0)
    assert polled(story).verdicts("STP-SEC-002") == PASS
    story = StpStory().tester(BEGIN).iut(BGAK, flags=C).tester(BGAK, after=5.0)
    assert story.iut(END, 0, flags=A | R, after=0.01).verdicts("STP-SEC-002") == FAIL


def test_pending_connection_dropped_among_many_says_nothing() -> None:
    story = StpStory().tester(BEGIN).iut(BGAK, flags=C)
    for number in range(20):
        call = StpStory(at=story.at).tester(BEGIN).iut(BGAK, flags=C)
        story.packets += [from_port(50000 + number, captured) for captured in call.packets]
    story.tester(BGAK, after=5.0).iut(END, 0, flags=A | R, after=0.01)
    assert story.verdicts("STP-SEC-002") == NOTHING


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


def test_end_with_both_csns_ends_a_connection_rightly() -> None:
    story = opened().tester(END, 0, flags=A, reason=1, after=1.0).iut(ENDAK, after=0.01)
    assert story.verdicts("STP-SEC-005") == NOTHING


def test_hint_that_nobody_knows_the_connection_is_no_forgery() -> None:
    story = opened().tester(END, 0, flags=A | R, csn=0, peer_csn=0xFFFF, tag=0, after=1.0)
    story.iut(BGAK, flags=C, after=0.01)
    assert polled(story).verdicts("STP-SEC-005") == NOTHING
    assert TESTER_CSN != 0
