from __future__ import annotations

from collections.abc import Mapping

import pytest
from bentpipe_experiments.figure import _figure
from bentpipe_experiments.model import Cell, Judgment
from bentpipe_experiments.zb03 import RWBP, SACK
from bentpipe_experiments.zb03_fig4 import (
    EXPERIMENTS,
    INTERVALS,
    LATE,
    PERCENTILE,
    USAGE,
    derived_usage,
    judge,
    judge_reordering,
    measure,
    measure_reordering,
    slope,
)

Table = Mapping[tuple[str, float], Cell]
SMALL = 150_000


def cell(throughput: float, usage: float) -> Cell:
    """Three runs that differ a little."""
    shares = (0.999, 1.0, 1.001)
    noted = {USAGE: tuple(usage * s for s in shares)}
    return Cell(tuple(throughput * s for s in shares), {}, noted)


def published() -> dict[tuple[str, float], Cell]:
    """What the paper says, roughly."""
    rates = dict(zip(INTERVALS, (540, 540, 539, 538, 490, 400), strict=True))
    found = {(LATE, x): cell(rates[x], derived_usage(x) * rates[x] / 553) for x in INTERVALS}
    return {**found, (SACK, 8.0): cell(520, 23)}


def judged(changes: Table, name: str) -> Judgment:
    return next(item for item in judge({**published(), **changes}, 1) if item.id == name)


def test_all_claims_hold_for_what_the_paper_says() -> None:
    assert [item.holds for item in judge(published(), 1)] == [True] * 5


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("usage", {(LATE, 32.0): cell(400, 2 * derived_usage(32.0))}),
        ("slope", {(LATE, 16.0): cell(490, derived_usage(8.0))}),
        ("quarter", {(SACK, 8.0): cell(520, 10)}),
        ("insensitive", {(LATE, 8.0): cell(500, derived_usage(8.0))}),
        ("falls", {(LATE, 16.0): cell(545, derived_usage(16.0))}),
    ],
)
def test_result_that_contradicts_a_claim_is_told(name: str, changes: Table) -> None:
    assert judged(changes, name).holds is False


def test_claims_are_open_when_their_points_were_not_measured() -> None:
    assert {item.holds for item in judge({(LATE, 1.0): cell(1, 1)}, 1)} == {None}


def test_slope_of_a_power_is_its_exponent() -> None:
    assert slope([(x, 3 * x**-1.5) for x in (1.0, 2.0, 8.0)]) == pytest.approx(-1.5)


def test_fewer_acknowledgments_use_less_of_the_return_channel() -> None:
    one, eight = (measure(LATE, interval, 1, octets=SMALL) for interval in (1.0, 8.0))
    assert one.notes["acknowledgments"] > 6 * eight.notes["acknowledgments"]
    assert eight.notes[USAGE] < one.notes[USAGE] / 5


def test_tail_timer_of_rwbp1_bounds_what_a_large_interval_saves() -> None:
    late, timed = (measure(name, 32.0, 1, octets=SMALL) for name in (LATE, RWBP))
    assert timed.notes["acknowledgments"] > 1.5 * late.notes["acknowledgments"]


def test_reorder_buffer_is_empty_without_errors_and_holds_a_round_trip_with_them() -> None:
    none, some = (measure_reordering(RWBP, x, 2, SMALL) for x in (0.0, 10.0))
    assert none.value == 0
    assert 0.5 < some.value < 5
    assert 0 < some.notes[PERCENTILE] <= some.value


def held(values: tuple[float, ...], usual: float) -> Cell:
    return Cell(values, {}, {PERCENTILE: (usual,) * len(values)})


@pytest.mark.parametrize(
    ("once", "twice", "holds"),
    [
        (held((0.9, 1.0, 1.1), 0.9), held((2.7, 3.0, 3.3), 2.0), [True] * 5),
        (held((0.1, 0.2, 0.3), 0.1), held((5.0, 5.1, 5.2), 2.0), [False, False, False, True, True]),
        (held((0.9, 1.0, 1.1), 2.1), held((2.7, 3.0, 3.3), 4.1), [True, True, True, False, False]),
        (held((0.9, 1.0, 1.1), 0.9), held((1.9, 2.0, 2.4), 2.0), [True, None, False, True, True]),
    ],
)
def test_reorder_buffer_is_judged_by_its_usual_maximum(
    once: Cell, twice: Cell, holds: list[bool]
) -> None:
    found = judge_reordering({(RWBP, 1.0): once, (RWBP, 10.0): twice}, 1)
    assert [item.holds for item in found] == holds
    assert {item.holds for item in judge_reordering({}, 1)} == {None}


def test_what_the_paper_prints_lies_within_the_figure() -> None:
    experiment = EXPERIMENTS[1]
    cells = {(RWBP, x): held((x / 10, x / 9), 0.1) for x in experiment.points}
    (top, *_) = _figure(experiment, cells).axes
    assert top.get_ylim()[0] == 0
    assert top.get_ylim()[1] >= max(item.value for item in experiment.published)
