"""One mutant of a model: every run of the pr tier, cheap ones first, until one notices it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bentpipe_conformance.models.manifest import Manifest, Run
from bentpipe_conformance.models.mutation.sites import Mutant
from bentpipe_conformance.models.tool import Unfinished
from bentpipe_conformance.models.verification import Checker, Result, configured, copied
from bentpipe_conformance.selftest.mutation.division import KILLED, STILLBORN, SURVIVED

# Why a mutant survives.
SAME = "the same states in every run"
OTHER = "other states, and no property notices"
UNJUDGED = "not judged within the limits"

PATIENCE = 3.0
"""Times the seconds that the model itself takes, as recorded or on this machine now, or"""

LEAST_S = 20.0
"""seconds, if that is more, after which a run is given up."""

SMALL = 50_000
"""States generated, below which a search takes a second or two."""

_JUDGING = ("check", "liveness", "reach")

VIOLATED, UNREACHABLE = "violated", "unreachable"


@dataclass(frozen=True, slots=True)
class Kill:
    """How a run notices a mutant.

    Attributes:
        run: the run of the manifest.
        by: the property that is violated, or the state that is no longer reached.
        how: ``violated`` or ``unreachable``.
        depth: states of the counterexample; None where its length is not the shortest.
    """

    run: str
    by: str
    how: str
    depth: int | None = None


@dataclass(slots=True)
class Trial:
    """The outcome for one mutant.

    Attributes:
        id: the mutant's.
        result: killed, survived, or stillborn: one that cannot be parsed or evaluated, which is not
            counted.
        kind: for a survivor, one of the constants above.
        kills: the first, or every one where all were asked for.
        figures: of runs without a violation, the states: distinct, generated, depth.
        why: the sentence on what could not be evaluated or finished.
        seconds: of the model itself, by run.
    """

    id: str
    result: str = SURVIVED
    kind: str = ""
    kills: list[Kill] = field(default_factory=list)
    figures: dict[str, list[int]] = field(default_factory=dict)
    why: str = ""
    seconds: dict[str, float] = field(default_factory=dict)


class Control(Protocol):
    """Tells what the model itself shows."""

    def of(self, run: Run) -> Trial:
        """Its trial, in which this run has been made."""


def read_trial(item: Mapping[str, Any]) -> Trial:
    """A trial from its JSON."""
    return Trial(**{**item, "kills": [Kill(**kill) for kill in item["kills"]]})


def runs_of(manifest: Manifest) -> list[Run]:
    """The runs that may notice a mutant, in the order in which they are made.

    Small searches for safety go first, because they end a state space that has no end; then what
    must be reached, which takes a second each; then the others by the time that they take.
    """

    def place(run: Run) -> tuple[int, float]:
        if run.kind == "check" and (run.total or SMALL) < SMALL:
            return 0, run.total or 0
        return 1 if run.kind == "reach" else 2, run.seconds or 0.0

    runs = [run for run in manifest.runs if run.tier == "pr" and run.kind in _JUDGING]
    return sorted(runs, key=place)


def try_mutant(
    manifest: Manifest, mutant: Mutant | None, checker: Checker, control: Control | None, *,
    runs: Sequence[Run] = (), whole: bool = False,
) -> Trial:  # fmt: skip
    """Run a mutant; the model itself where there is none.

    Args:
        manifest: of the model.
        mutant: what to change.
        checker: one thread's worth of the model checker.
        control: tells what the model itself shows; None for the model itself.
        runs: the only ones; none for all of :func:`runs_of`.
        whole: whether everything that notices it is wanted, in every run, not only the first.

    Raises:
        Cancelled: the checker was cancelled.
    """
    trial = Trial(control_of(manifest.name) if mutant is None else mutant.id)
    with tempfile.TemporaryDirectory(prefix="bentpipe-mutant-") as scratch:
        twin = replace(manifest, folder=Path(scratch) / manifest.name)
        copied(manifest.folder, twin.folder)
        if mutant is not None:
            source = twin.folder / manifest.scope.module
            source.write_text(mutant.applied(source.read_text(encoding="utf-8")), encoding="utf-8")
        itself = None
        for run in runs or runs_of(manifest):
            itself = None if control is None else control.of(run)
            _try(trial, twin, run, checker, _limit(run, itself), whole=whole)
            if trial.result == STILLBORN or (trial.kills and not whole):
                break
    if trial.kills:
        trial.result = KILLED
    elif trial.result != STILLBORN and not trial.kind:
        same = itself is not None and trial.figures == itself.figures
        trial.kind = SAME if same else OTHER
    return trial


def control_of(model: str) -> str:
    """The identifier of the trial of the model itself."""
    return f"{model}:itself"


def _limit(run: Run, itself: Trial | None) -> float | None:
    """Seconds for a run; the model itself may take what the checker allows."""
    if itself is None:
        return None
    return max(LEAST_S, PATIENCE * max(run.seconds or 0.0, itself.seconds[run.name]))


def _try(
    trial: Trial, twin: Manifest, run: Run, checker: Checker, limit: float | None, *, whole: bool
) -> None:
    result = checker.check(twin, run, timeout=limit)
    if isinstance(result.problem, Unfinished):
        trial.kind, trial.why = UNJUDGED, f"{run.name}: {result.why}"
    elif result.problem is not None:
        if not trial.kills:
            trial.result, trial.why = STILLBORN, f"{run.name}: {result.why}"
    elif run.kind == "reach":
        if not result.violated:
            trial.kills.append(Kill(run.name, run.violates, UNREACHABLE))
        elif result.outcome is not None:
            trial.seconds[run.name] = round(result.outcome.seconds, 1)
    elif result.violated:
        trial.kills.append(Kill(run.name, result.violated, VIOLATED, _depth(result)))
        if whole:
            rest = _others(twin, run, result.violated)
            if rest:
                _try(trial, twin, replace(run, checks=rest), checker, limit, whole=True)
    else:
        outcome = result.outcome
        assert outcome is not None
        trial.figures[run.name] = [outcome.distinct, outcome.generated, outcome.depth]
        trial.seconds[run.name] = round(outcome.seconds, 1)


def _depth(result: Result) -> int | None:
    outcome = result.outcome
    return len(outcome.trace) if outcome is not None and outcome.name else None


def _others(manifest: Manifest, run: Run, violated: str) -> tuple[str, ...]:
    config = configured(manifest, run)
    return tuple(name for name in (*config.invariants, *config.properties) if name != violated)
