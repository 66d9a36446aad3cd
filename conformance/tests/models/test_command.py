"""The command, with a stand-in for Java."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.manifest import load_manifest
from click.testing import CliRunner, Result

from .conftest import install

Toy = Callable[..., Path]

OK = (
    "@!@!@STARTMSG 2193:0 @!@!@\nNo error.\n@!@!@ENDMSG 2193 @!@!@\n"
    "@!@!@STARTMSG 2194:0 @!@!@\nThe depth is 2.\n@!@!@ENDMSG 2194 @!@!@\n"
    "@!@!@STARTMSG 2199:0 @!@!@\n4 states generated, 3 distinct states found, 0 states left on "
    "queue.\n@!@!@ENDMSG 2199 @!@!@\n"
)
VIOLATED = (
    "@!@!@STARTMSG 2110:1 @!@!@\nInvariant Inv is violated.\n@!@!@ENDMSG 2110 @!@!@\n"
    "@!@!@STARTMSG 2217:4 @!@!@\n1: <Initial predicate>\nx = 0\n@!@!@ENDMSG 2217 @!@!@\n"
    "@!@!@STARTMSG 2217:4 @!@!@\n2: <Step line 1>\nx = 1\n@!@!@ENDMSG 2217 @!@!@\n"
)


@pytest.fixture
def models(tmp_path: Path, toy_model: Callable[..., Path]) -> Path:
    runs = [
        {"name": "safety", "kind": "check", "distinct": 3, "total": 4, "depth": 2},
        {"name": "broken", "kind": "mutant", "violates": "Inv", "depth": 2},
    ]
    config = "SPECIFICATION Spec\nINVARIANT Inv\n"
    root = toy_model("toy-data", "", config, runs, ["SNR-REC-001"])
    answer(tmp_path, OK)
    return root


def answer(folder: Path, output: str, status: int = 0) -> None:
    (folder / "output").write_text(output, encoding="utf-8")
    install(folder, f"cat '{folder}/output'\nexit {status}")


def call(models: Path, *arguments: str) -> Result:
    return CliRunner().invoke(bentpipe, ["model", *arguments, "--models", str(models)])


def test_model_as_its_manifest_says_passes(models: Path) -> None:
    result = call(models, "toy", "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert row["run"] == "safety" and row["verdict"] == "as expected" and row["distinct"] == 3


def test_violation_fails_with_ladder_and_requirement(models: Path, tmp_path: Path) -> None:
    answer(tmp_path, VIOLATED, 12)
    out = tmp_path / "out"
    result = call(models, "toy-data", "--only", "safety", "--out", str(out))
    assert result.exit_code == 1
    assert "Inv is violated" in result.stdout and "x: 0 -> 1" in result.stdout
    assert "SNR-REC-001: " in result.stdout
    kept = out / "toy-data" / "safety"
    assert {"run.cfg", "tlc.log", "ladder.svg", "ladder.txt"} <= {p.name for p in kept.iterdir()}
    assert json.loads((out / "result.json").read_text())[0]["verdict"] == "violation"


def test_mutant_that_survives_fails(models: Path) -> None:
    result = call(models, "all", "--mutants", "--json")
    assert result.exit_code == 1
    assert [row["verdict"] for row in json.loads(result.stdout)] == ["as expected", "not caught"]


def test_mutant_caught_passes_and_leaves_a_scenario(models: Path, tmp_path: Path) -> None:
    answer(tmp_path, VIOLATED, 12)
    out = tmp_path / "out"
    assert call(models, "toy", "--only", "broken", "--out", str(out)).exit_code == 0
    (scenario,) = json.loads((out / "scenarios.json").read_text(encoding="utf-8"))
    assert scenario["name"] == "toy-data/broken" and scenario["actions"] == ["Step"]
    assert scenario["requirements"] == ["SNR-REC-001"] and len(scenario["model_sha256"]) == 64


def test_drift_fails_until_recorded(models: Path, tmp_path: Path) -> None:
    answer(tmp_path, OK.replace("3 distinct", "5 distinct"))
    assert call(models, "toy").exit_code == 1
    assert call(models, "toy", "--update-manifest").exit_code == 0
    assert load_manifest(models / "toy-data").runs[0].distinct == 5
    assert call(models, "toy").exit_code == 0


def test_tool_that_fails_is_a_problem_and_its_log_is_kept(models: Path, tmp_path: Path) -> None:
    answer(tmp_path, "", 7)
    result = call(models, "toy", "--json")
    assert result.exit_code == 3
    (row,) = json.loads(result.stdout)
    assert row["verdict"] == "problem" and "ended with status 7" in row["why"]
    kept = Path(row["why"].split("Log: ")[1])
    assert kept.is_file()
    kept.unlink()


def test_problem_leaves_the_manifest_alone(models: Path, tmp_path: Path) -> None:
    before = (models / "toy-data" / "manifest.json").read_text()
    answer(tmp_path, "", 7)
    assert call(models, "toy", "--update-manifest").exit_code == 3
    assert (models / "toy-data" / "manifest.json").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nothing",), "no model is called 'nothing'"),
        (("toy", "--tier", "nightly"), "no such run"),
        (("toy", "--only", "other"), "no such run as 'other'"),
        (("toy", "--workers", "0"), "--workers"),
    ],
)
def test_wrong_use_explained(models: Path, arguments: tuple[str, ...], says: str) -> None:
    result = call(models, *arguments)
    assert result.exit_code == 2 and says in result.output


def test_missing_jar_explained(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLA2TOOLS_JAR", "/nowhere.jar")
    result = call(models, "toy")
    assert result.exit_code == 3 and "TLA2TOOLS_JAR names /nowhere.jar" in result.output


def test_same_property_broken_twice_is_drawn_once(tmp_path: Path, toy_model: Toy) -> None:
    runs = [{"name": name, "kind": "check", "distinct": 3, "total": 4, "depth": 2}
            for name in ("one", "two")]  # fmt: skip
    root = toy_model("toy", "", "SPECIFICATION Spec\nINVARIANT Inv\n", runs, [])
    answer(tmp_path, VIOLATED, 12)
    result = call(root, "toy")
    assert result.exit_code == 1
    assert result.stdout.count("Inv is violated.") == 2 and result.stdout.count("x: 0 -> 1") == 1


def test_other_figures_are_muted_once_something_broke(tmp_path: Path, toy_model: Toy) -> None:
    runs = [{"name": "safety", "kind": "check", "distinct": 9, "total": 4, "depth": 2},
            {"name": "broken", "kind": "mutant", "violates": "Inv", "depth": 2}]  # fmt: skip
    root = toy_model("toy", "", "SPECIFICATION Spec\nINVARIANT Inv\n", runs, [])
    answer(tmp_path, OK)
    result = call(root, "toy", "--mutants")
    assert result.exit_code == 1
    assert "Inv should be violated" in result.stdout
    assert "the manifest says 9" not in result.stdout and "1 other runs" in result.stdout
