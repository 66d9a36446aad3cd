"""The mutants of the reference, as the self-test and ``bentpipe show`` see them."""

from __future__ import annotations

from bentpipe_reference.common.mutation import Mutant, load_mutants


def mutants_of(requirement: str) -> tuple[str, ...]:
    """Identifiers of the mutants that break a requirement."""
    return tuple(item.id for item in load_mutants().values() if item.breaks == requirement)


__all__ = ["Mutant", "load_mutants", "mutants_of"]
