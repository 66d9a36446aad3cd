"""Mutants of a small model before the model checker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.manifest import Kind, Manifest, Run
from bentpipe_conformance.models.mutation.trial import runs_of
from click.testing import CliRunner, Result


def mutate(models: Path, *arguments: str) -> Result:
    given = ["model", "toy", "--mutate", "--models", str(models), "--workers", "2", *arguments]
    return CliRunner().invoke(bentpipe, given)


def rows(result: Result) -> dict[str, Any]:
    (outcome,) = json.loads(result.stdout)
    return outcome  # type: ignore[no-any-return]


def test_mutants_are_killed_by_the_property_that_notices(toy_models: Path) -> None:
    outcome = rows(mutate(toy_models, "--json", "--only", "toy:MayCount:*"))
    (killed,) = outcome["kills"]
    assert killed["kills"] == [{"run": "safety", "by": "Within", "how": "violated"}]
    assert (outcome["mutants"], outcome["killed"], outcome["survived"]) == (1, 1, 0)
    assert outcome["score"] == 1.0


def test_of_the_model_itself_only_runs_that_judge_a_mutant_are_made(
    toy_models: Path, tmp_path: Path
) -> None:
    mutate(toy_models, "--out", str(tmp_path), "--only", "toy:MayCount:*")
    data = json.loads((tmp_path / "toy" / "mutation.json").read_text(encoding="utf-8"))
    itself = next(trial for trial in data["trials"] if trial["id"] == "toy:itself")
    assert list(itself["seconds"]) == ["safety"]


def test_cheap_runs_judge_a_mutant_first() -> None:
    def run(name: str, kind: Kind, total: int | None, seconds: float) -> Run:
        return Run(name, kind, "Toy.tla", "toy.cfg", total=total, seconds=seconds)

    runs = (
        run("large", "check", 90_000, 9.0), run("lively", "liveness", 500, 4.0),
        run("named", "mutant", None, 0.1), run("reached", "reach", None, 1.0),
        run("small", "check", 800, 2.0), run("unmeasured", "check", None, 0.0),
    )  # fmt: skip
    manifest = Manifest(Path("toy"), "", {}, (), {}, runs)
    judging = [item.name for item in runs_of(manifest)]
    assert judging == ["small", "reached", "unmeasured", "lively", "large"]


def test_whole_lists_every_property_and_run(toy_models: Path) -> None:
    # A mutant that counts down without end would take what the checker allows.
    source = toy_models / "toy" / "Toy.tla"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("[][Next]_vars", "[][Next /\\ count > -9]_vars"))
    arguments = ("--json", "--whole", "--only", "toy:Count:plus-minus:*")
    (killed,) = rows(mutate(toy_models, *arguments))["kills"]
    noticed = {(kill["run"], kill["by"], kill["how"]) for kill in killed["kills"]}
    assert noticed == {
        ("safety", "Low", "violated"), ("safety", "Rises", "violated"),
        ("reach-full", "NeverFull", "unreachable"),
    }  # fmt: skip


def test_unreachable_state_kills(toy_models: Path) -> None:
    outcome = rows(mutate(toy_models, "--json", "--only", "toy:Next:skip-branch:*"))
    assert [row["kills"][0]["how"] for row in outcome["kills"]] == ["unreachable"]
    (survivor,) = outcome["survivors"]
    assert survivor["after"] == "Next == Count \\/ FALSE"


def explain(models: Path, line: str) -> None:
    outcome = rows(mutate(models, "--json", "--only", "toy:Next:skip-branch:*"))
    (survivor,) = outcome["survivors"]
    text = f'[[explained]]\nids = ["{survivor["id"]}"]\nline = \'{line}\'\nclass = "harmless"\n' \
           'reason = "Nobody needs to forget."\n'  # fmt: skip
    (models / "toy" / "explained.toml").write_text(text, encoding="utf-8")


def test_explained_survivor_does_not_count(toy_models: Path) -> None:
    explain(toy_models, "Next == Count \\/ Forget")
    result = mutate(toy_models, "--json", "--only", "toy:Next:skip-branch:*")
    outcome = rows(result)
    assert (outcome["survived"], outcome["explained"], outcome["score"]) == (0, 1, 1.0)
    assert result.exit_code == 0


def test_explanation_of_a_line_that_has_changed_fails(toy_models: Path) -> None:
    explain(toy_models, "Next == Count")
    result = mutate(toy_models, "--json", "--only", "toy:Next:skip-branch:*")
    assert result.exit_code == 1
    assert "the line has changed" in rows(result)["problems"][0]


def test_rerun_goes_on_from_what_is_kept(toy_models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    mutate(toy_models, "--out", str(out), "--sample", "2")
    stored = out / "toy" / "mutation.json"
    data = json.loads(stored.read_text(encoding="utf-8"))
    assert len(data["trials"]) == 3  # the model itself is one
    data["trials"][1]["result"] = "stillborn"
    stored.write_text(json.dumps(data), encoding="utf-8")
    outcome = rows(mutate(toy_models, "--out", str(out), "--sample", "2", "--json"))
    assert outcome["stillborn"] == 1


def test_model_that_breaks_its_properties_itself_is_not_mutated(toy_models: Path) -> None:
    path = toy_models / "toy" / "toy.cfg"
    path.write_text(path.read_text(encoding="utf-8") + "INVARIANT NeverFull\n", encoding="utf-8")
    result = mutate(toy_models)
    assert result.exit_code == 3
    assert "toy itself is not as its manifest says (NeverFull in safety)" in result.stderr


def test_pattern_that_fits_nothing_is_refused(toy_models: Path) -> None:
    assert mutate(toy_models, "--only", "nothing").exit_code == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_keeps_what_is_known_and_ends_every_process(
    toy_models: Path, tmp_path: Path, number: signal.Signals
) -> None:
    path = toy_models / "toy" / "toy.cfg"
    path.write_text(path.read_text(encoding="utf-8").replace("= 3", "= 60000"), encoding="utf-8")
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    place = tmp_path / "scratch"
    place.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", f"{heed}; from bentpipe_conformance.cli.main import main; main()",
         "model", "toy", "--mutate", "--models", str(toy_models), "--workers", "2",
         "--out", str(tmp_path / "out"), "--json"],
        env={**os.environ, "TMPDIR": str(place)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    limit = time.monotonic() + 60
    while not checkers(place):
        assert time.monotonic() < limit, "no model is checked"
        time.sleep(0.1)
    process.send_signal(number)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert json.loads(told)[0]["partial"] is True
    assert (tmp_path / "out" / "toy" / "mutation.json").is_file()
    assert checkers(place) == [] and list(place.iterdir()) == []


MAINS = {"tlc2.TLC", "TlcServer"}
"""Classes that a process of the model checker starts with: for one run, and for many."""


def checkers(place: Path) -> list[str]:
    """Processes of the model checker that work in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if MAINS & set(words) and any(str(place) in word for word in words):
            found.append(path.parent.name)
    return found


def with_edit(models: Path, edit: dict[str, str]) -> Result:
    path = models / "toy" / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["runs"].append(
        {"name": "typed", "kind": "mutant", "module": "Toy.tla", "config": "toy.cfg",
         "edit": edit, "violates": "Within"}
    )  # fmt: skip
    path.write_text(json.dumps(data), encoding="utf-8")
    return CliRunner().invoke(
        bentpipe, ["model", "toy", "--only", "typed", "--models", str(models)]
    )


def test_named_mutant_may_be_typed_into_the_specification(toy_models: Path) -> None:
    before = (toy_models / "toy" / "Toy.tla").read_text(encoding="utf-8")
    result = with_edit(toy_models, {"MayCount == count < Limit": "MayCount == TRUE"})
    assert result.exit_code == 0, result.output
    assert (toy_models / "toy" / "Toy.tla").read_text(encoding="utf-8") == before


def test_edit_that_no_longer_fits_is_told_in_one_sentence(toy_models: Path) -> None:
    result = with_edit(toy_models, {"count": "counts"})
    assert result.exit_code == 3
    assert "instead of one; correct the edit in the manifest" in result.output


def with_actions(models: Path, actions: list[str]) -> Result:
    path = models / "toy" / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["runs"][0] |= {"actions": actions, "distinct": 7, "total": 10, "depth": 5}
    path.write_text(json.dumps(data), encoding="utf-8")
    given = ["model", "toy", "--only", "safety", "--coverage", "--update-manifest"]
    return CliRunner().invoke(bentpipe, [*given, "--models", str(models)])


def test_actions_of_a_run_are_recorded(toy_models: Path) -> None:
    assert with_actions(toy_models, []).exit_code == 0
    data = json.loads((toy_models / "toy" / "manifest.json").read_text(encoding="utf-8"))
    assert data["runs"][0]["actions"] == ["Count", "Forget"]


def test_action_that_no_longer_happens_fails_even_when_figures_are_recorded(
    toy_models: Path,
) -> None:
    for _ in range(2):
        result = with_actions(toy_models, ["Count", "Forget", "Vanish"])
        assert result.exit_code == 1
        assert "Vanish no longer happens in this run." in result.output
