"""What a small model says of an edit, up to the first that breaks."""

from __future__ import annotations

import json
from pathlib import Path

from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.configuration import Configuration
from bentpipe_conformance.models.manifest import load_manifest
from bentpipe_conformance.models.messages import Outcome
from bentpipe_conformance.models.verification import violated_check
from click.testing import CliRunner, Result


def ask(models: Path, *arguments: str) -> Result:
    return CliRunner().invoke(bentpipe, ["model", "toy", "--models", str(models), *arguments])


def edit(models: Path, before: str, after: str) -> None:
    path = models / "toy" / "Toy.tla"
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_first_that_breaks_is_told_with_its_ladder_and_what_must_hold(toy_models: Path) -> None:
    edit(toy_models, "MayCount == count < Limit", "MayCount == TRUE")
    result = ask(toy_models, "--first")
    assert result.exit_code == 1
    assert "toy safety: Within is violated." in result.stdout
    assert "must hold of the last step or state:\nWithin == " in result.stdout
    assert " runs" in result.stdout.splitlines()[-1]


def test_answer_with_a_long_ladder_is_a_screen_and_says_where_all_of_it_is(
    toy_models: Path,
) -> None:
    edit(toy_models, "MayCount == count < Limit", "MayCount == TRUE")
    config = toy_models / "toy" / "toy.cfg"
    config.write_text(config.read_text("utf-8").replace("Limit = 3", "Limit = 40"), "utf-8")
    result = ask(toy_models, "--first", "--only", "safety")
    lines = result.stdout.splitlines()
    assert result.exit_code == 1 and len(lines) <= 40
    assert "     start, Count x18" in lines and any("42  Count" in line for line in lines)
    assert "every step: bentpipe model toy --only safety" in lines


def test_first_that_breaks_as_json_names_steps(toy_models: Path) -> None:
    edit(toy_models, "MayCount == count < Limit", "MayCount == TRUE")
    told = json.loads(ask(toy_models, "--first", "--json").stdout)
    assert (told["broken"]["run"], told["broken"]["property"]) == ("safety", "Within")
    assert told["broken"]["steps"][1:] == ["Count"] * (len(told["broken"]["steps"]) - 1)


def test_temporal_properties_that_tlc_does_not_tell_apart_are_asked_one_by_one(
    toy_models: Path,
) -> None:
    folder = toy_models / "toy"
    path = folder / "Toy.tla"
    text = path.read_text(encoding="utf-8")
    more = "Always == []<>(count <= Limit)\nFills == <>(count = Limit + 1)\n===="
    path.write_text(text.replace("====\n", more + "\n"), encoding="utf-8")
    (folder / "toy.cfg").write_text(
        "SPECIFICATION Spec\nCONSTANTS Limit = 3\nPROPERTIES Always Fills\nCHECK_DEADLOCK FALSE\n",
        encoding="utf-8",
    )
    told = json.loads(ask(toy_models, "--first", "--json").stdout)
    assert (told["broken"]["run"], told["broken"]["property"]) == ("safety", "Fills")


def test_time_that_is_up_leaves_a_partial_answer(toy_models: Path) -> None:
    path = toy_models / "toy" / "toy.cfg"
    text = path.read_text(encoding="utf-8").replace("= 3", "= 60000")
    path.write_text(text, encoding="utf-8")
    told = ask(toy_models, "--within", "2", "--json")
    assert json.loads(told.stdout)["left"]
    assert told.exit_code == 3


def test_edits_of_a_file_are_each_noticed_or_not(toy_models: Path, tmp_path: Path) -> None:
    path = tmp_path / "edits.json"
    edits = [
        {"model": "toy", "about": "no limit", "before": "MayCount == count < Limit",
         "after": "MayCount == TRUE"},
        {"model": "toy", "about": "a louder noise", "before": "ghost + 1", "after": "ghost + 3"},
        {"model": "toy", "about": "nowhere", "before": "nothing like this", "after": ""},
    ]  # fmt: skip
    path.write_text(json.dumps(edits), encoding="utf-8")
    result = ask(toy_models, "--edits", str(path))
    first, second, third, last = result.stdout.splitlines()
    assert first == "toy: no limit: Within in safety"
    assert second == "toy: a louder noise: NOT NOTICED"
    assert "0 places instead of one" in third
    assert last == "1 of 2 edits noticed" and result.exit_code == 1


def test_property_that_tlc_tells_by_its_place_is_named(toy_models: Path) -> None:
    manifest = load_manifest(toy_models / "toy")
    config = Configuration("Spec", {}, ("Within",), ("Rises", "Other"), False)
    lines = (manifest.folder / "Toy.tla").read_text(encoding="utf-8").splitlines()
    line = next(at for at, text in enumerate(lines, 1) if text.startswith("Rises"))
    place = f"line {line}, col 10 to line {line}, col 36 of module Toy"
    outcome = Outcome(toy_models, violated=f"Action property {place} is violated.")
    assert violated_check(config, outcome, manifest.folder) == "Rises"
