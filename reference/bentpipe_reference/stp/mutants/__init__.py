"""Mutants of the STP reference, a module per group of requirements.

A mutant is a small subclass of one of the reference's parts, or of a host, with the decorator
:func:`mutant`; its title is the first line of its docstring. One that changes a single expression
is declared without a class statement, by :func:`overriding` or :func:`returning`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.setup import Setup

MUTANTS: list[Mutant] = []
"""Every mutant, in the order of declaration; the modules fill it when they are imported."""

_Part = TypeVar("_Part", bound=type[Any])
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def mutant(
    identifier: str, breaks: str, title: str = "", *, setting: str = "",
    also: tuple[type[Any], ...] = (), **settings: Any,
) -> Callable[[_Part], _Part]:  # fmt: skip
    """Declare a class a mutant.

    Args:
        identifier: permanent, such as ``stp-goes-back``.
        breaks: the requirement whose checker must notice.
        title: the defect, where it is not the first line of the class's docstring.
        setting: the setting of the reference that is mutated; empty for its usual one.
        also: further parts that the defect takes.
        settings: configuration that the defect takes.
    """

    def declare(part: _Part) -> _Part:
        line = (part.__doc__ or "").partition("\n")[0].removesuffix(".")
        told = title or line[:1].lower() + line[1:]
        add(identifier, breaks, told, setting, (part, *also), **settings)
        return part

    return declare


def overriding(
    part: type[Any], method: Callable[_Parameters, _Result], new: Callable[_Parameters, _Result]
) -> type[Any]:
    """A subclass of a part with a method of the part, and of that type, replaced."""
    return type(part.__name__, (part,), {method.__name__: new})


def returning(part: type[Any], method: Callable[..., _Result], value: _Result) -> type[Any]:
    """A subclass of a part with a method that does nothing but return a value."""
    return overriding(part, method, lambda *_, **__: value)


def add(
    identifier: str, breaks: str, title: str, setting: str = "",
    parts: tuple[type[Any], ...] = (), **settings: Any,
) -> None:  # fmt: skip
    """Declare a mutant, which may take nothing but other settings."""

    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup.configured(**settings)

    MUTANTS.append(Mutant(identifier, breaks, title, configure, "stp1e2", setting))
