"""Mutants of the PEP reference, a module per group of requirements; each declares its own.

A mutant is a method in the place of one of a part of the reference, a subclass of a part, or a
function that reads packets, with the decorator :func:`mutant`; its title is the first line of its
docstring. One that is the true reference with other settings is declared by
:func:`mutant_setting`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, get_type_hints

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.pep.parts import Setup

PROFILE = "pep1"

MUTANTS: list[Mutant] = []
"""Every mutant, in the order of declaration; the modules fill it when they are imported."""

Part = TypeVar("Part", bound=Callable[..., object])


def mutant(
    identifier: str, method: str = "", *, breaks: str, setting: str = "", **settings: Any
) -> Callable[[Part], Part]:
    """Declare a mutant: a method, a subclass of a part, or a function that reads packets.

    Args:
        identifier: permanent, such as ``pep-acknowledges-the-end-early``.
        method: what a function replaces of the class that its ``self`` is annotated with.
        breaks: the requirement whose checker must notice.
        setting: the setting of the reference that is mutated; empty for its usual one.
        settings: of the box, which the defect takes.
    """

    def declare(mutated: Part) -> Part:
        title = (mutated.__doc__ or "").partition("\n")[0]
        kind: object = mutated
        if method:
            owner = get_type_hints(mutated)["self"]
            kind = type(f"{owner.__name__}Mutant", (owner,), {method: mutated})

        def configure(setup: Setup) -> Setup:
            setup = setup.configured(**settings)
            if isinstance(kind, type):
                return setup.with_part(kind)
            change: dict[str, Any] = {"parse": mutated}
            return replace(setup, parts=replace(setup.parts, **change))

        MUTANTS.append(Mutant(identifier, breaks, title, configure, PROFILE, setting))
        return mutated

    return declare


def mutant_setting(
    identifier: str, title: str, configure: Callable[[Setup], Setup], *, breaks: str,
    setting: str = "",
) -> None:  # fmt: skip
    """Declare a mutant that is the true reference with other settings; see :func:`mutant`."""
    MUTANTS.append(Mutant(identifier, breaks, title, configure, PROFILE, setting))
