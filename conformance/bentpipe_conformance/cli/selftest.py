"""``bentpipe selftest``: prove that the suite has teeth."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.markup import escape

from bentpipe_conformance.cli import mutation, rounds
from bentpipe_conformance.cli.options import examples, json_option, out_option, seed_option
from bentpipe_conformance.cli.outcome import FAILED, PASSED, USAGE, Failure, explained
from bentpipe_conformance.cli.output import counting, output, plain_table, print_json
from bentpipe_conformance.cli.variants import judge_variants, print_variants
from bentpipe_conformance.engine.suite import load_suites, suite_named


@click.command(
    epilog=examples(
        "selftest snr",
        "selftest snr --only SNR-REC-001 --json",
        "selftest stp --transfers 100",
        "selftest pep --variants 1",
        "selftest snr --mutate --module 'tcp.receiver' --out snr.json",
    )
)
@click.argument("suite", type=click.Choice(list(load_suites())))
@click.option("--only", multiple=True, metavar="ID", help="Only these mutants or requirements.")
@click.option(
    "--transfers",
    type=click.IntRange(1),
    metavar="N",
    help="Judge N transfers between references over random links instead.",
)
@click.option(
    "--round",
    "number",
    type=click.IntRange(1),
    metavar="N",
    help="Judge the faults of blind round N instead.",
)
@click.option(
    "--variants",
    type=click.IntRange(1),
    metavar="N",
    help="Judge the permitted variants of blind round N instead: no checker may accuse.",
)
@click.option(
    "--record",
    is_flag=True,
    help="With --round or --variants: record this as its first run, which counts.",
)
@click.option("--mutate", is_flag=True, help="Try small changes of the reference's source instead.")
@click.option(
    "--sample", type=click.IntRange(1), metavar="N", help="With --mutate: N of them at random."
)
@click.option(
    "--module",
    "modules",
    multiple=True,
    metavar="PATTERN",
    help="With --mutate: only of these modules, such as 'tcp.recovery.*'.",
)
@click.option(
    "--survivors-of",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="With --mutate: only those that survived in a stored result.",
)
@click.option(
    "--whole",
    is_flag=True,
    help="Run all cases against a mutant, though it has been caught; with --mutate, list every run "
    "that kills.",
)
@click.option(
    "--usual",
    is_flag=True,
    help="With --mutate: do not try survivors in further settings of the reference.",
)
@click.option(
    "--publish",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --mutate: store what the documentation shows of the result; with --survivors-of of "
    "the stored one, with what has become of its survivors.",
)
@click.option(
    "--linux",
    type=click.IntRange(1),
    metavar="N",
    help="Judge N encounters of two Linux hosts in the bed instead.",
)
@click.option(
    "--ns3",
    type=click.IntRange(1),
    metavar="N",
    help="Judge N encounters of two hosts simulated by ns-3 (Debian's libns3-dev) instead.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="With --linux or --ns3: store the packets of who is accused in this folder, made if "
    "missing.",
)
@seed_option
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes.")
@out_option("Store the table in this file (JSON).", folder=False)
@json_option("Print the result as JSON.")
def selftest(
    suite: str, only: tuple[str, ...], transfers: int | None, number: int | None,
    variants: int | None, record: bool, mutate: bool, sample: int | None,
    modules: tuple[str, ...], survivors_of: Path | None, whole: bool, usual: bool,
    publish: Path | None,
    linux: int | None, ns3: int | None, keep: Path | None, seed: int, jobs: int, out: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Run every case against every mutant of the reference, in virtual time.

    Each mutant breaks one requirement and must fail on it; the true reference must meet every
    requirement in all profiles and settings. Exit status 0 when all of this holds, 1 otherwise.

    With --transfers two references talk over links that lose, delay, reorder and double packets,
    with settings and users drawn at random; no checker may accuse them. What stands between two
    ends has random ends, and links that fail for a while. Transfer k of seed S is transfer 1 of
    seed S + k - 1.

    With --round N the faults of a blind round are judged, written by people who had not seen the
    exam: which are caught, and whether the requirement that names them is the right one. Exit
    status 1 when a valid one is missed.

    With --variants N it is the other way about: right implementations that differ from the
    reference, by people who had not seen the exam, play the cases and ten random transfers. Exit
    status 1 when one is accused of what its review does not find to be right.

    With --mutate a machine makes the mutants: one small change each, of every protocol module. What
    no case notices is listed with its line, unless it is explained. --only takes their identifiers,
    --seed chooses the sample, --out keeps results, and a rerun with it goes on. Exit status 1 when
    an explanation no longer fits or a run of all mutants misses its limits.

    With --linux it is two hosts of the bed's kernel, with sysctls, congestion controls, users and
    links drawn at random; known deviations of Linux from a requirement are subtracted. With --ns3
    it is two hosts of the simulator ns-3, with attributes of its TCP drawn at random.
    """
    given = (transfers, number, variants, linux, ns3)
    if mutate + sum(run is not None for run in given) > 1:
        names = "--mutate, --round, --variants, --transfers, --linux and --ns3"
        raise Failure(f"{names} are different runs; give one", USAGE)
    if mutate:
        asked = mutation.Asked(
            suite, only, modules, sample, seed, jobs, whole, usual, survivors_of, out, publish,
            as_json,
        )  # fmt: skip
        raise click.exceptions.Exit(mutation.mutate(asked))
    if sample or modules or survivors_of or usual or publish:
        names = "--sample, --module, --survivors-of, --usual and --publish"
        raise Failure(f"{names} go with --mutate", USAGE)
    if keep is not None and linux is None and ns3 is None:
        raise Failure("--keep goes with --linux or --ns3", USAGE)
    if record and (number is variants is None or only):
        raise Failure("--record goes with --round or --variants, and with all of them", USAGE)
    if variants is not None:
        deliver = partial(_deliver, out=out, show=None if as_json else print_variants)
        status = judge_variants(suite, variants, only, jobs, deliver, record=record)
        raise click.exceptions.Exit(status)
    if number is not None:
        deliver = partial(_deliver, out=out, show=None if as_json else rounds.print_round)
        status = rounds.judge_round(suite, number, only, jobs, deliver, record=record)
        raise click.exceptions.Exit(status)
    from bentpipe_conformance.selftest import subjects as running

    if transfers or linux or ns3:
        if only:
            sentence = "--only chooses mutants, and these runs have none; leave all but one out"
            raise Failure(sentence, USAGE)
        if transfers:
            _judge_transfers(suite, range(seed, seed + transfers), jobs, out, as_json=as_json)
        seeds = range(seed, seed + (linux or ns3 or 0))
        name = "linux" if linux else "ns-3"
        _judge_strangers(suite, name, seeds, jobs, out, keep, as_json=as_json)
    with explained(ValueError):
        chosen = running.subjects(suite, only)
    if only and not any(item.target for item in chosen):
        requirement = next(iter(suite_named(suite).requirements()))
        raise Failure(
            f"no mutant matches {', '.join(only)}; 'bentpipe list requirements' lists what mutants "
            f"break, 'bentpipe show {requirement}' shows the mutants of one requirement",
            USAGE,
        )
    with counting("mutants", len(chosen)) as advance:
        results = running.run(chosen, suite, seed, max(1, jobs), advance, whole=whole)
    outcome = running.summary(results, suite)
    outcome["seed"] = seed
    _deliver(outcome, out, None if as_json else _print)
    problems = ("missed", "reference_failures", "reference_open")
    gaps = () if only else ("requirements_without_mutant", "requirements_without_checker")
    clean = not any(outcome[name] for name in (*problems, *gaps))
    raise click.exceptions.Exit(PASSED if clean else FAILED)


def _deliver(
    outcome: dict[str, Any], out: Path | None, show: Callable[[dict[str, Any]], None] | None
) -> None:
    """Store the outcome; show it, or print it as JSON."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(outcome, indent=2), encoding="utf-8")
    (show or print_json)(outcome)


def _judge_transfers(
    suite: str, seeds: range, jobs: int, out: Path | None, *, as_json: bool
) -> NoReturn:
    from bentpipe_conformance.selftest import innocence

    with counting("transfers judged", len(seeds)) as advance:
        hearings = innocence.hear_all(suite, seeds, max(1, jobs), advance)
    outcome = innocence.summary(hearings, suite)
    _deliver(outcome, out, None if as_json else _print_transfers)
    raise click.exceptions.Exit(FAILED if outcome["accusations"] else PASSED)


def _judge_strangers(
    suite: str, name: str, seeds: range, jobs: int, out: Path | None, keep: Path | None, *,
    as_json: bool,
) -> NoReturn:  # fmt: skip
    from bentpipe_conformance.bed.errors import BedError
    from bentpipe_conformance.iut.build import IutUnavailable
    from bentpipe_conformance.selftest import innocence, ns3, strangers

    if suite != strangers.SUITE:
        raise Failure(f"{name.capitalize()} speaks TCP: choose the suite {strangers.SUITE}", USAGE)
    if keep is not None:
        try:
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sentence = f"{keep} cannot be made ({error.strerror}); choose another folder"
            raise Failure(sentence, USAGE) from None
    stranger = strangers.STRANGERS[name]
    with explained(BedError, IutUnavailable):
        if stranger is strangers.NS3:
            ns3.prepare(lambda line: click.echo(line, err=True))
        with counting("encounters judged", len(seeds)) as advance:
            hearings = strangers.hear_all(seeds, max(1, jobs), advance, keep, stranger)
    outcome = innocence.summary(hearings, suite)
    _deliver(outcome, out, None if as_json else _print_transfers)
    raise click.exceptions.Exit(FAILED if outcome["accusations"] else PASSED)


def _print_transfers(outcome: dict[str, Any]) -> None:
    for item in outcome["accusations"]:
        where = f"seed {item['seed']}, host {item['host']}, packets {item['packets']}"
        click.echo(f"{item['requirement']}: {item['sentence']} ({where})")
    click.echo(
        f"{outcome['transfers']} transfers, "
        + (f"{outcome['connections']} connections, " if outcome["connections"] else "")
        + f"{outcome['packets']} packets, {len(outcome['met'])} requirements found met, "
        f"{len(outcome['accusations'])} accusations of the innocent"
        + (f", {outcome['known']} known deviations" if outcome["known"] else "")
    )


def _print(outcome: dict[str, Any]) -> None:
    console = output()
    table = plain_table("requirement", "mutant", "profile", "caught", "why")
    for row in sorted(outcome["table"], key=lambda item: item["breaks"]):
        caught = "[green]yes[/]" if row["caught"] else "[bold red]NO[/]"
        table.add_row(row["breaks"], row["mutant"], row["profile"], caught, escape(row["sentence"]))
    console.print(table)
    console.print()
    failing = ("reference_failures", "The true reference fails")
    for key, title in (failing, ("reference_open", "The true reference stays open")):
        for row in outcome[key]:
            console.print(
                f"[bold red]{title}[/] ({' '.join((row['profile'], row['setting'])).strip()}) "
                f"{row['requirement']}: {escape(row['sentence'])}"
            )
    unbroken = ("requirements_without_mutant", "No mutant breaks")
    for key, title in (unbroken, ("requirements_without_checker", "No checker judges")):
        if outcome[key]:
            console.print(f"[yellow]{title}:[/] {', '.join(outcome[key])}")
    console.print(
        f"{outcome['mutants']} mutants, {outcome['caught']} caught, "
        f"{len(outcome['missed'])} missed; {len(outcome['reference_failures'])} failures of the "
        f"true reference (seed {outcome['seed']})"
    )
