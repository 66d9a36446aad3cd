"""The mutants of the reference by what they break."""

from __future__ import annotations

from bentpipe_reference.common.mutation import load_mutants


def mutants_of(requirement: str) -> tuple[str, ...]:
    """Identifiers of the mutants that break a requirement."""
    return tuple(item.id for item in load_mutants().values() if item.breaks == requirement)
