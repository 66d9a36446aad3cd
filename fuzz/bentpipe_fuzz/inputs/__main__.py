"""``python -m bentpipe_fuzz.inputs TARGET``: files from anybody, by mutation of a corpus.

With ``--atheris`` libFuzzer chooses them by coverage, where the package atheris is installed.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
from bentpipe_conformance.evidence.limits import MEMORY, MEMORY_PER_OCTET, BoundError, bounded

from bentpipe_fuzz.inputs.guided import guide
from bentpipe_fuzz.inputs.shaped import drawn
from bentpipe_fuzz.inputs.targets import CORPUS, PATIENCE, TARGETS, Target

SHOWN = 10
"""Findings that are printed."""


@click.command()
@click.argument("target", type=click.Choice(sorted(TARGETS)))
@click.option("--runs", default=1000, show_default=True, help="How many inputs.")
@click.option("--seconds", default=0.0, help="Stop after so many seconds (0: never).")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("bentpipe-runs/inputs"),
              show_default=True, help="Where inputs that break something are kept.")  # fmt: skip
@click.option("--atheris", "guided", is_flag=True, help="Guided by coverage, --runs of them.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(
    target: str, runs: int, seconds: float, seed: int, out: Path, guided: bool,
    files: tuple[Path, ...],
) -> None:  # fmt: skip
    """Feed mutated files to TARGET; with FILES, these alone and as they are."""
    given = TARGETS[target]
    if guided:
        longest = max(path.stat().st_size for path in (CORPUS / target).iterdir())
        unbroken = partial(sound, given)
        guide(unbroken, CORPUS / target, out, runs=runs, seed=seed, longest=longest + 1024)
    tally = Tally()
    if files:
        for path in files:
            tally.add(tried(given, path.read_bytes()), str(path))
        tally.report()
    corpus = [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]
    for octets in corpus:  # what is loaded at first use is nobody's input
        given(octets)
    draw, started = random.Random(seed), time.monotonic()
    while tally.runs < runs and not (seconds and time.monotonic() - started > seconds):
        octets = drawn(target, corpus, draw)
        done = tried(given, octets)
        if done.problem:
            out.mkdir(parents=True, exist_ok=True)
            name = f"{target}-{hashlib.sha256(octets).hexdigest()[:12]}"
            (out / name).write_bytes(octets)
            click.echo(f"{out / name}: {done.problem.splitlines()[-1]}", err=True)
        tally.add(done)
    tally.report()


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of an input.

    Attributes:
        word: what the target says became of it.
        problem: what is wrong with that; empty if nothing is.
        grown: octets of resident memory at its peak beyond those before it.
        share: that, of what its size permits.
        seconds: it took.
    """

    word: str
    problem: str
    grown: int
    share: float
    seconds: float


def tried(target: Target, octets: bytes) -> Tried:
    """How a target takes an input, in bounded memory and time."""
    word, problem = "broke something", ""
    before, started = resident(peak=False), time.monotonic()
    try:
        with bounded(len(octets)):
            word = target(octets)
    except BoundError as error:
        problem = str(error)
    except Exception:
        problem = traceback.format_exc()
    taken, grown = time.monotonic() - started, resident(peak=True) - before
    if not problem and taken > PATIENCE:
        problem = f"it took {taken:.0f} s"
    return Tried(word, problem, grown, grown / (MEMORY + MEMORY_PER_OCTET * len(octets)), taken)


def sound(target: Target, octets: bytes) -> None:
    """Let a target take an input.

    Raises:
        RuntimeError: that breaks it.
    """
    if problem := tried(target, octets).problem:
        raise RuntimeError(problem)


def resident(*, peak: bool) -> int:
    """Octets of this process in memory now, its peak counted anew; or that peak."""
    if not peak:
        Path("/proc/self/clear_refs").write_text("5")
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:" if peak else "VmRSS:"):
            return int(line.split()[1]) << 10
    return 0


class Tally:
    """What came of all inputs."""

    def __init__(self) -> None:
        self.runs = 0
        self._problems: list[str] = []
        self._words: Counter[str] = Counter()
        self._largest = Tried("", "", 0, 0.0, 0.0)
        self._slowest = 0.0
        self._started = time.monotonic()

    def add(self, done: Tried, name: str = "") -> None:
        """Count one; it may have a ``name``."""
        self.runs += 1
        self._words[done.word] += 1
        self._largest = max(self._largest, done, key=lambda item: item.share)
        self._slowest = max(self._slowest, done.seconds)
        if done.problem:
            self._problems.append(f"{name}: {done.problem}" if name else done.problem)

    def report(self) -> NoReturn:
        """Print it, and end."""
        for problem in self._problems[:SHOWN]:
            click.echo(problem)
        for word, count in self._words.most_common():
            click.echo(f"{count:8} {word}")
        largest, taken = self._largest, time.monotonic() - self._started
        click.echo(
            f"{self.runs} inputs in {taken:.0f} s, {len(self._problems)} broke something; at most "
            f"{self._slowest:.1f} s, and {largest.grown / 1e6:.1f} MB of memory, "
            f"{largest.share:.0%} of what is permitted"
        )
        sys.exit(1 if self._problems else 0)


if __name__ == "__main__":
    main()
