"""``bentpipe model NAME --mutate``: what small changes of a specification its properties notice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import click

from bentpipe_conformance.cli.options import all_of
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure
from bentpipe_conformance.cli.output import counting, print_json
from bentpipe_conformance.models.manifest import Manifest
from bentpipe_conformance.models.mutation import campaign
from bentpipe_conformance.models.mutation.outcome import as_text, noticed, outcome_of, published
from bentpipe_conformance.models.mutation.sites import Mutant
from bentpipe_conformance.models.tool import Tool
from bentpipe_conformance.models.verification import Checker, Limits
from bentpipe_conformance.selftest.mutation.keeping import Choice

RUN_S = 120.0
"""Wall clock for one run of a mutant."""

options = all_of(
    click.option(
        "--mutate", is_flag=True,
        help="Instead make small changes of the specification and tell which no property notices; "
             "with --out a later run goes on.",
    ),
    click.option("--sample", type=click.IntRange(1), help="With --mutate: so many, at random."),
    click.option("--seed", default=1, show_default=True, help="Of the sample."),
    click.option(
        "--whole", is_flag=True,
        help="With --mutate: every property and run that notices a mutant, not only the first.",
    ),
    click.option(
        "--survivors-of", type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="With --mutate: only those that survived in the results of this folder.",
    ),
    click.option(
        "--publish", type=click.Path(path_type=Path, file_okay=False),
        help="With --mutate: write what the documentation shows into this folder, and beside the "
             "manifest what --diff reads.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a run; see the command."""

    only: Sequence[str]
    sample: int | None
    seed: int
    whole: bool
    survivors_of: Path | None
    publish: Path | None
    timeout: float
    memory: int
    workers: int
    out: Path | None
    as_json: bool

    @classmethod
    def of(
        cls, given: Mapping[str, Any], only: str | None, timeout: float | None, memory: int,
        workers: int, out: Path | None, as_json: bool,
    ) -> Asked:  # fmt: skip
        """From the command's options."""
        chosen = {key: value for key, value in given.items() if key != "mutate"}
        return cls(only=(only,) if only else (), timeout=timeout or RUN_S, memory=memory,
                   workers=workers, out=out, as_json=as_json, **chosen)  # fmt: skip


def mutate(manifests: Sequence[Manifest], tool: Tool, asked: Asked) -> int:
    """Run the mutants that are asked for, model by model; the exit status."""
    outcomes: list[dict[str, Any]] = []
    interrupted = False
    for manifest in manifests:
        try:
            outcome, whole = _one(manifest, tool, asked)
        except _NothingToDo:
            continue
        outcomes.append(outcome)
        if not asked.as_json:
            click.echo("\n".join(as_text(outcome, kills=bool(asked.only))))
        if not whole:
            interrupted = True
            break
    if not outcomes:
        raise Failure("no mutant matches; without --only all are run, and survivors printed", USAGE)
    if asked.as_json:
        print_json(outcomes)
    if interrupted:
        return OPEN
    return FAILED if any(outcome["problems"] for outcome in outcomes) else PASSED


class _NothingToDo(Exception):
    """No mutant of this model was asked for."""


def _one(manifest: Manifest, tool: Tool, asked: Asked) -> tuple[dict[str, Any], bool]:
    """The outcome for a model, and whether it was not interrupted."""
    every = campaign.mutants_of(tool, manifest)
    explanations = campaign.explanations_of(manifest)
    chosen = _chosen(manifest, every, asked)
    source = (manifest.folder / manifest.scope.module).read_text(encoding="utf-8")
    store = campaign.Store(
        campaign.default_store(asked.out, manifest),
        campaign.key_of(tool, manifest, whole=asked.whole),
    )
    store.load()

    def told() -> dict[str, Any]:
        return outcome_of(manifest.name, source, chosen, store.trials, explanations, every)

    store.told = told
    checker = Checker(tool, Limits(asked.timeout, asked.memory, 1, logs=False))
    missing = sum(item.id not in store.trials for item in chosen)
    whole = True
    try:
        with counting(f"{manifest.name}: mutants", missing) as tick:
            campaign.try_all(
                manifest, chosen, checker, store, asked.workers, tick, whole=asked.whole
            )
    except KeyboardInterrupt:
        whole = False
    outcome = told()
    if asked.publish is not None:
        asked.publish.mkdir(parents=True, exist_ok=True)
        when = {
            "measured": date.today().isoformat(), "sample": asked.sample,
            "seed": asked.seed if asked.sample else None, "of": campaign.parts_of(manifest),
        }  # fmt: skip
        text = json.dumps(published(outcome, **when), indent=1) + "\n"
        (asked.publish / f"{manifest.name}.json").write_text(text, encoding="utf-8")
        kills = json.dumps(noticed(outcome), indent=1) + "\n"
        (manifest.folder / campaign.KILLS).write_text(kills, encoding="utf-8")
    return outcome, whole


def _chosen(manifest: Manifest, every: Sequence[Mutant], asked: Asked) -> list[Mutant]:
    only = list(asked.only)
    if asked.survivors_of is not None:
        path = campaign.default_store(asked.survivors_of, manifest)
        assert path is not None
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))["survivors"]
            only += [row["id"] for row in rows] or ["nothing"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Failure(
                f"{path} is no result of a run with --mutate --out: {error}", USAGE
            ) from error
    chosen = Choice((), only, asked.sample, asked.seed).of(every)
    if not chosen:
        raise _NothingToDo
    return chosen
