"""The runs of an experiment on disk: one line each, appended as they come, so any may be last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import bentpipe_reference

import bentpipe_experiments
from bentpipe_experiments.model import Cell, Cells, Experiment, Measurement
from bentpipe_experiments.statistics import mean

RUNS = "runs.jsonl"


class StoreError(ValueError):
    """The directory cannot take the results; the message is one sentence with a remedy."""


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement: its series, its point and its number there, from 0."""

    series: str
    point: float
    number: int


class Store:
    """Results in ``directory``, which survive however the process ends.

    Args:
        directory: created if it does not exist.
        experiment: the experiment whose results they are.
        seed: the seed of the whole experiment.

    Raises:
        StoreError: the directory holds the results of something else.
    """

    def __init__(self, directory: Path, experiment: Experiment, seed: int) -> None:
        self.directory = directory
        self._head = {
            "experiment": experiment.id,
            "seed": seed,
            "settings": dict(experiment.settings),
            "code": code_digest(),
        }
        self._found: dict[Run, Measurement] = {}
        self._file = directory / RUNS
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lines = list(self._lines())
            if not lines:
                self._file.write_text(json.dumps(self._head) + "\n", encoding="utf-8")
                return
            self._check_head(lines[0])
            self._load(lines[1:])
        except OSError as error:
            raise StoreError(f"{directory}: {error.strerror}; choose another --out.") from error
        except StoreError:
            raise
        except (ValueError, KeyError, AttributeError) as error:
            raise StoreError(
                f"{self._file} holds no runs; choose another --out, or replace it with --fresh."
            ) from error

    def __contains__(self, run: Run) -> bool:
        return run in self._found

    def add(self, run: Run, measurement: Measurement) -> None:
        """Keep one result, at once on disk."""
        self._found[run] = measurement
        line = {**asdict(run), "value": measurement.value, "notes": dict(measurement.notes)}
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def cells(self, series: Sequence[str], points: Sequence[float], runs: int) -> Cells:
        """The first ``runs`` results of each series at each point; empty cells are left out."""
        cells = {}
        for name in series:
            for point in points:
                numbered = (Run(name, point, number) for number in range(runs))
                found = [self._found[run] for run in numbered if run in self._found]
                if found:
                    cells[name, point] = _cell(found)
        return cells

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self._file.exists():
            return
        with self._file.open(encoding="utf-8") as stream:
            for line in stream:
                # Only the last line can be cut short: the process ended while it was written.
                if line.endswith("\n"):
                    yield json.loads(line)

    def _check_head(self, head: dict[str, Any]) -> None:
        other = [key for key, value in self._head.items() if head.get(key) != value]
        if other:
            raise StoreError(
                f"{self.directory} holds results with another {' and '.join(other)}; "
                "choose another --out, or replace them with --fresh."
            )

    def _load(self, lines: Sequence[dict[str, Any]]) -> None:
        for line in lines:
            run = Run(line["series"], line["point"], line["number"])
            self._found[run] = Measurement(line["value"], line["notes"])
        self._end_last_line()

    def _end_last_line(self) -> None:
        text = self._file.read_bytes()
        if not text.endswith(b"\n"):
            self._file.write_bytes(text[: text.rfind(b"\n") + 1])


def remove(directory: Path) -> None:
    """Remove the stored runs in ``directory``, and nothing else."""
    (directory / RUNS).unlink(missing_ok=True)


def code_digest() -> str:
    """Identifies the code that measures: the reference without its mutants, and the experiments."""
    digest = hashlib.sha256()
    for package in (bentpipe_reference, bentpipe_experiments):
        for root in package.__path__:
            for path in sorted(Path(root).rglob("*.py")):
                name = path.relative_to(root)
                if "mutants" not in name.parts:
                    digest.update(name.as_posix().encode())
                    digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cell(found: Sequence[Measurement]) -> Cell:
    noted = {name: tuple(item.notes[name] for item in found) for name in found[0].notes}
    return Cell(
        tuple(measurement.value for measurement in found),
        {name: mean(values) for name, values in noted.items()},
        noted,
    )
