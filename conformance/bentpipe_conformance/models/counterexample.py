"""Counterexamples as scenarios for the suites: which messages are lost, in order of sending."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from bentpipe_conformance.models.diagram import Ladder
from bentpipe_conformance.models.manifest import shared_modules
from bentpipe_conformance.models.verification import Result


def scenario(result: Result, drawn: Ladder, root: Path) -> dict[str, Any]:
    """What a suite needs to drive an implementation into the situation of a counterexample.

    Args:
        result: the run and what it violated.
        drawn: its counterexample.
        root: the folder of the models.

    Returns:
        ``name`` (model and run), ``violates``, ``requirements``, ``model_sha256`` of the
        specification's files, ``actions``, and per direction ``sent`` (messages in order) and
        ``drops`` (ordinals of the lost ones, counting from 1).
    """
    manifest, run = result.manifest, result.run
    directions = {}
    for name, rightwards in (("forward", True), ("back", False)):
        sent = [item for item in drawn.messages if item.rightwards is rightwards]
        directions[name] = {
            "sent": [item.text for item in sent],
            "drops": [at for at, item in enumerate(sent, start=1) if item.lost],
        }
    return {
        "name": f"{manifest.name}/{run.name}",
        "violates": run.violates,
        "requirements": list(manifest.requirements.get(run.violates, ())),
        "model_sha256": model_hash(manifest.folder, root, run.module),
        "actions": [step.action for step in drawn.steps[1:]],
        **directions,
    }


def model_hash(folder: Path, root: Path, module: str) -> str:
    """SHA-256 over the specifications and the module of a run, by name."""
    digest = hashlib.sha256()
    shared = (path for place in shared_modules(root) for path in sorted(place.glob("*.tla")))
    for path in (*shared, *sorted(folder.glob("*.tla")), folder / module):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
