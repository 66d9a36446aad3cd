"""``bentpipe selftest SUITE --round N``: faults by people who had not seen the exam."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from rich.markup import escape

from bentpipe_conformance.cli.outcome import FAILED, PASSED, USAGE, explained
from bentpipe_conformance.cli.output import counting, output, plain_table
from bentpipe_conformance.engine.suite import suite_named


def judge_round(
    suite: str, number: int, only: Sequence[str], jobs: int,
    deliver: Callable[[dict[str, Any]], None], *, record: bool,
) -> int:  # fmt: skip
    """Judge a round and deliver the outcome; the exit status."""
    from bentpipe_reference.common.blind import load_round

    from bentpipe_conformance.selftest import rounds

    protocol = suite_named(suite).folder
    with explained(ValueError, exit_code=USAGE):
        total = len(only) or len(load_round(protocol, number))
        with counting("faults", total) as advance:
            results = rounds.run_round(suite, number, only, max(1, jobs), advance)
        if record:
            today = datetime.datetime.now(datetime.UTC).date().isoformat()
            path = rounds.write_record(protocol, number, results, today)
            click.echo(f"first run recorded in {path}", err=True)
        outcome = rounds.round_summary(suite, number, results, rounds.load_record(protocol, number))
    deliver(outcome)
    return FAILED if outcome["missed"] or outcome["errors"] else PASSED


def print_round(outcome: Mapping[str, Any]) -> None:
    """A row for each fault, and sums."""
    console = output()
    table = plain_table("fault", "clause", "caught", "named first", "right", "first run", "why")
    for row in outcome["table"]:
        caught = "[green]yes[/]" if row["caught"] else "[bold red]NO[/]"
        why = row["error"] or row["sentence"] or row["title"]
        table.add_row(
            row["id"], escape(row["clause"]), caught, row["named"], _right(row),
            _first(row["first"]), escape(why),
        )  # fmt: skip
    console.print(table)
    console.print()
    first = outcome["first"]
    if first["date"]:
        console.print(
            f"first run, {first['date']}: {first['caught']} of {first['valid']} valid faults "
            f"caught, {first['right']} with the right requirement first"
        )
    console.print(
        f"{outcome['faults']} faults, {outcome['valid']} valid, {outcome['caught']} caught, "
        f"{outcome['right']} with the right requirement first"
    )


def _right(row: Mapping[str, Any]) -> str:
    if not row["caught"]:
        return ""
    return "yes" if row["right"] else "[yellow]no[/]"


def _first(review: Mapping[str, Any]) -> str:
    if not review:
        return ""
    if review.get("valid", "valid") != "valid":
        return str(review["valid"])
    return "caught" if review["caught"] else "missed"
