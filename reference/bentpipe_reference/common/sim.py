"""A discrete-event simulation: a clock in virtual seconds and a queue of planned calls."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any


def earliest(*deadlines: float | None) -> float | None:
    """The first of the deadlines, None when there is none."""
    first = None
    for deadline in deadlines:
        if deadline is not None and (first is None or deadline < first):
            first = deadline
    return first


Handle = list[Any]
"""One planned call: its time, its number among all calls, and the action, None once it is over.

A list, for the queue compares it, and a simulation plans two for each packet.
"""


def cancel(handle: Handle) -> None:
    """Cancel a call; nothing happens when it has run."""
    handle[2] = None


class Simulation:
    """Runs planned calls in time order, calls of the same time in the order they were planned.

    Attributes:
        now: virtual seconds since the start.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[Handle] = []
        self._planned = 0

    def call_at(self, time: float, action: Callable[[], None]) -> Handle:
        """Plan ``action`` for ``time``, or for now when that has passed."""
        if time < self.now:
            time = self.now
        self._planned += 1
        handle: Handle = [time, self._planned, action]
        heapq.heappush(self._queue, handle)
        return handle

    def call_after(self, delay: float, action: Callable[[], None]) -> Handle:
        """Plan ``action`` for ``delay`` seconds from now."""
        return self.call_at(self.now + delay, action)

    def abandon(self) -> None:
        """Cancel every planned call, for nobody will go on with the simulation.

        A call holds what it acts on, which often holds the call or the simulation: circles that
        only the garbage collector finds.
        """
        for handle in self._queue:
            cancel(handle)
        self._queue.clear()

    def next_time(self) -> float | None:
        """Time of the next planned call, None when nothing is planned."""
        while self._queue and self._queue[0][2] is None:
            heapq.heappop(self._queue)
        return float(self._queue[0][0]) if self._queue else None

    def step(self, limit: float = math.inf) -> bool:
        """Advance to the next planned call and run it; False when none is planned up to ``limit``.

        The clock then stays where it is.
        """
        queue = self._queue
        while queue and queue[0][0] <= limit:
            handle = heapq.heappop(queue)
            action, handle[2] = handle[2], None
            if action is not None:
                self.now = handle[0]
                action()
                return True
        return False

    def run_until(self, time: float) -> None:
        """Run every call planned up to and including ``time``, then advance to ``time``."""
        queue, take = self._queue, heapq.heappop
        while queue and queue[0][0] <= time:
            handle = take(queue)
            action, handle[2] = handle[2], None
            if action is not None:
                self.now = handle[0]
                action()
        self.now = max(self.now, time)

    def run_while(self, pending: Callable[[], bool], limit: float) -> None:
        """Run planned calls while ``pending()``, but none planned for later than ``limit``."""
        while pending() and self.step(limit):
            pass

    def run(self) -> None:
        """Run until nothing is planned."""
        while self.step():
            pass


class Alarm:
    """The next moment at which an endpoint on a simulation has something to do.

    Args:
        simulation: the clock.
        wake: called then; it has to set the alarm anew.
    """

    def __init__(self, simulation: Simulation, wake: Callable[[], None]) -> None:
        self._simulation = simulation
        self._wake = wake
        self._handle: Handle | None = None

    def set(self, deadline: float | None) -> None:
        """Expire at ``deadline``, or earlier if that was set before; None changes nothing.

        A later deadline needs no new call: the earlier one sets the alarm anew.
        """
        if deadline is None:
            return
        handle = self._handle
        if handle is None or handle[2] is None or deadline < handle[0]:
            if handle is not None:
                cancel(handle)
            self._handle = self._simulation.call_at(deadline, self._wake)
