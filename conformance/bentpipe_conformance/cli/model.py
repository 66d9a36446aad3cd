"""``bentpipe model``: check the TLA+ models against their manifests."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from bentpipe_spec.registry import load_requirements
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from bentpipe_conformance.cli import model_designer, model_mutation, options
from bentpipe_conformance.cli.model_problems import told_once
from bentpipe_conformance.cli.model_scenarios import make_scenarios
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure
from bentpipe_conformance.cli.output import output, print_json
from bentpipe_conformance.models import diagram as ladder
from bentpipe_conformance.models import manifest as manifests
from bentpipe_conformance.models import messages
from bentpipe_conformance.models.answer import answer
from bentpipe_conformance.models.counterexample import scenario
from bentpipe_conformance.models.generator import Generator
from bentpipe_conformance.models.manifest import Manifest, Run
from bentpipe_conformance.models.tool import Refused, ToolProblem, find_tool
from bentpipe_conformance.models.verification import Checker, Limits, Result

_STYLE = {"as expected": "green", "problem": "yellow"}
_BROKEN = ("mutant", "limit")
_WIDTH = 120  # columns, from which on there is room to say what was violated


@click.command(
    epilog=options.examples(
        "model all --mutants",
        "model stp-data --out models",
        "model sack-newreno --scenarios --check",
        "model rwbp-flow --mutate --sample 60",
        "model stp-data --diff main",
        "model stp-data --first --within 60",
    )
)
@click.argument("name", default="all")
@click.option("--tier", type=click.Choice(["pr", "nightly"]), default="pr", show_default=True)
@click.option("--mutants", is_flag=True, help="Also run the mutants; each must be caught.")
@click.option("--only", metavar="RUN", help="Only the run of this name; mutants of this pattern.")
@click.option(
    "--workers", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True,
    help="Threads: that many pr runs at a time, or that many in one nightly run.",
)  # fmt: skip
@click.option("--timeout", type=click.FloatRange(1), help="Seconds per run [pr 300, nightly 3600].")
@options.memory_option("Java heap per run, MiB.")
@options.out_option("Keep configurations, logs, result.json, ladders and scenarios here.")
@options.models_option
@options.json_option("Print the result as JSON.")
@click.option(
    "--distributed", "host", metavar="HOST",
    help="Use TLC's distributed mode, for one run: HOST is this machine's address; --workers are "
         "started here, more may join.",
)  # fmt: skip
@click.option(
    "--coverage",
    is_flag=True,
    help="Count how often each action is taken; none that the manifest lists may be missed.",
)
@click.option("--update-manifest", is_flag=True, help="Record the figures found.")
@click.option(
    "--scenarios", is_flag=True,
    help="Make the scenarios for the suites instead: what covers the state graphs, and the "
         "mutants' counterexamples. Stored with the specification, or in --out.",
)  # fmt: skip
@click.option("--check", is_flag=True, help="With --scenarios: compare with those stored.")
@model_designer.options
@model_mutation.options
@click.option("--fetch", is_flag=True, help="Only find Java and find or fetch the model checker.")
def model(
    name: str, tier: str, mutants: bool, only: str | None, workers: int, timeout: float | None,
    memory: int, out: Path | None, models: Path | None, as_json: bool,
    host: str | None, update_manifest: bool, fetch: bool, coverage: bool,
    scenarios: bool, check: bool, first: bool, within: float | None, diff: str | None,
    vacuity: bool, alone: bool, edits: Path | None, number: int | None, record: bool,
    **mutation: Any,
) -> None:  # fmt: skip
    """Check a model, or all of them, and compare with the manifests.

    NAME is a model, the beginning of one (stp), a folder with a manifest of your own, or all.
    Exit status 0 when everything is as the manifests say, 1 on a violation, an uncaught mutant or
    drift, 3 when the tool could not do its work.
    """
    console = output(stderr=True)
    seconds = timeout or (300.0 if tier == "pr" else 3600.0)
    limits = Limits(seconds, memory, workers, out, host, lambda line: console.print(
        f"a worker on another machine: {line}", soft_wrap=True), coverage=coverage)  # fmt: skip
    done: list[Result] = []
    if check and not scenarios:
        raise Failure("--check goes with --scenarios", USAGE)
    if record and number is None:
        raise Failure("--record goes with --round", USAGE)
    try:
        root = models or manifests.model_root()
        if diff is not None:
            named = _named(name, root)
            status = model_designer.tell_impacts(named, root, diff, output(), as_json)
            raise click.exceptions.Exit(status)
        tool = find_tool(root, console.print)
        if fetch:
            raise click.exceptions.Exit(PASSED)
        if scenarios:
            with _ended_by_signals():
                generator = Generator(tool, limits, console.print)
                status = make_scenarios(_named(name, root), generator, out, check, as_json)
            raise click.exceptions.Exit(status)
        if edits is not None:
            with _ended_by_signals():
                status = model_designer.tell_edits(
                    _named(name, root), tool, edits, workers, timeout or 120.0, as_json
                )
            raise click.exceptions.Exit(status)
        if number is not None:
            with _ended_by_signals():
                status = model_designer.tell_round(
                    _named(name, root), tool, number, workers, timeout or 120.0,
                    record=record, as_json=as_json,
                )  # fmt: skip
            raise click.exceptions.Exit(status)
        if vacuity or alone:
            named = _named(name, root)
            checker = Checker(tool, Limits(seconds, memory, 1, logs=False))
            with _ended_by_signals():
                if alone:
                    status = model_designer.tell_alone(named, checker, workers, only, as_json)
                else:
                    status = model_designer.tell_vacuity(
                        named, tool, checker, workers, only, as_json
                    )
            raise click.exceptions.Exit(status)
        if mutation["mutate"]:
            asked = model_mutation.Asked.of(mutation, only, timeout, memory, workers, out, as_json)
            with _ended_by_signals():
                status = model_mutation.mutate(_named(name, root), tool, asked)
            raise click.exceptions.Exit(status)
        chosen = _chosen(name, root, tier, mutants, only)
        if host and (len(chosen) > 1 or chosen[0][1].kind != "check"):
            sentence = "--distributed is for one run of the kind check; name it by --only"
            raise Failure(sentence, USAGE)
        if first or within is not None:
            with _ended_by_signals():
                told = answer(Checker(tool, limits), chosen, workers, first=first, within=within)
            raise click.exceptions.Exit(model_designer.tell_answer(told, output(), as_json))
        with _ended_by_signals():
            results = _checked(Checker(tool, limits), chosen, console, done)
        if update_manifest:
            _record(results)
    except ToolProblem as problem:
        raise Failure(str(problem)) from problem
    except KeyboardInterrupt as error:
        raise Failure(_interrupted(done, out, root), 130) from error
    except OSError as error:
        remedy = "name a folder that can be written to."
        raise Failure(f"{error.filename}: {error.strerror}; {remedy}") from error
    report = _report(results, update_manifest)
    if out is not None:
        _keep(report, results, out, root)
    if as_json:
        print_json(report)
    else:
        _print(results, update_manifest)
    raise click.exceptions.Exit(_exit_status(results, update_manifest))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Meanwhile SIGTERM ends the command as Ctrl-C does, so that no Java process outlives it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _chosen(
    name: str, root: Path, tier: str, mutants: bool, only: str | None
) -> list[tuple[Manifest, Run]]:
    chosen = [
        (manifest, run)
        for manifest in _named(name, root)
        for run in manifest.runs
        if (run.name == only if only else run.tier == tier)
        and (mutants or only or run.kind not in _BROKEN)
    ]
    if not chosen and only:
        runs = [run.name for manifest in _named(name, root) for run in manifest.runs]
        near = ", ".join(get_close_matches(only, runs, cutoff=0.4)) or "none with a name like it"
        raise Failure(f"{name} has no such run as {only!r}; there is {near}", USAGE)
    if not chosen:
        raise Failure(f"{name} has no such run in the {tier} tier", USAGE)
    return chosen


def _named(name: str, root: Path) -> list[Manifest]:
    if (Path(name) / "manifest.json").is_file() and os.sep in name:
        return [manifests.load_manifest(Path(name).absolute())]
    found = manifests.load_models(root)
    if name == "all":
        return list(found.values())
    if name in found:
        return [found[name]]
    if chosen := [item for key, item in found.items() if key.startswith(name)]:
        return chosen
    raise Failure(f"no model is called {name!r}; there are {', '.join(found)} and all", USAGE)


def _interrupted(done: list[Result], out: Path | None, root: Path) -> str:
    """The sentence, after what was finished has been kept where a folder is named."""
    if not done:
        return "interrupted; nothing is kept or recorded."
    sentence = f"interrupted after {len(done)} finished runs; nothing is recorded"
    broken = [item for item in done if item.verdict not in ("as expected", "drift")]
    if broken:
        sentence += f", {len(broken)} of them not as the manifests say"
    if out is None:
        return f"{sentence}; --out keeps what is finished."
    _keep(_report(done, False), done, out, root)
    return f"{sentence}; what they show is in {out / 'result.json'}."


def _checked(
    checker: Checker, chosen: list[tuple[Manifest, Run]], console: Console, ended: list[Result]
) -> list[Result]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, disable=hidden, transient=True) as bar:
        task = bar.add_task(f"0 of {len(chosen)} runs", total=len(chosen))
        done = 0

        def finished(result: Result) -> None:
            nonlocal done
            done += 1
            ended.append(result)
            bar.update(task, description=f"{done} of {len(chosen)} runs")
            if result.verdict != "as expected" and not isinstance(result.problem, Refused):
                bar.console.print(f"{result.manifest.name} {result.run.name}: {result.verdict}")

        def progress(run: Run, far: messages.Progress) -> None:
            states = f"{far.distinct:,} states, {far.rate:,.0f}/s, queue {far.queue:,}"
            text = f"{run.name}: {states}, diameter {far.depth}"
            bar.update(task, description=f"{done} of {len(chosen)} runs; {text}")

        return checker.check_all(chosen, finished, progress)


def _record(results: list[Result]) -> None:
    for manifest in {id(item.manifest): item.manifest for item in results}.values():
        figures = {
            item.run.name: item.figures
            for item in results
            if item.manifest is manifest and item.verdict in ("as expected", "drift")
        }
        manifests.record(manifest, figures)


def _exit_status(results: list[Result], updated: bool) -> int:
    verdicts = {item.verdict for item in results} - ({"drift"} if updated else set())
    if "problem" in verdicts:
        return OPEN
    return PASSED if verdicts <= {"as expected"} else FAILED


def _report(results: list[Result], updated: bool) -> list[dict[str, Any]]:
    fine: tuple[str, str] = ("as expected", "")
    judged = [
        (item, *(fine if updated and item.verdict == "drift" else (item.verdict, item.why)))
        for item in results
    ]
    return [
        {"model": item.manifest.name, "run": item.run.name, "kind": item.run.kind,
         "verdict": verdict, "why": why, "violated": item.violated,
         "requirements": list(item.manifest.requirements.get(item.violated, ())), **item.figures}
        for item, verdict, why in judged
    ]  # fmt: skip


def _keep(report: list[dict[str, Any]], results: list[Result], out: Path, root: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    scenarios = []
    for item in results:
        if item.outcome is not None and item.outcome.trace:
            drawn = ladder.build(item.outcome.trace, item.manifest.ladder, item.outcome.loop)
            title = f"{item.manifest.name}, {item.run.name}: {item.violated} violated"
            folder = out / item.manifest.name / item.run.name
            (folder / "ladder.svg").write_text(ladder.as_svg(drawn, title), encoding="utf-8")
            (folder / "ladder.txt").write_text(ladder.as_text(drawn) + "\n", encoding="utf-8")
            if item.run.violates == item.violated:
                scenarios.append(scenario(item, drawn, root))
    if scenarios:
        text = json.dumps(scenarios, indent=2, ensure_ascii=False) + "\n"
        (out / "scenarios.json").write_text(text, encoding="utf-8")


def _print(results: list[Result], updated: bool) -> None:
    console = output()
    texts = (Column(name, no_wrap=True) for name in ("model", "run", "kind", "result"))
    figures = (Column(name, justify="right", no_wrap=True) for name in ("distinct", "depth", "s"))
    table = Table(*texts, *figures, box=None, pad_edge=False, header_style="bold")
    if console.width >= _WIDTH:
        table.add_column("shows", overflow="fold", min_width=30)
    for item in results:
        verdict = "recorded" if updated and item.verdict == "drift" else item.verdict
        found = item.figures
        ids = ", ".join(item.manifest.requirements.get(item.violated, ()))
        shows = f"{item.violated} violated ({ids or 'as it must'})" if item.violated else ""
        table.add_row(
            item.manifest.name, item.run.name, item.run.kind,
            f"[{_STYLE.get(verdict, 'red')}]{'ok' if verdict == 'as expected' else verdict}[/]",
            f"{found['distinct']:,}" if "distinct" in found else "",
            str(found.get("depth") or ""), str(found.get("seconds", "")),
            *([shows] if console.width >= _WIDTH else []),
        )  # fmt: skip
    console.print(table)
    broken = any(item.verdict in ("violation", "not caught") for item in results)
    muted = 0
    explained = _shortest(results)
    for at, item in enumerate(results):
        if item.verdict == "as expected" or (updated and item.verdict == "drift"):
            continue
        if item.verdict == "problem":
            continue
        if broken and item.verdict == "drift":
            muted += 1
            continue
        name = f"{item.manifest.name} {item.run.name}"
        console.print(f"\n[bold]{name}[/]: {item.why}", soft_wrap=True)
        if at in explained:
            _explain(item, console)
    for sentence in told_once(results):
        console.print(f"\n{sentence}", soft_wrap=True)
    if muted:
        console.print(f"\n{muted} other runs have other figures, as is natural now.")
    if all(item.verdict == "as expected" for item in results):
        number = "1 run" if len(results) == 1 else f"{len(results)} runs, all"
        console.print(f"[green]{number} as the manifests say.[/]")


def _shortest(results: list[Result]) -> set[int]:
    """Of the counterexamples to each property the shortest, by position."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for at, item in enumerate(results):
        if item.verdict in ("violation", "not caught") and item.outcome is not None:
            key, length = (item.manifest.name, item.violated), len(item.outcome.trace)
            if length:
                found[key] = min(found.get(key, (length, at)), (length, at))
    return {at for _, at in found.values()}


def _explain(item: Result, console: Console) -> None:
    assert item.outcome is not None
    registry = load_requirements()
    for identifier in item.manifest.requirements.get(item.violated, ()):
        if identifier in registry:
            console.print(f"{identifier}: {registry[identifier].text}", soft_wrap=True)
    drawn = ladder.build(item.outcome.trace, item.manifest.ladder, item.outcome.loop)
    console.print(ladder.as_text(drawn), markup=False, highlight=False, soft_wrap=True)
