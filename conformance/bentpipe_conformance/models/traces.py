"""Recorded traces of a protocol's own code: read by its table, checked, explained."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bentpipe_conformance.models.binding import Binding, Step, TraceProblem
from bentpipe_conformance.models.rejection import Setup, follow


@cache
def load_bindings() -> dict[str, Binding]:
    """Every table by the name of its protocol: ``BINDINGS`` of each folder that has some."""
    models = importlib.import_module("bentpipe_conformance.models")
    found: dict[str, Binding] = {}
    for folder in pkgutil.iter_modules(models.__path__):
        if folder.ispkg:
            module = importlib.import_module(f"{models.__name__}.{folder.name}")
            found |= {binding.protocol: binding for binding in getattr(module, "BINDINGS", ())}
    return dict(sorted(found.items(), key=lambda item: not item[1].default))


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace ready for the model.

    Attributes:
        name: where it comes from.
        binding: the table of its protocol.
        profile: the rules its protocol follows.
        constants: what they and its bounds mean for the module.
        steps: its events.
        lines: its lines as they were.
    """

    name: str
    binding: Binding
    profile: str
    constants: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    lines: tuple[str, ...]

    @property
    def kind(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Traces of one kind can be checked in one run."""
        return self.binding.protocol, self.constants


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the model says of one trace.

    Attributes:
        trace: the trace.
        accepted: how many events the model can follow.
        guard: why the next one is not possible; empty when all are.
    """

    trace: Trace
    accepted: int
    guard: str

    @property
    def consistent(self) -> bool:
        """Whether the model can follow to the end."""
        return self.accepted == len(self.trace.steps)

    @property
    def rejected(self) -> Step | None:
        """The first event that the model cannot follow."""
        return None if self.consistent else self.trace.steps[self.accepted]

    @property
    def followed(self) -> dict[str, int]:
        """How often the model has followed each event of the table; 0 for those never met."""
        met = Counter(step.kind for step in self.trace.steps[: self.accepted])
        shown = [name for name, form in self.trace.binding.forms.items() if form.actions]
        return {name: met[name] for name in dict.fromkeys([*shown, *met])}


def read_trace(path: Path) -> Trace:
    """Read an NDJSON trace as its protocol's table describes it.

    Raises:
        TraceProblem: a line is not an event, or an event cannot be expressed in the model.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceProblem(f"{path} cannot be read: {error}.") from error
    events = [_parsed(line, f"{path}, line {at}") for at, line in enumerate(lines, start=1)]
    begin = events[0] if events else None
    if not isinstance(begin, dict) or begin.get("event") != "begin":
        raise TraceProblem(f"{path} does not begin with the event 'begin'.")
    bindings = load_bindings()
    protocol = begin.get("protocol", next(name for name in bindings if bindings[name].default))
    if not isinstance(protocol, str) or protocol not in bindings:
        raise TraceProblem(
            f"{path}, line 1: the protocol {protocol!r} is none of {', '.join(bindings)}."
        )
    binding = bindings[protocol]
    constants = binding.constants(begin, str(path))
    encoder = binding.encoder(str(path), binding)
    steps = [
        step
        for at, event in enumerate(events[1:], start=2)
        for step in encoder.steps(binding.check(event, f"{path}, line {at}"), at)
    ]
    return Trace(
        str(path), binding, begin["profile"], tuple(constants.items()), tuple(steps), tuple(lines)
    )


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise TraceProblem(f"{where} is not JSON: {error.msg}.") from error
    except RecursionError as error:
        raise TraceProblem(f"{where} is not readable JSON: it is nested too deeply.") from error


def validate(traces: Sequence[Trace], setup: Setup) -> list[Judgement]:
    """Check traces of one kind against their model, all in one run of TLC.

    Args:
        traces: the traces; their ``kind`` must be equal.
        setup: what TLC runs with.

    Raises:
        ToolProblem: TLC could not do it.
    """
    logs = ["<<" + ",\n  ".join(step.text() for step in trace.steps) + ">>" for trace in traces]
    binding, constants = traces[0].binding, dict(traces[0].constants)
    return [
        Judgement(trace, item.events, "" if item.events == len(trace.steps) else item.guard)
        for trace, item in zip(traces, follow(binding.module, logs, constants, setup), strict=True)
    ]
