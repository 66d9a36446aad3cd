"""Tables of few rows in which each pair of levels of two factors stands in some row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations, product

Level = str | int
Row = Mapping[str, Level]
"""A level of each factor."""

_Some = tuple[tuple[str, Level], ...]
"""Levels of some factors, which are to stand in a row."""


def covering(
    factors: Mapping[str, Sequence[Level]], permitted: Callable[[Row], bool] = lambda _: True,
    together: Collection[Sequence[str]] = (),
) -> list[dict[str, Level]]:  # fmt: skip
    """Rows that hold every pair of levels that some permitted row holds; always the same ones.

    Each row begins with levels that no row has held together, and takes for each further factor
    the level that brings the most of what is new. So three factors of n levels need little more
    than n * n rows.

    Args:
        factors: the levels of each.
        permitted: whether there is such a row. It is asked about rows that are not complete, too:
            of these it must be true if it may be of the whole.
        together: factors of which not pairs alone, but all levels are to stand together.
    """
    groups = [frozenset(names) for names in (*combinations(factors, 2), *together)]
    wanted: dict[_Some, None] = {}
    for names in groups:
        chosen = [[(name, level) for level in factors[name]] for name in factors if name in names]
        wanted.update(dict.fromkeys(product(*chosen)))
    rows = []
    for first in sorted(wanted, key=len, reverse=True):
        if first not in wanted:
            continue
        row = _complete(dict(first), factors, permitted, groups, wanted)
        wanted.pop(first)
        if row is not None:
            rows.append({name: row[name] for name in factors})
            for some in _held(row, factors, groups):
                wanted.pop(some, None)
    return rows


def _held(row: Row, factors: Collection[str], groups: Collection[frozenset[str]]) -> list[_Some]:
    """What stands together in a row, as far as it goes."""
    there = [names for names in groups if row.keys() >= names]
    return [tuple((name, row[name]) for name in factors if name in names) for names in there]


def _complete(
    row: dict[str, Level], factors: Mapping[str, Sequence[Level]],
    permitted: Callable[[Row], bool], groups: Collection[frozenset[str]],
    wanted: Mapping[_Some, None],
) -> dict[str, Level] | None:  # fmt: skip
    """A whole row that begins so, None if there is none."""
    if not permitted(row):
        return None
    name = next((name for name in factors if name not in row), None)
    if name is None:
        return row
    concerned = [names for names in groups if name in names]

    def new(level: Level) -> int:
        return sum(some in wanted for some in _held({**row, name: level}, factors, concerned))

    for level in sorted(factors[name], key=new, reverse=True):
        found = _complete({**row, name: level}, factors, permitted, groups, wanted)
        if found is not None:
            return found
    return None
