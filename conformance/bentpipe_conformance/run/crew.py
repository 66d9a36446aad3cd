"""Crews: the workers of one assignment, each a process of this machine or a guest."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.supervised import Supervised
from bentpipe_conformance.bed.uml import Guest
from bentpipe_conformance.run.assignment import Assignment

TIMEOUT_S = 8 * 3600.0
"""Wall-clock bound on one worker or guest; hung cases are found long before. All cases of a box
with two ports take three hours."""


class Member(Protocol):
    """A process or guest at work on an assignment."""

    def running(self) -> bool:
        """Whether it still runs."""

    def failure(self) -> str:
        """How it failed, in a few words; empty when it did not. Only once it has ended."""

    def close(self) -> None:
        """Kill it with whatever it started."""


StartMember = Callable[[Sequence[str], Path], Member]
"""Starts a member from its command and the crew's folder."""


class Crew:
    """Members at work.

    Args:
        assignment: what they are to do.
        size: how many members.
        start: starts one of them.

    Raises:
        BedError: a member cannot be started.
    """

    def __init__(self, assignment: Assignment, size: int, start: StartMember) -> None:
        self._folder: Path | None = None
        self._members: list[Member] = []
        self._why = ""
        try:
            with uninterrupted():
                room = Path(assignment.claims).parent
                self._folder = Path(tempfile.mkdtemp(prefix="crew-", dir=room))
            order = self._folder / "assignment.json"
            assignment.dump(order)
            command = (sys.executable, "-m", "bentpipe_conformance.run.worker", str(order))
            for _ in range(size):
                self._members.append(start(command, self._folder))
        except BaseException:
            self.stop()
            raise

    def alive(self) -> bool:
        """Whether any member still runs."""
        for member in [member for member in self._members if not member.running()]:
            self._members.remove(member)
            try:
                self._why = self._why or member.failure()
            finally:
                member.close()
        return bool(self._members)

    def why(self) -> str:
        """How the first member that was seen to fail ended, in a few words."""
        return self._why or "it was stopped"

    def stop(self) -> None:
        """Kill every member and forget the logs."""
        for member in self._members:
            member.close()
        self._members.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep signals waiting meanwhile, so that what is made is known to whoever removes it."""
    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process_crew(assignment: Assignment, size: int) -> Crew:
    """Worker processes of this machine."""
    return Crew(assignment, size, partial(_Process, assignment.claims))


def guest_crew(image: Kernel, assignment: Assignment, size: int) -> Crew:
    """Workers inside User-Mode Linux guests.

    Raises:
        BedError: a guest cannot be started.
    """
    return Crew(assignment, size, partial(_Guest, image))


class _Process:
    """A worker process and the file that gets its output."""

    def __init__(self, claims: str, command: Sequence[str], folder: Path) -> None:
        descriptor, name = tempfile.mkstemp(dir=folder, suffix=".log")
        os.close(descriptor)
        self._log = Path(name)
        self._process = Supervised(
            command, env=os.environ, cwd=Path.cwd(), console=self._log, timeout=TIMEOUT_S,
            keep=(str(folder), claims),  # when we are killed, nobody else removes these
        )  # fmt: skip
        self.running, self.close = self._process.running, self._process.close

    def failure(self) -> str:
        ending = self._process.wait()
        if ending.status == 0:
            return ""
        said = _last_line(self._log.read_text(encoding="utf-8", errors="replace"))
        return said or (ending.ending if ending.status is None else _status(ending.status))


class _Guest:
    """A guest that runs one worker."""

    def __init__(self, image: Kernel, command: Sequence[str], _folder: Path) -> None:
        self._guest = Guest(image, command, virtual=image.virtual, timeout=TIMEOUT_S)
        self.running, self.close = self._guest.running, self._guest.close

    def failure(self) -> str:
        try:
            result = self._guest.wait()
        except BedError as error:
            return str(error)
        if not result.status:
            return ""
        return _last_line(result.stderr) or _status(result.status)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def _status(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"
