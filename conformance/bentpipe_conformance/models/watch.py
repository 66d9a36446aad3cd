"""Processes of the model checker, killed at their time limit, on cancellation and on exit."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

_LOOK = 0.2  # seconds between looks at the clock


class Cancelled(Exception):
    """The run was cancelled, so there is no result."""


class Watch:
    """Within its ``with`` block a process lives until its time is over or the work is cancelled.

    The process leads a session of its own; on leaving the block all of that session is killed.

    Args:
        process: started with ``start_new_session=True``.
        timeout: seconds of wall clock it may take.
        cancelled: when set, the process ends as well.
    """

    def __init__(
        self,
        process: subprocess.Popen[str],
        timeout: float,
        cancelled: threading.Event | None = None,
    ) -> None:
        self._process = process
        self._ends_at = time.monotonic() + timeout
        self._cancelled = cancelled
        self._done = threading.Event()
        self._late = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    @property
    def late(self) -> bool:
        """Whether the process was ended because its time was over."""
        return self._late.is_set()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        self._thread.join()
        kill(self._process)
        if kind is None and self._cancelled is not None and self._cancelled.is_set():
            raise Cancelled

    def _look(self) -> None:
        while not self._done.wait(_LOOK):
            late = time.monotonic() > self._ends_at
            if late:
                self._late.set()
            if late or (self._cancelled is not None and self._cancelled.is_set()):
                kill(self._process)
                return


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and its session, and wait for its end."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    process.wait()
