"""Scenarios of the model StpData: counterexamples of its mutants, and a cover of its graphs.

The counterexamples are in one case for the implementation as a sender and one as a receiver, the
cover in extra ones.
"""

from __future__ import annotations

from bentpipe_spec.scenario import load_scenarios

from bentpipe_conformance.engine.scenario import ScenarioCases, distinct
from bentpipe_conformance.protocols.stp.scenarios import replay_on_receiver, replay_on_sender

MODEL = load_scenarios("stp-data")

BATCH = 25
"""Scenarios in one extra case."""


def _add(cases: ScenarioCases) -> None:
    known = [alike[0] for alike in distinct(item for item in MODEL.named() if item.events)]
    about = "\n".join(f"{item.name}: {item.about}" for item in known)
    purpose = f"What the model's mutants stumble over.\n\n{about}"
    cases.add("counterexamples", purpose, known)
    cases.add_covers([item for item in MODEL.covers() if item.events], BATCH)


_add(ScenarioCases(globals(), "STP-DT-016", replay_on_sender, "sender_"))
_add(ScenarioCases(globals(), "STP-DT-017", replay_on_receiver, "receiver_"))
