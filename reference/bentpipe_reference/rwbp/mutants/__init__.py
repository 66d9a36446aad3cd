"""Mutants of the RWBP reference, a module per group of requirements; each declares its own.

A mutant is a method in the place of one of a part of the reference, a small subclass of a part, or
a function in the place of one, with the decorator :func:`mutant`; its title is the first line of
its docstring. One that is the true reference with other settings is declared by
:func:`mutant_setting`.
"""

from __future__ import annotations

from typing import Any

from bentpipe_reference.common.mutation import Declarations
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.tcp import mutants as tcp
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_DECLARED = Declarations("rwbp1")

MUTANTS = _DECLARED.mutants
"""Every mutant, in the order of declaration; the modules fill it when they are imported."""

mutant = _DECLARED.mutant


def is_bare(segment: Segment) -> bool:
    """Whether it is a pure acknowledgment without blocks."""
    return not (segment.payload or segment.flags & ~Flags.ACK or segment.sack_blocks)


class Altering(tcp.Altering, RwbpConnection):
    """A connection that alters each segment it sends, whether with data or without."""

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


def mutant_setting(identifier: str, title: str, *, breaks: str, **settings: Any) -> None:
    """Declare a mutant that is the true reference with other settings; see :func:`mutant`."""
    _DECLARED.of_setup(identifier, title, lambda it: it.configured(**settings), breaks=breaks)
