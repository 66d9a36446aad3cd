"""``bentpipe trace-check``: validate recorded traces and captured transfers against a model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from bentpipe_conformance.cli.options import examples, json_option, memory_option, models_option
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, explained
from bentpipe_conformance.cli.output import print_json
from bentpipe_conformance.models import traces
from bentpipe_conformance.models.binding import TraceProblem
from bentpipe_conformance.models.manifest import model_root
from bentpipe_conformance.models.rejection import Setup
from bentpipe_conformance.models.tcp import foreign, transfers
from bentpipe_conformance.models.tool import Tool, ToolProblem, find_tool

_CONTEXT = 3
_STATUS = {
    "consistent": PASSED, "violates": FAILED, "capture insufficient": OPEN, "unfit": USAGE,
}  # fmt: skip
_WORST_LAST = (PASSED, OPEN, USAGE, FAILED)


@click.command(
    epilog=examples(
        "trace-check transfer.ndjson",
        "trace-check upload.pcapng --flow 192.0.2.1:40000-192.0.2.9:80",
    )
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)  # fmt: skip
@click.option(
    "--flow",
    metavar="SENDER-RECEIVER",
    help="Connection of a capture to check, ADDRESS:PORT-ADDRESS:PORT [the only one with data].",
)
@click.option(
    "--timeout", type=click.FloatRange(1), default=600.0, show_default=True,
    help="Seconds for all traces of a kind.",
)  # fmt: skip
@click.option(
    "--coverage",
    is_flag=True,
    help="Also tell how often the model has followed each kind of event, and which never.",
)
@memory_option("Java heap, MiB.")
@models_option
@json_option("Print the result as JSON.")
def trace_check(
    files: tuple[Path, ...], flow: str | None, timeout: float, memory: int, models: Path | None,
    as_json: bool, coverage: bool,
) -> None:  # fmt: skip
    """Check that a model could have behaved as traces or captures show.

    FILE is NDJSON, one protocol event per line, as bentpipe_reference.tcp.tracing (TCP),
    .stp.recording and .stp.sessions (STP), .rwbp.tracing and bentpipe_experiments.flow_trace
    (RWBP) write it, or a capture (.pcapng, .pcap)
    of a TCP sender with SACK, taken at the sender's side. Exit status 0 when every one is
    consistent with its model, 1 when one is not, 2 for a file that is neither, 3 when a capture
    lacks something or the tool could not do its work. An unfit file does not keep the others from
    being checked.
    """
    chosen: dict[Path, traces.Trace] = {}
    captured: dict[Path, transfers.Transfer] = {}
    unfit: dict[Path, str] = {}
    for path in files:
        try:
            if path.suffix.lower() in transfers.SUFFIXES:
                captured[path] = transfers.read_transfer(path, flow)
            else:
                chosen[path] = traces.read_trace(path)
        except (TraceProblem, transfers.CaptureProblem) as problem:
            unfit[path] = str(problem)
    judged: dict[str, traces.Judgement] = {}
    found: list[foreign.ForeignJudgement] = []
    if chosen or captured:
        with explained(ToolProblem):
            tool = find_tool(models or model_root())
            judged = _judge(list(chosen.values()), tool, timeout, memory)
    if captured:
        with explained(ToolProblem), _scratch() as folder:
            setup = Setup(tool, folder, timeout, memory)
            found = foreign.judge_transfers(list(captured.values()), setup)
    own = dict(zip(captured, found, strict=True))
    rows = [
        {"trace": str(path), "verdict": "unfit", "guard": unfit[path]} if path in unfit
        else _capture_row(own[path]) if path in own else _row(judged[str(path)])
        for path in files
    ]  # fmt: skip
    if as_json:
        print_json(rows)
    else:
        for path in files:
            if path in unfit:
                click.echo(unfit[path], err=True)
            elif path in own:
                click.echo(_capture_line(own[path]))
            else:
                _print(judged[str(path)])
            if coverage and path not in unfit:
                item = own.get(path) or judged[str(path)]
                click.echo(f"  followed: {_counts(item.followed)}")
    statuses = {_STATUS[row["verdict"]] for row in rows}
    raise click.exceptions.Exit(max(statuses, key=_WORST_LAST.index))


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder, which a failure keeps: the message names the log in it."""
    folder = Path(tempfile.mkdtemp(prefix="bentpipe-trace-"))
    yield folder
    shutil.rmtree(folder)


def _judge(
    read: list[traces.Trace], tool: Tool, timeout: float, memory: int
) -> dict[str, traces.Judgement]:
    judged: dict[str, traces.Judgement] = {}
    for kind in dict.fromkeys(trace.kind for trace in read):
        alike = [trace for trace in read if trace.kind == kind]
        with _scratch() as folder:
            found = traces.validate(alike, Setup(tool, folder, timeout, memory))
        judged.update((item.trace.name, item) for item in found)
    return judged


def _counts(followed: Mapping[str, int]) -> str:
    met = ", ".join(f"{name} {number}" for name, number in followed.items() if number)
    never = ", ".join(name for name, number in followed.items() if not number)
    return f"{met or 'nothing'}{f'; never: {never}' if never else ''}"


def _row(item: traces.Judgement) -> dict[str, Any]:
    rejected = item.rejected
    return {
        "trace": item.trace.name, "protocol": item.trace.binding.protocol,
        "profile": item.trace.profile, "events": len(item.trace.steps),
        "verdict": "consistent" if rejected is None else "violates", "accepted": item.accepted,
        "line": None if rejected is None else rejected.line, "guard": item.guard,
        "followed": item.followed,
    }  # fmt: skip


def _print(item: traces.Judgement) -> None:
    rejected = item.rejected
    if rejected is None:
        click.echo(f"{item.trace.name}: consistent, {len(item.trace.steps)} events")
        return
    click.echo(f"{item.trace.name}: violates the model at line {rejected.line}: {item.guard}")
    for line in range(max(1, rejected.line - _CONTEXT), rejected.line + 1):
        mark = ">" if line == rejected.line else " "
        click.echo(f"  {mark} {line}: {item.trace.lines[line - 1]}")


def _capture_row(item: foreign.ForeignJudgement) -> dict[str, Any]:
    transfer, violation = item.transfer, item.violation
    return {
        "trace": transfer.name, "protocol": "tcp",
        "sender": transfers.endpoint_text(transfer.sender),
        "receiver": transfers.endpoint_text(transfer.receiver),
        "events": transfer.total, "verdict": item.outcome, "accepted": item.checked,
        "retransmissions": item.repeats,
        "retransmissions_checked": item.retransmissions,
        "packet": None if violation is None else violation.packet,
        "guard": "" if violation is None else violation.guard,
        "lack": "" if transfer.lack is None else transfer.lack.sentence,
        "followed": item.followed,
    }  # fmt: skip


def _capture_line(item: foreign.ForeignJudgement) -> str:
    transfer, violation = item.transfer, item.violation
    share = 100 * item.checked / max(1, transfer.total)
    checked = (
        f"{item.checked} of {transfer.total} events checked ({share:.0f} %), "
        f"{item.retransmissions} of {item.repeats} retransmissions among them"
    )
    if violation is not None:
        first, end = violation.offsets
        where = f"packet {violation.packet} (octets {first} to {end - 1})"
        return f"{transfer.name}: violates at {where}: {violation.guard}; {checked}"
    if transfer.lack is not None:
        return f"{transfer.name}: capture insufficient: {transfer.lack.sentence}; {checked}"
    return f"{transfer.name}: consistent, {checked}"
