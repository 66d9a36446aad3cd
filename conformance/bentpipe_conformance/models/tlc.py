"""One run of TLC: started under a time and memory limit, its messages read as they come."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bentpipe_reference.common.processes import dying_with_parent

from bentpipe_conformance.models.tool import Tool, ToolProblem, Unfinished
from bentpipe_conformance.models.watch import Watch

_START = re.compile(r"@!@!@STARTMSG (\d+):(\d+) @!@!@")
_END = re.compile(r"@!@!@ENDMSG \d+ @!@!@")
COUNTS = re.compile(
    r"([\d,]+) states generated.*?([\d,]+) distinct states found.*?([\d,]+) states left"
)
_GENERATED = re.compile(r"([\d,]+) states generated")
_STATE = re.compile(r"(\d+): <(.*)>\s*")
_NUMBER = re.compile(r"(\d+)")

# Codes of `-tool` messages.
_INVARIANT_AT_START, _INVARIANT, _ACTION, _TEMPORAL, _DEADLOCK = 2107, 2110, 2112, 2116, 2114
_IMPLIED_INIT = 2108
# A temporal property that is FALSE whatever happens: constants alone decide it.
_FALSE = 2230
_VIOLATIONS = {
    _INVARIANT_AT_START, _INVARIANT, _ACTION, _TEMPORAL, _DEADLOCK, _IMPLIED_INIT, _FALSE,
}  # fmt: skip
_COUNT, _DEPTH, _PROGRESS, _TRACE, _STUTTERS, _BACK, _OUT_OF_MEMORY = (
    2199, 2194, 2200, 2217, 2218, 2122, 1001,
)  # fmt: skip
_SUCCESS, _ENDED, _SIMULATED = 2193, 2186, 2209
_TAKEN = 2772
_ACTION_TAKEN = re.compile(r"<(\w+) line .*>: \d+:(\d+)")
_QUOTED = 5000
EXIT_WHEN_FULL = "-XX:+ExitOnOutOfMemoryError"
"""Without it TLC may spend all its time on printing the large state that has filled its memory."""
_QUOTING = 1000  # a failure of TLC itself; the message within it says why
_CHATTER = (
    "Parsing file", "Semantic processing", "Semantic errors", "Errors:", "Parse Error",
    "Abort messages:", "Fatal errors",
)  # fmt: skip
_FRAME = (
    "TLC threw an unexpected exception", "This was probably caused by", "See the User Output",
    "The exception was a ",
)  # fmt: skip
_BEFORE = ("The behavior up to this point", "The error occurred when TLC")
_TAILS = ("Residual stack trace", " while looking in these directories")
_COMPLAINTS = ("***", "Error", "error:", "Exception")
_PAUSES = (0.5, 2.0, 5.0)
"""Seconds before a process that the system refused is asked for again."""
_STANDSTILL_S = 30.0
"""TLC's workers sometimes wait for each other for ever (``StateQueue.suspendAll``); a process that
has done nothing for so long is started again, once."""
_NO_TLC = "Could not find or load main class"


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

    def late(self, found: str = "") -> str:
        """The sentence on a run that was not finished in time."""
        return (
            f"{self.module.stem} did not finish within {self.timeout:g} s{found}; allow more with "
            f"--timeout; log: {self.log}"
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    generated: int
    distinct: int
    queue: int
    depth: int
    seconds: float

    @property
    def rate(self) -> float:
        """States generated per second."""
        return self.generated / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class State:
    """One state of a counterexample: the action that led to it and the variables as text."""

    action: str
    variables: dict[str, str]


@dataclass(slots=True)
class Outcome:
    """What a finished run found.

    Attributes:
        violated: TLC's sentence on what is violated; empty when nothing is.
        name: the violated invariant or action property when TLC names it.
        trace: the counterexample.
        loop: index into the trace where the behaviour goes back to; None when it does not.
        generated: states generated.
        distinct: distinct states found.
        depth: depth of the search.
        seconds: wall clock.
        log: the file with all that TLC printed.
        actions: how often each action was taken, where that was counted.
        behaviours: of a simulation, how many were drawn; 0 for a search.
    """

    log: Path
    violated: str = ""
    name: str = ""
    trace: list[State] = field(default_factory=list)
    loop: int | None = None
    generated: int = 0
    distinct: int = 0
    depth: int = 0
    seconds: float = 0.0
    actions: dict[str, int] = field(default_factory=dict)
    behaviours: int = 0


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
        found = f" (found {reading.last.distinct:,} distinct states)"
        raise Unfinished(job.late(found))
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
        raise ToolProblem(
            f"{job.module.stem} could not be checked: {reading.complaint(status)} Log: {job.log}"
        )
    return outcome


def _attempt(
    tool: Tool,
    job: Job,
    report: Callable[[Progress], None],
    cancelled: threading.Event | None,
) -> tuple[_Reading, Watch, int]:
    """One process of TLC, read to its end; with its watch and its exit status."""
    behaviours = 0 if job.simulate is None else job.simulate[0]
    reading = _Reading(Outcome(job.log), report, behaviours)
    with started(_command(tool, job), job, cancelled, _STANDSTILL_S) as (process, output, watch):
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
    shutil.rmtree(job.scratch, ignore_errors=True)
    (job.directory / "run.cfg").write_text(job.config, encoding="utf-8")
    try:
        with job.log.open("w", encoding="utf-8") as output:
            process = _spawned(command, job)
            with process, Watch(process, job.timeout, cancelled, standstill) as watch:
                yield process, output, watch
    finally:
        shutil.rmtree(job.scratch, ignore_errors=True)


def _spawned(command: Sequence[str], job: Job) -> subprocess.Popen[str]:
    """TLC's process, in the job's scratch folder.

    A busy machine sometimes refuses a process for a moment; that must not cost a night's results.

    Raises:
        ToolProblem: the system refused it every time.
    """
    pauses = list(_PAUSES)
    while True:
        job.scratch.mkdir(parents=True, exist_ok=True)
        try:
            return subprocess.Popen(
                dying_with_parent(command),
                cwd=job.scratch, stdin=subprocess.DEVNULL,
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
        tuning.append("-XX:TieredStopAtLevel=1")
    dump = ["-dump", "dot,actionlabels", str(job.dump.absolute())] if job.dump else []
    if job.coverage:
        dump += ["-coverage", "9999"]  # once, at the end
    if job.simulate is not None:  # the same ones each time
        number, depth = job.simulate
        dump += ["-simulate", f"num={number}", "-depth", str(depth), "-seed", "1"]
    # -lncheck final: liveness is not checked now and then as well, by the clock, so that the same
    # counterexample is found each time.
    return [
        tool.java, *tool.sharing, *tuning, f"-Xmx{job.memory_mb}m", EXIT_WHEN_FULL,
        f"-Djava.io.tmpdir={job.scratch}", f"-DTLA-Library={job.searched}",
        "-cp", str(tool.jar), "tlc2.TLC", "-tool",
        "-workers", str(job.workers), "-fp", "0", "-lncheck", "final", "-metadir", str(job.scratch),
        "-config", "run.cfg", *dump, str(job.module.absolute()),
    ]  # fmt: skip


class _Reading:
    """Turns the messages of one run into an outcome."""

    def __init__(
        self, outcome: Outcome, report: Callable[[Progress], None], behaviours: int
    ) -> None:
        self.outcome = outcome
        self._behaviours = behaviours
        self.last = Progress(0, 0, 0, 0, 0.0)
        self.out_of_memory = False
        self.succeeded = False
        self._started = time.monotonic()
        self._report = report
        self._errors: list[str] = []
        self._quoting = False

    @property
    def seconds(self) -> float:
        """Wall clock since the start."""
        return time.monotonic() - self._started

    def read(self, stream: IO[str], copy: IO[str]) -> None:
        """Read until the stream ends."""
        for code, severity, text in _messages(stream, copy):
            self._message(code, severity, text.strip())

    def complaint(self, status: int) -> str:
        """Why the run came to nothing, in one sentence."""
        told = (_told(text) for text in self._errors if not text.startswith(_BEFORE))
        text = next(filter(None, told), "")
        for tail in _TAILS:
            text = text.partition(tail)[0]
        text = text[:300].strip()
        if not text:
            return f"TLC ended with status {status} and said nothing."
        return text if text.endswith(".") else f"{text}."

    def _message(self, code: int, severity: int, text: str) -> None:
        outcome = self.outcome
        if code in (_PROGRESS, _COUNT):
            self._count(code, text)
        elif code == _DEPTH and (found := _NUMBER.search(text)):
            outcome.depth = int(found[1])
        elif code == _TAKEN and (taken := _ACTION_TAKEN.match(text)):
            outcome.actions[taken[1]] = outcome.actions.get(taken[1], 0) + int(taken[2])
        elif code == _SIMULATED and (found := _GENERATED.search(text)):
            outcome.generated = int(found[1].replace(",", ""))
        elif code == _ENDED and self._behaviours and not outcome.violated and not self._errors:
            self.succeeded, outcome.behaviours = True, self._behaviours
        elif code == _SUCCESS:
            self.succeeded = True
        elif code == _OUT_OF_MEMORY or "OutOfMemoryError" in text:
            self.out_of_memory = True
        elif code in _VIOLATIONS and not outcome.violated:
            first = text.splitlines()[0]
            outcome.violated = first
            outcome.name = _violated_name(first)
            if code == _INVARIANT_AT_START:
                outcome.trace.append(State("Initial predicate", _variables(text.splitlines()[1:])))
        elif code == _TRACE:
            self._state(text)
        elif code == _STUTTERS:
            outcome.loop = len(outcome.trace) - 1
        elif code == _BACK and (found := _NUMBER.search(text)):
            outcome.loop = int(found[1]) - 1
        elif text and (
            severity == 1
            or code >= _QUOTED
            or self._quoting
            or (code == 0 and any(mark in text for mark in _COMPLAINTS))
        ):
            self._errors.append(text)
        self._quoting = code == _QUOTING

    def _count(self, code: int, text: str) -> None:
        if (found := COUNTS.search(text)) is None:
            return
        generated, distinct, queue = (int(part.replace(",", "")) for part in found.groups())
        depth = _NUMBER.search(text)
        if code == _COUNT:
            self.outcome.generated, self.outcome.distinct = generated, distinct
        self.last = Progress(
            generated, distinct, queue,
            int(depth[1]) if depth and code == _PROGRESS else self.last.depth,
            self.seconds,
        )  # fmt: skip
        self._report(self.last)

    def _state(self, text: str) -> None:
        head, *rest = text.splitlines()
        found = _STATE.match(head)
        action = found[2].split(" line ")[0] if found else head
        self.outcome.trace.append(State(action, _variables(rest)))


def _messages(stream: IO[str], copy: IO[str]) -> Iterator[tuple[int, int, str]]:
    """Code, severity and text of each message; lines between messages have code 0."""
    code, severity = 0, 0
    lines: list[str] = []
    for line in stream:
        copy.write(line)
        if found := _START.search(line):
            if code or lines:  # a message may quote another one
                yield code, severity, "".join(lines)
            code, severity, lines = int(found[1]), int(found[2]), []
        elif _END.match(line):
            if code:
                yield code, severity, "".join(lines)
            code, severity, lines = 0, 0, []
        else:
            lines.append(line)
    if lines:
        yield code, severity, "".join(lines)


def _told(text: str) -> str:
    """What an error message says, without the frame around it."""
    lines = (line.strip(" *") for line in text.splitlines())
    told = [line.removeprefix(": ") for line in lines
            if line and not line.startswith((*_CHATTER, *_FRAME))]  # fmt: skip
    return " ".join(" ".join(dict.fromkeys(told)).split())


def _violated_name(sentence: str) -> str:
    kinds = r"(?:Invariant|Action property|Property|The property of) (\w+) (?:is|of)"
    found = re.match(kinds, sentence)
    return found[1] if found and found[1] != "line" else ""


def _variables(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        match = re.match(r"(?:/\\ )?(\w+) = (.*)", line)
        if match and (line.startswith("/\\ ") or not name):
            name = match[1]
            found[name] = match[2]
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found
