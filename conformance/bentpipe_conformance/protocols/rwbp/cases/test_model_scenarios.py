"""Scenarios of the models RwbpRecovery and RwbpFlow: counterexamples of mutants, and covers.

Each distinct counterexample of error control has a case, and so have the scenarios that cover most;
extra cases have the whole cover. All distinct scripts of flow control are in one.
"""

from __future__ import annotations

from bentpipe_spec.scenario import Scenario, load_scenarios

from bentpipe_conformance.engine.scenario import ScenarioCases
from bentpipe_conformance.protocols.rwbp.scenarios import replay_flow, replay_recovery

RECOVERY, FLOW = load_scenarios("rwbp-recovery"), load_scenarios("rwbp-flow")

FIRST = 4
"""Covering scenarios in every certification."""

BATCH = 20
"""Scenarios in one extra case."""

_RECOVERY_CASES = ScenarioCases(globals(), "RWBP-WN-005", replay_recovery)
_FLOW_CASES = ScenarioCases(globals(), "RWBP-WN-005", replay_flow, "flow_")


def _add_counterexamples() -> None:
    known: dict[tuple[object, ...], list[Scenario]] = {}
    for scenario in RECOVERY.named():
        known.setdefault(scenario.script(), []).append(scenario)
    for alike in known.values():
        name = alike[0].name
        about = [
            f"{item.name} ({', '.join((item.property, *item.requirements))}): {item.about}"
            for item in alike
        ]
        purpose = f"Counterexample of the model's mutant {name}.\n\n" + "\n".join(about)
        _RECOVERY_CASES.add(name.replace("-", "_"), purpose, alike[:1])


def _add_flow() -> None:
    known: dict[tuple[object, ...], list[str]] = {}
    scripts: list[Scenario] = []
    for scenario in FLOW.all:
        if scenario.script() not in known:
            scripts.append(scenario)
        known.setdefault(scenario.script(), []).append(scenario.name)
    about = "\n".join(", ".join(names) for names in known.values())
    purpose = f"Two connections with a window of one segment; one segment is lost.\n\n{about}"
    _FLOW_CASES.add("control", purpose, scripts)


_add_counterexamples()
_RECOVERY_CASES.add(
    f"cover_first_{FIRST}",
    f"The {FIRST} scenarios that together take most edges of the model's state graphs.",
    RECOVERY.covers()[:FIRST],
)
_RECOVERY_CASES.add_covers(RECOVERY.covers()[FIRST:], BATCH)
_add_flow()
