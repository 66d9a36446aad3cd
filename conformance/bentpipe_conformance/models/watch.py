"""Processes of the model checker, killed when late, at a standstill or cancelled."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

_LOOK = 0.2  # seconds between looks at the clock
_BUSY = 0.02
"""Share of a core below which a process works at nothing: a virtual machine's own chores take less,
a checker on a machine with fifty others takes more."""


class Cancelled(Exception):
    """The run was cancelled, so there is no result."""


class Watch:
    """Within its ``with`` block a process lives until its time is over or the work is cancelled.

    The process leads a session of its own; on leaving the block all of that session is killed,
    unless it has been spared.

    Args:
        process: started with ``start_new_session=True``.
        timeout: seconds of wall clock it may take.
        cancelled: when set, the process ends as well.
        standstill: seconds without work after which the process ends, too; None for one that may
            wait. Without ``/proc`` nothing is noticed.
    """

    def __init__(
        self,
        process: subprocess.Popen[str],
        timeout: float,
        cancelled: threading.Event | None = None,
        standstill: float | None = None,
    ) -> None:
        self._process = process
        self._standstill = standstill
        self._spared = False
        self._worked = (processor_seconds(process.pid) or 0.0) if standstill else 0.0
        self._looked_at = time.monotonic()
        self._ends_at = self._looked_at + timeout
        self._cancelled = cancelled
        self._done = threading.Event()
        self._late = threading.Event()
        self._stood_still = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    @property
    def late(self) -> bool:
        """Whether the process was ended because its time was over."""
        return self._late.is_set()

    @property
    def stood_still(self) -> bool:
        """Whether the process was ended because it had come to a standstill."""
        return self._stood_still.is_set()

    def spare(self) -> None:
        """Let the process outlive the block: what it was to do is done."""
        self._spared = True

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if not self._spared:
            kill(self._process)
        if kind is None and self._cancelled is not None and self._cancelled.is_set():
            raise Cancelled

    def _look(self) -> None:
        while not self._done.wait(_LOOK):
            late = time.monotonic() > self._ends_at
            if late:
                self._late.set()
            elif self._stands_still():
                self._stood_still.set()
            if (
                late
                or self.stood_still
                or (self._cancelled is not None and self._cancelled.is_set())
            ):
                kill(self._process)
                return

    def _stands_still(self) -> bool:
        now = time.monotonic()
        if self._standstill is None or now - self._looked_at < self._standstill:
            return False
        worked = processor_seconds(self._process.pid)
        idle = worked is not None and worked - self._worked < _BUSY * (now - self._looked_at)
        self._looked_at, self._worked = now, worked or 0.0
        return idle


def processor_seconds(pid: int) -> float | None:
    """Processor time of a process and the children it waited for; None where nothing tells."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before may hold anything
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and its session, and wait for its end."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    process.wait()
