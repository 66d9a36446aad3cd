"""What a campaign finds of faults that are known: the self-test's mutants and the blind rounds.

``python -m bentpipe_fuzz.campaign.measure SUITE`` lets each faulty reference meet a campaign that
knows nothing of the fault. It is found by the first conversation that violates a requirement which
the true reference meets in the very same conversation.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.selftest.pool import work_through
from bentpipe_conformance.selftest.rounds import load_record
from bentpipe_conformance.selftest.stage import stage
from bentpipe_reference.common.blind import load_round, rounds_of
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.common.subject import subject_of

from bentpipe_fuzz.campaign.binding import binding_of, suites_with_campaign
from bentpipe_fuzz.campaign.plan import Planner
from bentpipe_fuzz.campaign.run import Conversation, play, seldom_collecting
from bentpipe_fuzz.campaign.script import Script
from bentpipe_fuzz.campaign.shrinking import shrunk_script


@dataclass(frozen=True, slots=True)
class Faulty:
    """A reference with a fault.

    Attributes:
        id: of the mutant, or of the fault of a blind round.
        blind: the round; 0 for a mutant.
        missed: whether the scripted cases missed it when it was new.
    """

    id: str
    blind: int = 0
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What a campaign found of one fault.

    Attributes:
        id, blind, missed: see :class:`Faulty`.
        example: number of the conversation that found it; 0 if none did.
        requirement: what it violated.
        length: steps and impairments of the first script, and of the small one.
        shrink_runs, shrink_seconds: what making it small took.
        seconds: of the campaign, without shrinking.
        error: why it could not be measured.
    """

    id: str
    blind: int
    missed: bool
    example: int = 0
    requirement: str = ""
    length: tuple[int, int] = (0, 0)
    shrink_runs: int = 0
    shrink_seconds: float = 0.0
    seconds: float = 0.0
    error: str = ""


def faults_of(suite: Suite) -> list[Faulty]:
    """Every mutant of a suite, and every fault of its blind rounds that is valid."""
    found = [
        Faulty(item.id) for item in load_mutants().values() if item.breaks.startswith(suite.prefix)
    ]
    for number in rounds_of(suite.folder):
        record = load_record(suite.folder, number).get("fault", {})
        for name in load_round(suite.folder, number):
            review = record.get(name, {})
            if review.get("valid", "valid") == "valid":
                found.append(Faulty(name, number, not review.get("caught", True)))
    return found


def _staged(faulty: Faulty, suite: Suite) -> Iterator[tuple[Lane, RunSettings]]:
    """Lane and settings of the faulty reference, and then of the true one."""
    reference = subject_of(suite.folder)
    ics: Mapping[str, Any] = {}
    if faulty.blind:
        fault = load_round(suite.folder, faulty.blind)[faulty.id]
        profile, setting = fault.profile or suite.profiles[0], fault.setting
        configure, ics = fault.configure, fault.ics
    else:
        mutant = load_mutants()[faulty.id]
        profile, setting, configure = mutant.profile, mutant.setting, mutant.configure
    for change in (configure, _same):
        lane, settings = stage(reference, profile, setting, 0, change)
        yield lane, replace(settings, ics={**settings.ics, **ics})


def _same(setup: Any) -> Any:
    return setup


def measure(faulty: Faulty, suite: str, seed: int, examples: int, shrink_runs: int) -> Measured:
    """Let one fault meet a campaign."""
    named = faulty.id, faulty.blind, faulty.missed
    began = time.perf_counter()
    record = suite_named(suite)
    try:
        (lane, settings), (true_lane, true_settings) = _staged(faulty, record)
        planner = Planner(suite, binding_of(record).modes, seed)
        reached: set[object] = set()

        def guilty(script: Script, among: Callable[[Conversation], list[str]]) -> str:
            found = play(script, lane, settings)
            fresh = {*found.reached, *found.met} - reached
            if fresh:
                reached.update(fresh)
                planner.corpus.append(script)
            accused = among(found)
            if not accused:
                return ""
            true = play(script, true_lane, true_settings)
            return next((name for name in accused if not true.breaks(name)), "")

        for number, script in enumerate(planner.scripts(), start=1):
            if number > examples:
                break
            requirement = guilty(script, lambda found: [name for name, *_ in found.findings])
            if not requirement:
                continue
            seconds, runs = time.perf_counter() - began, 0

            def still_fails(shorter: Script, name: str = requirement) -> bool:
                nonlocal runs
                runs += 1
                return bool(guilty(shorter, lambda found: [name] * found.breaks(name)))

            start = time.perf_counter()
            small = shrunk_script(script, still_fails, shrink_runs) if shrink_runs else script
            return Measured(
                *named, number, requirement, (script.length, small.length), runs,
                round(time.perf_counter() - start, 3), round(seconds, 3),
            )  # fmt: skip
    except Exception as error:  # what a stranger wrote may not even start
        return Measured(*named, error=f"{type(error).__name__}: {error}")
    return Measured(*named, seconds=round(time.perf_counter() - began, 3))


def summary(results: Sequence[Measured]) -> dict[str, Any]:
    """Shares and medians."""
    found = [item for item in results if item.example]

    def share(of: Sequence[Measured]) -> dict[str, int]:
        return {"faults": len(of), "found": sum(bool(item.example) for item in of)}

    return {
        "mutants": share([item for item in results if not item.blind]),
        "blind": share([item for item in results if item.blind]),
        "missed_by_cases": share([item for item in results if item.missed]),
        "errors": [item.id for item in results if item.error],
        "median_example": statistics.median([item.example for item in found] or [0]),
        "median_shrink_seconds": statistics.median([item.shrink_seconds for item in found] or [0]),
        "at_most_10_steps": sum(item.length[1] <= 10 for item in found),
        "at_most_10_steps_and_60_s": sum(
            item.length[1] <= 10 and item.shrink_seconds < 60 for item in found
        ),
    }


@click.command()
@click.argument("suite", type=click.Choice(suites_with_campaign()))
@click.option("--examples", default=2000, show_default=True, help="Conversations for each fault.")
@click.option("--sample", type=click.IntRange(1), help="Only so many faults, at random.")
@click.option("--only", "names", multiple=True, metavar="ID", help="Only this fault.")
@click.option("--seed", default=1, show_default=True, help="Of the sample and the campaigns.")
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option("--seconds", type=float, help="Begin with no fault after that long.")
@click.option("--shrink-runs", default=400, show_default=True, help="0: do not make small.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True,
              help="Result (JSON); a rerun goes on with it.")  # fmt: skip
def main(
    suite: str, examples: int, sample: int | None, names: tuple[str, ...], seed: int, jobs: int,
    seconds: float | None, shrink_runs: int, out: Path,
) -> None:  # fmt: skip
    """Measure what campaigns find of known faults."""
    chosen = faults_of(suite_named(suite))
    if names:
        chosen = [item for item in chosen if item.id in names]
    if sample:
        chosen = random.Random(seed).sample(chosen, min(sample, len(chosen)))
    rows: dict[str, Any] = {}
    if out.exists():
        rows = {row["id"]: row for row in json.loads(out.read_text())["table"]}
    deadline = time.monotonic() + seconds if seconds else None

    def told(item: Measured | None) -> None:
        if item is None:
            return
        rows[item.id] = asdict(item)
        results = [Measured(**row) for row in rows.values()]
        document = {"suite": suite, "examples": examples, "seed": seed, **summary(results),
                    "table": list(rows.values())}  # fmt: skip
        out.write_text(json.dumps(document, indent=1) + "\n")
        what = f"{item.requirement} in conversation {item.example}" if item.example else "not found"
        click.echo(f"{item.id}: {item.error or what}", err=True)

    left = [item for item in chosen if item.id not in rows]
    function = partial(
        _before, deadline, suite=suite, seed=seed, examples=examples, shrink_runs=shrink_runs
    )
    work_through(left, function, jobs, told)
    click.echo(json.dumps(summary([Measured(**row) for row in rows.values()]), indent=1))


def _before(deadline: float | None, item: Faulty, **how: Any) -> Measured | None:
    """Measure, unless the time is up."""
    if deadline is not None and time.monotonic() > deadline:
        return None
    with seldom_collecting():
        return measure(item, **how)


if __name__ == "__main__":
    sys.exit(main())
