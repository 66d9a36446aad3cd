from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from bentpipe_experiments import zb03_fig8
from bentpipe_experiments.model import Cell
from bentpipe_experiments.zb03 import RWBP, SACK
from bentpipe_experiments.zb03_fig11 import (
    ALONE,
    BURSTS,
    CHOICES,
    DROPPED,
    RATES,
    TIMEOUTS,
    judge,
    judge_choices,
    measure,
    measure_choice,
    staircase,
)

Table = Mapping[tuple[str, float], Cell]


def cell(use: float, timeouts: float = 0, dropped: float = 0, alone: float = 1.0) -> Cell:
    """Three runs that differ a little."""
    shares = (0.999, 1.0, 1.0005)
    noted = {
        ALONE: (alone,) * 3,
        TIMEOUTS: (timeouts,) * 3,
        DROPPED: (0.0, 0.0, dropped),
    }
    return Cell(tuple(use * s for s in shares), {}, noted)


PUBLISHED = {(RWBP, 30.0): cell(0.99), (SACK, 30.0): cell(0.7, 20, 500)}


def test_all_claims_hold_for_what_the_paper_says() -> None:
    assert [item.holds for item in judge(PUBLISHED, 1)] == [True] * 6
    assert {item.holds for item in judge({}, 1)} == {None}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("alone", {(SACK, 30.0): cell(0.7, 20, 500, 0.8)}),
        ("rwbp-high", {(RWBP, 30.0): cell(0.9)}),
        ("tcp-low", {(SACK, 30.0): cell(0.95, 20)}),
        ("lossless", {(RWBP, 30.0): cell(0.99, dropped=1)}),
        ("timeouts", {(SACK, 30.0): cell(0.7, 3)}),
        ("gap", {(SACK, 30.0): cell(0.95, 20)}),
    ],
)
def test_result_that_contradicts_a_claim_is_told(name: str, changes: Table) -> None:
    found = {item.id: item.holds for item in judge({**PUBLISHED, **changes}, 1)}
    assert found[name] is False


def test_staircase_has_the_printed_mean_whatever_its_order() -> None:
    first, second = (staircase(random.Random(seed), 30.0) for seed in (1, 2))
    assert first != second
    assert len(first) == 24
    assert sum(first) / len(first) == pytest.approx(300e3)
    assert set(RATES) <= set(first)


def test_staircase_of_bursts_has_the_same_mean() -> None:
    rates = staircase(random.Random(1), 5.0, BURSTS)
    assert sum(rates) / len(rates) == pytest.approx(300e3)
    assert set(rates) == {0.0, 1200e3}


def test_choice_that_contradicts_the_claim_is_told() -> None:
    cells = {(name, 5.0): cell(0.95) for name in CHOICES}
    found = {item.id: item.holds for item in judge_choices(cells, 1)}
    assert found == dict.fromkeys(CHOICES, False)
    assert {item.holds for item in judge_choices({}, 1)} == {None}


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_can_be_measured(name: str) -> None:
    assert 0.2 < measure_choice(name, 1.0, 1, until=310.0).value < 1.01


def test_priority_traffic_costs_tcp_packets_and_rwbp_none() -> None:
    rwbp, sack = (measure(protocol, 30.0, 1, until=330.0) for protocol in (RWBP, SACK))
    assert rwbp.notes[DROPPED] == 0
    assert sack.notes[DROPPED] > 0
    assert min(rwbp.notes[ALONE], sack.notes[ALONE]) > 0.95


def test_fifteen_downloads_have_received_the_same_shortly_after_they_began() -> None:
    found = zb03_fig8.measure(RWBP, 1.0, 1, at=8.0)
    assert found.value > 0.97
    assert 0.5 < found.notes[zb03_fig8.SLOWEST] <= 1


def test_fairness_below_the_bound_is_told() -> None:
    def cells(index: float) -> Table:
        values = (index, index + 0.0001)
        noted = {zb03_fig8.SLOWEST: (0.9, 0.9), zb03_fig8.TIMEOUTS: (0.0, 1.0)}
        return {(RWBP, x): Cell(values, {}, noted) for x in zb03_fig8.LEAST}

    def judged(cells: Table) -> list[bool | None]:
        return [item.holds for item in zb03_fig8.judge(cells, 1)]

    assert judged(cells(0.998)) == [True, True]
    assert judged(cells(0.97)) == [False, True]
    assert judged(cells(0.9)) == [False, False]
    assert judged({}) == [None, None]
