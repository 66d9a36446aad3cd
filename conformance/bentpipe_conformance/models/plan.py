"""What scenarios are made from: the bounds and layout in a model's ``scenarios.json``."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe_conformance.models.configuration import Configuration
from bentpipe_conformance.models.history import Network
from bentpipe_conformance.models.manifest import Manifest, Run, shared_modules
from bentpipe_conformance.models.script import Channel, Layout
from bentpipe_conformance.models.tool import ToolProblem
from bentpipe_conformance.models.verification import configured

FILE = "scenarios.json"
_EXTENDS = re.compile(r"^\s*EXTENDS\s+(\w+(?:\s*,\s*\w+)*)", re.MULTILINE)
_INSTANCE = re.compile(r"\bINSTANCE\s+(\w+)")


@dataclass(frozen=True, slots=True)
class Bounded:
    """A state graph to cover: its name, and a run of the manifest with other bounds."""

    name: str
    run: Run


@dataclass(frozen=True, slots=True)
class Plan:
    """How the scenarios of a model are made.

    Attributes:
        layout: where the environment's choices are; without channels where the network is a set
            (:mod:`.history`).
        numbered: kinds of messages that are known by a sequence number.
        offered: the constant that says how many packets the user offers.
        window: the constant that says how many the receiver permits.
        graphs: the state graphs to cover.
        broken: the mutants and limits whose counterexamples become scenarios; not those that
            edit the specification, which have no seam.
        protocol: the folder of ``bentpipe_spec`` that the scenarios are stored in; may be empty.
    """

    layout: Layout
    numbered: frozenset[str]
    offered: str
    window: str
    graphs: tuple[Bounded, ...]
    broken: tuple[Run, ...]
    protocol: str = ""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of a state that show the environment's choices."""
        channels = tuple(channel.variable for channel in self.layout.channels)
        return channels or self.network.variables

    @property
    def network(self) -> Network:
        """How the environment's choices are inferred where there are no channels."""
        package = f"bentpipe_conformance.models.{self.protocol}.network"
        found: Network = importlib.import_module(package).NETWORK
        return found


def load_plan(manifest: Manifest) -> Plan | None:
    """The plan beside a manifest; None when the model has none.

    Raises:
        ToolProblem: it is malformed or names a run that the manifest lacks.
    """
    path = manifest.folder / FILE
    if not path.is_file():
        return None
    runs = {run.name: run for run in manifest.runs}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        layout = Layout(
            tuple(Channel(item["variable"], item.get("kind", "")) for item in data["channels"]),
            frozenset(data["losses"]), frozenset(data["duplications"]), dict(data["timers"]),
        )  # fmt: skip
        graphs = tuple(
            Bounded(item["name"], _varied(runs[item["run"]], item["constants"]))
            for item in data["graphs"]
        )
        others: Mapping[str, Mapping[str, str]] = data["mutants"]
        broken = tuple(
            replace(_varied(run, others.get(run.name, others.get(run.config, {}))), depth=None)
            for run in manifest.runs
            if run.kind in ("mutant", "limit") and not run.edit
        )
        return Plan(
            layout, frozenset(data["numbered"]), data["offered"], data["window"], graphs, broken,
            data.get("protocol", ""),
        )  # fmt: skip
    except OSError as error:
        raise ToolProblem(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ToolProblem(f"{path} is not JSON: {error}.") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ToolProblem(f"{path} is not a plan of scenarios: {error} is missing.") from error


def _varied(run: Run, constants: Mapping[str, str]) -> Run:
    return replace(run, constants={**run.constants, **constants})


def graph_configuration(manifest: Manifest, run: Run) -> Configuration:
    """The configuration that makes the state graph of a run: nothing is checked."""
    config = configured(manifest, run)
    return replace(config, specification="Spec", invariants=(), properties=())


def plan_hash(manifest: Manifest, plan: Plan, root: Path) -> str:
    """SHA-256 of all that the scenarios of a model depend on.

    The modules with all that they extend or instantiate, and for every run its configuration.
    """
    parts: dict[str, str] = {}
    for item in plan.graphs:
        parts[f"graph {item.name}"] = graph_configuration(manifest, item.run).text()
    for run in plan.broken:
        parts[f"{run.kind} {run.name}"] = f"{configured(manifest, run).text()}{run.violates}"
    for module in {item.run.module for item in plan.graphs} | {run.module for run in plan.broken}:
        parts.update(_modules(manifest.folder / module, (manifest.folder, *shared_modules(root))))
    parts["layout"] = repr((_plain(plan.layout), sorted(plan.numbered), plan.offered, plan.window))
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _modules(path: Path, folders: tuple[Path, ...]) -> dict[str, str]:
    """A module and, as far as they are ours, all that it rests on: text by name."""
    found: dict[str, str] = {}
    todo = [path]
    while todo:
        file = todo.pop()
        if file.stem in found:
            continue
        try:
            text = found[file.stem] = file.read_text(encoding="utf-8")
        except OSError as error:
            raise ToolProblem(f"{file} cannot be read: {error.strerror}.") from error
        names = [name for group in _EXTENDS.findall(text) for name in re.split(r"\s*,\s*", group)]
        for name in (*names, *_INSTANCE.findall(text)):
            places = (folder / f"{name}.tla" for folder in (file.parent, *folders))
            todo += [place for place in places if place.is_file()][:1]
    return found


def _plain(layout: Layout) -> tuple[object, ...]:
    channels = [(channel.variable, channel.kind) for channel in layout.channels]
    timers = sorted(layout.timers.items())
    return channels, sorted(layout.losses), sorted(layout.duplications), timers
