"""Captures of right implementations that a checker once accused.

``captures/index.toml`` says of each what it is and why it is right, or right but for known habits.
Payloads are zeroed, so checksums are not looked at.
"""

from __future__ import annotations

import lzma
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.engine.checking import Readings, judge, load_checkers
from bentpipe_conformance.engine.context import Context
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.pcapng import read_octets

CAPTURES = Path(__file__).with_name("captures")
INDEX: dict[str, dict[str, Any]] = tomllib.loads((CAPTURES / "index.toml").read_text("utf-8"))


def captured(name: str) -> list[Captured]:
    """The packets of a stored capture, as seen by the one who is judged."""
    octets = lzma.decompress((CAPTURES / f"{name}.pcapng.xz").read_bytes())
    frames = list(read_octets(octets, name))
    return [
        Captured((frame.time_ns or 0) / 1e9, "iut", bool(frame.outgoing), frame.data)
        for frame in frames
    ]


@pytest.mark.parametrize("name", INDEX)
def test_capture_of_a_right_implementation_is_not_accused(name: str) -> None:
    entry = INDEX[name]
    suite = suite_named(entry["suite"])
    error = entry.get("timing_error", 1e-6)
    trace = read_trace(captured(name), error, trust_checksums=True, suite=suite)
    if "habits" in entry:
        found = list(_by_habit(trace, entry, suite))
    else:
        found = judge(trace, entry["profile"], entry["ics"], entry["requirements"], suite=suite)
    wrong = [item for item in found if item.verdict in (Verdict.FAIL, Verdict.ERROR)]
    assert not wrong, "\n".join(f"{item.sentence} {item.packets}" for item in wrong)


def _by_habit(trace: Trace[Any], entry: dict[str, Any], suite: Suite) -> Iterator[Finding]:
    """What is found with an implementation that is known to have habits."""
    for flow in suite.interpreter.read_flows(trace):
        known = suite.interpreter.with_habits(flow, entry["habits"])
        readings = Readings(known, suite.interpreter)
        for name in entry["requirements"]:
            context = Context(
                suite.requirements()[name], entry["profile"], entry["ics"], trace.timing_error,
                readings.prepared,
            )  # fmt: skip
            yield from readings.judged(load_checkers(suite)[name], context)
