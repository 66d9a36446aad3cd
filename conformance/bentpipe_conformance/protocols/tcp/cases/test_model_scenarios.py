"""Scenarios of the model SackNewReno: counterexamples of its mutants, and a cover of its graph.

There is one case for each distinct counterexample, one for the scenarios that cover most, and extra
ones for the whole cover.
"""

from __future__ import annotations

from bentpipe_spec.scenario import Scenario, load_scenarios

from bentpipe_conformance.engine.scenario import ScenarioCases
from bentpipe_conformance.protocols.tcp.scenarios import replay

MODEL = load_scenarios("sack-newreno")

FIRST = 8
"""Covering scenarios in every certification; enough for the commonest edges, and quick."""

BATCH = 20
"""Scenarios in one extra case."""

_CASES = ScenarioCases(globals(), "SNR-WIN-001", replay)


def _add_counterexamples() -> None:
    known: dict[tuple[object, ...], list[Scenario]] = {}
    for scenario in MODEL.named():
        known.setdefault(scenario.script(), []).append(scenario)
    for alike in known.values():
        name = alike[0].name
        about = [
            f"{item.name} ({', '.join((item.property, *item.requirements))}): {item.about}"
            for item in alike
        ]
        purpose = f"Counterexample of the model's mutant {name}.\n\n" + "\n".join(about)
        _CASES.add(name.replace("-", "_"), purpose, alike[:1])


_add_counterexamples()
_CASES.add(
    f"cover_first_{FIRST}",
    f"The {FIRST} scenarios that together take most edges of the model's state graphs.",
    MODEL.covers()[:FIRST],
)
_CASES.add_covers(MODEL.covers()[FIRST:], BATCH)
