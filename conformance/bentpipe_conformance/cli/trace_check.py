"""``bentpipe trace-check``: validate recorded traces and captured transfers against a model."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import click

from bentpipe_conformance.cli.options import examples, json_option, memory_option, models_option
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, USAGE, explained
from bentpipe_conformance.cli.output import print_json
from bentpipe_conformance.models import foreign, traces, transfers
from bentpipe_conformance.models.binding import TraceProblem
from bentpipe_conformance.models.manifest import model_root
from bentpipe_conformance.models.tool import ToolProblem, find_jar, find_java, read_pin

_CONTEXT = 3
_STATUS = {"consistent": PASSED, "violates": FAILED, "capture insufficient": OPEN}


@click.command(
    epilog=examples(
        "trace-check transfer.ndjson",
        "trace-check upload.pcapng --flow 192.0.2.1:40000-192.0.2.9:80",
    )
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@click.option(
    "--flow",
    metavar="SENDER-RECEIVER",
    help="Connection of a capture to check, ADDRESS:PORT-ADDRESS:PORT [the only one with data].",
)
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=600.0,
    show_default=True,
    help="Seconds for all traces of a kind.",
)
@memory_option("Java heap, MiB.")
@models_option
@json_option("Print the result as JSON.")
def trace_check(
    files: tuple[Path, ...], flow: str | None, timeout: float, memory: int, models: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Check that a model could have behaved as traces or captures show.

    FILE is NDJSON, one protocol event per line, as bentpipe_reference.tcp.tracing (TCP) and
    bentpipe_reference.stp.recording and .sessions (STP) write it, or a capture (.pcapng, .pcap)
    of a TCP sender with SACK, taken at the sender's side. Exit status 0 when every one is
    consistent with its model, 1 when one is not, 2 for a file that is neither, 3 when a capture
    lacks something or the tool could not do its work.
    """
    chosen: dict[Path, traces.Trace] = {}
    captured: dict[Path, transfers.Transfer] = {}
    with explained(TraceProblem, transfers.CaptureProblem, exit_code=USAGE):
        for path in files:
            if path.suffix.lower() in transfers.SUFFIXES:
                captured[path] = transfers.read_transfer(path, flow)
            else:
                chosen[path] = traces.read_trace(path)
    with explained(ToolProblem):
        root = models or model_root()
        tool = (find_java(), find_jar(read_pin(root / "pom.xml")))
        judged = _judge(list(chosen.values()), tool, root, timeout, memory)
        scratch = Path(tempfile.mkdtemp(prefix="bentpipe-trace-"))
        several = list(captured.values())
        found = foreign.judge_transfers(several, tool, root, scratch, timeout, memory)
        shutil.rmtree(scratch)  # a failure keeps it: the message names the log in it
    own = dict(zip(captured, found, strict=True))
    rows = [_capture_row(own[path]) if path in own else _row(judged[str(path)]) for path in files]
    if as_json:
        print_json(rows)
    else:
        for path in files:
            if path in own:
                click.echo("\n".join(_capture_lines(own[path])))
            else:
                _print(judged[str(path)])
    raise click.exceptions.Exit(_worst({row["verdict"] for row in rows}))


def _judge(
    read: list[traces.Trace], tool: tuple[str, Path], root: Path, timeout: float, memory: int
) -> dict[str, traces.Judgement]:
    judged: dict[str, traces.Judgement] = {}
    for kind in dict.fromkeys(trace.kind for trace in read):
        alike = [trace for trace in read if trace.kind == kind]
        scratch = Path(tempfile.mkdtemp(prefix="bentpipe-trace-"))
        found = traces.validate(alike, tool, root, scratch, timeout, memory)
        shutil.rmtree(scratch)
        judged.update((item.trace.name, item) for item in found)
    return judged


def _worst(verdicts: set[str]) -> int:
    statuses = {_STATUS[verdict] for verdict in verdicts}
    return FAILED if FAILED in statuses else OPEN if OPEN in statuses else PASSED


def _row(item: traces.Judgement) -> dict[str, Any]:
    rejected = item.rejected
    return {
        "trace": item.trace.name,
        "protocol": item.trace.binding.protocol,
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


def _capture_row(item: foreign.ForeignJudgement) -> dict[str, Any]:
    transfer, violation = item.transfer, item.violation
    return {
        "trace": transfer.name,
        "protocol": "tcp",
        "sender": transfers.endpoint_text(transfer.sender),
        "receiver": transfers.endpoint_text(transfer.receiver),
        "events": transfer.total,
        "verdict": item.outcome,
        "accepted": item.checked,
        "retransmissions": item.repeats,
        "retransmissions_checked": item.retransmissions,
        "packet": None if violation is None else violation.packet,
        "guard": "" if violation is None else violation.guard,
        "lack": "" if transfer.lack is None else transfer.lack.sentence,
    }


def _capture_lines(item: foreign.ForeignJudgement) -> list[str]:
    transfer, violation = item.transfer, item.violation
    share = 100 * item.checked / transfer.total if transfer.total else 0.0
    checked = (
        f"{item.checked} of {transfer.total} events checked ({share:.0f} %), "
        f"{item.retransmissions} of {item.repeats} retransmissions among them"
    )
    if violation is not None:
        first, end = violation.offsets
        return [
            f"{transfer.name}: violates at packet {violation.packet} (octets {first} to "
            f"{end - 1}): {violation.guard}; {checked}"
        ]
    if transfer.lack is not None:
        return [f"{transfer.name}: capture insufficient: {transfer.lack.sentence}; {checked}"]
    return [f"{transfer.name}: consistent, {checked}"]
