"""Blind rounds of models: what is stored of them, and how one is held."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bentpipe_conformance.cli import model_designer
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.answer import Answer
from bentpipe_conformance.models.manifest import load_manifest, load_models, model_root
from bentpipe_conformance.models.rounds import load_round, record_round, rounds_of
from bentpipe_conformance.models.tool import ToolProblem
from click.testing import CliRunner, Result

HELD = [
    (manifest, number)
    for manifest in load_models(model_root()).values()
    for number in rounds_of(manifest)
]
EDITS = [
    {"model": "toy", "about": "no limit", "before": "MayCount == count < Limit",
     "after": "MayCount == TRUE"},
    {"model": "toy", "about": "a louder noise", "before": "ghost + 1", "after": "ghost + 3"},
]  # fmt: skip
ROWS = [{"property": "Within", "run": "safety", "problem": ""},
        {"property": "", "run": "", "problem": ""}]  # fmt: skip


def hold(models: Path, *arguments: str) -> Result:
    return CliRunner().invoke(bentpipe, ["model", "toy", "--models", str(models), *arguments])


@pytest.fixture
def rounds(toy_models: Path) -> Path:
    folder = toy_models / "toy" / "blind"
    folder.mkdir()
    (folder / "round_1.json").write_text(json.dumps(EDITS), encoding="utf-8")
    return toy_models


def test_every_model_has_held_a_round_and_no_miss_is_left_as_it_was() -> None:
    assert {manifest.name for manifest, _ in HELD} == set(load_models(model_root()))
    for manifest, number in HELD:
        for at, item in enumerate(load_round(manifest, number).reviews, 1):
            named = {*item.by.split(" or "), item.by.removesuffix(" (not reached)")}
            assert not item.caught or named & manifest.requirements.keys(), (manifest.name, at)
            assert item.caught or not item.counts or item.since, (manifest.name, number, at)


def test_first_run_is_recorded_and_no_second(rounds: Path) -> None:
    first = hold(rounds, "--round", "1", "--record")
    assert first.exit_code == 1 and first.stdout.endswith("1 of 2 edits noticed\n")
    found = load_round(load_manifest(rounds / "toy"), 1)
    assert [(item.caught, item.by) for item in found.reviews] == [(True, "Within"), (False, "")]
    assert (len(found.valid), found.caught) == (2, 1)
    second = hold(rounds, "--round", "1", "--record")
    assert second.exit_code == 2 and "only that one counts" in second.stderr


def test_round_whose_time_is_up_is_not_recorded(
    rounds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = load_manifest(rounds / "toy")
    unfinished = Answer([], [(manifest, run) for run in manifest.runs], 7.0)
    monkeypatch.setattr(model_designer, "ask", lambda *_: unfinished)
    result = hold(rounds, "--round", "1", "--record", "--timeout", "7")
    assert result.exit_code == 3 and "not judged within 7 s" in result.stdout
    assert "nothing is recorded of it; give each more time with --timeout" in result.stderr
    assert not load_round(manifest, 1).reviews


def test_edit_that_the_review_takes_out_does_not_count(rounds: Path) -> None:
    path = record_round(load_manifest(rounds / "toy"), 1, ROWS, "2026-01-01")
    text = path.read_text(encoding="utf-8")
    head, tail = text.split("[edit.2]")
    tail = tail.replace('"valid"', '"harmless"').replace('reason = ""', 'reason = "a ghost"')
    path.write_text(f"{head}[edit.2]{tail}", encoding="utf-8")
    found = load_round(load_manifest(rounds / "toy"), 1)
    assert (len(found.valid), found.caught) == (1, 1)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('valid = "valid"', 'valid = "wrong"', "not one of valid, unfit, equivalent"),
        ('valid = "valid"', 'valid = "harmless"', "harmless without a reason"),
        ("[edit.2]", "[edit.3]", "not those of the edits 1 to 2"),
        ('since = ""', 'later = ""', "later, which means nothing"),
        ("caught = true", "caught", "correct the review"),
    ],
)
def test_review_that_is_wrong_is_told_in_one_sentence(
    rounds: Path, before: str, after: str, says: str
) -> None:
    manifest = load_manifest(rounds / "toy")
    path = record_round(manifest, 1, ROWS, "2026-01-01")
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    with pytest.raises(ToolProblem, match=says):
        load_round(manifest, 1)


def test_round_that_nobody_wrote_says_where_it_belongs(toy_models: Path) -> None:
    result = hold(toy_models, "--round", "4")
    assert result.exit_code == 3
    assert "has no blind round 4; write one into" in result.stderr
    assert "round_4.json" in result.stderr


def test_record_without_a_round_is_refused(toy_models: Path) -> None:
    result = hold(toy_models, "--record")
    assert result.exit_code == 2 and "--record goes with --round" in result.stderr
