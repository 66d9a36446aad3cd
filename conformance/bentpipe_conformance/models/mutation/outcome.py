"""What a run over the mutants of a model has found: score, kill matrix, survivors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bentpipe_conformance.models.mutation.sites import Mutant
from bentpipe_conformance.models.mutation.trial import UNREACHABLE, Trial
from bentpipe_conformance.selftest.mutation import division
from bentpipe_conformance.selftest.mutation.division import divided, sums
from bentpipe_conformance.selftest.mutation.explaining import Explanation, stale


def outcome_of(
    model: str, source: str, chosen: Sequence[Mutant], trials: Mapping[str, Trial],
    explanations: Mapping[str, Explanation], every: Sequence[Mutant],
) -> dict[str, Any]:  # fmt: skip
    """The machine-readable outcome.

    Args:
        model: its name.
        source: of its specification.
        chosen: the mutants that were to be tried.
        trials: what is known of them, and perhaps of others.
        explanations: by identifier.
        every: all mutants of the model.
    """
    parts = divided(chosen, trials, explanations)
    return {
        "model": model,
        "all": len(every),
        **parts.sums(),
        "problems": stale(explanations.values(), every, {item.id for item in parts.killed}),
        "matrix": _matrix([trials[item.id] for item in parts.killed]),
        "survivors": [_row(item, trials[item.id], source) for item in parts.survived],
        "explanations": [
            {**_row(item, trials[item.id], source), "class": explanations[item.id].kind,
             "reason": explanations[item.id].reason}
            for item in parts.explained
        ],
        "kills": [_row(item, trials[item.id], source) for item in parts.killed],
    }  # fmt: skip


def _matrix(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """A row per property: mutants that it notices, by configuration; those it alone notices."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    noticed: Counter[tuple[str, str]] = Counter()
    alone: Counter[tuple[str, str]] = Counter()
    for trial in trials:
        by = {(kill.by, kill.how) for kill in trial.kills}
        noticed.update(by)
        for kill in trial.kills:
            rows.setdefault((kill.by, kill.how), Counter())[kill.run] += 1
        if len(by) == 1:
            alone[next(iter(by))] += 1
    return [
        {"property": name, "how": how, "killed": noticed[name, how], "alone": alone[name, how],
         "runs": dict(rows[name, how].most_common())}
        for name, how in sorted(rows, key=lambda key: (key[1] == UNREACHABLE, -noticed[key], key))
    ]  # fmt: skip


def _row(item: Mutant, trial: Trial, source: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": item.id, "line": item.line, "before": item.text, "after": item.changed(source),
    }  # fmt: skip
    if trial.kills:
        kills = [{"run": kill.run, "by": kill.by, "how": kill.how} for kill in trial.kills]
        return row | {"kills": kills}
    return row | {"kind": trial.kind} | ({"why": trial.why} if trial.why else {})


_PUBLISHED = (
    "model", "all", "partial", "mutants", "killed", "survived", "explained", "stillborn", "score",
    "matrix",
)  # fmt: skip


def published(outcome: Mapping[str, Any], **when: Any) -> dict[str, Any]:
    """What the documentation shows: the sums, the matrix, survivors and explanations.

    Args:
        outcome: what was found.
        when: how and of what it was found: date, sample, seed, digests.
    """
    return when | division.published(outcome, _PUBLISHED)


def noticed(outcome: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """By definition, how many of its small changes each property has noticed."""
    found: dict[str, Counter[str]] = {}
    for row in outcome["kills"]:
        definition = row["id"].split(":")[1]
        for by in {kill["by"] for kill in row["kills"]}:
            found.setdefault(definition, Counter())[by] += 1
    return {name: dict(sorted(found[name].items())) for name in sorted(found)}


def as_text(outcome: Mapping[str, Any], *, kills: bool = False) -> list[str]:
    """The outcome as lines to read: survivors, the matrix, the sums."""
    lines = [f"== {outcome['model']}"]
    for row in outcome["survivors"]:
        lines += [*_told(row), f"  survived: {row['kind']}"]
    if kills:
        for row in outcome["kills"]:
            noticed = ", ".join(f"{kill['by']} in {kill['run']}" for kill in row["kills"])
            lines += [*_told(row), f"  killed by {noticed}"]
        for row in outcome["explanations"]:
            lines += [*_told(row), f"  explained, {row['class']}: {row['reason']}"]
    lines.append("")
    for row in outcome["matrix"]:
        runs = ", ".join(f"{run} {number}" for run, number in row["runs"].items())
        what = row["property"] if row["how"] != UNREACHABLE else f"{row['property']} (not reached)"
        lines.append(f"{what:<44}{row['killed']:>4}  {runs}")
    return [*lines, *outcome["problems"], f"{outcome['model']}: {sums(outcome)}"]


def _told(row: Mapping[str, Any]) -> list[str]:
    head = f"{row['id']}  (line {row['line']})"
    return ["", head, f"  - {row['before']}", f"  + {row['after']}"]
