"""An implementation's conformance statement (ICS): what it claims to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Ics = Mapping[str, Any]
"""Answers by item of the suite's proforma."""


def declared(ics: Ics, condition: str) -> bool:
    """Whether the statement claims ``condition``; an empty condition always holds.

    ``item`` asks for a yes, ``item=one|another`` for one of those answers.
    """
    item, _, answers = condition.partition("=")
    if answers:
        return ics.get(item) in answers.split("|")
    return not item or bool(ics.get(item, False))
