"""``bentpipe verify`` and ``bentpipe analyze``: judging packets that are already there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from bentpipe_conformance.cli.main import FAILED, OPEN, PASSED, USAGE, Failure, print_json
from bentpipe_conformance.engine.suite import load_profiles, load_suites, suite_named
from bentpipe_conformance.iut.description import DEFAULT_SUITE


@click.command(epilog="Example: bentpipe verify bentpipe-runs/linux-geo")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the re-judged result as JSON.")
def verify(bundle: Path, as_json: bool) -> None:
    """Judge a bundle's packets again, offline, and compare.

    Checks every file against the manifest, runs the checkers over the stored captures and compares
    each verdict with the stored one. Exit status 0 when the evidence supports every stored
    verdict, 1 when it does not, 3 when the bundle is damaged or unfinished.
    """
    from bentpipe_conformance.evidence.bundle import Bundle, BundleError
    from bentpipe_conformance.run.rejudge import verify as judge_bundle
    from bentpipe_conformance.run.seal import result_of, stored_result

    try:
        opened = Bundle.open(bundle)
        records, differences = judge_bundle(opened)
        result = result_of(opened, records)
        stored = stored_result(opened)
    except BundleError as error:
        raise Failure(str(error)) from error
    requirement_changes = _changed_requirements(stored, result)
    agrees = not differences and not requirement_changes
    if as_json:
        changed = [{"case": d.case, "stored": d.stored, "judged": d.judged} for d in differences]
        print_json({**result, "agrees": agrees, "differences": changed,
                    "changed_requirements": requirement_changes})  # fmt: skip
    else:
        console = Console()
        for item in differences:
            console.print(f"[bold red]differs[/]  {item.case}: stored {item.stored}, "
                          f"the packets give {item.judged}")  # fmt: skip
        for change in requirement_changes:
            console.print(f"[bold red]differs[/]  {change['id']}: stored {change['stored']}, "
                          f"the packets give {change['judged']}")  # fmt: skip
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


@click.command(
    epilog="Example: bentpipe analyze server.pcapng --iut 192.0.2.1 --profile rfc --json"
)
@click.argument("capture", type=click.Path(path_type=Path))
@click.option("--iut", metavar="ADDRESS", help="IPv4 address of the implementation to judge "
              "(default: the host that sent most data).")  # fmt: skip
@click.option("--suite", "suite_name", type=click.Choice(list(load_suites())),
              default=DEFAULT_SUITE, show_default=True, help="Suite to judge by.")  # fmt: skip
@click.option("--profile", type=click.Choice(load_profiles()),
              help="Requirements to judge (default: the suite's first).")  # fmt: skip
@click.option("--partial", is_flag=True, help="Judge what precedes damage or truncation.")
@click.option("--json", "as_json", is_flag=True, help="Print the analysis as JSON.")
def analyze(
    capture: Path,
    iut: str | None,
    suite_name: str,
    profile: str | None,
    partial: bool,
    as_json: bool,
) -> None:
    """Judge a capture that this suite did not make.

    The capture (pcapng or pcap) has to be taken at the implementation's own side of the link: the
    checkers ask what it knew when it sent. Each requirement holds n times, is violated at packet
    k, or was not exercised. Exit status 0 without a violated MUST, 1 with one, 3 when the capture
    cannot be judged.
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
        mend = " Add --partial to judge what precedes." if error.partial and not partial else ""
        raise Failure(f"{error}{mend}") from error
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
         "violations": [{"packets": list(v.packets), "sentence": v.sentence}
                        for v in item.violations],
         "unclear": [{"packets": list(v.packets), "sentence": v.sentence} for v in item.unclear],
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


def _print(rows: list[dict[str, Any]], notes: tuple[str, ...], iut: str, flows: int) -> None:
    console = Console()
    for note in notes:
        console.print(note, style="yellow")
    console.print(f"{iut}, {flows} connection{'s' if flows != 1 else ''}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("requirement", "level", "outcome", "title"):
        table.add_column(column, overflow="fold")
    for row in rows:
        style = "red" if row["violations"] else "yellow" if row["unclear"] else ""
        style = style or ("" if row["holds"] else "dim")
        table.add_row(row["id"], row["level"], row["outcome"], row["title"], style=style)
    console.print(table)


COMMANDS = {"verify": verify, "analyze": analyze}
