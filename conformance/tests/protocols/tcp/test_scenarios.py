"""Scenarios imposed on the reference: what they say is lost is lost, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest
from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.execution import Outcome, run_case
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.iut.inprocess import simulated_lane
from bentpipe_conformance.protocols.tcp.codec import MODULUS, SYN, Tcp, dissect
from bentpipe_conformance.protocols.tcp.scenarios import AFTER_RTTS, SEGMENT, replay
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_conformance.run.plan import select_cases
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.tcp.subject import SUBJECT
from bentpipe_spec.scenario import Event, Expiry, Scenario, load_scenarios

LINK = load_profiles()["geo"]


def scenario(*events: Event, expiries: tuple[Expiry, ...] = ()) -> Scenario:
    return Scenario("x", "cover", "", (), "", 10, 6, events, expiries, (), 0, (), ())


def lost(number: int, transmission: int = 1) -> Event:
    return Event("DATA", number + 1, "lost", number, transmission, None)


def lost_ack(nth: int) -> Event:
    return Event("ACK", nth, "lost", None, 0, None)


def run(item: Scenario, profile: str = "rfc") -> Outcome:
    lane = simulated_lane(SNR, profile, LINK, 1)
    settings = RunSettings(
        profile, SUBJECT.ics, LINK.round_trip_s, 1,
    )  # fmt: skip
    case = Case(
        "snr/x/y", "t", "t", ("SNR-WIN-001",), (), ("rfc", "hk99"), lambda peer: replay(peer, item)
    )
    outcome = run_case(case, lane, settings)
    assert not outcome.broken
    return outcome


def seen(outcome: Outcome) -> list[tuple[float, bool, float, Tcp]]:
    """At the tester: time, whether the IUT sent it, first segment's place, and the packet."""
    found = []
    first = 0
    for packet in outcome.captured:
        if packet.point != "peer":
            continue
        tcp = dissect(packet.data)
        from_iut = tcp.src != outcome.tester_address
        if tcp.flags & SYN:
            first = (tcp.seq + 1) % MODULUS if from_iut else first
            continue
        number = tcp.seq if from_iut else tcp.ack
        found.append((packet.time, from_iut, ((number - first) % MODULUS) / SEGMENT, tcp))
    return found


def acks(outcome: Outcome) -> list[float]:
    return [place for _, from_iut, place, tcp in seen(outcome) if not from_iut]


def transmissions(outcome: Outcome) -> Counter[float]:
    return Counter(place for _, from_iut, place, tcp in seen(outcome) if from_iut and tcp.payload)


def test_scenario_without_events_is_a_transfer_without_loss() -> None:
    outcome = run(scenario())
    assert not outcome.not_reached
    assert transmissions(outcome) == {float(number): 1 for number in range(10)}
    assert sorted(set(acks(outcome))) == [float(number) for number in range(11)]


def test_segment_lost_is_acknowledged_after_its_retransmission_alone() -> None:
    outcome = run(scenario(lost(2)))
    assert transmissions(outcome)[2.0] == 2
    assert acks(outcome).count(2.0) >= 4  # the cumulative one and a duplicate for each above


def test_segment_lost_twice_is_sent_three_times() -> None:
    assert transmissions(run(scenario(lost(9), lost(9, 2))))[9.0] == 3


def test_acknowledgment_lost_is_not_sent() -> None:
    assert 3.0 in acks(run(scenario()))
    assert 3.0 not in acks(run(scenario(lost_ack(3))))


def test_premature_timeout_comes_while_acknowledgments_are_held_back() -> None:
    outcome = run(scenario(expiries=(Expiry("EarlyTimeout", 2, "taken ACK"),)))
    assert not outcome.not_reached
    packets = seen(outcome)
    second = next(time for time, from_iut, place, _ in packets if not from_iut and place == 2)
    third = next(time for time, from_iut, place, _ in packets if not from_iut and place == 3)
    assert third - second > AFTER_RTTS * LINK.round_trip_s
    again = [time for time, from_iut, place, tcp in packets if from_iut and place == 2]
    assert len(again) == 2 and second < again[1] <= third


def test_window_ends_where_the_users_data_does() -> None:
    outcome = run(scenario())
    edges = [
        place + tcp.window / SEGMENT
        for _, from_iut, place, tcp in seen(outcome)
        if not from_iut and not tcp.flags & 4
    ]
    assert edges == sorted(edges) and max(edges) == 10.0


@pytest.mark.parametrize("profile", ["rfc", "hk99"])
def test_counterexamples_of_the_model_fail_no_true_reference(profile: str) -> None:
    scenarios = {item.script(): item for item in load_scenarios("sack-newreno").named()}
    for item in scenarios.values():
        outcome = run(item, profile)
        assert not outcome.not_reached, item.name
        failed = [finding for finding in outcome.findings if finding.verdict is Verdict.FAIL]
        assert not failed, item.name


def test_whole_cover_is_run_only_when_asked_for() -> None:
    every = {item.id: item for item in load_cases("snr").values() if "model-scenarios" in item.id}
    usual = {item.id for item in select_cases("snr", "rfc") if item.id in every}
    asked = {item.id for item in select_cases("snr", "rfc", ["snr/model-scenarios/*"])}
    assert asked == set(every)
    assert usual == {name for name, item in every.items() if not item.extra}
    assert usual and usual < asked
