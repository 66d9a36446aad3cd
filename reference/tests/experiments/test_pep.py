"""Buffers and openings of boxes: what is measured, and what is judged of it."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from bentpipe_experiments import boxes, pep_buffer, pep_opening
from bentpipe_experiments.model import Cell, Experiment
from bentpipe_experiments.pep_buffer import AMPLE, FAR, NEAR
from bentpipe_experiments.pep_opening import EARLY, LATE, SAVED, SIZES, USER_EARLY, USER_LATE, WHOLE

TRIP = 0.1


def test_buffer_of_two_products_carries_twice_what_one_of_one_product_does() -> None:
    one, two, ample = (
        pep_buffer.measure(FAR, products, 1, octets=1_500_000).value for products in (1.0, 2.0, 8.0)
    )
    assert one < 0.7 * two
    assert two == pytest.approx(ample, rel=0.02)


def test_early_answer_at_the_gateway_saves_the_round_trip_beyond_it() -> None:
    late, early = (pep_opening.measure(name, 4.0, 1) for name in (LATE, EARLY))
    assert late.notes == early.notes
    assert late.value - early.value == pytest.approx(late.notes[SAVED], rel=0.01)


def test_early_answer_at_the_users_side_saves_nothing() -> None:
    late, early, whole = (
        pep_opening.measure(name, 4.0, 1).value for name in (USER_LATE, USER_EARLY, WHOLE)
    )
    assert late == pytest.approx(early) == pytest.approx(whole)


def test_answer_of_other_octets_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(boxes, "pattern", lambda _, octets: bytes([next(numbers) & 1]) * octets)
    with pytest.raises(RuntimeError, match="not all octets as sent"):
        pep_opening.measure(WHOLE, 16.0, 1)


def test_answer_that_does_not_come_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pep_opening, "_LIMIT_S", 1.0)
    with pytest.raises(RuntimeError, match="within 1 s"):
        pep_opening.measure(LATE, 1.0, 1)


def cell(mean: float, spread: float = 0.0, **notes: float) -> Cell:
    values = (mean - spread, mean, mean + spread)
    return Cell(values, {}, {name: (value,) * 3 for name, value in notes.items()})


def buffers(**changes: float) -> list[bool | None]:
    """The verdicts, with what is kept of the throughput at some points."""
    kept = {"two": 1.0, "three": 1.0, "half": 0.27, "near": 0.97} | changes
    cells = {
        (FAR, 2.0): cell(kept["two"]), (FAR, 3.0): cell(kept["three"]),
        (FAR, 0.5): cell(kept["half"]), (NEAR, 0.75): cell(kept["near"]),
        (FAR, AMPLE): cell(1.0), (NEAR, AMPLE): cell(1.0),
    }  # fmt: skip
    return [item.holds for item in pep_buffer.judge(cells, 1)]


def test_buffers_as_published_hold_and_others_do_not() -> None:
    assert buffers() == [True, True, True]
    assert buffers(two=0.9) == [False, True, True]
    assert buffers(half=0.9) == [True, False, True]
    assert buffers(near=0.4) == [True, True, False]


def latencies(**changes: float) -> list[bool | None]:
    """The verdicts, with latencies in round trips of the Internet at every size."""
    seconds = {WHOLE: 14.0, LATE: 14.0, EARLY: 13.0, USER_LATE: 14.0, USER_EARLY: 14.0} | changes
    cells: dict[tuple[str, float], Any] = {
        (name, x): cell(TRIP * (value + (x >= 64 and name == WHOLE)), internet_s=TRIP)
        for name, value in seconds.items()
        for x in SIZES
    }
    return [item.holds for item in pep_opening.judge(cells, 1)]


def test_latencies_by_arithmetic_hold_and_others_do_not() -> None:
    assert latencies() == [True] * 4
    assert latencies(**{EARLY: 13.5}) == [False, True, True, True]
    assert latencies(**{USER_EARLY: 13.0}) == [True, False, True, True]
    assert latencies(**{LATE: 15.5, EARLY: 14.5}) == [True, True, False, False]


def test_points_that_were_not_measured_leave_the_claims_open() -> None:
    assert {item.holds for item in pep_buffer.judge({(FAR, 2.0): cell(1)}, 1)} == {None}
    assert {item.holds for item in pep_opening.judge({}, 1)} == {None}


@pytest.mark.parametrize(
    "experiment", [*pep_buffer.EXPERIMENTS, *pep_opening.EXPERIMENTS], ids=lambda item: item.id
)
def test_every_setting_is_stated(experiment: Experiment) -> None:
    assert {"transfer", "box", "satellite", "Internet"} <= set(experiment.settings)
