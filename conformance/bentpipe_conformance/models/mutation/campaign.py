"""The mutants of one model: tried side by side, results kept as they come."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bentpipe_conformance.models.manifest import FILE, Manifest, Run, shared_modules
from bentpipe_conformance.models.mutation.sites import Mutant, mutants_of_module
from bentpipe_conformance.models.mutation.tree import read_module
from bentpipe_conformance.models.mutation.trial import (
    Trial,
    control_of,
    read_trial,
    runs_of,
    try_mutant,
)
from bentpipe_conformance.models.tool import Tool, ToolProblem
from bentpipe_conformance.models.verification import Checker
from bentpipe_conformance.selftest.mutation.explaining import Explanation, read_explanations
from bentpipe_conformance.selftest.mutation.keeping import Kept

CLASSES: Mapping[str, str] = {
    "equivalent": "it behaves like the specification, whatever the bounds",
    "harmless": "it behaves otherwise, and no requirement forbids that",
    "abstraction": "it changes what the model leaves out or leaves open, no rule of the protocol",
}
"""What an explained survivor may be."""

EXPLAINED = "explained.toml"

_OF_TRACES = ("Trace", "Capture")
"""Modules that follow recordings, and take no part."""

KILLS = "kills.json"
"""Beside a model's manifest: by definition, the properties that notice small changes of it."""


class Store(Kept[Trial]):
    """The trials of a model's mutants, and of the model itself."""

    def read(self, item: Mapping[str, Any]) -> Trial:
        """A trial from its JSON."""
        return read_trial(item)


def mutants_of(tool: Tool, manifest: Manifest) -> list[Mutant]:
    """Every mutant of a model.

    Raises:
        ToolProblem: its manifest does not say what is mutated, or the module cannot be parsed.
    """
    scope = manifest.scope
    if not scope.module:
        raise ToolProblem(
            f'{manifest.folder / FILE} does not say what is mutated; add "mutation": '
            '{"module": "SPEC.tla"}.'
        )
    path = manifest.folder / scope.module
    module = read_module(tool, path, manifest.libraries(tool.root, scope.module))
    return mutants_of_module(
        manifest.name, module, scope.roots, environment=scope.environment, ghosts=scope.ghosts
    )


def explanations_of(manifest: Manifest) -> dict[str, Explanation]:
    """The explained survivors of a model, by identifier.

    Raises:
        ToolProblem: an entry is incomplete or wrong.
    """
    path = manifest.folder / EXPLAINED
    if not path.is_file():
        return {}
    try:
        return read_explanations(path, manifest.name, CLASSES)
    except ValueError as error:
        raise ToolProblem(f"{error}.") from error


def key_of(tool: Tool, manifest: Manifest, *, whole: bool) -> str:
    """A digest of all that results depend on."""
    digest = hashlib.blake2b(digest_size=16)
    paths = [
        *manifest.folder.rglob("*.tla"), *manifest.folder.glob("*.cfg"),
        *shared_modules(tool.root)[0].glob("*.tla"),
    ]  # fmt: skip
    for path in sorted(paths):
        digest.update(f"{path.name}\0{path.read_text(encoding='utf-8')}\0".encode())
    for run in manifest.runs:
        digest.update(repr((run.name, run.kind, run.tier, run.module, run.config,
                            sorted(run.constants.items()), sorted(run.replaced.items()),
                            run.checks, run.violates)).encode())  # fmt: skip
    digest.update(repr((manifest.scope.module, whole)).encode())
    return digest.hexdigest()


def parts_of(manifest: Manifest) -> dict[str, str]:
    """Short digests of what a published run was about, so that a reader sees what has changed.

    ``specification`` is of the module whose mutants are tried, ``checks`` of all that could notice
    one: the other modules and configurations, and the runs with their bounds.
    """
    folder, scope = manifest.folder, manifest.scope.module
    beside = [path for path in folder.glob("*.tla") if not path.name.startswith(_OF_TRACES)]
    others = [path for path in (*beside, *folder.glob("*.cfg")) if path.name != scope]
    runs = sorted(
        repr((run.name, run.kind, run.module, run.config, sorted(run.constants.items()),
              sorted(run.replaced.items()), run.checks, run.violates))
        for run in runs_of(manifest)
    )  # fmt: skip

    def digest(paths: Iterable[Path], more: Sequence[str] = ()) -> str:
        text = "\0".join([*(path.read_text(encoding="utf-8") for path in paths), *more])
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    return {"specification": digest([folder / scope]), "checks": digest(sorted(others), runs)}


class Control:
    """What the model itself shows, each run when it is first asked for.

    Without that, no mutant can be judged by the run.

    Args:
        manifest: of the model.
        checker: what makes the runs.
        store: what is known, and where it is put.
    """

    def __init__(self, manifest: Manifest, checker: Checker, store: Store) -> None:
        self._manifest, self._checker, self._store = manifest, checker, store
        self._locks = {run.name: threading.Lock() for run in runs_of(manifest)}
        self._putting = threading.Lock()

    def of(self, run: Run) -> Trial:
        """The trial of the model, in which this run has been made.

        Raises:
            Cancelled: the checker was cancelled.
            ToolProblem: the model itself is not as its manifest says.
        """
        name = control_of(self._manifest.name)
        with self._locks[run.name]:
            if run.name not in self._store.trials.get(name, Trial(name)).seconds:
                made = try_mutant(self._manifest, None, self._checker, None, runs=[run])
                if made.kills or made.why:
                    kills = ", ".join(f"{kill.by} in {kill.run}" for kill in made.kills)
                    raise ToolProblem(
                        f"{self._manifest.name} itself is not as its manifest says "
                        f"({kills or made.why}); run bentpipe model first."
                    )
                with self._putting:
                    known = self._store.trials.get(name, Trial(name))
                    figures, seconds = known.figures | made.figures, known.seconds | made.seconds
                    self._store.put(replace(known, figures=figures, seconds=seconds))
            return self._store.trials[name]


def try_all(
    manifest: Manifest, chosen: Sequence[Mutant], checker: Checker, store: Store, workers: int,
    tick: Callable[..., None], *, whole: bool = False,
) -> None:  # fmt: skip
    """Try the chosen mutants that the store does not know.

    Args:
        manifest: of the model.
        chosen: which.
        checker: shared by all threads; cancelled when one of them fails.
        store: what is known; saved at the end, however that comes.
        workers: mutants at a time.
        tick: called after each.
        whole: see :func:`.trial.try_mutant`.

    Raises:
        ToolProblem: the model itself is not as its manifest says.
    """

    def tried(trial: Trial) -> None:
        store.put(trial)
        tick()

    missing = [item for item in chosen if item.id not in store.trials]
    random.Random(0).shuffle(missing)  # so that a partial result is an estimate of the whole
    try:
        control = Control(manifest, checker, store)
        checker.each(
            lambda item: try_mutant(manifest, item, checker, control, whole=whole),
            missing, workers, tried,
        )  # fmt: skip
    finally:
        store.save()


def default_store(out: Path | None, manifest: Manifest) -> Path | None:
    """Where the results of a model are kept."""
    return None if out is None else out / manifest.name / "mutation.json"
