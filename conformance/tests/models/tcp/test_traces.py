from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.binding import Binding, Form, TraceProblem
from bentpipe_conformance.models.rejection import Module, Setup
from bentpipe_conformance.models.traces import Trace, load_bindings, read_trace, validate
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.tcp.config import EndpointConfig, Variant
from bentpipe_reference.tcp.tracing import record

from ..conftest import Rejections
from .conftest import found_tool

BEGIN: dict[str, Any] = {"event": "begin", "profile": "hk99"}


def send(seq: int, octets: int = 100) -> dict[str, Any]:
    return {"event": "send", "seq": seq, "octets": octets}


def ack(number: int, *sack: list[Any], window: int = 9) -> dict[str, Any]:
    return {"event": "ack", "ack": number, "window": window, "sack": list(sack), "bare": True}


def written(path: Path, *events: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


def read(folder: Path, *events: dict[str, Any]) -> Trace:
    return read_trace(written(folder / "x.ndjson", BEGIN, *events))


def test_octets_numbered_by_the_segments_they_were_sent_in(tmp_path: Path) -> None:
    trace = read(tmp_path, send(0), send(100, 50), send(150), ack(100, [150, 250]), send(100, 50))
    assert [(step.kind, step.fields["n"]) for step in trace.steps] == [
        ("send", 0), ("send", 1), ("send", 2), ("ack", 1), ("send", 1),
    ]  # fmt: skip
    assert trace.steps[3].fields["s"] == frozenset({2}) and trace.steps[3].line == 5


def test_segments_sent_as_one_count_separately(tmp_path: Path) -> None:
    trace = read(tmp_path, send(0), send(100, 1), send(0, 101))
    assert [step.fields["n"] for step in trace.steps] == [0, 1, 0, 1]
    assert [step.line for step in trace.steps] == [2, 3, 4, 4]


def test_only_bare_repetition_of_the_window_may_count_as_duplicate(tmp_path: Path) -> None:
    changed, repeated, second = ack(0, window=8), ack(0), ack(0)
    data = {**ack(0), "bare": False}
    dsack = ack(100, [0, 100])
    trace = read(tmp_path, send(0), send(100), changed, repeated, second, data, dsack)
    flags = [step.fields["d"] for step in trace.steps if step.kind == "ack"]
    assert flags == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "does not begin with"),
        ("{", "line 1 is not JSON"),
        ('{"event": "odd"}', "does not begin with"),
        ('{"event": "begin", "protocol": "odd"}', "'odd' is none of sack-newreno"),
        ('{"event": "begin", "profile": "rfc"}\n{"event": "odd"}', "none of begin, ack, send"),
        (
            '{"event": "begin", "profile": "odd"}',
            "'odd' is none of hk99, rfc; record the trace again",
        ),
        ('{"event": "begin", "profile": "hk99"}\n{"event": "send", "seq": 0}', "lacks 'octets'"),
        ('{"event": "begin", "profile": "hk99"}\n[1]', "line 2: the event None"),
    ],
)
def test_file_that_is_no_trace_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceProblem, match=says):
        read_trace(path)


@pytest.mark.parametrize("event", [ack(50), send(50), send(0, 150), ack(0, ["a", 1])])
def test_trace_that_says_too_little_refused(tmp_path: Path, event: dict[str, Any]) -> None:
    with pytest.raises(TraceProblem, match=r"line 4"):
        read(tmp_path, send(0), send(100), event)


TOY = Binding(
    protocol="toy",
    module=Module("toy", "TraceToy", "trace.cfg", "TraceLogs"),
    profiles={"plain": {"Rule": "1"}},
    forms={"stat": Form({"n": int, "gaps": list, "ok": bool, "why": str}, ("ReceiveStat",))},
    bounds={"window": "Window"},
)
TOY_BEGIN = {"event": "begin", "protocol": "toy", "profile": "plain", "window": 8}
STAT = {"event": "stat", "n": 3, "gaps": [5, 4], "ok": True, "why": "x", "more": 1}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load_bindings(), "toy", TOY)


@pytest.mark.usefixtures("toy")
def test_table_alone_turns_a_protocols_events_into_records(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path / "x.ndjson", TOY_BEGIN, STAT))
    assert dict(trace.constants) == {"Rule": "1", "Window": "8"}
    assert [step.text() for step in trace.steps] == [
        '[k |-> "stat", n |-> 3, gaps |-> {4, 5}, ok |-> TRUE, why |-> "x"]'
    ]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("begin", "event", "says"),
    [
        ({"window": "8"}, {}, "lacks 'window'"),
        ({"profile": "odd"}, {}, "'odd' is none of plain"),
        ({}, {"event": "odd"}, "line 2: the event 'odd' is none of begin, stat"),
        ({}, {"ok": 1}, "lacks 'ok', or it is not of type bool"),
        ({}, {"gaps": ["x"]}, "'gaps' is not an array of numbers"),
        ({}, {"n": 2**31}, "'n' exceeds"),
    ],
)
def test_what_the_table_does_not_have_refused(
    tmp_path: Path, begin: dict[str, Any], event: dict[str, Any], says: str
) -> None:
    path = written(tmp_path / "x.ndjson", {**TOY_BEGIN, **begin}, {**STAT, **event})
    with pytest.raises(TraceProblem, match=says):
        read_trace(path)


def recorded(seed: int, variant: Variant) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    config = EndpointConfig(variant=variant)
    drops = chance.sample(range(6, 40), chance.randint(1, 6))
    lost = chance.sample(range(3, 30), chance.randint(0, 3))
    link = load_profiles()["leo-40"]
    trace = record(link, config, 36 * config.mss, drops=drops, return_drops=lost, seed=seed)
    return trace.events


def corrupted(events: list[dict[str, Any]], seed: int) -> tuple[list[dict[str, Any]], int]:
    """One event changed, and its line."""
    chance = random.Random(seed)
    kind = ("send", "state")[seed % 2]
    at = chance.choice([i for i, event in enumerate(events) if event["event"] == kind])
    event = dict(events[at])
    if kind == "send":
        event["seq"] = 10_000_000
    else:
        event["in_recovery"] = not event["in_recovery"]
    return [*events[:at], event, *events[at + 1 :]], at + 1


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["sack-newreno-hk99", "sack-newreno-rfc"])
def test_reference_follows_the_model_and_each_corruption_is_found(
    tmp_path: Path, variant: Variant, rejections: Rejections
) -> None:
    traces: list[Trace] = []
    expected: list[int | None] = []
    for seed in range(50):
        events = recorded(seed, variant)
        traces.append(read_trace(written(tmp_path / f"{seed}.ndjson", *events)))
        expected.append(None)
        changed, line = corrupted(events, seed)
        traces.append(read_trace(written(tmp_path / f"{seed}-bad.ndjson", *changed)))
        expected.append(line)
    found = validate(traces, Setup(found_tool(), tmp_path, timeout=240.0))
    lines = [None if item.rejected is None else item.rejected.line for item in found]
    assert lines == expected
    rejections("sack-newreno", {item.trace.name: item.guard for item in found if item.guard})
