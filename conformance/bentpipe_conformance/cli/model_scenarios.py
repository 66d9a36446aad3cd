"""``bentpipe model NAME --scenarios``: make the scenarios for the suites, or compare them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import click
from bentpipe_spec import protocols

from bentpipe_conformance.cli.outcome import FAILED, PASSED, USAGE, Failure
from bentpipe_conformance.cli.output import print_json
from bentpipe_conformance.models.generator import Generator, format_scenarios
from bentpipe_conformance.models.manifest import Manifest
from bentpipe_conformance.models.plan import FILE, Plan, load_plan


def make_scenarios(
    models: Iterable[Manifest], generator: Generator, out: Path | None, check: bool, as_json: bool
) -> int:
    """Make the scenarios of each model that has a plan for them; store or compare them.

    Returns:
        The exit status: 1 where ``check`` finds a difference.

    Raises:
        ToolProblem: the model checker could not do its work; nothing of that model is stored.
    """
    planned = [(manifest, plan) for manifest in models if (plan := load_plan(manifest)) is not None]
    if not planned:
        raise Failure(f"none of these models has a {FILE}, which plans scenarios", USAGE)
    report = []
    for manifest, plan in planned:
        data = generator.generate(manifest, plan)
        file = (out or _stored(plan)) / f"{manifest.name}.json"
        difference = _difference(data, file) if check else ""
        if not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_name(f".{file.name}.new")
            draft.write_text(format_scenarios(data), encoding="utf-8")
            os.replace(draft, file)
        report.append(
            {"model": manifest.name, "file": str(file), "difference": difference,
             "scenarios": len(data["scenarios"]), "graphs": data["graphs"]}
        )  # fmt: skip
    if as_json:
        print_json(report)
    else:
        for line in report:
            click.echo(_sentence(line, check))
    return FAILED if any(line["difference"] for line in report) else PASSED


def _stored(plan: Plan) -> Path:
    """The folder of the scenarios that are part of a protocol's specification."""
    if not plan.protocol:
        raise Failure(f"{FILE} names no protocol to store the scenarios with; give --out", USAGE)
    with as_file(protocols.file(plan.protocol, "scenarios")) as folder:
        return folder


def _difference(data: dict[str, Any], file: Path) -> str:
    """What is not as stored, as a clause; empty when all is. Another jar may have made it."""
    remedy = f"make them again: bentpipe model {data['model']} --scenarios"
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"{file} cannot be read ({error}); {remedy}"
    now = json.loads(format_scenarios(data))
    different = [key for key in now if key != "tool" and now[key] != before.get(key)]
    return f"{', '.join(different)} differ from {file}; {remedy}" if different else ""


def _sentence(line: dict[str, Any], check: bool) -> str:
    if line["difference"]:
        return f"{line['model']}: {line['difference']}"
    edges, covered = (sum(item[key] for item in line["graphs"]) for key in ("edges", "covered"))
    return (
        f"{line['model']}: {line['scenarios']} scenarios take {covered:,} of {edges:,} edges; "
        f"{'as stored in' if check else 'stored in'} {line['file']}"
    )
