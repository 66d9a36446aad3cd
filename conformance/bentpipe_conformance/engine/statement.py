"""An implementation's conformance statement (ICS): what it claims to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Ics = Mapping[str, Any]
"""Answers by item of the suite's proforma."""


def declared(ics: Ics, condition: str) -> bool:
    """Whether the statement claims ``condition``; an empty condition always holds.

    ``item`` asks for a yes, ``item=no`` for a no, ``item=one|another`` for one of those answers;
    conditions between commas have to hold together. An item without an answer claims nothing.
    """
    return all(_answered(ics, part.strip()) for part in condition.split(",") if part.strip())


def _answered(ics: Ics, condition: str) -> bool:
    item, _, answers = condition.partition("=")
    if answers == "no":
        return ics.get(item) is False
    return ics.get(item) in answers.split("|") if answers else bool(ics.get(item, False))
