"""``bentpipe experiment``: repeat a published experiment and judge what was published of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from bentpipe_experiments.model import Cells, Experiment
from bentpipe_experiments.registry import EXPERIMENTS
from bentpipe_experiments.statistics import decimals
from bentpipe_experiments.store import Store, StoreError, remove
from rich.console import Console
from rich.table import Column, Table

from bentpipe_conformance.cli.options import examples, json_option, out_option, seed_option
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure
from bentpipe_conformance.cli.output import counting, output, print_json

_STATUS = {True: PASSED, False: FAILED, None: OPEN}
_WORDS = {True: "[green]holds[/]", False: "[bold red]does not hold[/]", None: "[yellow]open[/]"}


@click.command(
    epilog=examples(
        "experiment hk99-fig13",
        "experiment hk99-fig13 --runs 5 --rtt 20 --rtt 600",
        "experiment hk99-stp-fig9",
        more="Exit status: 0 the published shape holds, 1 it does not, 3 it stays open.",
    )
)
@click.argument("name", type=click.Choice(list(EXPERIMENTS)))
@click.option("--runs", type=click.IntRange(1), help="Runs per point (default: as published).")
@click.option(
    "--rtt", "--at", "points", type=click.FloatRange(0.0, 10_000.0), multiple=True, metavar="X",
    help="Only this round-trip time, milliseconds, or what else is varied (repeatable).",
)  # fmt: skip
@seed_option
@click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True,
    help="Processes.",
)  # fmt: skip
@out_option("Directory of the results (default: bentpipe-runs/NAME).")
@click.option("--fresh", is_flag=True, help="Forget the runs stored in --out.")
@json_option("Print results.json on standard output.")
def experiment(
    name: str, runs: int | None, points: tuple[float, ...], seed: int, jobs: int,
    out: Path | None, fresh: bool, as_json: bool,
) -> None:  # fmt: skip
    """Repeat the published experiment NAME on the reference, in virtual time.

    Every run is stored as it ends; after an interruption, the same command continues. It leaves
    results.json and the figure as SVG and PNG in --out.
    """
    from bentpipe_experiments.reporting import outcome, write

    chosen = EXPERIMENTS[name]
    count = runs or chosen.runs
    where = tuple(sorted(set(points))) or chosen.points
    directory = out or Path("bentpipe-runs") / name
    console = output(stderr=True, quiet=as_json)
    console.print(f"[bold]{chosen.title}[/] ({chosen.source}); seed {seed}", soft_wrap=True)
    try:
        if fresh:
            remove(directory)
        store = Store(directory, chosen, seed)
        _measure(chosen, store, where, count, seed, jobs, console)
        cells = store.cells([series.id for series in chosen.series], where, count)
        result = outcome(chosen, cells, chosen.judge(cells, seed), seed)
        write(directory, chosen, cells, result)
    except StoreError as error:
        raise Failure(str(error), USAGE) from error
    except (RuntimeError, OSError) as error:
        raise Failure(f"{error} Runs so far are in {directory}.") from error
    except KeyboardInterrupt:
        again = f"finished runs are in {directory}, the same command continues."
        raise Failure(f"interrupted; {again}", 130) from None
    if as_json:
        print_json(result)
    else:
        _print(chosen, cells, result, directory)
    raise click.exceptions.Exit(_STATUS[result["holds"]])


def _measure(
    chosen: Experiment, store: Store, points: Sequence[float], runs: int, seed: int, jobs: int,
    console: Console,
) -> None:  # fmt: skip
    from bentpipe_experiments.runs import missing, run_missing

    todo = missing(chosen, store, points, runs)
    total = runs * len(points) * len(chosen.series)
    if len(todo) < total:
        console.print(f"{total - len(todo)} of {total} runs were stored before")
    with counting("runs", total, total - len(todo), quiet=console.quiet) as advance:
        run_missing(chosen, store, todo, seed, jobs, advance)


def _print(chosen: Experiment, cells: Cells, result: dict[str, Any], directory: Path) -> None:
    console = output()
    for text in result["ladder"]:
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    for note, label in chosen.quantities:
        console.print(_table(chosen, {key: cell.of(note) for key, cell in cells.items()}, label))
        console.print()
    for item in result["judgments"]:
        console.print(f"{_WORDS[item['holds']]}  {item['claim']}", soft_wrap=True)
        console.print(f"    {item['sentence']}", soft_wrap=True, highlight=False)
    console.print(f"\nfigure: {directory}/{chosen.id}.svg   results: {directory}/results.json")


def _table(chosen: Experiment, cells: Cells, label: str) -> Table:
    names = (chosen.x_label, *(series.label for series in chosen.series))
    table = Table(
        *(Column(name, justify="right") for name in names), box=None, pad_edge=False,
        header_style="bold", title=f"{label}: mean and 95 % confidence interval",
        title_justify="left",
    )  # fmt: skip
    digits = decimals(cell.mean for cell in cells.values())
    for point in sorted({point for _, point in cells}):
        found = [cells[series.id, point] for series in chosen.series]
        row = (f"{cell.mean:.{digits}f} ± {cell.half_width:.{digits}f}" for cell in found)
        table.add_row(f"{point:g}", *row)
    return table
