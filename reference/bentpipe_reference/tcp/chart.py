"""The state diagram of a TCP connection, drawn from the table of transitions."""

from __future__ import annotations

from bentpipe_reference.common.diagram import Transition, diagram
from bentpipe_reference.tcp.states import State, transitions


def state_diagram() -> str:
    """The diagram as SVG, without the ends that lead from every state to CLOSED."""
    return diagram(
        "The states of a TCP connection",
        [state.value for state in State],
        (Transition(*transition) for transition in transitions()),
    )
