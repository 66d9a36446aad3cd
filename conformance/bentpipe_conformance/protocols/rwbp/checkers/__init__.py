"""The checkers of the suite rwbp, a module per group of requirements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from bentpipe_conformance.engine import context
from bentpipe_conformance.engine.context import HasPacket
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.statement import declared
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.prepared import Prepared

Context = context.Context[Prepared]
Findings = Iterator[Finding]

__all__ = ["AT_ONCE_S"]


def judged(
    context: Context, met: bool, sentence: str, *where: HasPacket, expected: str, actual: str
) -> Finding:
    """A finding that a requirement was met, or violated, with one sentence for both."""
    if met:
        return context.holds(sentence, *where)
    return context.violated(sentence, *where, expected=expected, actual=actual)


def until_violated(findings: Iterable[Finding]) -> Findings:
    """Findings up to the first violation, where the rest would only repeat it."""
    for finding in findings:
        yield finding
        if finding.verdict is Verdict.FAIL:
            return


def leaves_at_once(context: Context) -> bool:
    """Whether nothing but windows keeps a segment back: neither a link rate nor a gateway."""
    return not (declared(context.ics, "link_rate") or declared(context.ics, "gateway"))


_Check = Callable[[Any, Context], Findings]


def where_nothing_waits(check: _Check) -> _Check:
    """A checker of what leaves at once, silent where a link rate or a gateway may delay it."""

    @wraps(check)
    def guarded(flow: Any, context: Context) -> Findings:
        if leaves_at_once(context):
            yield from check(flow, context)

    return guarded


def spans(items: Iterable[tuple[int, int]]) -> str:
    """Ranges, for a sentence."""
    return ", ".join(f"[{left}, {right})" for left, right in items) or "none"
