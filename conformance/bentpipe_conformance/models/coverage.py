"""Which models, properties and mutants stand behind a requirement."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_conformance.models.manifest import Manifest, load_models, model_root
from bentpipe_conformance.models.tool import ToolProblem
from bentpipe_conformance.models.verification import configured


@dataclass(frozen=True, slots=True)
class Evidence:
    """One property of a model that shows a requirement.

    Attributes:
        model: the model's name.
        property: the invariant or property.
        runs: the runs that check it.
        mutants: the runs that must break it.
    """

    model: str
    property: str
    runs: tuple[str, ...]
    mutants: tuple[str, ...]


def evidence_for(identifier: str) -> list[Evidence]:
    """What the models show of the requirement ``identifier``; nothing when there are no models."""
    try:
        models = load_models(model_root())
    except ToolProblem:
        return []
    return [
        _evidence(manifest, name)
        for manifest in models.values()
        for name, requirements in manifest.requirements.items()
        if identifier in requirements
    ]


def _evidence(manifest: Manifest, name: str) -> Evidence:
    checking = []
    for run in manifest.runs:
        if run.kind in ("check", "liveness"):
            config = configured(manifest, run)
            if name in (*config.invariants, *config.properties):
                checking.append(run.name)
    mutants = [run.name for run in manifest.runs if run.violates == name]
    return Evidence(manifest.name, name, tuple(checking), tuple(mutants))
