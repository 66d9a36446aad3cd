"""Blind rounds: what people wrote who know the specification and not the exam.

A round of faults is a module ``bentpipe_reference.NAME.mutants.blind.round_N`` that lists them in
``FAULTS``; one of what is permitted though the reference does otherwise is ``variants_N``, with
``VARIANTS``. The verdicts of its first run, which alone count, and their review are beside it in a
TOML file of the same name.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

FAULTS = "round"
VARIANTS = "variants"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way in which an implementation might differ from the reference.

    Attributes:
        id: permanent, such as ``tcp-b1-late-timer``.
        title: what the implementation does, in one sentence.
        clause: what permits it: RFC and section (``RFC 6298 section 5.3``), or an identifier of
            STP/1; several separated by ``; ``.
        configure: turns the setup of the true reference into the other one's.
        profile: the profile whose reference is changed; empty for the suite's first.
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


class Fault(Variant):
    """One that its clause forbids."""

    __slots__ = ()


def rounds_of(protocol: str, kind: str = FAULTS) -> list[int]:
    """The numbers of a protocol's rounds of faults, or of variants."""
    name = _package(protocol)
    if importlib.util.find_spec(name) is None:
        return []
    package = importlib.import_module(name)
    found = (item.name.removeprefix(f"{kind}_") for item in pkgutil.iter_modules(package.__path__))
    return sorted(int(number) for number in found if number.isdigit())


def load_round(protocol: str, number: int, kind: str = FAULTS) -> dict[str, Variant]:
    """The faults of a round, or its variants, by identifier.

    Raises:
        ValueError: there is no such round, or two share an identifier.
    """
    held = rounds_of(protocol, kind)
    if number not in held:
        known = ", ".join(map(str, held)) or "none"
        what = "round" if kind == FAULTS else "round of variants"
        raise ValueError(f"{protocol} has no {what} {number}; its rounds: {known}")
    return written_in(importlib.import_module(f"{_package(protocol)}.{kind}_{number}"))


def written_in(module: ModuleType) -> dict[str, Variant]:
    """The faults or variants that a module lists, by identifier.

    Raises:
        ValueError: two share an identifier.
    """
    found: dict[str, Variant] = {}
    for item in [*getattr(module, "FAULTS", ()), *getattr(module, "VARIANTS", ())]:
        if item.id in found:
            raise ValueError(f"two of {module.__name__} have the identifier {item.id}")
        found[item.id] = item
    return found


def _package(protocol: str) -> str:
    return f"bentpipe_reference.{protocol}.mutants.blind"
