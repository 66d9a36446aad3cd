"""``bentpipe selftest SUITE --mutate``: what small changes of the reference the suite notices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure, explained
from bentpipe_conformance.cli.output import counting, print_json
from bentpipe_conformance.engine.suite import suite_named


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a run; see the command."""

    suite: str
    only: Sequence[str]
    modules: Sequence[str]
    sample: int | None
    seed: int
    jobs: int
    whole: bool
    usual: bool
    survivors_of: Path | None
    out: Path | None
    publish: Path | None
    as_json: bool


def mutate(asked: Asked) -> int:
    """Run the mutants that are asked for and print what is found; the exit status."""
    from bentpipe_conformance.selftest.mutation.baseline import ReferenceAccused
    from bentpipe_conformance.selftest.mutation.campaign import Campaign, Choice, Store, key_of
    from bentpipe_conformance.selftest.mutation.explaining import load_explanations
    from bentpipe_conformance.selftest.mutation.operators import MutationUnavailable
    from bentpipe_conformance.selftest.mutation.outcome import (
        as_text,
        continued,
        outcome_of,
        published,
    )
    from bentpipe_conformance.selftest.mutation.scope import load_scope

    with explained(MutationUnavailable, ValueError):
        scope = load_scope(suite_named(asked.suite).folder)
        explanations = load_explanations(scope)
        every = scope.mutants()
    before = _stored(asked.survivors_of)
    only = [*asked.only, *(row["id"] for row in before["survivors"])]
    chosen = Choice(asked.modules, only, asked.sample, asked.seed).of(every)
    if not chosen:
        raise Failure(
            "no mutant matches; without --only and --module all are run, and their identifiers "
            "printed",
            USAGE,
        )
    store = Store(asked.out, key_of(scope, asked.suite, 0, whole=asked.whole))
    store.load()

    def told() -> dict[str, Any]:
        complete = len(chosen) == len(every) and all(item.id in store.trials for item in every)
        what = chosen, store.trials, explanations, every
        return outcome_of(asked.suite, scope, *what, complete=complete)

    store.told = told
    jobs = max(1, asked.jobs)
    campaign = Campaign(scope, asked.suite, whole=asked.whole, jobs=jobs, usual=asked.usual)
    interrupted = False
    try:
        with explained(ReferenceAccused):
            campaign.run(chosen, store, counting)
    except KeyboardInterrupt:
        interrupted = True
    store.save()
    outcome = told()
    part = interrupted and asked.survivors_of is not None
    if asked.publish is not None and not part:
        asked.publish.parent.mkdir(parents=True, exist_ok=True)
        shown = outcome if asked.survivors_of is None else continued(before, outcome)
        asked.publish.write_text(json.dumps(published(shown), indent=1) + "\n", encoding="utf-8")
    if asked.as_json:
        print_json(outcome)
    else:
        click.echo("\n".join(as_text(outcome, kills=bool(asked.only))))
    if interrupted:
        return OPEN
    return FAILED if outcome["problems"] else PASSED


def _stored(path: Path | None) -> dict[str, Any]:
    """A stored result, of which the survivors are run again; none for no path."""
    if path is None:
        return {"survivors": []}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {**found, "survivors": [{**row, "id": str(row["id"])} for row in found["survivors"]]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure(
            f"{path} is no result of a run with --mutate --out: {error}", USAGE
        ) from error
