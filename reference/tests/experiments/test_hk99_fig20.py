from __future__ import annotations

from collections.abc import Mapping

import pytest
from bentpipe_experiments import hk99_fig20
from bentpipe_experiments.hk99_fig20 import (
    ALONE,
    BESIDE,
    FORWARD,
    RECOVERIES,
    REVERSE,
    SPLIT,
    TIMEOUTS,
    judge_competition,
    judge_return,
    judge_return_at_rates,
    judge_routers,
    judge_split,
    measure,
    measure_return,
)
from bentpipe_experiments.model import Cell, Experiment

SMALL = 400_000


def cell(
    mean: float, spread: float = 0.01, timeouts: tuple[int, ...] = (0, 0, 0), recoveries: float = 1
) -> Cell:
    """Three runs."""
    shares = (1 - spread, 1.0, 1 + spread)
    noted = {
        TIMEOUTS: tuple(map(float, timeouts)),
        RECOVERIES: (recoveries,) * 3,
        FORWARD: tuple(mean * 45 * share for share in shares),
    }
    return Cell(tuple(mean * share for share in shares), {}, noted)


def published() -> dict[tuple[str, float], Cell]:
    """Figures 20 and 23, roughly."""
    return {
        (ALONE, 20.0): cell(1160), (ALONE, 300.0): cell(1120), (ALONE, 600.0): cell(1050),
        (BESIDE, 20.0): cell(1150), (BESIDE, 300.0): cell(600, 0.03),
        (BESIDE, 600.0): cell(330, 0.05, recoveries=6),
        (SPLIT, 20.0): cell(1150), (SPLIT, 300.0): cell(1120), (SPLIT, 600.0): cell(1040),
    }  # fmt: skip


def verdict(
    judge: object, name: str, changes: Mapping[tuple[str, float], Cell] | None = None
) -> bool | None:
    assert callable(judge)
    found = judge({**published(), **(changes or {})}, 1)
    return next(item.holds for item in found if item.id == name)


@pytest.mark.slow
def test_one_competitor_of_20_ms_takes_most_from_a_transfer_over_a_satellite() -> None:
    alone, beside = (measure(name, 600.0, 3, octets=2_000_000) for name in (ALONE, BESIDE))
    assert beside.value < 0.6 * alone.value
    assert beside.notes["wide_dropped"] > 0 and alone.notes["wide_dropped"] == 0


def test_same_seed_gives_the_same_measurement() -> None:
    first, again, other = (measure(ALONE, 80.0, seed, octets=SMALL) for seed in (1, 1, 2))
    assert first == again
    assert first.value != other.value


def test_split_connection_beside_a_competitor_arrives_whole_and_counts_acknowledgments() -> None:
    found = measure(SPLIT, 80.0, 1, octets=SMALL)
    assert 0 < found.value < 1300
    assert 0.015 < found.notes[REVERSE] / found.value < 0.04


def test_return_channel_is_the_value_and_throughput_its_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = measure(SPLIT, 80.0, 1, octets=SMALL)
    monkeypatch.setattr(hk99_fig20, "measure", lambda *_: found)
    other = measure_return(SPLIT, 80.0, 1)
    assert other.value == found.notes[REVERSE] and other.notes[FORWARD] == found.value


def test_transfer_that_does_not_end_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hk99_fig20, "_LIMIT_S", 3.0)
    with pytest.raises(RuntimeError, match="beside at 600 ms, seed 1: not all octets"):
        measure(BESIDE, 600.0, 1, octets=SMALL)


def test_published_shape_holds() -> None:
    assert [item.holds for item in judge_competition(published(), 1)] == [True] * 6
    assert [item.holds for item in judge_split(published(), 1)] == [True] * 3


def test_reduction_has_to_show_with_every_router() -> None:
    routers = {
        (name, x): cell(value)
        for name, value in ((ALONE, 1050), (BESIDE, 330))
        for x in (50.0, 150.0)
    }
    assert [item.holds for item in judge_routers(routers, 1)] == [True]
    kept = {**routers, (BESIDE, 150.0): cell(700)}
    assert [item.holds for item in judge_routers(kept, 1)] == [False]


@pytest.mark.parametrize(
    ("name", "changed", "holds"),
    [
        ("reduced", cell(800, 0.05, recoveries=6), False),
        ("reduced", cell(525, 0.05, recoveries=6), None),
        ("falls", cell(900, 0.05, recoveries=6), False),
        ("variable", cell(330, 0.01, recoveries=6), False),
        ("timeouts", cell(330, 0.05, (0, 1, 0), 6), False),
        ("recoveries", cell(330, 0.05, recoveries=1.5), False),
    ],
)
def test_other_throughput_beside_the_competitor_changes_the_verdict(
    name: str, changed: Cell, holds: bool | None
) -> None:
    assert verdict(judge_competition, name, {(BESIDE, 600.0): changed}) is holds


def test_transfer_of_the_same_round_trip_that_is_reduced_does_not_hold() -> None:
    assert verdict(judge_competition, "control", {(BESIDE, 20.0): cell(700)}) is False


def test_split_transfer_that_keeps_too_little_does_not_hold() -> None:
    slow = {(SPLIT, 600.0): cell(500)}
    assert verdict(judge_split, "as-alone", slow) is False
    assert verdict(judge_split, "gain", slow) is False
    assert verdict(judge_split, "everywhere", {(SPLIT, 300.0): cell(500)}) is False


def test_points_that_were_not_measured_leave_the_claims_open() -> None:
    few = {key: value for key, value in published().items() if key[1] == 300.0}
    for judge in (judge_competition, judge_split, judge_return):
        assert {item.holds for item in judge(few, 1)} == {None}
    assert [item.holds for item in judge_return_at_rates(few, 1)] == [None]


def returned(**values: float) -> dict[tuple[str, float], Cell]:
    return {(SPLIT, x): cell(values.get(f"at_{x:g}", 22.0)) for x in (20.0, 600.0)}


def test_return_channel_as_printed_holds_and_another_does_not() -> None:
    assert [item.holds for item in judge_return(returned(), 1)] == [True, True]
    assert judge_return(returned(at_600=27.0), 1)[0].holds is False
    shares = {key: Cell(c.values, {}, {FORWARD: (700.0,) * 3}) for key, c in returned().items()}
    assert judge_return(shares, 1)[1].holds is False


def test_return_channel_that_follows_the_rate_holds_and_a_level_one_does_not() -> None:
    rates = {(SPLIT, x): cell(x / 50) for x in (325.0, 650.0, 1300.0)}
    assert [item.holds for item in judge_return_at_rates(rates, 1)] == [True, True]
    level = {
        key: Cell((20.0, 20.1, 19.9), {}, {FORWARD: (key[1], 0.99 * key[1], 1.01 * key[1])})
        for key in rates
    }
    assert [item.holds for item in judge_return_at_rates(level, 1)] == [False, False]


@pytest.mark.parametrize("experiment", hk99_fig20.EXPERIMENTS, ids=lambda item: item.id)
def test_every_setting_is_stated(experiment: Experiment) -> None:
    assert {"first router", "competition", "congestion control"} <= set(experiment.settings)
