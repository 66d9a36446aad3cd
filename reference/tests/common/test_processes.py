"""Pools of processes end with what they work for."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE_S = 30.0
LONG_S = 600

PROGRAM = f"""
import signal, sys, time
from pathlib import Path
from bentpipe_reference.common.processes import process_pool

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it


def work(file):
    Path(file).touch()
    time.sleep({LONG_S})


with process_pool(2) as pool:
    for future in [pool.submit(work, file) for file in sys.argv[1:]]:
        future.result()
"""


@pytest.mark.parametrize("pause", [0.0, 0.0001, 0.0005, 0.002, 0.01])
def test_pool_at_long_work_interrupted_twice(tmp_path: Path, pause: float) -> None:
    """An impatient user's second Ctrl-C arrives while the first one is heeded."""
    files = [tmp_path / name for name in "ab"]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, files)], stderr=subprocess.DEVNULL
    ) as command:
        try:
            limit = time.monotonic() + PATIENCE_S
            while not all(file.exists() for file in files):
                assert time.monotonic() < limit
                time.sleep(0.01)
            command.send_signal(signal.SIGINT)
            time.sleep(pause)
            command.send_signal(signal.SIGINT)
            assert command.wait(PATIENCE_S) != 0
        finally:
            command.kill()
