"""The checkers of the suite stp, a module per group of requirements, and what all of them use."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine import context
from bentpipe_conformance.engine.context import HasPacket
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.prepared import Prepared

Context = context.Context[Prepared]
Findings = Iterator[Finding]


def transfer(flow: Flow) -> bool:
    """Whether there are SDs, POLLs or reports: of a refused call, or one for a cookie, none."""
    sent = flow.sds_sent or flow.polls_sent or flow.reports_sent
    return bool(sent or flow.sds_heard or flow.polls_heard or flow.reports_heard)


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
