"""Model checkers that stay: Java processes that take one run after another.

The start of a Java with TLC in it costs a small run ten times what the run itself does. A server
(``java/TlcServer.java``) starts once and restores TLC's static fields after each run, so that every
run finds what the first one found. What ends otherwise than with a verdict is run again in a
process of its own.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path

from bentpipe_conformance.models import tlc
from bentpipe_conformance.models.messages import Outcome, Progress, Reading
from bentpipe_conformance.models.sharing import request
from bentpipe_conformance.models.tool import Tool, Unfinished
from bentpipe_conformance.models.watch import Watch, kill

_ENDED = "@!@!@ENDED "
_STAYS = "stays"


class Server:
    """One process; used by one thread at a time.

    Attributes:
        process: leads a session of its own and ends with its standard input.
        ended: whether it has ended its last run by itself.
        stays: whether it takes another run.
    """

    def __init__(self, tool: Tool, memory_mb: int) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="bentpipe-tlc-")
        folder = Path(self._scratch.name)
        self.process = tlc.spawned(
            [tool.java, *tool.sharing, "-XX:+UseSerialGC", tlc.FIRST_COMPILER,
             f"-Xmx{memory_mb}m", tlc.EXIT_WHEN_FULL, f"-Djava.io.tmpdir={folder}",
             "-cp", tool.classpath, "TlcServer"],
            folder, subprocess.PIPE,
        )  # fmt: skip
        self.ended = self.stays = False

    def answer(self, job: tlc.Job) -> Iterator[str]:
        """The lines that TLC prints about a job.

        Raises:
            OSError: the process has ended.
        """
        self.ended = self.stays = False
        assert isinstance(self.process.stdin, TextIOWrapper) and self.process.stdout is not None
        self.process.stdin.buffer.write(request(job.searched, tlc.arguments(job)))
        self.process.stdin.buffer.flush()
        for line in self.process.stdout:
            if line.startswith(_ENDED):
                self.ended, self.stays = True, line.split()[1:] == [_STAYS]
                return
            yield line

    def close(self) -> None:
        """End the process and remove its files."""
        kill(self.process)
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self._scratch.cleanup()


class Servers:
    """The servers of one tool, as many as run at a time; they end with the ``with`` block.

    Args:
        tool: with a server's jar.
        memory_mb: limit of each one's heap, in MiB.
    """

    def __init__(self, tool: Tool, memory_mb: int) -> None:
        self._tool, self._memory_mb = tool, memory_mb
        self._lock = threading.Lock()
        self._idle: list[Server] = []

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        while self._idle:
            self._idle.pop().close()

    def run(
        self, job: tlc.Job, report: Callable[[Progress], None],
        cancelled: threading.Event | None = None,
    ) -> Outcome:  # fmt: skip
        """As :func:`.tlc.run` does it, if need be by that.

        Raises:
            Cancelled: TLC was stopped.
            ToolProblem: as there.
        """
        began = time.monotonic()
        served = self._served(job, report, cancelled) if self._suits(job) else None
        if served is not None:
            return served
        left = job.timeout - (time.monotonic() - began)
        return tlc.run(self._tool, replace(job, timeout=max(left, 1.0)), report, cancelled)

    def _suits(self, job: tlc.Job) -> bool:
        """Whether a run is small, and of the kind of which nothing stays behind."""
        return (
            job.short and job.workers == 1 and job.memory_mb == self._memory_mb
            and job.dump is None and job.simulate is None and not job.coverage
        )  # fmt: skip

    def _served(
        self, job: tlc.Job, report: Callable[[Progress], None], cancelled: threading.Event | None
    ) -> Outcome | None:
        """What a server says; None without a verdict.

        Raises:
            Cancelled: TLC was stopped.
            Unfinished: the time is over.
        """
        reading = Reading(Outcome(job.log), report, behaviours=0)
        with self._lock:
            server = self._idle.pop() if self._idle else None
        server = server or Server(self._tool, self._memory_mb)
        try:
            with (
                tlc.prepared(job) as output,
                Watch(server.process, job.timeout, cancelled, tlc.STANDSTILL_S) as watch,
                suppress(OSError),
            ):
                reading.read(server.answer(job), output)
                if server.stays:
                    watch.spare()
        finally:
            if server.stays and server.process.poll() is None:
                with self._lock:
                    self._idle.append(server)
            else:
                server.close()
        if watch.late:
            raise Unfinished(job.late(reading.last))
        outcome = reading.outcome
        outcome.seconds = reading.seconds
        return outcome if server.ended and (outcome.violated or reading.succeeded) else None
