"""Run models and compare what they show with their manifests."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

from bentpipe_conformance.models import distributed, tlc
from bentpipe_conformance.models.configuration import Configuration, read_configuration
from bentpipe_conformance.models.definitions import defined_at
from bentpipe_conformance.models.manifest import Manifest, Run
from bentpipe_conformance.models.messages import Outcome, Progress
from bentpipe_conformance.models.serving import Servers
from bentpipe_conformance.models.tool import Refused, Tool, ToolProblem

# From about this many distinct states on, Java's second compiler pays (measured: at 55,000 it costs
# half as much again as the first one alone, at 210,000 it saves an eighth).
_LARGE = 100_000

_OF_REFINEMENTS = ("ReliableFifo", "violated by the initial state")
_UNNAMED = "Temporal properties were violated"
_PLACE = re.compile(r"\bline (\d+), col \d+ to line \d+, col \d+ of module (\w+)")

Item = TypeVar("Item")
Found = TypeVar("Found")

Verdict = Literal["as expected", "violation", "not caught", "not covered", "drift", "problem"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What runs may use: seconds and MiB per run, threads in all, a folder for files.

    With ``host``, the address of this machine, runs use TLC's distributed mode. Without ``logs``
    the log of a run that came to nothing is not kept. With ``coverage`` actions are counted.
    """

    timeout: float
    memory_mb: int
    workers: int
    directory: Path | None = None
    host: str | None = None
    announce: Callable[[str], None] = lambda _line: None
    logs: bool = True
    coverage: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """One run compared with its manifest.

    Attributes:
        manifest: the model.
        run: the run.
        verdict: ``as expected``; ``violation`` of something that must hold; ``not caught`` where
            a violation was expected and another or none came; ``not covered`` where an action of
            the manifest is no longer taken; ``drift`` of the recorded figures;
            ``problem`` when the tool could not do it.
        why: one sentence for every verdict but the first.
        outcome: what TLC found; None for a problem.
        violated: name of the violated check; empty when none is.
        config: what was run.
        problem: why the tool could not do it.
    """

    manifest: Manifest
    run: Run
    verdict: Verdict
    why: str
    outcome: Outcome | None
    violated: str
    config: Configuration | None
    problem: ToolProblem | None = None

    @property
    def figures(self) -> dict[str, Any]:
        """The figures a manifest records for this run.

        TLC finds shortest counterexamples of invariants and action properties only; the length
        of others is not compared.
        """
        if self.outcome is None:
            return {}
        figures: dict[str, Any] = {"seconds": round(self.outcome.seconds, 1)}
        if self.outcome.behaviours:
            return figures | {"behaviours": self.outcome.behaviours}
        if self.outcome.violated:
            return figures | {"depth": len(self.outcome.trace) if self.outcome.name else None}
        figures |= {
            "distinct": self.outcome.distinct,
            "total": self.outcome.generated,
            "depth": self.outcome.depth,
        }
        if self.outcome.actions:  # what was taken once is asked for until somebody takes it out
            taken = {name for name, times in self.outcome.actions.items() if times}
            figures["actions"] = sorted({*taken, *self.run.actions})
        return figures


class Checker:
    """Runs of models with one tool and one set of limits."""

    def __init__(self, tool: Tool, limits: Limits) -> None:
        self._tool, self._limits = tool, limits
        self._cancelled = threading.Event()
        self._servers: Servers | None = None
        self._keeping = threading.Lock()
        self._kept: dict[str, str] = {}

    def check_all(
        self,
        chosen: Sequence[tuple[Manifest, Run]],
        finished: Callable[[Result], None],
        progress: Callable[[Run, Progress], None],
    ) -> list[Result]:
        """Every chosen run, side by side as far as the threads allow, results in the order chosen.

        A run of the pr tier has one thread, so that its figures are reproducible, and so has a
        simulation; another nightly run has them all.
        """

        def one(at: int) -> Result:
            return self.check(*chosen[at], progress)

        small = [at for at, (_, run) in enumerate(chosen) if run.tier == "pr" or run.simulate]
        large = [at for at, (_, run) in enumerate(chosen) if run.tier != "pr" and not run.simulate]
        results = self.each(one, small, self._limits.workers, finished)
        results += self.each(one, large, 1, finished)
        known = dict(zip(small + large, results, strict=True))
        return [known[at] for at in range(len(chosen))]

    @contextmanager
    def working(self, workers: int) -> Iterator[ThreadPoolExecutor]:
        """Threads for runs of this checker; an exception here ends them, and what they run.

        Small runs share processes of the model checker as long as the threads live.
        """
        with ExitStack() as stack:
            if self._servers is None and self._tool.server is not None:
                self._servers = stack.enter_context(Servers(self._tool, self._limits.memory_mb))
                stack.callback(self._alone)
            pool = stack.enter_context(ThreadPoolExecutor(workers))
            try:
                yield pool
            except BaseException:
                self.cancel()
                pool.shutdown(cancel_futures=True)
                raise

    def _alone(self) -> None:
        """Have each run a process of its own."""
        self._servers = None

    def each(
        self, one: Callable[[Item], Found], items: Sequence[Item], workers: int,
        tick: Callable[[Found], object] = lambda _found: None,
    ) -> list[Found]:  # fmt: skip
        """``one`` of every item, ``workers`` at a time, in the order given; ``tick`` after each.

        Args:
            one: makes runs of this checker.
            items: what ``one`` takes.
            workers: threads.
            tick: told what was found, in the order in which they end: of one at a time, and before
                the next one begins, so that Ctrl-C loses nothing that has ended.

        Raises:
            Exception: whatever ``one`` or ``tick`` raises, by which all runs end.
        """
        lock = threading.Lock()

        def told(item: Item) -> Found:
            found = one(item)
            with lock:
                tick(found)
            return found

        with self.working(workers) as pool:
            futures = [pool.submit(told, item) for item in items]
            for future in as_completed(futures):
                future.result()
            return [future.result() for future in futures]

    def cancel(self) -> None:
        """Stop what is running; its runs end with ``Cancelled``. May be called from any thread."""
        self._cancelled.set()

    def check(
        self,
        manifest: Manifest,
        run: Run,
        progress: Callable[[Run, Progress], None] = lambda _run, _progress: None,
        timeout: float | None = None,
    ) -> Result:
        """One run, within ``timeout`` seconds if that is less than the limits allow.

        Raises:
            Cancelled: ``cancel`` was called.
        """
        with ExitStack() as stack:
            if self._limits.directory is not None:
                directory = self._limits.directory / manifest.name / run.name
                directory.mkdir(parents=True, exist_ok=True)
            else:
                scratch = stack.enter_context(TemporaryDirectory(prefix="bentpipe-model-"))
                directory = Path(scratch)
            try:
                config = configured(manifest, run)
                place = manifest
                if run.edit:
                    scratch = stack.enter_context(TemporaryDirectory(prefix="bentpipe-edit-"))
                    place = edited(manifest, run.edit, Path(scratch))
                job = self._job(place, run, config, directory)
                if timeout is not None:
                    job = replace(job, timeout=min(timeout, job.timeout))
                outcome = self._run(job, lambda how_far: progress(run, how_far))
            except ToolProblem as problem:
                why = str(problem)
                if self._limits.directory is None and self._limits.logs:
                    why = self._with_kept_log(problem, directory)
                return Result(manifest, run, "problem", why, None, "", None, problem)
        return judged(manifest, run, config, outcome)

    def _run(self, job: tlc.Job, report: Callable[[Progress], None]) -> Outcome:
        limits = self._limits
        if limits.host is None:
            if self._servers is not None:
                return self._servers.run(job, report, self._cancelled)
            return tlc.run(self._tool, job, report, self._cancelled)
        job = replace(job, workers=limits.workers)
        return distributed.run(
            self._tool, job, limits.host, report, limits.announce, self._cancelled
        )

    def _job(self, manifest: Manifest, run: Run, config: Configuration, directory: Path) -> tlc.Job:
        return tlc.Job(
            module=manifest.folder / run.module,
            config=config.text(),
            libraries=manifest.libraries(self._tool.root, run.module),
            directory=directory,
            workers=self._limits.workers if run.tier == "nightly" and not run.simulate else 1,
            memory_mb=self._limits.memory_mb,
            timeout=self._limits.timeout,
            coverage=self._limits.coverage and not run.violates,
            simulate=(run.simulate["behaviours"], run.simulate["depth"]) if run.simulate else None,
            short=bool(run.violates) or (run.distinct or _LARGE) < _LARGE,
            source=run.config,
        )

    def _with_kept_log(self, problem: ToolProblem, directory: Path) -> str:
        """The sentence, with the log moved to where it outlives the run's folder.

        What many runs meet has one log.
        """
        log = directory / "tlc.log"
        if not log.is_file():
            return str(problem)
        cause = problem.cause if isinstance(problem, Refused) else str(problem)
        with self._keeping:
            if cause not in self._kept:
                kept, self._kept[cause] = tempfile.mkstemp(prefix="bentpipe-model-", suffix=".log")
                with open(kept, "wb") as copy:
                    copy.write(log.read_bytes())
            return str(problem).replace(str(log), self._kept[cause])


def edited(manifest: Manifest, edits: Mapping[str, str], scratch: Path) -> Manifest:
    """A copy of a model with changes typed into its specification.

    Raises:
        ToolProblem: what is to be replaced is not in the specification, or in several places.
    """
    twin = replace(manifest, folder=scratch / manifest.name)
    copied(manifest.folder, twin.folder)
    source = twin.folder / manifest.scope.module
    text = source.read_text(encoding="utf-8")
    for before, after in edits.items():
        if text.count(before) != 1:
            raise ToolProblem(
                f"{source.name} has {before!r} in {text.count(before)} places instead of one; "
                "correct the edit in the manifest."
            )
        text = text.replace(before, after)
    source.write_text(text, encoding="utf-8")
    return twin


def copied(folder: Path, to: Path) -> None:
    """A model's modules and configurations in another folder."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*.json", "*.toml", "states"))


def configured(manifest: Manifest, run: Run) -> Configuration:
    """The configuration of one run."""
    base = read_configuration(manifest.folder / run.config)
    return base.varied(run.constants, run.replaced, run.checks, manifest.invariants)


def judged(manifest: Manifest, run: Run, config: Configuration, outcome: Outcome) -> Result:
    """Compare an outcome with what the manifest says of the run."""
    violated = violated_check(config, outcome, manifest.folder)

    def result(verdict: Verdict, why: str = "") -> Result:
        return Result(manifest, run, verdict, why, outcome, violated, config)

    if run.violates:
        if violated != run.violates:
            found = f"{violated} was" if violated else "nothing was"
            return result("not caught", f"{run.violates} should be violated, but {found}.")
        if outcome.name and run.depth not in (None, len(outcome.trace)):
            return result(
                "drift",
                f"The counterexample has {len(outcome.trace)} states, the manifest says "
                f"{run.depth}.",
            )
        return result("as expected")
    if violated:
        return result("violation", f"{violated} is violated.")
    lost = [name for name in run.actions if outcome.actions and not outcome.actions.get(name)]
    if lost:
        return result("not covered", f"{', '.join(lost)} no longer happens in this run.")
    if run.simulate:
        return result("as expected")
    wanted = {"distinct": run.distinct, "total": run.total}
    found_figures = {"distinct": outcome.distinct, "total": outcome.generated}
    if not outcome.depth:  # the distributed mode knows no depth, and generates states twice
        del wanted["total"]
    elif run.tier == "pr":
        wanted["depth"], found_figures["depth"] = run.depth, outcome.depth
    for key, value in wanted.items():
        if value is None:
            return result(
                "drift", f"The manifest records no {key}; record it with --update-manifest."
            )
        if value != found_figures[key]:
            return result("drift", f"{key} is {found_figures[key]:,}, the manifest says {value:,}.")
    return result("as expected")


def violated_check(config: Configuration, outcome: Outcome, folder: Path) -> str:
    """The name of what is violated; TLC does not name temporal properties and refinements.

    Of some it tells the place instead, in a module of ``folder``.
    """
    if not outcome.violated:
        return ""
    if place := _PLACE.search(outcome.violated):
        path = folder / f"{place[2]}.tla"
        if path.is_file():
            name = defined_at(path.read_text(encoding="utf-8"), int(place[1]))
            if name in config.properties:
                return name
    if outcome.name in (*config.invariants, *config.properties):
        return outcome.name
    if len(config.properties) == 1:
        return config.properties[0]
    refinements = [name for name in config.properties if name.startswith("Refines")]
    if len(refinements) == 1 and any(sign in outcome.violated for sign in _OF_REFINEMENTS):
        return refinements[0]
    if outcome.violated.startswith(_UNNAMED):
        return " or ".join(config.properties)
    return outcome.violated.rstrip(".")
