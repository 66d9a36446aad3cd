"""A worker: takes cases one at a time, runs them on its lane, stores each in the bundle.

Workers run where the bed is: in this process's own kernel, or inside User-Mode Linux, from where
only files come back. Several workers share a directory of claims, so that each case runs once
whoever is free takes the next, and a worker that dies leaves a claim that tells on which case.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.execution import Outcome, RunSettings, run_case
from bentpipe_conformance.engine.lane import Lane, LaneError
from bentpipe_conformance.engine.probe import Probe, probe
from bentpipe_conformance.engine.timing import lateness
from bentpipe_conformance.evidence.bundle import Bundle, case_directory
from bentpipe_conformance.evidence.records import CaseRecord

OpenLane = Callable[[], Lane]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker is to do; it travels as JSON.

    Attributes:
        iut: identifier or path of the IUT description.
        link: identifier or path of the link profile.
        profile: a profile of the suite.
        place: ``simulation``, ``uml-virtual``, ``uml`` or ``host``.
        suite: name of the suite.
        cases: identifiers of the cases still to run.
        bundle: directory of the bundle.
        claims: directory of the claims.
        seed: the run's seed.
        lanes: how many lanes to run side by side in this place.
        timing_error: seconds, from the bed's check.
        probe: file to write the probe's result to, instead of running cases; empty otherwise.
    """

    iut: str
    link: str
    profile: str
    place: str
    suite: str
    cases: tuple[str, ...]
    bundle: str
    claims: str
    seed: int
    lanes: int = 1
    timing_error: float = 0.0
    probe: str = ""

    def dump(self, path: Path) -> None:
        """Write it for :meth:`load`."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Assignment:
        """Read what :meth:`dump` wrote."""
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**document, "cases": tuple(document["cases"])})


@dataclass
class Worker:
    """One worker with one lane at a time; a lane whose implementation died is replaced."""

    assignment: Assignment
    settings: RunSettings
    link: LinkProfile
    open_lane: OpenLane
    number: int = 0
    _lane: Lane | None = field(default=None, init=False)

    def run(self) -> None:
        """Take cases until none is left."""
        bundle = Bundle.open(self.assignment.bundle)
        cases = load_cases(self.assignment.suite)
        try:
            for identifier in self.claimed():
                self._one(cases[identifier], bundle)
        finally:
            self._drop_lane()

    def claimed(self) -> Iterator[str]:
        """Cases nobody else has claimed, each claimed now."""
        for identifier in self.assignment.cases:
            folder = Path(self.assignment.claims) / case_directory(identifier)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            (folder / "worker").write_text(str(self.number), encoding="utf-8")
            yield identifier

    def probe(self) -> Probe:
        """Probe the adapter on this worker's lane."""
        try:
            return probe(self._ready_lane(), self.settings)
        except LaneError as error:
            return Probe(problem=str(error))
        finally:
            self._drop_lane()

    def _one(self, item: Case, bundle: Bundle) -> None:
        started = time.time()
        try:
            lane = self._ready_lane()
            outcome = run_case(item, lane, self.settings, lambda trace: lateness(trace, self.link))
        except LaneError as error:
            outcome = Outcome.of_broken_bed(item, str(error))
        bundle.add_case(case_record(item, outcome, started, self.number), outcome.captured)
        if outcome.died or outcome.broken:
            self._drop_lane()

    def _ready_lane(self) -> Lane:
        if self._lane is None:
            self._lane = self.open_lane()
        return self._lane

    def _drop_lane(self) -> None:
        if self._lane is not None:
            self._lane.close()
            self._lane = None


def case_record(item: Case, outcome: Outcome, started: float, worker: int) -> CaseRecord:
    """The record of a case for the bundle; ``lane`` holds what re-judging it needs."""
    return CaseRecord(
        id=item.id,
        title=item.title,
        purpose=item.purpose,
        requirements=item.requirements,
        verdict=outcome.verdict,
        reason=outcome.reason,
        findings=outcome.findings,
        started=started,
        link_seconds=outcome.link_seconds,
        wall_seconds=outcome.wall_seconds,
        tester_address=outcome.tester_address,
        lane={
            "worker": worker,
            "timing_error": outcome.timing_error,
            "not_reached": outcome.not_reached,
            "died": outcome.died,
        },
        error=outcome.broken,
    )


def main(arguments: Sequence[str]) -> int:
    """``python -m bentpipe_conformance.run.worker ASSIGNMENT``: run it in this place."""
    from bentpipe_conformance.run.crew import open_worker

    assignment = Assignment.load(Path(arguments[0]))
    if assignment.probe:
        found = open_worker(assignment, 0).probe()
        target = Path(assignment.probe)
        unfinished = target.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(found)), encoding="utf-8")
        unfinished.replace(target)
        return 0
    if assignment.lanes == 1:
        open_worker(assignment, 0).run()
        return 0
    children = []
    for number in range(assignment.lanes):
        child = os.fork()
        if child == 0:
            try:
                open_worker(assignment, number).run()
            except BaseException as error:  # the parent learns it from the status
                print(f"worker {number}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return 0 if not any(statuses) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
