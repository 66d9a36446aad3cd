"""The states of a connection, and the shape of the state table (STP/1 section 9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, TypeVar

from bentpipe_reference.stp.packets import Type


class State(IntEnum):
    """The states of section 4, with SSCOP's numbers."""

    IDLE = 1
    OUTGOING = 2
    INCOMING = 3
    OUTGOING_RELEASE = 4
    READY = 10

    @property
    def title(self) -> str:
        """The name in the state table."""
        return _TITLES[self]


_TITLES = {
    State.IDLE: "idle",
    State.OUTGOING: "outgoing connection pending",
    State.INCOMING: "incoming connection pending",
    State.READY: "data transfer ready",
    State.OUTGOING_RELEASE: "outgoing disconnection pending",
}

TAGGED = frozenset({Type.SD, Type.SDP, Type.POLL, Type.STAT, Type.USTAT})
"""The packets whose tag is checked in states 3, 10 and 4 (section 4)."""

Guard = TypeVar("Guard", bound=Callable[..., bool], covariant=True)
Action = TypeVar("Action", bound=Callable[..., None], covariant=True)


@dataclass(frozen=True, slots=True)
class Row(Generic[Guard, Action]):
    """One row of a cell; the first row whose guard holds applies.

    Attributes:
        when: the condition in the table's words; empty when it always holds.
        do: what happens, in the table's words.
        next: the state afterwards; None where the state idle decides.
        guard: whether the condition holds.
        action: does what the row says.
        again: the packet is then handled as in the state idle.
    """

    when: str
    do: str
    next: State | None
    guard: Guard
    action: Action
    again: bool = False


Cells = dict[Type, tuple[Row[Any, Any], ...]]
"""The rows of one state by packet type."""

Table = dict[State, Cells]


def always(*_: object) -> bool:
    """The guard of a row without a condition."""
    return True
