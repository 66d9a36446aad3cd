"""Which runs may tell a mutant from the true reference."""

from __future__ import annotations

from bentpipe_conformance.selftest.mutation.baseline import Baseline, Reached, Run
from bentpipe_conformance.selftest.mutation.marks import Marks
from bentpipe_conformance.selftest.mutation.sites import mutants_of_source

SOURCE = "def f(a):\n    del a[0]\n"
DROPPED = next(m for m in mutants_of_source("m", SOURCE) if m.operator == "drop-statement")


def test_survivor_is_tried_in_a_setting_that_brings_its_bounds_within_reach() -> None:
    marks = Marks({"m": 2}, [])
    lines = marks.lines([("m", 2)])
    runs = {Run("toy/a/b", "p", name): Reached(b"", 0.1, frozenset(), lines) for name in ("", "x")}
    usual = Baseline("toy", 0, marks, runs)
    assert [run.setting for run in usual.telling(DROPPED)] == [""]
    near = Baseline("toy", 0, marks, runs, bounds={"x": ("m",)})
    assert [run.setting for run in near.telling(DROPPED)] == ["", "x"]
