"""Mutants: small subclasses of the reference, each breaking exactly one requirement.

The self-test runs every case against every mutant, and each must fail on the requirement it
breaks. A module of a protocol's package ``mutants`` lists its mutants in ``MUTANTS``, or the
package lists those of all its modules.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import bentpipe_reference


@dataclass(frozen=True, slots=True)
class Mutant:
    """One deliberate defect.

    Attributes:
        id: permanent identifier, such as ``snr-two-duplicates-suffice``.
        breaks: the requirement whose checker must notice.
        title: the defect in one sentence.
        configure: turns the setup of the true reference into the mutant's.
        profile: the profile whose reference it mutates, such as ``stp1e2``.
        setting: of the reference that is mutated, such as ``max-rate``; empty for its usual one.
    """

    id: str
    breaks: str
    title: str
    configure: Callable[[Any], Any]
    profile: str
    setting: str = ""


@cache
def load_mutants() -> Mapping[str, Mutant]:
    """Every mutant of every protocol by identifier.

    Raises:
        ValueError: two mutants share an identifier.
    """
    found: dict[str, Mutant] = {}
    for mutant in _listed():
        if mutant.id in found:
            raise ValueError(f"two mutants have the identifier {mutant.id}")
        found[mutant.id] = mutant
    return found


def _listed() -> Iterator[Mutant]:
    for protocol in pkgutil.iter_modules(bentpipe_reference.__path__):
        name = f"{bentpipe_reference.__name__}.{protocol.name}.mutants"
        if importlib.util.find_spec(name) is None:
            continue
        package = importlib.import_module(name)
        for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
            found = importlib.import_module(f"{name}.{module.name}")
            yield from getattr(found, "MUTANTS", ())
        yield from getattr(package, "MUTANTS", ())
