"""One run of TLC: a process under a time and memory limit, its messages read as they come."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bentpipe_reference.common.processes import dying_with_parent

from bentpipe_conformance.models.messages import Outcome, Progress, Reading
from bentpipe_conformance.models.tool import Refused, Tool, ToolProblem, Unfinished
from bentpipe_conformance.models.watch import Watch

EXIT_WHEN_FULL = "-XX:+ExitOnOutOfMemoryError"
"""Without it TLC may spend all its time on printing the large state that has filled its memory."""
FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
"""Java's quick compiler alone."""
_PAUSES = (0.5, 2.0, 5.0)
"""Seconds before a process that the system refused is asked for again."""
STANDSTILL_S = 30.0
"""TLC's workers sometimes wait for each other for ever (``StateQueue.suspendAll``); a process that
has done nothing for so long is started again, once."""
_NO_TLC = "Could not find or load main class"
_NO_HEAP = "Could not reserve enough space"
_CONFIGURATION = "the configuration file"
_GENERATED = re.compile(rf"in {_CONFIGURATION} at line (\d+)")
"""A line of the file that is written for a run, which the user does not see."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to run.

    Attributes:
        module: the root module's file.
        config: text of the configuration.
        libraries: directories with further modules.
        directory: an existing directory for the configuration, the log and scratch files.
        workers: threads of TLC.
        memory_mb: limit of the Java heap, in MiB.
        timeout: limit in seconds of wall clock.
        short: whether the run is expected to end within seconds.
        dump: file for the labelled state graph; None for none.
        coverage: whether to count how often each action is taken; it costs a quarter of the time.
        simulate: how many behaviours to draw at random, and how many states each has at most,
            instead of searching all; None to search all.
        source: where the configuration comes from, as messages name it.
    """

    module: Path
    config: str
    libraries: tuple[Path, ...]
    directory: Path
    workers: int = 1
    memory_mb: int = 2048
    timeout: float = 600.0
    short: bool = False
    dump: Path | None = None
    coverage: bool = False
    simulate: tuple[int, int] | None = None
    source: str = ""

    @property
    def log(self) -> Path:
        """The file with all that TLC prints."""
        return self.directory / "tlc.log"

    @property
    def scratch(self) -> Path:
        """The folder for TLC's own files, absolute."""
        return self.directory.absolute() / "states"

    @property
    def searched(self) -> str:
        """The folders in which TLC looks for modules and the configuration, by name.

        A path to a configuration outside the module's folder does not work.
        """
        return os.pathsep.join(str(path.absolute()) for path in (self.directory, *self.libraries))

    def late(self, last: Progress | None = None) -> str:
        """The sentence on a run that was not finished in time, and how far it was."""
        found = f" (found {last.distinct:,} distinct states)" if last else ""
        return (
            f"{self.module.stem} did not finish within {self.timeout:g} s{found}; allow more with "
            f"--timeout; log: {self.log}"
        )


def run(
    tool: Tool,
    job: Job,
    report: Callable[[Progress], None] = lambda _progress: None,
    cancelled: threading.Event | None = None,
) -> Outcome:
    """Run TLC and wait for its end.

    Args:
        tool: the model checker.
        job: what to run.
        report: told how far the run is, about once a minute of TLC's and at its end.
        cancelled: when set, TLC is stopped.

    Raises:
        Cancelled: TLC was stopped.
        ToolProblem: TLC could not finish: broken module or configuration, time, memory, or it came
            to a standstill twice. What only lacks time or memory is Unfinished.
    """
    reading, watch, status = _attempt(tool, job, report, cancelled)
    if watch.stood_still:
        reading, watch, status = _attempt(tool, job, report, cancelled)
    outcome = reading.outcome
    outcome.seconds = reading.seconds
    if watch.stood_still:
        raise Unfinished(
            f"{job.module.stem}: TLC came to a standstill twice; try again with fewer workers; "
            f"log: {job.log}"
        )
    if watch.late:
        raise Unfinished(job.late(reading.last))
    if reading.out_of_memory:
        raise Unfinished(
            f"{job.module.stem} ran out of memory at {job.memory_mb} MiB; allow more with "
            f"--memory; log: {job.log}"
        )
    if not outcome.violated and not reading.succeeded:
        if _NO_TLC in job.log.read_text(encoding="utf-8", errors="replace"):
            raise ToolProblem(
                f"{tool.jar} holds no TLA+ tools; correct or unset TLA2TOOLS_JAR, which names a "
                f"jar other than the pinned one. Log: {job.log}"
            )
        cause = _cause(job, reading.complaint(status))
        raise Refused(f"{job.module.stem} could not be checked: {cause} Log: {job.log}", cause)
    return outcome


def _cause(job: Job, complaint: str) -> str:
    """What is wrong, by the names and lines that the user knows, and what to do about it."""
    if complaint.endswith("."):  # TLC has said nothing
        return complaint
    written = job.config.splitlines()

    def quoted(found: re.Match[str]) -> str:
        line = int(found[1])
        return f"in {_CONFIGURATION} near {written[line - 1].strip()!r}" if (
            0 < line <= len(written)
        ) else found[0]  # fmt: skip

    told = _GENERATED.sub(quoted, complaint).replace(_CONFIGURATION, job.source or _CONFIGURATION)
    if _NO_HEAP in told:
        return f"{told}; allow less with --memory."
    return f"{told}; correct that and run it again."


def _attempt(
    tool: Tool,
    job: Job,
    report: Callable[[Progress], None],
    cancelled: threading.Event | None,
) -> tuple[Reading, Watch, int]:
    """One process of TLC, read to its end; with its watch and its exit status."""
    behaviours = 0 if job.simulate is None else job.simulate[0]
    reading = Reading(Outcome(job.log), report, behaviours)
    with started(_command(tool, job), job, cancelled, STANDSTILL_S) as (process, output, watch):
        assert process.stdout is not None
        reading.read(process.stdout, output)
        status = process.wait()
    return reading, watch, status


@contextmanager
def started(
    command: Sequence[str],
    job: Job,
    cancelled: threading.Event | None,
    standstill: float | None = None,
) -> Iterator[tuple[subprocess.Popen[str], IO[str], Watch]]:
    """TLC's process, the open log, and the watch that ends the process.

    The job's directory gets the configuration and a scratch folder, which is removed at the end.
    """
    with prepared(job) as output:
        process = spawned(command, job.scratch)
        with process, Watch(process, job.timeout, cancelled, standstill) as watch:
            yield process, output, watch


@contextmanager
def prepared(job: Job) -> Iterator[IO[str]]:
    """The open log of a job whose directory has the configuration and, until the end, scratch."""
    shutil.rmtree(job.scratch, ignore_errors=True)
    (job.directory / "run.cfg").write_text(job.config, encoding="utf-8")
    try:
        with job.log.open("w", encoding="utf-8") as output:
            job.scratch.mkdir(parents=True, exist_ok=True)
            yield output
    finally:
        shutil.rmtree(job.scratch, ignore_errors=True)


def spawned(
    command: Sequence[str], folder: Path, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    """A process of Java in a folder, which ends with the thread that starts it.

    A busy machine sometimes refuses a process for a moment; that must not cost a night's results.

    Raises:
        ToolProblem: the system refused it every time.
    """
    pauses = list(_PAUSES)
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return subprocess.Popen(
                dying_with_parent(command),
                cwd=folder, stdin=stdin,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                start_new_session=True,
            )  # fmt: skip
        except OSError as problem:
            if not pauses:
                raise ToolProblem(f"the model checker could not be started: {problem}") from problem
            time.sleep(pauses.pop(0))


def _command(tool: Tool, job: Job) -> list[str]:
    tuning = ["-XX:+UseSerialGC"] if job.workers == 1 else ["-XX:+UseParallelGC"]
    if job.short:  # it ends before the second compiler would pay
        tuning.append(FIRST_COMPILER)
    return [
        tool.java, *tool.sharing, *tuning, f"-Xmx{job.memory_mb}m", EXIT_WHEN_FULL,
        f"-Djava.io.tmpdir={job.scratch}", f"-DTLA-Library={job.searched}",
        "-cp", tool.classpath, "tlc2.TLC", *arguments(job),
    ]  # fmt: skip


def arguments(job: Job) -> list[str]:
    """What TLC itself is told of a job, wherever it runs."""
    dump = ["-dump", "dot,actionlabels", str(job.dump.absolute())] if job.dump else []
    if job.coverage:
        dump += ["-coverage", "9999"]  # once, at the end
    if job.simulate is not None:  # the same ones each time
        number, depth = job.simulate
        dump += ["-simulate", f"num={number}", "-depth", str(depth), "-seed", "1"]
    # -lncheck final: liveness is not checked now and then as well, by the clock, so that the same
    # counterexample is found each time.
    return [
        "-tool", "-workers", str(job.workers), "-fp", "0", "-lncheck", "final",
        "-metadir", str(job.scratch), "-config", "run.cfg", *dump, str(job.module.absolute()),
    ]  # fmt: skip
