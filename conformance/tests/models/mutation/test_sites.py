"""Small changes of a specification, found in the parser's syntax tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.models.manifest import load_models, model_root
from bentpipe_conformance.models.mutation.campaign import explanations_of, mutants_of
from bentpipe_conformance.models.mutation.sites import Mutant
from bentpipe_conformance.models.mutation.tree import read_module
from bentpipe_conformance.models.tool import Tool, ToolProblem, find_tool
from bentpipe_conformance.selftest.mutation.explaining import stale


@pytest.fixture(scope="module")
def tool() -> Tool:
    return find_tool(model_root())


@pytest.fixture
def found(toy_models: Path, tool: Tool) -> list[Mutant]:
    return mutants_of(tool, load_models(toy_models)["toy"])


def changed(found: list[Mutant], definition: str, operator: str, models: Path) -> list[str]:
    source = (models / "toy" / "Toy.tla").read_text(encoding="utf-8")
    return [
        item.changed(source)
        for item in found
        if item.definition == definition and item.operator == operator
    ]


@pytest.mark.parametrize(
    ("definition", "operator", "expected"),
    [
        ("Count", "skip-branch", ["/\\ IF FALSE THEN \\/ count = 0",
                                  "/\\ IF TRUE THEN \\/ count = 0"]),
        ("MayCount", "boundary", ["MayCount == count <= Limit"]),
        ("Count", "drop-conjunct", ["Count == /\\ TRUE /\\ ghost < 9"]),
        ("Count", "negate-conjunct", ["Count == /\\ (~(MayCount)) /\\ ghost < 9"]),
        ("Count", "one-less", ["\\/ count > 0", "/\\ count' = count + 0"]),
        ("Count", "forget-assignment", ["/\\ told' = told"]),
        ("Forget", "forget-reset", ["Forget == told /\\ told' = told /\\ UNCHANGED rest"]),
        ("Next", "skip-branch", ["Next == FALSE \\/ Forget", "Next == Count \\/ FALSE"]),
        ("Init", "one-more", ["Init == /\\ count = 1 /\\ told = FALSE"]),
    ],
)  # fmt: skip
def test_operator_makes_its_changes(
    found: list[Mutant], toy_models: Path, definition: str, operator: str, expected: list[str]
) -> None:
    assert changed(found, definition, operator, toy_models)[: len(expected)] == expected


def test_ghosts_and_the_environment_are_left_alone(found: list[Mutant], toy_models: Path) -> None:
    assert {item.definition for item in found} == {"Init", "MayCount", "Count", "Forget", "Next"}
    source = (toy_models / "toy" / "Toy.tla").read_text(encoding="utf-8")
    assert not [item for item in found if source[item.start : item.end].startswith("ghost")]


def test_properties_are_left_alone(found: list[Mutant]) -> None:
    assert not [item for item in found if item.definition in ("Within", "Rises", "NeverFull")]


def test_bullets_after_a_change_keep_their_columns(
    found: list[Mutant], toy_models: Path, tool: Tool
) -> None:
    path = toy_models / "toy" / "Toy.tla"
    source = path.read_text(encoding="utf-8")
    for item in found[::5]:
        path.write_text(item.applied(source), encoding="utf-8")
        read_module(tool, path, (toy_models / "lib",))


def test_identifiers_are_unique_and_outlive_other_lines(
    found: list[Mutant], toy_models: Path, tool: Tool
) -> None:
    assert len({item.id for item in found}) == len(found)
    path = toy_models / "toy" / "Toy.tla"
    text = path.read_text(encoding="utf-8").replace("EXTENDS", "\\* A line more.\nEXTENDS")
    path.write_text(text, encoding="utf-8")
    again = mutants_of(tool, load_models(toy_models)["toy"])
    assert [item.id for item in again] == [item.id for item in found]


def test_module_that_does_not_parse_refused_in_one_sentence(toy_models: Path, tool: Tool) -> None:
    path = toy_models / "toy" / "Toy.tla"
    path.write_text(path.read_text(encoding="utf-8").replace("<= Limit", "<= Limits"))
    with pytest.raises(ToolProblem, match=r"Toy.tla cannot be parsed: .*Limits"):
        mutants_of(tool, load_models(toy_models)["toy"])


@pytest.mark.parametrize("name", sorted(load_models(model_root())))
def test_explanations_fit_the_models(name: str, tool: Tool) -> None:
    manifest = load_models(model_root())[name]
    found = mutants_of(tool, manifest)
    assert len(found) > 100
    assert stale(explanations_of(manifest).values(), found) == []
