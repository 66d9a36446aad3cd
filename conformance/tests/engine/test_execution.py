"""One case on one lane: what becomes of scripts that break, beds that break, stacks that die."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.execution import Outcome, Recording, judge_case, run_case
from bentpipe_conformance.engine.lane import Captured, LaneError
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.iut.inprocess import SimulatedLane, simulated_lane
from bentpipe_conformance.protocols.tcp.peer import Peer
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.tcp.subject import SUBJECT

LINK = load_profiles()["geo"]
ICS = {"fast_retransmit": True, "newreno": True}
TARGET = "SNR-FR-002"


def a_case(script: Callable[[Peer], None], needs: tuple[str, ...] = ()) -> Case:
    return Case("snr/test/case", "A case", "A case.", (TARGET,), needs, ("rfc",), script)


def run(
    script: Callable[[Peer], None], lane: SimulatedLane | None = None, needs: tuple[str, ...] = ()
) -> Outcome:
    chosen = lane or simulated_lane(SNR, "rfc", LINK)
    return run_case(
        a_case(script, needs), chosen, RunSettings("rfc", ICS, LINK.round_trip_s, seed=7)
    )


def lose_one_segment(peer: Peer) -> None:
    peer.connect(sack=False).receive(40, losing=[14])


def test_script_that_reaches_its_situation_is_judged_on_packets() -> None:
    outcome = run(lose_one_segment)
    assert outcome.verdict is Verdict.PASS
    finding = next(item for item in outcome.findings if item.requirement == TARGET)
    assert finding.packets
    assert 1 < outcome.link_seconds < 60


def test_script_that_reaches_nothing_is_inconclusive() -> None:
    def nothing(peer: Peer) -> None:
        raise NotReached("the moon was in the way")

    outcome = run(nothing)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "the moon was in the way" in outcome.reason


def test_script_that_breaks_is_an_error_not_a_verdict_on_the_implementation() -> None:
    def broken(peer: Peer) -> None:
        raise KeyError("typo")

    outcome = run(broken)
    assert outcome.verdict is Verdict.ERROR
    assert "KeyError" in outcome.reason


def test_bed_that_breaks_is_an_error() -> None:
    class Broken(SimulatedLane):
        def end(self) -> list[Captured]:
            raise LaneError("the capture lost 3 packets")

    outcome = run(lose_one_segment, Broken(SUBJECT.make, SUBJECT.setups["rfc"], LINK))
    assert outcome.verdict is Verdict.ERROR
    assert outcome.broken == "the capture lost 3 packets"


def test_implementation_that_dies_fails_its_targets() -> None:
    class Dying(SimulatedLane):
        def iut_alive(self) -> str | None:
            return "signal 11"

    outcome = run(lose_one_segment, Dying(SUBJECT.make, SUBJECT.setups["rfc"], LINK))
    assert outcome.verdict is Verdict.FAIL
    assert "signal 11" in outcome.reason


def test_implementation_without_a_needed_feature_is_unsupported_and_not_run() -> None:
    def must_not_run(peer: Peer) -> None:
        pytest.fail("the script ran")

    outcome = run(must_not_run, needs=("sack",))
    assert outcome.verdict is Verdict.UNSUPPORTED
    assert not outcome.captured


def test_judging_the_captured_packets_again_gives_the_same_findings() -> None:
    outcome = run(lose_one_segment)
    recording = Recording(
        a_case(lose_one_segment), outcome.captured, "rfc", ICS, outcome.timing_error
    )
    again = judge_case(recording)
    assert again == (outcome.verdict, outcome.reason, outcome.findings)


def test_same_seed_gives_the_same_packets() -> None:
    assert run(lose_one_segment).captured == run(lose_one_segment).captured
