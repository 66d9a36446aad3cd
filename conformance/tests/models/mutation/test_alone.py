"""Named mutants of a small model: who notices them."""

from __future__ import annotations

import json
from pathlib import Path

from bentpipe_conformance.cli.main import bentpipe
from click.testing import CliRunner, Result


def with_mutant(models: Path, edit: dict[str, str], violates: str) -> Result:
    path = models / "toy" / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8"))
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
