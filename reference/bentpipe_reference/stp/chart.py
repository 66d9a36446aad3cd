"""The state diagram of an STP connection, drawn from the state table."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_reference.common.diagram import Transition, diagram
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.states import State

_BY_USERS_AND_TIMERS = (
    (State.IDLE, State.OUTGOING, "the user calls"),
    (State.OUTGOING, State.OUTGOING_RELEASE, "five BEGINs without an answer"),
    (State.OUTGOING, State.OUTGOING_RELEASE, "the user aborts"),
    (State.READY, State.OUTGOING_RELEASE, "both streams complete"),
    (State.READY, State.OUTGOING_RELEASE, "the user aborts"),
    (State.READY, State.OUTGOING_RELEASE, "60 s without an answer"),
    (State.OUTGOING_RELEASE, State.IDLE, "five ENDs without an answer"),
)
"""Changes of state that no packet brings about (section 9)."""


def transitions() -> Iterator[Transition]:
    """Every change of state: those of the table by packet, then those by users and timers."""
    for state, cells in StpEndpoint(StpConfig(), 0).table.items():
        for kind, rows in cells.items():
            for row in rows:
                if row.next is not state:
                    label = f"{kind.name}: {row.when}" if row.when else kind.name
                    yield Transition(state.title, row.next.title, label)
    for state, after, label in _BY_USERS_AND_TIMERS:
        yield Transition(state.title, after.title, label)


def state_diagram() -> str:
    """The diagram as SVG."""
    order = (State.IDLE, State.OUTGOING, State.READY, State.OUTGOING_RELEASE)
    titles = [state.title for state in order]
    return diagram("The states of an STP connection", titles, transitions())
