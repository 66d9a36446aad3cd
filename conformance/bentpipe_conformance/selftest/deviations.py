"""Deviations of implementations that are known and reviewed: ``deviations.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """What an implementation really does against a requirement.

    Attributes:
        stack: the implementation.
        requirement: the requirement, or several of one cause; with ``habits``, ``*`` for all.
        clause: what its source says.
        reason: why the implementation does otherwise.
        seen: the packets in which it was seen.
        settings: under which it shows; empty for all.
        instead: permitted alternatives of the checker that say what the implementation does; only
            what they permit is this deviation. Empty where the checker has none.
        habits: names of ways to take segments against the text; only what is no violation of an
            implementation with them is this deviation.
    """

    stack: str
    requirement: str | Sequence[str]
    clause: str
    reason: str
    seen: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    instead: Mapping[str, Any] = field(default_factory=dict)
    habits: Sequence[str] = ()

    @property
    def requirements(self) -> Sequence[str]:
        """The requirements that it deviates from."""
        return [self.requirement] if isinstance(self.requirement, str) else self.requirement

    def explains(self, requirement: str, settings: Mapping[str, Any]) -> bool:
        """Whether an accusation under these settings may be this deviation (see ``instead``)."""
        return not {requirement, "*"}.isdisjoint(self.requirements) and all(
            settings.get(name) == value for name, value in self.settings.items()
        )


@cache
def known_deviations(stack: str) -> tuple[Deviation, ...]:
    """Those of one implementation."""
    text = resources.files(__package__).joinpath("deviations.toml").read_text(encoding="utf-8")
    found = [Deviation(**table) for table in tomllib.loads(text)["deviation"]]
    return tuple(item for item in found if item.stack == stack)
