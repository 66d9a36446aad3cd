"""What a change of a model's rules affects: steps, properties, requirements, cases, scenarios.

The specification as it is now is compared with a revision of the repository, definition by
definition. What a changed definition is watched by is found in three ways: a property needs it; a
named mutant that breaks the property changes it; a small change of it has been noticed by the
property (:mod:`.mutation`), where results are at hand. Every other property that reads what the
changed steps assign may be affected, too.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bentpipe_spec.scenario import NoScenarios, load_scenarios

from bentpipe_conformance.models.definitions import (
    Text,
    definitions_of,
    dependents,
    needed,
    variables_of,
)
from bentpipe_conformance.models.manifest import Manifest, Run, shared_modules
from bentpipe_conformance.models.mutation.campaign import KILLS
from bentpipe_conformance.models.tool import ToolProblem
from bentpipe_conformance.models.traces import load_bindings


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change of one model affects.

    Attributes:
        model: its name.
        changed: the definitions that are not as they were, new and vanished ones included.
        steps: the actions that need one of them.
        watching: properties that watch a changed definition, and why.
        reading: other properties that read what the steps assign.
        requirements: those behind the watching properties.
        scenarios: stored counterexamples in which one of the steps is taken.
        covers: stored covers, all of which have to be made again; 0 where nothing has changed.
        events: events of recorded traces that the steps follow.
        mutants: named mutants that replace a changed definition or are typed into it.
    """

    model: str
    changed: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    watching: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reading: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    covers: int = 0
    events: tuple[str, ...] = ()
    mutants: tuple[str, ...] = ()


def impact_of(manifest: Manifest, root: Path, revision: str) -> Impact:
    """What has changed in a model since a revision, and what that affects.

    Raises:
        ToolProblem: the models are in no repository, or it does not know the revision.
    """
    paths = [*sorted(manifest.folder.glob("*.tla")), *sorted(shared_modules(root)[0].glob("*.tla"))]
    now = {path: path.read_text(encoding="utf-8") for path in paths}
    known = _merged(now.values())
    old = _merged(_then(paths, revision))
    names = {*known, *old}
    changed = {name for name in names if _code(known, name) != _code(old, name)}
    affected = dependents(changed, known)
    spec = definitions_of(now.get(manifest.folder / manifest.scope.module, ""))
    actions = _actions(manifest, spec)
    steps = [name for name in actions if name in affected]
    texts = [each[name].source for each in (known, old) for name in changed if name in each]
    return Impact(
        manifest.name, tuple(sorted(changed)), tuple(steps),
        **_properties(manifest, known, changed, steps, texts, "\n".join(now.values())),
        **_scenarios(manifest.name, affected, steps),
        events=_events(manifest.name, affected),
        mutants=tuple(_mutants(manifest, changed, texts)),
    )  # fmt: skip


def _merged(sources: Iterable[str]) -> dict[str, Text]:
    found: dict[str, Text] = {}
    for source in sources:
        found |= definitions_of(source)
    return found


def _code(known: Mapping[str, Text], name: str) -> str | None:
    return known[name].code if name in known else None


def _then(paths: Iterable[Path], revision: str) -> list[str]:
    """The modules' sources at a revision; those that it lacks are left out."""
    found = []
    for number, path in enumerate(paths):
        if number == 0:
            _git(path.parent, "the revision is not known; name a commit, a branch or a tag",
                 "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")  # fmt: skip
        told = _git(path.parent, "", "show", f"{revision}:./{path.name}")
        if told is not None:
            found.append(told)
    return found


def _git(folder: Path, problem: str, *arguments: str) -> str | None:
    """What git prints; None, or a problem where a sentence is given, if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True,
                              text=True, encoding="utf-8", check=False, timeout=60)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolProblem(f"git could not be run ({error}); --diff needs it.") from error
    if done.returncode == 0:
        return done.stdout
    if problem:
        if "not a git repository" in done.stderr:
            problem = "the models are in no git repository; name a checkout by --models"
        raise ToolProblem(f"{arguments[-1].partition('^')[0]}: {problem}.")
    return None


def _actions(manifest: Manifest, spec: Mapping[str, Text]) -> list[str]:
    """The steps of a specification: what its Next names, without what is the environment's."""
    steps = {name for name, item in spec.items() if item.assigned or "UNCHANGED" in item.names}
    todo: list[str] = [manifest.scope.roots[1]]
    found: list[str] = []
    seen: set[str] = set()
    while todo:
        name = todo.pop(0)
        for other in sorted(spec[name].names & spec.keys() - seen) if name in spec else ():
            seen.add(other)
            if other in steps:
                found.append(other)
            elif needed([other], spec) & steps:
                todo.append(other)
    return found


def _properties(
    manifest: Manifest, known: Mapping[str, Text], changed: set[str], steps: list[str],
    texts: Sequence[str], text: str,
) -> dict[str, Any]:  # fmt: skip
    watching: dict[str, list[str]] = {}
    for name in manifest.requirements:
        if name in changed or needed([name], known) & changed:
            watching.setdefault(name, []).append("needs it")
    for run in manifest.runs:
        if run.violates and run.kind == "mutant" and _is_of(run, changed, texts):
            watching.setdefault(run.violates, []).append(f"mutant {run.name}")
    for name, number in _noticed(manifest, changed).items():
        plural = "s" if number > 1 else ""
        watching.setdefault(name, []).append(f"noticed {number} small change{plural}")
    watching = {name: why for name, why in watching.items() if not name.startswith("Never")}
    moved = {item for name in needed(steps, known) for item in known[name].assigned}
    moved &= variables_of(text)
    reading = [
        name for name in manifest.requirements
        if name not in watching and not name.startswith("Never") and changed and steps
        and moved & {word for item in needed([name], known) for word in known[item].names}
    ]  # fmt: skip
    requirements = {ident for name in watching for ident in manifest.requirements.get(name, ())}
    return {
        "watching": {name: tuple(why) for name, why in watching.items()},
        "reading": tuple(reading), "requirements": tuple(sorted(requirements)),
    }  # fmt: skip


def _is_of(run: Run, changed: set[str], texts: Sequence[str]) -> bool:
    """Whether a named mutant replaces a changed definition or is typed into one."""
    return bool(changed & run.replaced.keys()) or any(
        before.strip() in source for before in run.edit for source in texts
    )


def _noticed(manifest: Manifest, changed: set[str]) -> dict[str, int]:
    """Properties by how many small changes of the changed definitions they have noticed."""
    path = manifest.folder / KILLS
    if not path.is_file():
        return {}
    found: dict[str, int] = {}
    for name, kills in json.loads(path.read_text(encoding="utf-8")).items():
        if name in changed:
            for by, number in kills.items():
                for each in by.split(" or "):
                    found[each] = found.get(each, 0) + number
    return found


def _scenarios(model: str, affected: frozenset[str], steps: list[str]) -> dict[str, Any]:
    if not steps:
        return {}
    try:
        stored = load_scenarios(model)
    except NoScenarios:
        return {}
    named = tuple(item.name for item in stored.named() if affected & set(item.steps))
    return {"scenarios": named, "covers": len(stored.covers())}


def _events(model: str, affected: frozenset[str]) -> tuple[str, ...]:
    for binding in load_bindings().values():
        if binding.module.folder == model:
            return tuple(
                name for name, form in binding.forms.items()
                if affected & {action.partition("(")[0] for action in form.actions}
            )  # fmt: skip
    return ()


def _mutants(manifest: Manifest, changed: set[str], texts: Sequence[str]) -> list[str]:
    return [
        run.name for run in manifest.runs
        if run.kind in ("mutant", "limit") and _is_of(run, changed, texts)
    ]  # fmt: skip
