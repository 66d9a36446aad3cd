"""``bentpipe selftest SUITE --mutate``: what small changes of the reference the suite notices."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure, explained
from bentpipe_conformance.cli.output import counting, print_json
from bentpipe_conformance.engine.suite import suite_named

SAVE_EVERY_S = 10.0


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
    survivors_of: Path | None
    out: Path | None
    publish: Path | None
    as_json: bool


def mutate(asked: Asked) -> int:
    """Run the mutants that are asked for and print what is found; the exit status."""
    from bentpipe_conformance.selftest.mutation.baseline import ReferenceAccused, runs_of
    from bentpipe_conformance.selftest.mutation.campaign import Campaign, Choice, Store, key_of
    from bentpipe_conformance.selftest.mutation.explaining import load_explanations
    from bentpipe_conformance.selftest.mutation.loading import load_subject
    from bentpipe_conformance.selftest.mutation.operators import MutationUnavailable
    from bentpipe_conformance.selftest.mutation.outcome import as_text, outcome_of, published
    from bentpipe_conformance.selftest.mutation.scope import load_scope
    from bentpipe_conformance.selftest.mutation.trial import Trial

    with explained(MutationUnavailable, ValueError):
        scope = load_scope(suite_named(asked.suite).folder)
        explanations = load_explanations(scope)
        every = scope.mutants()
    only = [*asked.only, *_survivors(asked.survivors_of)]
    chosen = Choice(asked.modules, only, asked.sample, asked.seed).of(every)
    if not chosen:
        raise Failure(
            "no mutant matches; without --only and --module all are run, and their identifiers "
            "printed",
            USAGE,
        )
    campaign = Campaign(scope, asked.suite, whole=asked.whole, jobs=max(1, asked.jobs))
    store = Store(asked.out, key_of(scope, asked.suite, 0, whole=asked.whole))
    store.load()

    def told() -> dict[str, Any]:
        complete = len(chosen) == len(every) and all(item.id in store.trials for item in every)
        what = chosen, store.trials, explanations, every
        return outcome_of(asked.suite, scope, *what, complete=complete)

    interrupted = False
    saved = time.monotonic()

    def advance(_: Trial) -> None:
        nonlocal saved
        tick()
        if time.monotonic() - saved > SAVE_EVERY_S:
            store.save(told())
            saved = time.monotonic()

    done = sum(item.id in store.trials for item in chosen)
    try:
        if done < len(chosen):
            runs = runs_of(asked.suite, load_subject(scope.protocol, {}, scope.root))
            with counting("cases", len(runs)) as tick, explained(ReferenceAccused):
                baseline = campaign.baseline(chosen, tick)
            with counting("mutants", len(chosen), done) as tick:
                campaign.run(chosen, baseline, store, advance)
    except KeyboardInterrupt:
        interrupted = True
    outcome = told()
    store.save(outcome)
    if asked.publish is not None:
        asked.publish.parent.mkdir(parents=True, exist_ok=True)
        asked.publish.write_text(json.dumps(published(outcome), indent=1) + "\n", encoding="utf-8")
    if asked.as_json:
        print_json(outcome)
    else:
        click.echo("\n".join(as_text(outcome, kills=bool(asked.only))))
    if interrupted:
        return OPEN
    return FAILED if outcome["problems"] else PASSED


def _survivors(path: Path | None) -> list[str]:
    """The identifiers of the survivors in a stored result."""
    if path is None:
        return []
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["survivors"]
        return [row["id"] for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure(
            f"{path} is no result of a run with --mutate --out: {error}", USAGE
        ) from error
