"""``bentpipe fuzz`` and ``bentpipe replay``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.cli.options import (
    all_of,
    bed_option,
    examples,
    json_option,
    link_option,
    out_option,
    profile_option,
)
from bentpipe_conformance.cli.outcome import (
    FAILED,
    OPEN,
    PASSED,
    USAGE,
    Failure,
    explained,
)
from bentpipe_conformance.cli.output import output, print_json
from bentpipe_conformance.engine.lane import LaneError
from bentpipe_conformance.engine.suite import UnknownSuite, suite_named
from bentpipe_conformance.evidence.bundle import BundleError, remove_bundle
from bentpipe_conformance.iut.build import IutUnavailable, build
from bentpipe_conformance.iut.description import IutDescription, load_iut
from bentpipe_conformance.run.opening import load_link
from bentpipe_conformance.run.workplace import Workplace, choose_workplace
from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.processes import ended_by_signals

from bentpipe_fuzz.campaign import shards
from bentpipe_fuzz.campaign.as_case import as_case
from bentpipe_fuzz.campaign.binding import Binding, binding_of
from bentpipe_fuzz.campaign.replay import Replay, ReplayError, load
from bentpipe_fuzz.campaign.result import campaign_plan, check_room, run_campaign
from bentpipe_fuzz.campaign.script import ScriptError
from bentpipe_fuzz.campaign.sharing import REDIS, SharingError, shared
from bentpipe_fuzz.campaign.shrinking import MOST_RUNS
from bentpipe_fuzz.campaign.storage import Figures

EXAMPLES = 200
"""Conversations of a campaign that is given no limit."""


drawn_options = all_of(
    click.option("--seed", type=int, help="Seed of everything random  [default: a new one]."),
    link_option,
    profile_option(),
    click.option(
        "--only", "modes", multiple=True, metavar="MODE", help="Only testers of this mode."
    ),
    bed_option("bed", "Where to run."),
)
"""Of commands that draw conversations."""


def introduced(iut: str, link: str) -> tuple[IutDescription, LinkProfile, Binding]:
    """The description of an implementation, a link, and what campaigns know of the protocol."""
    with explained(ValueError, exit_code=USAGE):
        description, over = load_iut(iut), load_link(link)
    with explained(ScriptError, exit_code=USAGE):
        return description, over, binding_of(description.suite)


def planned(
    iut: str, link: str, bed: str, profile: str | None
) -> tuple[IutDescription, Workplace, str]:
    """The description of an implementation, where it runs, and the profile to judge by."""
    description, over, _ = introduced(iut, link)
    with explained(ValueError, exit_code=USAGE):
        chosen = description.suite.profile(profile)
    with explained(BedError, IutUnavailable):
        if description.start.build:
            build(description.start.build)
        return description, choose_workplace(bed, description, over), chosen


@click.command(
    epilog=examples(
        "fuzz stp-reference-simulated --examples 2000",
        "fuzz linux --minutes 2 --link geo",
        "fuzz reference --only on-path --seed 7 --json",
        "fuzz reference --jobs 2 --share bentpipe-runs/shared",
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
@drawn_options
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
    "--share",
    default="",
    metavar="PLACE",
    envvar="BENTPIPE_SHARE",
    show_envvar=True,
    help="Share conversations that reach something new: a directory, or redis://HOST:PORT/0.",
)
@click.option(
    "--dask",
    default="",
    metavar="ADDRESS",
    help="Run on the workers of this scheduler, tcp://HOST:8786; --jobs is theirs then.",
)
@out_option("Folder of the results  [default: bentpipe-runs/fuzz-IUT-LINK].")
@click.option("--fresh", is_flag=True, help="Replace an earlier campaign in that folder.")
@json_option("Print the figures and findings as JSON.")
def fuzz(
    iut: str, minutes: float | None, number: int | None, seed: int | None, link: str,
    profile: str | None, modes: tuple[str, ...], bed: str, jobs: int, shrink_runs: int,
    share: str, dask: str, out: Path | None, fresh: bool, as_json: bool,
) -> None:  # fmt: skip
    """Talk to an implementation in ways that nobody wrote down, and judge every packet.

    Packets, conversations, users and the link are drawn at random. What violates a requirement is
    made as short as possible. The result is a bundle as of 'bentpipe certify', with a report, the
    packets, and a replay file of each finding; 'bentpipe verify' judges it again, and 'bentpipe
    replay' plays it on any implementation.
    """
    description, over, binding = introduced(iut, link)
    with explained(ScriptError, exit_code=USAGE):
        binding.testers(modes)
    folder = out or Path("bentpipe-runs") / f"fuzz-{description.id}-{over.id}"
    with explained(BundleError, exit_code=USAGE):
        if fresh:
            remove_bundle(folder)
        check_room(folder)
    with explained(SharingError, exit_code=USAGE):
        if share:
            shared(share, description.suite.name, binding.check)
    limit = number or (0 if minutes else EXAMPLES)
    with explained(ValueError, exit_code=USAGE), explained(BedError, BundleError, IutUnavailable):
        plan = campaign_plan(
            iut, link, profile, bed, folder, seed, tuple(sys.argv), examples=limit,
            minutes=minutes or 0.0, modes=modes, shrink_runs=shrink_runs, jobs=jobs,
            dask=dask,
        )  # fmt: skip
    if share.startswith(REDIS) and plan.place.image is not None:
        raise Failure("A guest has no network to Redis; share a directory, or --bed host.", USAGE)
    console = output(stderr=True)
    began = time.monotonic()

    def watch(figures: Figures, told: list[str]) -> None:
        for line in told:
            console.print(line, markup=False, soft_wrap=True)
        if console.is_terminal:
            console.print(_line(figures, time.monotonic() - began), end="\r", markup=False)

    with ended_by_signals(), explained(BedError, BundleError, LaneError):
        done = run_campaign(plan, watch, share)
    if as_json:
        print_json(done.document)
    else:
        _print(done.document, done.figures, folder)
    trouble = done.figures.problem or done.figures.broken or done.document["interrupted"]
    failed = bool(done.document["findings"])
    raise click.exceptions.Exit(FAILED if failed else OPEN if trouble else PASSED)


def _line(figures: Figures, seconds: float) -> str:
    return (
        f"{figures.conversations} conversations, {figures.packets} packets, "
        f"{len(figures.reached)} states x packets, {len(figures.met)} requirements met, "
        f"{len(figures.seen)} signatures found, {seconds:.0f} s"
    )


def _print(result: dict[str, Any], figures: Figures, folder: Path) -> None:
    for row in sorted(result["findings"], key=lambda row: bool(row["known"])):
        signature = " / ".join(part or "-" for part in row["signature"][1:])
        click.echo(f"{row['requirement']} ({signature}): {row['sentence']}")
        click.echo(f"    {row['length']} steps, in {row['conversations']} conversations; "
                   f"bentpipe replay {row['folder']}/replay.json")  # fmt: skip
        if row["known"]:
            click.echo(f"    a known deviation of {result['iut']}: {row['known']}")
    if result["interrupted"]:
        click.echo("interrupted: the campaign is partial, and has all that was found until then")
    if figures.problem:
        click.echo(f"the campaign ended early: {figures.problem}")
    if figures.note:
        click.echo(figures.note)
    if figures.broken:
        click.echo(f"a defect of the campaign: {figures.broken}")
    click.echo(f"{_line(figures, result['seconds'])} (seed {result['seed']}); "
               f"report: {folder / 'report.html'}")  # fmt: skip


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
@out_option("Store the packets in this folder.")
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
