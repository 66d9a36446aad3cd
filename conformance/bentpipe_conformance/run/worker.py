"""A worker: takes cases one at a time, runs them on its lane, stores each in the bundle.

Workers run where the bed is: in this process's own kernel, or inside User-Mode Linux, from where
only files come back. Several workers share a directory of claims: whoever is free takes the next
case, so each case runs once; a worker that dies leaves a claim that names its case.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bentpipe_conformance.bed.ports import PortsLane
from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.execution import Outcome, run_case
from bentpipe_conformance.engine.lane import Lane, LaneError
from bentpipe_conformance.engine.probe import Probe
from bentpipe_conformance.engine.timing import lateness
from bentpipe_conformance.evidence.bundle import Bundle, case_directory
from bentpipe_conformance.evidence.records import CaseRecord, SentPacket
from bentpipe_conformance.evidence.serialization import dumps, encode
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.run.assignment import Assignment
from bentpipe_conformance.run.opening import load_link, open_lane, run_settings

GLANCE_S = 0.01
"""Seconds between two looks for the directory of claims."""


class Worker:
    """One worker with one lane at a time; a lane whose implementation died is replaced.

    Args:
        assignment: what to do.

    Attributes:
        number: which of the workers of this assignment it is.
    """

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.number = 0
        self._description = load_iut(assignment.iut)
        self._link = load_link(assignment.link)
        self._settings = run_settings(
            self._description, self._link, assignment.profile, assignment.seed
        )
        self._lane: Lane | None = None

    def run(self) -> None:
        """Take cases until none is left."""
        bundle = Bundle.open(self.assignment.bundle)
        cases = load_cases(self.assignment.suite)
        try:
            for identifier in self._claimed(bundle):
                self._one(cases[identifier], bundle)
        finally:
            self._drop_lane()

    def load(self) -> None:
        """Load what the cases need, while others probe."""
        load_cases(self.assignment.suite)
        self._description.suite.driver.load()

    def probe(self) -> Probe:
        """Probe the adapter on this worker's lane."""
        try:
            lane = self._ready_lane()
            found = self._description.suite.driver.probe(lane, self._settings)
            if found.problem and isinstance(lane, PortsLane) and (silent := lane.silent()):
                return Probe(problem=f"{found.problem}; {silent}")
            return found
        except LaneError as error:
            return Probe(problem=str(error))
        finally:
            self._drop_lane()

    def _claimed(self, bundle: Bundle) -> Iterator[str]:
        """Cases that are neither stored nor claimed by anybody else, each claimed now."""
        for identifier in self.assignment.cases:
            if bundle.has(identifier):
                continue
            folder = Path(self.assignment.claims) / case_directory(identifier)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            (folder / "worker").write_text(str(self.number), encoding="utf-8")
            yield identifier

    def _one(self, item: Case, bundle: Bundle) -> None:
        started = time.time()
        try:
            lane = self._ready_lane()
            outcome = run_case(
                item, lane, self._settings, lambda trace: lateness(trace, self._link)
            )
        except LaneError as error:
            asked = self._settings
            outcome = Outcome.of_broken_bed(item, str(error), asked.profile, asked.ics)
        bundle.add_case(case_record(item, outcome, started, self.number), outcome.captured)
        if outcome.died or outcome.broken or self._description.start.restart == "case":
            self._drop_lane()

    def _ready_lane(self) -> Lane:
        if self._lane is None:
            self._lane = open_lane(
                self._description, self._link, self.assignment.seed, self.assignment.timing_error,
                self.assignment.contents,
            )  # fmt: skip
        return self._lane

    def _drop_lane(self) -> None:
        if self._lane is not None:
            self._lane.close()
            self._lane = None


def case_record(
    item: Case, outcome: Outcome, started: float, worker: int | None = None
) -> CaseRecord:
    """The record of a case for the bundle; ``lane`` holds what re-judging it needs."""
    lane = {} if worker is None else {"worker": worker}
    return CaseRecord(
        item.id, item.title, item.purpose, item.requirements,
        outcome.verdict, outcome.reason, outcome.findings,
        started=started, link_seconds=outcome.link_seconds, wall_seconds=outcome.wall_seconds,
        tester_address=outcome.tester_address, error=outcome.broken,
        lane={**lane, "timing_error": outcome.timing_error, "not_reached": outcome.not_reached,
              "died": outcome.died},
        crafted=tuple(SentPacket(round(at.time, 6), at.expression) for at in outcome.crafted),
    )  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """``python -m bentpipe_conformance.run.worker ASSIGNMENT``: run it in this place."""
    assignment = Assignment.load(Path(arguments[0]))
    worker = Worker(assignment)
    if assignment.probe:
        _await_cases(worker)
    if assignment.lanes == 1:
        worker.run()
        return 0
    children = []
    for number in range(assignment.lanes):
        child = os.fork()
        if child == 0:
            try:
                worker.number = number
                worker.run()
            except BaseException as error:  # the parent learns it from the status
                print(f"worker {number}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return 1 if any(statuses) else 0


def _await_cases(worker: Worker) -> None:
    """Probe, if no other worker does, and wait until there are claims."""
    assignment, target = worker.assignment, Path(worker.assignment.probe)
    try:
        # Not an exclusive file: User-Mode Linux looks first, then opens the host's.
        target.with_suffix(".begun").mkdir()
    except FileExistsError:
        worker.load()
    else:
        unfinished = target.with_suffix(".new")
        unfinished.write_text(dumps(encode(worker.probe())), encoding="utf-8")
        unfinished.replace(target)
    while not Path(assignment.claims).exists():
        time.sleep(GLANCE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
