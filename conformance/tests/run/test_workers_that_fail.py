"""A certification whose workers die or hang: every case gets a result, and the run ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bentpipe_conformance.evidence.bundle import Bundle, case_directory
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.run import certify as certification
from bentpipe_conformance.run.assignment import Assignment
from bentpipe_conformance.run.certify import AdapterError, certify
from bentpipe_conformance.run.plan import make_plan

GROUP = "snr/fast-retransmit/*"


class Crew:
    """Members that claim the first cases, ``at_once`` of them, and do nothing with them."""

    def __init__(self, assignment: Assignment, at_once: int, hangs: bool, looks: int) -> None:
        self.assignment, self.at_once, self.hangs = assignment, at_once, hangs
        self.looks = looks

    def alive(self) -> bool:
        if (claims := Path(self.assignment.claims)).exists():
            for name in self.assignment.cases[: self.at_once]:
                (claims / case_directory(name)).mkdir(exist_ok=True)
        self.looks -= 1
        return self.hangs and self.looks > 0

    def why(self) -> str:
        return "signal 9"

    def stop(self) -> None:
        self.hangs = False


class Place:
    """Where such crews are started; the first of them probes."""

    name = "simulation"
    virtual = True
    looks = 1000

    def __init__(self, at_once: int, hangs: bool, problem: str = "") -> None:
        self.at_once, self.hangs, self.problem = at_once, hangs, problem
        self.started = 0

    def start(self, assignment: Assignment, jobs: int | None) -> Crew:
        if assignment.probe:
            probe = {"problem": self.problem, "observed": {}, "disagreements": ["odd"]}
            Path(assignment.probe).write_text(json.dumps(probe))
        self.started += 1
        return Crew(assignment, self.at_once, self.hangs, self.looks)


class Watcher:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.records: list[CaseRecord] = []

    def planned(self, cases: int, already: int) -> None:
        self.cases = cases
        assert not already

    def finished(self, record: CaseRecord, running: Sequence[str]) -> None:
        self.records.append(record)

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)


def run(
    folder: Path, place: Place, timeout: float = 9.0, lasts: float = 0.0
) -> tuple[Watcher, Bundle]:
    watcher = Watcher()
    plan = make_plan(
        iut="reference", link="geo", only=(GROUP,), directory=folder / "b", case_timeout=timeout
    )
    cases = tuple(replace(item, lasts=lasts) for item in plan.cases)
    bundle = certify(replace(plan, place=place, cases=cases), watcher)  # type: ignore[arg-type]
    assert len(watcher.records) == watcher.cases
    return watcher, bundle


def test_workers_that_die_at_every_case_leave_errors(tmp_path: Path) -> None:
    place = Place(at_once=1, hangs=False)
    watcher, bundle = run(tmp_path, place)
    assert place.started == certification.MAX_RESTARTS + 1
    records = list(bundle.cases())
    assert {record.verdict.value for record in records} == {"error"}
    # Each case that was begun is tried twice.
    assert sum(record.error == "the worker ended: signal 9" for record in records) == 3
    assert sum(record.error == "not run: the workers died 6 times" for record in records) == (
        watcher.cases - 3
    )
    assert watcher.notes[0] == "odd"
    assert sum("trying once more" in note for note in watcher.notes) == 3


def test_cases_that_hang_end_the_run_after_three(tmp_path: Path) -> None:
    place = Place(at_once=2, hangs=True)
    watcher, bundle = run(tmp_path, place, timeout=0.05)
    assert place.started == 2
    errors = [record.error for record in bundle.cases()]
    hung = sum(error.startswith("the case hung: no result after 0 s") for error in errors)
    assert hung == 4
    assert errors.count("not run: the run was given up after 4 hung cases") == watcher.cases - 4


@pytest.mark.parametrize("virtual", [True, False])
def test_case_that_waits_for_long_is_given_its_time_by_the_clock(
    tmp_path: Path, virtual: bool
) -> None:
    place = Place(at_once=1, hangs=True)
    place.virtual, place.looks = virtual, 4
    _, bundle = run(tmp_path, place, timeout=0.05, lasts=60.0)
    hung = any(record.error.startswith("the case hung") for record in bundle.cases())
    assert hung == virtual


def test_probe_that_finds_a_problem_ends_the_run_before_any_case(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match=r"reference cannot be judged: it lies\.$"):
        run(tmp_path, Place(1, hangs=False, problem="it lies."))
    assert not (tmp_path / "b").exists()
