"""Shards of a campaign side by side, and replay, in whatever place an implementation runs.

The simulation with one job runs in this process. Otherwise each shard is a process or a guest with
a seed of its own; its figures and findings come back as files, so that nothing is lost when it is
ended, dies or hangs.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.supervised import Supervised
from bentpipe_conformance.bed.uml import Guest
from bentpipe_conformance.run.workplace import Workplace

from bentpipe_fuzz.campaign import worker
from bentpipe_fuzz.campaign.engine import Discovery, Tally
from bentpipe_fuzz.campaign.replay import Replay, load
from bentpipe_fuzz.campaign.storage import PLAYING, STOP, Figures, Order, store_ending, stored

POLL_S = 0.2
HUNG_S = 180.0
"""Seconds of the wall clock that one conversation may take; then the shard counts as hung."""
MOST_RESTARTS = 5
GRACE_S = 30.0
"""Seconds that a shard has, when the time is up, to finish what it plays and to make it small."""
AGAIN = 7919
"""What is added to the seed of a shard that is started again, or it would end as before."""
TIMEOUT_S = 86_400.0

Watch = Callable[[Figures, list[str]], None]
"""Is told the figures so far, and a line for each new finding."""


class _Member(Protocol):
    def running(self) -> bool: ...
    def close(self) -> None: ...


def patience(place: Workplace) -> int:
    """Of how many conversations in that place the end of one is waited for.

    Waiting costs nothing in the simulation. A guest carries out every tick of its timers, which
    takes some seconds, and on the wall clock nobody wants to wait.
    """
    return 0 if not place.virtual else 1 if place.name == "simulation" else 16


def folders_of(order: Order, jobs: int) -> list[Path]:
    """Where the shards of a campaign leave their results."""
    folder = Path(order.folder)
    return [folder] if jobs == 1 else [folder / f"shard-{n + 1}" for n in range(jobs)]


def total(folders: Sequence[Path]) -> Figures:
    """The stored figures of several shards, added."""
    figures = Figures()
    for folder in folders:
        figures.add(Figures.load(folder))
    return figures


def run(
    order: Order, place: Workplace, jobs: int, seconds: float | None, watch: Watch
) -> tuple[Figures, list[Path]]:
    """Run a campaign; return its figures and the folders of its shards.

    Args:
        order: the whole campaign.
        place: where.
        jobs: shards side by side; one where there is a single implementation.
        seconds: of the wall clock, after which it ends.
        watch: see :data:`Watch`.

    Raises:
        BedError: no shard can be started.
    """
    jobs = 1 if place.single else jobs
    if place.name == "simulation" and jobs == 1:
        return _here(order, seconds, watch), [Path(order.folder)]
    return run_apart(order, place, jobs, seconds, watch)


def run_apart(
    order: Order, place: Workplace, jobs: int, seconds: float | None, watch: Watch
) -> tuple[Figures, list[Path]]:
    """:func:`run`, each shard in a process or guest of its own."""
    folders = folders_of(order, jobs)
    share = -(-order.examples // jobs)
    orders = [
        replace(order, seed=order.seed + n, examples=share, folder=str(folder.resolve()))
        for n, folder in enumerate(folders)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bentpipe-fuzz-") as scratch:
        shards = [_Shard(item, place, Path(scratch) / f"{n}.json")
                  for n, item in enumerate(orders)]  # fmt: skip
        try:
            _follow(shards, seconds, watch)
        finally:
            for shard in shards:
                shard.close()
    every = _folders(shards)
    figures = total(every)
    for shard in shards:
        figures.problem = figures.problem or shard.problem
        figures.restarts += shard.restarts
    return figures, every


def _folders(shards: Sequence[_Shard]) -> list[Path]:
    return [folder for shard in shards for folder in shard.folders]


def _here(order: Order, seconds: float | None, watch: Watch) -> Figures:
    deadline = time.monotonic() + seconds if seconds else None

    def goes_on(_: Tally) -> bool:
        return deadline is None or time.monotonic() < deadline

    shown = 0.0

    def told(tally: Tally, found: Discovery | None) -> None:
        nonlocal shown
        if found is not None or time.monotonic() - shown > POLL_S:
            shown = time.monotonic()
            watch(Figures.of(tally), [_sentence(found)] if found else [])

    return Figures.of(worker.work(order, goes_on, told))


def _sentence(found: Discovery) -> str:
    length = f"{found.first.length} steps, {found.script.length} when small"
    return f"found {found.signature[0]}: {found.sentence} ({length})"


def _follow(shards: Sequence[_Shard], seconds: float | None, watch: Watch) -> None:
    """Watch shards until all have ended or the time is up."""
    deadline = time.monotonic() + seconds if seconds else None
    told: set[Path] = set()
    while True:
        working = [shard for shard in shards if shard.goes_on()]
        if not working:
            return
        if deadline is not None and time.monotonic() > deadline:
            for shard in shards:
                shard.ask_to_stop()
            if time.monotonic() > deadline + GRACE_S:
                return
        fresh = [path for path in stored(_folders(shards)) if path not in told]
        told.update(fresh)
        watch(total(_folders(shards)), sentences(fresh))
        time.sleep(POLL_S)


def sentences(paths: Iterable[Path]) -> list[str]:
    """A line for each finding that is stored in these folders."""
    lines = []
    for path in paths:
        found = load(path / "replay.json")
        small = f"{found.script.length} steps when small"
        lines.append(f"found {found.requirement}: {found.sentence} ({small})")
    return lines


@dataclass
class _Shard:
    """The process or guest of a shard; it is started again, with what is left, if it ends early."""

    order: Order
    place: Workplace
    file: Path

    def __post_init__(self) -> None:
        self.problem = ""
        self.folders = [Path(self.order.folder)]
        self.restarts = 0
        self._stopping = False
        self._began = time.time()
        self._member: _Member | None = self._start(self.order)

    def goes_on(self) -> bool:
        """Whether it still works."""
        if self._member is None:
            return False
        hung = time.time() - self._active() > HUNG_S
        if self._member.running() and not hung:
            return True
        self.close()
        now = Figures.load(self.folders[-1])
        wanted = self.order.examples
        if self._stopping or now.problem or (wanted and now.conversations >= wanted):
            return False
        why = f"its guest or process {'hung' if hung else 'ended'} during this conversation"
        found = store_ending(self.order, why)
        if not found or self.restarts == MOST_RESTARTS:
            self.problem = f"{why}; {self.restarts} restarts"
            return False
        self.restarts += 1
        folder = self.folders[0] / f"again-{self.restarts}"
        self.folders.append(folder)
        left = wanted - now.conversations if wanted else 0
        self.order = replace(
            self.order, seed=self.order.seed + AGAIN, examples=left, folder=str(folder)
        )
        self._member = self._start(self.order)
        return True

    def ask_to_stop(self) -> None:
        """Have it begin no more conversations."""
        self._stopping = True
        (self.folders[-1] / STOP).touch()

    def _active(self) -> float:
        """When it last began to play something, seconds since 1970."""
        with suppress(OSError):
            return max(self._began, (self.folders[-1] / PLAYING).stat().st_mtime)
        return self._began

    def close(self) -> None:
        """End its process or guest."""
        if self._member is not None:
            self._member.close()
            self._member = None

    def _start(self, order: Order) -> _Member:
        self._began = time.time()
        worker.dump(order, self.file)
        Path(order.folder).mkdir(parents=True, exist_ok=True)
        command = (sys.executable, "-m", "bentpipe_fuzz.campaign.worker", str(self.file))
        image = self.place.image
        if image is not None:
            return Guest(image, command, virtual=image.virtual, timeout=TIMEOUT_S)
        console = self.file.with_suffix(".log")
        console.touch()
        return Supervised(
            command, env=os.environ, cwd=Path.cwd(), console=console, timeout=TIMEOUT_S
        )


# -- replay


def play_again(told: Replay, profile: str, place: Workplace, out: Path | None) -> dict[str, Any]:
    """Play a replay file; the findings, and why it could not be played.

    Raises:
        BedError: the place cannot be had.
    """
    with _folder(out) as folder:
        order = Order(
            told.iut, told.link, profile, told.seed, 1, (),
            place.report.timing_error if place.report else 0.0, 0, str(folder.resolve()),
            patience(place), told.dumps(),
        )  # fmt: skip
        if place.name == "simulation":
            worker.work_script(order)
        else:
            with tempfile.TemporaryDirectory(prefix="bentpipe-fuzz-") as scratch:
                shard = _Shard(order, place, Path(scratch) / "0.json")
                try:
                    while shard.goes_on():
                        time.sleep(POLL_S)
                finally:
                    shard.close()
        figures = Figures.load(folder)
        if not figures.conversations and not figures.problem:
            raise BedError("The script was not played: its guest or process ended before.")
        found = [load(path / "replay.json") for path in stored([folder])]
        return {
            "findings": [
                {"requirement": item.requirement, "sentence": item.sentence,
                 "signature": list(item.signature)}
                for item in found
            ],
            "problem": figures.problem or figures.broken,
        }  # fmt: skip


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="bentpipe-replay-") as name:
        yield Path(name)
