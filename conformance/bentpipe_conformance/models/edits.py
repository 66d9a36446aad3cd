"""Edits of specifications as somebody would type them, and what the models say of each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe_conformance.models.answer import Answer, answer
from bentpipe_conformance.models.manifest import Manifest
from bentpipe_conformance.models.tool import Tool, ToolProblem
from bentpipe_conformance.models.verification import Checker, Limits, edited

KINDS = ("check", "liveness", "reach")
"""What an edit is asked with; named mutants break anyway."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What a designer types.

    Attributes:
        model: into which model's specification.
        about: what the rule says now.
        before: text that stands there once.
        after: instead.
    """

    model: str
    about: str
    before: str
    after: str


def read_edits(path: Path, models: Sequence[str]) -> list[Edit]:
    """The edits of a file: a JSON array of ``model``, ``about``, ``before`` and ``after``.

    Raises:
        ToolProblem: it is no such file, or an edit is of no known model.
    """
    try:
        edits = [Edit(**item) for item in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise ToolProblem(
            f"{path} is no file of edits ({error}); give a JSON array of objects with model, "
            "about, before and after."
        ) from error
    for edit in edits:
        if edit.model not in models:
            raise ToolProblem(
                f"{path}: {edit.about!r} is of {edit.model!r}; there are {', '.join(models)}."
            )
    return edits


def ask(tool: Tool, manifest: Manifest, edit: Edit, workers: int, seconds: float) -> Answer:
    """What the pr tier says of an edit, up to the first that breaks.

    Raises:
        ToolProblem: what is to be replaced does not stand in one place.
    """
    with tempfile.TemporaryDirectory(prefix="bentpipe-edit-") as scratch:
        twin = edited(manifest, {edit.before: edit.after}, Path(scratch))
        runs = [(twin, run) for run in twin.runs if run.tier == "pr" and run.kind in KINDS]
        checker = Checker(tool, Limits(seconds, 2048, 1, logs=False))
        return answer(checker, runs, workers, within=seconds)
