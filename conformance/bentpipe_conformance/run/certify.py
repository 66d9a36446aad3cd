"""Running a certification: probe the adapter, share out the cases, watch the workers."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

from bentpipe_conformance.engine.execution import Outcome
from bentpipe_conformance.engine.probe import Probe
from bentpipe_conformance.evidence.bundle import Bundle, case_directory
from bentpipe_conformance.evidence.layout import check_vacant, remove_other_rooms, workroom
from bentpipe_conformance.evidence.serialization import decode, encode, loads
from bentpipe_conformance.run.assignment import Assignment
from bentpipe_conformance.run.crew import Crew
from bentpipe_conformance.run.plan import Plan
from bentpipe_conformance.run.watcher import Watcher
from bentpipe_conformance.run.worker import case_record

POLL_S = 0.1
"""Seconds between two looks at what the workers have finished."""

GLANCE_S = 0.01
"""The same while they wait for the probe."""

MAX_RESTARTS = 5
"""How often dead or hung workers are replaced before the run gives up on its remaining cases."""

MAX_HANGS = 3
"""How many cases may hang before the run gives up on the rest."""


class AdapterError(Exception):
    """The nonsense probe found that the adapter or the implementation cannot be judged."""


def certify(plan: Plan, watcher: Watcher) -> Bundle:
    """Probe the adapter, then run the plan's cases; every finished case is stored at once.

    Raises:
        AdapterError: the probe failed; nothing was judged.
        BundleError: the bundle cannot be written.
        KeyboardInterrupt: after the workers were stopped; the bundle can be resumed.
    """
    if plan.resume and (plan.directory / "run.json").exists():
        Bundle.open(plan.directory)
    else:
        check_vacant(plan.directory)
    with workroom(plan.directory) as room:
        claims, target = room.resolve() / "claims", room.resolve() / "probe.json"
        every = tuple(item.id for item in plan.cases)
        crew = plan.place.start(_assignment(plan, every, claims, target), plan.jobs)
        try:
            found = _probed(plan, crew, target)
            if found.problem:
                problem = found.problem.rstrip(".")
                raise AdapterError(f"{plan.run.iut.id} cannot be judged: {problem}.")
            for sentence in found.disagreements:
                watcher.note(sentence)
            bed = replace(plan.run.bed, check={**plan.run.bed.check, "probe": encode(found)})
            make = Bundle.resume if plan.resume else Bundle.create
            bundle = make(plan.directory, replace(plan.run, bed=bed))
            remove_other_rooms(plan.directory, room)
            claims.mkdir()
            _Certification(plan, bundle, claims, watcher).run(crew)
        finally:
            crew.stop()
    return bundle


def _probed(plan: Plan, crew: Crew, target: Path) -> Probe:
    """What one of the crew finds with the nonsense probe, where the cases will run."""
    patience = time.monotonic() + plan.case_timeout
    while crew.alive() and not target.exists():
        if time.monotonic() > patience:
            return Probe(problem=f"it hung for {plan.case_timeout:.0f} s during the probe")
        time.sleep(GLANCE_S)
    if not target.exists():
        return Probe(problem=f"the probe ended without a result ({crew.why()})")
    return decode(Probe, loads(target.read_text(encoding="utf-8")))


def _assignment(
    plan: Plan, cases: tuple[str, ...], claims: Path, probe: Path | None = None
) -> Assignment:
    run, bundle = plan.run, str(plan.directory.resolve())
    return Assignment(
        plan.iut, plan.link, run.profile, run.suite, cases, bundle, os.path.abspath(claims),
        run.seed, plan.contents, timing_error=run.bed.timing_error, probe=str(probe or ""),
    )  # fmt: skip


class _Certification:
    """A run in progress: which cases are wanted, claimed by workers, and done."""

    def __init__(self, plan: Plan, bundle: Bundle, claims: Path, watcher: Watcher) -> None:
        self._plan = plan
        self._bundle = bundle
        self._claims = claims
        self._watcher = watcher
        self._wanted = {item.id: item for item in plan.cases}
        self._done = set(bundle.completed()) & set(self._wanted)
        self._since: dict[str, float] = {}
        self._hangs = 0

    def run(self, crew: Crew) -> None:
        """Run what is left, replacing workers that die, and give up what cannot be run.

        ``crew`` has probed and waits for the claims; later ones are started here.
        """
        self._watcher.planned(len(self._wanted), len(self._done))
        for attempt in range(MAX_RESTARTS + 1):
            left = self._left()
            if not left or self._hangs >= MAX_HANGS:
                break
            if attempt:
                self._watcher.note(f"{len(left)} cases are left; starting new workers")
                order = _assignment(self._plan, left, self._claims)
                crew = self._plan.place.start(order, self._plan.jobs)
            try:
                self._watch(crew)
            finally:
                crew.stop()
        reason = f"the workers died {MAX_RESTARTS + 1} times"
        if self._hangs >= MAX_HANGS:
            reason = f"the run was given up after {self._hangs} hung cases"
        for name in self._left():
            self._give_up(name, f"not run: {reason}")

    def _left(self) -> tuple[str, ...]:
        return tuple(name for name in self._wanted if name not in self._done)

    def _running(self) -> list[str]:
        claimed = set(os.listdir(self._claims))
        return [name for name in self._left() if case_directory(name) in claimed]

    def _claim(self, name: str) -> Path:
        return self._claims / case_directory(name)

    def _watch(self, crew: Crew) -> None:
        """Watch until the crew ends or a case hangs."""
        timeout = self._plan.case_timeout
        while True:
            alive = crew.alive()
            self._collect()
            now = time.monotonic()
            hung = [
                name
                for name in self._running()
                if now - self._since.setdefault(name, now) > timeout + self._lasts(name)
            ]
            if hung:
                crew.stop()
            if hung or not alive:
                self._collect()
                for name in (name for name in hung if name not in self._done):
                    self._hangs += 1
                    late = f"no result after {timeout:.0f} s of wall clock"
                    self._give_up(name, f"the case hung: {late}")
                self._release(crew)
                return
            time.sleep(POLL_S)

    def _lasts(self, name: str) -> float:
        """Seconds that a case is given besides, because it waits for so long by the clock."""
        return 0.0 if self._plan.place.virtual else self._wanted[name].lasts

    def _collect(self) -> None:
        """Report what the workers have finished."""
        for name in self._running():
            if self._bundle.has(name):
                self._done.add(name)
                self._watcher.finished(self._bundle.case(name), self._running())

    def _release(self, crew: Crew) -> None:
        """Try cases that died with their worker once more, then give them up."""
        for name in self._running():
            claim = self._claim(name)
            self._since.pop(name, None)
            tried_again = claim.with_name(f"{claim.name}.again")
            if tried_again.exists():
                self._give_up(name, f"the worker ended: {crew.why()}")
                continue
            self._watcher.note(f"{name}: the worker ended ({crew.why()}); trying once more")
            tried_again.touch()
            shutil.rmtree(claim)

    def _give_up(self, name: str, sentence: str) -> None:
        """Store an error in place of a result."""
        item = self._wanted[name]
        run = self._plan.run
        broken = Outcome.of_broken_bed(item, sentence, run.profile, run.iut.ics)
        record = case_record(item, broken, time.time())
        self._bundle.add_case(record, ())
        self._done.add(name)
        self._watcher.finished(record, ())
