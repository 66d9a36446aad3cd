"""Which property a mutant dies through alone: whether the other properties let it live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bentpipe_conformance.models.manifest import Manifest, Run
from bentpipe_conformance.models.verification import Checker, configured

LIMIT_S = 180.0
"""For a mutant without its property; some state spaces have no end then."""


@dataclass(frozen=True, slots=True)
class Companions:
    """Who else notices a named mutant.

    Attributes:
        model: whose.
        run: the mutant.
        violates: the property that it has to break.
        others: the other properties of the same configuration that notice it, up to the first.
        problem: why that is not known; empty where it is.
    """

    model: str
    run: str
    violates: str
    others: tuple[str, ...]
    problem: str = ""

    @property
    def alone(self) -> bool:
        """Whether no other property of the configuration notices it."""
        return not self.others and not self.problem


def mutants_of(manifest: Manifest) -> list[Run]:
    """The named mutants of the pr tier."""
    return [run for run in manifest.runs if run.kind == "mutant" and run.tier == "pr"]


def companions_of(manifest: Manifest, run: Run, checker: Checker) -> Companions:
    """Run a named mutant with all that its configuration checks, but for what it has to break."""
    config = configured(manifest, replace(run, checks=()))
    known = (*config.invariants, *config.properties)
    rest = tuple(name for name in known if name != run.violates)
    if not rest:
        return Companions(manifest.name, run.name, run.violates, ())
    probe = replace(run, kind="check", violates="", checks=rest, depth=None)
    result = checker.check(manifest, probe, timeout=LIMIT_S)
    problem = "" if result.problem is None else result.why
    others = (result.violated,) if result.violated else ()
    return Companions(manifest.name, run.name, run.violates, others, problem)


def without(manifest: Manifest, found: Sequence[Companions]) -> list[str]:
    """The properties through which alone no mutant dies, those with a reason included."""
    alone = {item.violates for item in found if item.model == manifest.name and item.alone}
    named = {run.violates for run in mutants_of(manifest)}
    return [name for name in manifest.requirements if name in named - alone]
