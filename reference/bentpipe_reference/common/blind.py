"""Blind rounds: faults written by people who know the specification and not the exam.

A round is a module ``bentpipe_reference.NAME.mutants.blind.round_N`` that lists its faults in
``FAULTS``. The verdicts of its first run, which alone count, and their review are beside it in
``round_N.toml``.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault that an implementation might ship.

    Attributes:
        id: permanent, such as ``tcp-b1-late-timer``.
        title: what the implementation does wrong, in one sentence.
        clause: what forbids it: RFC and section (``RFC 6298 section 5.3``), or an identifier of
            STP/1; several separated by ``; ``.
        configure: turns the setup of the true reference into the faulty one's.
        profile: the profile whose reference is at fault; empty for the suite's first.
        setting: of the reference; empty for its usual one.
        ics: answers of the conformance statement that differ from the reference's.
    """

    id: str
    title: str
    clause: str
    configure: Callable[[Any], Any]
    profile: str = ""
    setting: str = ""
    ics: Mapping[str, Any] = field(default_factory=dict)


def rounds_of(protocol: str) -> list[int]:
    """The numbers of a protocol's rounds."""
    name = _package(protocol)
    if importlib.util.find_spec(name) is None:
        return []
    package = importlib.import_module(name)
    found = (item.name.removeprefix("round_") for item in pkgutil.iter_modules(package.__path__))
    return sorted(int(number) for number in found if number.isdigit())


def load_round(protocol: str, number: int) -> dict[str, Fault]:
    """The faults of a round by identifier.

    Raises:
        ValueError: there is no such round, or two faults share an identifier.
    """
    if number not in rounds_of(protocol):
        known = ", ".join(map(str, rounds_of(protocol))) or "none"
        raise ValueError(f"{protocol} has no round {number}; its rounds: {known}")
    return faults_of(importlib.import_module(f"{_package(protocol)}.round_{number}"))


def faults_of(module: ModuleType) -> dict[str, Fault]:
    """The faults that a module lists, by identifier.

    Raises:
        ValueError: two share an identifier.
    """
    found: dict[str, Fault] = {}
    for item in module.FAULTS:
        if item.id in found:
            raise ValueError(f"two faults of {module.__name__} have the identifier {item.id}")
        found[item.id] = item
    return found


def _package(protocol: str) -> str:
    return f"bentpipe_reference.{protocol}.mutants.blind"
