"""``bentpipe fuzz`` and ``bentpipe replay``."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import click
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.cli.options import (
    bed_option,
    examples,
    json_option,
    link_option,
    profile_option,
)
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure, explained
from bentpipe_conformance.cli.output import output, print_json
from bentpipe_conformance.engine.lane import LaneError
from bentpipe_conformance.engine.suite import UnknownSuite, suite_named
from bentpipe_conformance.iut.build import IutUnavailable, build
from bentpipe_conformance.iut.description import IutDescription, load_iut
from bentpipe_conformance.run.opening import load_link
from bentpipe_conformance.run.workplace import Workplace, choose_workplace

from bentpipe_fuzz.campaign import shards
from bentpipe_fuzz.campaign.as_case import as_case
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.replay import Replay, ReplayError, load
from bentpipe_fuzz.campaign.script import ScriptError
from bentpipe_fuzz.campaign.shrinking import MOST_RUNS
from bentpipe_fuzz.campaign.storage import FIGURES, Figures, Order, store_figures, stored

EXAMPLES = 200
"""Conversations of a campaign that is given no limit."""


def planned(
    iut: str, link: str, bed: str, profile: str | None
) -> tuple[IutDescription, Workplace, str]:
    """The description of an implementation, where it runs, and the profile to judge by."""
    with explained(ValueError, exit_code=USAGE):
        description, link_profile = load_iut(iut), load_link(link)
        chosen = description.suite.profile(profile)
    with explained(ScriptError, exit_code=USAGE):
        binding_of(description.suite)
    with explained(BedError, IutUnavailable):
        if description.start.build:
            build(description.start.build)
        return description, choose_workplace(bed, description, link_profile), chosen


@click.command(
    epilog=examples(
        "fuzz stp-reference-simulated --examples 2000",
        "fuzz linux --minutes 2 --link geo",
        "fuzz reference --only on-path --seed 7 --json",
        more="\nExit status: 0 nothing was found, 1 findings, 2 wrong usage, 3 error.",
    )
)
@click.argument("iut")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Stop after that long.")
@click.option(
    "--examples",
    "number",
    type=click.IntRange(1),
    metavar="N",
    help=f"Stop after N conversations  [default without --minutes: {EXAMPLES}].",
)
@click.option("--seed", type=int, help="Seed of everything random  [default: a new one].")
@link_option
@profile_option()
@click.option("--only", "modes", multiple=True, metavar="MODE", help="Only testers of this mode.")
@bed_option("bed", "Where to run.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Conversations side by side.",
)
@click.option(
    "--shrink-runs",
    type=click.IntRange(0),
    default=MOST_RUNS,
    show_default=True,
    help="Runs that making one finding small may take.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the results  [default: bentpipe-runs/fuzz-IUT-LINK].",
)
@click.option("--fresh", is_flag=True, help="Replace an earlier campaign in that folder.")
@json_option("Print the figures and findings as JSON.")
def fuzz(
    iut: str, minutes: float | None, number: int | None, seed: int | None, link: str,
    profile: str | None, modes: tuple[str, ...], bed: str, jobs: int, shrink_runs: int,
    out: Path | None, fresh: bool, as_json: bool,
) -> None:  # fmt: skip
    """Talk to an implementation in ways that nobody wrote down, and judge every packet.

    Packets, conversations, users and the link are drawn at random. What violates a requirement is
    made as short as possible and stored as a replay file with its packets; 'bentpipe replay' plays
    it on any implementation.
    """
    description, place, chosen = planned(iut, link, bed, profile)
    known = binding_of(description.suite).modes
    if unknown := sorted(set(modes) - set(known)):
        raise Failure(f"there is no mode {unknown[0]!r}; there are {', '.join(known)}", USAGE)
    folder = out or Path("bentpipe-runs") / f"fuzz-{description.id}-{load_link(link).id}"
    _make_room(folder, fresh)
    limit = number or (0 if minutes else EXAMPLES)
    first = random.SystemRandom().getrandbits(31) if seed is None else seed
    order = Order(
        iut, link, chosen, first, limit, modes,
        place.report.timing_error if place.report else 0.0, shrink_runs, str(folder),
        shards.patience(place),
    )  # fmt: skip
    console = output(stderr=True)
    began = time.monotonic()

    def watch(figures: Figures, told: list[str]) -> None:
        for line in told:
            console.print(line, markup=False, soft_wrap=True)
        if console.is_terminal:
            console.print(_line(figures, time.monotonic() - began), end="\r", markup=False)

    interrupted = False
    with explained(BedError, LaneError):
        try:
            figures, folders = shards.run(
                order, place, jobs, minutes * 60 if minutes else None, watch
            )
        except KeyboardInterrupt:
            interrupted = True
            folders = shards.folders_of(order, jobs)
            figures = shards.total(folders)
    seconds = time.monotonic() - began
    result = _result(figures, folders, order, seconds)
    store_figures(folder, {**figures.document(), **result})
    if as_json:
        print_json(result)
    else:
        _print(result, figures, seconds)
    failed = bool(result["findings"])
    trouble = figures.problem or figures.broken or interrupted
    raise click.exceptions.Exit(FAILED if failed else OPEN if trouble else PASSED)


def _make_room(folder: Path, fresh: bool) -> None:
    """An empty folder; an earlier campaign in it is removed with ``fresh`` only."""
    if not folder.exists() or not any(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
    elif not (folder / FIGURES).is_file() or folder.is_symlink():
        raise Failure(f"{folder} holds other files; choose another --out directory", USAGE)
    elif not fresh:
        what = "already holds a campaign; add --fresh, or choose another --out directory"
        raise Failure(f"{folder} {what}", USAGE)
    else:
        shutil.rmtree(folder)
        folder.mkdir()
    store_figures(folder, Figures().document())


def _result(figures: Figures, folders: list[Path], order: Order, seconds: float) -> dict[str, Any]:
    findings = []
    told: set[tuple[str, ...]] = set()
    for path in stored(folders):
        replay = load(path / "replay.json")
        if replay.signature in told:
            continue
        told.add(replay.signature)
        findings.append({
            "requirement": replay.requirement, "sentence": replay.sentence,
            "signature": list(replay.signature), "length": replay.script.length,
            "conversations": figures.seen.get(replay.signature, 1), "folder": str(path),
        })  # fmt: skip
    return {
        "iut": order.iut, "link": order.link, "profile": order.profile, "seed": order.seed,
        "conversations": figures.conversations, "packets": figures.packets,
        "findings": findings, "seconds": round(seconds, 3),
        "link_seconds": round(figures.link_seconds, 3), "problem": figures.problem,
    }  # fmt: skip


def _line(figures: Figures, seconds: float) -> str:
    return (
        f"{figures.conversations} conversations, {figures.packets} packets, "
        f"{len(figures.reached)} states x packets, {len(figures.met)} requirements met, "
        f"{len(figures.seen)} signatures found, {seconds:.0f} s"
    )


def _print(result: dict[str, Any], figures: Figures, seconds: float) -> None:
    for row in result["findings"]:
        signature = " / ".join(part or "-" for part in row["signature"][1:])
        click.echo(f"{row['requirement']} ({signature}): {row['sentence']}")
        click.echo(f"    {row['length']} steps, in {row['conversations']} conversations; "
                   f"bentpipe replay {row['folder']}/replay.json")  # fmt: skip
    if figures.problem:
        click.echo(f"the campaign ended early: {figures.problem}")
    if figures.broken:
        click.echo(f"a defect of the campaign: {figures.broken}")
    click.echo(f"{_line(figures, seconds)} (seed {result['seed']})")


@click.command(
    epilog=examples(
        "replay bentpipe-runs/fuzz-linux-geo/findings/SNR-RCV-009-1/replay.json",
        "replay found.json --iut lwip --over leo-40",
        "replay found.json --as-case",
        more="\nExit status: 0 nothing is violated, 1 it is, 2 wrong usage, 3 error.",
    )
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--iut", help="Another implementation than the one in the file.")
@click.option("--over", "link", metavar="LINK", help="Another link than the one in the file.")
@profile_option()
@bed_option("bed", "Where to run.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Store the packets in this folder.",
)
@click.option("--as-case", "written", is_flag=True, help="Print a case for the suite instead.")
@json_option("Print the findings as JSON.")
def replay(
    file: Path, iut: str | None, link: str | None, profile: str | None, bed: str,
    out: Path | None, written: bool, as_json: bool,
) -> None:  # fmt: skip
    """Play a replay file again and judge what happens."""
    with explained(ReplayError, ScriptError, UnknownSuite, exit_code=USAGE):
        told = load(file)
        if written:
            click.echo(as_case(told, binding_of(suite_named(told.script.suite))), nl=False)
            raise click.exceptions.Exit(PASSED)
    again = Replay(
        told.script, iut or told.iut, link or told.link, profile or told.profile,
        told.requirement, told.sentence, told.signature, told.story, told.packets, told.seed,
    )  # fmt: skip
    description, place, chosen = planned(again.iut, again.link, bed, again.profile)
    if description.suite.name != told.script.suite:
        spoken = f"speaks {description.suite.protocol}; the file is of {told.script.suite}"
        raise Failure(f"{description.id} {spoken}", USAGE)
    with explained(ScriptError, exit_code=USAGE):
        binding_of(description.suite).check(told.script)
    with explained(BedError, LaneError):
        found = shards.play_again(again, chosen, place, out)
    if as_json:
        print_json({"expected": told.requirement, **found})
    else:
        for row in found["findings"]:
            click.echo(f"{row['requirement']}: {row['sentence']}")
        if not found["findings"]:
            click.echo("nothing is violated")
    if found["problem"]:
        raise Failure(f"{found['problem']}.")
    raise click.exceptions.Exit(FAILED if found["findings"] else PASSED)
