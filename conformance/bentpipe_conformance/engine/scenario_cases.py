"""Cases made from the scenarios of a model (``bentpipe_spec.scenario``).

They do to packets what a scenario says; the checkers of all requirements judge, so the requirement
that such a case names is only one that always applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_spec.scenario import Scenario

from bentpipe_conformance.engine.case import case


@dataclass(frozen=True, slots=True)
class ScenarioCases:
    """Cases that impose scenarios in one way.

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

        def script(peer: Any) -> None:
            for scenario in scenarios:
                self.impose(peer, scenario)

        script.__name__ = script.__qualname__ = f"test_{self.prefix}{name}"
        script.__module__ = self.module["__name__"]
        script.__doc__ = purpose
        self.module[script.__name__] = case(self.requirement, extra=extra)(script)

    def add_covers(self, covers: Sequence[Scenario], batch: int) -> None:
        """Register extra cases of ``batch`` covering scenarios each."""
        for start in range(0, len(covers), batch):
            several = covers[start : start + batch]
            first, last = (item.name.removeprefix("cover-") for item in (several[0], several[-1]))
            self.add(
                f"cover_{first}_to_{last}",
                f"Covering scenarios {first} to {last} of the model's state graphs.",
                several, extra=True,
            )  # fmt: skip
