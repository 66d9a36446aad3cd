"""``python -m bentpipe_fuzz.inputs TARGET``: files from anybody, by mutation of a corpus.

With ``--atheris`` libFuzzer chooses them by coverage, where the package atheris is installed.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import click
from bentpipe_conformance.evidence.bundle import BundleError
from bentpipe_conformance.evidence.limits import bounded

from bentpipe_fuzz.inputs.mutation import mutated
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
@click.option("--atheris", "guided", is_flag=True, help="Guided by coverage, until interrupted.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(
    target: str, runs: int, seconds: float, seed: int, out: Path, guided: bool,
    files: tuple[Path, ...],
) -> None:  # fmt: skip
    """Feed mutated files to TARGET; with FILES, these alone and as they are."""
    given = TARGETS[target]
    if guided:
        guide(given, target)
    if files:
        found = [problem for path in files if (problem := tried(given, path.read_bytes()))]
        report(found, len(files), 0.0)
        return
    corpus = [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]
    draw, started, found = random.Random(seed), time.monotonic(), []
    done = 0
    while done < runs:
        done += 1
        octets = mutated(draw.choice(corpus), corpus, draw)
        if problem := tried(given, octets):
            found.append(problem)
            out.mkdir(parents=True, exist_ok=True)
            name = f"{target}-{hashlib.sha256(octets).hexdigest()[:12]}"
            (out / name).write_bytes(octets)
            click.echo(f"{out / name}: {problem.splitlines()[-1]}", err=True)
        if seconds and time.monotonic() - started > seconds:
            break
    report(found, done, time.monotonic() - started)


def tried(target: Target, octets: bytes) -> str:
    """What is wrong with how a target takes an input; empty if nothing is."""
    started = time.monotonic()
    try:
        with bounded(len(octets)):
            target(octets)
    except BundleError as error:
        return str(error)
    except Exception:
        return traceback.format_exc()
    taken = time.monotonic() - started
    return f"it took {taken:.0f} s" if taken > PATIENCE else ""


def report(found: Sequence[str], runs: int, taken: float) -> None:
    """Print what was found, and end."""
    for problem in found[:SHOWN]:
        click.echo(problem)
    rate = f" in {taken:.0f} s" if taken else ""
    click.echo(f"{runs} inputs{rate}, {len(found)} broke something")
    sys.exit(1 if found else 0)


def guide(target: Target, name: str) -> None:
    """Let libFuzzer choose the inputs; it never returns."""
    try:
        import atheris
    except ImportError:
        raise click.ClickException(
            "atheris is not installed; `pip install 'bentpipe[fuzz]'` on x86-64."
        ) from None
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], str(CORPUS / name)], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
