"""``bentpipe certify``: the whole run, with live progress and a bundle at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from bentpipe_reference.common.processes import ended_by_signals
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TextColumn

from bentpipe_conformance.cli import options
from bentpipe_conformance.cli.outcome import USAGE, Failure, explained
from bentpipe_conformance.cli.output import COUNTED, output, print_json
from bentpipe_conformance.engine.attribution import ranks
from bentpipe_conformance.engine.verdict import EXIT_STATUS, Verdict
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.run.watcher import Watcher

STYLE = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNSUPPORTED: "dim",
    Verdict.ERROR: "bold magenta",
}


class LiveWatcher(Watcher):
    """Shows a bar on a terminal, and everywhere a line for each case that failed or is open.

    What is not supported would drown these; the requirements at the end say it.
    """

    def __init__(self, quiet: bool) -> None:
        self._console = output(stderr=True, quiet=quiet)
        self._bar = Progress(
            *COUNTED,
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
            self._console.print(f"{already} of {cases} cases were finished before; continuing")

    def finished(self, record: CaseRecord, running: Sequence[str]) -> None:
        """Count a case; print it if it is not as it should be."""
        self.link_seconds += record.link_seconds
        shown = ", ".join(name.rsplit("/", 1)[-1] for name in running[:3])
        self._bar.update(self._task, advance=1, running=shown)
        if record.verdict not in (Verdict.PASS, Verdict.UNSUPPORTED):
            _print_verdict(
                self._console, record.verdict, f"{record.id}  [dim]{escape(record.reason)}[/]"
            )

    def note(self, sentence: str) -> None:
        """Print a sentence."""
        self._console.print(escape(sentence), style="yellow")


@click.command(
    epilog=options.examples(
        "certify linux --link geo",
        "certify lwip --only 'snr/timeout/*' --out /tmp/lwip",
        "certify my-stack.toml --link geo-asym --profile hk99 --json",
        "certify linux --out run --resume     continue after an interruption",
        "certify linux --sign ~/.ssh/id_ed25519",
        "certify stp-reference --link geo     a description chooses its suite",
    )
)
@click.argument("iut")
@options.link_option
@options.profile_option()
@click.option(
    "--only", multiple=True, metavar="PATTERN",
    help="Only cases whose ID, or a requirement they target, matches (shell pattern; repeatable).",
)  # fmt: skip
@options.bed_option("bed", "Where to run.", "simulation")
@options.out_option("Directory of the bundle.", folder=False)
@click.option("--jobs", type=click.IntRange(1), help="Number of parallel workers.")
@click.option("--resume", is_flag=True, help="Continue the interrupted run in --out.")
@click.option("--fresh", is_flag=True, help="Replace an earlier bundle in --out.")
@click.option(
    "--sign", "key", type=click.Path(path_type=Path), metavar="KEY",
    help="Sign the bundle with this SSH key (ssh-keygen asks for a passphrase).",
)  # fmt: skip
@click.option("--seed", type=int, help="Seed of everything random (default: a new one, printed).")
@click.option(
    "--case-timeout", type=click.FloatRange(1.0),
    help="Wall-clock seconds after which a case counts as hung (default: 120 in virtual time, "
         "900 on a wall clock).",
)  # fmt: skip
@click.option(
    "--explore", type=click.FloatRange(0), metavar="SECONDS", default=0.0,
    help="Wall-clock seconds of a campaign beside the cases, with the run's seed (default: none).",
)  # fmt: skip
@options.json_option("Print result.json on standard output.")
def certify(
    iut: str, link: str, profile: str | None, only: tuple[str, ...], bed: str, out: Path | None,
    jobs: int | None, resume: bool, fresh: bool, key: Path | None, seed: int | None,
    case_timeout: float | None, explore: float, as_json: bool,
) -> None:  # fmt: skip
    """Certify the implementation under test IUT over a satellite link.

    IUT is an ID from 'bentpipe list iuts' or the path of a TOML description. The run leaves a
    bundle: result.json, junit.xml, report.html, certificate.html, and for each case a capture at
    either side of the link. A run of chosen cases (--only) is partial: it can fail, but never pass.
    With --explore a campaign beside the cases plays conversations that nobody wrote down; what
    violates a requirement there fails it too, and is in the bundle with its packets and a replay
    file.
    """
    from bentpipe_conformance.bed.errors import BedError
    from bentpipe_conformance.evidence.attestation import SigningError, check_key
    from bentpipe_conformance.evidence.bundle import BundleError, remove_bundle
    from bentpipe_conformance.iut.build import IutUnavailable
    from bentpipe_conformance.iut.description import load_iut
    from bentpipe_conformance.run.certify import AdapterError
    from bentpipe_conformance.run.certify import certify as run_plan
    from bentpipe_conformance.run.exploration import explore as run_campaign
    from bentpipe_conformance.run.plan import make_plan
    from bentpipe_conformance.run.seal import seal_bundle

    with explained(ValueError, exit_code=USAGE):
        profile = load_iut(iut).suite.profile(profile)
    directory = out or Path("bentpipe-runs") / f"{Path(iut).stem}-{Path(link).stem}-{profile}"
    if resume and fresh:
        raise Failure("--resume and --fresh exclude each other", USAGE)
    if key is not None:
        with explained(SigningError, exit_code=USAGE):
            check_key(key)
    if fresh:
        with explained(BundleError, exit_code=USAGE):
            remove_bundle(directory)
    with explained(ValueError, exit_code=USAGE), explained(BedError, BundleError, IutUnavailable):
        plan = make_plan(
            iut=iut, link=link, profile=profile, bed=bed, only=only, directory=directory,
            jobs=jobs, resume=resume, seed=seed, command=tuple(sys.argv),
            case_timeout=case_timeout,
        )  # fmt: skip
    if not as_json:
        console = output(stderr=True)
        iut, over = escape(plan.run.iut.name), escape(str(plan.run.link["title"]))
        names = f"[bold]{iut}[/] over [bold]{over}[/]"
        console.print(f"{names}, profile {profile}, {len(plan.cases)} cases")
        console.print(f"bed: {plan.place.name} ({escape(plan.place.reason)}); seed {plan.run.seed}")
    try:
        stops = (AdapterError, BedError, BundleError, IutUnavailable, SigningError)
        with ended_by_signals(), explained(*stops):
            with LiveWatcher(quiet=as_json) as watcher:
                bundle = run_plan(plan, watcher)
                run_campaign(plan, bundle, explore, watcher)
            result = seal_bundle(bundle, key, plan.jobs)
            bundle.close()
    except KeyboardInterrupt:
        again = f"finished cases are in {directory}: go on with --out {directory} --resume"
        raise Failure(f"interrupted; {again}", 130) from None
    if as_json:
        print_json(result)
    else:
        began = max([bundle.run.started, *(session.started for session in bundle.sessions)])
        _print(result, directory, watcher.link_seconds, result["finished"] - began)
    raise click.exceptions.Exit(EXIT_STATUS[Verdict(result["verdict"])])


def _print_verdict(console: Console, verdict: Verdict, text: str) -> None:
    console.print(f"[{STYLE[verdict]}]{verdict.value:>12}[/]  {text}", soft_wrap=True)


def in_order(result: dict[str, Any]) -> list[tuple[dict[str, Any], bool]]:
    """What did not pass, and whether it follows from the failure before it.

    What was not supported comes first, so that it does not push failures off the screen; of the
    failures those that name the fault, each with what fails in its wake.
    """
    places = ranks(result["attribution"])
    last = len(places), 0

    def rank(row: dict[str, Any]) -> tuple[int, int]:
        return places.get(row["id"], last) if row["verdict"] == Verdict.FAIL else last

    def place(row: dict[str, Any]) -> tuple[bool, bool, tuple[int, int]]:
        return row["verdict"] != "unsupported", row["verdict"] == Verdict.FAIL, rank(row)

    rows = [row for row in result["requirements"] if row["verdict"] != Verdict.PASS]
    return [(row, rank(row)[1] > 0) for row in sorted(rows, key=place)]


def _explored(told: dict[str, Any]) -> str:
    """What the campaign beside the cases did, in a sentence."""
    told_of = f"explored {told['conversations']} conversations (seed {told['seed']})"
    found = f"{len(told['found'])} found" if told["found"] else "nothing found"
    doubtful = f", {len(told['doubtful'])} doubtful" if told["doubtful"] else ""
    ended = f"; it ended early: {told['problem']}" if told["problem"] else ""
    return f"{told_of}: {found}{doubtful}{ended}"


def _print(result: dict[str, Any], directory: Path, link_seconds: float, wall: float) -> None:
    console = output()
    verdict = Verdict(result["verdict"])
    console.print()
    for row, in_the_wake in in_order(result):
        found = Verdict(row["verdict"])
        sentence = escape(f"{row['title']}: {row['reason']}")
        mark = "[dim]in its wake[/] " if in_the_wake else ""
        _print_verdict(console, found, f"{mark}{row['id']} [dim]{row['level']}[/] {sentence}")
    counts = ", ".join(f"{count} {name}" for name, count in result["summary"].items() if count)
    console.print(f"\nrequirements: {counts}")
    if result["deviations"]:
        console.print(
            f"deviations from SHOULD: {', '.join(result['deviations'])} "
            "[dim](they do not fail the certification)[/]"
        )
    for text in result["ics_disagreements"]:
        remedy = "correct the ICS in its TOML file"
        console.print(f"[yellow]{escape(text)}; {remedy}[/]", soft_wrap=True)
    if told := result.get("exploration"):
        console.print(f"[dim]{escape(_explored(told))}[/]", soft_wrap=True)
    times = f"{link_seconds:.0f} s of satellite time judged in {wall:.0f} s of wall time"
    console.print(f"[dim]{times}[/]")
    report = f"report: {escape(str(directory))}/report.html"
    word = f"[{STYLE[verdict]}]{verdict.value}[/]"
    if result["partial"]:
        open_verdict = verdict is Verdict.INCONCLUSIVE
        word = f"[yellow]partial[/]{'' if open_verdict else f', {word}'}"
        for sentence in result["partial_because"]:
            console.print(f"[yellow]this run is partial, and certifies nothing: {sentence}[/]")
    console.print(f"verdict: {word}   {report}", soft_wrap=True)
