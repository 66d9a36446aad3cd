from __future__ import annotations

import math

import pytest
from bentpipe_experiments.statistics import (
    clearly_below,
    half_width,
    median_interval,
    ratio,
    student_t,
)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (19, 2.093), (1000, 1.962)],
)
def test_student_t_agrees_with_the_table(degrees: int, quantile: float) -> None:
    assert student_t(degrees) == pytest.approx(quantile, rel=2e-3)


def test_half_width_of_known_sample() -> None:
    values = [10.0, 12.0, 14.0]
    assert half_width(values) == pytest.approx(4.303 * 2 / math.sqrt(3), rel=1e-3)


def test_half_width_of_single_value_is_zero() -> None:
    assert half_width([7.0]) == 0


def test_ratio_of_exact_samples_has_no_margin() -> None:
    assert ratio([9.0, 9.0], [10.0, 10.0]) == (pytest.approx(0.9), 0.0)


def test_ratio_margin_grows_with_the_spread() -> None:
    _, narrow = ratio([9.0, 9.2, 8.8], [10.0, 10.0, 10.0])
    _, wide = ratio([9.0, 9.6, 8.4], [10.0, 10.0, 10.0])
    assert 0 < narrow < wide


def test_clearly_below_needs_separated_means() -> None:
    assert clearly_below([1.0, 1.1, 0.9], [2.0, 2.1, 1.9])
    assert not clearly_below([1.0, 3.0, 2.0], [2.1, 2.2, 2.0])
    assert not clearly_below([2.0, 2.1, 1.9], [1.0, 1.1, 0.9])


@pytest.mark.parametrize(("size", "below"), [(2, 0), (5, 0), (6, 0), (9, 1), (10, 1), (40, 13)])
def test_median_interval_is_that_of_the_order_statistics(size: int, below: int) -> None:
    """The places are those of tables of the sign test."""
    found = median_interval([float(value) for value in reversed(range(size))])
    assert found == ((size - 1) / 2, below, size - 1 - below)
