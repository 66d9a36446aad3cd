"""What lines of a case have in common, whatever the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def arguments(given: Mapping[str, Any]) -> str:
    """Keyword arguments, after others."""
    return "".join(f", {name}={value!r}" for name, value in given.items())


def expression(names: Mapping[str, str], place: Sequence[Any]) -> str:
    """A place of a script, which is a base and a distance from it, as an expression.

    Args:
        names: of each base, the expression; any other one is 0.
        place: base and distance.
    """
    base, distance = place
    known = names.get(base)
    if known is None:
        return str(distance)
    return known if not distance else f"{known} {'+' if distance > 0 else '-'} {abs(distance)}"


def turned(back: int = 1) -> list[str]:
    """The lines of :meth:`BasePlayer.turn`."""
    return ["among = peer.open_connections", f"connection = among[-1 - {back} % len(among)]"]
