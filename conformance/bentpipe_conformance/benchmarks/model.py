"""The outcome of a benchmark, and how repeated measurements become one figure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity.

    Attributes:
        name: what it is, with its unit.
        value: the median of the repetitions.
        target: the bound it should keep, in words; empty without one.
        met: whether it does, None without a target.
    """

    name: str
    value: float
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What one benchmark found.

    Attributes:
        measured: what was measured and how, one sentence.
        figures: the results.
        skipped: why nothing was measured, empty when something was.
    """

    measured: str
    figures: tuple[Figure, ...] = field(default=())
    skipped: str = ""


def at_least(name: str, value: float, bound: float) -> Figure:
    """A figure that should not be smaller than ``bound``."""
    return Figure(name, value, f"at least {bound:g}", value >= bound)


def below(name: str, value: float, bound: float) -> Figure:
    """A figure that should be smaller than ``bound``."""
    return Figure(name, value, f"below {bound:g}", value < bound)


def cpu_seconds(action: Callable[[], object]) -> float:
    """CPU time that ``action`` takes in this process; other load on the machine does not count."""
    before = time.process_time()
    action()
    return time.process_time() - before


def wall_seconds(action: Callable[[], object]) -> float:
    """Wall-clock time that ``action`` takes."""
    before = time.monotonic()
    action()
    return time.monotonic() - before


def peak_octets() -> int:
    """The most memory that this process has had since its program began.

    The kernel's maximum for ``getrusage`` is that of the process it was forked from, too.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def median_of(repeat: int, measure: Callable[[], float]) -> float:
    """Median of ``repeat`` measurements."""
    return median(measure() for _ in range(repeat))
