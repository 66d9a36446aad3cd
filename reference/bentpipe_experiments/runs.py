"""Running an experiment on all cores, keeping every result as it comes."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from bentpipe_reference.common.processes import process_pool

from bentpipe_experiments.model import Experiment, Measurement
from bentpipe_experiments.registry import EXPERIMENTS
from bentpipe_experiments.store import Run, Store

COLLECTING = (100_000, 20, 50)
"""Thresholds of the garbage collection: with the usual ones a tenth of the time goes."""


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Collect garbage rarely meanwhile: packets leave none that is circular."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTING)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def missing(experiment: Experiment, store: Store, points: Sequence[float], runs: int) -> list[Run]:
    """What is still to be measured, the first run of everything before the second of anything."""
    return [
        run
        for number in range(runs)
        for point in points
        for series in experiment.series
        if (run := Run(series.id, point, number)) not in store
    ]


def run_missing(
    experiment: Experiment,
    store: Store,
    todo: Sequence[Run],
    seed: int,
    jobs: int,
    finished: Callable[[], None],
) -> None:
    """Measure ``todo`` on ``jobs`` processes, calling ``finished`` after each is stored.

    Raises:
        RuntimeError: a measurement failed, or a process died.
        KeyboardInterrupt: as raised; the running measurements are abandoned.
    """
    for run, measurement in _measured(experiment.id, todo, seed, jobs):
        store.add(run, measurement)
        finished()


def run_seed(seed: int, run: Run) -> int:
    """Seed of one run: equal for all series, so that they meet the same cross traffic."""
    return random.Random(f"{seed}/{run.point:g}/{run.number}").getrandbits(48)


def _measured(
    name: str, todo: Sequence[Run], seed: int, jobs: int
) -> Iterator[tuple[Run, Measurement]]:
    if jobs == 1:
        for run in todo:
            yield run, _measure(name, run, seed)
        return
    try:
        with process_pool(jobs) as pool:
            pending: dict[Future[Measurement], Run] = {
                pool.submit(_measure, name, run, seed): run for run in todo
            }
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield pending.pop(future), future.result()
    except BrokenProcessPool as error:
        raise RuntimeError("a measuring process died; its runs are measured next time.") from error


def _measure(name: str, run: Run, seed: int) -> Measurement:
    with collecting_rarely():
        return EXPERIMENTS[name].measure(run.series, run.point, run_seed(seed, run))
