"""Running a long external command that ends with us and whose output is followed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bentpipe_conformance.bed.supervised import Supervised

POLL = 0.1
LAST_LINES = 40
DAY = 86_400.0


def run_followed(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    inherited: Sequence[int] = (),
    follow: Callable[[str], None] | None = None,
) -> int | None:
    """Run a command whose output goes to ``log``; its exit status, None if it was killed.

    Args:
        argv: absolute path of the program, and its arguments.
        log: file to write; an older one is replaced.
        env: its environment, ours if None.
        cwd: its working directory, ours if None.
        inherited: file descriptors kept open as long as it runs.
        follow: called with each line of output.
    """
    log.unlink(missing_ok=True)
    log.touch()
    program = Supervised(
        argv,
        env=os.environ if env is None else env,
        cwd=cwd or os.getcwd(),
        console=log,
        timeout=DAY,
        inherited=inherited,
    )
    try:
        with log.open(encoding="utf-8", errors="replace") as output:
            rest = ""
            running = True
            while running:
                running = program.running()
                *lines, rest = (rest + output.read()).split("\n")
                for line in lines:
                    if follow is not None:
                        follow(line)
                if running:
                    time.sleep(POLL)
        return program.wait().status
    finally:
        program.close()


def tail(log: Path) -> str:
    """The last lines of a log, for finding out why a command failed."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LAST_LINES:])
