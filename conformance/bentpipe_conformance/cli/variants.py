"""``bentpipe selftest SUITE --variants N``: right implementations that nobody here chose."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from rich.markup import escape

from bentpipe_conformance.cli.outcome import FAILED, PASSED, USAGE, explained
from bentpipe_conformance.cli.output import counting, output, plain_table
from bentpipe_conformance.engine.suite import suite_named


def judge_variants(
    suite: str, number: int, only: Sequence[str], jobs: int,
    deliver: Callable[[dict[str, Any]], None], *, record: bool,
) -> int:  # fmt: skip
    """Judge a round of variants and deliver the outcome; the exit status."""
    from bentpipe_conformance.selftest import variants

    protocol = suite_named(suite).folder
    with explained(ValueError, exit_code=USAGE):
        total = len(only) or len(variants.load_variants(protocol, number))
        with counting("variants", total) as advance:
            results = variants.run_variants(suite, number, only, max(1, jobs), advance)
        if record:
            today = datetime.datetime.now(datetime.UTC).date().isoformat()
            path = variants.write_record(protocol, number, results, today)
            click.echo(f"first run recorded in {path}", err=True)
        held = variants.load_record(protocol, number)
        outcome = variants.variants_summary(suite, number, results, held)
    deliver(outcome)
    return FAILED if outcome["accused"] else PASSED


def print_variants(outcome: Mapping[str, Any]) -> None:
    """A row for each requirement that a variant is accused of, and sums."""
    console = output()
    table = plain_table("variant", "clause", "accused of", "times", "review", "why")
    for row in outcome["table"]:
        clause = escape(row["clause"])
        state = row["error"] or ("" if row["active"] else "changes no packet")
        if state or not row["accused"]:
            table.add_row(row["id"], clause, "", "", "", escape(state or row["title"]))
        for requirement, review in row["accused"].items():
            charges = [it for it in row["charges"] if it["requirement"] == requirement]
            why = f"{charges[0]['where']}: {charges[0]['sentence']}"
            table.add_row(
                row["id"], clause, requirement, str(len(charges)), review, escape(why)
            )  # fmt: skip
    console.print(table)
    console.print()
    first = outcome["first"]
    if first["date"]:
        reviews = ", ".join(f"{n} {name}" for name, n in first["requirements"].items() if n)
        console.print(
            f"first run, {first['date']}: {first['accused']} of {first['variants']} variants "
            f"accused, {first['wrongly']} wrongly, {first['rightly']} rightly"
            + (f" (of their requirements {reviews})" if reviews else "")
        )
    console.print(
        f"{outcome['variants']} variants, {len(outcome['errors'])} broke down, "
        f"{len(outcome['idle'])} changed no packet, {len(outcome['accused'])} accused"
    )
