"""Scenarios of the model StpData: what its mutants stumble over, and a cover of its graphs.

The cases are made from data (``bentpipe_spec.scenario``): the counterexamples in one case for the
implementation as a sender and one as a receiver, and extra ones for the whole cover. They lose,
delay and double what the scenario says; the checkers of all requirements judge, so the requirement
named here is only one that always applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bentpipe_spec.scenario import Scenario, load_scenarios

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.stp.peer import Peer
from bentpipe_conformance.protocols.stp.scenarios import replay_on_receiver, replay_on_sender

MODEL = "stp-data"

BATCH = 25
"""Scenarios in one extra case, each on a connection of its own."""

_ROLES: dict[str, tuple[str, Callable[[Peer, Scenario], None]]] = {
    "sender": ("STP-DT-016", replay_on_sender),
    "receiver": ("STP-DT-017", replay_on_receiver),
}


def _register(
    name: str, role: str, purpose: str, scenarios: Sequence[Scenario], *, extra: bool
) -> None:
    target, replay = _ROLES[role]

    def script(peer: Peer) -> None:
        for scenario in scenarios:
            replay(peer, scenario)

    script.__name__ = script.__qualname__ = f"test_{role}_{name}"
    script.__doc__ = purpose
    globals()[script.__name__] = case(target, extra=extra)(script)


def _counterexamples(role: str) -> None:
    known: dict[tuple[object, ...], Scenario] = {}
    for scenario in load_scenarios(MODEL).named():
        if scenario.events:
            known.setdefault(scenario.script(), scenario)
    about = "\n".join(f"{item.name}: {item.about}" for item in known.values())
    _register(
        "counterexamples", role, f"What the model's mutants stumble over.\n\n{about}",
        list(known.values()), extra=False,
    )  # fmt: skip


def _cover(role: str) -> None:
    covers = [item for item in load_scenarios(MODEL).covers() if item.events]
    for start in range(0, len(covers), BATCH):
        batch = covers[start : start + BATCH]
        first, last = (item.name.removeprefix("cover-") for item in (batch[0], batch[-1]))
        _register(
            f"cover_{first}_to_{last}", role,
            f"Covering scenarios {first} to {last} of the model's state graphs.",
            batch, extra=True,
        )  # fmt: skip


for _role in _ROLES:
    _counterexamples(_role)
    _cover(_role)
