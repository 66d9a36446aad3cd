"""Opening a connection (TOY-CON)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.toy.checkers import Context, Findings, prompt
from bentpipe_conformance.protocols.toy.codec import OPEN
from bentpipe_conformance.protocols.toy.replay.flow import Flow


@checker("TOY-CON-001")
def every_open_is_answered(flow: Flow, context: Context) -> Findings:
    """ACCEPT or REFUSE follows at once."""
    for event in flow.heard:
        if event.toy.kind == OPEN:
            yield from prompt(flow, event, context)
