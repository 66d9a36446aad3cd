"""What a run over mutants has found: the score, the lists, whether it is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bentpipe_conformance.selftest.mutation.explaining import Explanation, stale
from bentpipe_conformance.selftest.mutation.scope import Scope
from bentpipe_conformance.selftest.mutation.sites import Mutant
from bentpipe_conformance.selftest.mutation.trial import KILLED, STILLBORN, Trial


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
    tried = [item for item in chosen if item.id in trials]
    alive = [item for item in tried if trials[item.id].result != STILLBORN]
    killed = [item for item in alive if trials[item.id].result == KILLED]
    rest = [item for item in alive if trials[item.id].result != KILLED]
    explained = [item for item in rest if item.id in explanations]
    survived = [item for item in rest if item.id not in explanations]
    judged = len(alive) - len(explained)
    dead = {item.id for item in killed}
    problems = stale(explanations.values(), every, dead)
    score = len(killed) / judged if judged else None
    share = len(explained) / len(alive) if alive else 0.0
    if complete and score is not None and score < scope.limits.score:
        problems.append(f"the score is {score:.1%}, below {scope.limits.score:.0%}")
    if complete and share > scope.limits.explained:
        problems.append(f"{share:.1%} are explained, more than {scope.limits.explained:.0%}")
    return {
        "suite": suite,
        "complete": complete,
        "partial": len(tried) < len(chosen),
        "mutants": len(alive),
        "killed": len(killed),
        "survived": len(survived),
        "explained": len(explained),
        "stillborn": len(tried) - len(alive),
        "score": None if score is None else round(score, 4),
        "problems": problems,
        "modules": _by_module(scope, alive, dead, {item.id for item in explained}),
        "survivors": [_row(item, trials[item.id], scope) for item in survived],
        "explanations": [
            {**_row(item, trials[item.id], scope), "class": explanations[item.id].kind,
             "reason": explanations[item.id].reason, "clause": explanations[item.id].clause}
            for item in explained
        ],
        "kills": [_row(item, trials[item.id], scope) for item in killed],
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
        row |= {"reaching": trial.reaching, "changed": trial.changed}
    return row


_PUBLISHED = (
    "suite", "complete", "mutants", "killed", "survived", "explained", "stillborn", "score",
    "modules",
)  # fmt: skip
_ROW = ("id", "before", "after", "kind", "class", "reason", "clause")


def published(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What the documentation shows: the sums, survivors and explanations, without the runs."""
    rows = {
        name: [{key: row[key] for key in _ROW if row.get(key)} for row in outcome[name]]
        for name in ("survivors", "explanations")
    }
    return {name: outcome[name] for name in _PUBLISHED} | rows


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
    lost = f"; no longer judged: {_some(row['lost'], 12)}" if row["lost"] else ""
    lines.append(f"  survived: {row['kind']}{lost}")
    if row["changed"]:
        lines.append(f"  {len(row['changed'])} runs show it: {_some(row['changed'], 4)}")
    elif row["reaching"]:
        lines.append(f"  {len(row['reaching'])} runs reach it: {_some(row['reaching'], 4)}")
    return lines


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def sums(outcome: Mapping[str, Any]) -> str:
    """How many there were, and the score, on one line."""
    score = "none" if outcome["score"] is None else f"{outcome['score']:.1%}"
    partial = " (partial: the run was interrupted)" if outcome["partial"] else ""
    counts = ", ".join(f"{outcome[name]} {name}" for name in ("killed", "survived", "explained"))
    return f"{outcome['mutants']} mutants, {counts}; score {score}{partial}"
