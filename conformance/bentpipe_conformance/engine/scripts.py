"""Cases that share how they begin: a connection in the situation that they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
