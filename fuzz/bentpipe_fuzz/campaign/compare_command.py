"""``bentpipe compare``: two implementations, the same scripts."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import click
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.cli.options import examples, json_option, out_option
from bentpipe_conformance.cli.outcome import FAILED, PASSED, USAGE, Failure, explained
from bentpipe_conformance.cli.output import print_json
from bentpipe_conformance.engine.lane import LaneError

from bentpipe_fuzz.campaign import shards
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.command import drawn_options, planned
from bentpipe_fuzz.campaign.comparing import MEANING, Difference, Played, compared
from bentpipe_fuzz.campaign.plan import Planner
from bentpipe_fuzz.campaign.recording import Recital, record
from bentpipe_fuzz.campaign.replay import ReplayError, load
from bentpipe_fuzz.campaign.script import Script, ScriptError

EXAMPLES = 50
"""Scripts that are compared when none are given."""


@click.command(
    epilog=examples(
        "compare reference linux --examples 100 --seed 7",
        "compare linux lwip found.json other.json",
        "compare stp-reference-simulated stp-go --json",
        more="\nExit status: 0 nothing is violated by one alone, 1 it is, 2 wrong usage, 3 error.",
    )
)
@click.argument("one")
@click.argument("other")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--examples",
    "number",
    type=click.IntRange(1),
    default=EXAMPLES,
    metavar="N",
    show_default=True,
    help="Scripts to draw where no replay files are given.",
)
@drawn_options
@out_option("Keep the packets of both in this new folder.")
@json_option("Print the differences as JSON.")
def compare(
    one: str, other: str, files: tuple[Path, ...], number: int, seed: int | None, link: str,
    profile: str | None, modes: tuple[str, ...], bed: str, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Play the same scripts with the implementations ONE and OTHER, and say how they differ.

    Scripts are those of the replay FILES, or drawn as for a campaign. Of each the first packet to
    which the two answer differently is looked at. One of them may violate a requirement; a
    requirement may speak of it and permit both; or the specification is silent, which its drafters
    should know.
    """
    first = random.SystemRandom().getrandbits(31) if seed is None else seed
    plans = [planned(name, link, bed, profile) for name in (one, other)]
    suite = plans[0][0].suite
    if plans[1][0].suite.name != suite.name:
        told = f"{one} speaks {suite.protocol}, {other} {plans[1][0].suite.protocol}"
        raise Failure(told, USAGE)
    scripts = _scripts(files, number, first, modes, suite.name, plans[0][0])
    with ExitStack() as stack, explained(BedError, LaneError):
        root = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bentpipe-")))
        if out is not None and out.exists() and any(out.iterdir()):
            raise Failure(f"{out} holds other files; choose another --out directory", USAGE)
        played: list[list[Played | None]] = []
        for side, name, (_, place, chosen) in zip(("1", "2"), (one, other), plans, strict=True):
            folder = root / side
            folder.mkdir(parents=True, exist_ok=True)
            order = Recital(
                name, link, chosen, first, place.report.timing_error if place.report else 0.0,
                shards.patience(place) == 1, str(folder.resolve()),
            )  # fmt: skip
            played.append(record(scripts, order, place))
        binding = binding_of(suite)
        rows = [
            (at, compared(left, right, suite, binding), left, right)
            for at, (left, right) in enumerate(zip(*played, strict=True), 1)
            if left is not None and right is not None
        ]
    counts = Counter(difference.kind for _, difference, _, _ in rows)
    document = {
        "one": one, "other": other, "link": link, "seed": first, "scripts": len(scripts),
        "played": len(rows), "counts": {kind: counts.get(kind, 0) for kind in MEANING},
        "differences": [_row(at, item, left, right, scripts[at - 1], (one, other))
                        for at, item, left, right in rows if item.kind != "same"],
    }  # fmt: skip
    if as_json:
        print_json(document)
    else:
        _print(document)
    raise click.exceptions.Exit(FAILED if counts.get("one violates") else PASSED)


def _scripts(
    files: tuple[Path, ...], number: int, seed: int, modes: tuple[str, ...], suite: str,
    description: Any,
) -> list[Script]:  # fmt: skip
    binding = binding_of(description.suite)
    with explained(ScriptError, exit_code=USAGE):
        chosen = binding.testers(modes)
    if not files:
        return list(islice(Planner(suite, chosen, seed).scripts(), number))
    found = []
    with explained(ReplayError, ScriptError, exit_code=USAGE):
        for path in files:
            script = load(path).script
            if script.suite != suite:
                raise Failure(f"{path} is of {script.suite}, and not of {suite}", USAGE)
            binding.check(script)
            found.append(script)
    return found


def _row(
    at: int, item: Difference, left: Played, right: Played, script: Script, names: tuple[str, str]
) -> dict[str, Any]:
    who = {
        requirement: [name for name, played in zip(names, (left, right), strict=True)
                      if requirement in played.violated]
        for requirement in item.requirements if item.kind in ("one violates", "both violate")
    }  # fmt: skip
    return {
        "script": at, "kind": item.kind, "requirements": list(item.requirements),
        "sentences": list(item.sentences), "violated_by": who,
        "exchanges": [None if it is None else str(it) for it in item.exchanges],
        "story": script.story(),
    }  # fmt: skip


def _print(document: dict[str, Any]) -> None:
    names = document["one"], document["other"]
    for row in document["differences"]:
        click.echo(f"script {row['script']}: {row['kind']}")
        for name, exchange in zip(names, row["exchanges"], strict=True):
            click.echo(f"    {name}: {exchange or 'nothing more'}")
        for requirement, sentence in zip(row["requirements"], row["sentences"], strict=False):
            who = " and ".join(row["violated_by"][requirement])
            click.echo(f"    {who} violates {requirement}: {sentence}")
        if row["kind"] == "both allowed":
            click.echo(f"    permitted by {', '.join(row['requirements'])}")
    click.echo(f"{document['played']} scripts played (seed {document['seed']}):")
    for kind, count in document["counts"].items():
        if count:
            click.echo(f"    {count:4d}  {MEANING[kind]}")
