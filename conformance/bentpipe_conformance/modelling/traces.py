"""Recorded traces of a sender as input to the model: read, number by segments, check, explain."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bentpipe_conformance.modelling import tlc
from bentpipe_conformance.modelling.configuration import read_configuration
from bentpipe_conformance.modelling.tool import ToolProblem

_FIELDS: dict[str, dict[str, type]] = {
    "ack": {"ack": int, "window": int, "sack": list, "bare": bool},
    "send": {"seq": int, "octets": int},
    "timeout": {},
    "state": {"snd_una": int, "in_recovery": bool},
}
_REACHED = re.compile(r'<<"reached", (\d+), (\d+), "(.*)">>')
PROFILES = ("hk99",)


class TraceProblem(Exception):
    """A trace cannot be read or says too little; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event as the model sees it, and the line of the trace it comes from."""

    kind: str
    number: int
    held: frozenset[int]
    flag: bool
    line: int

    def text(self) -> str:
        """The event as a record of TLA+."""
        held = ", ".join(map(str, sorted(self.held)))
        return (
            f'[k |-> "{self.kind}", n |-> {self.number}, s |-> {{{held}}}, '
            f"d |-> {str(self.flag).upper()}]"
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace ready for the model.

    Attributes:
        name: where it comes from.
        profile: the sender's rules.
        steps: its events.
        lines: its lines as they were.
    """

    name: str
    profile: str
    steps: tuple[Step, ...]
    lines: tuple[str, ...]


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
    """Read an NDJSON trace as ``bentpipe_reference.tracing`` describes it.

    Raises:
        TraceProblem: a line is no event, or an event cannot be expressed in segments.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceProblem(f"{path} cannot be read: {error}.") from error
    events = [_event(line, f"{path}, line {at}") for at, line in enumerate(lines, start=1)]
    if not events or events[0].get("event") != "begin":
        raise TraceProblem(f"{path} does not begin with the event 'begin'.")
    profile = events[0].get("profile")
    if profile not in PROFILES:
        raise TraceProblem(
            f"{path}, line 1: the profile is {profile!r}; only traces of hk99 senders can be "
            "validated, because what RFC 6675 repairs depends on windows in octets."
        )
    numbering = _Numbering(str(path))
    steps = [
        step for at, event in enumerate(events[1:], start=2) for step in numbering.steps(event, at)
    ]
    return Trace(str(path), profile, tuple(steps), tuple(lines))


def _event(line: str, where: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except json.JSONDecodeError as error:
        raise TraceProblem(f"{where} is not JSON: {error.msg}.") from error
    name = event.get("event") if isinstance(event, dict) else None
    if name == "begin":
        return dict(event)
    if name not in _FIELDS:
        known = ", ".join(["begin", *_FIELDS])
        raise TraceProblem(f"{where}: the event {name!r} is none of {known}.")
    for field, kind in _FIELDS[name].items():
        if type(event.get(field)) is not kind:
            raise TraceProblem(f"{where}: {name!r} lacks {field!r}, or it is no {kind.__name__}.")
    return dict(event)


class _Numbering:
    """Numbers the octets of a trace by the segments they were first sent in."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._edges = [0]  # where segments begin, and where the last one ends
        self._window: int | None = None
        self._una = 0

    def steps(self, event: dict[str, Any], line: int) -> list[Step]:
        """The event in segments: one step, or one for each segment that was sent as one."""
        kind: str = event["event"]
        if kind == "send":
            return [Step(kind, at, frozenset(), False, line) for at in self._sent(event, line)]
        if kind == "ack":
            return [self._acknowledged(event, line)]
        if kind == "state":
            number = self._edge(event["snd_una"], line)
            return [Step(kind, number, frozenset(), event["in_recovery"], line)]
        return [Step(kind, 0, frozenset(), False, line)]

    def _sent(self, event: dict[str, Any], line: int) -> range:
        seq, end = event["seq"], event["seq"] + event["octets"]
        if seq == self._edges[-1]:
            self._edges.append(end)
        first = self._edge(seq, line)
        if first + 1 >= len(self._edges):
            return range(first, first + 1)
        return range(first, self._edge(end, line))

    def _acknowledged(self, event: dict[str, Any], line: int) -> Step:
        number = self._edge(event["ack"], line)
        held = frozenset(
            at for block in event["sack"] for at in self._inside(block, line) if at >= number
        )
        repeats = bool(event["sack"]) and not held
        duplicate = event["bare"] and event["window"] == self._window and not repeats
        self._window = event["window"]
        return Step("ack", number, held, duplicate, line)

    def _inside(self, block: Any, line: int) -> range:
        try:
            left, right = (int(edge) for edge in block)
        except (TypeError, ValueError) as error:
            raise TraceProblem(f"{self._name}, line {line}: {block!r} is no SACK block.") from error
        first = bisect_left(self._edges, left)
        return range(first, max(first, bisect_left(self._edges, right)))

    def _edge(self, offset: int, line: int) -> int:
        at = bisect_left(self._edges, offset)
        if at == len(self._edges) and offset > self._edges[-1]:
            return at  # of what was never sent: for the model to reject
        if self._edges[at] != offset:
            raise TraceProblem(
                f"{self._name}, line {line}: {offset} lies inside a segment; such a trace says "
                "too little for this model."
            )
        return at


def validate(
    traces: Sequence[Trace],
    tool: tuple[str, Path],
    root: Path,
    directory: Path,
    timeout: float,
    memory_mb: int = 2048,
) -> list[Judgement]:
    """Check traces of one profile against SackNewReno, all in one run of TLC.

    Args:
        traces: the traces.
        tool: the Java launcher and the model checker.
        root: the folder of the models.
        directory: an existing folder for the generated module and the log.
        timeout: seconds.
        memory_mb: Java heap.

    Raises:
        ToolProblem: TLC could not do it.
    """
    folder = root / "sack-newreno"
    logs = ",\n".join(
        "<<" + ",\n  ".join(step.text() for step in trace.steps) + ">>" for trace in traces
    )
    module = directory / "RecordedTraces.tla"
    module.write_text(
        "---- MODULE RecordedTraces ----\nEXTENDS TraceSackNewReno\n"
        f"Logs == <<\n{logs}\n>>\n====\n",
        encoding="utf-8",
    )
    config = read_configuration(folder / "trace.cfg")
    config = replace(
        config,
        constants={
            **config.constants,
            "TraceLogs": "<- Logs",
            "Profile": json.dumps(traces[0].profile),
        },
    )
    job = tlc.Job(
        module, config.text(), (root, folder), directory, memory_mb=memory_mb, timeout=timeout
    )
    java, jar = tool
    outcome = tlc.run(java, jar, job)
    reached: dict[int, tuple[int, str]] = {}
    for found in _REACHED.finditer(outcome.log.read_text(encoding="utf-8")):
        index, at = int(found[1]) - 1, int(found[2]) - 1
        if at >= reached.get(index, (-1, ""))[0]:
            reached[index] = (at, found[3])
    if len(reached) != len(traces):
        raise ToolProblem(f"TLC did not report on every trace; log: {outcome.log}")
    return [
        Judgement(trace, reached[index][0], "" if reached[index][0] == len(trace.steps)
                  else reached[index][1])
        for index, trace in enumerate(traces)
    ]  # fmt: skip
