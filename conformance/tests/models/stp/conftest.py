"""Traces of the reference, checked against the models of STP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.manifest import model_root
from bentpipe_conformance.models.rejection import Setup
from bentpipe_conformance.models.tool import find_tool
from bentpipe_conformance.models.traces import Judgement, Trace, read_trace, validate

Event = dict[str, Any]
Checked = Callable[[list[Trace]], list[Judgement]]


def written(path: Path, *events: Event) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    tool = find_tool(model_root())

    def check(traces: list[Trace]) -> list[Judgement]:
        judged: dict[str, Judgement] = {}
        for kind in dict.fromkeys(trace.kind for trace in traces):
            alike = [trace for trace in traces if trace.kind == kind]
            found = validate(alike, Setup(tool, tmp_path_factory.mktemp("tlc"), timeout=280.0))
            judged |= {item.trace.name: item for item in found}
        return [judged[trace.name] for trace in traces]

    return check


def judged(folder: Path, check: Checked, traces: dict[str, list[Event]]) -> dict[str, Judgement]:
    read_traces = [
        read_trace(written(folder / f"{at}.ndjson", *events))
        for at, events in enumerate(traces.values())
    ]
    return dict(zip(traces, check(read_traces), strict=True))


def lines(found: dict[str, Judgement]) -> dict[str, int | None]:
    return {
        name: None if item.rejected is None else item.rejected.line for name, item in found.items()
    }
