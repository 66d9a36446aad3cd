"""Whether what a property presupposes ever happens.

Every implication in a property is tried with a consequent that is false: where the antecedent
occurs, the property is then violated. If it is violated in no run that checks the property, the
implication says nothing at these bounds. The same goes for what "leads to" presupposes.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe_conformance.models.definitions import definitions_of
from bentpipe_conformance.models.manifest import Manifest, Run
from bentpipe_conformance.models.mutation.tree import read_module
from bentpipe_conformance.models.tool import Tool
from bentpipe_conformance.models.verification import Checker, configured, copied

_IMPLIES = frozenset({"=>", "~>"})


@dataclass(frozen=True, slots=True)
class Antecedent:
    """An implication of a property.

    Attributes:
        model: whose.
        property: in which it stands.
        file: the module that defines the property.
        text: the antecedent, on one line.
        line: where it begins.
        start, end: the characters of the consequent.
    """

    model: str
    property: str
    file: str
    text: str
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Whether an antecedent occurs, and in which run; empty where it does in none."""

    antecedent: Antecedent
    run: str
    problem: str = ""


def antecedents_of(tool: Tool, manifest: Manifest) -> list[Antecedent]:
    """The implications in a model's properties, in the order of the manifest.

    Raises:
        ToolProblem: a module cannot be parsed.
    """
    found: list[Antecedent] = []
    for path in sorted(manifest.folder.glob("*.tla")):
        known = definitions_of(path.read_text(encoding="utf-8"))
        wanted = [name for name in manifest.requirements
                  if name in known and not name.startswith("Never")]  # fmt: skip
        if not wanted:
            continue
        module = read_module(tool, path, manifest.libraries(tool.root, path.name))
        bodies = {item.name: item.body for item in module.definitions.values() if not item.local}
        for name in wanted:
            for node in bodies[name].walk() if name in bodies else ():
                if node.operator in _IMPLIES and len(node.children) == 2:
                    left, right = node.children
                    line = module.source.count("\n", 0, left.start) + 1
                    text = " ".join(module.text(left).split())
                    found.append(Antecedent(manifest.name, name, path.name, text, line,
                                            right.start, right.end))  # fmt: skip
    order = list(manifest.requirements)
    return sorted(found, key=lambda item: (order.index(item.property), item.line))


def runs_with(manifest: Manifest, name: str, tier: str = "pr") -> list[Run]:
    """The runs that check a property, small ones first."""
    runs = []
    for run in manifest.runs:
        if run.kind in ("check", "liveness") and run.tier == tier:
            config = configured(manifest, run)
            if name in (*config.invariants, *config.properties):
                runs.append(run)
    return sorted(runs, key=lambda run: run.total or run.seconds or 0)


def occurs(manifest: Manifest, item: Antecedent, checker: Checker) -> Occurrence:
    """Find a run in which an antecedent occurs."""
    problem = ""
    with tempfile.TemporaryDirectory(prefix="bentpipe-vacuity-") as scratch:
        twin = replace(manifest, folder=Path(scratch) / manifest.name)
        copied(manifest.folder, twin.folder)
        path = twin.folder / item.file
        source = path.read_text(encoding="utf-8")
        width = source.find("\n", item.start, item.end)
        gap = "" if width >= 0 else " " * max(0, item.end - item.start - len("FALSE"))
        text = source[: item.start] + "FALSE" + gap + source[item.end :]
        path.write_text(text, encoding="utf-8")
        for run in runs_with(manifest, item.property):
            result = checker.check(twin, replace(run, checks=(item.property,)))
            if result.violated:
                return Occurrence(item, run.name)
            if result.problem is not None:
                problem = f"{run.name}: {result.why}"
    return Occurrence(item, "", problem)
