from __future__ import annotations

import pytest
from bentpipe_reference.common.rtt import RttEstimator


def _estimator(**settings: float) -> RttEstimator:
    return RttEstimator(
        **{"initial": 1.0, "minimum": 1.0, "maximum": 60.0, "granularity": 0.001} | settings
    )


def test_estimator_before_a_measurement_uses_the_initial_rto() -> None:
    assert _estimator().rto == 1.0


def test_estimator_when_measured_twice_smooths() -> None:
    estimator = _estimator(minimum=0.2)
    estimator.sample(0.6)
    assert (estimator.srtt, estimator.rttvar, estimator.rto) == (0.6, 0.3, pytest.approx(1.8))
    estimator.sample(0.8)
    assert estimator.rttvar == pytest.approx(0.75 * 0.3 + 0.25 * 0.2)
    assert estimator.srtt == pytest.approx(0.625)
    assert estimator.rto == pytest.approx(0.625 + 4 * 0.275)


def test_estimator_when_rtt_is_steady_keeps_above_it_by_the_granularity() -> None:
    estimator = _estimator(minimum=0.0, granularity=0.1)
    for _ in range(200):
        estimator.sample(0.6)
    assert estimator.rto == pytest.approx(0.7)


@pytest.mark.parametrize(("rtt", "expected"), [(0.01, 1.0), (100.0, 60.0)])
def test_estimator_when_rtt_is_extreme_keeps_its_bounds(rtt: float, expected: float) -> None:
    estimator = _estimator()
    for _ in range(50):
        estimator.sample(rtt)
    assert estimator.rto == expected


def test_estimator_when_backed_off_doubles_to_the_bound_and_collapses_on_a_sample() -> None:
    estimator = _estimator(maximum=10.0)
    seen = []
    for _ in range(5):
        estimator.back_off()
        seen.append(estimator.rto)
    assert seen == [2.0, 4.0, 8.0, 10.0, 10.0]
    estimator.sample(0.3)
    assert estimator.rto == 1.0
