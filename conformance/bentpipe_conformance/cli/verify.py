"""``bentpipe verify``: judging a bundle's packets again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bentpipe_conformance.cli.options import examples, json_option
from bentpipe_conformance.cli.outcome import FAILED, PASSED, explained
from bentpipe_conformance.cli.output import output, print_json


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
