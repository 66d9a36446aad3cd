"""Scenarios in the repository, their plans, and the command that makes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.manifest import (
    Manifest,
    load_manifest,
    load_models,
    model_root,
)
from bentpipe_conformance.models.plan import Plan, load_plan, plan_hash
from bentpipe_conformance.models.tool import ToolProblem
from bentpipe_spec.scenario import load_scenarios
from click.testing import CliRunner, Result

from .conftest import install

MODELS = {
    name: (manifest, plan)
    for name, manifest in load_models(model_root()).items()
    if (plan := load_plan(manifest)) is not None
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> tuple[Manifest, Plan]:
    return MODELS[request.param]


def test_stored_scenarios_are_those_of_the_model_as_it_is(model: tuple[Manifest, Plan]) -> None:
    manifest, plan = model
    stored = load_scenarios(manifest.name)
    assert stored.model == manifest.name
    assert stored.model_sha256 == plan_hash(manifest, plan, model_root()), (
        f"the model has changed; run: bentpipe model {manifest.name} --scenarios"
    )


def test_every_mutant_and_limit_has_its_named_scenario(model: tuple[Manifest, Plan]) -> None:
    manifest, _ = model
    stored = {item.name: item for item in load_scenarios(manifest.name).named()}
    broken = [run for run in manifest.runs if run.kind in ("mutant", "limit") and not run.edit]
    assert set(stored) == {run.name for run in broken}
    for run in broken:
        assert stored[run.name].property == run.violates
        assert stored[run.name].requirements == manifest.requirements[run.violates]


def test_covers_take_what_the_graphs_say_is_covered(model: tuple[Manifest, Plan]) -> None:
    stored = load_scenarios(model[0].name)
    covers = stored.covers()
    assert sum(item.edges for item in covers) == sum(graph.covered for graph in stored.graphs)
    assert all(0 < graph.covered <= graph.edges for graph in stored.graphs)
    gains = [item.edges for item in covers]
    assert gains == sorted(gains, reverse=True) and gains[-1] > 0
    assert len({item.script() for item in covers}) == len(covers) <= 1000


OK = (
    "@!@!@STARTMSG 2193:0 @!@!@\nNo error.\n@!@!@ENDMSG 2193 @!@!@\n"
    "@!@!@STARTMSG 2199:0 @!@!@\n3 states generated, 3 distinct states found, 0 states left on "
    "queue.\n@!@!@ENDMSG 2199 @!@!@\n"
)
DOT = r"""strict digraph DiskGraph {
nodesep=0.35;
subgraph cluster_graph {
color="white";
1 [label="/\\ link = <<>>",style = filled]
1 -> 2 [label="Send",color="black",fontcolor="black"];
2 [label="/\\ link = <<0>>"];
2 -> 3 [label="Lose",color="black",fontcolor="black"];
3 [label="/\\ link = << >>"];
}
}
"""
PLAN = {
    "channels": [{"variable": "link", "kind": "DATA"}], "losses": ["Lose"], "duplications": [],
    "timers": {}, "numbered": ["DATA"], "offered": "N", "window": "N", "mutants": {},
    "graphs": [{"name": "all", "run": "safety", "constants": {"N": "1"}}],
}  # fmt: skip


@pytest.fixture
def toy(tmp_path: Path, toy_model: Callable[..., Path]) -> Path:
    config = "SPECIFICATION Spec\nCONSTANTS\n    N = 2\nINVARIANT Inv\n"
    runs = [{"name": "safety", "kind": "check"}]
    root = toy_model("toy", "EXTENDS Base\n", config, runs, [])
    (root / "Base.tla").write_text("---- MODULE Base ----\n====\n", encoding="utf-8")
    plan(root, **PLAN)
    (tmp_path / "output").write_text(OK, encoding="utf-8")
    (tmp_path / "graph.dot").write_text(DOT, encoding="utf-8")
    install(
        tmp_path,
        f"cat '{tmp_path}/output'\n"
        f'while [ $# -gt 0 ]; do [ "$1" = -dump ] && cp \'{tmp_path}/graph.dot\' "$3"; '
        "shift; done",
    )
    return root


def plan(root: Path, **data: Any) -> None:
    (root / "toy" / "scenarios.json").write_text(json.dumps(data), encoding="utf-8")


def call(root: Path, *arguments: str) -> Result:
    command = ["model", "toy", "--scenarios", "--models", str(root), *arguments]
    return CliRunner().invoke(bentpipe, command)


def test_scenarios_of_a_model_are_stored_with_their_coverage(toy: Path, tmp_path: Path) -> None:
    result = call(toy, "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "1 scenarios take 2 of 2 edges" in result.output
    data = json.loads((tmp_path / "out" / "toy.json").read_text(encoding="utf-8"))
    (cover,) = data["scenarios"]
    assert cover["events"] == [
        {"message": "DATA", "nth": 1, "number": 0, "transmission": 1, "fate": "lost"}
    ]
    assert cover["offered"] == 1 and data["graphs"][0]["covered"] == 2


def test_scenarios_compared_with_those_stored_agree(toy: Path, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    assert call(toy, *out).exit_code == 0
    result = call(toy, "--check", *out)
    assert result.exit_code == 0 and "as stored" in result.output


def test_model_changed_after_its_scenarios_were_stored_is_drift(toy: Path, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    assert call(toy, *out).exit_code == 0
    (toy / "Base.tla").write_text("---- MODULE Base ----\nA == 1\n====\n", encoding="utf-8")
    result = call(toy, "--check", *out)
    assert result.exit_code == 1
    assert "model_sha256 differ" in result.output
    assert "bentpipe model toy --scenarios" in result.output


def test_scenarios_compared_with_none_stored_fail(toy: Path, tmp_path: Path) -> None:
    result = call(toy, "--check", "--out", str(tmp_path / "out"))
    assert result.exit_code == 1 and "cannot be read" in result.output
    assert not (tmp_path / "out").exists()


def test_damaged_dump_leaves_nothing_stored(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "graph.dot").write_text("digraph {\n", encoding="utf-8")
    result = call(toy, "--out", str(tmp_path / "out"))
    assert result.exit_code == 3 and "is not part of a state graph" in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_dump_with_too_few_states_is_refused(toy: Path, tmp_path: Path) -> None:
    text = OK.replace("3 distinct", "4 distinct")
    (tmp_path / "output").write_text(text, encoding="utf-8")
    result = call(toy, "--out", str(tmp_path / "out"))
    assert result.exit_code == 3 and "has 3 states, but 4 were found" in result.output


def test_check_without_scenarios_is_wrong_usage(toy: Path) -> None:
    result = CliRunner().invoke(bentpipe, ["model", "toy", "--check", "--models", str(toy)])
    assert result.exit_code == 2 and "--check goes with --scenarios" in result.output


def test_model_without_a_plan_is_wrong_usage(toy: Path) -> None:
    (toy / "toy" / "scenarios.json").unlink()
    result = call(toy)
    assert result.exit_code == 2 and "scenarios.json" in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a plan"),
        (json.dumps({**PLAN, "graphs": [{"name": "a", "run": "x", "constants": {}}]}), "'x'"),
        (json.dumps({key: PLAN[key] for key in PLAN if key != "timers"}), "'timers'"),
    ],
)
def test_wrong_plan_is_refused_in_one_sentence(toy: Path, text: str, words: str) -> None:
    (toy / "toy" / "scenarios.json").write_text(text, encoding="utf-8")
    with pytest.raises(ToolProblem, match=words) as refused:
        load_plan(load_manifest(toy / "toy"))
    assert "\n" not in str(refused.value)
