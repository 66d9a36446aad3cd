"""Watching a reference in this process: that it crashes or hangs is a finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

MOST_STEPS = 10_000
"""Steps at one moment of virtual time, after which a reference is held to hang."""

Result = TypeVar("Result")


class Watch:
    """Survives what it watches.

    Attributes:
        died: the exception that ended it, or that it hung, busy again and again without time
            passing; None while it lives.
    """

    def __init__(self) -> None:
        self.died: str | None = None
        self._moment = 0.0
        self._steps = 0

    def step(self, now: float, action: Callable[[], Result]) -> Result | None:
        """What ``action`` returns; None once it has ended."""
        if self.died is not None:
            return None
        if now > self._moment:
            self._moment, self._steps = now, 0
        self._steps += 1
        if self._steps > MOST_STEPS:
            self.died = f"it hung: {MOST_STEPS} steps without time passing"
            return None
        try:
            return action()
        except Exception as error:
            self.died = f"{type(error).__name__}: {error}"
            return None
