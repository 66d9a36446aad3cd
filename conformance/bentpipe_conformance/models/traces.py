"""Recorded traces of a protocol's own code: read by its table, checked, explained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe_conformance.models.binding import Binding, Step, TraceProblem
from bentpipe_conformance.models.exchanges import STP_DATA
from bentpipe_conformance.models.rejection import follow
from bentpipe_conformance.models.segments import SACK_NEWRENO
from bentpipe_conformance.models.sessions import STP_CONN

BINDINGS: dict[str, Binding] = {
    binding.protocol: binding for binding in (SACK_NEWRENO, STP_DATA, STP_CONN)
}
"""The table of every protocol whose traces can be checked."""


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


def read_trace(path: Path) -> Trace:
    """Read an NDJSON trace as its protocol's table describes it.

    Raises:
        TraceProblem: a line is no event, or an event cannot be expressed in the model.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceProblem(f"{path} cannot be read: {error}.") from error
    events = [_parsed(line, f"{path}, line {at}") for at, line in enumerate(lines, start=1)]
    begin = events[0] if events else None
    if not isinstance(begin, dict) or begin.get("event") != "begin":
        raise TraceProblem(f"{path} does not begin with the event 'begin'.")
    protocol = begin.get("protocol", SACK_NEWRENO.protocol)
    if not isinstance(protocol, str) or protocol not in BINDINGS:
        raise TraceProblem(
            f"{path}, line 1: the protocol {protocol!r} is none of {', '.join(BINDINGS)}."
        )
    binding = BINDINGS[protocol]
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
        raise TraceProblem(f"{where} is not JSON that can be read: it nests too deep.") from error


def validate(
    traces: Sequence[Trace],
    tool: tuple[str, Path],
    root: Path,
    directory: Path,
    timeout: float,
    memory_mb: int = 2048,
) -> list[Judgement]:
    """Check traces of one kind against their model, all in one run of TLC.

    Args:
        traces: the traces; their ``kind`` must be equal.
        tool: the Java launcher and the model checker.
        root: the folder of the models.
        directory: an existing folder for the generated module and the log.
        timeout: seconds.
        memory_mb: Java heap.

    Raises:
        ToolProblem: TLC could not do it.
    """
    logs = ["<<" + ",\n  ".join(step.text() for step in trace.steps) + ">>" for trace in traces]
    constants = dict(traces[0].constants)
    module = traces[0].binding.module
    reached = follow(module, logs, constants, tool, root, directory, timeout, memory_mb)
    return [
        Judgement(trace, item.events, "" if item.events == len(trace.steps) else item.guard)
        for trace, item in zip(traces, reached, strict=True)
    ]
