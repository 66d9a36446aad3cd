"""The checkers of the suite toy, a module per group of requirements."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine import context
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.toy.replay.flow import Event, Flow

Context = context.Context[None]
Findings = Iterator[Finding]

PROMPT_S = 0.1
"""Within which an answer has to be sent, or a timer to expire, seconds."""


def prompt(flow: Flow, event: Event, context: Context) -> Findings:
    """Whether what was heard was answered in time."""
    name = event.toy.name
    took = (flow.watched_until if event.answer is None else event.answer.time) - event.time
    if took > PROMPT_S + context.timing_error:
        yield context.violated(f"{name} is not answered within {PROMPT_S} s", event)
    elif event.answer is not None and took > PROMPT_S - context.timing_error:
        yield context.unclear(f"{name} is answered after about {PROMPT_S} s", event)
    elif event.answer is not None:
        yield context.holds(f"{name} is answered at once", event)
