"""Bulk transfers over the profiles: exact outcomes, figures and cost."""

from __future__ import annotations

import time
from typing import Any

import pytest
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.tcp.config import VARIANTS, EndpointConfig
from bentpipe_reference.tcp.sending.variables import Event
from bentpipe_reference.tcp.transfer import TransferResult, transfer

PROFILES = load_profiles()
MEGABYTE = 1_000_000


def run(variant: Any, profile: str = "geo", octets: int = MEGABYTE, **more: Any) -> TransferResult:
    return transfer(PROFILES[profile], EndpointConfig(variant=variant), octets, **more)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_transfer_over_every_profile_completes_below_the_rate(variant: Any, profile: str) -> None:
    result = run(variant, profile, 300_000)
    assert result.failure is None
    assert result.intact
    rate = PROFILES[profile].forward.rate_bit_s
    assert rate is not None
    assert rate / 100 < result.throughput_bit_s < rate


def test_transfer_when_repeated_is_identical() -> None:
    first, second, lossy = list[Event](), list[Event](), list[Event]()
    result = run("sack-newreno-rfc", on_event=first.append, seed=7)
    assert result == run("sack-newreno-rfc", on_event=second.append, seed=7)
    run("sack-newreno-rfc", on_event=lossy.append, drops=[40], seed=7)
    assert first == second
    assert first != lossy


def test_transfer_with_one_listed_loss_retransmits_once() -> None:
    clean = run("sack-newreno-rfc", "lan", 200_000)
    assert clean.sender.retransmissions == 0
    lossy = run("sack-newreno-rfc", "lan", 200_000, drops=[30])
    assert (lossy.sender.retransmissions, lossy.sender.timeouts) == (1, 0)
    assert lossy.sender.fast_recoveries == 1
    assert lossy.forward.dropped_by_list == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_transfer_when_a_retransmission_is_lost_too_completes(variant: Any) -> None:
    result = run(variant, octets=400_000, drops=[60, 61, 62, 80, 81, 90, 100, 110, 120])
    assert result.failure is None
    assert result.intact


def test_transfer_when_peer_is_unreachable_fails_with_a_sentence() -> None:
    result = run("sack-newreno-rfc", drops=range(1, 100))
    assert result.failure == "the peer does not complete the handshake"
    assert not result.intact


def test_transfer_when_time_runs_out_says_so() -> None:
    result = run("reno", limit_s=2.0)
    assert result.failure == "not finished within 2 s"


def test_events_tell_every_segment_and_acknowledgment() -> None:
    events: list[Event] = []
    result = run("sack-newreno-hk99", octets=400_000, drops=[100], on_event=events.append)
    sent: list[Any] = [event.values["octets"] for event in events if event.name == "send"]
    acked: list[Any] = [event.values["acked"] for event in events if event.name == "ack"]
    again = [event for event in events if event.name == "retransmit"]
    assert sum(sent) == 400_000 + 1
    assert 0 < sum(acked) <= 400_000 + 1
    assert len(again) == result.sender.retransmissions == 1
    assert [event.time for event in events] == sorted(event.time for event in events)


def test_variants_on_the_geo_link_rank_as_sack_and_newreno_promise() -> None:
    """HK99 section 5.3: both together do best, and neither alone reaches it."""
    best, sack, newreno, reno = (
        run(variant, octets=10 * MEGABYTE).throughput_bit_s
        for variant in ("sack-newreno-hk99", "sack-reno", "newreno", "reno")
    )
    assert best > sack > max(newreno, reno)
    assert best > 0.85 * 1.3e6


def test_sack_newreno_after_slow_start_overshoot_recovers_without_timeout() -> None:
    for variant in ("sack-newreno-hk99", "sack-newreno-rfc"):
        result = run(variant, octets=4 * MEGABYTE)
        assert result.forward.dropped_by_queue > 20
        assert result.sender.timeouts == 0
        assert result.sender.retransmissions < 1.1 * result.forward.dropped_by_queue


@pytest.mark.parametrize("variant", ["sack-newreno-hk99", "sack-newreno-rfc"])
def test_ten_megabytes_over_the_satellite_cost_under_a_second_and_a_half(variant: Any) -> None:
    begun = time.process_time()
    result = run(variant, octets=10 * MEGABYTE)
    assert time.process_time() - begun < 1.5
    assert result.intact


def test_cost_of_a_transfer_is_linear_in_its_packets() -> None:
    def cost(octets: int) -> float:
        begun = time.process_time()
        run("sack-newreno-rfc", octets=octets)
        return (time.process_time() - begun) / octets

    small = min(cost(2 * MEGABYTE) for _ in range(3))
    large = min(cost(16 * MEGABYTE) for _ in range(2))
    assert large < 2 * small
