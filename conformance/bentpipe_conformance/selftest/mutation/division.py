"""What has become of mutants, whatever they are mutants of: their division, the sums, the score."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

KILLED, SURVIVED, STILLBORN = "killed", "survived", "stillborn"


class Named(Protocol):
    """A mutant, as far as it is counted.

    Attributes:
        id: stable.
    """

    @property
    def id(self) -> str:
        """See the class."""


class Judged(Protocol):
    """A trial, as far as it is counted.

    Attributes:
        result: killed, survived, or stillborn: a mutant that is none, and not counted.
    """

    result: str


M = TypeVar("M", bound=Named)


@dataclass(frozen=True, slots=True)
class Division(Generic[M]):
    """Mutants by what has become of them.

    Attributes:
        chosen: those that were to be tried.
        tried: those that have been.
        alive: those tried that count.
        killed, explained, survived: the parts of those alive.
    """

    chosen: Sequence[M]
    tried: list[M]
    alive: list[M]
    killed: list[M]
    explained: list[M]
    survived: list[M]

    @property
    def score(self) -> float | None:
        """How many of the unexplained are killed, as a share; None where there are none."""
        judged = len(self.alive) - len(self.explained)
        return len(self.killed) / judged if judged else None

    def sums(self) -> dict[str, Any]:
        """How many there are of each, and the score."""
        return {
            "partial": len(self.tried) < len(self.chosen),
            "mutants": len(self.alive),
            "killed": len(self.killed),
            "survived": len(self.survived),
            "explained": len(self.explained),
            "stillborn": len(self.tried) - len(self.alive),
            "score": None if self.score is None else round(self.score, 4),
        }


def divided(
    chosen: Sequence[M], trials: Mapping[str, Judged], explained: Container[str]
) -> Division[M]:
    """The division of the chosen mutants by their trials and the identifiers explained."""
    tried = [item for item in chosen if item.id in trials]
    alive = [item for item in tried if trials[item.id].result != STILLBORN]
    killed = [item for item in alive if trials[item.id].result == KILLED]
    rest = [item for item in alive if trials[item.id].result != KILLED]
    return Division(
        chosen, tried, alive, killed,
        [item for item in rest if item.id in explained],
        [item for item in rest if item.id not in explained],
    )  # fmt: skip


_ROW = ("id", "before", "after", "kind", "class", "reason", "clause")


def published(outcome: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """What the documentation shows: these keys, and survivors and explanations without the runs."""
    rows = {
        name: [{key: row[key] for key in _ROW if row.get(key)} for row in outcome[name]]
        for name in ("survivors", "explanations")
    }
    return {name: outcome[name] for name in keys} | rows


def sums(outcome: Mapping[str, Any]) -> str:
    """How many there were, and the score, on one line."""
    score = "none" if outcome["score"] is None else f"{outcome['score']:.1%}"
    partial = " (partial: the run was interrupted)" if outcome["partial"] else ""
    counts = ", ".join(f"{outcome[name]} {name}" for name in ("killed", "survived", "explained"))
    return f"{outcome['mutants']} mutants, {counts}; score {score}{partial}"
