"""TLC's distributed mode: one server, and workers on this or other machines."""

from __future__ import annotations

import re
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bentpipe_reference.common.processes import dying_with_parent

from bentpipe_conformance.models import tlc
from bentpipe_conformance.models.messages import COUNTS, Outcome, Progress
from bentpipe_conformance.models.tool import Tool, ToolProblem
from bentpipe_conformance.models.watch import kill

_SERVER, _WORKER = "tlc2.tool.distributed.TLCServer", "tlc2.tool.distributed.TLCWorker"
_ERROR = re.compile(r"Error: (.*)")


def run(
    tool: Tool,
    job: tlc.Job,
    host: str,
    report: Callable[[Progress], None] = lambda _progress: None,
    announce: Callable[[str], None] = lambda _line: None,
    cancelled: threading.Event | None = None,
) -> Outcome:
    """Check safety properties with a server and ``job.workers`` local workers of one thread.

    Counterexamples are in the log only, and liveness is not TLC's business in this mode.

    Args:
        tool: the model checker.
        job: what to run; properties must be safety properties.
        host: address of this machine at which workers reach the server.
        report: told how far the run is.
        announce: told the command that starts a worker on another machine.
        cancelled: when set, server and workers are stopped.

    Raises:
        Cancelled: they were stopped.
        ToolProblem: the jar has no distributed mode, or TLC could not finish.
    """
    if not _has_server(tool.jar):
        raise ToolProblem(
            f"{tool.jar} has no distributed mode; name the TLA+ project's own tla2tools.jar in "
            "TLA2TOOLS_JAR."
        )
    common = [
        tool.java, f"-Xmx{job.memory_mb}m", tlc.EXIT_WHEN_FULL,
        f"-Djava.rmi.server.hostname={host}",
    ]  # fmt: skip
    outcome = Outcome(job.log)
    started = time.monotonic()
    done = False
    with ExitStack() as stack:
        server, output, watch = stack.enter_context(
            tlc.started(_server(common, tool.jar, job), job, cancelled)
        )
        assert server.stdout is not None
        for line in server.stdout:
            output.write(line)
            if "is ready" in line:
                announce(f"java -cp {tool.jar.name} {_WORKER} {host}")
                for number in range(job.workers):
                    _start_worker(stack, common, tool.jar, job.scratch / f"worker{number}", host)
            elif found := COUNTS.search(line):
                counts = (int(part.replace(",", "")) for part in found.groups())
                outcome.generated, outcome.distinct, queue = counts
                done = queue == 0
                seconds = time.monotonic() - started
                report(Progress(outcome.generated, outcome.distinct, queue, 0, seconds))
            elif (error := _ERROR.match(line)) and not outcome.violated:
                outcome.violated = error[1].strip()
        server.wait()
    outcome.seconds = time.monotonic() - started
    if watch.late:
        raise ToolProblem(job.late())
    if not done and not outcome.violated:
        raise ToolProblem(f"{job.module.stem} could not be checked; log: {job.log}")
    return outcome


def _has_server(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as archive:
            return f"{_SERVER.replace('.', '/')}.class" in archive.namelist()
    except zipfile.BadZipFile:
        return False


def _server(common: list[str], jar: Path, job: tlc.Job) -> list[str]:
    deadlock = [] if "CHECK_DEADLOCK TRUE" in job.config else ["-deadlock"]
    return [
        *common, f"-Djava.io.tmpdir={job.scratch}", f"-DTLA-Library={job.searched}",
        "-cp", str(jar), _SERVER, *deadlock, "-config", "run.cfg",
        "-metadir", str(job.scratch), str(job.module.absolute()),
    ]  # fmt: skip


def _start_worker(
    stack: ExitStack, common: list[str], jar: Path, directory: Path, host: str
) -> None:
    directory.mkdir()
    worker = subprocess.Popen(
        dying_with_parent(
            [*common, f"-Djava.io.tmpdir={directory.absolute()}", f"-D{_WORKER}.threadCount=1",
             "-cp", str(jar), _WORKER, host]
        ),
        cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    stack.callback(kill, worker)
