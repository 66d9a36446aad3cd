from __future__ import annotations

from collections.abc import Mapping

import pytest
from bentpipe_experiments import hk99_fig13, net3
from bentpipe_experiments.hk99_fig13 import BEST, ORDER, control, judge, measure
from bentpipe_experiments.model import Cell, Judgment
from bentpipe_reference.tcp.config import EndpointConfig, Variant
from bentpipe_reference.tcp.parts import Parts, Setup
from bentpipe_reference.tcp.sending.variables import Event
from bentpipe_reference.tcp.transfer import transfer

SMALL = 300_000


def cells(throughputs: Mapping[tuple[str, float], float], spread: float = 1.0) -> dict:
    return {
        key: Cell((value - spread, value, value + spread), {}) for key, value in throughputs.items()
    }


def published() -> dict[tuple[str, float], float]:
    at_600 = dict(zip(ORDER, (400.0, 600.0, 700.0, 1100.0), strict=True))
    return {(name, 600.0): value for name, value in at_600.items()} | {
        (name, 20.0): 1150.0 for name in ORDER
    }


def judged(throughputs: Mapping[tuple[str, float], float], name: str, **more: float) -> Judgment:
    found = judge(net3.NET3, cells(throughputs, **more), 1)
    return next(item for item in found if item.id == name)


def test_same_seed_gives_the_same_throughput() -> None:
    first, again, other = (measure(net3.NET3, BEST, 20.0, seed, octets=SMALL) for seed in (1, 1, 2))
    assert first == again
    assert first.value != other.value


@pytest.mark.parametrize("variant", ORDER)
def test_every_variant_completes_at_both_ends_of_the_range(variant: str) -> None:
    for rtt_ms in (20.0, 600.0):
        result = measure(net3.NET3, variant, rtt_ms, 3, octets=SMALL)
        assert 0 < result.value < 1300


def test_longer_round_trip_slows_a_short_transfer() -> None:
    fast, slow = (measure(net3.NET3, BEST, rtt, 1, octets=SMALL).value for rtt in (20.0, 600.0))
    assert slow < fast / 2


def test_background_alone_takes_a_tenth_and_loses_nothing() -> None:
    share, lost = control(net3.NET3, 80.0, 1)
    assert share == pytest.approx(0.1, rel=0.15)
    assert lost == 0


def test_background_takes_capacity_from_the_transfer() -> None:
    alone, beside = (
        measure(net3.NET3, BEST, 20.0, 1, octets=2_000_000, share=share).value
        for share in (0.0, 0.1)
    )
    assert beside < 0.97 * alone


def test_published_shape_holds() -> None:
    assert [item.holds for item in judge(net3.NET3, cells(published()), 1)] == [True, True, True]


def test_sack_newreno_that_loses_clearly_more_than_a_tenth_does_not_hold() -> None:
    throughputs = published() | {(BEST, 600.0): 1000.0}
    assert judged(throughputs, "sack-newreno-flat").holds is False


def test_sack_newreno_that_misses_the_bound_by_less_than_the_uncertainty_stays_open() -> None:
    throughputs = published() | {(BEST, 600.0): 1030.0}
    assert judged(throughputs, "sack-newreno-flat", spread=20.0).holds is None


def test_sack_newreno_that_dips_in_between_does_not_hold() -> None:
    throughputs = published() | {(BEST, 300.0): 900.0}
    judgment = judged(throughputs, "sack-newreno-flat")
    assert judgment.holds is False
    assert "at 300 ms" in judgment.sentence


def test_other_order_at_600_ms_does_not_hold() -> None:
    throughputs = published() | {("reno", 600.0): 650.0}
    judgment = judged(throughputs, "order")
    assert judgment.holds is False
    assert judgment.sentence.startswith("NewReno 600 < Reno 650")


def test_order_without_separated_neighbours_says_so() -> None:
    throughputs = published() | {("newreno", 600.0): 401.0}
    judgment = judged(throughputs, "order", spread=50.0)
    assert judgment.holds is True
    assert "do not separate Reno and NewReno" in judgment.sentence


def test_claims_about_unmeasured_points_stay_open() -> None:
    found = judge(net3.NET3, cells({(BEST, 40.0): 1000.0}), 1)
    assert [item.holds for item in found] == [True, None, None]


@pytest.mark.parametrize("name", [item.id for item in hk99_fig13.EXPERIMENTS])
def test_every_setting_of_the_experiment_is_stated(name: str) -> None:
    experiment = next(item for item in hk99_fig13.EXPERIMENTS if item.id == name)
    assert {"queue", "cross traffic", "congestion avoidance"} <= set(experiment.settings)
    assert experiment.points[0] == 20.0
    assert experiment.points[-1] == 600.0


def test_net3_grows_faster_than_rfc2001_in_congestion_avoidance() -> None:
    def recoveries(senders: Mapping[str, type]) -> int:
        config = Setup(EndpointConfig(variant=BEST), Parts(sender=senders[BEST]))
        result = transfer(hk99_fig13.link(100.0), config, 5_000_000)
        assert result.intact
        return result.sender.fast_recoveries

    assert recoveries(net3.NET3) > recoveries(net3.RFC2001)


@pytest.mark.parametrize(("variant", "least", "most"), [("newreno", 30, 60), (BEST, 0.6, 2)])
def test_queue_makes_the_first_repair_last_as_long_as_published(
    variant: Variant, least: float, most: float
) -> None:
    """HK99 5.3.1: over half a minute for NewReno, less than two seconds for SACK-NewReno."""
    times: dict[str, float] = {}

    def note(event: Event) -> None:
        times.setdefault(event.name, event.time)

    config = Setup(EndpointConfig(variant=variant), Parts(sender=net3.NET3[variant]))
    result = transfer(hk99_fig13.link(600.0), config, 3_000_000, on_event=note)
    assert result.intact
    assert least < times["leave_recovery"] - times["enter_recovery"] < most


def test_heartbeat_receiver_acknowledges_at_the_next_beat() -> None:
    receiver = net3.heartbeat_receiver(0.05)(EndpointConfig(), 0)
    receiver.edge = 10_000
    receiver.on_text(1, b"x" * 1460, False, 0.31)
    assert receiver.ack_deadline == pytest.approx(0.45)
