"""The self-test's memory gives the judgment of exactly these packets, never of others."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.execution import Recording, judge_case, run_case
from bentpipe_conformance.engine.settings import RunSettings
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
    settings = RunSettings("rfc", SUBJECT.ics, LINK.round_trip_s)
    packets = run_case(CASE, lane, settings, judged_by=judge).captured
    recording = Recording(CASE, packets, "rfc", SUBJECT.ics, 1e-6)
    again = judge(recording)
    assert again == judge_case(recording)
    assert judge(replace(recording, captured=packets[:6]))[0] is Verdict.INCONCLUSIVE
    later = [replace(packet, time=packet.time + 1.0) for packet in packets]
    assert judge(replace(recording, captured=later)) is not again
    assert judge(replace(recording, ics={**SUBJECT.ics, "sack": False})) is not again
    assert judge(replace(recording, timing_error=0.5)) is not again
    assert judge(replace(recording, died="signal 11")) is not again
    assert judge(recording) is again
