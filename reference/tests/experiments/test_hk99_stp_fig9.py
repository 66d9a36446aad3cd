from __future__ import annotations

from collections.abc import Mapping

import pytest
from bentpipe_experiments import hk99_stp_fig9
from bentpipe_experiments.hk99_stp_fig9 import (
    BUFFER,
    FORWARD,
    OVERHEAD,
    REVERSE,
    STP,
    TCP,
    judge,
    judge_rates,
    leg,
    measure,
    satellite,
    tcp_setup,
    wide_area,
)
from bentpipe_experiments.model import Cell, Experiment, Judgment
from bentpipe_experiments.split import SplitFlow, StpLeg
from bentpipe_reference.tcp.path import Path

SMALL = 400_000
BOTH = pytest.mark.parametrize("protocol", [TCP, STP])


def cell(mean: float, reverse: float, overhead: float = 0.04, spread: float = 0.01) -> Cell:
    """Three runs, whose throughput and return channel vary together."""
    shares = (1 - spread, 1.0, 1 + spread)
    noted = {REVERSE: tuple(reverse * s for s in shares), OVERHEAD: (overhead,) * 3}
    return Cell(tuple(mean * s for s in shares), {}, noted)


def published() -> dict[tuple[str, float], Cell]:
    """Figure 9, roughly."""
    return {
        (TCP, 20.0): cell(1150, 23, 0.05), (TCP, 450.0): cell(1100, 21, 0.05),
        (TCP, 600.0): cell(1050, 20, 0.05),
        (STP, 20.0): cell(1150, 6), (STP, 450.0): cell(1060, 3), (STP, 600.0): cell(1000, 1.8),
    }  # fmt: skip


def judged(changes: Mapping[tuple[str, float], Cell], name: str) -> Judgment:
    return next(item for item in judge({**published(), **changes}, 1) if item.id == name)


@BOTH
def test_same_seed_gives_the_same_measurement(protocol: str) -> None:
    first, again, other = (
        measure(protocol, 80.0, seed, octets=SMALL, compete=False) for seed in (1, 1, 2)
    )
    assert first == again
    assert first.value != other.value


@BOTH
def test_transfer_beside_a_competitor_in_the_internet_arrives_whole(protocol: str) -> None:
    found = measure(protocol, 600.0, 3, octets=SMALL)
    assert 0 < found.value < 1300
    assert found.notes["wide_dropped"] > 0


def test_stp_uses_less_of_the_return_channel_even_for_a_short_transfer() -> None:
    tcp, stp = (measure(name, 600.0, 1, octets=2_000_000, compete=False) for name in (TCP, STP))
    assert stp.notes[REVERSE] < tcp.notes[REVERSE] / 10


def test_stp_uses_no_more_of_the_return_channel_when_the_internet_is_slower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hk99_stp_fig9, "WIDE_RATE", 300_000)
    found = measure(STP, 600.0, 1, octets=1_000_000, compete=False)
    assert found.value > 270
    assert found.notes[REVERSE] < 2


@BOTH
def test_slow_satellite_holds_up_the_host_and_nothing_is_dropped_at_the_gateway(
    protocol: str,
) -> None:
    internet = Path(wide_area(), 1)
    space = Path(satellite(600.0, 130.0), 2, simulation=internet.simulation)
    way = leg(protocol, 0.0)(space, 2_000_000, 3)
    flow = SplitFlow(internet, tcp_setup(mss=1460), 2_000_000, way)
    flow.start()
    internet.simulation.run_until(20.0)
    handed = flow.read
    assert flow.buffered_most > BUFFER - 2 * 1460, "the gateway has filled its buffer"
    assert flow.buffered_most <= BUFFER
    # What has arrived behind a gap is not read yet, and the gateway does not keep it any longer.
    arrived = way.connection.acknowledged_octets if isinstance(way, StpLeg) else way.read
    assert handed - arrived <= BUFFER
    sender = flow.sending.sender
    assert handed <= sender.snd_una - sender.iss - 1 <= handed + BUFFER
    internet.simulation.run_until(300.0)
    assert way.read == 2_000_000 and way.intact
    assert way.failure is None and flow.failure is None


@BOTH
def test_both_connections_end_when_the_stream_is_through(protocol: str) -> None:
    internet = Path(wide_area(), 1)
    space = Path(satellite(80.0), 2, simulation=internet.simulation)
    way = leg(protocol, 0.0)(space, 50_000, 3)
    flow = SplitFlow(internet, tcp_setup(mss=1460), 50_000, way)
    flow.start()
    internet.simulation.run()
    assert way.read == 50_000 and way.intact
    assert way.failure is None and flow.failure is None
    assert flow.finished is not None and way.finished is not None
    assert way.finished > flow.finished


def test_satellite_queue_holds_as_much_time_at_every_rate() -> None:
    assert satellite(600.0).forward.queue_packets == 50
    assert satellite(600.0, 650.0).forward.queue_packets == 25


def test_published_shape_holds() -> None:
    assert [item.holds for item in judge(published(), 1)] == [True] * 7


def test_return_channel_above_a_tenth_does_not_hold() -> None:
    assert judged({(STP, 600.0): cell(1000, 2.2)}, "reverse-tenth").holds is False


def test_ratio_whose_interval_lies_across_its_bound_stays_open() -> None:
    uneven = Cell((1000.0,) * 3, {}, {REVERSE: (1.8, 1.95, 2.1), OVERHEAD: (0.04,) * 3})
    judgment = judged({(STP, 600.0): uneven}, "reverse-tenth")
    assert judgment.holds is None and "times at 600" in judgment.sentence


def test_throughput_more_than_a_tenth_below_does_not_hold() -> None:
    judgment = judged({(STP, 450.0): cell(900, 3)}, "forward-tenth")
    assert judgment.holds is False
    assert "81.8 ± 0 % at 450" in judgment.sentence


def test_throughput_like_tcp_at_long_round_trips_stays_open() -> None:
    even = Cell((1040.0, 1050.0, 1061.0), {}, {REVERSE: (1.8,) * 3, OVERHEAD: (0.04,) * 3})
    assert judged({(STP, 600.0): even}, "slower").holds is None
    assert judged({(STP, 600.0): cell(1150, 1.8)}, "slower").holds is False


def test_return_channel_that_rises_with_the_round_trip_does_not_hold() -> None:
    assert judged({(STP, 450.0): cell(1060, 7)}, "reverse-falls").holds is False


def test_return_channel_that_is_level_stays_open() -> None:
    assert judged({(STP, 450.0): cell(1060, 1.81)}, "reverse-falls").holds is None


def test_forward_overhead_above_tcps_does_not_hold() -> None:
    assert judged({(STP, 450.0): cell(1060, 3, 0.06)}, "overhead").holds is False


def test_acknowledgments_far_from_the_printed_number_do_not_hold() -> None:
    assert judged({(TCP, 20.0): cell(1150, 27, 0.05)}, "tcp-reverse").holds is False
    judgment = judged({(TCP, 20.0): cell(1150, 24.1, 0.05)}, "tcp-reverse")
    assert judgment.holds, "the interval overlaps 20 kb/s and a fifth"
    assert "20 printed, 24.1 ± 0.6 kb/s found (+21 %)" in judgment.sentence


def test_acknowledgments_that_take_another_share_do_not_hold() -> None:
    assert judged({(TCP, 20.0): cell(800, 23, 0.05)}, "tcp-share").holds is False


def test_points_that_were_not_measured_leave_the_claims_open() -> None:
    few = {key: value for key, value in published().items() if key[1] == 450.0}
    assert [item.holds for item in judge(few, 1)] == [None] * 7
    assert [item.holds for item in judge({}, 1)] == [None] * 7


def rates(stp: tuple[float, float], tcp: tuple[float, float]) -> list[bool | None]:
    cells = {}
    for name, values in ((STP, stp), (TCP, tcp)):
        for rate, value in zip((325.0, 2600.0), values, strict=True):
            found = cell(value, value)
            forward = tuple(0.9 * rate * share for share in (0.99, 1.0, 1.01))
            cells[name, rate] = Cell(found.values, {}, {FORWARD: forward})
    return [item.holds for item in judge_rates(cells, 1)]


def test_return_channel_without_regard_to_the_rate_holds() -> None:
    assert rates((1.5, 1.6), (6.0, 40.0)) == [True, True]
    assert rates((1.6, 1.5), (6.0, 40.0)) == [True, True]


def test_return_channel_that_follows_the_rate_does_not_hold() -> None:
    assert rates((1.5, 3.0), (6.0, 40.0)) == [False, True]


def test_return_channel_that_changes_by_a_third_does_not_hold_though_tcp_changes_more() -> None:
    assert rates((1.5, 2.0), (6.0, 40.0)) == [False, True]
    assert rates((2.0, 1.5), (6.0, 40.0)) == [False, True]


def test_tcp_that_does_not_follow_the_rate_does_not_hold() -> None:
    cells = {}
    for rate, tcp in ((325.0, 6.0), (1300.0, 40.0), (2600.0, 12.0)):
        cells[STP, rate] = Cell((1.5, 1.5), {}, {FORWARD: (rate, rate)})
        cells[TCP, rate] = Cell((tcp, tcp + 0.1), {}, {FORWARD: (rate, rate)})
    assert judge_rates(cells, 1)[1].holds is False


def test_one_rate_says_nothing() -> None:
    assert [item.holds for item in judge_rates({(STP, 325.0): cell(1, 1)}, 1)] == [None, None]


@pytest.mark.parametrize("experiment", hk99_stp_fig9.EXPERIMENTS, ids=lambda item: item.id)
def test_every_setting_is_stated(experiment: Experiment) -> None:
    assert {"satellite queue", "competition", "gateway", "windows"} <= set(experiment.settings)
