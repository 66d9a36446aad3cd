"""User-Mode Linux on processors with more registers than it knows.

Up to Linux 6.12 it saves 2696 octets of extended registers, enough for AVX-512. With AMX there are
11008; the host's kernel refuses the shorter state, and the guest ends at its first process with
"ptrace set fp regs failed". A small preloaded library pads the state.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from bentpipe_conformance.bed.commands import run_briefly
from bentpipe_conformance.bed.errors import BedError, last_line
from bentpipe_conformance.bed.kernel import cache_directory

SOURCE = Path(__file__).with_suffix(".c")
PROCESSOR = Path("/proc/cpuinfo")
BEYOND = frozenset({"amx_tile", "apx"})
"""Flags of processors whose state is longer than User-Mode Linux knows."""


def preload(processor: Path = PROCESSOR) -> dict[str, str]:
    """What User-Mode Linux's environment needs on this processor: nothing, or a library.

    Raises:
        BedError: a library is needed, and there is no compiler to make it.
    """
    return {"LD_PRELOAD": str(library())} if needed(processor) else {}


def needed(processor: Path = PROCESSOR) -> bool:
    """Whether the processor has more registers than User-Mode Linux knows."""
    with contextlib.suppress(OSError), processor.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("flags"):
                return not BEYOND.isdisjoint(line.split())
    return False


def library() -> Path:
    """The library that pads the state, compiled once per machine and kept in the cache.

    Raises:
        BedError: there is no compiler, or it fails.
    """
    place = cache_directory() / f"xstate-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}.so"
    if place.is_file():
        return place
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise BedError(
            "This processor has more registers (AMX) than User-Mode Linux knows, and the remedy "
            "needs a C compiler; install gcc."
        )
    with tempfile.TemporaryDirectory(prefix="xstate-", dir=place.parent) as folder:
        made = Path(folder) / place.name
        outcome = run_briefly([compiler, "-O2", "-shared", "-fPIC", "-o", made, SOURCE, "-ldl"])
        if outcome.returncode:
            raise BedError(
                f"{compiler} cannot compile {SOURCE.name} ({last_line(outcome.stderr)}); "
                "repair or replace it."
            )
        os.replace(made, place)
    return place
