"""Scenarios of the models RwbpRecovery and RwbpFlow: counterexamples of mutants, and covers.

Each distinct counterexample of error control has a case, and so have the scenarios that cover most;
extra cases have the whole cover. All distinct scripts of flow control are in one.
"""

from __future__ import annotations

from bentpipe_spec.scenario import load_scenarios

from bentpipe_conformance.engine.scenario import ScenarioCases, distinct
from bentpipe_conformance.protocols.rwbp.scenarios import replay_flow, replay_recovery

RECOVERY, FLOW = load_scenarios("rwbp-recovery"), load_scenarios("rwbp-flow")

FIRST = 4
"""Covering scenarios in every certification."""

BATCH = 20
"""Scenarios in one extra case."""

_RECOVERY_CASES = ScenarioCases(globals(), "RWBP-WN-005", replay_recovery)
_FLOW_CASES = ScenarioCases(globals(), "RWBP-WN-005", replay_flow, "flow_")


def _add_flow() -> None:
    scripts = distinct(FLOW.all)
    about = "\n".join(", ".join(item.name for item in alike) for alike in scripts)
    purpose = f"Two connections with a window of one segment; one segment is lost.\n\n{about}"
    _FLOW_CASES.add("control", purpose, [alike[0] for alike in scripts])


_RECOVERY_CASES.add_counterexamples(RECOVERY.named())
_RECOVERY_CASES.add_first(RECOVERY.covers(), FIRST, BATCH)
_add_flow()
