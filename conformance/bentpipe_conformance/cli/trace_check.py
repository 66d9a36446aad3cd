"""``bentpipe trace-check``: validate recorded traces against the model."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import click

from bentpipe_conformance.cli.main import FAILED, OPEN, PASSED, USAGE, Failure, print_json
from bentpipe_conformance.modelling import traces
from bentpipe_conformance.modelling.manifest import model_root
from bentpipe_conformance.modelling.tool import ToolProblem, find_jar, find_java, read_pin

_CONTEXT = 3


@click.command(epilog="Example: bentpipe trace-check transfer.ndjson")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=300.0,
    show_default=True,
    help="Seconds for all traces of a profile.",
)
@click.option(
    "--memory", type=click.IntRange(64), default=2048, show_default=True, help="Java heap, MiB."
)
@click.option(
    "--models",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with pom.xml and the models [tla, here or above].",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def trace_check(
    files: tuple[Path, ...], timeout: float, memory: int, models: Path | None, as_json: bool
) -> None:  # fmt: skip
    """Check that the model SackNewReno could have behaved as the traces show.

    FILE is NDJSON, one protocol event per line, as bentpipe_reference.tracing writes it. Exit
    status 0 when every trace is consistent with the model, 1 when one is not, 2 for a file that is
    no trace, 3 when the tool could not do its work.
    """
    try:
        read = [traces.read_trace(path) for path in files]
    except traces.TraceProblem as problem:
        raise Failure(str(problem), USAGE) from problem
    judged: dict[str, traces.Judgement] = {}
    try:
        root = models or model_root()
        tool = (find_java(), find_jar(read_pin(root / "pom.xml")))
        for profile in traces.PROFILES:
            chosen = [trace for trace in read if trace.profile == profile]
            if chosen:
                scratch = Path(tempfile.mkdtemp(prefix="bentpipe-trace-"))
                found = traces.validate(chosen, tool, root, scratch, timeout, memory)
                shutil.rmtree(scratch)  # a failure keeps it: the message names the log in it
                judged.update((item.trace.name, item) for item in found)
    except ToolProblem as problem:
        raise Failure(str(problem), OPEN) from problem
    results = [judged[trace.name] for trace in read]
    if as_json:
        print_json([_row(item) for item in results])
    else:
        for item in results:
            _print(item)
    consistent = all(item.consistent for item in results)
    raise click.exceptions.Exit(PASSED if consistent else FAILED)


def _row(item: traces.Judgement) -> dict[str, Any]:
    rejected = item.rejected
    return {
        "trace": item.trace.name,
        "profile": item.trace.profile,
        "events": len(item.trace.steps),
        "verdict": "consistent" if rejected is None else "violates",
        "accepted": item.accepted,
        "line": None if rejected is None else rejected.line,
        "guard": item.guard,
    }


def _print(item: traces.Judgement) -> None:
    rejected = item.rejected
    if rejected is None:
        click.echo(f"{item.trace.name}: consistent, {len(item.trace.steps)} events")
        return
    click.echo(f"{item.trace.name}: violates the model at line {rejected.line}: {item.guard}")
    for line in range(max(1, rejected.line - _CONTEXT), rejected.line + 1):
        mark = ">" if line == rejected.line else " "
        click.echo(f"  {mark} {line}: {item.trace.lines[line - 1]}")


COMMANDS = {"trace-check": trace_check}
