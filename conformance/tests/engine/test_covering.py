from __future__ import annotations

from itertools import combinations, product

from bentpipe_conformance.engine.covering import Row, covering

FACTORS = {"a": (1, 2, 3), "b": ("x", "y", "z"), "c": (0, 1), "d": (0, 1, 2)}


def _allowed(row: Row) -> bool:
    return not (row.get("a") == 1 and row.get("b") == "x")


def test_factors_when_covered_have_each_pair_in_few_rows() -> None:
    rows = covering(FACTORS)
    for (one, ours), (other, theirs) in combinations(FACTORS.items(), 2):
        there = {(row[one], row[other]) for row in rows}
        assert there == set(product(ours, theirs))
    assert 9 <= len(rows) <= 13
    assert rows == covering(FACTORS)


def test_rows_that_are_not_permitted_when_covered_are_left_out_and_no_other_pair() -> None:
    rows = covering(FACTORS, _allowed)
    assert all(map(_allowed, rows))
    pairs = {(row["a"], row["b"]) for row in rows}
    assert pairs == set(product((1, 2, 3), ("x", "y", "z"))) - {(1, "x")}


def test_factors_together_when_covered_have_each_triple() -> None:
    rows = covering(FACTORS, together=[("a", "b", "d")])
    there = {(row["a"], row["b"], row["d"]) for row in rows}
    assert len(there) == 27
