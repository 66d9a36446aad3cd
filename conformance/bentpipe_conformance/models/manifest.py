"""Manifests: what each run of a model must show, and how large it is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from bentpipe_conformance.models.tool import ToolProblem

Kind = Literal["check", "liveness", "reach", "mutant", "limit"]
Tier = Literal["pr", "nightly"]

FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a model and what it must show.

    Attributes:
        name: unique within the model.
        kind: ``check`` (safety), ``liveness``, ``reach`` (a state that must be reachable),
            ``mutant`` (a broken rule that must be caught) or ``limit`` (a known limitation of the
            protocol that must show).
        module: the root module's file, relative to the model's folder.
        config: the configuration file to start from, relative to the model's folder.
        tier: ``pr`` or ``nightly``.
        constants: constants that differ from the configuration's.
        replaced: definitions to replace, by name; ``replace`` in the file.
        edit: what is typed into the specification instead of what, each in one place.
        checks: the only invariants and properties to check; empty for those of the configuration.
        violates: the invariant or property that must be violated; empty when none may be.
        about: one sentence on the run.
        distinct: distinct states of a run that ends; None when not recorded.
        total: generated states of a run that ends; None when not recorded.
        depth: depth of the search, or of the counterexample.
        seconds: wall clock when it was recorded.
        actions: those that are taken in the run, as far as recorded; none may be missed.
        simulate: how many ``behaviours`` are drawn at random, and how many states each has at most
            (``depth``); empty for a search of all states.
    """

    name: str
    kind: Kind
    module: str
    config: str
    tier: Tier = "pr"
    constants: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)
    edit: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    violates: str = ""
    about: str = ""
    distinct: int | None = None
    total: int | None = None
    depth: int | None = None
    seconds: float | None = None
    actions: tuple[str, ...] = ()
    simulate: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a model small changes are tried on (``mutation`` in the file).

    Attributes:
        module: the specification's file.
        roots: definitions of the initial states and of all steps, with all that they need.
        environment: definitions that are no rule of the protocol, such as channels, and why.
        ghosts: variables that are no state of the protocol, budgets included.
    """

    module: str = ""
    roots: tuple[str, str] = ("Init", "Next")
    environment: Mapping[str, str] = field(default_factory=dict)
    ghosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """All runs of one model.

    Attributes:
        folder: where the model is; its name is the model's.
        title: one line on the model.
        ladder: which variables a counterexample's ladder diagram shows where.
        invariants: names of the state predicates among all checks.
        requirements: requirement IDs by invariant or property.
        runs: in file order.
        scope: what of the model is mutated.
        accompanied: of the properties through which alone no named mutant dies, why they stay.
    """

    folder: Path
    title: str
    ladder: Mapping[str, Any]
    invariants: tuple[str, ...]
    requirements: Mapping[str, tuple[str, ...]]
    runs: tuple[Run, ...]
    scope: Scope = field(default_factory=lambda: Scope())
    accompanied: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.folder.name

    def libraries(self, root: Path, module: str) -> tuple[Path, ...]:
        """Where TLC looks for the modules that a module of the model extends."""
        return (*shared_modules(root), self.folder, (self.folder / module).parent)


def shared_modules(root: Path) -> tuple[Path, Path]:
    """Where the modules are that several models share."""
    return root / "lib", root


def load_manifest(folder: Path) -> Manifest:
    """Read the manifest of the model in ``folder``.

    Raises:
        ToolProblem: it is missing, malformed, or contradicts itself.
    """
    path = folder / FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        runs = tuple(_run(item, path) for item in data["runs"])
        manifest = Manifest(
            folder=folder,
            title=data["title"],
            ladder=data["ladder"],
            invariants=tuple(data["invariants"]),
            requirements={key: tuple(value) for key, value in data["properties"].items()},
            runs=runs,
            scope=_scope(data.get("mutation", {})),
            accompanied=dict(data.get("accompanied", {})),
        )
    except OSError as error:
        raise ToolProblem(f"{path} cannot be read: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise ToolProblem(f"{path} is not JSON: {error}.") from error
    except KeyError as error:
        raise ToolProblem(f"{path} is not a manifest: {error} is missing.") from error
    except (TypeError, AttributeError) as error:
        raise ToolProblem(f"{path} is not a manifest: something is misplaced ({error}).") from error
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise ToolProblem(f"{path}: two runs are called {name!r}; rename one.")
    for run in runs:
        for check in (*run.checks, run.violates):
            if check and check not in manifest.requirements:
                raise ToolProblem(
                    f"{path}: run {run.name!r} names {check!r}, which 'properties' does not list."
                )
    return manifest


def _scope(item: Mapping[str, Any]) -> Scope:
    initial, step = item.get("roots", ("Init", "Next"))
    return Scope(item.get("module", ""), (initial, step), dict(item.get("environment", {})),
                 tuple(item.get("ghosts", ())))  # fmt: skip


def _run(item: Mapping[str, Any], path: Path) -> Run:
    name, kind, tier = item["name"], item["kind"], item.get("tier", "pr")
    data = {"module": item["module"], "config": item["config"]}
    known = {"replace", "breaks", *(each.name for each in fields(Run))} - {"replaced"}
    if unknown := set(item) - known:
        raise ToolProblem(f"{path}: run {name!r} has the unknown key {sorted(unknown)[0]!r}.")
    if kind not in get_args(Kind) or tier not in get_args(Tier):
        raise ToolProblem(f"{path}: run {name!r} has the kind {kind!r} and tier {tier!r}.")
    for key in ("distinct", "total", "depth", "seconds"):
        figure = item.get(key)
        if figure is not None and (isinstance(figure, bool) or not isinstance(figure, int | float)):
            raise ToolProblem(f"{path}: run {name!r}: {key} is {figure!r} instead of a number.")
    if set(simulate := item.get("simulate", {})) not in (set(), {"behaviours", "depth"}):
        raise ToolProblem(
            f"{path}: run {name!r}: simulate is {simulate!r}; give behaviours and depth."
        )
    for key in ("constants", "replace", "edit"):
        if not isinstance(item.get(key, {}), dict):
            raise ToolProblem(f"{path}: run {name!r}: {key} is not an object.")
    violates = item.get("violates", "")
    if bool(violates) == (kind in ("check", "liveness")):
        raise ToolProblem(
            f"{path}: run {name!r}: exactly reach, mutant and limit runs name what they violate."
        )
    data |= {key: value for key, value in item.items() if key not in ("replace", "breaks")}
    data["checks"] = tuple(item.get("checks", (violates,) if violates else ()))
    data["actions"] = tuple(item.get("actions", ()))
    return Run(**data, replaced=item.get("replace", {}))


def record(manifest: Manifest, figures: Mapping[str, Mapping[str, Any]]) -> None:
    """Write new figures of runs into the manifest, all or nothing.

    Args:
        manifest: the manifest as loaded.
        figures: by run name, values of ``distinct``, ``total``, ``depth``, ``seconds`` and
            ``actions``.
    """
    path = manifest.folder / FILE
    data = json.loads(path.read_text(encoding="utf-8"))
    known = {each.name for each in fields(Run)}
    for item in data["runs"]:
        new = figures.get(item["name"], {})
        item.update({key: value for key, value in new.items() if key in known})
    draft = path.with_name(f".{FILE}.new")
    draft.write_text(format_manifest(data), encoding="utf-8")
    os.replace(draft, path)


def format_manifest(data: Mapping[str, Any]) -> str:
    """A manifest as text: a line per run, so that changes read well."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    parts = []
    for key, value in data.items():
        if key == "runs":
            body = ",\n".join(f"    {line(item)}" for item in value)
            parts.append(f'  "runs": [\n{body}\n  ]')
        elif key in ("properties", "accompanied"):
            body = ",\n".join(f"    {line(name)}: {line(item)}" for name, item in value.items())
            parts.append(f"  {line(key)}: {{\n{body}\n  }}")
        else:
            parts.append(f"  {line(key)}: {line(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def model_root(start: Path | None = None) -> Path:
    """The folder with ``pom.xml`` and the models.

    The nearest ``tla/`` at or above ``start`` (the working directory when None), so that models
    being edited win; else the models that were installed with the package.

    Raises:
        ToolProblem: there is none.
    """
    here = (start or Path.cwd()).absolute()
    package = Path(__file__).absolute().parents[1]
    above = [base for base in (here, *here.parents) if base.name == "tla"]
    for folder in (
        *above,
        *(base / "tla" for base in (here, *here.parents)),
        package / "tla",  # in a wheel (pyproject.toml)
        package.parents[1] / "tla",  # in the source tree
    ):
        if (folder / "pom.xml").is_file():
            return folder
    raise ToolProblem(
        "the models are neither in a tla/ folder here or above nor beside the program; install "
        "bentpipe again, or name their folder with --models."
    )


def load_models(root: Path) -> dict[str, Manifest]:
    """All models below ``root`` by name."""
    folders = sorted(path.parent for path in root.glob(f"*/{FILE}"))
    return {folder.name: load_manifest(folder) for folder in folders}
