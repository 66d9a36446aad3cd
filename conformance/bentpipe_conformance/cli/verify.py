"""``bentpipe verify`` and ``bentpipe analyze``: judging packets captured before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from bentpipe_conformance.cli.options import examples, json_option, profile_option
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure, explained
from bentpipe_conformance.cli.output import output, plain_table, print_json
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import load_suites, suite_named
from bentpipe_conformance.iut.description import DEFAULT_SUITE


@click.command(epilog=examples("verify bentpipe-runs/linux-geo-rfc"))
@click.argument("bundle", type=click.Path(path_type=Path))
@json_option("Print the re-judged result as JSON.")
def verify(bundle: Path, as_json: bool) -> None:
    """Judge a bundle's packets again, offline, and compare.

    Checks every file against the manifest, runs the checkers over the stored captures and compares
    each verdict with the stored one. Exit status 0 when the evidence supports every stored
    verdict, 1 when it does not, 3 when the bundle is damaged or unfinished.
    """
    from bentpipe_conformance.evidence.bundle import Bundle, BundleError
    from bentpipe_conformance.run.rejudge import verify as judge_bundle
    from bentpipe_conformance.run.seal import result_of, stored_result

    with explained(BundleError):
        opened = Bundle.open(bundle)
        records, differences = judge_bundle(opened)
        result = result_of(opened, records)
        stored = stored_result(opened)
    requirement_changes = _changed_requirements(stored, result)
    agrees = not differences and not requirement_changes
    if as_json:
        print_json({**result, "agrees": agrees, "differences": differences,
                    "changed_requirements": requirement_changes})  # fmt: skip
    else:
        console = output()
        for name, before, now in map(dict.values, [*differences, *requirement_changes]):
            console.print(f"[bold red]differs[/]  {name}: stored {before}, the packets give {now}")
        word = "support" if agrees else "do NOT support"
        console.print(
            f"{len(records)} cases judged again; the packets {word} the stored verdicts "
            f"(overall: {stored['verdict']})"
        )
    raise click.exceptions.Exit(PASSED if agrees else FAILED)


def _changed_requirements(stored: dict[str, Any], judged: dict[str, Any]) -> list[dict[str, str]]:
    before = {row["id"]: row["verdict"] for row in stored["requirements"]}
    after = {row["id"]: row["verdict"] for row in judged["requirements"]}
    return [
        {"id": name, "stored": before.get(name, "absent"), "judged": after.get(name, "absent")}
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


@click.command(epilog=examples("analyze server.pcapng --iut 192.0.2.1 --profile rfc --json"))
@click.argument("capture", type=click.Path(path_type=Path))
@click.option("--iut", metavar="ADDRESS", help="IPv4 address of the implementation to judge "
              "(default: the host that sent most data).")  # fmt: skip
@click.option("--suite", "suite_name", type=click.Choice(list(load_suites())),
              default=DEFAULT_SUITE, show_default=True, help="Suite to judge by.")  # fmt: skip
@profile_option()
@click.option("--partial", is_flag=True, help="Judge what precedes damage or truncation.")
@json_option("Print the analysis as JSON.")
def analyze(
    capture: Path, iut: str | None, suite_name: str, profile: str | None, partial: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Judge a capture that this suite did not make.

    The capture (pcapng or pcap) must have been taken at the implementation's side of the link: the
    checkers depend on what it knew when it sent. Each requirement holds n times, is violated at
    packet k, or was not exercised. Exit status 0 without a violated MUST, 1 with one, 3 when the
    capture cannot be judged.
    """
    from bentpipe_conformance.engine.trace import read_trace
    from bentpipe_conformance.evidence.frames import CaptureError
    from bentpipe_conformance.evidence.network import read_foreign
    from bentpipe_conformance.run.rejudge import analyze as judge_capture
    from bentpipe_conformance.run.rejudge import busiest_sender

    if not capture.is_file():
        raise Failure(f"{capture} is not a file", USAGE)
    try:
        suite = suite_named(suite_name)
        profile = suite.profile(profile)
        address = iut or busiest_sender(capture, partial=partial, suite=suite)
        foreign = read_foreign(capture, address, partial=partial)
    except CaptureError as error:
        remedy = " Add --partial to judge what precedes." if error.partial and not partial else ""
        raise Failure(f"{error}{remedy}") from error
    except ValueError as error:
        raise Failure(str(error), USAGE) from error
    trace = read_trace(foreign.captured, trust_checksums=True, suite=suite)
    ics = suite.interpreter.observed(suite.interpreter.read_flows(trace))
    analyses, flows = judge_capture(trace, profile, ics, suite)
    if not flows:
        raise Failure(f"{capture} holds no {suite.protocol} connection of {address}")
    registry = suite.requirements()
    rows = [
        {"id": item.requirement, "level": registry[item.requirement].level,
         "title": registry[item.requirement].title, "holds": item.holds,
         "violations": _findings(item.violations), "unclear": _findings(item.unclear),
         "outcome": item.sentence}
        for item in analyses
    ]  # fmt: skip
    if as_json:
        print_json({"capture": str(capture), "iut": address, "profile": profile,
                    "connections": len(flows), "notes": list(foreign.notes),
                    "requirements": rows})  # fmt: skip
    else:
        _print(rows, foreign.notes, address, len(flows))
    broken = any(row["violations"] and row["level"] == "MUST" for row in rows)
    exercised = any(row["holds"] or row["violations"] for row in rows)
    raise click.exceptions.Exit(FAILED if broken else PASSED if exercised else OPEN)


def _findings(found: Sequence[Finding]) -> list[dict[str, Any]]:
    return [{"packets": list(item.packets), "sentence": item.sentence} for item in found]


def _print(rows: list[dict[str, Any]], notes: tuple[str, ...], iut: str, flows: int) -> None:
    console = output()
    for note in notes:
        console.print(escape(note), style="yellow")
    console.print(f"{iut}, {flows} connection{'s' if flows != 1 else ''}")
    table = plain_table("requirement", "level", "outcome", "title")
    for row in rows:
        style = "red" if row["violations"] else "yellow" if row["unclear"] else ""
        style = style or ("" if row["holds"] else "dim")
        cells = (escape(row[name]) for name in ("id", "level", "outcome", "title"))
        table.add_row(*cells, style=style)
    console.print(table)
