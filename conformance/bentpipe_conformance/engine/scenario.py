"""Imposing the scenarios of a model (``bentpipe_spec.scenario``), and the cases that do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_spec.scenario import Scenario

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import BasePeer
from bentpipe_conformance.engine.scripts import rename

Act = Callable[[], None]


class Path:
    """What a scenario does to packets: lose, delay or double some of them."""

    def __init__(self, scenario: Scenario) -> None:
        self._events = {(event.message, event.nth): event for event in scenario.events}
        self._counts: Counter[str] = Counter()
        self._pocket: list[tuple[tuple[str, int], Act]] = []

    def carry(self, kind: str, act: Act) -> None:
        """Let ``act``, the arrival of a packet of this kind, happen as its fate says."""
        self._counts[kind] += 1
        here = kind, self._counts[kind]
        event = self._events.get(here)
        if event is None:
            act()
        elif event.fate == "doubled":
            act()
            act()
        elif event.fate == "delayed" and event.behind is not None:
            self._pocket.append((event.behind, act))
        late = [item for item in self._pocket if item[0] == here]
        for item in late:
            self._pocket.remove(item)
            item[1]()

    def release(self) -> None:
        """Let everything arrive that is still delayed."""
        pocket, self._pocket = self._pocket, []
        for _, act in pocket:
            act()


def distinct(scenarios: Iterable[Scenario]) -> list[list[Scenario]]:
    """Scenarios by what they do to packets: those with one script stand together."""
    known: dict[tuple[object, ...], list[Scenario]] = {}
    for scenario in scenarios:
        known.setdefault(scenario.script(), []).append(scenario)
    return list(known.values())


@dataclass(frozen=True, slots=True)
class ScenarioCases:
    """Cases that impose scenarios in one way.

    The checkers of all requirements judge them, so the requirement named here is only one that
    always applies.

    Attributes:
        module: names of the module that holds the cases, its ``globals()``.
        requirement: what they target.
        impose: imposes one scenario, given the scripted peer.
        prefix: what their names begin with.
    """

    module: dict[str, Any]
    requirement: str
    impose: Callable[[Any, Scenario], None]
    prefix: str = ""

    def add(
        self, name: str, purpose: str, scenarios: Sequence[Scenario], *, extra: bool = False
    ) -> None:
        """Register a case that imposes scenarios, each on a connection of its own."""

        def script(peer: BasePeer[Any, Any]) -> None:
            for scenario in scenarios:
                self.impose(peer, scenario)

        full_name = f"test_{self.prefix}{name}"
        named = rename(script, self.module["__name__"], full_name, purpose)
        self.module[full_name] = case(self.requirement, extra=extra)(named)

    def add_counterexamples(self, scenarios: Iterable[Scenario]) -> None:
        """Register a case for each script among the counterexamples of mutants."""
        for alike in distinct(scenarios):
            name = alike[0].name
            about = [
                f"{item.name} ({', '.join((item.property, *item.requirements))}): {item.about}"
                for item in alike
            ]
            purpose = f"Counterexample of the model's mutant {name}.\n\n" + "\n".join(about)
            self.add(name.replace("-", "_"), purpose, alike[:1])

    def add_first(self, covers: Sequence[Scenario], first: int, batch: int) -> None:
        """Register a case of the ``first`` covering scenarios, and extra ones of all others."""
        self.add(
            f"cover_first_{first}",
            f"The {first} scenarios that together take most edges of the model's state graphs.",
            covers[:first],
        )
        self.add_covers(covers[first:], batch)

    def add_covers(self, covers: Sequence[Scenario], batch: int) -> None:
        """Register extra cases of ``batch`` covering scenarios each."""
        for start in range(0, len(covers), batch):
            several = covers[start : start + batch]
            first, last = (item.name.removeprefix("cover-") for item in (several[0], several[-1]))
            purpose = f"Covering scenarios {first} to {last} of the model's state graphs."
            self.add(f"cover_{first}_to_{last}", purpose, several, extra=True)
