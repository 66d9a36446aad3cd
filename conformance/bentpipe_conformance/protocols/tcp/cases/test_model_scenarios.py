"""Scenarios of the model SackNewReno: what its mutants stumble over, and a cover of its graph.

The cases are made from data (``bentpipe_spec.scenario``): one for each distinct counterexample, one
for the scenarios that cover most, and extra ones for the whole cover. They lose and delay what the
scenario says; the checkers of all requirements judge, so the requirement named here is only the one
that always applies.
"""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe_spec.scenario import Scenario, load_scenarios

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.tcp.peer import Peer
from bentpipe_conformance.protocols.tcp.scenarios import replay

MODEL = "sack-newreno"
FIRST = 8
"""Covering scenarios in every certification; enough for the commonest edges, and quick."""

BATCH = 20
"""Scenarios in one extra case, each on a connection of its own."""


def _register(name: str, purpose: str, scenarios: Sequence[Scenario], *, extra: bool) -> None:
    def script(peer: Peer) -> None:
        for scenario in scenarios:
            replay(peer, scenario)

    script.__name__ = script.__qualname__ = f"test_{name}"
    script.__doc__ = purpose
    globals()[script.__name__] = case("SNR-WIN-001", extra=extra)(script)


def _counterexamples() -> None:
    known: dict[tuple[object, ...], list[Scenario]] = {}
    for scenario in load_scenarios(MODEL).named():
        known.setdefault(scenario.script(), []).append(scenario)
    for alike in known.values():
        first = alike[0]
        about = [
            f"{item.name} ({', '.join((item.property, *item.requirements))}): {item.about}"
            for item in alike
        ]
        purpose = f"Counterexample of the model's mutant {first.name}.\n\n" + "\n".join(about)
        _register(first.name.replace("-", "_"), purpose, [first], extra=False)


def _cover() -> None:
    covers = load_scenarios(MODEL).covers()
    first = covers[:FIRST]
    _register(
        f"cover_first_{len(first)}",
        f"The {len(first)} scenarios that together take most edges of the model's state graphs.",
        first, extra=False,
    )  # fmt: skip
    for start in range(FIRST, len(covers), BATCH):
        batch = covers[start : start + BATCH]
        names = f"{batch[0].name.removeprefix('cover-')}_to_{batch[-1].name.removeprefix('cover-')}"
        _register(
            f"cover_{names}",
            f"Covering scenarios {names.replace('_', ' ')} of the model's state graphs.",
            batch, extra=True,
        )  # fmt: skip


_counterexamples()
_cover()
