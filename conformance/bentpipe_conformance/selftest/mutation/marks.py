"""Sets of lines and of mutants as numbers, one bit for each element.

Thousands of runs each reach thousands of lines: as sets these are gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from bentpipe_conformance.selftest.mutation.scope import Scope
from bentpipe_conformance.selftest.mutation.sites import Mutant

Line = tuple[str, int]
"""A module and the number of a line."""


class Marks:
    """Which bit stands for which line of the modules, and which for which mutant.

    Args:
        lengths: lines that each module has.
        mutants: identifiers.
    """

    def __init__(self, lengths: Mapping[str, int], mutants: Iterable[str]) -> None:
        # Lines are counted from 1.
        ends = accumulate((length + 1 for length in lengths.values()), initial=0)
        self._offsets = dict(zip(lengths, ends, strict=False))
        self._mutants = {name: at for at, name in enumerate(mutants)}

    @classmethod
    def of(cls, scope: Scope, mutants: Sequence[Mutant]) -> Marks:
        """Those for the mutants and their modules."""
        modules = sorted({item.module for item in mutants})
        lengths = {name: len(scope.source(name).splitlines()) for name in modules}
        return cls(lengths, sorted(item.id for item in mutants))

    def lines(self, lines: Iterable[Line]) -> int:
        """These lines."""
        return _together(self._offsets[module] + line for module, line in lines)

    def span(self, module: str, span: tuple[int, int]) -> int:
        """The lines of a module from the first to the last, both included."""
        return self.lines((module, line) for line in range(span[0], span[1] + 1))

    def mutants(self, names: Iterable[str]) -> int:
        """These mutants."""
        return _together(self._mutants[name] for name in names)


def _together(bits: Iterable[int]) -> int:
    found = 0
    for bit in bits:
        found |= 1 << bit
    return found
