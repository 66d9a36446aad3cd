"""External commands: short ones, and long ones that end with this process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bentpipe_conformance.bed.supervised import Supervised

POLL = 0.1
LAST_LINES = 40
DAY = 86_400.0


def run_briefly(argv: Sequence[str | Path], given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with ``given`` as its standard input; what it printed."""
    return subprocess.run(argv, input=given, capture_output=True, text=True, check=False)


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

    ``argv`` begins with an absolute path. An older log is replaced; ``follow`` gets each line of
    it. ``inherited`` file descriptors are kept open as long as the command runs.
    """
    log.unlink(missing_ok=True)
    log.touch()
    with Supervised(
        argv, env=os.environ if env is None else env, cwd=cwd or os.getcwd(), console=log,
        timeout=DAY, inherited=inherited,
    ) as program:  # fmt: skip
        if follow is not None:
            program.follow(log, follow, POLL)
        return program.wait().status


def tail(log: Path) -> str:
    """The last lines of a log, to find out why a command failed."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LAST_LINES:])
