"""Bad input and the real model checker: a sentence, the log kept, status 3, nothing recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.manifest import format_manifest, model_root
from click.testing import CliRunner

MODULE = """---- MODULE M ----
EXTENDS Naturals, Sequences
CONSTANT N
VARIABLE x
Init == x = 0
Next == x' = IF x < N THEN x + 1 ELSE 0
Spec == Init /\\ [][Next]_x
Inv == x <= N
Endless == x' = x + 1
EndlessSpec == Init /\\ [][Endless]_x
HugeSpec == x = <<0>> /\\ [][x' = x \\o x]_x
====
"""
CONFIG = "SPECIFICATION Spec\nCONSTANT N = 3\nINVARIANT Inv\n"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tla" / "toy"
    folder.mkdir(parents=True)
    (folder.parent / "pom.xml").write_bytes((model_root() / "pom.xml").read_bytes())
    (folder / "M.tla").write_text(MODULE, encoding="utf-8")
    (folder / "M.cfg").write_text(CONFIG, encoding="utf-8")
    data = {"title": "t", "ladder": {}, "invariants": ["Inv"], "properties": {"Inv": []},
            "runs": [{"name": "safety", "kind": "check", "module": "M.tla", "config": "M.cfg"}],
            }  # fmt: skip
    (folder / "manifest.json").write_text(format_manifest(data), encoding="utf-8")
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    return folder.parent


def problem(models: Path, *arguments: str) -> str:
    """The sentence, after looking at everything around it."""
    before = (models / "toy" / "manifest.json").read_bytes()
    call = ["model", "toy", "--models", str(models), "--update-manifest", *arguments]
    result = CliRunner().invoke(bentpipe, call)
    assert result.exit_code == 3, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert (models / "toy" / "manifest.json").read_bytes() == before
    assert [path.name for path in (models / "toy").iterdir() if path.name.startswith(".")] == []
    (log,) = (models.parent / "scratch").iterdir()
    (sentence,) = [line for line in result.output.splitlines() if str(log) in line]
    assert log.stat().st_size > 0
    return sentence


def test_model_in_order_checked(models: Path) -> None:
    call = ["model", "toy", "--models", str(models), "--update-manifest"]
    result = CliRunner().invoke(bentpipe, call)
    assert result.exit_code == 0, result.output
    assert '"distinct": 4' in (models / "toy" / "manifest.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("M.cfg", "INVARIANT Inv", "INVARIANT Nope", "The invariant Nope specified in M.cfg"),
        ("M.cfg", "INVARIANT Inv", "PROPERTY Nope", "The property Nope specified in M.cfg"),
        ("M.cfg", "CONSTANT N = 3", "", "parameter N is not assigned a value by M.cfg"),
        ("M.cfg", "N = 3", 'N = "a"', "should be an integer"),
        ("M.tla", "Inv ==", "Inv = =", 'M.tla: Was expecting "'),
        ("M.tla", "x <= N", "y <= N", "Unknown operator: `y'"),
        ("M.tla", "Naturals, Sequences", "Naturals, Sequences, Nope", "Nope.tla"),
        ("M.tla", "x + 1", "x[1]", "x"),
    ],
)
def test_broken_file_explained(models: Path, file: str, old: str, new: str, says: str) -> None:
    path = models / "toy" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    sentence = problem(models)
    assert sentence.startswith("toy safety: M could not be checked: ") and says in sentence
    assert "errors" not in sentence.lower() and "; correct that and run it again. Log: " in sentence


def test_module_that_every_run_needs_is_told_and_logged_once(models: Path) -> None:
    path = models / "toy" / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["runs"] += [{**data["runs"][0], "name": name} for name in ("second", "third")]
    path.write_text(format_manifest(data), encoding="utf-8")
    (models / "toy" / "N.tla").write_text("---- MODULE N ----\nA = = 1\n====\n", encoding="utf-8")
    module = models / "toy" / "M.tla"
    text = module.read_text(encoding="utf-8").replace("Sequences", "Sequences, N")
    module.write_text(text, encoding="utf-8")
    sentence = problem(models)
    assert sentence.startswith("toy safety and 2 more: M could not be checked: N.tla: Was expect")


def test_designer_is_not_told_that_nothing_breaks_where_nothing_ran(models: Path) -> None:
    (models / "toy" / "M.cfg").write_text("SPECIFICATION Spec\nINVARIANT Inv\n", encoding="utf-8")
    result = CliRunner().invoke(bentpipe, ["model", "toy", "--models", str(models), "--first"])
    assert result.exit_code == 3
    assert "parameter N is not assigned a value by M.cfg; correct that" in result.output
    assert "No run was finished, so nothing is known." in result.output


def test_endless_model_stopped_in_time(models: Path) -> None:
    config = models / "toy" / "M.cfg"
    config.write_text("SPECIFICATION EndlessSpec\nCONSTANT N = 3\n", encoding="utf-8")
    sentence = problem(models, "--timeout", "3")
    assert "did not finish within 3 s" in sentence and "--timeout" in sentence


def test_jar_without_the_tools_refused(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = models / "other.jar"
    other.write_bytes(b"")
    monkeypatch.setenv("TLA2TOOLS_JAR", str(other))
    assert f"{other} holds no TLA+ tools; correct or unset TLA2TOOLS_JAR" in problem(models)


def test_memory_too_small_explained(models: Path) -> None:
    config = models / "toy" / "M.cfg"
    config.write_text("SPECIFICATION HugeSpec\nCONSTANT N = 3\n", encoding="utf-8")
    sentence = problem(models, "--memory", "64")
    assert "ran out of memory at 64 MiB; allow more with --memory" in sentence
