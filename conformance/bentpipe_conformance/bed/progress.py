"""The progress of a long task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a long task.

    Attributes:
        phase: ``wait``, ``download``, ``unpack``, ``configure``, ``compile`` or ``install``.
        done: the part of the phase that is done.
        total: the whole in the same unit, an estimate for ``compile``; 0 if unknown.
        text: a description for people.
    """

    phase: str
    done: float
    total: float
    text: str


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """Report nothing."""
    del step
