"""``bentpipe certify``: the whole run, with live progress and a bundle at the end."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bentpipe_conformance.cli.main import USAGE, Failure, print_json
from bentpipe_conformance.engine.suite import load_profiles
from bentpipe_conformance.engine.verdict import EXIT_STATUS, Verdict
from bentpipe_conformance.evidence.records import CaseRecord

STYLE = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNSUPPORTED: "dim",
    Verdict.ERROR: "bold magenta",
}


class LiveWatcher:
    """Shows a bar and the cases as they finish; on no terminal, a line for each that is open."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bar = Progress(
            *columns,
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[running]}"),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("cases", total=None, running="")
        self.link_seconds = 0.0

    def __enter__(self) -> LiveWatcher:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def planned(self, cases: int, already: int) -> None:
        """Set the bar's length."""
        self._bar.update(self._task, total=cases, completed=already)
        if already:
            self._console.print(f"{already} of {cases} cases were finished before; going on")

    def finished(self, record: CaseRecord, running: Sequence[str]) -> None:
        """Count a case; print it unless it passed."""
        self.link_seconds += record.link_seconds
        shown = ", ".join(name.rsplit("/", 1)[-1] for name in running[:3])
        self._bar.update(self._task, advance=1, running=shown)
        if record.verdict is not Verdict.PASS:
            style = STYLE[record.verdict]
            self._console.print(
                f"[{style}]{record.verdict.value:>12}[/]  {record.id}  [dim]{record.reason}[/]",
                soft_wrap=True,
            )

    def note(self, sentence: str) -> None:
        """Print a sentence."""
        self._console.print(sentence, style="yellow")


@click.command(
    epilog="""\b
Examples:
  bentpipe certify linux --link geo
  bentpipe certify lwip --only 'snr/rto/*' --out /tmp/lwip
  bentpipe certify my-stack.toml --link geo-asym --profile hk99 --json
  bentpipe certify linux --out run --resume     go on after an interruption
  bentpipe certify stp-reference --link geo     a description chooses its suite
"""
)
@click.argument("iut")
@click.option("--link", default="geo", show_default=True, help="Link profile: ID or TOML file.")
@click.option(
    "--profile", type=click.Choice(load_profiles()),
    help="Requirements: for TCP a current conformant stack (rfc, the default) or the paper's "
    "algorithm exactly (hk99); for STP stp1.",
)  # fmt: skip
@click.option(
    "--only", multiple=True, metavar="PATTERN",
    help="Only cases whose ID, or a requirement they target, matches (shell pattern; repeatable).",
)  # fmt: skip
@click.option(
    "--bed", type=click.Choice(["auto", "uml-virtual", "uml", "host", "simulation"]),
    default="auto", show_default=True, help="Where to run.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Directory of the bundle.")
@click.option("--jobs", type=click.IntRange(1), help="Workers side by side.")
@click.option("--resume", is_flag=True, help="Go on with the interrupted run in --out.")
@click.option("--fresh", is_flag=True, help="Replace an earlier bundle in --out.")
@click.option("--seed", type=int, help="Seed of everything random (default: a new one, printed).")
@click.option(
    "--case-timeout",
    type=click.FloatRange(1.0),
    help="Wall-clock seconds after which a case counts as hung (default: 120 in virtual time, "
    "900 on a wall clock).",
)
@click.option("--json", "as_json", is_flag=True, help="Print result.json on standard output.")
def certify(
    iut: str,
    link: str,
    profile: str | None,
    only: tuple[str, ...],
    bed: str,
    out: Path | None,
    jobs: int | None,
    resume: bool,
    fresh: bool,
    seed: int | None,
    case_timeout: float | None,
    as_json: bool,
) -> None:
    """Certify the implementation under test IUT over a satellite link.

    IUT is an ID from 'bentpipe list iuts' or the path of a TOML description. The run leaves a
    bundle: result.json, junit.xml, report.html and a capture per case and capture point.
    """
    from bentpipe_conformance.bed.errors import BedError
    from bentpipe_conformance.evidence.bundle import BundleError
    from bentpipe_conformance.iut.build import IutUnavailable
    from bentpipe_conformance.iut.description import load_iut
    from bentpipe_conformance.run.certify import AdapterError
    from bentpipe_conformance.run.certify import certify as run_plan
    from bentpipe_conformance.run.plan import make_plan
    from bentpipe_conformance.run.seal import seal_bundle

    try:
        profile = load_iut(iut).suite.profile(profile)
    except ValueError as error:
        raise Failure(str(error), USAGE) from error
    directory = out or Path("bentpipe-runs") / f"{Path(iut).stem}-{Path(link).stem}-{profile}"
    if resume and fresh:
        raise Failure("--resume and --fresh exclude each other", USAGE)
    if fresh:
        _remove_bundle(directory)
    started = time.monotonic()
    try:
        plan = make_plan(
            iut=iut, link=link, profile=profile, bed=bed, only=only, directory=directory,
            jobs=jobs, resume=resume, seed=seed, command=tuple(sys.argv),
            case_timeout=case_timeout,
        )  # fmt: skip
    except ValueError as error:
        raise Failure(str(error), USAGE) from error
    except (BedError, IutUnavailable) as error:
        raise Failure(str(error)) from error
    if not as_json:
        console = Console(stderr=True)
        console.print(
            f"[bold]{plan.run.iut.name}[/] over [bold]{plan.run.link['title']}[/], profile "
            f"{profile}, {len(plan.cases)} cases"
        )
        console.print(f"bed: {plan.place.name} ({plan.place.reason}); seed {plan.run.seed}")
    try:
        with LiveWatcher(quiet=as_json) as watcher:
            bundle = run_plan(plan, watcher)
        result = seal_bundle(bundle)
        bundle.close()
    except (AdapterError, BedError, BundleError, IutUnavailable) as error:
        raise Failure(str(error)) from error
    except KeyboardInterrupt:
        raise Failure(
            f"interrupted; finished cases are in {directory}: go on with --out {directory} "
            "--resume",
            130,
        ) from None
    wall = time.monotonic() - started
    if as_json:
        print_json(result)
    else:
        _print(result, directory, watcher.link_seconds, wall)
    raise click.exceptions.Exit(EXIT_STATUS[Verdict(result["verdict"])])


def _remove_bundle(directory: Path) -> None:
    """Remove an earlier bundle, and nothing that is not one."""
    if not directory.exists():
        return
    if any(directory.iterdir()) and not (directory / "run.json").is_file():
        raise Failure(f"{directory} holds something that is no bundle; choose another --out", USAGE)
    shutil.rmtree(directory)


def _print(result: dict[str, Any], directory: Path, link_seconds: float, wall: float) -> None:
    console = Console()
    verdict = Verdict(result["verdict"])
    console.print()
    for row in result["requirements"]:
        found = Verdict(row["verdict"])
        if found is not Verdict.PASS:
            console.print(
                f"[{STYLE[found]}]{found.value:>12}[/]  {row['id']} [dim]{row['level']}[/] "
                f"{row['title']}: {row['reason']}",
                soft_wrap=True,
            )
    counts = ", ".join(f"{count} {name}" for name, count in result["summary"].items() if count)
    console.print(f"\nrequirements: {counts}")
    if result["deviations"]:
        console.print(
            f"deviations from SHOULD: {', '.join(result['deviations'])} "
            "[dim](they do not fail the certification)[/]"
        )
    for sentence in result["ics_disagreements"]:
        console.print(f"[yellow]{sentence}; correct the ICS in its TOML file[/]", soft_wrap=True)
    console.print(
        f"[dim]{link_seconds:.0f} s of satellite time judged in {wall:.0f} s of wall time[/]"
    )
    console.print(
        f"verdict: [{STYLE[verdict]}]{verdict.value}[/]   report: {directory}/report.html"
    )


COMMANDS = {"certify": certify}
