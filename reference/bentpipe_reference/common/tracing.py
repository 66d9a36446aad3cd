"""Protocol events as NDJSON, for validation against a model."""

from __future__ import annotations

import argparse
import json
from typing import Any

from bentpipe_reference.common.link.profile import load_profiles


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


def recording_options(module: str, first: str, answer: str) -> argparse.ArgumentParser:
    """The options of a program that records a transfer over the virtual link.

    Args:
        module: the program's, below ``bentpipe_reference``.
        first: what the first packet of the forward direction is.
        answer: that of the return direction.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m bentpipe_reference.{module}",
        description="Record the protocol events of a transfer over the virtual link.",
    )
    parser.add_argument("--link", choices=sorted(load_profiles()), default="geo")
    parser.add_argument("--octets", type=count, default=30_000)
    parser.add_argument(
        "--drops", type=_ordinals, default=(), help=f"forward packets, as in 5,9; {first} is 1"
    )
    parser.add_argument("--return-drops", type=_ordinals, default=(), help=f"{answer} is 1")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def count(text: str) -> int:
    """A number that is not negative, from a command line."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _ordinals(text: str) -> tuple[int, ...]:
    return tuple(count(part) for part in text.split(","))
