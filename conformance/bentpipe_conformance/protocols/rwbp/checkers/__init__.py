"""The checkers of the suite rwbp, a module per group of requirements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from bentpipe_conformance.engine import context
from bentpipe_conformance.engine.context import judged, until_violated
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.statement import declared
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.prepared import Prepared

Context = context.Context[Prepared]
Findings = Iterator[Finding]

__all__ = ["AT_ONCE_S", "judged", "until_violated"]


def leaves_at_once(flow: Flow, context: Context) -> bool:
    """Whether nothing but windows keeps a segment back: neither a link rate nor a gateway."""
    ics = context.ics
    if not (declared(ics, "link_rate") or declared(ics, "gateway")):
        return True
    return ics.get("link_address", "") not in ("", flow.iut[0])


_Check = Callable[[Any, Context], Findings]


def where_nothing_waits(check: _Check) -> _Check:
    """A checker of what leaves at once, silent where a link rate or a gateway may delay it."""

    @wraps(check)
    def guarded(flow: Any, context: Context) -> Findings:
        if leaves_at_once(flow, context):
            yield from check(flow, context)

    return guarded


def spans(items: Iterable[tuple[int, int]]) -> str:
    """Ranges, for a sentence."""
    return ", ".join(f"[{left}, {right})" for left, right in items) or "none"
