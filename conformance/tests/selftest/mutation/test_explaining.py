"""Explanations are few, complete, and fail when their line changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.selftest.mutation import explaining
from bentpipe_conformance.selftest.mutation.explaining import (
    Explanation,
    load_explanations,
    stale,
)
from bentpipe_conformance.selftest.mutation.scope import Limits, Scope, load_scope
from bentpipe_conformance.selftest.mutation.sites import mutants_of_source

SOURCE = "def f(a, b):\n    return a and b\n"
(MUTANT,) = mutants_of_source("m", SOURCE)
FITTING = Explanation(MUTANT.id, "return a and b", "equivalent", "Both are never false.", "x")
SCOPE = Scope("toy", {"m": ""}, {}, frozenset(), Limits(0.95, 0.25, 0.5))

ENTRY = """[[explained]]
ids = ["m:f:and-to-or:000000", "m:f:and-to-or:000000.2"]
line = "return a and b"
class = "permitted"
clause = "RFC 9293 section 3.4"
reason = "Either may be first."
"""


def read(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Explanation]:
    (tmp_path / "m.toml").write_text(text)
    monkeypatch.setattr(explaining, "data_file", lambda *_: tmp_path)
    return load_explanations(SCOPE)


def test_entry_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item, other = read(ENTRY, tmp_path, monkeypatch).values()
    assert other == replace(item, id="m:f:and-to-or:000000.2")
    assert (item.kind, item.clause, item.reviewer) == ("permitted", "RFC 9293 section 3.4", "")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (ENTRY.replace("permitted", "harmless"), "of the class 'harmless'"),
        (ENTRY.replace('reason = "Either may be first."', ""), "lacks reason"),
        (ENTRY.replace("clause", "because"), "because, which means nothing"),
        (ENTRY.replace('clause = "RFC 9293 section 3.4"', ""), "names no clause"),
        (ENTRY + ENTRY, "explained twice"),
        (ENTRY.replace("m:f", "n:f"), "another module's file"),
        (
            ENTRY.replace(", ".join(('"m:f:and-to-or:000000"', '"m:f:and-to-or:000000.2"')), ""),
            "lacks ids",
        ),
    ],
)
def test_entry_that_says_too_little_is_refused(
    changed: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=sentence):
        read(changed, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("given", "killed", "sentence"),
    [
        ({}, (), ""),
        ({"id": "m:f:and-to-or:ffffff"}, (), "no mutant"),
        ({"line": "return b and a"}, (), "the line has changed"),
        ({}, (MUTANT.id,), "but killed"),
    ],
)
def test_explanation_that_no_longer_fits_is_told(
    given: dict[str, Any], killed: tuple[str, ...], sentence: str
) -> None:
    problems = stale([replace(FITTING, **given)], [MUTANT], killed)
    assert len(problems) == bool(sentence)
    assert sentence in "".join(problems)


@pytest.mark.parametrize("suite", load_suites())
def test_explanations_of_a_suite_fit_its_reference(suite: str) -> None:
    scope = load_scope(load_suites()[suite].folder)
    every = scope.mutants()
    explained = load_explanations(scope)
    assert stale(explained.values(), every) == []
    assert len(explained) <= scope.limits.explained * len(every)
    assert len({item.id for item in every}) == len(every) > 600


@pytest.mark.parametrize("suite", load_suites())
def test_every_module_of_a_reference_counts_or_is_left_out_with_a_reason(suite: str) -> None:
    scope = load_scope(load_suites()[suite].folder)
    assert scope.unlisted() == []
    assert all(scope.counted.values()) and all(scope.left_out.values())
    assert not scope.counted.keys() & scope.left_out.keys()
