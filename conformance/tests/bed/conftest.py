"""What the tests of the bed share: a kernel with a virtual clock, and scenarios run inside it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.bed import kernel as kernels
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.uml import run

Play = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def virtual_kernel() -> Kernel:
    """The kernel with a virtual clock; without one the test is skipped."""
    try:
        kernel = kernels.find_virtual()
    except BedError as error:
        pytest.skip(str(error))
    if kernel is None:
        pytest.skip("no kernel with a virtual clock; build one with `bentpipe bed build`")
    return kernel


@pytest.fixture(scope="session")
def play() -> Play:
    """Runs a script of this folder inside a kernel; what it printed as JSON."""

    def play(kernel: Kernel, script: str, *arguments: str) -> dict[str, Any]:
        command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
        result = run(kernel, command, virtual=kernel.virtual, timeout=240)
        assert result.status == 0, result.stderr
        told: dict[str, Any] = json.loads(result.stdout)
        return told

    return play
