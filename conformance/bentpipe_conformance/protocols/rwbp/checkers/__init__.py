"""The checkers of the suite rwbp, a module per group of requirements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from bentpipe_conformance.engine import context
from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.context import judged, until_violated
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.rwbp.replay.prepared import Prepared
from bentpipe_conformance.protocols.rwbp.replay.sender import TICK_S

Context = context.Context[Prepared]
Findings = Iterator[Finding]

__all__ = ["TICK_S", "judged"]

PATIENCE_S = 100.0
"""For so long nothing is given up without a segment of the peer's (RWBP-TM-006)."""


_Check = Callable[[Any, Context], Findings]


def rule(
    requirement: str,
    *,
    at_once: bool = False,
    agreed: bool = False,
    once: bool = False,
    behind: _Check | None = None,
) -> Callable[[_Check], _Check]:
    """Register the checker of a requirement.

    Args:
        requirement: its identifier.
        at_once: say nothing where a link rate or a gateway may delay what leaves at once.
        agreed: say nothing of connections without RWBP.
        once: say nothing behind the first violation, which the rest would only repeat.
        behind: what judges instead where a link rate or a gateway may delay what leaves.
    """

    def declare(check: _Check) -> _Check:
        @wraps(check)
        def guarded(flow: Any, context: Context) -> Findings:
            waits = (at_once or behind is not None) and not flow.leaves_at_once(context.ics)
            judging = behind if waits else check
            if judging is not None and (not agreed or flow.agreed):
                found = judging(flow, context)
                yield from until_violated(found) if once else found

        return checker(requirement)(guarded)

    return declare


def ip_queue(context: Context) -> int:
    """Places of the IP queue, by the conformance statement (section 9.3)."""
    return int(context.ics.get("ip_queue", 10))


def spans(items: Iterable[tuple[int, int]]) -> str:
    """Ranges, for a sentence."""
    return ", ".join(f"[{left}, {right})" for left, right in items) or "none"
