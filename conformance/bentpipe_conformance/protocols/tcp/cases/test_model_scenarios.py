"""Scenarios of the model SackNewReno: counterexamples of its mutants, and a cover of its graph.

There is one case for each distinct counterexample, one for the scenarios that cover most, and extra
ones for the whole cover.
"""

from __future__ import annotations

from bentpipe_spec.scenario import load_scenarios

from bentpipe_conformance.engine.scenario import ScenarioCases
from bentpipe_conformance.protocols.tcp.scenarios import replay

MODEL = load_scenarios("sack-newreno")

FIRST = 8
"""Covering scenarios in every certification; enough for the commonest edges, and quick."""

BATCH = 20
"""Scenarios in one extra case."""

_CASES = ScenarioCases(globals(), "SNR-WIN-001", replay)
_CASES.add_counterexamples(MODEL.named())
_CASES.add_first(MODEL.covers(), FIRST, BATCH)
