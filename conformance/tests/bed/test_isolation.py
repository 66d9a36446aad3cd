"""Implementations that attack their tester: in the bed's guest and on this host, none succeeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.bed.kernel import Kernel

from .escape_scenario import ATTEMPTS

pytestmark = pytest.mark.bed
Play = Callable[..., dict[str, Any]]
SCRIPT = Path(__file__).with_name("escape_scenario.py")


@pytest.fixture(scope="module")
def in_the_guest(virtual_kernel: Kernel, play: Play) -> dict[str, Any]:
    return play(virtual_kernel, SCRIPT.name)


@pytest.fixture(scope="module")
def on_the_host() -> dict[str, Any]:
    if os.geteuid() != 0:
        pytest.skip("bed host needs root")
    # Many processes at once have more memory than one where nothing bounds them together.
    safe = [attempt for attempt in ATTEMPTS if attempt != "memory-bomb-by-many"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *safe], capture_output=True, text=True, check=False
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this machine does not let implementations be isolated")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return {**told, "memory-bomb-by-many": None}


@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.parametrize("bed", ["in_the_guest", "on_the_host"])
def test_attempt_of_an_implementation_is_refused(
    bed: str, attempt: str, request: pytest.FixtureRequest
) -> None:
    told = request.getfixturevalue(bed)[attempt]
    if told is None:
        pytest.skip("bounded for each process only")
    assert "won" not in told["said"]
    # It met refusals to its end, or has been ended itself for what it took.
    assert told["ended"] is None or "SIGKILL" in told["ended"], told
    assert told["grown"] < 16 << 20
    assert told["left"] == 0
    assert told["folder"] == ["secret"]
