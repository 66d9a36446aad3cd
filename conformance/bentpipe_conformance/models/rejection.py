"""Running a module that follows recorded events, and how far it can follow each recording.

Such a module prints ``<<"reached", recording, event, effort, guard>>`` in every state: the next
event it would have to follow and the guard that blocks it. ``effort`` ranks states that got equally
far. A model of this kind explains a rejection without a counterexample trace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe_conformance.models import tlc
from bentpipe_conformance.models.configuration import read_configuration
from bentpipe_conformance.models.manifest import shared_modules
from bentpipe_conformance.models.tool import Tool, ToolProblem

# TLC breaks a long value into lines.
_REACHED = re.compile(r'<<\s*"reached",\s*(\d+),\s*(\d+),\s*(\d+),\s*"([^"]*)"\s*>>')


@dataclass(frozen=True, slots=True)
class Module:
    """A module that follows recordings.

    Attributes:
        folder: its folder in the models' root.
        name: its name.
        config: its configuration there.
        constant: the constant that takes the sequence of recordings.
    """

    folder: str
    name: str
    config: str
    constant: str


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the model could follow one recording.

    Attributes:
        events: how many events it could follow.
        guard: why the next one is not possible; "accepted" after the last one.
    """

    events: int
    guard: str


@dataclass(frozen=True, slots=True)
class Setup:
    """What TLC runs with.

    Attributes:
        tool: the model checker and the folder of the models.
        directory: an existing folder for generated modules and logs.
        timeout: seconds for all.
        memory_mb: Java heap, MiB.
    """

    tool: Tool
    directory: Path
    timeout: float
    memory_mb: int = 2048


def follow(
    module: Module, recordings: Sequence[str], constants: Mapping[str, str], setup: Setup
) -> list[Reach]:
    """Let a module follow recordings, all in one run of TLC.

    Args:
        module: the module.
        recordings: each a value of TLA+ as the module's comment describes it.
        constants: values of further constants, as text.
        setup: what TLC runs with.

    Raises:
        ToolProblem: TLC could not do it.
    """
    root = setup.tool.root
    folder = root / module.folder
    generated = setup.directory / "Recorded.tla"
    text = ",\n".join(recordings)
    generated.write_text(
        f"---- MODULE Recorded ----\nEXTENDS {module.name}\nRecordings == <<\n{text}\n>>\n====\n",
        encoding="utf-8",
    )
    config = read_configuration(folder / module.config)
    more = {**constants, module.constant: "<- Recordings"}
    job = tlc.Job(
        generated,
        replace(config, constants={**config.constants, **more}).text(),
        (*shared_modules(root), folder),
        setup.directory,
        memory_mb=setup.memory_mb,
        timeout=setup.timeout,
    )
    outcome = tlc.run(setup.tool, job)
    reached: dict[int, tuple[int, int, str]] = {}
    for found in _REACHED.finditer(outcome.log.read_text(encoding="utf-8")):
        index, at, effort = int(found[1]) - 1, int(found[2]) - 1, int(found[3])
        if (at, effort) >= reached.get(index, (-1, -1, ""))[:2]:
            reached[index] = (at, effort, found[4])
    if len(reached) != len(recordings):
        raise ToolProblem(f"TLC did not report on every recording; log: {outcome.log}")
    return [Reach(reached[i][0], reached[i][2]) for i in range(len(recordings))]
