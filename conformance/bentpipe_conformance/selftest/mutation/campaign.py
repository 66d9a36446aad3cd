"""A run over the mutants of a suite: chosen, tried in parallel, stored as it goes on."""

from __future__ import annotations

import fnmatch
import gc
import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bentpipe_conformance.engine.suite import load_suites, suite_named
from bentpipe_conformance.selftest.mutation.baseline import (
    WALL_S,
    Baseline,
    measure,
    sources_digest,
)
from bentpipe_conformance.selftest.mutation.forking import Lost, in_children
from bentpipe_conformance.selftest.mutation.loading import path_of
from bentpipe_conformance.selftest.mutation.scope import Scope
from bentpipe_conformance.selftest.mutation.sites import Mutant
from bentpipe_conformance.selftest.mutation.trial import (
    KILLED,
    Kill,
    Trial,
    limit_memory,
    try_mutant,
)

JUDGES = ("engine", "iut", "protocols", "selftest")
"""Packages on which results depend, besides the reference."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which mutants.

    Attributes:
        modules: patterns of modules; empty for all.
        only: identifiers, or patterns of them; empty for all.
        sample: how many at random; None for all.
        seed: of the sample.
    """

    modules: Sequence[str] = ()
    only: Sequence[str] = ()
    sample: int | None = None
    seed: int = 0

    def of(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """The chosen ones, in their order."""
        chosen = [
            item
            for item in mutants
            if (not self.modules or any(_fits(item.module, name) for name in self.modules))
            and (not self.only or any(_fits(item.id, name) for name in self.only))
        ]
        if self.sample is None or self.sample >= len(chosen):
            return chosen
        drawn = set(
            random.Random(self.seed).sample(sorted(item.id for item in chosen), self.sample)
        )
        return [item for item in chosen if item.id in drawn]


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


@dataclass
class Store:
    """Results on disk, for a run that is continued; without a path they are forgotten.

    Attributes:
        path: a JSON file, or None.
        key: a digest of everything that results depend on; others are not continued.
        trials: by identifier.
    """

    path: Path | None
    key: str
    trials: dict[str, Trial] = field(default_factory=dict)

    def load(self) -> None:
        """Take what an earlier run of the same sources has left."""
        if self.path is None or not self.path.exists():
            return
        with suppress(ValueError, KeyError, TypeError):
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if data["sources"] == self.key:
                self.trials = {item["id"]: read_trial(item) for item in data["trials"]}

    def save(self, told: Mapping[str, Any]) -> None:
        """Write them, with what else is told."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = {**told, "sources": self.key, "trials": [asdict(t) for t in self.trials.values()]}
        beside = self.path.with_name(f"{self.path.name}.new")
        beside.write_text(json.dumps(data, indent=1), encoding="utf-8")
        beside.replace(self.path)


def read_trial(item: Mapping[str, Any]) -> Trial:
    """A trial from its JSON."""
    kills = [Kill(**{**kill, "by": tuple(kill["by"])}) for kill in item["kills"]]
    return Trial(**{**item, "kills": kills})


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
    """

    scope: Scope
    suite: str
    seed: int = 0
    whole: bool = False
    jobs: int = 1
    usual: bool = False

    def baseline(self, mutants: Sequence[Mutant], tick: Callable[[], None]) -> Baseline:
        """See :func:`measure`."""
        what = self.scope, self.suite, self.seed, mutants, self.jobs, tick
        return measure(*what, usual=self.usual)

    def run(
        self, chosen: Sequence[Mutant], baseline: Baseline, store: Store,
        report: Callable[[Trial], None],
    ) -> None:  # fmt: skip
        """Try the chosen mutants that the store does not know, reporting each as it ends."""
        missing = [item for item in chosen if item.id not in store.trials]
        random.Random(0).shuffle(missing)  # so that a partial result is an estimate of the whole
        gc.collect()
        gc.freeze()  # so that children share what they never change

        def judge(mutant: Mutant) -> Trial:
            limit_memory()
            gc.disable()
            return try_mutant(mutant, self.scope, baseline, whole=self.whole)

        try:
            for mutant, result in in_children(missing, judge, self.jobs, WALL_S):
                if isinstance(result, Lost):
                    kill = Kill("", (), "hung", result.why)
                    reaching = [str(run) for run in baseline.reaching(mutant)]
                    result = Trial(mutant.id, KILLED, "", [kill], 0, reaching)
                store.trials[mutant.id] = result
                report(result)
        finally:
            gc.unfreeze()
