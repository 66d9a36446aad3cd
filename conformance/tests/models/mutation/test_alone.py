"""Named mutants of a small model: who notices them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.manifest import load_models, model_root
from click.testing import CliRunner, Result


def with_mutant(models: Path, edit: dict[str, str], violates: str, **more: object) -> Result:
    path = models / "toy" / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8")) | more
    data["runs"].append(
        {"name": "typed", "kind": "mutant", "module": "Toy.tla", "config": "toy.cfg",
         "edit": edit, "violates": violates}
    )  # fmt: skip
    path.write_text(json.dumps(data), encoding="utf-8")
    given = ["model", "toy", "--alone", "--models", str(models)]
    return CliRunner().invoke(bentpipe, given)


def test_mutant_that_one_property_notices_is_its_own(toy_models: Path) -> None:
    result = with_mutant(
        toy_models, {"MayCount == count < Limit": "MayCount == count <= Limit"}, "Within"
    )
    assert result.exit_code == 0, result.output
    assert "toy: 1 of 1 properties alone notice a mutant" in result.stdout


def test_mutant_that_another_property_notices_is_told(toy_models: Path) -> None:
    result = with_mutant(toy_models, {"count' = count + 1": "count' = count - 1"}, "Low")
    assert result.exit_code == 1
    assert "toy Low: typed: Rises notices it, too" in result.stdout


def test_property_with_a_reason_need_not_be_alone(toy_models: Path) -> None:
    edit = {"count' = count + 1": "count' = count - 1"}
    result = with_mutant(toy_models, edit, "Low", accompanied={"Low": "Rises says more"})
    assert result.exit_code == 0, result.output
    told = "toy: 0 of 1 properties alone notice a mutant, 1 have a reason not to"
    assert told in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", load_models(model_root()))
def test_every_property_alone_notices_a_mutant_or_says_why_not(name: str) -> None:
    result = CliRunner().invoke(bentpipe, ["model", name, "--alone", "--json"])
    rows = json.loads(result.stdout)
    never = {row["violates"] for row in rows} - {row["violates"] for row in rows if row["alone"]}
    assert never == set(load_models(model_root())[name].accompanied)
