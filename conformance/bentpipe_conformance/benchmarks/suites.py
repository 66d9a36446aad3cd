"""What the self-test and a whole certification take."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.benchmarks.model import (
    Figure,
    Report,
    at_least,
    below,
    median_of,
    wall_seconds,
)
from bentpipe_conformance.cli.certify import LiveWatcher
from bentpipe_conformance.iut.build import IutUnavailable
from bentpipe_conformance.run.certify import certify as run_plan
from bentpipe_conformance.run.plan import make_plan
from bentpipe_conformance.run.seal import seal_bundle
from bentpipe_conformance.selftest import subjects as running

SELFTEST_SECONDS = 60
CERTIFY_SECONDS = 120
SATELLITE_PER_WALL = 15


def selftest(repeat: int) -> Report:
    """All mutants times all cases."""
    subjects = running.subjects("snr")
    jobs = os.cpu_count() or 1
    seconds = median_of(
        repeat,
        lambda: wall_seconds(lambda: running.run(subjects, "snr", 1, jobs, lambda _: None)),
    )
    return Report(
        f"'selftest snr': every case against the reference and {len(subjects)} mutants and "
        f"profiles of it in virtual time, {jobs} processes; wall clock",
        (below("wall seconds", seconds, SELFTEST_SECONDS),),
    )


def certify(repeat: int) -> Report:
    """The full certification of Linux over the GEO link in virtual time."""
    measured = (
        "'certify linux --link geo --profile rfc --bed uml-virtual', bed check and report "
        "included; wall clock, and seconds of satellite time judged in it"
    )
    try:
        runs = [_certify() for _ in range(repeat)]
    except (BedError, IutUnavailable) as error:
        return Report(measured, skipped=str(error))
    return Report(
        measured,
        (
            below("wall seconds", median(wall for wall, _ in runs), CERTIFY_SECONDS),
            at_least(
                "satellite seconds per wall second",
                median(judged / wall for wall, judged in runs),
                SATELLITE_PER_WALL,
            ),
            Figure("satellite seconds", median(judged for _, judged in runs)),
        ),
    )


def _certify() -> tuple[float, float]:
    """One certification; its seconds of wall clock and of satellite time."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as directory:
        plan = make_plan(
            iut="linux", link="geo", profile="rfc", bed="uml-virtual",
            directory=Path(directory) / "run", seed=1,
        )  # fmt: skip
        with LiveWatcher(quiet=True) as watcher:
            bundle = run_plan(plan, watcher)
        seal_bundle(bundle, jobs=plan.jobs)
        bundle.close()
    return time.monotonic() - started, watcher.link_seconds
