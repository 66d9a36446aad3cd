"""Mutants of the RWBP reference, a module per group of requirements; each declares its own.

A mutant is a method in the place of one of a part of the reference, a small subclass of a part, or
a function in the place of one, with the decorator :func:`mutant`; its title is the first line of
its docstring. One that is the true reference with other settings is declared by
:func:`mutant_setting`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, get_type_hints

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.tcp.wire.segment import Flags, Segment

PROFILE = "rwbp1"

MUTANTS: list[Mutant] = []
"""Every mutant, in the order of declaration; the modules fill it when they are imported."""

Part = TypeVar("Part", bound=Callable[..., object])


def is_bare(segment: Segment) -> bool:
    """Whether it is a pure acknowledgment without blocks."""
    return not (segment.payload or segment.flags & ~Flags.ACK or segment.sack_blocks)


class Altering(RwbpConnection):
    """A connection that alters each segment it sends, whether with data or without."""

    def transmit(self, now: float) -> list[Segment]:
        """See :class:`RwbpConnection`."""
        segments = super().transmit(now)
        for segment in segments:
            self.alter(segment, now)
        return segments

    def transmit_unscheduled(self, now: float) -> list[Segment]:
        """See :class:`RwbpConnection`."""
        segments = super().transmit_unscheduled(now)
        for segment in segments:
            self.alter(segment, now)
        return segments

    def serve(self, now: float) -> Segment:
        """See :class:`RwbpConnection`."""
        segment = super().serve(now)
        if self.agreed:
            self.alter(segment, now)
        return segment

    def alter(self, segment: Segment, now: float) -> None:
        """Change ``segment`` before it is sent."""
        raise NotImplementedError


def mutant(
    identifier: str, method: str = "", *, breaks: str, part: str = "parse", setting: str = "",
    **settings: Any,
) -> Callable[[Part], Part]:  # fmt: skip
    """Declare a mutant: a method, a subclass of a part, or a function in the place of a part.

    Args:
        identifier: permanent, such as ``rwbp-one-copy``.
        method: what a function replaces of the class that its ``self`` is annotated with.
        breaks: the requirement whose checker must notice.
        part: the name of the part that a function replaces.
        setting: the setting of the reference that is mutated; empty for its usual one.
        settings: configuration that the defect takes.
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
            change: dict[str, Any] = {part: mutated}
            return replace(setup, parts=replace(setup.parts, **change))

        MUTANTS.append(Mutant(identifier, breaks, title, configure, PROFILE, setting))
        return mutated

    return declare


def mutant_setting(
    identifier: str, title: str, *, breaks: str, setting: str = "", **settings: Any
) -> None:
    """Declare a mutant that is the true reference with other settings; see :func:`mutant`."""
    MUTANTS.append(
        Mutant(
            identifier, breaks, title, lambda setup: setup.configured(**settings), PROFILE, setting
        )
    )
