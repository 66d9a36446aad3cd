"""When a published claim counts as reproduced.

A printed *number* does if the 95 % interval of our mean overlaps the number with a stated
tolerance, to which the source's own interval is added. A printed *ratio* does if the 95 % interval
of ours, of runs with the same seed, lies in a stated band. A *sentence* does if the 95 % interval
of the paired difference that it speaks of lies on the side that it says. An interval that lies
across a bound leaves a ratio or a sentence open, on whichever side of it the estimate is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from bentpipe_experiments.model import Cell, Cells, Judgment, Published
from bentpipe_experiments.statistics import paired_difference, paired_ratio, within

NOT_MEASURED = "not all points of the claim were measured"


def number(
    identifier: str, claim: str, cells: Cells, published: Sequence[Published], tolerance: float,
    unit: str = "",
) -> Judgment:  # fmt: skip
    """Whether our means are the printed numbers, each at its point."""
    if not published or any((item.series, item.point) not in cells for item in published):
        return Judgment(identifier, claim, None, NOT_MEASURED)
    found = [(item, _cell(cells, item)) for item in published]
    holds = all(overlaps(item, cell, tolerance) for item, cell in found)
    sentence = "; ".join(_compared(item, cell, unit) for item, cell in found)
    return Judgment(identifier, claim, holds, f"{sentence}; ±{100 * tolerance:g} % allowed")


def overlaps(published: Published, cell: Cell, tolerance: float) -> bool:
    """Whether the interval of a mean overlaps the printed number with its tolerance."""
    slack = tolerance * published.value + published.half_width
    return abs(cell.mean - published.value) <= slack + cell.half_width


def _cell(cells: Cells, item: Published) -> Cell:
    assert item.point is not None
    return cells[item.series, item.point].of(item.note)


def _compared(item: Published, cell: Cell, unit: str) -> str:
    return (
        f"{item.value:g} printed, {cell.mean:.3g} ± {cell.half_width:.2g} {unit}".rstrip()
        + f" found ({100 * (cell.mean / item.value - 1):+.0f} %)"
    )


def band(
    identifier: str, claim: str, ratios: Mapping[float, tuple[float, float]],
    low: float = 0.0, high: float = math.inf, *, scale: float = 1.0, unit: str = "",
) -> Judgment:  # fmt: skip
    """Whether the ratios, each with half its interval, at all points lie from ``low`` to ``high``.

    ``ratios`` is by point, and empty where points are missing. The sentence gives them in ``unit``,
    multiplied by ``scale``.
    """
    if not ratios:
        return Judgment(identifier, claim, None, NOT_MEASURED)
    verdicts = [within(value, margin, low, high) for value, margin in ratios.values()]
    sentence = ", ".join(
        f"{scale * value:.3g} ± {scale * margin:.2g}{unit} at {x:g}"
        for x, (value, margin) in ratios.items()
    )
    return Judgment(identifier, claim, altogether(verdicts), sentence)


def less(
    identifier: str, claim: str, pairs: Mapping[float, tuple[Cell, Cell]], unit: str,
    names: tuple[str, str],
) -> Judgment:  # fmt: skip
    """Whether the first cell of each pair is below the second, by runs of the same seed.

    ``pairs`` is by point, and empty where points are missing; ``names`` are those of the two.
    """
    if not pairs:
        return Judgment(identifier, claim, None, NOT_MEASURED)
    verdicts, told = [], []
    for x, (lower, higher) in pairs.items():
        value, margin = paired_difference(higher.values, lower.values)
        verdicts.append(within(value, margin, math.nextafter(0, 1), math.inf))
        told.append(
            f"{names[0]} {lower.mean:.4g}, {names[1]} {higher.mean:.4g} {unit} at {x:g}: "
            f"{value:.2g} ± {margin:.2g} less"
        )
    return Judgment(identifier, claim, altogether(verdicts), "; ".join(told))


def ratios_of(
    cells: Cells, above: str, below: str, points: Iterable[float], note: str | None = None
) -> dict[float, tuple[float, float]]:
    """The paired ratios of two series at points; empty if one of them is missing."""
    wanted = list(points)
    if any((name, x) not in cells for name in (above, below) for x in wanted):
        return {}
    return {
        x: paired_ratio(cells[above, x].of(note).values, cells[below, x].of(note).values)
        for x in wanted
    }


def pairs_of(
    cells: Cells, lower: str, higher: str, points: Iterable[float], note: str | None = None
) -> dict[float, tuple[Cell, Cell]]:
    """The cells of two series at points; empty if one of them is missing."""
    wanted = list(points)
    if any((name, x) not in cells for name in (lower, higher) for x in wanted):
        return {}
    return {x: (cells[lower, x].of(note), cells[higher, x].of(note)) for x in wanted}


def within_all(values: Iterable[float], margin: float, low: float, high: float) -> bool | None:
    """Whether all values lie in a band, each with the same margin."""
    return altogether(within(value, margin, low, high) for value in values)


def altogether(verdicts: Iterable[bool | None]) -> bool | None:
    """False if one is, else None if one is, else True."""
    found = list(verdicts)
    return False if False in found else None if None in found else True
