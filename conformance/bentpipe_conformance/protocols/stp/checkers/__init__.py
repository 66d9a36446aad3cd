"""The checkers of the suite stp, a module per group of requirements, and what all of them use."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine import context
from bentpipe_conformance.engine.context import HasPacket
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.replay.prepared import Prepared

Context = context.Context[Prepared]
Findings = Iterator[Finding]


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
