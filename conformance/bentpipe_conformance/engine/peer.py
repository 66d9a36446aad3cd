"""What the scripted peers of all suites share."""

from __future__ import annotations

from typing import Protocol

STANDARD_SERVICES = {"echo": 7, "discard": 9, "chargen": 19}
"""Ports of the upper tester: RFC 862, RFC 863, RFC 864."""

PATIENCE_S = 5.0
"""Seconds a script waits beyond two round trips for something that a live IUT must do."""


class NotReached(Exception):
    """The script could not bring the implementation into the situation it is about."""


class ScriptedPeer(Protocol):
    """The tester on one lane during one case, as the engine sees it."""

    def wait(self, seconds: float) -> None:
        """Let time pass; what arrives waits to be looked at."""
        ...

    def finish(self) -> None:
        """End every connection still open, so that nothing is carried into the next case."""
        ...
