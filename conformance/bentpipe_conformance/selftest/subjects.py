"""Running the self-test: all mutants times all cases, in virtual time, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any

from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.common.processes import follow_parent
from bentpipe_reference.common.subject import Configure, subject_of

from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.checking import load_checkers
from bentpipe_conformance.engine.execution import run_case
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.iut.inprocess import SimulatedLane
from bentpipe_conformance.selftest.memory import shared_judge
from bentpipe_conformance.selftest.mutants import load_mutants

_REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Subject:
    """A reference or a mutant of it.

    Attributes:
        name: the mutant's identifier, or ``reference``.
        profile: a profile of the suite.
        target: the requirement the mutant breaks; empty for the reference.
        setting: of the reference, or of the one that is mutated; empty for the usual one.
    """

    name: str
    profile: str
    target: str = ""
    setting: str = ""


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """What the suite said of one subject.

    Attributes:
        subject: whom.
        failed: requirements with at least one failing finding, and the first sentence of each.
        open: targets of cases that stayed inconclusive or in error, with the sentence; under
            another setting than the usual one only those that no case decides.
    """

    subject: Subject
    failed: Mapping[str, str]
    open: Mapping[str, str]

    @property
    def caught(self) -> bool:
        """Whether a mutant failed on the requirement it breaks."""
        return self.subject.target in self.failed


def subjects(suite: str, only: Sequence[str] = ()) -> list[Subject]:
    """The true reference in each profile and setting, then every mutant, or those named."""
    record = suite_named(suite)
    mutants = [
        Subject(item.id, item.profile, item.breaks, item.setting)
        for item in load_mutants().values()
        if item.breaks.startswith(record.prefix)
        and (not only or item.id in only or item.breaks in only)
    ]
    settings = ("", *subject_of(record.folder).settings)
    references = [
        Subject(_REFERENCE, profile, setting=setting)
        for profile in record.profiles
        for setting in settings
    ]
    return [*references, *mutants]


def judge_subject(subject: Subject, suite: str, seed: int = 0) -> SubjectResult:
    """Run the cases of the subject's profile, but extra ones, on the simulated GEO link."""
    link = load_profiles()["geo"]
    record = suite_named(suite)
    reference = subject_of(record.folder)
    changes: list[Configure] = []
    ics = dict(reference.ics)
    if subject.setting:
        setting = reference.settings[subject.setting]
        changes.append(setting.configure)
        ics |= setting.ics
    if subject.target:
        changes.append(load_mutants()[subject.name].configure)
    settings = RunSettings(subject.profile, ics, link.round_trip_s, seed)
    setup = reduce(
        lambda changed, change: change(changed), changes, reference.setups[subject.profile]
    )
    lane = SimulatedLane(reference.make, setup, link, seed)
    failed: dict[str, str] = {}
    still_open: dict[str, str] = {}
    passed: set[str] = set()
    for item in load_cases(suite).values():
        if subject.profile in item.profiles and not item.extra:
            passed |= _judge_case(item, lane, settings, failed, still_open)
    if subject.setting:
        still_open = {name: why for name, why in still_open.items() if name not in passed}
    return SubjectResult(subject, failed, still_open)


def _judge_case(
    item: Case,
    lane: Lane,
    settings: RunSettings,
    failed: dict[str, str],
    still_open: dict[str, str],
) -> set[str]:
    """Run a case, note what failed and what stayed open, and return what passed."""
    outcome = run_case(item, lane, settings, judged_by=shared_judge())
    for finding in outcome.findings:
        if finding.verdict is Verdict.FAIL:
            failed.setdefault(finding.requirement, f"{item.id}: {finding.sentence}")
        elif finding.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR):
            still_open.setdefault(finding.requirement, f"{item.id}: {finding.sentence}")
    return {item.requirement for item in outcome.findings if item.verdict is Verdict.PASS}


def run(
    chosen: Iterable[Subject],
    suite: str,
    seed: int,
    jobs: int,
    report: Callable[[SubjectResult], None],
) -> list[SubjectResult]:
    """Judge subjects on ``jobs`` processes, calling ``report`` for each as it ends."""
    todo = list(chosen)
    if jobs == 1:
        results = []
        for subject in todo:
            results.append(judge_subject(subject, suite, seed))
            report(results[-1])
        return results
    with ProcessPoolExecutor(max_workers=jobs, initializer=follow_parent) as pool:
        futures = [pool.submit(judge_subject, subject, suite, seed) for subject in todo]
        results = []
        for future in futures:
            results.append(future.result())
            report(results[-1])
    return results


def summary(results: Sequence[SubjectResult], suite: str) -> dict[str, Any]:
    """The machine-readable outcome: mutants, caught, missed, reference failures, coverage."""
    mutants = [item for item in results if item.subject.target]
    references = [item for item in results if not item.subject.target]
    by_target: dict[str, list[str]] = {}
    for item in mutants:
        by_target.setdefault(item.subject.target, []).append(item.subject.name)
    record = suite_named(suite)
    judged = [item.id for item in record.requirements().values() if item.testability == "wire"]
    unbroken = [identifier for identifier in judged if identifier not in by_target]
    return {
        "suite": suite,
        "mutants": len(mutants),
        "caught": sum(item.caught for item in mutants),
        "missed": [item.subject.name for item in mutants if not item.caught],
        "reference_failures": [
            {"profile": item.subject.profile, "setting": item.subject.setting,
             "requirement": name, "sentence": sentence}
            for item in references
            for name, sentence in item.failed.items()
        ],
        "reference_open": [
            {"profile": item.subject.profile, "setting": item.subject.setting,
             "requirement": name, "sentence": sentence}
            for item in references
            for name, sentence in item.open.items()
        ],
        "requirements_without_mutant": unbroken,
        "requirements_without_checker": [
            identifier for identifier in judged if identifier not in load_checkers(record)
        ],
        "table": [
            {"mutant": item.subject.name, "profile": item.subject.profile,
             "breaks": item.subject.target, "caught": item.caught,
             "failed": list(item.failed), "sentence": item.failed.get(item.subject.target, "")}
            for item in mutants
        ],
    }  # fmt: skip
