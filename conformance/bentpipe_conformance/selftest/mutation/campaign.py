"""A run over the mutants of a suite: chosen, tried in parallel, stored as it goes on."""

from __future__ import annotations

import gc
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.suite import load_suites, suite_named
from bentpipe_conformance.selftest.mutation.baseline import (
    WALL_S,
    measure,
    runs_of,
    sources_digest,
)
from bentpipe_conformance.selftest.mutation.division import SURVIVED
from bentpipe_conformance.selftest.mutation.forking import Lost, in_children
from bentpipe_conformance.selftest.mutation.keeping import Choice, Kept, Progress, silent
from bentpipe_conformance.selftest.mutation.loading import load_subject, path_of
from bentpipe_conformance.selftest.mutation.scope import Scope
from bentpipe_conformance.selftest.mutation.sites import Mutant
from bentpipe_conformance.selftest.mutation.trial import (
    UNJUDGED,
    Kill,
    Runs,
    Trial,
    limit_memory,
    merged,
    try_mutant,
)

__all__ = ["Campaign", "Choice", "Store", "key_of", "read_trial"]

JUDGES = ("engine", "iut", "protocols", "selftest")
"""Packages on which results depend, besides the reference."""


class Store(Kept[Trial]):
    """The trials of a suite's mutants."""

    def read(self, item: Mapping[str, Any]) -> Trial:
        """A trial from its JSON."""
        return read_trial(item)


_RUNS = ("reaching", "changed")


def read_trial(item: Mapping[str, Any]) -> Trial:
    """A trial from its JSON."""
    kills = [Kill(**{**kill, "by": tuple(kill["by"])}) for kill in item["kills"]]
    runs = {name: Runs(item[name]["count"], tuple(item[name]["first"])) for name in _RUNS}
    return Trial(**{**item, "kills": kills, **runs})


def key_of(scope: Scope, suite: str, seed: int, *, whole: bool) -> str:
    """A digest of the sources and of how they are run."""
    paths = [
        path for path in path_of(scope.root).parent.rglob("*.py") if "mutants" not in path.parts
    ]
    protocols = {item.folder for item in load_suites().values()} - {suite_named(suite).folder}
    package = path_of("bentpipe_conformance").parent
    for name in JUDGES:
        paths += [
            path
            for path in (package / name).rglob("*.py")
            if not protocols & set(path.relative_to(package).parts)
        ]
    paths += path_of("bentpipe_spec").parent.rglob("*.toml")
    return f"{sources_digest(paths)} {suite} {seed} {whole}"


@dataclass
class Campaign:
    """One run.

    Attributes:
        scope: of the reference.
        suite: the suite.
        seed: of the simulation.
        whole: whether every run that kills is wanted, not only the first.
        jobs: processes.
        usual: whether to leave out settings other than the usual one.
        cases: the only ones that judge; none for all.
    """

    scope: Scope
    suite: str
    seed: int = 0
    whole: bool = False
    jobs: int = 1
    usual: bool = False
    cases: Collection[str] = ()

    def run(self, chosen: Sequence[Mutant], store: Store, progress: Progress = silent) -> None:
        """Try the chosen mutants that the store does not know; then survivors in other settings."""
        missing = [item for item in chosen if item.id not in store.trials]
        random.Random(0).shuffle(missing)  # so that a partial result is an estimate of the whole
        if missing:
            self._run(missing, store, progress, usual=True)
        survivors = [item for item in chosen if _is_open(store.trials.get(item.id))]
        if survivors and not self.usual and self._has_settings():
            self._run(survivors, store, progress, usual=False)

    def _has_settings(self) -> bool:
        return bool(load_subject(self.scope.protocol, {}, self.scope.root).settings)

    def _run(
        self, mutants: Sequence[Mutant], store: Store, progress: Progress, *, usual: bool
    ) -> None:
        subject = load_subject(self.scope.protocol, {}, self.scope.root)
        runs = runs_of(self.suite, subject, usual=usual, cases=self.cases)
        with progress("cases" if usual else "cases in every setting", len(runs)) as tick:
            baseline = measure(
                self.scope, self.suite, self.seed, mutants, self.jobs, tick, usual=usual,
                cases=self.cases,
            )  # fmt: skip
        gc.collect()
        gc.freeze()  # so that children share what they never change

        def judge(mutant: Mutant) -> Trial:
            limit_memory()
            return try_mutant(mutant, self.scope, baseline, whole=self.whole, usual=usual)

        try:
            with progress("mutants" if usual else "survivors", len(mutants)) as tick:
                for mutant, result in in_children(mutants, judge, self.jobs, WALL_S):
                    if isinstance(result, Lost):
                        result = Trial(mutant.id, SURVIVED, UNJUDGED)
                    known = store.trials.get(mutant.id)
                    store.put(result if known is None else merged(known, result))
                    tick()
        finally:
            gc.unfreeze()


def _is_open(trial: Trial | None) -> bool:
    return trial is not None and trial.result == SURVIVED and not trial.settled
