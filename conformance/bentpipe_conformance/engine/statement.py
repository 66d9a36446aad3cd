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
    return all(_answered(ics, part) for part in _parts(condition))


def unclaimed(ics: Ics, *conditions: str) -> str:
    """What keeps ``conditions`` from being claimed, in a sentence; empty when they are."""
    missing = dict.fromkeys(
        _missing(ics, part)
        for condition in conditions
        for part in _parts(condition)
        if not _answered(ics, part)
    )
    return f"the conformance statement {' and '.join(missing)}" if missing else ""


def _missing(ics: Ics, condition: str) -> str:
    item, _, answers = condition.partition("=")
    answer = ics.get(item)
    if not answers:
        return f"does not claim {item}"
    if answers == "no":
        return f"claims {item}" if answer else f"does not say whether there is {item}"
    if answer is None:
        return f"does not name its {item}"
    return f"names {answer} as its {item}, not {' or '.join(answers.split('|'))}"


def _parts(condition: str) -> list[str]:
    return [part.strip() for part in condition.split(",") if part.strip()]


def _answered(ics: Ics, condition: str) -> bool:
    item, _, answers = condition.partition("=")
    if answers == "no":
        return ics.get(item) is False
    return ics.get(item) in answers.split("|") if answers else bool(ics.get(item, False))
