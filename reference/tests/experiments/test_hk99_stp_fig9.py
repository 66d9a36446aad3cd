from __future__ import annotations

from collections.abc import Mapping

import pytest
from bentpipe_experiments import hk99_stp_fig9
from bentpipe_experiments.hk99_stp_fig9 import (
    BUFFER,
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
from bentpipe_experiments.model import Cell, Judgment
from bentpipe_experiments.split import SplitFlow, StpLeg
from bentpipe_reference.tcp.path import Path

SMALL = 400_000
BOTH = pytest.mark.parametrize("protocol", [TCP, STP])


def cell(mean: float, reverse: float, spread: float = 0.01) -> Cell:
    shares = (1 - spread, 1.0, 1 + spread)
    noted = {REVERSE: tuple(reverse * s for s in shares)}
    return Cell(tuple(mean * s for s in shares), {}, noted)


def published() -> dict[tuple[str, float], Cell]:
    """Figure 9, roughly."""
    return {
        (TCP, 20.0): cell(1150, 22), (TCP, 300.0): cell(1100, 21), (TCP, 600.0): cell(1050, 20),
        (STP, 20.0): cell(1150, 6), (STP, 300.0): cell(1080, 3), (STP, 600.0): cell(1000, 2),
    }  # fmt: skip


def judged(changes: Mapping[tuple[str, float], Cell], name: str) -> Judgment:
    return next(item for item in judge(published() | changes, 1) if item.id == name)


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
    assert stp.notes[REVERSE] < tcp.notes[REVERSE] / 5


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
    assert [item.holds for item in judge(published(), 1)] == [True, True, True]


def test_return_channel_above_a_fifth_does_not_hold() -> None:
    assert judged({(STP, 600.0): cell(1000, 4.5)}, "reverse-fifth").holds is False


def test_return_channel_that_misses_a_fifth_by_its_uncertainty_stays_open() -> None:
    assert judged({(STP, 600.0): cell(1000, 4.02)}, "reverse-fifth").holds is None


def test_throughput_more_than_a_tenth_below_does_not_hold() -> None:
    judgment = judged({(STP, 300.0): cell(900, 3)}, "forward-tenth")
    assert judgment.holds is False
    assert "81.8 ± 2.9 % at 300 ms" in judgment.sentence


def test_throughput_that_misses_a_tenth_by_its_uncertainty_stays_open() -> None:
    assert judged({(STP, 600.0): cell(940, 2)}, "forward-tenth").holds is None


def test_return_channel_that_rises_with_the_round_trip_does_not_hold() -> None:
    assert judged({(STP, 300.0): cell(1080, 7)}, "reverse-falls").holds is False


def test_points_that_were_not_measured_leave_the_claims_open() -> None:
    few = {key: value for key, value in published().items() if key[1] == 300.0}
    assert [item.holds for item in judge(few, 1)] == [None, None, None]
    assert [item.holds for item in judge({}, 1)] == [None, None, None]


def rates(stp: tuple[float, float], tcp: tuple[float, float]) -> list[bool | None]:
    cells = {}
    for name, values in ((STP, stp), (TCP, tcp)):
        for rate, value in zip((325.0, 2600.0), values, strict=True):
            found = cell(value, value)
            cells[name, rate] = Cell(found.values, {}, {"forward_kb_s": (0.9 * rate,) * 3})
    return [item.holds for item in judge_rates(cells, 1)]


def test_return_channel_without_regard_to_the_rate_holds() -> None:
    assert rates((1.5, 1.6), (6.0, 40.0)) == [True, True]


def test_return_channel_that_follows_the_rate_does_not_hold() -> None:
    assert rates((1.5, 2.5), (6.0, 40.0)) == [False, True]
    assert rates((2.5, 1.5), (6.0, 40.0)) == [False, True]


def test_tcp_that_does_not_follow_the_rate_does_not_hold() -> None:
    assert rates((1.5, 1.6), (6.0, 12.0)) == [True, False]


def test_one_rate_says_nothing() -> None:
    assert [item.holds for item in judge_rates({(STP, 325.0): cell(1, 1)}, 1)] == [None, None]


@pytest.mark.parametrize("experiment", hk99_stp_fig9.EXPERIMENTS, ids=lambda item: item.id)
def test_every_setting_is_stated(experiment: hk99_stp_fig9.Experiment) -> None:
    assert {"satellite queue", "competition", "gateway", "windows"} <= set(experiment.settings)
