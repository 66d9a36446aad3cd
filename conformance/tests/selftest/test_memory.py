"""The self-test's memory gives the judgment of exactly these packets, never of others."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.execution import RunSettings, judge_case, run_case
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.iut.inprocess import simulated_lane
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_conformance.selftest.memory import RememberingJudge
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.tcp.subject import SUBJECT

CASE = load_cases("snr")["snr/fast-retransmit/established-third-duplicate-acknowledgment"]
LINK = load_profiles()["geo"]


def test_packets_judged_before_get_the_same_judgment_and_others_their_own() -> None:
    lane = simulated_lane(SNR, "rfc", LINK)
    judge = RememberingJudge()
    outcome = run_case(
        CASE, lane, RunSettings(SNR, "rfc", SUBJECT.ics, LINK.round_trip_s), judged_by=judge
    )
    packets = outcome.captured
    again = judge(CASE, packets, "rfc", SUBJECT.ics, 1e-6)
    assert again == judge_case(CASE, packets, "rfc", SUBJECT.ics, 1e-6)
    nothing = judge(CASE, packets[:6], "rfc", SUBJECT.ics, 1e-6)
    assert nothing[0] is Verdict.INCONCLUSIVE
    later = [replace(packet, time=packet.time + 1.0) for packet in packets]
    assert judge(CASE, later, "rfc", SUBJECT.ics, 1e-6) is not again
    assert judge(CASE, packets, "rfc", {**SUBJECT.ics, "sack": False}, 1e-6) is not again
    assert judge(CASE, packets, "rfc", SUBJECT.ics, 0.5) is not again
