"""What a long task tells about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """Where a long task stands.

    Attributes:
        phase: ``wait``, ``download``, ``unpack``, ``configure``, ``compile`` or ``install``.
        done: how much of the phase is done.
        total: how much there is to do in the same unit, an estimate for ``compile``; 0 if unknown.
        text: what it is doing, for people.
    """

    phase: str
    done: float
    total: float
    text: str


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """Tell nobody."""
    del step
