"""What a designer asks of a model: what a change affects, and what it breaks first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import click
from bentpipe_spec.registry import load_requirements
from rich.console import Console

from bentpipe_conformance.cli.model_problems import told_once
from bentpipe_conformance.cli.options import all_of
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure
from bentpipe_conformance.cli.output import counting, print_json
from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.models import alone
from bentpipe_conformance.models import diagram as ladder
from bentpipe_conformance.models.answer import Answer, stated, variables_behind
from bentpipe_conformance.models.edits import Edit, ask, read_edits
from bentpipe_conformance.models.impact import Impact, impact_of
from bentpipe_conformance.models.manifest import Manifest
from bentpipe_conformance.models.rounds import load_round, record_round, rounds_of
from bentpipe_conformance.models.tool import Tool, ToolProblem
from bentpipe_conformance.models.vacuity import antecedents_of, occurs
from bentpipe_conformance.models.verification import Checker, Result

_SOME = 12
_LADDER, _TEXTS = 24, 3
"""Lines of a ladder and requirements told in full, so that an answer is a screen."""

options = all_of(
    click.option(
        "--first", is_flag=True,
        help="End at the first run that breaks, small ones first, and show the way there.",
    ),
    click.option(
        "--within", type=click.FloatRange(1), metavar="SECONDS",
        help="Tell what is known after so many seconds of wall clock.",
    ),
    click.option(
        "--diff", metavar="REV",
        help="Instead tell what the changes of the rules since this revision affect.",
    ),
    click.option(
        "--edits", type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Instead try every edit of this file (JSON: model, about, before, after).",
    ),
    click.option(
        "--round", "number", type=click.IntRange(1), metavar="N",
        help="Instead try every edit of this blind round.",
    ),
    click.option(
        "--record", is_flag=True,
        help="With --round: store what is found as the first run, which alone counts.",
    ),
    click.option(
        "--alone", is_flag=True,
        help="Instead ask of every named mutant whether one property alone notices it.",
    ),
    click.option(
        "--vacuity", is_flag=True,
        help="Instead ask of every implication in a property whether its antecedent occurs.",
    ),
)  # fmt: skip


def tell_answer(answer: Answer, console: Console, as_json: bool) -> int:
    """Print what is known; the exit status."""
    broken = answer.broken
    if as_json:
        print_json(_plain(answer))
    else:
        if broken is not None:
            console.print(f"[bold]{broken.manifest.name} {broken.run.name}[/]: {broken.why}",
                          soft_wrap=True)  # fmt: skip
            _explain(answer, console)
        for sentence in told_once(answer.results):
            console.print(sentence, soft_wrap=True)
        finished = [item for item in answer.results if item.verdict != "problem"]
        if broken is None and not finished:
            console.print("No run was finished, so nothing is known.")
        elif broken is None:
            drifted = sum(item.verdict == "drift" for item in finished)
            also = (
                f"; {drifted} of them have other figures, so a rule has changed" if drifted else ""
            )
            console.print(f"Nothing breaks in the {len(finished)} runs that were finished{also}.",
                          soft_wrap=True)  # fmt: skip
        if answer.left and broken is None:
            names = [f"{manifest.name} {run.name}" for manifest, run in answer.left]
            console.print(f"Not finished: {_some(names, _SOME)}.", soft_wrap=True)
        state = "not needed" if broken is not None else "not finished"
        left = f", {len(answer.left)} {state}" if answer.left else ""
        console.print(f"{len(finished)} runs{left}, {answer.seconds:.1f} s")
    if broken is not None:
        return FAILED
    if answer.left or any(item.verdict == "problem" for item in answer.results):
        return OPEN
    return FAILED if any(item.verdict != "as expected" for item in answer.results) else PASSED


def _plain(answer: Answer) -> dict[str, Any]:
    broken = answer.broken
    told: dict[str, Any] = {"seconds": round(answer.seconds, 1), "runs": len(answer.results),
                            "left": [f"{m.name} {run.name}" for m, run in answer.left]}  # fmt: skip
    if broken is None:
        return told | {"broken": None}
    steps = [state.action for state in broken.outcome.trace] if broken.outcome else []
    return told | {"broken": {
        "model": broken.manifest.name, "run": broken.run.name, "property": broken.violated,
        "why": broken.why, "steps": steps,
        "requirements": list(broken.manifest.requirements.get(broken.violated, ())),
        "stated": stated(broken.manifest, broken.violated),
    }}  # fmt: skip


def _explain(answer: Answer, console: Console) -> None:
    item = answer.broken
    assert item is not None
    registry = load_requirements()
    required = [
        name for name in item.manifest.requirements.get(item.violated, ()) if name in registry
    ]
    for identifier in required[:_TEXTS]:
        console.print(f"{identifier}: {registry[identifier].text}", soft_wrap=True)
    if more := required[_TEXTS:]:
        console.print(f"also {', '.join(more)}", soft_wrap=True)
    if item.outcome is not None and item.outcome.trace:
        shown = variables_behind(item.manifest, item.violated)
        drawn = ladder.build(item.outcome.trace, item.manifest.ladder, item.outcome.loop, shown)
        text = ladder.as_text(drawn, _LADDER)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        if text != ladder.as_text(drawn):
            every = f"bentpipe model {item.manifest.name} --only {item.run.name}"
            console.print(f"every step: {every}", highlight=False, soft_wrap=True)
    if text := stated(item.manifest, item.violated):
        console.print("must hold of the last step or state:", highlight=False)
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def tell_impacts(
    manifests: Sequence[Manifest], root: Path, revision: str, console: Console, as_json: bool
) -> int:
    """Print what the changes since a revision affect, model by model; the exit status."""
    impacts = [impact_of(manifest, root, revision) for manifest in manifests]
    rows = [{**asdict(item), "cases": cases_for(item.requirements)} for item in impacts]
    if as_json:
        print_json(rows)
        return PASSED
    for item, row in zip(impacts, rows, strict=True):
        for line in _lines(item, row["cases"], revision):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
    return PASSED


def cases_for(requirements: Sequence[str]) -> list[str]:
    """The cases that have one of these requirements as a target."""
    wanted = set(requirements)
    return [
        name
        for suite in load_suites()
        for name, case in load_cases(suite).items()
        if wanted & set(case.requirements)
    ]


def _lines(item: Impact, cases: Sequence[str], revision: str) -> list[str]:
    if not item.changed:
        return [f"{item.model}: no rule has changed since {revision}"]
    watching = [f"{name} ({_some(why, 3)})" for name, why in item.watching.items()]
    rows = {
        "changed": item.changed, "steps": item.steps, "watched by": watching,
        "may affect": item.reading, "requirements": item.requirements, "cases": cases,
        "named mutants": item.mutants, "trace events": item.events,
        "scenarios": [*item.scenarios, *([f"all {item.covers} covers"] if item.covers else [])],
    }  # fmt: skip
    lines = [f"{item.model}, since {revision}:"]
    lines += [f"  {name:<14} {_some(values, _SOME) or 'none'}" for name, values in rows.items()]
    return [*lines, f"  next           bentpipe model {item.model} --first"]


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def tell_edits(
    manifests: Sequence[Manifest], tool: Tool, path: Path, workers: int, seconds: float,
    as_json: bool,
) -> int:  # fmt: skip
    """Print of every edit of a file which property breaks first, and how many broke none.

    Returns:
        The exit status.
    """
    known = {manifest.name: manifest for manifest in manifests}
    edits = read_edits(path, list(known))
    rows = [_tried(known[edit.model], edit, tool, workers, seconds, as_json) for edit in edits]
    return _summed(rows, [not row["problem"] for row in rows], as_json)


def tell_round(
    manifests: Sequence[Manifest], tool: Tool, number: int, workers: int, seconds: float, *,
    record: bool, as_json: bool,
) -> int:  # fmt: skip
    """The same of the edits of a blind round, without those that its review does not count.

    With ``record`` the outcome is stored as that of the first run, model by model.

    Raises:
        Failure: the time was up before an edit was judged; that model is not recorded.
    """
    held = [item for item in manifests if number in rounds_of(item)] or manifests[:1]
    rounds = [(manifest, load_round(manifest, number)) for manifest in held]
    if record and any(found.reviews for _, found in rounds):
        raise Failure(f"the first run of round {number} is recorded; only that one counts", USAGE)
    rows: list[dict[str, Any]] = []
    counted: list[bool] = []
    for manifest, found in rounds:
        tried = [_tried(manifest, edit, tool, workers, seconds, as_json) for edit in found.edits]
        rows += tried
        counted += [item.counts for item in found.reviews] or [not row["problem"] for row in tried]
        if record and any(map(_is_open, tried)):
            raise Failure(
                f"{manifest.name}: not every edit was judged within {seconds:g} s, so nothing is "
                "recorded of it; give each more time with --timeout"
            )
        if record:
            record_round(manifest, number, tried, date.today().isoformat())
    return _summed(rows, counted, as_json)


def _tried(
    manifest: Manifest, edit: Edit, tool: Tool, workers: int, seconds: float, quiet: bool
) -> dict[str, Any]:
    row: dict[str, Any] = {"model": edit.model, "about": edit.about, "property": "", "run": "",
                           "problem": ""}  # fmt: skip
    try:
        told = ask(tool, manifest, edit, workers, seconds)
    except ToolProblem as problem:
        row["problem"] = str(problem)
    else:
        first = told.broken
        unread = [item.why for item in told.results if item.verdict == "problem"]
        row |= {
            "property": _noticing(first) if first else "",
            "run": first.run.name if first else "", "seconds": round(told.seconds, 1),
            "left": len(told.left), "problem": "" if first or not unread else unread[0],
        }  # fmt: skip
    if not quiet:
        found = f"{row['property']} in {row['run']}" if row["property"] else "NOT NOTICED"
        if _is_open(row):
            found = f"not judged within {seconds:g} s"
        click.echo(f"{edit.model}: {edit.about}: {row['problem'] or found}")
    return row


def _is_open(row: dict[str, Any]) -> bool:
    """Whether the time was up before every run was made, and nothing had noticed the edit."""
    return bool(row.get("left")) and not row["property"]


def _noticing(broken: Result) -> str:
    """The property that is violated, or the state that is not reached any more."""
    return broken.violated or f"{broken.run.violates} (not reached)"


def _summed(rows: Sequence[dict[str, Any]], counted: Sequence[bool], as_json: bool) -> int:
    """Print the sums, of what counts; the exit status."""
    found = [bool(row["property"]) for row, counts in zip(rows, counted, strict=True) if counts]
    noticed = sum(found)
    if as_json:
        print_json(rows)
    else:
        click.echo(f"{noticed} of {len(found)} edits noticed")
    return PASSED if noticed == len(found) else FAILED


def tell_alone(
    manifests: Sequence[Manifest], checker: Checker, workers: int, only: str | None, as_json: bool
) -> int:  # fmt: skip
    """Print through which properties alone no mutant dies, and who else notices; the status."""
    chosen = [
        (manifest, run)
        for manifest in manifests
        for run in alone.mutants_of(manifest)
        if only in (None, run.name, run.violates)
    ]
    if not chosen:
        raise Failure("no mutant of that name, and none that breaks that property", USAGE)
    with counting("mutants", len(chosen)) as tick:
        found = checker.each(
            lambda item: alone.companions_of(*item, checker), chosen, workers, tick
        )
    if as_json:
        print_json([{**asdict(item), "alone": item.alone} for item in found])
    missing = 0
    for manifest in manifests:
        known = {item.violates for item in found if item.model == manifest.name}
        never = [name for name in alone.without(manifest, found) if name in known]
        needless = [name for name in never if name not in manifest.accompanied]
        missing += len(needless)
        for item in found if not as_json else ():
            if item.model == manifest.name and item.violates in needless:
                also = item.problem or f"{', '.join(item.others)} notices it, too"
                click.echo(f"{item.model} {item.violates}: {item.run}: {also}")
        if known and not as_json:
            count, why = len(known) - len(never), len(never) - len(needless)
            others = f", {why} have a reason not to" if why else ""
            told = f"{count} of {len(known)} properties alone notice a mutant{others}"
            click.echo(f"{manifest.name}: {told}")
    return FAILED if missing else PASSED


def tell_vacuity(
    manifests: Sequence[Manifest], tool: Tool, checker: Checker, workers: int, only: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Print which antecedents never occur; the exit status."""
    chosen = [
        (manifest, item)
        for manifest in manifests
        for item in antecedents_of(tool, manifest)
        if only in (None, item.property)
    ]
    if not chosen:
        raise Failure("no property of that name has an implication", USAGE)
    with counting("antecedents", len(chosen)) as tick:
        found = checker.each(lambda item: occurs(*item, checker), chosen, workers, tick)
    rows = [
        {"model": item.antecedent.model, "property": item.antecedent.property,
         "antecedent": item.antecedent.text, "file": item.antecedent.file,
         "line": item.antecedent.line, "run": item.run, "problem": item.problem}
        for item in found
    ]  # fmt: skip
    never = [row for row in rows if not row["run"]]
    if as_json:
        print_json(rows)
    else:
        for row in never:
            click.echo(f"{row['model']} {row['property']} ({row['file']}, line {row['line']}): "
                       f"{row['antecedent']}: {row['problem'] or 'never happens'}")  # fmt: skip
        click.echo(f"{len(rows)} antecedents, {len(rows) - len(never)} occur")
    return FAILED if never else PASSED
