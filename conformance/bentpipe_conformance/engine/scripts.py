"""Cases whose script, or its beginning, is the same as others'.

:func:`staged` and :func:`connected` bring a connection into the situation that a case is about;
:class:`ScenarioCases` makes cases from the scenarios of a model (``bentpipe_spec.scenario``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_spec.scenario import Scenario

from bentpipe_conformance.engine.case import Script, case
from bentpipe_conformance.engine.peer import BasePeer

Registration = Callable[[Callable[..., None]], Script]
"""Registers a function as a case."""


def staged(
    *requirements: str,
    stage: Callable[[Any], tuple[Any, ...]],
    needs: tuple[str, ...] = (),
    profiles: tuple[str, ...] | None = None,
    aborted: bool = False,
) -> Registration:
    """Register a function of a connection in some situation as a case that reaches it first.

    Args:
        requirements: see :func:`case`.
        stage: given the scripted peer, reaches the situation; returns the function's arguments,
            the connection first.
        needs: see :func:`case`.
        profiles: see :func:`case`.
        aborted: whether the connection is aborted at the end.
    """

    def register(body: Callable[..., None]) -> Script:
        def script(peer: BasePeer[Any, Any]) -> None:
            reached = stage(peer)
            body(*reached)
            if aborted:
                reached[0].abort()

        _name(script, body.__module__, body.__name__, body.__doc__)
        return case(*requirements, needs=needs, profiles=profiles)(script)

    return register


def connected(
    *requirements: str,
    to: str = "chargen",
    needs: tuple[str, ...] = (),
    profiles: tuple[str, ...] | None = None,
    aborted: bool = False,
    **offer: Any,
) -> Registration:
    """As :func:`staged`, for a connection that the tester opens to a service.

    ``offer`` is what the tester offers, see the protocol's ``Peer.connect``.
    """

    def stage(peer: BasePeer[Any, Any]) -> tuple[Any]:
        return (peer.connect(to, **offer),)

    return staged(*requirements, stage=stage, needs=needs, profiles=profiles, aborted=aborted)


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
