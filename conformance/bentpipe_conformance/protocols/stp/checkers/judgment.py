"""One finding from one comparison."""

from __future__ import annotations

from bentpipe_conformance.engine.context import HasPacket
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context


def judged(
    context: Context,
    good: bool,
    right: str,
    wrong: str,
    *where: HasPacket,
    expected: str = "",
    actual: str = "",
) -> Finding:
    """The finding ``right`` if the comparison is ``good``, otherwise ``wrong`` with its reasons."""
    if good:
        return context.holds(right, *where)
    return context.violated(wrong, *where, expected=expected, actual=actual)
