"""Running a certification: probe the adapter, share out the cases, watch the workers."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.probe import Probe
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import Bundle, case_directory
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.evidence.serialization import encode
from bentpipe_conformance.run.assignment import Assignment
from bentpipe_conformance.run.crew import Crew
from bentpipe_conformance.run.plan import Plan

POLL_S = 0.1
"""Seconds between two looks at what the workers have finished."""

MAX_RESTARTS = 5
"""How often dead or hung workers are replaced before the run gives up on its remaining cases."""

MAX_HANGS = 3
"""How many cases may hang before the run gives up on the rest."""


class Watcher(Protocol):
    """What wants to hear of a run's progress."""

    def planned(self, cases: int, already: int) -> None:
        """How many cases the run has, and how many of them were there before (``--resume``)."""

    def finished(self, record: CaseRecord, running: Sequence[str]) -> None:
        """A case was finished; which others are running now."""

    def note(self, sentence: str) -> None:
        """Something a person should know."""


@dataclass
class _Progress:
    """Which claims and results have been seen."""

    wanted: dict[str, Case]
    done: dict[str, CaseRecord] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    hangs: int = 0

    def running(self, claims: Path) -> list[str]:
        return [
            name
            for name in self.wanted
            if name not in self.done and (claims / case_directory(name)).exists()
        ]


class AdapterError(Exception):
    """The nonsense probe found that the adapter or the implementation cannot be judged."""


def certify(plan: Plan, watcher: Watcher) -> Bundle:
    """Probe the adapter, then run the plan's cases; every finished case is stored at once.

    Raises:
        AdapterError: the probe failed; nothing was judged.
        BundleError: the bundle cannot be written.
        KeyboardInterrupt: after the workers were stopped; the bundle can be resumed.
    """
    found = _probe(plan)
    if found.problem:
        problem = found.problem.rstrip(".")
        raise AdapterError(f"{plan.run.iut.id} cannot be judged: {problem}.")
    for sentence in found.disagreements:
        watcher.note(sentence)
    bed = replace(plan.run.bed, check={**plan.run.bed.check, "probe": encode(found)})
    make = Bundle.resume if plan.resume else Bundle.create
    bundle = make(plan.directory, replace(plan.run, bed=bed))
    progress = _Progress({item.id: item for item in plan.cases})
    for identifier in bundle.completed():
        if identifier in progress.wanted:
            progress.done[identifier] = bundle.case(identifier)
    watcher.planned(len(plan.cases), len(progress.done))
    with _scratch() as claims:
        for attempt in range(MAX_RESTARTS + 1):
            left = tuple(name for name in progress.wanted if name not in progress.done)
            if not left or progress.hangs >= MAX_HANGS:
                break
            if attempt:
                watcher.note(f"{len(left)} cases are left; starting new workers")
            assignment = _assignment(plan, left, claims)
            crew = plan.place.start(assignment, plan.jobs)
            try:
                _watch(crew, plan, bundle, claims, progress, watcher)
            finally:
                crew.stop()
        for name in progress.wanted:
            if name not in progress.done:
                _give_up(bundle, progress, name, _why_given_up(progress), watcher)
    return bundle


def _why_given_up(progress: _Progress) -> str:
    if progress.hangs >= MAX_HANGS:
        return f"not run: the run was given up after {progress.hangs} hung cases"
    return f"not run: the workers died {MAX_RESTARTS + 1} times"


def _probe(plan: Plan) -> Probe:
    """Run the nonsense probe in the place where the cases will run."""
    with _scratch() as folder:
        target = folder / "probe.json"
        assignment = replace(_assignment(plan, ("probe",), folder), probe=str(target))
        crew = plan.place.start(assignment, 1)
        try:
            patience = time.monotonic() + plan.case_timeout
            while crew.alive():
                if time.monotonic() > patience:
                    return Probe(problem=f"it hung for {plan.case_timeout:.0f} s during the probe")
                time.sleep(POLL_S)
            if not target.exists():
                return Probe(problem=f"the probe ended without a result ({crew.why()})")
            document = json.loads(target.read_text(encoding="utf-8"))
            return Probe(
                document["problem"], document["observed"], tuple(document["disagreements"])
            )
        finally:
            crew.stop()


def _assignment(plan: Plan, cases: tuple[str, ...], claims: Path) -> Assignment:
    return Assignment(
        iut=plan.iut,
        link=plan.link,
        profile=plan.run.profile,
        place=plan.place.name,
        suite=plan.run.suite,
        cases=cases,
        bundle=str(plan.directory.resolve()),
        claims=str(claims),
        seed=plan.run.seed,
        timing_error=plan.run.bed.timing_error,
    )


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bentpipe-run-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(
    crew: Crew, plan: Plan, bundle: Bundle, claims: Path, progress: _Progress, watcher: Watcher
) -> None:
    """Until the crew ends or a case hangs; cases a dead crew left claimed become errors."""
    while True:
        alive = crew.alive()
        _collect(bundle, progress, claims, watcher)
        running = progress.running(claims)
        now = time.monotonic()
        for name in running:
            progress.since.setdefault(name, now)
        hung = [name for name in running if now - progress.since[name] > plan.case_timeout]
        if hung:
            crew.stop()
            _collect(bundle, progress, claims, watcher)
            for name in hung:
                sentence = f"the case hung: no result after {plan.case_timeout:.0f} s of wall clock"
                if name not in progress.done:
                    progress.hangs += 1
                    _give_up(bundle, progress, name, sentence, watcher)
        if hung or not alive:
            _collect(bundle, progress, claims, watcher)
            _release(bundle, progress, claims, crew, watcher)
            return
        time.sleep(POLL_S)


def _collect(bundle: Bundle, progress: _Progress, claims: Path, watcher: Watcher) -> None:
    for name in progress.running(claims):
        if (bundle.directory / "cases" / case_directory(name) / "case.json").exists():
            progress.done[name] = bundle.case(name)
            watcher.finished(progress.done[name], progress.running(claims))


def _release(
    bundle: Bundle, progress: _Progress, claims: Path, crew: Crew, watcher: Watcher
) -> None:
    """Cases that died with their worker are tried once more, then given up."""
    for name in progress.running(claims):
        folder = claims / case_directory(name)
        progress.since.pop(name, None)
        tried_again = folder.parent / f"{folder.name}.again"
        if tried_again.exists():
            _give_up(bundle, progress, name, f"the worker ended: {crew.why()}", watcher)
            continue
        watcher.note(f"{name}: the worker ended ({crew.why()}); trying once more")
        tried_again.touch()
        shutil.rmtree(folder)


def _give_up(
    bundle: Bundle, progress: _Progress, name: str, sentence: str, watcher: Watcher
) -> None:
    item = progress.wanted[name]
    record = CaseRecord(
        id=item.id,
        title=item.title,
        purpose=item.purpose,
        requirements=item.requirements,
        verdict=Verdict.ERROR,
        reason=sentence,
        findings=tuple(Finding(r, Verdict.ERROR, (), sentence) for r in item.requirements),
        started=time.time(),
        lane={"timing_error": 0.0, "not_reached": "", "died": ""},
        error=sentence,
    )
    bundle.add_case(record, ())
    progress.done[name] = record
    watcher.finished(record, ())
