"""``bentpipe analyze``: judging a capture that the suite did not make."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from bentpipe_conformance.cli.options import examples, json_option, profile_option
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, Failure, explained
from bentpipe_conformance.cli.output import output, plain_table, print_json, working
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import Suite, load_suites, suite_named
from bentpipe_conformance.iut.description import DEFAULT_SUITE

if TYPE_CHECKING:
    from bentpipe_conformance.analysis.capture import Analysis, Row
    from bentpipe_conformance.analysis.judging import Judged

SHOWN = 20
"""Connections that the table shows; all are in the JSON."""

BOXES = "pep"
"""Suite of boxes."""

_EXAMPLES = examples(
    "analyze server.pcapng",
    "analyze server.pcapng --iut 192.0.2.1 --ics linux --html report.html",
    "analyze client.pcap --congestion-control cubic --json",
    "analyze client.pcap server.pcap --box --ics pep-haproxy",
)


@click.command(epilog=_EXAMPLES)
@click.argument("captures", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--box", is_flag=True, help="Judge the box between two captures: that of its side "
              "towards clients, then that towards servers.")  # fmt: skip
@click.option("--iut", metavar="ADDRESS[:PORT]", help="The implementation to judge "
              "(default: the host at whose side the capture was taken).")  # fmt: skip
@click.option("--suite", "suite_name", type=click.Choice(list(load_suites())),
              help=f"Suite to judge by (default: {DEFAULT_SUITE}, or {BOXES}).")  # fmt: skip
@profile_option()
@click.option("--ics", metavar="FILE", help="Conformance statement: an implementation's TOML file "
              "or ID, or a file with its [ics] alone (default: nothing is claimed).")  # fmt: skip
@click.option("--congestion-control", metavar="NAME", help="Claim this congestion control.")
@click.option("--partial", is_flag=True, help="Judge what precedes damage or truncation.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the report to this file.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), help="Processes (default: one for each core).")
@json_option("Print the analysis as JSON.")
def analyze(
    captures: tuple[Path, ...], box: bool, iut: str | None, suite_name: str | None,
    profile: str | None, ics: str | None,
    congestion_control: str | None, partial: bool, html: Path | None, jobs: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Judge a capture that this suite did not make.

    What is wrong with the capture is said first; what cannot be judged because of it is not
    judged. Each requirement then holds n times, is violated at packet k of a connection, or was not
    exercised; one that depends on what nobody has claimed is not judged. Exit status 0 without a
    violated MUST, 1 with one, 3 when the capture cannot be judged.

    With --box two captures of the same connections are judged, one on each side of a box that
    splits them. Their clocks need not agree: what passes says how far they are apart, and what
    depends on more is unclear. Judged is what follows from the numbers and octets of a connection;
    whether the box was quick enough is not.
    """
    from bentpipe_conformance.analysis.box import analyze_box
    from bentpipe_conformance.analysis.capture import analyze_capture
    from bentpipe_conformance.evidence.bundle import BundleError
    from bentpipe_conformance.evidence.frames import CaptureError
    from bentpipe_conformance.evidence.limits import bounded

    for path in captures:
        if not path.is_file():
            raise Failure(f"{path} is not a file", USAGE)
    if len(captures) != 1 + box:
        raise Failure("give one capture, or two with --box: the clients' side first", USAGE)
    if box and (iut or congestion_control):
        raise Failure("--iut and --congestion-control do not go with --box", USAGE)
    capture = captures[0]
    try:
        suite = suite_named(suite_name or (BOXES if box else DEFAULT_SUITE))
        chosen = suite.profile(profile)
        stated = _stated(suite, ics, congestion_control)
        size = sum(path.stat().st_size for path in captures)
        with working(f"analyzing {capture.name}") as told, explained(BundleError), bounded(size):
            analysis = (
                analyze_box(
                    captures[0], captures[-1], suite, chosen, stated=stated, partial=partial,
                    told=told,
                )
                if box
                else analyze_capture(
                    capture, suite, chosen, iut=iut, stated=stated, partial=partial,
                    jobs=jobs or os.cpu_count() or 1, illustrated=html is not None, told=told,
                )
            )  # fmt: skip
    except CaptureError as error:
        remedy = " Add --partial to judge what precedes." if error.partial and not partial else ""
        raise Failure(f"{error}{remedy}") from error
    except ValueError as error:
        raise Failure(str(error), USAGE) from error
    if html is not None:
        from bentpipe_conformance.analysis.page import write_page

        write_page(analysis, html)
    if as_json:
        print_json(_document(analysis))
    else:
        _print(analysis)
    broken = any(row.violations and row.requirement.level == "MUST" for row in analysis.rows)
    exercised = any(row.holds or row.violations for row in analysis.rows)
    raise click.exceptions.Exit(FAILED if broken else PASSED if exercised else OPEN)


def _stated(suite: Suite, ics: str | None, congestion_control: str | None) -> dict[str, Any]:
    """What the user states; empty without a statement.

    Raises:
        ValueError: a file or an answer is wrong.
    """
    from bentpipe_conformance.iut.description import read_statement
    from bentpipe_conformance.iut.proforma import load_proforma

    stated: dict[str, Any] = dict(read_statement(ics, suite)) if ics is not None else {}
    if congestion_control is not None:
        item = load_proforma(suite).get("congestion_control")
        if item is None:
            raise ValueError(f"--congestion-control has no meaning for suite '{suite}'")
        if not item.permits(congestion_control):
            raise ValueError(f"--congestion-control needs {item.wanted()}")
        stated["congestion_control"] = congestion_control
    return stated


def _document(analysis: Analysis) -> dict[str, Any]:
    quality = analysis.quality
    return {
        "capture": str(analysis.capture), "iut": analysis.iut, "suite": analysis.suite.name,
        "profile": analysis.profile, "stated": dict(analysis.stated),
        "quality": {
            "side": quality.side, "packets": quality.packets, "relevant": quality.relevant,
            "connections": quality.connections, "judged": quality.judged,
            "timing_error": quality.timing_error,
            "remarks": [
                {"kind": item.kind, "sentence": item.sentence, "connections": item.connections}
                for item in quality.remarks
            ],
        },
        "requirements": [_row(row) for row in analysis.rows],
        "connections": [_connection(item, analysis) for item in analysis.connections],
    }  # fmt: skip


def _row(row: Row) -> dict[str, Any]:
    requirement = row.requirement
    return {
        "id": requirement.id, "level": requirement.level, "title": requirement.title,
        "status": row.status, "outcome": row.sentence, "holds": row.holds,
        "violations": [_finding(found, item) for item, found in row.violations],
        "unclear": [_finding(found, item) for item, found in row.unclear],
        "unjudgeable": dict(row.unjudgeable), "unclaimed": row.unclaimed,
    }  # fmt: skip


def _finding(finding: Finding, connection: Judged) -> dict[str, Any]:
    return {
        "connection": connection.name, "packets": list(finding.packets),
        "sentence": finding.sentence, "expected": finding.expected, "actual": finding.actual,
    }  # fmt: skip


def _connection(item: Judged, analysis: Analysis) -> dict[str, Any]:
    return {
        "name": item.name, "verdict": analysis.verdict_of(item), "packets": item.packets,
        "first": item.first, "started": item.started, "seconds": item.seconds,
        "defects": [defect.value for defect in item.defects],
        "requirements": {name: entry.word for name, entry in sorted(item.entries.items())},
        "unclaimed": sorted(item.unclaimed),
    }  # fmt: skip


def _print(analysis: Analysis) -> None:
    console = output()
    quality = analysis.quality
    side = f", at whose side it was taken: {quality.side}" if quality.side else ""
    console.print(
        f"{analysis.capture}: {_count(quality.relevant, 'packet')} of {analysis.suite.protocol} in "
        f"{_count(quality.packets, 'frame')}; judged is {analysis.iut}{side}",
        markup=False, highlight=False,
    )  # fmt: skip
    for remark in quality.remarks:
        some = f" ({_count(remark.connections, 'connection')})" if remark.connections else ""
        console.print(f"quality: {remark.sentence}{some}", style="yellow", markup=False)
    if not analysis.stated:
        console.print(
            "nothing is stated of it (--ics): what its handshakes do not show is not claimed",
            markup=False,
        )
    table = plain_table("connection", "packets", "verdict")
    ranked = analysis.ranked()
    for item in ranked[:SHOWN]:
        verdict = analysis.verdict_of(item)
        table.add_row(item.name, str(item.packets), verdict, style=_STYLES.get(verdict, "dim"))
    console.print(table)
    if len(ranked) > SHOWN:
        console.print(f"and {_count(len(ranked) - SHOWN, 'connection')} more")
    table = plain_table("requirement", "level", "outcome", "title")
    for row in analysis.rows:
        if row.status in _TOLD:
            requirement = row.requirement
            cells = (requirement.id, requirement.level, row.sentence, requirement.title)
            table.add_row(*map(escape, cells), style=_STYLES.get(row.status, "dim"))
    console.print(table)
    rest: dict[str, list[str]] = {}
    for row in analysis.rows:
        if row.status not in _TOLD:
            rest.setdefault(row.sentence, []).append(row.requirement.id)
    for sentence, names in rest.items():
        console.print(f"{sentence} ({len(names)}): {', '.join(names)}", style="dim", markup=False)


_TOLD = ("violated", "unclear", "holds")
"""Outcomes with a line of their own in the table."""

_STYLES: Mapping[str, str] = {
    "violated": "red", "fail": "red", "unclear": "yellow", "not judgeable": "yellow",
    "inconclusive": "yellow", "holds": "", "pass": "",
}  # fmt: skip


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
