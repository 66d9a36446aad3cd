"""The states of a connection, and the shape of the state table (STP/1 section 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Concatenate, ParamSpec, TypeVar

from bentpipe_reference.stp.packets import Packet, Type


class State(IntEnum):
    """The states of section 4, with SSCOP's numbers."""

    IDLE = 1
    OUTGOING = 2
    OUTGOING_RELEASE = 4
    READY = 10

    @property
    def title(self) -> str:
        """The name in the state table."""
        return _TITLES[self]


_TITLES = {
    State.IDLE: "idle",
    State.OUTGOING: "outgoing connection pending",
    State.READY: "data transfer ready",
    State.OUTGOING_RELEASE: "outgoing disconnection pending",
}

TAGGED = frozenset({Type.SD, Type.SDP, Type.POLL, Type.STAT, Type.USTAT})
"""The packets whose tag is checked in states 10 and 4 (section 4)."""

Guarding = TypeVar("Guarding")
Acting = TypeVar("Acting")
W = TypeVar("W")
P = TypeVar("P", bound=Packet)
More = ParamSpec("More")


def always(*_: object) -> bool:
    """The guard of a row without a condition."""
    return True


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a cell; the first row whose guard holds applies.

    Attributes:
        kind: the type of packet in whose cell the row stands.
        when: the condition in the table's words; empty when it always holds.
        do: what happens, in the table's words.
        next: the state afterwards.
        action: does what the row says; a method of the class that acts.
        guard: whether the condition holds; a method of the class that knows the conditions.
        again: the packet is then handled as in the state idle, which brings about ``next``.
    """

    kind: Type
    when: str
    do: str
    next: State
    action: Callable[..., None]
    guard: Callable[..., bool] = always
    again: bool = False


def row(
    kind: type[P], when: str, do: str, after: State,
    action: Callable[Concatenate[Acting, W, P, More], None],
    guard: Callable[[Guarding, W, P], bool] = always,
    *, again: bool = False,
) -> Row:  # fmt: skip
    """A row whose guard and action take packets of the type whose cell it stands in.

    They are methods of a class, so that one table serves all objects of the class.
    """
    return Row(kind.type, when, do, after, action, guard, again)


Cells = dict[Type, list[Row]]
"""The rows of one state by packet type."""

Table = dict[State, Cells]


def cells(rows: Iterable[Row]) -> Cells:
    """The rows of one state, in order, by packet type."""
    found: Cells = {kind: [] for kind in Type}
    for item in rows:
        found[item.kind].append(item)
    return found
