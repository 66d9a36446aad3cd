"""What a run over mutants has found: the score, the lists, whether it is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bentpipe_conformance.selftest.mutation import division
from bentpipe_conformance.selftest.mutation.division import KILLED, divided, sums
from bentpipe_conformance.selftest.mutation.explaining import Explanation, stale
from bentpipe_conformance.selftest.mutation.scope import Scope
from bentpipe_conformance.selftest.mutation.sites import Mutant
from bentpipe_conformance.selftest.mutation.trial import Trial


def outcome_of(
    suite: str, scope: Scope, chosen: Sequence[Mutant], trials: Mapping[str, Trial],
    explanations: Mapping[str, Explanation], every: Sequence[Mutant], *, complete: bool,
) -> dict[str, Any]:  # fmt: skip
    """The machine-readable outcome.

    Args:
        suite: the suite.
        scope: of the reference.
        chosen: the mutants that were to be tried.
        trials: what is known of them, and perhaps of others.
        explanations: by identifier.
        every: all mutants of the reference.
        complete: whether they were all mutants and all have been tried.
    """
    parts = divided(chosen, trials, explanations)
    dead = {item.id for item in parts.killed}
    problems = stale(explanations.values(), every, dead)
    score = parts.score
    share = len(parts.explained) / len(parts.alive) if parts.alive else 0.0
    if complete and score is not None and score < scope.limits.score:
        problems.append(f"the score is {score:.1%}, below {scope.limits.score:.0%}")
    if complete and share > scope.limits.explained:
        problems.append(f"{share:.1%} are explained, more than {scope.limits.explained:.0%}")
    return {
        "suite": suite,
        "complete": complete,
        **parts.sums(),
        "problems": problems,
        "modules": _by_module(scope, parts.alive, dead, {item.id for item in parts.explained}),
        "survivors": [_row(item, trials[item.id], scope) for item in parts.survived],
        "explanations": [
            {**_row(item, trials[item.id], scope), "class": explanations[item.id].kind,
             "reason": explanations[item.id].reason, "clause": explanations[item.id].clause}
            for item in parts.explained
        ],
        "kills": [_row(item, trials[item.id], scope) for item in parts.killed],
    }  # fmt: skip


def _by_module(
    scope: Scope, alive: Sequence[Mutant], killed: set[str], explained: set[str]
) -> list[dict[str, Any]]:
    rows = []
    for module in scope.counted:
        ids = [item.id for item in alive if item.module == module]
        if ids:
            rows.append({
                "module": module,
                "mutants": len(ids),
                "killed": sum(name in killed for name in ids),
                "explained": sum(name in explained for name in ids),
            })  # fmt: skip
    return rows


def _row(item: Mutant, trial: Trial, scope: Scope) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": item.id,
        "line": item.line,
        "before": item.text,
        "after": item.changed(scope.source(item.module)),
    }
    if trial.result == KILLED:
        kill = trial.kills[0]
        row |= {"how": kill.how, "by": list(kill.by), "run": kill.run, "sentence": kill.sentence}
        if len(trial.kills) > 1:
            row["runs"] = [{"run": item.run, "by": list(item.by)} for item in trial.kills]
    else:
        row |= {"kind": trial.kind, "lost": trial.lost}
        row |= {"reaching": asdict(trial.reaching), "changed": asdict(trial.changed)}
    return row


_PUBLISHED = (
    "suite", "complete", "mutants", "killed", "survived", "explained", "stillborn", "score",
    "modules",
)  # fmt: skip


def published(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What the documentation shows: the sums, survivors and explanations, without the runs."""
    keys = (*_PUBLISHED, "rerun") if "rerun" in outcome else _PUBLISHED
    return division.published(outcome, keys)


def continued(stored: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, Any]:
    """A stored result with what has become of its survivors on a later state.

    What it killed and explained stays as it was. ``rerun`` counts its survivors, how many of them
    are killed now, explained, or still survive, and how many are no mutants any more because their
    line has changed: these stay survivors.
    """
    dead = {row["id"] for row in again["kills"]}
    told = {row["id"]: row for row in again["explanations"]}
    still = {row["id"]: row for row in again["survivors"]}
    before = [row["id"] for row in stored["survivors"]]
    rows = [row for row in stored["survivors"] if row["id"] not in dead | told.keys()]
    explained = [*stored["explanations"], *(told[name] for name in before if name in told)]
    killed = stored["killed"] + sum(name in dead for name in before)
    modules = [
        {
            **row,
            "killed": row["killed"] + sum(name in dead for name in _within(row, before)),
            "explained": row["explained"] + sum(name in told for name in _within(row, before)),
        }
        for row in stored["modules"]
    ]
    return {
        **stored,
        "killed": killed,
        "survived": len(rows),
        "explained": len(explained),
        "score": round(killed / (killed + len(rows)), 4) if killed or rows else None,
        "modules": modules,
        "survivors": [still.get(row["id"], row) for row in rows],
        "explanations": explained,
        "rerun": {
            "survivors": len(before),
            "killed": sum(name in dead for name in before),
            "explained": sum(name in told for name in before),
            "survived": sum(name in still for name in before),
            "changed": sum(name not in dead | told.keys() | still.keys() for name in before),
            "score": stored["score"],
        },
    }


def _within(row: Mapping[str, Any], ids: Sequence[str]) -> list[str]:
    return [name for name in ids if name.partition(":")[0] == row["module"]]


def as_text(outcome: Mapping[str, Any], *, kills: bool = False) -> list[str]:
    """The outcome as lines to read: survivors by module, then the sums."""
    lines: list[str] = []
    module = ""
    rows = [("survived", row) for row in outcome["survivors"]]
    if kills:
        rows += [("killed", row) for row in outcome["kills"]]
        rows += [("explained", row) for row in outcome["explanations"]]
    for result, row in rows:
        if row["id"].partition(":")[0] != module:
            module = row["id"].partition(":")[0]
            lines += ["", f"== {module}"]
        lines += _told(result, row)
    lines += ["", *outcome["problems"], sums(outcome)]
    return lines[1:]


def _told(result: str, row: Mapping[str, Any]) -> list[str]:
    head = f"{row['id']}  (line {row['line']})"
    lines = ["", head, f"  - {row['before']}", f"  + {row['after']}"]
    if result == "killed":
        by = ", ".join(row["by"]) or "no requirement"
        run = f" in {row['run']}" if row["run"] else ""
        return [*lines, f"  killed ({row['how']}) by {by}{run}: {row['sentence']}"]
    if result == "explained":
        return [*lines, f"  explained, {row['class']}: {row['reason']}"]
    lost = f"; no longer judged: {_some(row['lost'], 12, len(row['lost']))}" if row["lost"] else ""
    lines.append(f"  survived: {row['kind']}{lost}")
    for name, what in (("changed", "show"), ("reaching", "reach")):
        if count := row[name]["count"]:
            lines.append(f"  {count} runs {what} it: {_some(row[name]['first'], 4, count)}")
            break
    return lines


def _some(names: Sequence[str], most: int, count: int) -> str:
    more = f" and {count - most} more" if count > most else ""
    return ", ".join(names[:most]) + more
