"""Cases that need no script of their own from the first packet to the last.

:func:`connected` opens the connection of a case; :class:`ScenarioCases` makes cases from the
scenarios of a model (``bentpipe_spec.scenario``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_spec.scenario import Scenario

from bentpipe_conformance.engine.case import Script, case
from bentpipe_conformance.engine.peer import BasePeer


def connected(
    *requirements: str,
    to: str = "chargen",
    needs: tuple[str, ...] = (),
    profiles: tuple[str, ...] | None = None,
    aborted: bool = False,
    **offer: Any,
) -> Callable[[Callable[[Any], None]], Script]:
    """Register a function of a connection as a case that opens the connection first.

    Args:
        requirements: see :func:`case`, as ``needs`` and ``profiles``.
        to: the service that the connection is opened to.
        needs: see :func:`case`.
        profiles: see :func:`case`.
        aborted: whether the connection is aborted at the end.
        offer: what the tester offers, see the protocol's ``Peer.connect``.
    """

    def register(body: Callable[[Any], None]) -> Script:
        def script(peer: BasePeer[Any, Any]) -> None:
            connection = peer.connect(to, **offer)
            body(connection)
            if aborted:
                connection.abort()

        _name(script, body.__module__, body.__name__, body.__doc__)
        return case(*requirements, needs=needs, profiles=profiles)(script)

    return register


def _name(script: Script, module: str, name: str, purpose: str | None) -> None:
    script.__module__ = module
    script.__name__ = script.__qualname__ = name
    script.__doc__ = purpose


@dataclass(frozen=True, slots=True)
class ScenarioCases:
    """Cases that impose scenarios in one way.

    They do to packets what a scenario says; the checkers of all requirements judge, so the
    requirement named here is only one that always applies.

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

        _name(script, self.module["__name__"], f"test_{self.prefix}{name}", purpose)
        self.module[script.__name__] = case(self.requirement, extra=extra)(script)

    def add_covers(self, covers: Sequence[Scenario], batch: int) -> None:
        """Register extra cases of ``batch`` covering scenarios each."""
        for start in range(0, len(covers), batch):
            several = covers[start : start + batch]
            first, last = (item.name.removeprefix("cover-") for item in (several[0], several[-1]))
            purpose = f"Covering scenarios {first} to {last} of the model's state graphs."
            self.add(f"cover_{first}_to_{last}", purpose, several, extra=True)
