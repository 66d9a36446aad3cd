from __future__ import annotations

from collections.abc import Mapping

import pytest
from bentpipe_experiments import zb03_fig7
from bentpipe_experiments.model import Cell, Judgment
from bentpipe_experiments.zb03 import RWBP, SACK
from bentpipe_experiments.zb03_fig7 import CAPACITY, CHOICES, judge, judge_choices, measure

Table = Mapping[tuple[str, float], Cell]


def cell(share: float, timeouts: float = 0.0, spread: float = 0.001) -> Cell:
    """Three runs with this share of the capacity on average."""
    shares = (1 - spread, 1.0, 1 + spread)
    noted = {"timeouts": tuple(timeouts * s for s in shares)}
    return Cell(tuple(share * CAPACITY * s for s in shares), {}, noted)


def published() -> dict[tuple[str, float], Cell]:
    """What the paper says, roughly."""
    return {
        (RWBP, 0.0): cell(0.99), (RWBP, 0.01): cell(0.99), (RWBP, 1.0): cell(0.98),
        (RWBP, 10.0): cell(0.9), (SACK, 0.0): cell(0.99), (SACK, 0.01): cell(0.98),
        (SACK, 1.0): cell(0.3), (SACK, 10.0): cell(0.08, 100),
    }  # fmt: skip


def judged(changes: Table, name: str) -> Judgment:
    return next(item for item in judge({**published(), **changes}, 1) if item.id == name)


def test_all_claims_hold_for_what_the_paper_says() -> None:
    assert [item.holds for item in judge(published(), 1)] == [True] * 7


@pytest.mark.parametrize(
    ("name", "changes", "holds"),
    [
        ("filled-rwbp", {(RWBP, 0.01): cell(0.8)}, False),
        ("filled-sack", {(SACK, 0.0): cell(0.9, spread=0.05)}, None),
        ("kept-1", {(RWBP, 1.0): cell(0.8)}, False),
        ("kept-10", {(RWBP, 10.0): cell(0.6)}, False),
        ("degraded-1", {(SACK, 1.0): cell(0.7)}, False),
        ("degraded-10", {(SACK, 10.0): cell(0.25, 100)}, False),
        ("timeouts", {(SACK, 10.0): cell(0.1, 3)}, False),
    ],
)
def test_result_that_contradicts_a_claim_is_told(
    name: str, changes: Table, holds: bool | None
) -> None:
    assert judged(changes, name).holds is holds


def test_claims_are_open_when_their_points_were_not_measured() -> None:
    assert {item.holds for item in judge({(RWBP, 0.1): cell(1.0)}, 1)} == {None}


def test_choice_that_breaks_a_claim_is_told() -> None:
    cells = {(name, x): cell(0.9) for name in CHOICES for x in (1.0, 10.0)}
    found = {item.id: item.holds for item in judge_choices(cells, 1)}
    assert found["rwbp-reno-1"] is True and found["rwbp-four-10"] is True
    assert found["sack-wide-1"] is False and found["sack-old-10"] is False


def test_same_seed_gives_the_same_measurement() -> None:
    first, again, other = (
        measure(RWBP, 10.0, seed, seconds=2.0, warm_up=3.0) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_errors_cost_tcp_its_window_and_rwbp_no_more_than_the_packets_lost() -> None:
    rwbp, sack = (
        measure(protocol, 10.0, 1, seconds=15.0, warm_up=10.0) for protocol in (RWBP, SACK)
    )
    assert sack.value < 0.2 * rwbp.value
    assert rwbp.value == pytest.approx(CAPACITY * (1 - 0.04), rel=0.02)
    assert sack.notes["timeouts"] > 0
    assert rwbp.notes["dropped"] == 0 and rwbp.notes["fairness"] > 0.98


def test_every_choice_can_be_measured() -> None:
    for name in CHOICES:
        found = zb03_fig7.measure_choice(name, 1.0, 1, seconds=1.0, warm_up=2.0)
        assert 0 < found.value < 2 * CAPACITY
