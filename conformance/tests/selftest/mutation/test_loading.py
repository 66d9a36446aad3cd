"""A mutated reference lives beside the true one, and leaves no trace."""

from __future__ import annotations

import sys
from pathlib import Path

import bentpipe_reference.common.serial as true_serial
import pytest
from bentpipe_conformance.selftest.mutation.loading import load_subject, own_tree, path_of

ROOT = "shelf_reference"
SUBJECT = "from {root}.common.sums import add\n\nSUBJECT = add\n"
SUM = "def add(a, b):\n    return a + b\n"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose protocol ``toy`` stands on its ``common``."""
    for name, text in (
        ("__init__.py", ""),
        ("common/__init__.py", ""),
        ("common/sums.py", SUM),
        ("toy/__init__.py", ""),
        ("toy/subject.py", SUBJECT.format(root=ROOT)),
    ):
        path = tmp_path / ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / ROOT


def test_module_replaced_the_protocol_that_stands_on_it_changes(shelf: Path) -> None:
    mutated = load_subject("toy", {f"{ROOT}.common.sums": SUM.replace("+", "-")}, ROOT)
    assert (mutated(5, 3), load_subject("toy", {}, ROOT)(5, 3)) == (2, 8)


def test_tree_of_its_own_is_forgotten_even_when_the_source_is_broken(shelf: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        load_subject("toy", {f"{ROOT}.common.sums": "1 / 0\n"}, ROOT)
    assert [name for name in sys.modules if name.startswith(ROOT)] == []
    assert load_subject("toy", {}, ROOT)(5, 3) == 8


def test_names_given_to_a_replaced_module_are_defined_in_it(shelf: Path) -> None:
    source = "def add(a, b):\n    return given(a)\n"
    mutated = load_subject("toy", {f"{ROOT}.common.sums": source}, ROOT, {"given": str})
    assert mutated(5, 3) == "5"


def test_arithmetic_of_the_suites_is_not_that_of_a_mutant() -> None:
    name = "bentpipe_reference.common.serial"
    source = path_of(name).read_text(encoding="utf-8")
    with own_tree({name: f"{source}\nSPOILED = True\n"}):
        assert name not in sys.modules
        __import__(name)
        assert sys.modules[name] is not true_serial
        assert sys.modules[name].SPOILED
    assert sys.modules[name] is true_serial
    assert not hasattr(true_serial, "SPOILED")
