"""Protocol events as NDJSON, for validation against a model."""

from __future__ import annotations

import json
from typing import Any


class EventTrace:
    """Collects protocol events; each protocol says which there are.

    Attributes:
        events: the events so far.
    """

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events = list(events)

    def add(self, event: dict[str, Any]) -> None:
        """Take one event."""
        self.events.append(event)

    def lines(self) -> str:
        """The trace as NDJSON, one event per line."""
        return "".join(f"{json.dumps(event)}\n" for event in self.events)
