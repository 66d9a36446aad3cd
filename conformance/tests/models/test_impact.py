"""What a change of a rule affects, told without running anything."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.benchmarks.designer import EDITS
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.definitions import definitions_of, dependents, variables_of
from bentpipe_conformance.models.manifest import load_models, model_root
from click.testing import CliRunner, Result

MODULE = """---- MODULE M ----
VARIABLES
    a,  \\* first
    b

Half(n) == n \\div 2     \\* rounded down
(* A comment that names Half. *)
Step ==
    /\\ a' = Half(a)
    /\\ b' = b
----
Other == b
====
"""

Edit = Callable[[str, str, str], None]
Ask = Callable[..., Result]


def test_definition_ends_where_the_next_begins_and_knows_no_comments() -> None:
    known = definitions_of(MODULE)
    assert list(known) == ["Half", "Step", "Other"]
    assert known["Half"].code == "Half(n) == n \\div 2"
    assert known["Step"].assigned == {"a", "b"}
    assert dependents({"Half"}, known) == {"Half", "Step"}
    assert variables_of(MODULE) == {"a", "b"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the models in a repository of their own."""
    root = tmp_path / "tla"
    shutil.copytree(model_root(), root, ignore=shutil.ignore_patterns("states"))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "models"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return root


def typed(root: Path, model: str, before: str, after: str) -> None:
    path = next((root / model).glob(f"{load_models(root)[model].scope.module}"))
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")


def asked(root: Path, model: str, *more: str) -> Result:
    given = ["model", model, "--diff", "HEAD", "--models", str(root), *more]
    return CliRunner().invoke(bentpipe, given)


def rows(root: Path, model: str) -> dict[str, Any]:
    (row,) = json.loads(asked(root, model, "--json").stdout)
    return row  # type: ignore[no-any-return]


def test_change_of_a_rule_names_steps_properties_requirements_cases_and_traces(
    checkout: Path,
) -> None:
    typed(checkout, "sack-newreno", "Max(flight \\div 2, 2)", "Max(flight \\div 2, 1)")
    row = rows(checkout, "sack-newreno")
    assert row["changed"] == ["Half"]
    assert set(row["steps"]) == {"ReceiveAck", "Timeout", "EarlyTimeout"}
    assert "EntryHalves" in row["watching"] and "a-third" in row["mutants"]
    assert "SNR-FR-009" in row["requirements"]
    assert any(case.startswith("snr/") for case in row["cases"])
    assert set(row["events"]) == {"ack", "timeout"}
    assert "no-gate" in row["scenarios"] and row["covers"] > 0


def test_change_of_a_comment_changes_no_rule(checkout: Path) -> None:
    typed(
        checkout, "rwbp-flow", "(* RWBP-FC-001: the source", "(* RWBP-FC-001, once more: the source"
    )
    result = asked(checkout, "rwbp-flow")
    assert result.stdout == "rwbp-flow: no rule has changed since HEAD\n"
    assert result.exit_code == 0


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.about)
def test_answer_fits_on_a_screen(checkout: Path, edit: Any) -> None:
    typed(checkout, edit.model, edit.before, edit.after)
    told = asked(checkout, edit.model).stdout.splitlines()
    assert told[0] == f"{edit.model}, since HEAD:"
    assert len(told) <= 24
    assert sum(1 + len(line) // 100 for line in told) <= 40


def test_unknown_revision_is_told_in_one_sentence(checkout: Path) -> None:
    given = ["model", "rwbp-flow", "--diff", "nowhere", "--models", str(checkout)]
    result = CliRunner().invoke(bentpipe, given)
    assert result.exit_code == 3
    assert "nowhere: the revision is not known; name a commit, a branch or a tag." in result.stderr


def test_models_outside_a_repository_are_told_in_one_sentence(tmp_path: Path) -> None:
    root = tmp_path / "tla"
    shutil.copytree(model_root(), root)
    result = asked(root, "rwbp-flow")
    assert result.exit_code == 3
    assert "in no git repository" in result.stderr
