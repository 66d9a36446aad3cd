"""Means, confidence intervals and what follows for ratios and differences of means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist, fmean, median, stdev


def mean(values: Sequence[float]) -> float:
    """Sample mean."""
    return fmean(values)


def half_width(values: Sequence[float]) -> float:
    """Half the 95 % confidence interval of the mean (Student's t); 0 for a single value."""
    if len(values) < 2:
        return 0.0
    return student_t(len(values) - 1) * _standard_error(values)


def ratio(above: Sequence[float], below: Sequence[float]) -> tuple[float, float]:
    """Ratio of two means and half its 95 % confidence interval (first-order propagation)."""
    value = fmean(above) / fmean(below)
    if min(len(above), len(below)) < 2:
        return value, 0.0
    relative = math.hypot(
        _standard_error(above) / fmean(above), _standard_error(below) / fmean(below)
    )
    return value, student_t(min(len(above), len(below)) - 1) * value * relative


def paired_ratio(above: Sequence[float], below: Sequence[float]) -> tuple[float, float]:
    """Mean of the runs' own ratios and half its 95 % confidence interval, infinity for one run.

    Runs of one number meet the same cross traffic, so their ratio varies less than either.
    """
    return _mean_of_pairs([a / b for a, b in zip(above, below, strict=True)])


def paired_difference(more: Sequence[float], less: Sequence[float]) -> tuple[float, float]:
    """Mean of the runs' own differences and half its 95 % confidence interval, as above."""
    return _mean_of_pairs([a - b for a, b in zip(more, less, strict=True)])


def _mean_of_pairs(values: Sequence[float]) -> tuple[float, float]:
    return fmean(values), half_width(values) if len(values) > 1 else math.inf


def within(value: float, margin: float, low: float, high: float) -> bool | None:
    """Whether a confidence interval lies in a band; None when it lies partly in it."""
    if low <= value - margin and value + margin <= high:
        return True
    return None if value + margin >= low and value - margin <= high else False


def at_least(value: float, margin: float, bound: float) -> bool | None:
    """Whether an estimate reaches a bound; None when it misses it by less than its uncertainty."""
    if value >= bound:
        return True
    return None if value + margin >= bound else False


def decimals(means: Iterable[float]) -> int:
    """Decimals in which a table shows these means: three significant digits of the largest."""
    largest = max(means, default=0.0)
    return 0 if largest >= 100 else 1 if largest >= 10 else 2


def clearly_below(lower: Sequence[float], higher: Sequence[float]) -> bool:
    """Whether the 95 % confidence interval of the difference of two means excludes zero."""
    if min(len(lower), len(higher)) < 2:
        return False
    error = math.hypot(_standard_error(lower), _standard_error(higher))
    return fmean(higher) - fmean(lower) > student_t(min(len(lower), len(higher)) - 1) * error


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the order statistics between which that of all lies with 95 % at least.

    With fewer than six values these are the smallest and the largest, with less than that.
    """
    ordered = sorted(values)
    size = len(ordered)
    below, tail = 0, 0.5**size
    while below < size // 2 and tail + math.comb(size, below + 1) * 0.5**size <= 0.025:
        below += 1
        tail += math.comb(size, below) * 0.5**size
    return median(ordered), ordered[below], ordered[size - 1 - below]


def student_t(degrees: int, probability: float = 0.975) -> float:
    """Quantile of Student's t distribution, within 0.2 % for three degrees and more.

    One and two degrees have closed forms; beyond, Fisher's expansion around the normal quantile.
    """
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / degrees**power for power, term in enumerate(terms, start=1))


def _standard_error(values: Sequence[float]) -> float:
    return stdev(values) / math.sqrt(len(values))
