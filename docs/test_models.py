"""What the pages of the models show is of the models as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.manifest import Manifest, load_models, model_root
from bentpipe_conformance.models.mutation.campaign import explanations_of

DOCS = Path(__file__).parent
MODELS = load_models(model_root())


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Manifest:
    return MODELS[request.param]


def matrix_of(model: Manifest) -> dict[str, Any]:
    """What is published of a model's small changes."""
    path = DOCS / "models" / "mutation" / f"{model.name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_page_shows_bounds_and_small_changes(model: Manifest) -> None:
    page = (DOCS / "models" / f"{model.name}.rst").read_text(encoding="utf-8")
    assert f".. model-bounds:: {model.name} " in page
    assert f".. kill-matrix:: mutation/{model.name}.json" in page


def test_every_run_that_must_hold_has_figures_for_the_table(model: Manifest) -> None:
    held = [run for run in model.runs if run.kind in ("check", "liveness")]
    assert [run.name for run in held if not (run.simulate or run.distinct)] == []
    assert [run.name for run in held if run.seconds is None] == []


def test_published_matrix_names_what_there_is(model: Manifest) -> None:
    rows = matrix_of(model)["matrix"]
    properties = {name for row in rows for name in row["property"].split(" or ")}
    assert properties <= set(model.requirements)
    assert {name for row in rows for name in row["runs"]} <= {run.name for run in model.runs}


def test_published_sums_agree(model: Manifest) -> None:
    found = matrix_of(model)
    told = {name: found[name] for name in ("killed", "survived", "explained")}
    assert sum(told.values()) == found["mutants"] <= found["all"]
    assert sum(row["killed"] for row in found["matrix"]) == found["killed"]
    assert len(found["survivors"]) == found["survived"]
    assert found["score"] == round(found["killed"] / (found["mutants"] - found["explained"]), 4)


def test_published_score_is_what_the_models_are_held_to(model: Manifest) -> None:
    assert matrix_of(model)["score"] >= 0.9


def test_published_explanations_are_those_of_the_model(model: Manifest) -> None:
    known = explanations_of(model)
    for row in matrix_of(model)["explanations"]:
        item = known[row["id"]]
        assert (row["class"], row["reason"]) == (item.kind, item.reason)


def test_line_that_is_explained_stands_in_the_specification(model: Manifest) -> None:
    text = (model.folder / model.scope.module).read_text(encoding="utf-8")
    lines = {line.strip() for line in text.splitlines()}
    assert {item.line.strip() for item in explanations_of(model).values()} <= lines
