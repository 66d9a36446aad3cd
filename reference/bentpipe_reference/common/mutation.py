"""Mutants: small subclasses of the reference, each breaking exactly one requirement.

They prove that the suites have teeth: the self-test runs every case against every mutant and
each must fail on the requirement it breaks. A module of this package lists its mutants in a tuple
named ``MUTANTS``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.sender import Sender


@dataclass(frozen=True, slots=True)
class Mutant:
    """One deliberate defect.

    Attributes:
        id: permanent identifier, such as ``snr-two-duplicates-suffice``.
        breaks: the requirement whose checker must notice.
        title: the defect in one sentence.
        configure: turns the configuration of the true reference into the mutant's.
        profile: the profile whose reference it mutates, ``hk99``, ``rfc`` or ``stp1``.
        setting: of the reference that is mutated, such as ``max-rate``; empty for its usual one.
    """

    id: str
    breaks: str
    title: str
    configure: Callable[[Any], Any]
    profile: str = "rfc"
    setting: str = ""


def with_sender(sender_class: type[Sender]) -> Callable[[EndpointConfig], EndpointConfig]:
    """The ``configure`` of a mutant whose sender is ``sender_class``."""
    return lambda config: replace(config, sender_class=sender_class)


@cache
def load_mutants() -> Mapping[str, Mutant]:
    """Every mutant by identifier.

    Raises:
        ValueError: two mutants share an identifier.
    """
    found: dict[str, Mutant] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda item: item.name):
        for mutant in importlib.import_module(f"{__name__}.{module.name}").MUTANTS:
            if mutant.id in found:
                raise ValueError(f"two mutants are called {mutant.id}")
            found[mutant.id] = mutant
    return found
