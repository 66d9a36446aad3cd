"""What campaigns over mutants share: which are chosen, and results that a rerun goes on from."""

from __future__ import annotations

import fnmatch
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

SAVE_EVERY_S = 10.0
"""Seconds between two savings, and"""

SAVING_SHARE = 0.02
"""of the time that goes into them at most."""

Progress = Callable[[str, int], AbstractContextManager[Callable[..., None]]]
"""Shows how far something has come: what it is and how much; call what it yields after each."""


@contextmanager
def silent(_what: str, _total: int) -> Iterator[Callable[..., None]]:
    """Shows nothing."""
    yield lambda: None


class Named(Protocol):
    """A mutant, as far as it is chosen.

    Attributes:
        id: stable.
        module: where it is.
    """

    @property
    def id(self) -> str:
        """See the class."""

    @property
    def module(self) -> str:
        """See the class."""


M = TypeVar("M", bound=Named)
T = TypeVar("T")


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

    def of(self, mutants: Sequence[M]) -> list[M]:
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
class Kept(Generic[T]):
    """Results on disk, for a run that is continued; without a path they are forgotten.

    Attributes:
        path: a JSON file, or None.
        key: a digest of everything that results depend on; others are not continued.
        trials: by identifier.
        told: what else is stored, computed whenever it is.
    """

    path: Path | None
    key: str
    trials: dict[str, T] = field(default_factory=dict)
    told: Callable[[], Mapping[str, Any]] = dict
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _due: float = field(default_factory=lambda: time.monotonic() + SAVE_EVERY_S)

    def read(self, item: Mapping[str, Any]) -> T:
        """A result from its JSON."""
        raise NotImplementedError

    def put(self, trial: T) -> None:
        """Take a result, and save it before long."""
        with self._lock:
            self.trials[trial.id] = trial  # type: ignore[attr-defined]
            if time.monotonic() > self._due:
                self.save()

    def load(self) -> None:
        """Take what an earlier run of the same sources has left."""
        if self.path is None or not self.path.exists():
            return
        with suppress(ValueError, KeyError, TypeError):
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if data["sources"] == self.key:
                self.trials = {item["id"]: self.read(item) for item in data["trials"]}

    def save(self) -> None:
        """Write them, with what else is told."""
        began = time.monotonic()
        if self.path is not None:
            with self._lock:
                self._write(self.path)
        ended = time.monotonic()
        self._due = ended + max(SAVE_EVERY_S, (ended - began) / SAVING_SHARE)

    def _write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            **self.told(),
            "sources": self.key,
            "trials": [asdict(t) for t in self.trials.values()],  # type: ignore[call-overload]
        }
        beside = path.with_name(f"{path.name}.new")
        beside.write_text(json.dumps(data, indent=1), encoding="utf-8")
        beside.replace(path)
