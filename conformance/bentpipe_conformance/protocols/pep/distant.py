"""An end that is not next to the box: what arrives for it is on its way for a while.

An end that answers at once leaves the box beside it nothing to have under way, so that its window,
its timers and its recovery show little.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.tcp.codec import Tcp


class Distant(End):
    """An end with a path of its own, of ``offer.away_s`` seconds in one direction."""

    def __init__(self, *args: Any) -> None:
        self._coming: deque[tuple[float, Tcp]] = deque()
        self._timer: float | None = None
        super().__init__(*args)

    @property
    def due(self) -> float | None:
        """When something happens by itself: a segment arrives, or the timer expires."""
        times = [self._coming[0][0]] if self._coming else []
        return min([*times, self._timer] if self._timer is not None else times, default=None)

    @due.setter
    def due(self, time: float | None) -> None:
        self._timer = time

    def take(self, tcp: Tcp) -> None:
        """A segment begins its way."""
        self._coming.append((self._now() + self.offer.away_s, tcp))

    def expire(self) -> None:
        """What is due happens."""
        if self._coming and self._coming[0][0] <= self._now():
            super().take(self._coming.popleft()[1])
        else:
            super().expire()
