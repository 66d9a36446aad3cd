"""Cases that share how they begin: a connection in the situation that they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from bentpipe_conformance.engine.case import Script, case
from bentpipe_conformance.engine.peer import BasePeer

Registration = Callable[[Callable[..., None]], Script]
"""Registers a function as a case."""


def rename(script: Script, module: str, name: str, purpose: str | None) -> Script:
    """A script with the names from which a case takes its identifier and its title."""
    script.__module__ = module
    script.__name__ = script.__qualname__ = name
    script.__doc__ = purpose
    return script


def staged(
    *requirements: str, stage: Callable[[Any], tuple[Any, ...]], needs: tuple[str, ...] = (),
    profiles: tuple[str, ...] | None = None, aborted: bool = False,
) -> Registration:  # fmt: skip
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

        named = rename(script, body.__module__, body.__name__, body.__doc__)
        return case(*requirements, needs=needs, profiles=profiles)(named)

    return register


def connected(
    *requirements: str, to: str | int = "chargen", needs: tuple[str, ...] = (),
    profiles: tuple[str, ...] | None = None, aborted: bool = False, **offer: Any,
) -> Registration:  # fmt: skip
    """As :func:`staged`, for a connection that the tester opens to a service.

    ``offer`` is what the tester offers, see the protocol's ``Peer.connect``.
    """

    def stage(peer: BasePeer[Any, Any]) -> tuple[Any]:
        return (peer.connect(to, **offer),)

    return staged(*requirements, stage=stage, needs=needs, profiles=profiles, aborted=aborted)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table of cases; a protocol derives rows that say what is done.

    Attributes:
        name: the last part of the case's identifier.
        purpose: what the case's docstring would be.
        requirements: see :func:`case`.
        needs: see :func:`case`.
        profiles: see :func:`case`.
    """

    name: str
    purpose: str
    requirements: tuple[str, ...]
    needs: tuple[str, ...] = ()
    profiles: tuple[str, ...] | None = None


_Row = TypeVar("_Row", bound=Row)


def each(module: dict[str, Any], rows: Iterable[_Row], drive: Callable[[Any, _Row], None]) -> None:
    """Register each row of a table as a case: ``drive`` of the scripted peer and the row.

    ``module`` are the names of the module to whose group the cases belong, its ``globals()``;
    pytest finds the cases there.
    """
    for row in rows:

        def script(peer: BasePeer[Any, Any], row: _Row = row) -> None:
            drive(peer, row)

        name = f"test_{row.name.replace('-', '_')}"
        # pytest takes what has a default for no fixture.
        named = rename(script, module["__name__"], name, row.purpose)
        module[name] = case(*row.requirements, needs=row.needs, profiles=row.profiles)(named)
