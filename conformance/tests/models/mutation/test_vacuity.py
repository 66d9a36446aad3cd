"""Antecedents that occur, and one that does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.manifest import load_models, model_root
from click.testing import CliRunner, Result


def with_property(models: Path, text: str, *, action: bool = False) -> Result:
    folder = models / "toy"
    path = folder / "Toy.tla"
    source = path.read_text(encoding="utf-8").replace("====\n", f"Presumes == {text}\n====\n")
    path.write_text(source, encoding="utf-8")
    config = folder / "toy.cfg"
    kind = "PROPERTY" if action else "INVARIANT"
    more = f"{kind} Presumes\n"
    config.write_text(config.read_text(encoding="utf-8") + more, encoding="utf-8")
    manifest = folder / "manifest.json"
    data: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
    data["properties"]["Presumes"] = []
    data["invariants"] += [] if action else ["Presumes"]
    manifest.write_text(json.dumps(data), encoding="utf-8")
    given = ["model", "toy", "--vacuity", "--models", str(models), "--json"]
    return CliRunner().invoke(bentpipe, given)


@pytest.mark.parametrize(
    ("text", "action"),
    [("told => count > 1", False), ("[][count' > count => ~told]_vars", True)],
)
def test_antecedent_that_occurs_names_a_run(toy_models: Path, text: str, action: bool) -> None:
    result = with_property(toy_models, text, action=action)
    assert result.exit_code == 0, result.output
    assert [row["run"] for row in json.loads(result.stdout)] == ["safety"]


def test_antecedent_that_never_occurs_fails(toy_models: Path) -> None:
    result = with_property(toy_models, "count > Limit => told")
    assert result.exit_code == 1
    (row,) = json.loads(result.stdout)
    assert (row["property"], row["antecedent"], row["run"]) == ("Presumes", "count > Limit", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", load_models(model_root()))
def test_every_antecedent_in_a_models_properties_occurs(name: str) -> None:
    result = CliRunner().invoke(bentpipe, ["model", name, "--vacuity", "--json"])
    never = [row for row in json.loads(result.stdout) if not row["run"]]
    assert never == []
